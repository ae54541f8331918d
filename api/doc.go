// Package api serves evictrail over HTTP: what machines ask a service for, its health and its metrics, and what they tell
// it, audit events and admission reviews. What it needs of the rest it takes as functions, so that it imports neither
// the store nor the collector.
//
// Read server.go for the paths, then one file for each; access.go says who may send, problem.go how errors look.
package api
