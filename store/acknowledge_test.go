package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// openLoopsQuery makes two open loops: one about a VM, and one about a node with evidence about that VM.
const openLoopsQuery = `
INSERT INTO evictrail.loops (cluster, subject, loop_id, kind, namespace, vmi, node, opened_at, summary, advice, counts, evidence)
VALUES
  ('c1', 'vmi:shop/db-1', gen_random_uuid(), 'endless_retry', 'shop', 'db-1', 'n1', '2026-11-21', 'x', 'x', '{}', '[{"at": "2026-11-21T00:00:00Z", "vmi": "shop/db-1", "text": "x"}]'),
  ('c1', 'node:n1', gen_random_uuid(), 'budget_pinned', NULL, NULL, 'n1', '2026-11-21', 'x', 'x', '{}', '[{"at": "2026-11-21T00:00:00Z", "vmi": "shop/db-1", "text": "x"}]')`

// openAcknowledged returns a store with an evacuation that is over, of shop/db-0, one that is open, of shop/db-1, and openLoopsQuery.
func openAcknowledged(t *testing.T) *store.Store {
	t.Helper()
	s := storetest.New(t)
	facts := storetest.Incident("c1", 2)
	_, err := s.Append(t.Context(), "c1", facts[:len(facts)-4])
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), openLoopsQuery)
	require.NoError(t, err)
	return s
}

// storeAcknowledgement stores an acknowledgement of a VM or a node.
func storeAcknowledgement(t *testing.T, s *store.Acknowledger, of trail.Subject, author string) trail.Acknowledgement {
	t.Helper()
	a := trail.Acknowledge(of, time.Hour, time.Now())
	a.Author, a.Note, a.Ticket = author, author+" is on it", "OPS-17"
	a, err := s.Acknowledge(t.Context(), a)
	require.NoError(t, err)
	return a
}

const annotatedQuery = `
SELECT concat_ws(' ', 'loop', kind, acknowledged_by, acknowledgement_note, acknowledged_until - now() > interval '50 min') FROM evictrail_v1.loops
UNION ALL
SELECT concat_ws(' ', 'evacuation', vmi, acknowledged_by, acknowledgement_note, acknowledged_until - now() > interval '50 min') FROM evictrail_v1.evacuations
ORDER BY 1`

var (
	dbZero, dbOne = trail.VMISubject("shop", "db-0"), trail.VMISubject("shop", "db-1")
	nodeOne       = trail.Subject{Kind: trail.SubjectNode, Name: "n1"}
)

// TestAcknowledgement acknowledges the problems of VMs and a node: what is open about each shows that, what is over does not. Another one
// replaces the first, and withdrawing or time ends it.
func TestAcknowledgement(t *testing.T) {
	t.Parallel()
	s := openAcknowledged(t)
	all := s.AcknowledgerOf(trail.Everything())
	require.Equal(t, []string{"evacuation db-0", "evacuation db-1", "loop budget_pinned", "loop endless_retry"}, queryLines(t, s, annotatedQuery))

	first := storeAcknowledgement(t, all, dbOne, "anna")
	require.Equal(t, "shop/db-1", first.Name())
	require.Equal(t, "c1", first.Cluster)
	require.WithinDuration(t, time.Now().Add(time.Hour), first.ExpiresAt, time.Minute)
	storeAcknowledgement(t, all, dbZero, "anna")
	storeAcknowledgement(t, all, nodeOne, "carl")
	require.Equal(t, []string{"evacuation db-0", "evacuation db-1 anna anna is on it t", "loop budget_pinned carl carl is on it t", "loop endless_retry anna anna is on it t"}, queryLines(t, s, annotatedQuery))

	second := storeAcknowledgement(t, all, dbOne, "ben")
	replaced, err := s.Acknowledgement(t.Context(), first.ID)
	require.NoError(t, err)
	require.Equal(t, "ben", replaced.EndedBy)
	require.Contains(t, queryLines(t, s, annotatedQuery), "evacuation db-1 ben ben is on it t")
	held, err := s.Acknowledged(t.Context(), "c1", []trail.Subject{dbOne, nodeOne, trail.VMISubject("shop", "none")})
	require.NoError(t, err)
	require.Len(t, held, 2)
	require.Equal(t, second, held[dbOne])

	withdrawn, err := all.Withdraw(t.Context(), second.ID, "anna")
	require.NoError(t, err)
	require.Equal(t, "anna", withdrawn.EndedBy)
	_, err = all.Withdraw(t.Context(), second.ID, "anna")
	require.ErrorIs(t, err, trail.ErrNotFound)
	require.ErrorContains(t, err, "it has ended already")

	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.acknowledgements SET created_at = created_at - interval '2 h', expires_at = expires_at - interval '2 h' WHERE node = 'n1'")
	require.NoError(t, err)
	require.Equal(t, []string{"evacuation db-0", "evacuation db-1", "loop budget_pinned", "loop endless_retry"}, queryLines(t, s, annotatedQuery))
	page, err := s.ListText(t.Context(), trail.ViewAcknowledgements, trail.Query{})
	require.NoError(t, err)
	require.Len(t, page.Rows, 4, "the history stays")
	page, err = s.ListText(t.Context(), trail.ViewAcknowledgements, trail.Query{Open: true})
	require.NoError(t, err)
	require.Len(t, page.Rows, 1, "that of shop/db-0 holds")

	unknown := trail.Acknowledge(trail.VMISubject("shop", "none"), time.Hour, time.Now())
	_, err = all.Acknowledge(t.Context(), unknown)
	require.ErrorIs(t, err, trail.ErrNotFound)
}

// TestAcknowledgementsOfTenants: who sees another namespace neither reads nor writes acknowledgements of shop, and who sees shop none of nodes.
func TestAcknowledgementsOfTenants(t *testing.T) {
	t.Parallel()
	s := openAcknowledged(t)
	all := s.AcknowledgerOf(trail.Everything())
	ofVM, ofNode := storeAcknowledgement(t, all, dbOne, "anna"), storeAcknowledgement(t, all, nodeOne, "carl")
	both := []trail.Subject{dbOne, nodeOne}

	other := s.AcknowledgerOf(trail.Only("c1", "bank"))
	_, err := other.Acknowledge(t.Context(), trail.Acknowledge(dbOne, time.Hour, time.Now()))
	require.ErrorIs(t, err, trail.ErrNotFound)
	_, err = other.Withdraw(t.Context(), ofVM.ID, "eve")
	require.ErrorIs(t, err, trail.ErrNotFound)
	held, err := other.Acknowledged(t.Context(), "c1", both)
	require.NoError(t, err)
	require.Empty(t, held)

	own := s.AcknowledgerOf(trail.Only("c1", "shop"))
	_, err = own.Withdraw(t.Context(), ofNode.ID, "eve")
	require.ErrorIs(t, err, trail.ErrNotFound)
	held, err = own.Acknowledged(t.Context(), "c1", both)
	require.NoError(t, err)
	require.Equal(t, map[trail.Subject]trail.Acknowledgement{dbOne: ofVM}, held)
	for _, v := range []trail.View{trail.ViewLoops, trail.ViewEvacuations, trail.ViewAcknowledgements} {
		page, err := own.ListJSON(t.Context(), v, trail.Query{})
		require.NoError(t, err)
		require.NotEmpty(t, page.Rows)
		for _, row := range page.Rows {
			require.NotContains(t, string(row), "carl", v.Name)
		}
		text, err := own.ListText(t.Context(), v, trail.Query{})
		require.NoError(t, err)
		require.Len(t, text.Rows, len(page.Rows))
	}
}
