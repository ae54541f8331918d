// Package api serves evictrail over HTTP: what people and programs ask, its health and its metrics, and what machines send
// it, audit events and admission reviews. What it needs of the rest it takes as functions and interfaces, so that it imports
// neither the store nor the collector.
//
//	s := api.Server{Readers: api.ForAll(reader)} // reader is an answers.Reader, for example
//	err := http.Serve(listener, s.Handler())
//	// GET /api/v1/vms/shop/db-1/why answers what reader.Why returns
//
// Read server.go and route.go for what is served, then one file for each noun. One table of parameters (query.go, why.go, names.go) is
// read by the server, written by its client (package client) and described in openapi.yaml (document.go, schema.go, words.go); /docs
// shows the same (docs.go). read.go has the bounds, access.go says who may send, problem.go how errors look.
// acknowledge.go has all that callers write. assistant.go serves assistants, and arguments.go reads what they ask with, from the same tables.
package api

//go:generate go test ../cmd/evictrail -run ^TestOpenAPI$ -update
