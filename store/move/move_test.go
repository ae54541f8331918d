package move_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/evidence"
	"github.com/evictrail/evictrail/store/move"
	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

const aDay = 24 * time.Hour

// march is the beginning of the month in which histories go on that begin before.
var march = storetest.March

// recordStory records a made-up history of a cluster, shifted so that it begins at a time, and derives it.
func recordStory(t *testing.T, s *store.Store, cluster string, seed uint64, at time.Time) {
	t.Helper()
	story := storetest.GenerateSourceFacts(seed)
	for _, facts := range [][]trail.Fact{story.Watched, story.Reviewed, story.Audited} {
		by := at.Sub(storetest.Start)
		for i := range facts {
			f := &facts[i]
			f.OccurredAt, f.ObservedAt = f.OccurredAt.Add(by), f.ObservedAt.Add(by)
			f.ID[0] ^= byte(seed)
			f.Object.UID = fmt.Sprintf("%s-%d", f.Object.UID, seed)
		}
		_, err := s.Append(t.Context(), cluster, facts)
		require.NoError(t, err)
	}
}

// newSource returns a database with two clusters, of one of which days are sealed, facts were dropped, and a person has
// acknowledged a problem.
func newSource(t *testing.T) *store.Store {
	t.Helper()
	s := storetest.New(t)
	for seed := range uint64(3) {
		recordStory(t, s, "c1", seed, march.Add(-2*aDay))
		recordStory(t, s, "other", seed, march.Add(-2*aDay))
	}
	_, err := s.DB.Exec(t.Context(), "UPDATE evictrail.events SET stored_at = occurred_at")
	require.NoError(t, err)
	links, err := evidence.Seal(t.Context(), s.DB, "c1", march.Add(3*aDay))
	require.NoError(t, err)
	require.NotEmpty(t, links)
	did, err := retention.Retain(t.Context(), s.DB, retention.Policy{Facts: 7 * aDay}, march.Add(8*aDay))
	require.NoError(t, err)
	require.NotEmpty(t, did.Dropped)
	for seed := uint64(3); seed < 6; seed++ {
		recordStory(t, s, "c1", seed, march.Add(9*aDay))
	}
	_, err = s.DB.Exec(t.Context(), `INSERT INTO evictrail.acknowledgements
		(cluster, subject, node, author, note, expires_at)
		VALUES ('c1', 'node:n1', 'n1', 'alice', E'a \\ "quoted" ''note''', 'infinity')`)
	require.NoError(t, err)
	return s
}

// newDestination returns a database in use by another cluster, which has dropped months of its own.
func newDestination(t *testing.T) *store.Store {
	t.Helper()
	s := storetest.New(t)
	recordStory(t, s, "theirs", 7, march.Add(-40*aDay))
	recordStory(t, s, "theirs", 8, march.Add(20*aDay))
	did, err := retention.Retain(t.Context(), s.DB, retention.Policy{Facts: 7 * aDay}, march.Add(60*aDay))
	require.NoError(t, err)
	require.NotEmpty(t, did.Dropped)
	return s
}

// rowsOf returns the rows of a cluster in all tables but that of moves; of all others with not.
func rowsOf(t *testing.T, s *store.Store, cluster string, not bool) map[string][]string {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), `SELECT c.relname::text FROM pg_class AS c
		JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'cluster'
		WHERE c.relnamespace = 'evictrail'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
		AND c.relname <> 'moves'`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(names), 20)
	out := map[string][]string{}
	for _, name := range names {
		rows, err := s.DB.Query(t.Context(), "SELECT to_jsonb(t)::text FROM evictrail."+name+
			" AS t WHERE (cluster = $1) <> $2 ORDER BY 1", cluster, not)
		require.NoError(t, err)
		out[name], err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
	}
	return out
}

func newMover(from, to *store.Store) move.Mover {
	return move.Mover{From: from.DB, To: to.DB, Cluster: "c1"}
}

// TestNothingIsLost moves a cluster into a database in use: all its rows are there, those of others are what they were
// in both, its days are intact, and facts that come are numbered after all that were there.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	from, to := newSource(t), newDestination(t)
	want, theirs, others := rowsOf(t, from, "c1", false), rowsOf(t, to, "c1", true), rowsOf(t, from, "c1", true)
	for _, table := range []string{
		"events", "subjects", "aspects", "timeline", "evacuations", "evidence", "acknowledgements", "clusters",
	} {
		require.NotEmpty(t, want[table], table)
	}
	m := newMover(from, to)
	sizes, err := m.Plan(t.Context())
	require.NoError(t, err)
	did, err := m.Run(t.Context(), false)
	require.NoError(t, err)
	total := 0
	for _, s := range sizes {
		require.Len(t, want[s.Table], int(s.Rows), s.Table)
		total += int(s.Rows)
	}
	require.Equal(t, total, int(did.Rows))
	require.Len(t, sizes, did.Tables)
	require.Zero(t, did.Repaired)
	require.Equal(t, want, rowsOf(t, to, "c1", false))
	require.Equal(t, want, rowsOf(t, from, "c1", false), "the source stays as it is")
	require.Equal(t, theirs, rowsOf(t, to, "c1", true))
	require.Equal(t, others, rowsOf(t, from, "c1", true))

	report, err := evidence.Verify(t.Context(), to.DB, "c1", nil, nil)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.Positive(t, report.Facts)
	at := storetest.CountRows(t, from, "SELECT max(seq) FROM evictrail.events")
	var moved time.Time
	require.NoError(t, to.DB.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&moved))
	recordStory(t, to, "c1", 20, march.Add(20*aDay))
	recordStory(t, to, "theirs", 21, march.Add(20*aDay))
	fresh := "SELECT count(*) FROM evictrail.events WHERE stored_at > $1 AND seq > $2"
	require.Positive(t, storetest.CountRows(t, to, fresh, moved, at))
	require.Zero(t, storetest.CountRows(t, to, strings.ReplaceAll(fresh, "seq >", "seq <="), moved, at), "numbers go on")
	links, err := evidence.Seal(t.Context(), to.DB, "c1", time.Now().Add(2*aDay).Truncate(aDay))
	require.NoError(t, err)
	require.NotEmpty(t, links)
	report, err = evidence.Verify(t.Context(), to.DB, "c1", nil, nil)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

// TestRowsOfDroppedMonthsStay derives everything of a moved cluster again: rows about months whose facts are gone stay
// as they are, also where the destination has all of its own facts.
func TestRowsOfDroppedMonthsStay(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	from, to := newSource(t), storetest.New(t)
	m := newMover(from, to)
	_, err := m.Run(t.Context(), false)
	require.NoError(t, err)
	want := storetest.Dump(t, from)
	for view := range want {
		want[view] = slices.DeleteFunc(want[view], func(row string) bool { return !strings.Contains(row, `"cluster": "c1"`) })
	}
	require.NotEmpty(t, want["timeline"])
	require.Equal(t, want, storetest.Dump(t, to))
	n, err := to.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	require.Positive(t, n)
	require.Equal(t, want, storetest.Dump(t, to))
}

// TestEveryTableHasAPlace fails where the schema has a table that neither belongs to clusters, and is moved, nor is
// known to stay. A table that is added later is moved without being named anywhere.
func TestEveryTableHasAPlace(t *testing.T) {
	t.Parallel()
	from, to := newSource(t), storetest.New(t)
	for _, s := range []*store.Store{from, to} {
		_, err := s.DB.Exec(t.Context(), `
			CREATE TABLE evictrail.later (item text, "odd name" int, cluster text, PRIMARY KEY (cluster, item));
			CREATE TABLE evictrail.events_next (LIKE evictrail.events)`)
		require.NoError(t, err)
	}
	_, err := from.DB.Exec(t.Context(), `INSERT INTO evictrail.later (cluster, item, "odd name")
		SELECT c, E'it''s \\' || i, i FROM generate_series(1, 200) AS i, unnest(ARRAY['c1', 'other']) AS c`)
	require.NoError(t, err)
	m := newMover(from, to)
	sizes, err := m.Plan(t.Context())
	require.NoError(t, err)
	placed := slices.Concat(move.Unmoved, []string{"retention"})
	for _, s := range sizes {
		placed = append(placed, s.Table)
	}
	rows, err := from.DB.Query(t.Context(), `SELECT relname::text FROM pg_class
		WHERE relnamespace = 'evictrail'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.ElementsMatch(t, all, placed,
		"a table of the schema has no place in a move: give it a column cluster, or say in unmoved why not")
	_, err = m.Run(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, rowsOf(t, from, "c1", false), rowsOf(t, to, "c1", false))

	_, err = from.DB.Exec(t.Context(), "ALTER TABLE evictrail.later DROP CONSTRAINT later_pkey")
	require.NoError(t, err)
	_, err = m.Plan(t.Context())
	require.ErrorContains(t, err, "evictrail.later has no primary key")
}

// TestMovesGoOn ends moves at random steps, and changes the source between them, as retention and a recorder that was
// started again would: the next move goes on, and in the end all is what the source has.
func TestMovesGoOn(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	from, to := newSource(t), newDestination(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	theirs := rowsOf(t, to, "c1", true)
	var ended, repaired int
	for i := 0; ; i++ {
		ctx, end := context.WithCancel(t.Context())
		m, steps := newMover(from, to), 1+r.IntN(20)
		if i > 12 {
			steps = 1 << 30
		}
		m.Progress = func(move.Progress) {
			if steps--; steps == 0 {
				end()
			}
		}
		did, err := m.Run(ctx, false)
		end()
		if err == nil {
			repaired = did.Repaired
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		ended++
		require.Equal(t, theirs, rowsOf(t, to, "c1", true))
		_, err = to.Append(t.Context(), "c1", storetest.Incident("c1", 1))
		require.ErrorContains(t, err, "only a part of it is here")
		require.ErrorContains(t, to.For("c1", "r1").Alive(t.Context(), time.Now(), nil), "only a part of it is here")
		switch i {
		case 3:
			recordStory(t, from, "c1", 30, march.Add(10*aDay))
		case 5:
			_, err = from.DB.Exec(t.Context(), "DELETE FROM evictrail.timeline WHERE cluster = 'c1' AND at < $1", march)
			require.NoError(t, err)
		case 7:
			did, err := retention.Retain(t.Context(), to.DB, retention.Policy{Facts: 7 * aDay}, march.Add(200*aDay))
			require.NoError(t, err)
			require.Empty(t, did.Dropped, "facts that arrive are not dropped before all is there")
		}
	}
	t.Logf("ended %d times, %d parts copied again", ended, repaired)
	require.Greater(t, ended, 7)
	require.Positive(t, repaired)
	require.Equal(t, rowsOf(t, from, "c1", false), rowsOf(t, to, "c1", false))
	require.Equal(t, theirs, rowsOf(t, to, "c1", true))
}

// TestSourceIsDroppedLast deletes the source once all was compared, in a later run that is ended several times: of
// other clusters nothing is deleted.
func TestSourceIsDroppedLast(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	from, to := newSource(t), newDestination(t)
	want, others := rowsOf(t, from, "c1", false), rowsOf(t, from, "c1", true)
	m := newMover(from, to)
	_, err := m.Run(t.Context(), false)
	require.NoError(t, err)
	recordStory(t, to, "c1", 40, march.Add(20*aDay)) // it is recorded there by now
	for i := range 4 {
		ctx, end := context.WithCancel(t.Context())
		steps := 2
		m.Progress = func(move.Progress) {
			if steps--; steps == 0 && i < 3 {
				end()
			}
		}
		did, err := m.Run(ctx, true)
		end()
		if i < 3 {
			require.ErrorIs(t, err, context.Canceled)
			_, err = from.Append(t.Context(), "c1", storetest.Incident("c1", 1))
			require.ErrorContains(t, err, "was moved to another database")
			require.NoError(t, from.For("other", "r1").Alive(t.Context(), time.Now(), nil))
			others = rowsOf(t, from, "c1", true)
			continue
		}
		require.NoError(t, err)
		require.False(t, did.Arrived.IsZero())
		require.Positive(t, did.Deleted)
	}
	for name, rows := range rowsOf(t, from, "c1", false) {
		require.Empty(t, rows, name)
	}
	require.Equal(t, others, rowsOf(t, from, "c1", true))
	require.Subset(t, rowsOf(t, to, "c1", false)["events"], want["events"])
	m.Progress = nil
	did, err := m.Run(t.Context(), true)
	require.NoError(t, err)
	require.False(t, did.Arrived.IsZero())
	back := newMover(to, from)
	_, err = back.Run(t.Context(), true)
	require.NoError(t, err, "it can move back")
	require.Zero(t, storetest.CountRows(t, from, "SELECT count(*) FROM evictrail.moves WHERE state <> 'arrived'"))
}

// TestMoveIsRefused says why, and leaves everything as it is.
func TestMoveIsRefused(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	from, to := newSource(t), newDestination(t)
	refused := func(m move.Mover, why string) {
		t.Helper()
		before, theirs := rowsOf(t, from, "", true), rowsOf(t, to, "", true)
		_, err := m.Run(t.Context(), true)
		require.ErrorContains(t, err, why)
		require.Equal(t, before, rowsOf(t, from, "", true))
		require.Equal(t, theirs, rowsOf(t, to, "", true))
	}
	m := newMover(from, to)
	refused(newMover(from, from), "the same database")
	nope := m
	nope.Cluster = "nope"
	_, err := nope.Run(t.Context(), false)
	require.ErrorIs(t, err, trail.ErrNotFound)

	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	recording := make(chan struct{})
	go func() { // a replica that goes on reporting
		defer close(recording)
		for ctx.Err() == nil {
			_ = from.For("c1", "r1").Report(ctx, trail.ReplicaReport{AliveAt: time.Now(), State: trail.RecorderRecording})
			time.Sleep(100 * time.Millisecond)
		}
	}()
	reported := func() bool { return storetest.CountRows(t, from, "SELECT count(*) FROM evictrail.recorders") > 0 }
	require.Eventually(t, reported, time.Minute, 10*time.Millisecond)
	_, err = m.Run(t.Context(), false)
	require.ErrorContains(t, err, `replica "r1" is recording cluster "c1" with the source`)
	require.ErrorContains(t, err, "kubectl scale")
	end()
	<-recording
	_, err = from.DB.Exec(t.Context(), "DELETE FROM evictrail.recorders")
	require.NoError(t, err)

	require.NoError(t, to.Alive(t.Context(), "c1", time.Now()))
	refused(m, "rows in evictrail.clusters")
	recordStory(t, to, "c1", 50, march.Add(20*aDay))
	refused(m, "the destination has a cluster \"c1\" already (rows in evictrail.events)")
	_, err = m.Abandon(t.Context())
	require.ErrorContains(t, err, "nothing to abandon")
}

// TestMoveIsAbandoned removes what was copied, after which the cluster can be moved from elsewhere, or again.
func TestMoveIsAbandoned(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	from, elsewhere, to := newSource(t), storetest.New(t), newDestination(t)
	recordStory(t, elsewhere, "c1", 60, march)
	theirs := rowsOf(t, to, "c1", true)
	ctx, end := context.WithCancel(t.Context())
	m := newMover(from, to)
	m.Progress = func(p move.Progress) {
		if p.Table == "subjects" {
			end()
		}
	}
	_, err := m.Run(ctx, false)
	require.ErrorIs(t, err, context.Canceled)
	m.Progress = nil
	other := newMover(elsewhere, to)
	_, err = other.Run(t.Context(), false)
	require.ErrorContains(t, err, "--abandon")
	n, err := m.Abandon(t.Context())
	require.NoError(t, err)
	require.Positive(t, n)
	for name, rows := range rowsOf(t, to, "c1", false) {
		require.Empty(t, rows, name)
	}
	require.Equal(t, theirs, rowsOf(t, to, "c1", true))
	_, err = other.Run(t.Context(), false)
	require.NoError(t, err)
	_, err = m.Abandon(t.Context())
	require.ErrorContains(t, err, "has ended")
}

// TestChangedSourceIsNotDropped records with the source after all had arrived: what came since would be lost.
func TestChangedSourceIsNotDropped(t *testing.T) {
	t.Parallel()
	from, to := newSource(t), storetest.New(t)
	m := newMover(from, to)
	_, err := m.Run(t.Context(), false)
	require.NoError(t, err)
	recordStory(t, from, "c1", 70, march.Add(20*aDay))
	want := rowsOf(t, from, "c1", false)
	_, err = m.Run(t.Context(), true)
	require.ErrorContains(t, err, "evictrail.events of the source has changed since")
	require.Equal(t, want, rowsOf(t, from, "c1", false))
}
