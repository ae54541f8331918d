// Package lake reads what evictrail exports as Parquet with another library than that which wrote it, Apache Arrow's,
// and compares it with the views: rows, order and types of columns, NULLs.
package lake
