package standby_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/read"
	"github.com/evictrail/evictrail/store/standby"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// pair is a primary and a standby with what has questions answered by them.
type pair struct {
	*storetest.Replication
	store   *store.Store
	servers *standby.Servers

	mu       sync.Mutex
	changes  []trail.StandbySigns
	repeated []error
}

func newPair(t *testing.T, maxLag time.Duration, settings map[string]string) *pair {
	t.Helper()
	p := &pair{Replication: storetest.NewReplication(t, settings)}
	var err error
	p.store, err = store.Open(t.Context(), p.PrimaryURL(), "")
	require.NoError(t, err)
	t.Cleanup(p.store.Close)
	p.openServers(t, maxLag)
	return p
}

// withMaxLag returns the same two servers with another answer to how far the standby may be behind.
func (p *pair) withMaxLag(t *testing.T, maxLag time.Duration) *pair {
	t.Helper()
	other := &pair{Replication: p.Replication, store: p.store}
	other.openServers(t, maxLag)
	return other
}

func (p *pair) openServers(t *testing.T, maxLag time.Duration) {
	t.Helper()
	var err error
	p.servers, err = standby.Open(t.Context(), standby.Options{
		Primary: p.store.Whole, PrimaryDB: p.store.DB, URL: p.StandbyURL(), MaxLag: maxLag,
		Changed: func(s trail.StandbySigns) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.changes = append(p.changes, s)
		},
		Repeated: func(err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.repeated = append(p.repeated, err)
		},
	})
	require.NoError(t, err)
	t.Cleanup(p.servers.Close)
}

// newAnsweringPair returns two servers of which the standby answers, with a cluster c1 that was seen.
func newAnsweringPair(t *testing.T, maxLag time.Duration) *pair {
	t.Helper()
	p := newPair(t, maxLag, nil)
	p.alive(t, "c1")
	p.run(t)
	p.awaitSigns(t, "the standby answers", isUsed)
	return p
}

// run looks at both servers until the test ends.
func (p *pair) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.servers.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

// causes returns why which server answers changed, in order, since the standby first did: on a busy machine it is behind at first.
func (p *pair) causes() []trail.StandbyCause {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []trail.StandbyCause
	for _, s := range p.changes {
		if s.Cause == "" || len(all) > 0 {
			all = append(all, s.Cause)
		}
	}
	return all
}

func (p *pair) countRepeated() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.repeated)
}

// clusters asks which clusters are recorded, and returns how the standby was for that answer.
func (p *pair) clusters(t *testing.T) (names []string, by *trail.StandbySigns) {
	t.Helper()
	require.NoError(t, p.servers.Answer(t.Context(), trail.Everything(), func(ctx context.Context, r *read.Reader) (err error) {
		if names, err = r.Clusters(ctx); err != nil {
			return err
		}
		all, err := r.Recorders(ctx, "", time.Time{}, time.Time{})
		if len(all) > 0 {
			by = all[0].Standby
		}
		return err
	}))
	return names, by
}

// alive has a cluster recorded.
func (p *pair) alive(t *testing.T, cluster string) {
	t.Helper()
	require.NoError(t, p.store.Alive(t.Context(), cluster, time.Now().UTC()))
}

func (p *pair) awaitSigns(t *testing.T, about string, is func(trail.StandbySigns) bool) trail.StandbySigns {
	t.Helper()
	require.Eventually(t, func() bool { return is(*p.servers.Signs()) }, 20*time.Second, 20*time.Millisecond, about)
	return *p.servers.Signs()
}

func isUsed(s trail.StandbySigns) bool { return s.Used && s.Cause == "" }

// TestTheStandbyAnswers has a question answered by the standby, which the primary does not see, and then without the primary.
func TestTheStandbyAnswers(t *testing.T) {
	t.Parallel()
	p := newAnsweringPair(t, 30*time.Second)
	names, by := p.clusters(t)
	require.Equal(t, []string{"c1"}, names)
	require.True(t, by.Used)
	require.WithinDuration(t, time.Now(), by.AsOf, 5*time.Second)
	require.Less(t, by.LagSeconds, 3.0)
	const last = "SELECT count(*)::text FROM pg_stat_activity WHERE application_name = 'evictrail' AND pid <> pg_backend_pid() AND query NOT LIKE '%pg_last_wal%'"
	require.NotEqual(t, "0", p.Query(p.StandbyURL(), last), "the standby was")

	p.Kill(p.Primary)
	names, by = p.clusters(t)
	require.Equal(t, []string{"c1"}, names, "the primary is gone, and the standby answers")
	require.True(t, by.Used)
	require.Zero(t, p.countRepeated())
}

// TestAnIdlePrimaryMakesNoLag looks at a standby to which nothing is sent for a while.
func TestAnIdlePrimaryMakesNoLag(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	p := newAnsweringPair(t, 3*time.Second)
	time.Sleep(5 * time.Second) // the time of the last transaction stands still
	require.Equal(t, []trail.StandbyCause{""}, p.causes())
	require.Less(t, p.servers.Signs().LagSeconds, 3.0)
}

// TestAStandbyThatLagsDoesNotAnswer pauses the replay. The standby goes on to answer where it may be an hour behind.
func TestAStandbyThatLagsDoesNotAnswer(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	p := newAnsweringPair(t, 3*time.Second)
	lenient := p.withMaxLag(t, time.Hour)
	lenient.run(t)
	lenient.awaitSigns(t, "the standby answers there, too", isUsed)
	p.Query(p.StandbyURL(), "SELECT pg_wal_replay_pause()::text")
	p.alive(t, "c2")
	written := time.Now()

	lags := p.awaitSigns(t, "the primary answers", func(s trail.StandbySigns) bool { return !s.Used })
	require.Equal(t, trail.StandbyLags, lags.Cause)
	require.Greater(t, lags.LagSeconds, 3.0)
	require.Contains(t, lags.Why, "more than the 3s of --database-read-max-lag: it does not replay what it receives")
	names, by := p.clusters(t)
	require.Equal(t, []string{"c1", "c2"}, names)
	require.False(t, by.Used)

	lenient.awaitSigns(t, "the lag is seen", func(s trail.StandbySigns) bool { return s.Used && s.LagSeconds >= 2 })
	names, by = lenient.clusters(t)
	require.Equal(t, []string{"c1"}, names, "as of then")
	require.True(t, by.Used)
	require.True(t, by.AsOf.Before(written), "%s is not before %s", by.AsOf, written)
	require.Contains(t, by.Notice(), "Read from a standby of the database, as of ")

	p.Query(p.StandbyURL(), "SELECT pg_wal_replay_resume()::text")
	p.awaitSigns(t, "the standby answers again", isUsed)
	names, by = p.clusters(t)
	require.Equal(t, []string{"c1", "c2"}, names)
	require.True(t, by.Used)
	require.Equal(t, []trail.StandbyCause{"", trail.StandbyLags, ""}, p.causes(), "each change once")
	require.Equal(t, []trail.StandbyCause{""}, lenient.causes())
}

// TestAStandbyThatEnds kills the standby in the middle of an answer, and starts it again.
func TestAStandbyThatEnds(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	p := newAnsweringPair(t, 30*time.Second)
	var asked []bool
	err := p.servers.Answer(t.Context(), trail.Everything(), func(ctx context.Context, r *read.Reader) error {
		all, err := r.Recorders(ctx, "", time.Time{}, time.Time{})
		if err != nil {
			return err
		}
		if asked = append(asked, all[0].Standby.Used); len(asked) == 1 {
			p.Kill(p.Standby)
		}
		names, err := r.Clusters(ctx)
		if err == nil {
			require.Equal(t, []string{"c1"}, names)
		}
		return err
	})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, asked, "all of the answer is made by the primary")
	require.Equal(t, 1, p.countRepeated())
	away := p.awaitSigns(t, "the primary answers", func(s trail.StandbySigns) bool { return !s.Used })
	require.Equal(t, trail.StandbyAway, away.Cause)
	require.Contains(t, away.Why, "the standby is away: ", "at first it says that it shuts down")
	names, by := p.clusters(t)
	require.Equal(t, []string{"c1"}, names)
	require.False(t, by.Used)
	require.Equal(t, 1, p.countRepeated(), "who is known to be away is not asked")

	p.RestartStandby()
	p.awaitSigns(t, "the standby answers again", isUsed)
	_, by = p.clusters(t)
	require.True(t, by.Used)
	require.Equal(t, []trail.StandbyCause{"", trail.StandbyAway, ""}, p.causes())
}

// TestAStandbyThatHangs stops the processes of the standby, as a network that is cut would.
func TestAStandbyThatHangs(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	p := newAnsweringPair(t, 30*time.Second)
	began := time.Now()
	err := p.servers.Answer(t.Context(), trail.Everything(), func(ctx context.Context, r *read.Reader) error {
		all, err := r.Recorders(ctx, "", time.Time{}, time.Time{})
		if err != nil {
			return err
		}
		if all[0].Standby.Used {
			stopProcesses(t, p.Standby.PID(), p.Query(p.StandbyURL(), "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity"))
		}
		_, err = r.Clusters(ctx)
		return err
	})
	require.NoError(t, err)
	require.Less(t, time.Since(began), 5*time.Second, "sooner than an answer may take")
	require.Equal(t, 1, p.countRepeated())
}

// TestAQueryThatReplayCancels drops a table on the primary that an answer reads on the standby.
func TestAQueryThatReplayCancels(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	p := newPair(t, 30*time.Second, map[string]string{"max_standby_streaming_delay": "200ms"})
	p.alive(t, "c1")
	_, err := p.store.DB.Exec(t.Context(), "CREATE TABLE public.dropped AS SELECT 1 AS one")
	require.NoError(t, err)
	p.run(t)
	p.awaitSigns(t, "the standby answers", isUsed)
	second, err := pg.Connect(t.Context(), p.StandbyURL(), "", nil)
	require.NoError(t, err)
	defer second.Close()
	times := 0
	err = p.servers.Answer(t.Context(), trail.Everything(), func(ctx context.Context, r *read.Reader) error {
		if times++; times > 1 {
			_, err := r.Clusters(ctx)
			return err
		}
		tx, err := second.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if _, err := tx.Exec(ctx, "LOCK TABLE public.dropped IN ACCESS SHARE MODE"); err != nil { // as answers do of facts
			return err
		}
		if _, err := p.store.DB.Exec(ctx, "DROP TABLE public.dropped"); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "SELECT pg_sleep(5)")
		return pg.Explain("read", err)
	})
	require.NoError(t, err)
	require.Equal(t, 2, times)
	require.Equal(t, 1, p.countRepeated())
	var canceled interface{ SQLState() string }
	require.ErrorAs(t, p.repeated[0], &canceled)
	require.Equal(t, "40001", canceled.SQLState())
	require.Equal(t, []trail.StandbyCause{""}, p.causes(), "the standby goes on to answer")
}

// TestWhatIsNoFailureOfTheStandby is not asked twice.
func TestWhatIsNoFailureOfTheStandby(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	p := newPair(t, 30*time.Second, nil)
	p.run(t)
	p.awaitSigns(t, "the standby answers", isUsed)
	slow, err := pg.Connect(t.Context(), p.StandbyURL(), "", nil)
	require.NoError(t, err)
	defer slow.Close()
	for name, fails := range map[string]func(context.Context) error{
		"not found":       func(context.Context) error { return trail.ErrNotFound },
		"ours":            func(context.Context) error { return errors.New("a mistake") },
		"takes too long":  func(ctx context.Context) error { return timeOut(ctx, slow) },
		"the caller left": nil,
	} {
		ctx, leave := context.WithCancel(t.Context())
		times := 0
		require.Error(t, p.servers.Answer(ctx, trail.Everything(), func(ctx context.Context, _ *read.Reader) error {
			times++
			if fails == nil {
				leave()
				return ctx.Err()
			}
			return fails(ctx)
		}), name)
		leave()
		require.Equal(t, 1, times, name)
	}
	require.Zero(t, p.countRepeated())
}

func timeOut(ctx context.Context, db *pg.DB) error {
	tx, err := db.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	_, err = tx.Exec(ctx, "SET LOCAL statement_timeout = '10ms'; SELECT pg_sleep(1)")
	return pg.Explain("read", err)
}

// TestAWriterReadsItsOwnWrite acknowledges while the standby does not replay, and while it does.
func TestAWriterReadsItsOwnWrite(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	p := newPair(t, time.Minute, nil)
	p.run(t)
	p.awaitSigns(t, "the standby answers", isUsed)
	p.alive(t, "c1")
	p.servers.AwaitReplay(t.Context())
	names, by := p.clusters(t)
	require.Equal(t, []string{"c1"}, names)
	require.True(t, by.Used, "the standby has it")

	p.Query(p.StandbyURL(), "SELECT pg_wal_replay_pause()::text")
	p.alive(t, "c2")
	began := time.Now()
	p.servers.AwaitReplay(t.Context())
	require.Less(t, time.Since(began), 4*time.Second)
	names, by = p.clusters(t)
	require.Equal(t, []string{"c1", "c2"}, names)
	require.False(t, by.Used)
	p.Query(p.StandbyURL(), "SELECT pg_wal_replay_resume()::text")
	require.Eventually(t, func() bool {
		names, by = p.clusters(t)
		require.Equal(t, []string{"c1", "c2"}, names)
		return by.Used
	}, 10*time.Second, 50*time.Millisecond, "then the standby answers again")
	require.Equal(t, []trail.StandbyCause{""}, p.causes(), "that is no change worth a word")
}

// TestAPromotedStandbyDoesNotAnswer promotes the standby while the primary goes on: what each has then differs.
func TestAPromotedStandbyDoesNotAnswer(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	p := newAnsweringPair(t, 30*time.Second)
	p.Promote()
	promoted := p.awaitSigns(t, "the primary answers", func(s trail.StandbySigns) bool { return !s.Used })
	require.Equal(t, trail.StandbyPrimary, promoted.Cause)
	_, by := p.clusters(t)
	require.False(t, by.Used)
}

// TestWithoutThePrimary goes on with the standby when that is too far behind, and says so.
func TestWithoutThePrimary(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	p := newAnsweringPair(t, 2*time.Second)
	p.Kill(p.Primary)
	old := p.awaitSigns(t, "it is behind", func(s trail.StandbySigns) bool { return s.Cause == trail.StandbyLags })
	require.True(t, old.Used)
	require.Equal(t, "the primary does not answer", old.Why)
	var all []trail.RecorderStatus
	require.NoError(t, p.servers.Answer(t.Context(), trail.Everything(), func(ctx context.Context, r *read.Reader) (err error) {
		all, err = r.Recorders(ctx, "c1", time.Time{}, time.Time{})
		return err
	}))
	require.Equal(t, trail.RecorderDegraded, all[0].State)
	require.Contains(t, all[0].Why[0], "Questions are answered by the standby, ")
	require.Equal(t, all[0].Standby.AsOf, all[0].At)
}
