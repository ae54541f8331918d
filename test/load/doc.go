// Package load fills a database with weeks of a simulated cluster and measures how long questions take: through the store, and over
// HTTP, where a load tool asks every route at a steady rate. `make load` runs it with a million events and keeps the database;
// among the other tests it runs with a small one, so that it stays true. See docs/benchmarks.md.
package load
