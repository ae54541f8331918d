// Package tally counts what happened in a cluster on each day, so that a year of a fleet is read from a few rows a
// cluster and month instead of all of its migrations (view cluster_days):
//
//	days, err := tally.Count(ctx, db, "prod", time.Now())
//
// What is counted is derived and may change later: a migration whose end was reported late, a loop that was refuted.
// So days are counted again, and the younger they are the more often: today and yesterday each time, the last 35 days
// once a day, all once a month.
package tally
