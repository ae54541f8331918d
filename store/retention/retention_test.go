package retention_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// aWeek is how long facts are kept in these tests, and dropMarch a time at which those from before march are older
// than that.
var (
	aWeek     = retention.Policy{Facts: 7 * 24 * time.Hour}
	dropMarch = storetest.March.Add(7*24*time.Hour + time.Hour)
)

// acrossMarch plays a simulated history of hours in which march begins after a share of it, and returns its facts in
// the order in which they were seen.
func acrossMarch(seed uint64, share float64) ([]trail.Fact, time.Time) {
	run := sim.New(seed)
	run = sim.NewAt(seed, storetest.March.Add(-time.Duration(float64(run.End.Sub(run.Start))*share)))
	tr := tracker.New("c1")
	var facts []trail.Fact
	for _, o := range run.Observations {
		for _, f := range tr.Observe(o) {
			f.OccurredAt, f.ObservedAt = f.OccurredAt.Truncate(time.Microsecond), f.ObservedAt.Truncate(time.Microsecond)
			facts = append(facts, f)
		}
	}
	return facts, run.End
}

// TestNothingReportedChanges drops facts at some moment of simulated histories, while others go on to come. Each row
// of each table, before the boundary and after it, is that of a database which kept all facts; so are the answers
// about each VM and node, now and at moments since the boundary; also where everything is derived again. It is the
// same where another cluster of the database is kept for ever: then no month is dropped, and facts are deleted within
// months.
func TestNothingReportedChanges(t *testing.T) {
	t.Parallel()
	for i, seed := range storetest.Sample(storetest.Some([]uint64{2, 12, 38, 4, 5, 6, 8, 10, 26}, 3)) {
		for _, alone := range []bool{true, false} {
			if !alone && i > 1 {
				continue
			}
			t.Run(fmt.Sprintf("%d alone %t", seed, alone), func(t *testing.T) { t.Parallel(); compareDropped(t, seed, alone) })
		}
	}
}

// ofOthers is a cluster beside the one that is compared.
const ofOthers = "others"

// compareDropped is TestNothingReportedChanges of one history.
func compareDropped(t *testing.T, seed uint64, alone bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 9))
	facts, end := acrossMarch(seed, 0.5+0.4*r.Float64())
	whole, dropped := storetest.New(t), storetest.New(t)
	for _, s := range []*store.Store{whole, dropped} {
		require.NoError(t, s.Judge(t.Context(), "c1", storetest.Brief))
	}
	n := 0
	for n < len(facts) && facts[n].ObservedAt.Before(storetest.March.Add(2*time.Minute)) {
		n++
	}
	n += r.IntN((len(facts) - n) / 2)
	for _, s := range []*store.Store{whole, dropped} {
		for i := 0; i < n; i += 200 {
			storetest.Record(t, s, facts[i:min(i+200, n)])
		}
	}
	if !alone {
		theirs := slices.Clone(facts[:n])
		for i := range theirs {
			theirs[i].Cluster = ofOthers
		}
		for _, s := range []*store.Store{whole, dropped} {
			_, err := s.Append(t.Context(), ofOthers, theirs)
			require.NoError(t, err)
			require.NoError(t, retention.SetPolicy(t.Context(), s.DB, ofOthers, retention.Policy{}))
		}
	}
	old := "SELECT count(*) FROM evictrail.events WHERE occurred_at < $1 AND cluster = $2"
	all := storetest.CountRows(t, dropped, old, storetest.March, "c1")
	did, err := retention.Retain(t.Context(), dropped.DB, aWeek, dropMarch)
	require.NoError(t, err)
	require.Empty(t, did.Waits)
	left := storetest.CountRows(t, dropped, old, storetest.March, "c1")
	if alone {
		require.Equal(t, storetest.March, did.Facts)
		require.Zero(t, did.Thinned)
	} else {
		require.Empty(t, did.Dropped, "the other one needs them")
		require.Equal(t, all-left, int(did.Thinned))
		require.Equal(t, all, storetest.CountRows(t, dropped, old, storetest.March, ofOthers))
	}
	noted := "SELECT count(*) FROM evictrail.clusters WHERE facts_from = $1"
	require.Equal(t, 1, storetest.CountRows(t, dropped, noted, storetest.March))
	t.Logf("%d facts before the boundary, %d stay", all, left)
	require.Less(t, left, all)
	same := func(as string) {
		t.Helper()
		require.Equal(t, storetest.DerivedRows(t, whole), storetest.DerivedRows(t, dropped), as)
	}
	same("as soon as they are dropped")
	storetest.CompareAnswersBy(t, dropped, facts[:n], facts[n-1].ObservedAt, storetest.Brief, storetest.March)
	for i := n; i < len(facts); i += 200 {
		some := facts[i:min(i+200, len(facts))]
		storetest.Record(t, whole, some)
		storetest.Record(t, dropped, some)
		same("after facts up to " + some[len(some)-1].ObservedAt.String())
	}
	for _, s := range []*store.Store{whole, dropped} {
		require.NoError(t, s.Alive(t.Context(), "c1", end))
		_, _, err := s.DeriveDue(t.Context(), "c1", end)
		require.NoError(t, err)
	}
	storetest.CompareAnswersBy(t, dropped, facts, end, storetest.Brief, storetest.March)
	for _, at := range []time.Time{storetest.March.Add(time.Second), storetest.March.Add(end.Sub(storetest.March) / 3)} {
		storetest.CompareAnswersBy(t, dropped, facts, at, storetest.Brief, storetest.March)
	}
	_, err = dropped.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	same("derived again")
}

// openCopy returns a store on a copy of a database that nobody is connected to; its statements may fail. The copy is
// to be dropped.
func openCopy(t *testing.T, from string, fail func(sql string) bool) (s *store.Store, drop func()) {
	t.Helper()
	u, err := url.Parse(from)
	require.NoError(t, err)
	name := strings.TrimPrefix(u.Path, "/")
	as := fmt.Sprintf("%s_copy_%d", name, copies.Add(1))
	admin, err := store.Open(t.Context(), storetest.NewURL(t), "")
	require.NoError(t, err)
	_, err = admin.DB.Exec(t.Context(), fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", as, name))
	require.NoError(t, err)
	u.Path = "/" + as
	s, err = storetest.OpenFailing(t.Context(), u.String(), fail)
	require.NoError(t, err)
	return s, func() {
		s.Close()
		_, err := admin.DB.Exec(context.Background(), "DROP DATABASE "+as+" WITH (FORCE)")
		require.NoError(t, err)
		admin.Close()
	}
}

var copies atomic.Int64

// loadFacts reads where all facts are, but for how their partition is called.
func loadFacts(t *testing.T, s *store.Store) []string {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), "SELECT to_jsonb(e)::text FROM evictrail.events AS e ORDER BY 1")
	require.NoError(t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return out
}

// TestDroppingIsGoneOnWith lets each statement of Retain fail in turn, as where evictrail is killed there. The next
// time does the rest: the same facts are there, each once, the same rows, and nothing is left over.
func TestDroppingIsGoneOnWith(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprintf("alone %t", alone), func(t *testing.T) { t.Parallel(); goOnWithDropping(t, alone) })
	}
}

// goOnWithDropping is TestDroppingIsGoneOnWith for a cluster that is alone, or beside one that is kept for ever.
func goOnWithDropping(t *testing.T, alone bool) {
	t.Helper()
	all, end := acrossMarch(5, 0.7)
	from := storetest.NewURL(t)
	s, err := store.Open(t.Context(), from, "")
	require.NoError(t, err)
	require.NoError(t, s.Judge(t.Context(), "c1", storetest.Brief))
	storetest.Record(t, s, all)
	require.NoError(t, s.Alive(t.Context(), "c1", end))
	if !alone {
		require.NoError(t, s.Alive(t.Context(), ofOthers, end))
		require.NoError(t, retention.SetPolicy(t.Context(), s.DB, ofOthers, retention.Policy{}))
	}
	rows := storetest.DerivedRows(t, s)
	s.Close()
	whole, drop := openCopy(t, from, func(string) bool { return false })
	_, err = retention.Retain(t.Context(), whole.DB, aWeek, dropMarch)
	require.NoError(t, err)
	want := loadFacts(t, whole)
	drop()
	require.Less(t, len(want), len(all))
	failed := map[string]bool{}
	for k := 1; ; k += storetest.Count(3, 1) {
		n := 0
		s, drop := openCopy(t, from, func(sql string) bool {
			n++
			if n == k {
				failed[strings.Join(strings.Fields(sql)[:min(4, len(strings.Fields(sql)))], " ")] = true
			}
			return n == k
		})
		_, err := retention.Retain(t.Context(), s.DB, aWeek, dropMarch)
		if n < k {
			require.NoError(t, err)
			drop()
			break
		}
		require.Error(t, err, "at statement %d", k)
		require.Equal(t, rows, storetest.DerivedRows(t, s), "cut off at statement %d", k)
		_, err = retention.Retain(t.Context(), s.DB, aWeek, dropMarch)
		require.NoError(t, err)
		require.Equal(t, rows, storetest.DerivedRows(t, s), "gone on with after statement %d", k)
		require.Equal(t, want, loadFacts(t, s), "gone on with after statement %d", k)
		require.Zero(t, storetest.CountRows(t, s, "SELECT count(*) FROM pg_class WHERE relname = 'events_next'"))
		require.Zero(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.retention WHERE dropping IS NOT NULL OR complete"))
		require.Zero(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.clusters WHERE thinned_to IS NOT NULL"))
		drop()
	}
	t.Logf("%d sorts of statements failed: %v", len(failed), slices.Sorted(maps.Keys(failed)))
	require.Greater(t, len(failed), storetest.Count(6, 12))
}

// observeCordons has a node cordoned and uncordoned again at some times, one fact each.
func observeCordons(tr *tracker.Tracker, node string, rv *int, times ...time.Time) []trail.Fact {
	var out []trail.Fact
	for _, at := range times {
		*rv++
		out = append(out, tr.Observe(tracker.NodeObservation{
			Meta: tracker.Meta{UID: "uid-" + node, Name: node, ResourceVersion: strconv.Itoa(*rv)}, Seen: tracker.Seen{At: at}, Unschedulable: *rv%2 == 1,
		})...)
	}
	return out
}

// TestMonthsAreDroppedOneAfterTheOther lives through a year, a day at a time on clocks of places where the time of
// day is moved, with facts around each boundary. Those of the last ninety days are always there, none lies in the
// default partition, and of what is older there is how it stood.
func TestMonthsAreDroppedOneAfterTheOther(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	s := storetest.New(t)
	tr, rv, seen := tracker.New("c1"), 0, []time.Time(nil)
	zone, err := time.LoadLocation("Pacific/Auckland")
	require.NoError(t, err)
	begin, dropped := time.Date(2025, 7, 1, 0, 0, 0, 0, time.UTC), []string(nil)
	for day := range 366 {
		at := begin.AddDate(0, 0, day)
		if at.Day() == 1 {
			times := []time.Time{at.Add(-time.Microsecond), at, at.Add(time.Hour), at.Add(2 * time.Hour)}
			storetest.Record(t, s, observeCordons(tr, "n1", &rv, times...))
			seen = append(seen, times...)
		}
		did, err := retention.Retain(t.Context(), s.DB, retention.Policy{Facts: 90 * 24 * time.Hour, Rows: 200 * 24 * time.Hour}, at.In(zone))
		require.NoError(t, err)
		require.Empty(t, did.Waits)
		for _, p := range did.Dropped {
			dropped = append(dropped, p.Name)
			require.False(t, p.To.After(at.AddDate(0, 0, -90)), "%s on %s", p.Name, at)
		}
		young := 0
		for _, x := range seen {
			if !x.Before(at.AddDate(0, 0, -90)) {
				young++
			}
		}
		require.Equal(t, young, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events WHERE occurred_at >= $1", at.AddDate(0, 0, -90)), "on %s", at)
	}
	require.Equal(t, []string{"events_2025_06", "events_2025_07", "events_2025_08", "events_2025_09", "events_2025_10", "events_2025_11", "events_2025_12", "events_2026_01", "events_2026_02", "events_2026_03"}, dropped)
	require.Zero(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events_default"))
	require.LessOrEqual(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events_kept"), 3, "the first one, and the last ones")
	require.Equal(t, 0, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.timeline WHERE at < $1", begin.AddDate(0, 0, 365-200)))
	require.Positive(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.timeline WHERE at < $1", begin.AddDate(0, 0, 365-150)), "rows outlive their facts")
}

// TestLateFactsAreKept stores facts of a time whose facts were dropped: they lie with those that were kept, are
// reported as late, change no row about that time, and count for what is still so.
func TestLateFactsAreKept(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	all, _ := acrossMarch(4, 0.6)
	s := storetest.New(t)
	require.NoError(t, s.Judge(t.Context(), "c1", storetest.Brief))
	storetest.Record(t, s, all)
	_, err := retention.Retain(t.Context(), s.DB, aWeek, dropMarch)
	require.NoError(t, err)
	before := storetest.DerivedRows(t, s)
	tr, rv := tracker.New("c1"), 0
	late := observeCordons(tr, "another", &rv, storetest.March.AddDate(0, -2, 0), storetest.March.AddDate(0, -1, 0), storetest.March.AddDate(0, -1, 1))
	news, err := s.Append(t.Context(), "c1", late)
	require.NoError(t, err)
	require.Len(t, news.Facts, 3)
	require.Equal(t, storetest.March, news.Settled)
	require.Equal(t, before, storetest.DerivedRows(t, s))
	require.Zero(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events_default"))
	require.Equal(t, 3, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events_kept WHERE node = 'another'"))

	lost, err := s.Append(t.Context(), "c1", all)
	require.NoError(t, err, "all of it again, as where a log is read again")
	require.Equal(t, storetest.March, lost.Settled)
	require.Equal(t, before, storetest.DerivedRows(t, s), "nothing is recorded twice")
	young, err := s.Append(t.Context(), "c1", observeCordons(tr, "another", &rv, storetest.March.AddDate(0, 0, 2)))
	require.NoError(t, err)
	require.Zero(t, young.Settled)
	_, err = s.Ask(t.Context(), trail.Question{Cluster: "c1", Of: trail.Subject{Kind: trail.SubjectNode, Name: "another"}, At: storetest.March.Add(-time.Hour)})
	require.ErrorIs(t, err, trail.ErrNotFound)
	require.ErrorContains(t, err, "facts from before 2026-03-01T00:00:00Z were dropped")
}

// TestFactsThatComeDuringADropAreKept stores a fact of the months that are being dropped when all that is to be kept
// of them was put aside.
func TestFactsThatComeDuringADropAreKept(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	from := storetest.NewURL(t)
	s, err := store.Open(t.Context(), from, "")
	require.NoError(t, err)
	all, _ := acrossMarch(5, 0.7)
	storetest.Record(t, s, all)
	tr, rv, came := tracker.New("c1"), 0, false
	dropping, err := storetest.OpenFailing(t.Context(), from, func(sql string) bool {
		if strings.Contains(sql, "finish_drop") && !came {
			came = true
			storetest.Record(t, s, observeCordons(tr, "another", &rv, storetest.March.AddDate(0, 0, -3)))
		}
		return false
	})
	require.NoError(t, err)
	t.Cleanup(dropping.Close)
	t.Cleanup(s.Close)
	did, err := retention.Retain(t.Context(), dropping.DB, aWeek, dropMarch)
	require.NoError(t, err)
	require.NotEmpty(t, did.Dropped)
	require.True(t, came)
	require.Equal(t, 1, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events WHERE node = 'another'"))
}

// TestNobodyWaitsForDropping holds the history as a long question does: dropping yields, says so, and is done the
// next time. Those who write wait no longer than for a lock that is given up.
func TestNobodyWaitsForDropping(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	s := storetest.New(t)
	all, _ := acrossMarch(5, 0.7)
	storetest.Record(t, s, all)
	tx, err := s.DB.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM evictrail.events LIMIT 1")
	require.NoError(t, err)
	did, err := retention.Retain(t.Context(), s.DB, aWeek, dropMarch)
	require.NoError(t, err)
	require.Contains(t, did.Waits, "in use")
	require.Empty(t, did.Dropped)
	storetest.Record(t, s, all[:10])
	require.NoError(t, tx.Rollback(t.Context()))
	did, err = retention.Retain(t.Context(), s.DB, aWeek, dropMarch)
	require.NoError(t, err)
	require.Empty(t, did.Waits)
	require.NotEmpty(t, did.Dropped)
}

// TestWhatIsToBeDerivedIsNotDropped imports facts without deriving them.
func TestWhatIsToBeDerivedIsNotDropped(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	s := storetest.New(t)
	all, _ := acrossMarch(5, 0.7)
	_, err := s.Import(t.Context(), "c1", all)
	require.NoError(t, err)
	did, err := retention.Retain(t.Context(), s.DB, aWeek, dropMarch)
	require.NoError(t, err)
	require.Contains(t, did.Waits, "still to be derived")
	require.Len(t, loadFacts(t, s), len(all))
	_, err = s.DeriveStale(t.Context(), "c1", nil)
	require.NoError(t, err)
	did, err = retention.Retain(t.Context(), s.DB, aWeek, dropMarch)
	require.NoError(t, err)
	require.NotEmpty(t, did.Dropped)
}

// TestNamesAreErased records what people and programs asked, with names in all that they can be in, drops some of it,
// and erases the names of people: they are nowhere any more, those of service accounts are, and who asked is still
// shown by class.
func TestNamesAreErased(t *testing.T) {
	t.Parallel()
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprintf("settled %t", settled), func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			for seed := range uint64(12) {
				story := storetest.GenerateSourceFacts(seed)
				for _, batch := range [][]trail.Fact{story.Watched, story.Reviewed, story.Audited} {
					for i := range batch {
						batch[i].OccurredAt, batch[i].ObservedAt = batch[i].OccurredAt.AddDate(0, -9, 0), batch[i].ObservedAt.AddDate(0, -9, 0)
					}
					_, err := s.Append(t.Context(), fmt.Sprintf("c%d", seed), batch)
					require.NoError(t, err)
				}
			}
			classes := "SELECT count(*) FROM evictrail.eviction_requests WHERE requester_class = ANY($1)"
			people := []string{"kubectl", "other"}
			asked := storetest.CountRows(t, s, classes, people)
			require.Positive(t, asked)
			for _, name := range []string{"alice", "carol", "203.0.113.7"} {
				require.Positive(t, countRowsNaming(t, s, name), name)
			}
			at := storetest.Start.AddDate(0, -9, 0).Add(45 * 24 * time.Hour)
			if settled {
				did, err := retention.Retain(t.Context(), s.DB, aWeek, at)
				require.NoError(t, err)
				require.NotEmpty(t, did.Dropped)
			}
			did, err := retention.Retain(t.Context(), s.DB, retention.Policy{Requesters: 30 * 24 * time.Hour}, at)
			require.NoError(t, err)
			require.Positive(t, did.Requesters)
			for seed := range 12 {
				_, err = s.DeriveStale(t.Context(), fmt.Sprintf("c%d", seed), nil)
				require.NoError(t, err)
			}
			require.Zero(t, countRowsNaming(t, s, "alice"))
			require.Zero(t, countRowsNaming(t, s, "bob"))
			require.Zero(t, countRowsNaming(t, s, "carol"), "who acted as them")
			require.Zero(t, countRowsNaming(t, s, "203.0.113.7"), "from where")
			require.Positive(t, countRowsNaming(t, s, "descheduler-sa"))
			require.Equal(t, asked, storetest.CountRows(t, s, classes, people))
			did, err = retention.Retain(t.Context(), s.DB, retention.Policy{Requesters: 30 * 24 * time.Hour}, at)
			require.NoError(t, err)
			require.Zero(t, did.Requesters, "once is enough")
		})
	}
}

// countRowsNaming counts the rows of all tables in which a name is.
func countRowsNaming(t *testing.T, s *store.Store, name string) int {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), "SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = 'evictrail' AND c.relkind = 'r'")
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(all), 15)
	n := 0
	for _, table := range all {
		n += storetest.CountRows(t, s, "SELECT count(*) FROM "+table+" AS t WHERE to_jsonb(t)::text ~ $1", `\y`+name+`\y`)
	}
	return n
}

// TestWhoDropsNeedsARole drops and erases as the writer with and without the role for it.
func TestWhoDropsNeedsARole(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	from := storetest.NewURL(t)
	owner, err := store.Open(t.Context(), from, "")
	require.NoError(t, err)
	t.Cleanup(owner.Close)
	storetest.MakeRoles(t, owner)
	all, _ := acrossMarch(5, 0.7)
	storetest.Record(t, owner, all)
	role := fmt.Sprintf("evictrail_test_runs_%d", time.Now().UnixNano())
	sql := func(text string) {
		_, err := owner.DB.Exec(context.Background(), strings.ReplaceAll(text, "ROLE_", role))
		require.NoError(t, err)
	}
	sql("CREATE ROLE ROLE_; GRANT evictrail_writer TO ROLE_")
	t.Cleanup(func() { sql("DROP OWNED BY ROLE_; DROP ROLE ROLE_") })
	writer, err := store.Open(t.Context(), from+"&options=-c%20role%3D"+role, "")
	require.NoError(t, err)
	t.Cleanup(writer.Close)
	_, err = retention.Retain(t.Context(), writer.DB, aWeek, dropMarch)
	require.ErrorContains(t, err, "evictrail_retention")
	sql("GRANT evictrail_retention TO ROLE_")
	did, err := retention.Retain(t.Context(), writer.DB, retention.Policy{Facts: aWeek.Facts, Rows: 400 * 24 * time.Hour, Requesters: 5 * 24 * time.Hour}, dropMarch)
	require.NoError(t, err)
	if did.Waits != "" { // names were erased: what they were in is to be derived first
		_, err = writer.DeriveStale(t.Context(), "c1", nil)
		require.NoError(t, err)
		did, err = retention.Retain(t.Context(), writer.DB, aWeek, dropMarch)
		require.NoError(t, err)
	}
	require.NotEmpty(t, did.Dropped)
	_, err = writer.DB.Exec(t.Context(), "SELECT evictrail.begin_drop(date_trunc('month', now() + interval '31 days', 'UTC'), current_user)")
	require.ErrorContains(t, err, "a week ago or longer")
	_, err = writer.DB.Exec(t.Context(), "SELECT evictrail.erase_requesters(now(), 1)")
	require.ErrorContains(t, err, "a day ago or longer")
}

// TestRowsOfWhatGoesOnStay drops derived rows by their age, but for those that led to what goes on.
func TestRowsOfWhatGoesOnStay(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	all, end := acrossMarch(8, 0.7)
	s := storetest.New(t)
	require.NoError(t, s.Judge(t.Context(), "c1", storetest.Brief))
	storetest.Record(t, s, all)
	require.NoError(t, s.Alive(t.Context(), "c1", end))
	_, _, err := s.DeriveDue(t.Context(), "c1", end)
	require.NoError(t, err)
	_, err = retention.Retain(t.Context(), s.DB, aWeek, dropMarch)
	require.NoError(t, err)
	open := storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.evacuations WHERE ended_at IS NULL AND marked_at < $1", storetest.March)
	require.Positive(t, open, "an evacuation goes on")
	attempts := "SELECT count(*) FROM evictrail.migrations AS m JOIN evictrail.evacuations AS e USING (evacuation_id) WHERE e.ended_at IS NULL"
	tried := storetest.CountRows(t, s, attempts)
	over := storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.evacuations WHERE ended_at < $1", storetest.March)
	did, err := retention.Retain(t.Context(), s.DB, retention.Policy{Facts: aWeek.Facts, Rows: aWeek.Facts}, dropMarch)
	require.NoError(t, err)
	t.Logf("dropped: %v", did.Rows)
	require.Positive(t, did.Rows["evacuations"])
	require.Less(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.evacuations WHERE ended_at < $1", storetest.March), over)
	require.Equal(t, tried, storetest.CountRows(t, s, attempts))
	compareLoops := "SELECT count(*) FROM evictrail.loops WHERE closed_at IS NULL"
	loops := storetest.CountRows(t, s, compareLoops)
	left := storetest.DerivedRows(t, s)
	_, err = s.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, left, storetest.DerivedRows(t, s), "what was dropped does not come back, and what goes on is shown as before")
	require.Positive(t, loops)
	again, err := retention.Retain(t.Context(), s.DB, retention.Policy{Facts: aWeek.Facts, Rows: aWeek.Facts}, dropMarch)
	require.NoError(t, err)
	require.Zero(t, again.RowCount())
}

func TestRetentionIsValidated(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, r := range map[string]retention.Policy{
		"must be 7d or longer":                   {Facts: 6 * day},
		"as long as those are kept for ever":     {Rows: 10 * day},
		"must be kept as long or longer":         {Facts: 30 * day, Rows: 29 * day},
		"as audit logs come late":                {Facts: 30 * day, Requesters: time.Hour},
		"and must be kept as long or shorter":    {Facts: 30 * day, Requesters: 31 * day},
		"must not be negative; 0 keeps for ever": {Facts: -day},
	} {
		require.ErrorContains(t, r.Validate(), text)
	}
	for _, r := range []retention.Policy{{}, {Facts: 7 * day}, {Facts: 90 * day, Rows: 400 * day, Requesters: 30 * day}, {Requesters: 30 * day}} {
		require.NoError(t, r.Validate())
	}
}

// TestDroppingWhileOthersWriteAndAsk drops facts while others are stored and questions are asked without a pause:
// what is shown in the end is what is shown where all facts are there, and no question fails.
func TestDroppingWhileOthersWriteAndAsk(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	all, end := acrossMarch(4, 0.55)
	whole, dropped := storetest.New(t), storetest.New(t)
	n, asked := 0, 0
	for n < len(all) && all[n].ObservedAt.Before(storetest.March.Add(time.Minute)) {
		n++
	}
	for _, s := range []*store.Store{whole, dropped} {
		require.NoError(t, s.Judge(t.Context(), "c1", storetest.Brief))
		storetest.Record(t, s, all[:n])
	}
	storetest.Record(t, whole, all[n:])
	done := make(chan bool)
	g, ctx := errgroup.WithContext(t.Context())
	g.Go(func() error {
		defer close(done)
		for some := range slices.Chunk(all[n:], 25) {
			if _, err := dropped.Append(ctx, "c1", some); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		for {
			for _, of := range []trail.Subject{{Kind: trail.SubjectNode, Name: "worker-1"}, {Kind: trail.SubjectNode, Name: "worker-2"}} {
				if _, err := dropped.History(ctx, "c1", of, storetest.March.Add(time.Second)); err != nil {
					return err
				}
				asked++
			}
			select {
			case <-done:
				return nil
			default:
			}
		}
	})
	var did retention.Retained
	require.Eventually(t, func() bool {
		var err error
		did, err = retention.Retain(t.Context(), dropped.DB, aWeek, dropMarch)
		return err == nil && did.Waits == ""
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, g.Wait())
	require.NotEmpty(t, did.Dropped)
	require.Greater(t, asked, 2)
	for _, s := range []*store.Store{whole, dropped} {
		require.NoError(t, s.Alive(t.Context(), "c1", end))
		_, _, err := s.DeriveDue(t.Context(), "c1", end)
		require.NoError(t, err)
	}
	require.Equal(t, storetest.DerivedRows(t, whole), storetest.DerivedRows(t, dropped))
}

// TestWhoCordonedIsKept has a VM marked on a cordoned node, long before facts are dropped, and not moved since: who
// cordoned the node is still known when all is derived again.
func TestWhoCordonedIsKept(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	tr, at, rv := tracker.New("c1"), storetest.March.Add(-10*time.Hour), 0
	meta := func(uid, name string) tracker.Meta {
		rv++
		return tracker.Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: strconv.Itoa(rv), CreatedAt: at}
	}
	seen := func(later time.Duration) tracker.Seen { return tracker.Seen{At: at.Add(later)} }
	vm := tracker.VMIObservation{Meta: meta("u", "db"), Seen: seen(0), Node: "n1", Phase: "Running", Strategy: "LiveMigrate"}
	facts := tr.Observe(vm)
	cordon := tracker.NodeObservation{Meta: tracker.Meta{UID: "n", Name: "n1", ResourceVersion: "50"}, Seen: seen(time.Second)}
	facts = append(facts, tr.Observe(cordon)...)
	cordon.ResourceVersion, cordon.Seen, cordon.Unschedulable = "51", seen(time.Minute), true
	facts = append(facts, tr.Observe(cordon)...)
	facts = append(facts, tr.Observe(tracker.RequestObservation{
		Seen: seen(time.Minute), Source: trail.SourceAudit, ID: "a1", Stage: "ResponseComplete", Action: trail.ActionChangeNode, Name: "n1", AskedAt: at.Add(time.Minute),
		Detail: trail.RequestDetail{User: "alice", Agent: "kubectl/v1.34", AnsweredAt: at.Add(time.Minute), Code: 200},
	})...)
	vm.ResourceVersion, vm.Seen, vm.Mark = "60", seen(2*time.Minute), "n1"
	storetest.Record(t, s, append(facts, tr.Observe(vm)...))
	storetest.Record(t, s, observeCordons(tr, "n2", new(int), storetest.March.Add(time.Hour)))
	before := storetest.DerivedRows(t, s)
	require.Contains(t, before["evacuations"][0], "cordoned by alice")
	did, err := retention.Retain(t.Context(), s.DB, aWeek, dropMarch)
	require.NoError(t, err)
	require.NotEmpty(t, did.Dropped)
	_, err = s.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, before, storetest.DerivedRows(t, s))
}

// TestAcknowledgementsAreDropped: those that ended before the period are dropped, also where no facts were, and the
// names in those that ended are erased; what holds stays as it is.
func TestAcknowledgementsAreDropped(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	now := time.Now()
	require.NoError(t, s.Alive(t.Context(), "c1", now))
	for author, hours := range map[string][2]int{"old": {-24 * 20, -24 * 19}, "ended": {-24 * 20, -24 * 3}, "holds": {-24 * 20, 24}} {
		_, err := s.DB.Exec(t.Context(), `
INSERT INTO evictrail.acknowledgements (cluster, subject, node, author, note, created_at, expires_at)
VALUES ('c1', 'node:n1', 'n1', $1, 'ask ' || $1, $2, $3)`, author, now.Add(time.Duration(hours[0])*time.Hour), now.Add(time.Duration(hours[1])*time.Hour))
		require.NoError(t, err)
	}
	const day = 24 * time.Hour
	did, err := retention.Retain(t.Context(), s.DB, retention.Policy{Facts: 7 * day, Rows: 10 * day, Requesters: 2 * day}, now)
	require.NoError(t, err)
	require.Equal(t, 1, did.Rows["acknowledgements"])
	require.Equal(t, 2, did.Requesters, "old, before it was dropped, and ended")
	rows, err := s.DB.Query(t.Context(), "SELECT author || ': ' || note FROM evictrail_v1.acknowledgements ORDER BY ended_at")
	require.NoError(t, err)
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"(erased): (erased)", "holds: ask holds"}, left)
}

// TestMonthsStayUntilNoClusterNeedsThem has one cluster kept for a week and one for longer, no matter who drops and
// whatever that one's own policy is. The month goes once the other one is kept for a week as well.
func TestMonthsStayUntilNoClusterNeedsThem(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	s := storetest.New(t)
	facts, _ := acrossMarch(2, 0.7)
	for _, cluster := range []string{"c1", ofOthers} {
		of := slices.Clone(facts)
		for i := range of {
			of[i].Cluster = cluster
		}
		_, err := s.Append(t.Context(), cluster, of)
		require.NoError(t, err)
		require.NoError(t, retention.SetPolicy(t.Context(), s.DB, cluster, aWeek))
	}
	longer := retention.Policy{Facts: 60 * 24 * time.Hour}
	require.NoError(t, retention.SetPolicy(t.Context(), s.DB, ofOthers, longer))
	count := "SELECT count(*) FROM evictrail.events WHERE cluster = $1"
	whole := storetest.CountRows(t, s, count, ofOthers)
	for range 2 {
		did, err := retention.Retain(t.Context(), s.DB, aWeek, dropMarch)
		require.NoError(t, err)
		require.Empty(t, did.Waits)
		require.Empty(t, did.Dropped)
		require.Equal(t, whole, storetest.CountRows(t, s, count, ofOthers))
	}
	thinned := storetest.CountRows(t, s, count, "c1")
	require.Less(t, thinned, whole)
	oldest := "SELECT evictrail.oldest_schema()"
	require.Equal(t, 46, storetest.CountRows(t, s, oldest), "older programs do not know that less is there of one")

	require.NoError(t, retention.SetPolicy(t.Context(), s.DB, ofOthers, aWeek))
	did, err := retention.Retain(t.Context(), s.DB, longer, dropMarch)
	require.NoError(t, err)
	require.NotEmpty(t, did.Dropped)
	require.Zero(t, did.Thinned)
	require.Equal(t, thinned, storetest.CountRows(t, s, count, "c1"), "what was kept stays")
	require.Equal(t, thinned, storetest.CountRows(t, s, count, ofOthers))
	require.Equal(t, 38, storetest.CountRows(t, s, oldest))
}
