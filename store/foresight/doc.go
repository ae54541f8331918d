// Package foresight keeps what was forecast of each drain, so that it can be compared with what became of it (view
// drain_forecasts):
//
//	n, err := foresight.Record(ctx, db, "prod", time.Now())  // forecasts of the drains that have none yet
//	results, err := foresight.Judge(ctx, db, "prod")         // of those that have ended since
//
// A forecast is made once. Nothing is derived from it, so it may be lost: a drain that began and ended while nobody led has
// none.
package foresight
