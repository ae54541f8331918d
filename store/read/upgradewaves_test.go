package read_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// wave is a row of view upgrade_waves.
type wave struct {
	StartedAt                                                                      time.Time
	EndedAt                                                                        *time.Time
	Outcome, From, To                                                              string
	VMs, Left, Staying, Moved, ShutDown, Evicted, FailedAttempts, MovedAgain, Most int
	PerMinute                                                                      float64 // rounded to thousandths
}

const (
	wavesQuery = `
SELECT started_at, ended_at, coalesce(outcome, ''), coalesce(version_from, ''), coalesce(version_to, ''),
    vms, vms_left, vms_staying, moved, shut_down, evicted, failed_attempts, moved_again, coalesce(most_at_once, 0), coalesce(per_minute, 0)
FROM evictrail_v1.upgrade_waves
WHERE cluster = 'c1'
ORDER BY started_at`
	quiet    = time.Hour        // that ends a wave
	lookback = 30 * time.Minute // before a new version is seen, in which its virt-controller may have labelled VMs
)

// TestUpgradeWavesAreThoseOfTheFacts records simulated upgrades of KubeVirt up to some moment and to their ends, and compares the view
// with what is computed from the facts one after the other.
func TestUpgradeWavesAreThoseOfTheFacts(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(storetest.Count(4, 30)) {
		run := sim.NewUpgraded(seed)
		facts := observeAll(run.Observations)
		s := storetest.New(t)
		middle := run.Upgrades[0].Add(time.Duration(seed%7) * 4 * time.Minute)
		n := slices.IndexFunc(facts, func(f trail.Fact) bool { return f.ObservedAt.After(middle) })
		for _, part := range []struct{ facts, all []trail.Fact }{{facts[:n], facts[:n]}, {facts[n:], facts}} {
			storetest.Record(t, s, part.facts)
			got := loadWaves(t, s)
			require.Equal(t, findWaves(part.all, run.Methods), got, "seed %d", seed)
			checkWaveOfOverview(t, s, got)
			for _, w := range got {
				seen["outcome "+w.Outcome]++
				for what, n := range map[string]int{
					"staying": w.Staying, "moved": w.Moved, "shut down": w.ShutDown, "evicted": w.Evicted, "failed": w.FailedAttempts, "moved again": w.MovedAgain,
				} {
					seen[what] += n
				}
			}
		}
	}
	for _, what := range []string{
		"outcome ", "outcome completed", "outcome stopped", "outcome superseded", "staying", "moved", "shut down", "evicted", "failed", "moved again",
	} {
		require.Positive(t, seen[what], what)
	}
}

// checkWaveOfOverview compares the wave that the overview of a cluster has with the one that goes on. Who sees one namespace sees none.
func checkWaveOfOverview(t *testing.T, s *store.Store, all []wave) {
	t.Helper()
	o, err := s.Overview(t.Context(), "c1", time.Time{}, time.Hour, time.Minute)
	require.NoError(t, err)
	i := slices.IndexFunc(all, func(w wave) bool { return w.EndedAt == nil && w.Left > 0 })
	if i < 0 {
		require.Nil(t, o.Wave)
		return
	}
	require.NotNil(t, o.Wave)
	got, want := o.Wave, all[i]
	require.Equal(t, want, wave{
		got.StartedAt.UTC(), nil, "", got.VersionFrom, got.VersionTo, got.VMs, got.Left, got.Staying, got.Moved, got.ShutDown, want.Evicted, got.Failed,
		got.MovedAgain, want.Most, want.PerMinute,
	})
	require.NotEmpty(t, got.Summary)
	hidden, err := s.SeenBy(trail.Only("c1", "shop")).Overview(t.Context(), "c1", time.Time{}, time.Hour, time.Minute)
	require.NoError(t, err)
	require.Nil(t, hidden.Wave)
}

// observeAll returns the facts of observations.
func observeAll(observations []tracker.Observation) []trail.Fact {
	tr := tracker.New("c1")
	var facts []trail.Fact
	for _, o := range observations {
		facts = append(facts, tr.Observe(o)...)
	}
	return facts
}

// loadWaves reads the view.
func loadWaves(t *testing.T, s *store.Store) []wave {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), wavesQuery)
	require.NoError(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[wave])
	require.NoError(t, err)
	for i := range got {
		w := &got[i]
		if w.StartedAt = w.StartedAt.UTC(); w.EndedAt != nil {
			*w.EndedAt = w.EndedAt.UTC()
		}
		w.PerMinute = math.Round(1000*w.PerMinute) / 1000
	}
	return got
}

// outdatedSpan is a time in which a VMI was outdated.
type outdatedSpan struct {
	uid            string
	since, until   time.Time // zero: it still is
	ended, evicted bool
	stays          bool
}

// findSpans returns when VMIs were outdated, by the labels that came and went and the ends of VMIs.
func findSpans(facts []trail.Fact, c *trail.Cluster, methods []string) []outdatedSpan {
	strategy, fixed, open := map[string]string{}, map[string]bool{}, map[string]*outdatedSpan{}
	ends := map[string]trail.Placement{}
	for _, d := range c.Rows {
		for _, p := range d.Placements {
			strategy[p.VMIUID] = p.Strategy
			if fixed[p.VMIUID] = p.NotMigratable != ""; p.LeftBy == trail.LeftEnd {
				ends[p.VMIUID] = p
			}
		}
	}
	var all []*outdatedSpan
	for _, f := range facts {
		switch {
		case f.Kind == trail.KindLauncherOutdated:
			open[f.VMIUID] = &outdatedSpan{uid: f.VMIUID, since: toMicros(f.OccurredAt)}
			all = append(all, open[f.VMIUID])
		case f.Kind == trail.KindLauncherCurrent && open[f.VMIUID] != nil:
			open[f.VMIUID].until = toMicros(f.OccurredAt)
			delete(open, f.VMIUID)
		}
	}
	for uid, span := range open {
		if p, over := ends[uid]; over {
			span.until, span.ended = toMicros(p.ToAt), true
			span.evicted = p.EndedBy == trail.EndingEvicted && p.EndedRequesterClass == trail.RequesterKubeVirt
		}
	}
	var out []outdatedSpan
	for _, span := range all {
		migrates, evicts := slices.Contains(methods, "LiveMigrate"), slices.Contains(methods, "Evict")
		switch strategy := strategy[span.uid]; {
		case migrates && !fixed[span.uid]:
		case !evicts, strategy == trail.StrategyExternal, strategy == "LiveMigrate" && fixed[span.uid]:
			span.stays = true
		}
		out = append(out, *span)
	}
	return out
}

func toMicros(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }

// signal is something that belongs to a wave.
type signal struct {
	at, until    time.Time
	version, old string
	begins       bool // a wave may begin with it
}

// findWaves computes the waves.
func findWaves(facts []trail.Fact, methods []string) []wave {
	seen := toMicros(facts[len(facts)-1].ObservedAt)
	c := trail.DeriveAll(facts, trail.DefaultThresholds(), seen)
	spans := findSpans(facts, c, methods)
	var moves, attempts []trail.Migration
	for _, d := range c.Rows {
		for _, m := range d.Migrations {
			m.CreatedAt, m.SchedulingAt, m.FinishedAt = toMicros(m.CreatedAt), toMicros(m.SchedulingAt), toMicros(m.FinishedAt)
			if m.Outcome == trail.OutcomeSucceeded {
				moves = append(moves, m)
			}
			if m.Trigger == trail.TriggerWorkloadUpdate || m.RequesterClass == trail.RequesterKubeVirt && m.EvacuationID != nil {
				if m.FinishedAt.Year() == 1 {
					m.FinishedAt = seen
				}
				attempts = append(attempts, m)
			}
		}
	}
	var signals []signal
	for _, x := range spans {
		if signals = append(signals, signal{at: x.since, until: x.since, begins: true}); !x.until.IsZero() {
			signals = append(signals, signal{at: x.until, until: x.until, begins: x.evicted})
		}
	}
	for _, m := range attempts {
		signals = append(signals, signal{at: m.CreatedAt, until: m.FinishedAt, begins: true})
	}
	version, versionAt := "", time.Time{}
	for _, f := range facts {
		d, ok := f.Detail.(*trail.ConfigDetail)
		if !ok || d.KubeVirt == nil {
			continue
		}
		at := toMicros(f.OccurredAt)
		if version != "" && version != d.KubeVirt.Version {
			first := at
			for _, x := range spans {
				if x.since.After(versionAt) && x.since.After(at.Add(-lookback)) && x.since.Before(first) {
					first = x.since
				}
			}
			signals = append(signals, signal{first, at, d.KubeVirt.Version, version, true})
		}
		version, versionAt = d.KubeVirt.Version, at
	}
	slices.SortFunc(signals, func(a, b signal) int {
		return cmp.Or(a.at.Compare(b.at), trail.CompareBools(a.version == "", b.version == ""), a.until.Compare(b.until))
	})
	var waves []*wave
	var last []time.Time
	begins := false
	for i, s := range signals {
		if i == 0 || s.version != "" || s.at.After(last[len(last)-1].Add(quiet)) {
			if i > 0 && !begins {
				waves, last = waves[:len(waves)-1], last[:len(last)-1]
			}
			waves, last, begins = append(waves, &wave{StartedAt: s.at, From: s.old, To: s.version}), append(last, s.until), false
		}
		begins = begins || s.begins
		if n := len(last) - 1; s.until.After(last[n]) {
			last[n] = s.until
		}
	}
	if len(waves) > 0 && !begins {
		waves, last = waves[:len(waves)-1], last[:len(last)-1]
	}
	out := []wave{}
	for i, w := range waves {
		next := time.Time{}
		if i+1 < len(waves) {
			if next = waves[i+1].StartedAt; next.Before(last[i]) {
				last[i] = next
			}
		}
		w.count(spans, attempts, moves, last[i], next, seen)
		out = append(out, *w)
	}
	return out
}

// count counts the VMs of a wave.
func (w *wave) count(spans []outdatedSpan, attempts, moves []trail.Migration, last, next, seen time.Time) {
	within := func(at time.Time) bool { return !at.After(last) && (next.IsZero() || at.Before(next)) }
	fates := map[string]string{}
	acted := time.Time{}
	act := func(at time.Time) {
		if acted.IsZero() || at.Before(acted) {
			acted = at
		}
	}
	staying, evicted := map[string]bool{}, map[string]bool{}
	for _, x := range spans {
		if !within(x.since) || !x.until.IsZero() && x.until.Before(w.StartedAt) {
			continue
		}
		switch left := x.until.IsZero() || x.until.After(last); {
		case left:
			fates[x.uid] = "left"
			staying[x.uid] = x.stays
		case fates[x.uid] == "left":
		case x.ended:
			if fates[x.uid] = "ended"; x.evicted {
				evicted[x.uid] = true
				act(x.until)
			}
		case fates[x.uid] == "":
			fates[x.uid] = "moved"
		}
	}
	var busy []time.Time
	tried, moved := map[string]bool{}, map[string]bool{}
	for _, m := range attempts {
		if m.CreatedAt.Before(w.StartedAt) || !within(m.CreatedAt) {
			continue
		}
		if act(m.CreatedAt); m.Outcome == trail.OutcomeFailed {
			w.FailedAttempts++
		}
		tried[m.VMIUID] = true
		moved[m.VMIUID] = moved[m.VMIUID] || m.Outcome == trail.OutcomeSucceeded && !m.FinishedAt.After(last)
		if m.SchedulingAt.Year() > 1 {
			busy = append(busy, m.SchedulingAt)
		}
	}
	for uid := range tried {
		if fates[uid] == "" {
			fates[uid] = map[bool]string{true: "moved", false: "left"}[moved[uid]]
		}
	}
	for _, at := range busy {
		n := 0
		for _, m := range attempts {
			if !m.CreatedAt.Before(w.StartedAt) && within(m.CreatedAt) && m.SchedulingAt.Year() > 1 && !m.SchedulingAt.After(at) && m.FinishedAt.After(at) {
				n++
			}
		}
		w.Most = max(w.Most, n)
	}
	for uid, fate := range fates {
		w.VMs++
		switch fate {
		case "left":
			if w.Left++; staying[uid] {
				w.Staying++
			}
		case "ended":
			if w.ShutDown++; evicted[uid] {
				w.Evicted++
			}
		case "moved":
			w.Moved++
		}
		n := 0
		for _, m := range moves {
			if m.VMIUID == uid && !m.FinishedAt.Before(w.StartedAt) && !m.FinishedAt.After(last) {
				n++
			}
		}
		if n > 1 {
			w.MovedAgain++
		}
	}
	until := seen
	if !next.IsZero() || seen.After(last.Add(quiet)) || w.Left == 0 && last.Before(seen) {
		w.EndedAt, until = &last, last
		switch {
		case w.Left == 0:
			w.Outcome = "completed"
		case !next.IsZero() && !next.After(last.Add(quiet)):
			w.Outcome = "superseded"
		default:
			w.Outcome = "stopped"
		}
	}
	if !acted.IsZero() && until.After(acted) {
		w.PerMinute = math.Round(1000*float64(w.Moved+w.ShutDown)/until.Sub(acted).Minutes()) / 1000
	}
}
