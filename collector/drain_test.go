package collector

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// memorySpool is a Spool of which a test sees what it holds.
type memorySpool struct {
	mu      sync.Mutex
	entries []any // of []trail.Fact and trail.Sign
	away    bool
	changed chan struct{}
}

func newMemorySpool() *memorySpool { return &memorySpool{changed: make(chan struct{}, 1)} }

func (m *memorySpool) put(e any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = append(m.entries, e)
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *memorySpool) Take(_ context.Context, facts []trail.Fact) error { m.put(facts); return nil }
func (m *memorySpool) Sign(at time.Time, watching []trail.Watching) {
	m.put(trail.Sign{At: at, Watching: watching})
}

func (m *memorySpool) Backlog() (bool, uint64) { return false, 0 }

func (m *memorySpool) Next(ctx context.Context) ([]trail.Fact, *trail.Sign, error) {
	for {
		m.mu.Lock()
		if len(m.entries) > 0 {
			defer m.mu.Unlock()
			if sign, is := m.entries[0].(trail.Sign); is {
				return nil, &sign, nil
			}
			return m.entries[0].([]trail.Fact), nil, nil
		}
		m.mu.Unlock()
		select {
		case <-m.changed:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (m *memorySpool) Stored() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries, m.away = m.entries[1:], false
}

func (m *memorySpool) Away() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = true
}

func (m *memorySpool) isAway() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.away
}

func (m *memorySpool) left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

func (m *memorySpool) Behind() bool { return m.left() > 1 }

func (m *memorySpool) Empty(ctx context.Context) error {
	for m.left() > 0 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// toldSink notes the order in which it is told things, and takes nothing while it is away.
type toldSink struct {
	mu   sync.Mutex
	away bool
	told []string
}

func (s *toldSink) take(what string) (trail.News, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return trail.News{}, errors.New("away")
	}
	s.told = append(s.told, what)
	return trail.News{}, nil
}

func (s *toldSink) Append(_ context.Context, facts []trail.Fact) (trail.News, error) {
	return s.take(facts[0].VMI)
}

func (s *toldSink) Alive(_ context.Context, at time.Time, _ []trail.Watching) (trail.News, error) {
	return s.take(at.Format("alive 15:04"))
}

func (s *toldSink) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

func (s *toldSink) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// TestDrain stores in order what comes while the Sink is away and back again, and leaves in the spool what it does not take at the end.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, sink := newMemorySpool(), &toldSink{away: true}
		s := Storing{Sink: sink, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}
		facts := func(name string) { require.NoError(t, m.Take(t.Context(), []trail.Fact{{VMI: name}})) }
		at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
		stopping := make(chan struct{})
		drained := make(chan struct{})
		m.Sign(at, nil)
		go func() { s.Drain(t.Context(), m, stopping); close(drained) }()
		time.Sleep(time.Minute)
		require.Equal(t, 1, m.left(), "the last sign is told as long as it takes")
		facts("a")
		m.Sign(at.Add(time.Minute), nil)
		facts("b")
		time.Sleep(time.Minute)
		require.Equal(t, 3, m.left(), "a sign with something behind it is not waited for")
		require.InDelta(t, 0, testutil.ToFloat64(s.Metrics.StoreUp), 0)
		require.True(t, m.isAway())
		sink.set(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.False(t, m.isAway())
		require.Equal(t, []string{"a", "alive 10:01", "b"}, sink.all())
		require.InDelta(t, 1, testutil.ToFloat64(s.Metrics.StoreUp), 0)

		sink.set(true)
		facts("c")
		facts("d")
		time.Sleep(time.Second)
		close(stopping)
		<-drained
		require.Equal(t, []any{[]trail.Fact{{VMI: "c"}}, []trail.Fact{{VMI: "d"}}}, m.entries, "they stay for the next start")
		require.Equal(t, []string{"a", "alive 10:01", "b"}, sink.all())
	})
}

// TestASlowSinkIsNotAway has a Sink give up after a while without an answer: it may be behind.
func TestASlowSinkIsNotAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, sink := newMemorySpool(), &silentSink{silent: 2}
		s := Storing{Sink: sink, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}
		require.NoError(t, m.Take(t.Context(), []trail.Fact{{VMI: "a"}}))
		ctx, cancel := context.WithCancel(t.Context())
		drained := make(chan struct{})
		go func() { s.Drain(ctx, m, nil); close(drained) }()
		time.Sleep(2 * answerWithin)
		require.Equal(t, 1, m.left())
		require.False(t, m.isAway())
		time.Sleep(2 * answerWithin)
		require.Zero(t, m.left())
		cancel()
		<-drained
	})
}

// TestDrainEndsWhenEmpty wants what is left at the end to be stored.
func TestDrainEndsWhenEmpty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, sink := newMemorySpool(), &toldSink{}
		s := Storing{Sink: sink, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}
		for _, name := range []string{"a", "b", "c"} {
			require.NoError(t, m.Take(t.Context(), []trail.Fact{{VMI: name}}))
		}
		stopping := make(chan struct{})
		close(stopping)
		s.Drain(t.Context(), m, stopping)
		require.Equal(t, []string{"a", "b", "c"}, sink.all())
	})
}

// TestDrainEndsWithItsContext ends the context of a Drain that nobody stops: it ends, what it was about to store stays, and so does none of its goroutines,
// which the end of the bubble would wait for in vain.
func TestDrainEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"while it waits for facts": false, "while it waits for the Sink": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, sink := newMemorySpool(), &toldSink{away: away}
				s := Storing{Sink: sink, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}
				require.NoError(t, m.Take(t.Context(), []trail.Fact{{VMI: "a"}}))
				ctx, cancel := context.WithCancel(t.Context())
				drained := make(chan struct{})
				go func() { s.Drain(ctx, m, make(chan struct{})); close(drained) }()
				time.Sleep(time.Minute)
				cancel()
				<-drained
				require.Equal(t, away, m.left() == 1)
			})
		})
	}
}

// TestSpoolTakesWhatWasSeen wants facts and signs of life to go to the spool, at once and in order, and to count as spooled.
func TestSpoolTakesWhatWasSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemorySpool()
		registry := metrics.New(prometheus.NewRegistry())
		w := newWriter(Config{Spool: m, Log: slog.New(slog.DiscardHandler), Metrics: registry, Clock: time.Now}, func(time.Time) []trail.Watching { return nil })
		done := make(chan error, 1)
		go func() { done <- w.run(t.Context(), nil) }()
		before := time.Now()
		w.put(t.Context(), []trail.Fact{{Kind: trail.KindVMIPlaced, ObservedAt: before}})
		require.NoError(t, w.stored(t.Context(), 1))
		require.Equal(t, before, time.Now(), "it waits for no others")
		w.beat()
		synctest.Wait()
		w.close()
		require.NoError(t, <-done)
		require.Len(t, m.entries, 3)
		require.IsType(t, []trail.Fact{}, m.entries[0])
		require.IsType(t, trail.Sign{}, m.entries[1])
		require.InDelta(t, 1, testutil.ToFloat64(registry.Facts.WithLabelValues(string(trail.KindVMIPlaced), metrics.StageSpooled)), 0)
	})
}
