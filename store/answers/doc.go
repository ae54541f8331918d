// Package answers answers callers from a database: what package store/read does, and what needs Prometheus' engine
// beside it, which package store and its tests are not to link.
//
//	api.ForAll(answers.Reader{Reader: s.Reader}) // of a store.Store
//
// A *read.Reader and a backtest.Question go in; reader.go joins them. What a caller may see is up to the *read.Reader.
package answers
