package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
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
	aside   []string
	away    bool
	changed chan struct{}
}

func newMemorySpool() *memorySpool { return &memorySpool{changed: make(chan struct{}, 1)} }

func (m *memorySpool) addEntry(e any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = append(m.entries, e)
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *memorySpool) Append(_ context.Context, facts []trail.Fact) error {
	m.addEntry(facts)
	return nil
}
func (m *memorySpool) AppendSign(at time.Time, watching []trail.Watching) {
	m.addEntry(trail.Sign{At: at, Watching: watching})
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

func (m *memorySpool) Confirm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries, m.away = m.entries[1:], false
}

func (m *memorySpool) MarkAway() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = true
}

func (m *memorySpool) SetAside(facts []trail.Fact, reason error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range facts {
		m.aside = append(m.aside, f.VMI+": "+reason.Error())
	}
}

func (m *memorySpool) isAway() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.away
}

func (m *memorySpool) countEntries() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

func (m *memorySpool) HasMore() bool { return m.countEntries() > 1 }

func (m *memorySpool) WaitEmpty(ctx context.Context) error {
	for m.countEntries() > 0 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// orderSink records the order of its calls, and takes nothing while it is away.
type recordingSink struct {
	unprobed
	mu        sync.Mutex
	away      bool
	delivered []string
}

func (s *recordingSink) recordCall(what string) (trail.News, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return trail.News{}, errors.New("away")
	}
	s.delivered = append(s.delivered, what)
	return trail.News{}, nil
}

func (s *recordingSink) Append(_ context.Context, facts []trail.Fact) (trail.News, error) {
	return s.recordCall(facts[0].VMI)
}

func (s *recordingSink) Alive(_ context.Context, at time.Time, _ []trail.Watching) error {
	_, err := s.recordCall(at.Format("alive 15:04"))
	return err
}

func (s *recordingSink) listDelivered() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.delivered)
}

func (s *recordingSink) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// TestDrain stores in order what comes while the Sink is away and back again, and leaves in the spool what it does not take at the end.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, sink := newMemorySpool(), &recordingSink{away: true}
		log := &lockedBuffer{}
		s := Storing{Sink: sink, Log: slog.New(slog.NewTextHandler(log, nil)), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}
		facts := func(name string) { require.NoError(t, m.Append(t.Context(), []trail.Fact{{VMI: name}})) }
		at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
		stopping := make(chan struct{})
		drained := make(chan struct{})
		m.AppendSign(at, nil)
		go func() { s.Drain(t.Context(), m, stopping); close(drained) }()
		time.Sleep(time.Minute)
		require.Equal(t, 1, m.countEntries(), "the last sign is sent again for as long as it takes")
		facts("a")
		m.AppendSign(at.Add(time.Minute), nil)
		facts("b")
		time.Sleep(time.Minute)
		require.Equal(t, 3, m.countEntries(), "a sign with something behind it is not waited for")
		require.InDelta(t, 0, testutil.ToFloat64(s.Metrics.StoreUp), 0)
		require.True(t, m.isAway())
		sink.setAway(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.False(t, m.isAway())
		require.Equal(t, []string{"a", "alive 10:01", "b"}, sink.listDelivered())
		require.InDelta(t, 1, testutil.ToFloat64(s.Metrics.StoreUp), 0)

		sink.setAway(true)
		facts("c")
		facts("d")
		time.Sleep(time.Second)
		close(stopping)
		<-drained
		require.Equal(t, []any{[]trail.Fact{{VMI: "c"}}, []trail.Fact{{VMI: "d"}}}, m.entries, "they stay for the next start")
		require.Equal(t, []string{"a", "alive 10:01", "b"}, sink.listDelivered())
		require.Equal(t, 2, strings.Count(log.String(), "database does not take facts, trying again"), "once each time that it is away: %s", log)
		require.Equal(t, 1, strings.Count(log.String(), "database takes facts again"))
	})
}

// TestASlowSinkIsNotAway has a Sink give up after a while without an answer: it may be behind.
func TestASlowSinkIsNotAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, sink := newMemorySpool(), &silentSink{silent: 2}
		s := Storing{Sink: sink, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}
		require.NoError(t, m.Append(t.Context(), []trail.Fact{{VMI: "a"}}))
		ctx, cancel := context.WithCancel(t.Context())
		drained := make(chan struct{})
		go func() { s.Drain(ctx, m, nil); close(drained) }()
		time.Sleep(2 * answerWithin)
		require.Equal(t, 1, m.countEntries())
		require.False(t, m.isAway())
		time.Sleep(2 * answerWithin)
		require.Zero(t, m.countEntries())
		cancel()
		<-drained
	})
}

// TestDrainEndsWhenEmpty wants what is left at the end to be stored.
func TestDrainEndsWhenEmpty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, sink := newMemorySpool(), &recordingSink{}
		s := Storing{Sink: sink, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}
		for _, name := range []string{"a", "b", "c"} {
			require.NoError(t, m.Append(t.Context(), []trail.Fact{{VMI: name}}))
		}
		stopping := make(chan struct{})
		close(stopping)
		s.Drain(t.Context(), m, stopping)
		require.Equal(t, []string{"a", "b", "c"}, sink.listDelivered())
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
				m, sink := newMemorySpool(), &recordingSink{away: away}
				s := Storing{Sink: sink, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}
				require.NoError(t, m.Append(t.Context(), []trail.Fact{{VMI: "a"}}))
				ctx, cancel := context.WithCancel(t.Context())
				drained := make(chan struct{})
				go func() { s.Drain(ctx, m, make(chan struct{})); close(drained) }()
				time.Sleep(time.Minute)
				cancel()
				<-drained
				require.Equal(t, away, m.countEntries() == 1)
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
		w.addFacts(t.Context(), []trail.Fact{{Kind: trail.KindVMIPlaced, ObservedAt: before}})
		require.NoError(t, w.waitStored(t.Context(), 1))
		require.Equal(t, before, time.Now(), "it waits for no others")
		w.requestHeartbeat()
		synctest.Wait()
		w.close()
		require.NoError(t, <-done)
		require.Len(t, m.entries, 3)
		require.IsType(t, []trail.Fact{}, m.entries[0])
		require.IsType(t, trail.Sign{}, m.entries[1])
		require.InDelta(t, 1, testutil.ToFloat64(registry.Facts.WithLabelValues(string(trail.KindVMIPlaced), metrics.StageSpooled)), 0)
	})
}

// poisonSink takes no batch with a fact of the VM "poison", and nothing at all while it is away.
type poisonSink struct {
	mu     sync.Mutex
	cause  error
	away   error // of a probe, too
	slow   time.Duration
	stored []string
}

func (s *poisonSink) Append(_ context.Context, facts []trail.Fact) (trail.News, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return trail.News{}, s.away
	}
	if slices.ContainsFunc(facts, func(f trail.Fact) bool { return f.VMI == "poison" }) {
		return trail.News{}, s.cause
	}
	for _, f := range facts {
		s.stored = append(s.stored, f.VMI)
	}
	return trail.News{}, nil
}

func (s *poisonSink) Alive(context.Context, time.Time, []trail.Watching) error {
	return nil
}

func (s *poisonSink) Probe(ctx context.Context, _ error) error {
	s.mu.Lock()
	slow, away := s.slow, s.away
	s.mu.Unlock()
	select {
	case <-time.After(slow):
		return away
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *poisonSink) listStored() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stored)
}

// newPoisonedFacts are 300 facts, of which two are poison.
func newPoisonedFacts() (facts []trail.Fact, good []string) {
	for i := range 300 {
		f := trail.Fact{VMI: strconv.Itoa(i), Kind: trail.KindVMIPlaced, Cluster: "c1", ObservedAt: time.Now()}
		if i == 0 || i == 207 {
			f.VMI = "poison"
		} else {
			good = append(good, f.VMI)
		}
		facts = append(facts, f)
	}
	return facts, good
}

// TestAPoisonFactDoesNotStopTheStream: whatever the reason is for which one fact is never stored, what lies behind it is.
func TestAPoisonFactDoesNotStopTheStream(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{
		"refused":       fmt.Errorf("append: %w", trail.ErrRefused),
		"unknown error": errors.New("a bug"),
		"deadline":      context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				spool, sink := newMemorySpool(), &poisonSink{cause: cause}
				facts, good := newPoisonedFacts()
				spool.addEntry(facts)
				began, stopping, done := time.Now(), make(chan struct{}), make(chan struct{})
				s := Storing{Sink: sink, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}
				go func() { s.Drain(t.Context(), spool, stopping); close(done) }()
				require.NoError(t, spool.WaitEmpty(t.Context()))
				require.Less(t, time.Since(began), time.Minute)
				close(stopping)
				<-done
				require.Equal(t, good, sink.listStored())
				require.Equal(t, []string{"poison: " + cause.Error(), "poison: " + cause.Error()}, spool.aside)
			})
		})
	}
}

// TestNothingIsSetAsideWhileTheSinkIsAway: nor while it is so slow that a probe does not come back, for hours.
func TestNothingIsSetAsideWhileTheSinkIsAway(t *testing.T) {
	t.Parallel()
	for name, sink := range map[string]*poisonSink{
		"away": {away: errors.New("away")},
		"slow": {cause: context.DeadlineExceeded, slow: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				spool := newMemorySpool()
				facts, good := newPoisonedFacts()
				spool.addEntry(facts)
				stopping, done := make(chan struct{}), make(chan struct{})
				s := Storing{Sink: sink, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}
				go func() { s.Drain(t.Context(), spool, stopping); close(done) }()
				time.Sleep(5 * time.Hour)
				require.Empty(t, spool.aside)
				require.Equal(t, 1, spool.countEntries())
				sink.mu.Lock()
				sink.away, sink.slow, sink.cause = nil, 0, trail.ErrRefused
				sink.mu.Unlock()
				require.NoError(t, spool.WaitEmpty(t.Context()))
				close(stopping)
				<-done
				require.Equal(t, good, sink.listStored())
			})
		})
	}
}

// TestWithoutASpoolARefusalIsAGap: nobody keeps what is refused, so the record says what is missing.
func TestWithoutASpoolARefusalIsAGap(t *testing.T) {
	t.Parallel()
	s := &sink{fail: func(_ int, facts []trail.Fact) error {
		if slices.ContainsFunc(facts, func(f trail.Fact) bool { return f.VMI == "poison" }) {
			return trail.ErrRefused
		}
		return nil
	}}
	m := metrics.New(prometheus.NewRegistry())
	storing := Storing{Sink: s, Log: slog.New(slog.DiscardHandler), Metrics: m, Clock: time.Now}
	facts, good := newPoisonedFacts()
	require.NoError(t, storing.storeBatch(t.Context(), facts))
	require.Equal(t, map[trail.Kind]int{trail.KindVMIPlaced: len(good), trail.KindGapOpened: 1, trail.KindGapClosed: 1}, s.countKinds())
	require.InDelta(t, 2, testutil.ToFloat64(m.Lost.WithLabelValues(string(trail.KindVMIPlaced), metrics.LostStoreReject)), 0)
	gap := s.facts[len(good)]
	require.Equal(t, &trail.GapDetail{Key: gap.Detail.(*trail.GapDetail).Key, Cause: trail.ReasonRefused, Detail: "2 facts refused: 2 vmi_placed"}, gap.Detail)
}
