package api

import (
	"context"
	"encoding/json"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// ForAll gives every caller the same Reader: for who serves nobody but themselves.
func ForAll(r Reader) func(trail.Scope) Reader { return func(trail.Scope) Reader { return r } }

// Reader answers what people and programs ask: the store does, and so does the client of another evictrail. It must be safe
// for concurrent use. Why and WhyNot give trail.ErrNotFound where the VM or node is not known, and *trail.AmbiguousError
// where it is in several clusters, the lists *trail.TooLargeError where the rows have more bytes than the query allows.
type Reader interface {
	ListJSON(ctx context.Context, v trail.View, q trail.Query) (trail.Page[json.RawMessage], error)
	ListText(ctx context.Context, v trail.View, q trail.Query) (trail.Table, error)
	Why(ctx context.Context, q trail.Question) (trail.Answer, error)
	WhyNot(ctx context.Context, q trail.Question) (trail.NotAnswer, error)
	WhatIf(ctx context.Context, q whatif.Question) (whatif.Answer, error)
	Names(ctx context.Context, q trail.NameQuery) ([]string, error)
}
