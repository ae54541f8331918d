package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
	"github.com/evictrail/evictrail/trail/whatif"
)

// Readers has a question answered by a Reader of what a caller who sees so much may read: all of it by that one. Where that
// Reader cannot answer, and one of another server may, it is answered once more by that. The error is that of the last.
type Readers func(ctx context.Context, of trail.Scope, answer func(context.Context, Reader) error) error

// ForAll returns Readers with the same Reader for every caller, for a server that has one user.
func ForAll(r Reader) Readers {
	return func(ctx context.Context, _ trail.Scope, answer func(context.Context, Reader) error) error {
		return answer(ctx, r)
	}
}

// Reader answers what people and programs ask: the store does (store/answers), and so does the client of another
// evictrail. It must be safe for concurrent use. Why and WhyNot return trail.ErrNotFound where the VM or node is not known, and *trail.AmbiguousError
// where it is in several clusters, the lists *trail.TooLargeError where the rows have more bytes than the query allows.
type Reader interface {
	ListJSON(ctx context.Context, v trail.View, q trail.Query) (trail.Page[json.RawMessage], error)
	ListText(ctx context.Context, v trail.View, q trail.Query) (trail.Table, error)
	Why(ctx context.Context, q trail.Question) (trail.Answer, error)
	WhyNot(ctx context.Context, q trail.Question) (trail.NotAnswer, error)
	WhatIf(ctx context.Context, q whatif.Question) (whatif.Answer, error)
	// Backtest says what would have come of alerts in a period; nothing (trail.ErrNotFound) to who may not see all of a
	// cluster.
	Backtest(ctx context.Context, q backtest.Question) (backtest.Answer, error)
	// Recorders returns the state of the recorder of each cluster, or of the named one. With a non-zero from, each has the gaps that overlap
	// the period from..to; a zero to is no bound.
	Recorders(ctx context.Context, cluster string, from, to time.Time) ([]trail.RecorderStatus, error)
	// Settings returns the settings that are asked for, by cluster and from the oldest to the newest; none to who may not see all of a cluster.
	Settings(ctx context.Context, q trail.SettingsQuery) ([]trail.SettingsInForce, error)
	Names(ctx context.Context, q trail.NameQuery) ([]string, error)
	Nodes(ctx context.Context, q trail.NodeQuery) ([]trail.NodeSummary, error)
	// Fleet returns how it stands with each cluster: with worst the worst first, each with its worst in a sentence; else by name.
	Fleet(ctx context.Context, worst bool) ([]trail.FleetLine, error)
	// Compare returns how clusters fared, in the order of trail.SortCompared; none to who may not see all of a cluster.
	Compare(ctx context.Context, q trail.CompareQuery) ([]trail.ClusterComparison, error)
	// DrainForecast says how a drain of a node would go, or goes on, as of now. Errors are those of Why.
	DrainForecast(ctx context.Context, q trail.Question) (forecast.Drain, error)
	// Limits reports, by cluster, whether KubeVirt's limits fit the migrations of the last week; nothing to who may not see all of a cluster.
	Limits(ctx context.Context, cluster string) ([]forecast.Limits, error)
	// Weekly reports, by cluster, what happened week by week to the VMs that the caller may see.
	Weekly(ctx context.Context, q trail.WeeklyQuery) ([]trail.Weekly, error)
	// Find searches a cluster, or all of them, for a text. Total is how many VMs, nodes and migrations there are, of which at most
	// trail.MostFound are found.
	Find(ctx context.Context, cluster, text string) (found []trail.Found, total int, err error)
}
