// Package backtest says how often alerts would have fired in a period that is recorded, with their present thresholds
// and with others.
//
//	options := backtest.Options{Groups: alerts.Groups(alerts.DefaultOptions()), Step: time.Minute}
//	report, err := backtest.Run(ctx, history, since, options)
//	report.Rules[0].Variants[0].Firings // with the thresholds of today
//
// A rewind.History goes in. It is replayed at a step into the metrics that "evictrail run" has (package metrics), these
// are samples of a Prometheus in memory, and Prometheus' own engine evaluates the rules over them:
//
//	History --rewind.Replay--> State, News --metrics--> samples --promql--> values --for, keep_firing_for--> Firings
//
// Each rule is evaluated as it is, and as Variants of it: with another threshold, with another `for`. A threshold is a
// number to which an expression compares, and is named by its present value.
//
// What holds:
//
//   - Expressions are those of package alerts, and nothing else evaluates them than Prometheus' engine.
//   - An alert that reads what a history does not have is listed as such (NotInHistory), and never counted as silent.
//   - A firing has a cause beside it where evictrail recorded one about the same VM, node or cluster (cause.go).
//
// Read backtest.go first (the order of things), then rule.go (what a rule reads, its thresholds), series.go and
// sample.go (the samples), firing.go (from values to firings), cause.go.
//
// It reads no clock and no database. Nothing is safe for concurrent use.
package backtest
