package trail_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// the policy of the plugin where nothing is set.
var plain = trail.CooldownPolicy{Model: trail.CooldownLive, Base: trail.DefaultCooldown, Max: trail.DefaultMaxCooldown, Window: trail.DefaultCooldownWindow}

// endsAt makes completions that took no time, by their ends.
func endsAt(ends ...time.Duration) []trail.Completion {
	out := make([]trail.Completion, 0, len(ends))
	for _, e := range ends {
		out = append(out, trail.Completion{StartedAt: day.Add(e), EndedAt: day.Add(e)})
	}
	return out
}

// TestCooldown holds the edges of PreEvictionFilter (reference: descheduler-signals §1.5).
func TestCooldown(t *testing.T) {
	t.Parallel()
	with := func(change func(*trail.CooldownPolicy)) trail.CooldownPolicy {
		p := plain
		change(&p)
		return p
	}
	hours := func(n int) []trail.Completion {
		var ends []time.Duration
		for i := range n {
			ends = append(ends, time.Duration(i-n+1)*time.Hour)
		}
		return endsAt(ends...)
	}
	for _, c := range []struct {
		name        string
		policy      trail.CooldownPolicy
		completions []trail.Completion
		at          time.Duration
		want        trail.Cooldown
	}{
		{"no completion, no cooldown", plain, nil, 0, trail.Cooldown{}},
		{"one results in the base", plain, endsAt(0), time.Minute, trail.Cooldown{1, 15 * time.Minute, day.Add(15 * time.Minute), false}},
		{"none in the window results in the base, too", plain, endsAt(0), 49 * time.Hour, trail.Cooldown{0, 15 * time.Minute, day.Add(15 * time.Minute), false}},
		{"the second doubles", plain, hours(2), 0, trail.Cooldown{2, 30 * time.Minute, day.Add(30 * time.Minute), false}},
		{"the fifth: as much as a restarted descheduler remembers", plain, hours(5), 0, trail.Cooldown{5, 4 * time.Hour, day.Add(4 * time.Hour), false}},
		{"the sixth meets the limit", plain, hours(6), 0, trail.Cooldown{6, 6 * time.Hour, day.Add(6 * time.Hour), true}},
		{"the seventh stays there", plain, hours(7), 0, trail.Cooldown{7, 6 * time.Hour, day.Add(6 * time.Hour), true}},
		{"at the limit is not past it", with(func(p *trail.CooldownPolicy) { p.Max = time.Hour }), hours(3), 0, trail.Cooldown{3, time.Hour, day.Add(time.Hour), false}},
		{"one more would pass it", with(func(p *trail.CooldownPolicy) { p.Max = time.Hour }), hours(4), 0, trail.Cooldown{4, time.Hour, day.Add(time.Hour), true}},
		{"a long migration counts with its own length", plain, []trail.Completion{{StartedAt: day.Add(-40 * time.Minute), EndedAt: day}}, 0,
			trail.Cooldown{1, 40 * time.Minute, day.Add(40 * time.Minute), false}},
		{"and doubles that", plain, []trail.Completion{endsAt(-time.Hour)[0], {StartedAt: day.Add(-40 * time.Minute), EndedAt: day}}, 0,
			trail.Cooldown{2, 80 * time.Minute, day.Add(80 * time.Minute), false}},
		{"only the last one's own length counts", plain, []trail.Completion{{StartedAt: day.Add(-3 * time.Hour), EndedAt: day.Add(-time.Hour)}, endsAt(0)[0]}, 0,
			trail.Cooldown{2, 30 * time.Minute, day.Add(30 * time.Minute), false}},
		{"one longer than the limit is cut to it", plain, []trail.Completion{{StartedAt: day.Add(-7 * time.Hour), EndedAt: day}}, 0,
			trail.Cooldown{1, 6 * time.Hour, day.Add(6 * time.Hour), true}},
		{"its start is not known", plain, []trail.Completion{{EndedAt: day}}, 0, trail.Cooldown{1, 15 * time.Minute, day.Add(15 * time.Minute), false}},
		{"its start is after its end", plain, []trail.Completion{{StartedAt: day.Add(time.Minute), EndedAt: day}}, 0,
			trail.Cooldown{1, 15 * time.Minute, day.Add(15 * time.Minute), false}},
		{"the edge of the window is outside", plain, endsAt(-48*time.Hour, 0), 0, trail.Cooldown{1, 15 * time.Minute, day.Add(15 * time.Minute), false}},
		{"a second later is inside", plain, endsAt(-48*time.Hour+time.Second, 0), 0, trail.Cooldown{2, 30 * time.Minute, day.Add(30 * time.Minute), false}},
		{"an end ahead of the clock counts and holds", plain, endsAt(time.Minute), 0, trail.Cooldown{1, 15 * time.Minute, day.Add(16 * time.Minute), false}},
		{"no limit", with(func(p *trail.CooldownPolicy) { p.Max = 0 }), hours(8), 0, trail.Cooldown{8, 32 * time.Hour, day.Add(32 * time.Hour), false}},
		{"a limit below the base: refused by the plugin, cut by us", with(func(p *trail.CooldownPolicy) { p.Max = time.Minute }), hours(1), 0,
			trail.Cooldown{1, time.Minute, day.Add(time.Minute), true}},
		{"what is not in the memory of the descheduler holds, and does not count", plain,
			[]trail.Completion{endsAt(-time.Hour)[0], trail.Forgotten(trail.Completion{StartedAt: day.Add(-20 * time.Minute), EndedAt: day})}, 0,
			trail.Cooldown{1, 20 * time.Minute, day.Add(20 * time.Minute), false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.policy.Decide(c.completions, day.Add(c.at)))
		})
	}
}

// TestCooldownFits doubles without a limit for longer than 64 bits last.
func TestCooldownFits(t *testing.T) {
	t.Parallel()
	for _, base := range []time.Duration{1, 3, time.Minute, trail.DefaultCooldown, 1 << 61, 1<<62 - 1, 1 << 62, 1<<62 + 1, math.MaxInt64} {
		last := time.Duration(0)
		for n := 1; n < 80; n++ {
			c := trail.CooldownPolicy{Base: base, Window: trail.DefaultCooldownWindow}.Decide(endsAt(make([]time.Duration, n)...), day)
			require.GreaterOrEqual(t, c.Effective, base, "%d completions", n)
			require.GreaterOrEqual(t, c.Effective, last, "%d completions", n)
			last = c.Effective
		}
	}
}

// TestCooldownBounds decides random histories under random policies.
func TestCooldownBounds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for range 5000 {
		p := trail.CooldownPolicy{
			Base: time.Duration(1+r.IntN(3600)) * time.Second, Window: time.Duration(1+r.IntN(72)) * time.Hour,
		}
		if r.IntN(4) > 0 {
			p.Max = p.Base + time.Duration(r.IntN(36000))*time.Second
		}
		var done []trail.Completion
		at := day
		for range 1 + r.IntN(12) {
			at = at.Add(time.Duration(r.IntN(10*3600)) * time.Second)
			c := trail.Completion{EndedAt: at}
			if r.IntN(5) > 0 {
				c.StartedAt = at.Add(-time.Duration(r.IntN(9000)) * time.Second)
			}
			done = append(done, c)
		}
		now := at.Add(time.Duration(r.IntN(7200)-600) * time.Second)
		c := p.Decide(done, now)
		require.GreaterOrEqual(t, c.Effective, p.Base)
		if p.Max > 0 {
			require.LessOrEqual(t, c.Effective, p.Max)
		}
		require.Equal(t, at.Add(c.Effective), c.Until)
		require.LessOrEqual(t, c.Count, len(done))
		more := append(endsAt(done[0].EndedAt.Sub(day)-time.Duration(r.IntN(3600))*time.Second), done...)
		require.GreaterOrEqual(t, p.Decide(more, now).Effective, c.Effective, "one more before never shortens it")
		require.Equal(t, c, p.Decide(done, now))
		if !c.Capped && p.Max > 0 {
			loose := p
			loose.Max = 0
			require.Equal(t, c, loose.Decide(done, now), "a limit that is not met changes nothing")
		}
		later := p.Decide(done, now.Add(time.Hour))
		require.LessOrEqual(t, later.Effective, c.Effective, "time alone never makes it longer")
	}
}

// moveHourly has a VM moved to and fro, once each hour from one on, by the descheduler; those that fail name no node.
func (h *history) moveHourly(outcomes string) {
	h.changeVM(0, "db", nil)
	for i, o := range outcomes {
		at := time.Duration(i+1) * time.Hour
		uid := string(rune('a' + i))
		h.markVM(at-2*time.Minute, "db", "descheduler")
		h.createMigration(at-2*time.Minute, uid, "db", nil)
		to := ""
		if o == 'S' {
			to = map[string]string{"n1": "n2", "n2": "n1"}[h.vms["db"].Node]
		}
		h.runMigration(at-time.Minute, at, uid, to)
		if o != 'S' {
			h.unmarkVM(at+2*time.Second, "db")
		}
		if i >= trail.FinishedKept {
			h.removeMigration(at+2*time.Second, string(rune('a'+i-trail.FinishedKept)))
		}
	}
}

// TestCooldownModels follows what the plugin of each release remembers (reference: descheduler-signals §1.6, §1.7).
func TestCooldownModels(t *testing.T) {
	t.Parallel()
	settings := trail.DeschedulerSettings{Cooldown: &trail.CooldownSettings{trail.DefaultCooldown, trail.DefaultMaxCooldown, trail.DefaultCooldownWindow}}
	type last struct {
		count, really int
		effective     time.Duration
		finding       string
	}
	for _, c := range []struct {
		name    string
		arrange func(*history)
		model   string
		want    last
	}{
		{"no restart seen: all that was counts", func(h *history) { h.moveHourly("SSSSSS") }, trail.CooldownLive, last{6, 6, 6 * time.Hour, ""}},
		{"failures after the hand-over count", func(h *history) { h.moveHourly("SFFS") }, trail.CooldownLive, last{4, 4, 2 * time.Hour, ""}},
		{"failures before the restart are forgotten", func(h *history) {
			h.moveHourly("SFF")
			h.startDescheduler(4*time.Hour-30*time.Minute, "v0.34", true)
			h.continueHourly(4, "S")
		}, trail.CooldownLive,
			last{2, 4, 30 * time.Minute, "the descheduler remembers 2 of 4 migrations in its window and waits 30m0s instead of 2h0m0s"}},
		{"five successes at most are read at the start", func(h *history) {
			h.moveHourly("SSSSSSS")
			h.startDescheduler(8*time.Hour-30*time.Minute, "v0.34", true)
			h.continueHourly(8, "S")
		},
			trail.CooldownLive, last{6, 8, 6 * time.Hour, ""}},
		{"and fewer where failures took their places", func(h *history) {
			h.moveHourly("SSSFFF")
			h.startDescheduler(7*time.Hour-30*time.Minute, "v0.34", true)
			h.continueHourly(7, "S")
		},
			trail.CooldownLive, last{3, 7, time.Hour, "the descheduler remembers 3 of 7 migrations in its window and waits 1h0m0s instead of 6h0m0s"}},
		{"those deleted by hand before the restart are not read", func(h *history) {
			h.moveHourly("SSS")
			h.removeMigration(3*time.Hour+5*time.Minute, "a")
			h.removeMigration(3*time.Hour+5*time.Minute, "b")
			h.startDescheduler(4*time.Hour-30*time.Minute, "v0.34", true)
			h.continueHourly(4, "S")
		}, trail.CooldownLive, last{2, 4, 30 * time.Minute, "the descheduler remembers 2 of 4 migrations in its window and waits 30m0s instead of 2h0m0s"}},
		{"those deleted after it are remembered", func(h *history) {
			h.moveHourly("SSS")
			h.startDescheduler(3*time.Hour+5*time.Minute, "v0.34", true)
			h.removeMigration(3*time.Hour+6*time.Minute, "a")
			h.removeMigration(3*time.Hour+6*time.Minute, "b")
			h.continueHourly(4, "S")
		}, trail.CooldownLive, last{4, 4, 2 * time.Hour, ""}},
		{"4.21 reads again in each cycle: never more than five", func(h *history) { h.startDescheduler(0, "v4.21.3", true); h.moveHourly("SSSSSSS") }, trail.CooldownReseeded,
			last{5, 7, 4 * time.Hour, "the descheduler remembers 5 of 7 migrations in its window and waits 4h0m0s instead of 6h0m0s"}},
		{"4.21 never counts failures, the last one neither", func(h *history) { h.startDescheduler(0, "v4.21.3", true); h.moveHourly("SFSF") }, trail.CooldownReseeded,
			last{2, 4, 30 * time.Minute, "the descheduler remembers 2 of 4 migrations in its window and waits 30m0s instead of 2h0m0s"}},
		{"4.21 as it was stated", func(h *history) {
			s := settings
			s.Model = trail.CooldownReseeded
			h.applyPolicy(time.Second, s)
			h.moveHourly("SF")
		}, trail.CooldownReseeded, last{1, 2, 15 * time.Minute, "the descheduler remembers 1 of 2 migrations in its window and waits 15m0s instead of 30m0s"}},
		{"a newer release as it was stated, whatever the process says of itself", func(h *history) {
			s := settings
			s.Model = trail.CooldownLive
			h.applyPolicy(time.Second, s)
			h.startDescheduler(2*time.Second, "v4.21.3", true)
			h.moveHourly("SF")
		}, trail.CooldownLive, last{2, 2, 30 * time.Minute, ""}},
		{"settings that change count from their change on", func(h *history) {
			h.moveHourly("SS")
			s := trail.DeschedulerSettings{Cooldown: &trail.CooldownSettings{time.Minute, 3 * time.Minute, time.Hour + 10*time.Minute}}
			h.applyPolicy(2*time.Hour+30*time.Minute, s)
			h.continueHourly(3, "S")
		}, trail.CooldownLive, last{2, 2, 2 * time.Minute, ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			h.applyPolicy(0, settings)
			c.arrange(h)
			var got trail.Decision
			for _, d := range h.decisionsAt(100*time.Hour, "db", trail.LayerCooldown) {
				if d.Verdict == trail.VerdictHolds {
					got = d
				}
			}
			require.Equal(t, c.want, last{got.Count, got.Inputs.TrueCount, time.Duration(got.Effective), got.Inputs.Finding})
			require.Equal(t, c.model, got.Model)
			require.Equal(t, got.Inputs.EndedAt.Add(time.Duration(got.Effective)), got.Until)
			require.Len(t, got.Inputs.Completions, got.Count)
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		for name, arrange := range map[string]func(*history){
			"no policy":               func(*history) {},
			"the plugin is not in it": func(h *history) { h.applyPolicy(0, trail.DeschedulerSettings{}) },
			"stated":                  func(h *history) { s := settings; s.Model = trail.CooldownNone; h.applyPolicy(0, s) },
			"its metrics are absent":  func(h *history) { h.applyPolicy(0, settings); h.startDescheduler(0, "v0.34", false) },
		} {
			h := newHistory()
			arrange(h)
			h.moveHourly("SS")
			require.Empty(t, h.decisionsAt(100*time.Hour, "db", trail.LayerCooldown), name)
		}
	})
	t.Run("the settings before the first that were seen are those", func(t *testing.T) {
		t.Parallel()
		h := newHistory()
		h.moveHourly("S")
		h.applyPolicy(2*time.Hour, settings)
		require.Len(t, h.decisionsAt(100*time.Hour, "db", trail.LayerCooldown), 2)
	})
}

// continueHourly goes on with hourly, in an hour.
func (h *history) continueHourly(hour int, outcomes string) {
	for i, o := range outcomes {
		at := time.Duration(hour+i) * time.Hour
		uid := string(rune('a' + hour + i - 1))
		h.markVM(at-2*time.Minute, "db", "descheduler")
		h.createMigration(at-2*time.Minute, uid, "db", nil)
		to := ""
		if o == 'S' {
			to = map[string]string{"n1": "n2", "n2": "n1"}[h.vms["db"].Node]
		}
		h.runMigration(at-time.Minute, at, uid, to)
	}
}

// TestCooldownIsMet checks what an act of the descheduler meets: a migration whose data moves, a cooldown, or nothing.
func TestCooldownIsMet(t *testing.T) {
	t.Parallel()
	h := newHistory()
	h.applyPolicy(0, trail.DeschedulerSettings{Cooldown: &trail.CooldownSettings{trail.DefaultCooldown, trail.DefaultMaxCooldown, trail.DefaultCooldownWindow}})
	h.changeVM(0, "db", nil)
	h.observePod(0, "p1", "db", "n1", "", nil)
	account := "system:serviceaccount:kube-system:descheduler"
	already := `Evacuation in progress: Eviction triggered evacuation of VMI "shop/db"`
	h.markVM(10*time.Minute, "db", "descheduler")
	h.createMigration(10*time.Minute, "a", "db", nil)
	h.observeRequest(11*time.Minute, "before its data moves", "p1", account, already, nil)
	h.runMigration(12*time.Minute, 14*time.Minute, "a", "")
	h.observeRequest(13*time.Minute, "while it moves", "p1", account, already, nil)
	h.observeRequest(14*time.Minute+500*time.Millisecond, "after its data, before the migration is final", "p1", account, already, nil)
	h.observeRequest(20*time.Minute, "in the cooldown", "p1", account, already, nil)
	h.observeRequest(21*time.Minute, "as a dry run", "p1", account, already, func(o *tracker.RequestObservation) { o.Detail.DryRun = true })
	h.observeRequest(22*time.Minute, "by somebody else", "p1", "alice", already, nil)
	h.observeRequest(29*time.Minute-time.Second, "in its last second", "p1", account, already, nil)
	h.observeRequest(29*time.Minute, "at its end", "p1", account, already, nil)
	var got []string
	for _, d := range h.decisionsAt(time.Hour, "db", trail.LayerCooldown) {
		if d.Verdict == trail.VerdictBlocked {
			got = append(got, formatShortTime(d.DecidedAt)+" "+d.Reason)
		}
	}
	require.Equal(t, []string{"13:00 migration_in_progress", "14:00.5 cooldown", "20:00 cooldown", "28:59 cooldown"}, got)
}

// TestCooldownIsComputedAgain starts the descheduler again, or changes its policy, while a cooldown holds: what it forgets ends the
// cooldown early, what it learns makes it longer, and the decision says what really was.
func TestCooldownIsComputedAgain(t *testing.T) {
	t.Parallel()
	settings := trail.DeschedulerSettings{Cooldown: &trail.CooldownSettings{15 * time.Minute, 6 * time.Hour, 48 * time.Hour}}
	decisionsAfter := func(arrange func(*history)) []string {
		h := newHistory()
		h.applyPolicy(0, settings)
		h.moveHourly("SFF") // the third ends at 3:00 and holds for an hour
		arrange(h)
		var out []string
		for _, d := range h.decisionsAt(100*time.Hour, "db", trail.LayerCooldown) {
			if d.Inputs.EndedAt.Sub(day) > 2*time.Hour+30*time.Minute {
				out = append(out, fmt.Sprintf("%s %s %s, %d of %d until %s", formatShortTime(d.DecidedAt), d.Verdict, d.Reason, d.Count, d.Inputs.TrueCount, formatShortTime(d.Until)))
			}
		}
		return out
	}
	undisturbed := decisionsAfter(func(*history) {})
	require.Len(t, undisturbed, 2)
	require.Contains(t, undisturbed[0], "holds migration_completed, 3 of 3")
	restarted := decisionsAfter(func(h *history) { h.startDescheduler(3*time.Hour+10*time.Minute, "v0.34", true) })
	require.Len(t, restarted, 3, restarted)
	require.Equal(t, undisturbed[0], restarted[0])
	require.Contains(t, restarted[1], "holds computed_anew, 1 of 3", "only the success is read; the failure on the VMI holds for the base")
	require.Contains(t, restarted[2], "released expired, 1 of 3")
	late := decisionsAfter(func(h *history) { h.startDescheduler(3*time.Hour+40*time.Minute, "v0.34", true) })
	require.Len(t, late, 2, late)
	require.Contains(t, late[1], "released expired, 1 of 3", "it is over with the start")
	longer := decisionsAfter(func(h *history) {
		h.applyPolicy(3*time.Hour+10*time.Minute, trail.DeschedulerSettings{Cooldown: &trail.CooldownSettings{time.Hour, 6 * time.Hour, 48 * time.Hour}})
	})
	require.Len(t, longer, 3, longer)
	require.Contains(t, longer[1], "holds computed_anew, 3 of 3")
	gone := decisionsAfter(func(h *history) { h.applyPolicy(3*time.Hour+10*time.Minute, trail.DeschedulerSettings{}) })
	require.Len(t, gone, 2, gone)
	require.Contains(t, gone[1], "released over")
}
