package trail_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestBackoff holds the rules of KubeVirt's backoff (reference: kubevirt-signals §2.4). Every attempt here fails ten seconds
// after its creation, and the next is made when the wait is over.
func TestBackoff(t *testing.T) {
	t.Parallel()
	const evacuated = time.Minute
	// fails adds failed attempts of one evacuation, ten minutes apart, from a number on.
	fails := func(h *history, from, to int) {
		for i := from; i <= to; i++ {
			at := time.Duration(i) * 10 * time.Minute
			uid := string(rune('a' + i - 1))
			h.createMigration(at, uid, "db", nil)
			h.failMigration(at+10*time.Second, uid)
			if i > trail.FinishedKept {
				h.removeMigration(at+11*time.Second, string(rune('a'+i-1-trail.FinishedKept)))
			}
		}
	}
	marked := func(h *history) {
		h.changeVM(0, "db", nil)
		h.markVM(evacuated, "db", "descheduler")
	}
	for _, c := range []struct {
		name    string
		arrange func(*history)
		want    []string // of each decision that holds: its count, how long, whether it is capped
	}{
		{"20 s doubling to 320 s, and no further", func(h *history) { marked(h); fails(h, 1, 8) },
			[]string{"1 20s", "2 40s", "3 1m20s", "4 2m40s", "5 5m20s", "5 5m20s capped", "5 5m20s capped", "5 5m20s capped"}},
		{"a success resets the backoff", func(h *history) {
			marked(h)
			fails(h, 1, 2)
			h.createMigration(30*time.Minute, "c", "db", nil)
			h.runMigration(31*time.Minute, 32*time.Minute, "c", "n2")
			h.markVM(33*time.Minute, "db", "descheduler")
			fails(h, 4, 5)
		}, []string{"1 20s", "2 40s", "1 20s", "2 40s"}},
		{"five in a row after a success are not yet too many", func(h *history) {
			marked(h)
			h.createMigration(2*time.Minute, "s", "db", nil)
			h.runMigration(3*time.Minute, 4*time.Minute, "s", "n2")
			h.markVM(5*time.Minute, "db", "descheduler")
			fails(h, 1, 5)
		}, []string{"1 20s", "2 40s", "3 1m20s", "4 2m40s", "5 5m20s"}},
		{"one that was deleted is passed over", func(h *history) {
			marked(h)
			fails(h, 1, 2)
			h.createMigration(30*time.Minute, "c", "db", nil)
			h.requestDeletion(30*time.Minute+5*time.Second, "c")
			h.failMigration(30*time.Minute+6*time.Second, "c")
			h.removeMigration(30*time.Minute+7*time.Second, "c")
			fails(h, 4, 4)
		}, []string{"1 20s", "2 40s", "3 1m20s"}},
		{"those of users take places, and wait for nothing", func(h *history) {
			marked(h)
			fails(h, 1, 4)
			for i, uid := range []string{"x", "y"} {
				at := time.Duration(41+i) * time.Minute
				h.createMigration(at, uid, "db", byUser)
				h.failMigration(at+10*time.Second, uid)
			}
			h.removeMigration(43*time.Minute, "a")
			fails(h, 5, 5)
		}, []string{"1 20s", "2 40s", "3 1m20s", "4 2m40s", "3 1m20s"}},
		{"a success of a user does not reset the backoff", func(h *history) {
			marked(h)
			fails(h, 1, 2)
			h.createMigration(21*time.Minute, "x", "db", byUser)
			h.runMigration(22*time.Minute, 23*time.Minute, "x", "n2")
			h.markVM(24*time.Minute, "db", "descheduler")
			fails(h, 3, 3)
		}, []string{"1 20s", "2 40s", "3 1m20s"}},
		{"failures of last week count", func(h *history) {
			marked(h)
			fails(h, 1, 3)
			h.unmarkVM(31*time.Minute, "db")
			h.markVM(168*time.Hour, "db", "descheduler")
			h.createMigration(168*time.Hour+time.Minute, "d", "db", nil)
			h.failMigration(168*time.Hour+2*time.Minute, "d")
		}, []string{"1 20s", "2 40s", "3 1m20s", "4 2m40s"}},
		{"those deleted by hand do not", func(h *history) {
			marked(h)
			fails(h, 1, 3)
			h.removeMigration(31*time.Minute, "a")
			h.removeMigration(31*time.Minute, "b")
			fails(h, 4, 4)
		}, []string{"1 20s", "2 40s", "3 1m20s", "2 40s"}},
		{"another VMI of the name starts without a backoff", func(h *history) {
			marked(h)
			fails(h, 1, 3)
			h.restartVM(31*time.Minute, "db", "db-2")
			h.markVM(32*time.Minute, "db", "descheduler")
			fails(h, 4, 4)
		}, []string{"1 20s", "2 40s", "3 1m20s", "1 20s"}},
		{"nothing waits for an evacuation that ended", func(h *history) {
			marked(h)
			fails(h, 1, 1)
			h.createMigration(20*time.Minute, "b", "db", nil)
			h.unmarkVM(20*time.Minute+5*time.Second, "db")
			h.failMigration(20*time.Minute+10*time.Second, "b")
		}, []string{"1 20s"}},
		{"users are never held back", func(h *history) {
			h.changeVM(0, "db", nil)
			h.createMigration(time.Minute, "x", "db", byUser)
			h.failMigration(2*time.Minute, "x")
		}, nil},
		{"workload updates are", func(h *history) {
			h.changeVM(0, "db", nil)
			for i, uid := range []string{"u", "v"} {
				h.createMigration(time.Duration(i)*10*time.Minute, uid, "db", byUpdater)
				h.failMigration(time.Duration(i)*10*time.Minute+10*time.Second, uid)
			}
		}, []string{"1 20s", "2 40s"}},
		{"and count with those of evacuations", func(h *history) {
			marked(h)
			fails(h, 1, 1)
			h.createMigration(15*time.Minute, "u", "db", byUpdater)
			h.failMigration(16*time.Minute, "u")
			fails(h, 2, 2)
		}, []string{"1 20s", "2 40s", "3 1m20s"}},
		{"but not before v1.4", func(h *history) {
			h.applyKubeVirt(0, trail.KubeVirtSettings{Version: "v1.3.1"})
			h.changeVM(0, "db", nil)
			h.createMigration(time.Minute, "u", "db", byUpdater)
			h.failMigration(2*time.Minute, "u")
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			c.arrange(h)
			var got []string
			for _, d := range h.decisionsAt(200*time.Hour, "db", trail.LayerBackoff) {
				if d.Verdict != trail.VerdictHolds {
					continue
				}
				text := formatDigit(d.Count) + " " + trail.SpanText(time.Duration(d.Effective))
				if d.Capped {
					text += " capped"
				}
				got = append(got, text)
				require.Equal(t, d.DecidedAt.Add(time.Duration(d.Effective)), d.Until)
				require.Len(t, d.Inputs.Failed, d.Count)
				require.LessOrEqual(t, d.Effective, d.Cap)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func formatDigit(n int) string { return string(rune('0' + n)) }

// TestBackoffIsOver follows how backoffs end, and what the evacuation says of its next attempt during that time.
func TestBackoffIsOver(t *testing.T) {
	t.Parallel()
	h := newHistory()
	h.changeVM(0, "db", nil)
	h.markVM(time.Minute, "db", "descheduler")
	h.createMigration(61*time.Second, "a", "db", nil)
	h.failMigration(2*time.Minute, "a")
	next := func(at time.Duration) string {
		return formatShortTime(h.deriveAt(at).VM("shop", "db").Evacuations[0].NextRetryAt)
	}
	require.Equal(t, "02:20", next(2*time.Minute))
	require.Equal(t, day.Add(2*time.Minute+20*time.Second), h.deriveAt(2*time.Minute).VM("shop", "db").NextAt)
	require.Len(t, h.decisionsAt(2*time.Minute+19*time.Second, "db", trail.LayerBackoff), 1)
	d := h.decisionsAt(2*time.Minute+20*time.Second, "db", trail.LayerBackoff)
	require.Equal(t, trail.DecidedExpired, d[1].Reason)
	require.Equal(t, day.Add(140*time.Second), d[1].DecidedAt)
	h.createMigration(2*time.Minute+2*time.Second, "b", "db", nil)
	require.Equal(t, "02:20", next(2*time.Minute+3*time.Second), "the next attempt waits for it")
	h.advanceMigration(2*time.Minute+21*time.Second, "b", trail.PhaseScheduling)
	require.Equal(t, "-", next(2*time.Minute+22*time.Second), "and then no more")
	h.failMigration(3*time.Minute, "b")
	require.Equal(t, "03:40", next(3*time.Minute))
	require.Equal(t, "02:00", formatShortTime(h.deriveAt(3*time.Minute).VM("shop", "db").Evacuations[0].FirstFailedAt))
	h.unmarkVM(3*time.Minute+10*time.Second, "db")
	require.Equal(t, "-", next(3*time.Minute+10*time.Second), "nobody tries again")
	d = h.decisionsAt(time.Hour, "db", trail.LayerBackoff)
	require.Equal(t, trail.DecidedOver, d[len(d)-1].Reason)
	require.Equal(t, day.Add(190*time.Second), d[len(d)-1].DecidedAt)
	h.markVM(3*time.Minute+20*time.Second, "db", "descheduler")
	h.createMigration(3*time.Minute+21*time.Second, "c", "db", nil)
	e := h.deriveAt(3*time.Minute+30*time.Second).VM("shop", "db")
	require.Equal(t, trail.WaitBackoff, e.Migrations[2].WaitReason, "the failure before the cancellation holds back the next evacuation, too")
	require.Equal(t, "03:40", formatShortTime(e.Evacuations[1].NextRetryAt))
	h.advanceMigration(3*time.Minute+41*time.Second, "c", trail.PhaseScheduling)
	h.unmarkVM(4*time.Minute, "db")
	h.failMigration(4*time.Minute+10*time.Second, "c")
	h.markVM(4*time.Minute+20*time.Second, "db", "descheduler")
	h.createMigration(4*time.Minute+21*time.Second, "d", "db", nil)
	e = h.deriveAt(4*time.Minute+30*time.Second).VM("shop", "db")
	require.Equal(t, trail.WaitBackoff, e.Migrations[3].WaitReason, "so does one that failed between two evacuations")
	require.Equal(t, "05:30", formatShortTime(e.Evacuations[2].NextRetryAt))
	require.Zero(t, e.Evacuations[2].FailedAttempts)
	require.Zero(t, e.Evacuations[2].FirstFailedAt)
}

// TestBackoffOfTheDeleted deletes failed migrations: before the next attempt that ends its wait, and afterwards it changes
// nothing of what was.
func TestBackoffOfTheDeleted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		goes time.Duration
		want trail.WaitReason
	}{
		{"before the next one", 2*time.Minute + 5*time.Second, trail.WaitQueued},
		{"while it waits", 2*time.Minute + 15*time.Second, trail.WaitBackoff},
		{"long after", time.Hour, trail.WaitBackoff},
	} {
		h := newHistory()
		h.changeVM(0, "db", nil)
		h.markVM(time.Minute, "db", "descheduler")
		h.createMigration(time.Minute, "a", "db", nil)
		h.failMigration(2*time.Minute, "a")
		h.requestDeletion(c.goes, "a")
		h.removeMigration(c.goes+time.Second, "a")
		h.createMigration(2*time.Minute+8*time.Second, "b", "db", nil)
		h.advanceMigration(2*time.Minute+20*time.Second, "b", trail.PhaseScheduling)
		require.Equal(t, c.want, h.deriveAt(2*time.Hour).VM("shop", "db").Migrations[1].WaitReason, c.name)
	}
}
