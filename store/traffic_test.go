package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// traffic counts what is sent to a database.
type traffic struct{ Statements, RoundTrips []string }

// TraceQueryStart counts a statement that is sent by itself.
func (c *traffic) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	c.Statements, c.RoundTrips = append(c.Statements, q.SQL), append(c.RoundTrips, q.SQL)
	return ctx
}

// TraceQueryEnd counts nothing.
func (c *traffic) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart counts statements that are sent together.
func (c *traffic) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	for _, q := range b.Batch.QueuedQueries {
		c.Statements = append(c.Statements, q.SQL)
	}
	c.RoundTrips = append(c.RoundTrips, "batch")
	return ctx
}

// TraceBatchQuery counts nothing.
func (c *traffic) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd counts nothing.
func (c *traffic) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TestTrafficOfOnePhase counts what a leader sends to the database to record one phase of a migration and to derive its VM and its node, when both are in memory.
func TestTrafficOfOnePhase(t *testing.T) {
	t.Parallel()
	var sent traffic
	db, err := pg.Connect(t.Context(), storetest.NewURL(t), "", &sent)
	require.NoError(t, err)
	s := store.New(db)
	t.Cleanup(s.Close)
	leader := s.For("c1", "r1")
	require.NoError(t, leader.Lead(t.Context(), "this", trail.DefaultThresholds()))
	facts := storetest.IncidentAt(time.Now().UTC().Add(-time.Hour).Truncate(time.Second), "c1", 1) // of a week ago more is asked
	step := func(some []trail.Fact) {
		_, err := leader.Append(t.Context(), some)
		require.NoError(t, err)
		_, _, err = leader.KeepUp(t.Context())
		require.NoError(t, err)
	}
	for i := range facts[:len(facts)-1] {
		step(facts[i : i+1])
	}
	last := facts[len(facts)-1]
	require.Equal(t, trail.KindMigrationPhase, last.Kind)
	sent = traffic{}
	step([]trail.Fact{last})
	t.Logf("%d statements in %d round trips", len(sent.Statements), len(sent.RoundTrips))
	require.LessOrEqual(t, len(sent.Statements), 22, "%s", strings.Join(sent.Statements, "\n"))
	require.LessOrEqual(t, len(sent.RoundTrips), 6)
}
