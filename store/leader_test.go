package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestFollowersLeaveDerivingToTheLeader has a follower see everything first.
func TestFollowersLeaveDerivingToTheLeader(t *testing.T) {
	t.Parallel()
	facts := storetest.Incident("c1", 3)
	s := storetest.New(t)
	leader, follower := s.For("c1", "r1"), s.For("c1", "r2")
	require.NoError(t, leader.Lead(t.Context(), "this", trail.DefaultThresholds()))
	news, err := follower.Append(t.Context(), facts)
	require.NoError(t, err)
	require.Len(t, news.Facts, len(facts))
	require.Empty(t, news.Migrations)
	require.Zero(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.migrations"))
	news, err = leader.Append(t.Context(), facts)
	require.NoError(t, err)
	require.Empty(t, news.Facts, "they are stored")
	n, news, err := leader.CatchUp(t.Context(), nil)
	require.NoError(t, err)
	require.Positive(t, n)
	require.NotEmpty(t, news.Migrations)
	require.Equal(t, storetest.DumpOf(t, "c1", facts), storetest.Dump(t, s))
	_, _, err = follower.CatchUp(t.Context(), nil)
	require.ErrorIs(t, err, pg.ErrDeposed)
}

// TestWindowsStayWithinTheirBound derives with room for little and for all: rows are the same, and what is held is what fits.
func TestWindowsStayWithinTheirBound(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	facts := storetest.Incident("c1", 20)
	want := storetest.DumpOf(t, "c1", facts)
	held := map[int]int64{}
	for _, bound := range []int{10_000, 0} {
		s := storetest.New(t)
		s.WindowMemory = bound
		leader := s.For("c1", "r1")
		require.Zero(t, leader.WindowMemory())
		require.NoError(t, leader.Lead(t.Context(), "this", trail.DefaultThresholds()))
		_, err := leader.Append(t.Context(), facts)
		require.NoError(t, err)
		_, _, err = leader.CatchUp(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, want, storetest.Dump(t, s))
		held[bound] = leader.WindowMemory()
	}
	require.LessOrEqual(t, held[10_000], int64(10_000))
	require.Greater(t, held[0], int64(10_000))
}

// TestADeposedLeaderDerivesNothing begins the term of another replica: what the first would derive is refused, and what it sees is stored.
func TestADeposedLeaderDerivesNothing(t *testing.T) {
	t.Parallel()
	facts := storetest.Incident("c1", 2)
	s := storetest.New(t)
	first, second := s.For("c1", "r1"), s.For("c1", "r2")
	require.NoError(t, first.Lead(t.Context(), "this", trail.DefaultThresholds()))
	require.NoError(t, second.Lead(t.Context(), "this", trail.DefaultThresholds()))
	require.True(t, first.Leads(), "it does not know yet")
	news, err := first.Append(t.Context(), facts)
	require.NoError(t, err)
	require.Len(t, news.Facts, len(facts))
	_, _, err = first.CatchUp(t.Context(), nil)
	require.ErrorIs(t, err, pg.ErrDeposed)
	require.False(t, first.Leads())
	require.Zero(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.migrations"))
	_, _, err = second.CatchUp(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, storetest.DumpOf(t, "c1", facts), storetest.Dump(t, s))

	require.NoError(t, first.Lead(t.Context(), "this", trail.DefaultThresholds()))
	_, _, err = second.CatchUp(t.Context(), nil)
	require.NoError(t, err, "there is nothing to derive, and nothing to refuse")
	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.subjects SET dirty_since = occurred, version = version + 1 FROM (SELECT min(occurred_at) AS occurred FROM evictrail.events) AS e")
	require.NoError(t, err)
	_, _, err = second.CatchUp(t.Context(), nil)
	require.ErrorIs(t, err, pg.ErrDeposed)
	require.ErrorContains(t, err, "r1, since term 4; ours was 2")
	require.False(t, second.Leads())
}

// TestReplicasRecordOneHistory has three replicas see the same cluster while the lead changes hands again and again, each time before the
// one who had it knows: each fact is stored once, and the rows are those of one replica alone. A fourth that lists the cluster afterwards, when its
// objects have other versions, adds nothing.
func TestReplicasRecordOneHistory(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	facts := storetest.Incident("c1", 8)
	s := storetest.New(t)
	replicas := []*store.ClusterStore{s.For("c1", "r0"), s.For("c1", "r1"), s.For("c1", "r2")}
	ctx := context.WithoutCancel(t.Context())
	var recording, leading sync.WaitGroup
	for i, r := range replicas {
		recording.Go(func() {
			dice, mine := rand.New(rand.NewPCG(uint64(i), 7)), slices.Clone(facts)
			for len(mine) > 0 {
				n := min(len(mine), 1+dice.IntN(6))
				if _, err := r.Append(ctx, mine[:n]); err != nil {
					t.Error(err)
					return
				}
				mine = mine[n:]
			}
		})
	}
	done := make(chan struct{})
	terms := 0
	leading.Go(func() {
		for dice := rand.New(rand.NewPCG(3, 7)); ; terms++ {
			r := replicas[dice.IntN(len(replicas))]
			if err := r.Lead(ctx, "this", trail.DefaultThresholds()); err != nil {
				t.Error(err)
				return
			}
			if _, _, err := r.CatchUp(ctx, nil); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	recording.Wait()
	close(done)
	leading.Wait()
	t.Logf("%d terms", terms)
	require.NoError(t, replicas[0].Lead(ctx, "this", trail.DefaultThresholds()))
	_, _, err := replicas[0].CatchUp(ctx, nil)
	require.NoError(t, err)
	want := storetest.DumpOf(t, "c1", facts)
	require.Equal(t, want, storetest.Dump(t, s))

	tr := tracker.New("c1")
	var listed []trail.Fact
	for i := range 8 {
		name := fmt.Sprintf("db-%d", i)
		listed = append(listed, tr.Observe(tracker.VMIObservation{
			Meta: tracker.Meta{UID: "uid-" + name, Namespace: "shop", Name: name, ResourceVersion: strconv.Itoa(9000 + i), CreatedAt: start},
			Seen: tracker.Seen{At: start.Add(time.Hour), Listed: true}, Node: "n2", Phase: "Running", Strategy: "LiveMigrate",
		})...)
	}
	require.GreaterOrEqual(t, len(listed), 8, "where each guest runs")
	_, err = s.For("c1", "r3").Append(ctx, listed)
	require.NoError(t, err)
	_, _, err = replicas[0].CatchUp(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, want, storetest.Dump(t, s))
}

// TestAGapOfOneReplicaIsNoneWhereAnotherWatched records gaps of one replica while another watches, or does not.
func TestAGapOfOneReplicaIsNoneWhereAnotherWatched(t *testing.T) {
	t.Parallel()
	const pods = "pods"
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for name, c := range map[string]struct {
		noted    time.Time // by the other, of pods since the beginning of the minute
		from, to time.Time
		gaps     int
	}{
		"it watched all the time":              {at(100), at(70), at(105), 0},
		"it noted that half a minute ago":      {at(75), at(70), at(105), 0},
		"it has said nothing since":            {at(74), at(70), at(105), 1},
		"it began later than the gap":          {at(100), at(59), at(105), 1},
		"it began when the gap did":            {at(100), at(60), at(105), 0},
		"nobody else watches":                  {time.Time{}, at(70), at(105), 1},
		"it watched, and the gap was long ago": {at(400), at(70), at(105), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			we, other := s.For("c1", "r1"), s.For("c1", "r2")
			for _, r := range []*store.ClusterStore{we, other} {
				require.NoError(t, r.Lead(t.Context(), "this", trail.DefaultThresholds()))
			}
			if !c.noted.IsZero() {
				err := other.Alive(t.Context(), c.noted, []trail.Watching{{Source: pods, Since: at(60)}, {Source: "nodes", Since: at(0)}})
				require.NoError(t, err)
			}
			err := we.Alive(t.Context(), at(100), []trail.Watching{{Source: pods, Since: at(0)}})
			require.NoError(t, err, "what we watch ourselves covers nothing")
			facts := tracker.New("c1").Observe(tracker.GapObservation{
				Seen: tracker.Seen{At: c.to}, GapReport: trail.GapReport{Source: pods, Key: "100", OpenedAt: c.from, ClosedAt: c.to, Cause: trail.ReasonRelisted},
			})
			require.Len(t, facts, 2)
			_, err = we.Append(t.Context(), facts)
			require.NoError(t, err)
			_, _, err = other.CatchUp(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, storetest.Dump(t, s)["gaps"], c.gaps)
		})
	}
}

func TestLastWatched(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	r := s.For("c1", "r1")
	last, err := r.LastWatched(t.Context())
	require.NoError(t, err)
	require.Empty(t, last)
	for i := range 3 {
		at := start.Add(time.Duration(i) * time.Minute)
		err = r.Alive(t.Context(), at, []trail.Watching{{Source: "pods", Since: start}, {Source: fmt.Sprint("nodes", i), Since: at}})
		require.NoError(t, err)
		last, err = s.For("c1", "r1").LastWatched(t.Context())
		require.NoError(t, err)
		want := map[string]time.Time{"pods": at, "nodes0": start}
		for j := range i + 1 {
			want[fmt.Sprint("nodes", j)] = start.Add(time.Duration(j) * time.Minute)
		}
		require.Equal(t, want, last, "what is not seen any more was seen up to then")
	}
	last, err = s.For("c1", "r2").LastWatched(t.Context())
	require.NoError(t, err)
	require.Empty(t, last)
	err = s.For("c1", "r2").Alive(t.Context(), start.Add(25*time.Hour), []trail.Watching{{Source: "pods", Since: start}})
	require.NoError(t, err)
	last, err = r.LastWatched(t.Context())
	require.NoError(t, err)
	require.Empty(t, last, "a replica that is away for long is forgotten")
	for _, hours := range []time.Duration{37, 49, 60} {
		err = s.For("c1", "r2").Alive(t.Context(), start.Add(hours*time.Hour), []trail.Watching{{Source: "nodes", Since: start}})
		require.NoError(t, err)
	}
	last, err = s.For("c1", "r2").LastWatched(t.Context())
	require.NoError(t, err)
	require.Len(t, last, 2, "what a replica has not seen for long is not, as long as it runs")
}

// TestALeaderThatHoldsItsLocksHoldsUpNobody has a session keep the lock of a term for ever, as that of a leader does which was stopped
// while rows were sent to it: there the database sees no idle transaction.
func TestALeaderThatHoldsItsLocksHoldsUpNobody(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := storetest.NewURL(t)
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.NoError(t, s.For("c1", "r1").Lead(t.Context(), "this", trail.DefaultThresholds()))
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), "BEGIN; SELECT term FROM evictrail.leaders FOR SHARE")
	require.NoError(t, err)
	second := s.For("c1", "r2")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, second.Lead(ctx, "this", trail.DefaultThresholds()))
	require.True(t, second.Leads())
	require.Error(t, conn.Ping(t.Context()), "its session was ended")
}

// TestALeaderThatStandsStillLosesItsLocks stops a leader before it commits, as a process is that the kernel does not run: the database ends its transaction
// within seconds, though nobody waits for its locks and no new leader ends it.
func TestALeaderThatStandsStillLosesItsLocks(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	url := storetest.NewURL(t)
	var armed atomic.Bool
	reached, resume := make(chan struct{}), make(chan struct{})
	s, err := storetest.OpenFailing(t.Context(), url, func(sql string) bool {
		if sql == "commit" && armed.CompareAndSwap(true, false) {
			close(reached)
			<-resume
		}
		return false
	})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	goOn := sync.OnceFunc(func() { close(resume) })
	t.Cleanup(goOn)
	leader := s.For("c1", "r1")
	require.NoError(t, leader.Lead(t.Context(), "this", trail.DefaultThresholds()))
	facts := storetest.Incident("c1", 1)
	_, err = leader.Append(t.Context(), facts)
	require.NoError(t, err)
	armed.Store(true)
	stored := make(chan error, 1)
	go func() {
		_, _, err := leader.CatchUp(t.Context(), nil)
		stored <- err
	}()
	<-reached
	const idle = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`
	require.Equal(t, 1, storetest.CountRows(t, s, idle))
	require.Eventually(t, func() bool { return storetest.CountRows(t, s, idle) == 0 }, 15*time.Second, 100*time.Millisecond, "its session is ended")
	goOn()
	require.Error(t, <-stored, "it must not believe that it committed")
	_, _, err = leader.CatchUp(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, storetest.DumpOf(t, "c1", facts), storetest.Dump(t, s))
}

// TestLeaderKeepsUp has a leader derive in ticks: it rests once nothing is left, and writes nothing where nothing changed.
func TestLeaderKeepsUp(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	leader := s.For("c1", "r1")
	_, _, err := leader.KeepUp(t.Context())
	require.ErrorIs(t, err, pg.ErrDeposed)
	require.NoError(t, leader.Lead(t.Context(), "this", trail.DefaultThresholds()))
	facts := storetest.Incident("c1", 3)
	_, err = leader.Append(t.Context(), facts)
	require.NoError(t, err)
	left := "SELECT count(*) FROM evictrail.subjects WHERE dirty_since IS NOT NULL"
	require.Positive(t, storetest.CountRows(t, s, left))
	news, rest, err := leader.KeepUp(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, news.Migrations)
	require.Equal(t, 100*time.Millisecond, rest)
	require.Zero(t, storetest.CountRows(t, s, left))
	require.Equal(t, storetest.DumpOf(t, "c1", facts), storetest.Dump(t, s))
	var rests []time.Duration
	for range 6 {
		news, rest, err = leader.KeepUp(t.Context())
		require.NoError(t, err)
		require.Empty(t, news)
		rests = append(rests, rest/time.Millisecond)
	}
	require.Equal(t, []time.Duration{200, 400, 800, 1000, 1000, 1000}, rests, "an idle leader asks the database less often")
	_, err = leader.Append(t.Context(), storetest.Incident("c1", 4))
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, leader.Rest(t.Context(), time.Hour))
	require.Less(t, time.Since(began), time.Minute, "what is recorded here ends a long rest")
	_, rest, err = leader.KeepUp(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, rest, 100*time.Millisecond)
}

// TestAToolBesideALeader has a tool derive while a leader holds the term: the leader goes on with the next facts as if nobody had been there.
func TestAToolBesideALeader(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	s := storetest.New(t)
	leader := s.For("c1", "r1")
	require.NoError(t, leader.Lead(t.Context(), "this", trail.DefaultThresholds()))
	facts := storetest.Incident("c1", 3)
	third := len(facts) / 3
	_, err := leader.Append(t.Context(), facts[:third])
	require.NoError(t, err)
	_, _, err = leader.CatchUp(t.Context(), nil)
	require.NoError(t, err)
	_, err = s.Append(t.Context(), "c1", facts[third:2*third])
	require.NoError(t, err)
	_, err = s.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	_, err = leader.Append(t.Context(), facts[2*third:])
	require.NoError(t, err)
	_, _, err = leader.CatchUp(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, leader.Leads())
	require.Equal(t, storetest.DumpOf(t, "c1", facts), storetest.Dump(t, s))
}

// TestALeaderAfterATool leads where only tools derived so far: nothing is derived again.
func TestALeaderAfterATool(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	_, err := s.Append(t.Context(), "c1", storetest.Incident("c1", 2))
	require.NoError(t, err)
	again, err := store.Open(t.Context(), s.DB.Config().ConnString(), "")
	require.NoError(t, err)
	defer again.Close()
	_, err = again.DeriveStale(t.Context(), "c1", nil)
	require.NoError(t, err)
	leader := s.For("c1", "r1")
	require.NoError(t, leader.Lead(t.Context(), "this", trail.DefaultThresholds()))
	require.Zero(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.subjects WHERE dirty_since IS NOT NULL"))
}

// TestAListThatIsRecordedFirst has a replica list a VM, and another one, which watched, record the same change later, as of an earlier version: it is one change, no matter who
// comes first.
func TestAListThatIsRecordedFirst(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	seen := func(version, node string, listed bool) []trail.Fact {
		tr := tracker.New("c1")
		return tr.Observe(tracker.VMIObservation{
			Meta: tracker.Meta{UID: "v1", Namespace: "shop", Name: "db", ResourceVersion: version, CreatedAt: start},
			Seen: tracker.Seen{At: start.Add(time.Minute), Listed: listed}, Node: node, Phase: "Running", Strategy: "LiveMigrate",
		})
	}
	placed := "SELECT count(*) FROM evictrail.events WHERE kind = 'vmi_placed'"
	for _, facts := range [][]trail.Fact{seen("900", "n1", true), seen("700", "n1", false)} {
		require.NotEmpty(t, facts)
		_, err := s.For("c1", "r1").Append(t.Context(), facts)
		require.NoError(t, err)
		require.Equal(t, 1, storetest.CountRows(t, s, placed))
	}
}
