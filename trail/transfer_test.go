package trail_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestTransferIsDue has a migration asked about once it is over and its samples are there.
func TestTransferIsDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		running time.Duration // from noon; negative: no data moved
		ended   time.Duration // zero: it goes on
		now     time.Duration
		last    bool
		want    bool
	}{
		{name: "settled", running: time.Second, ended: time.Minute, now: time.Minute + trail.LoadSettles, want: true},
		{name: "not settled", running: time.Second, ended: time.Minute, now: time.Minute + trail.LoadSettles - 1},
		{name: "a recording ends", running: time.Second, ended: time.Minute, now: time.Minute, last: true, want: true},
		{name: "it goes on", running: time.Second, now: time.Hour},
		{name: "it goes on when a recording ends", running: time.Second, now: time.Hour, last: true},
		{name: "no data moved", running: -1, ended: time.Minute, now: time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := trail.Moved{Migration: trail.Migration{UID: "m"}}
			if c.running >= 0 {
				m.RunningAt = addToNoon(c.running)
			}
			if c.ended > 0 {
				m.FinishedAt = addToNoon(c.ended)
			}
			span, due := m.Transfer(addToNoon(c.now), c.last)
			require.Equal(t, c.want, due)
			if due {
				require.Equal(t, []time.Time{addToNoon(c.running), addToNoon(c.ended)}, []time.Time{span.From, span.To})
			}
		})
	}
}

// newPoint returns a sample so long after noon.
func newPoint(after time.Duration, value float64) trail.LoadPoint {
	return trail.LoadPoint{At: addToNoon(after), Value: value}
}

// TestTransfersRead summarizes the samples of one migration: those within its time, of its VM.
func TestTransfersRead(t *testing.T) {
	t.Parallel()
	of := func(vmi, metric string) trail.TransferKey {
		return trail.TransferKey{Namespace: "shop", VMI: vmi, Metric: metric}
	}
	all := trail.Transfers{
		Metrics: []trail.LoadMetric{
			{Name: trail.TransferProcessed}, {Name: trail.TransferRemaining}, {Name: trail.TransferDirtyRate},
			{Name: trail.TransferRate}, {Name: trail.TransferPause, Lack: trail.LackRefused},
		},
		Points: map[trail.TransferKey][]trail.LoadPoint{
			of("db", trail.TransferProcessed): {newPoint(-1, 9000), newPoint(0, 100), newPoint(15*time.Second, 300), newPoint(30*time.Second, 290), newPoint(31*time.Second, 9000)},
			of("db", trail.TransferRemaining): {newPoint(0, 200), newPoint(15*time.Second, 10), newPoint(30*time.Second, 20)},
			of("db", trail.TransferDirtyRate): {newPoint(15*time.Second, 0), newPoint(30*time.Second, 60)},
			of("web", trail.TransferRate):     {newPoint(15*time.Second, 70)},
		},
	}
	d := all.Read(trail.TransferSpan{Namespace: "shop", VMI: "db", From: noon, To: addToNoon(30 * time.Second)})
	require.Equal(t, &trail.TransferDetail{Samples: 3, Readings: []trail.TransferReading{
		{Metric: trail.TransferProcessed, Value: new(300.0)},
		{Metric: trail.TransferRemaining, Value: new(20.0)},
		{Metric: trail.TransferDirtyRate, Value: new(30.0)},
		{Metric: trail.TransferRate, Lack: trail.LackNoSample},
		{Metric: trail.TransferPause, Lack: trail.LackRefused},
	}}, d)
	require.True(t, d.Known())
	require.False(t, all.Read(trail.TransferSpan{Namespace: "shop", VMI: "db", From: addToNoon(time.Hour), To: addToNoon(2 * time.Hour)}).Known())
}

// TestTransferIsOneFact observes what a migration copied twice, as two replicas or a restart do, with other samples.
func TestTransferIsOneFact(t *testing.T) {
	t.Parallel()
	o := tracker.TransferObservation{
		Seen: tracker.Seen{At: addToNoon(2 * time.Minute)}, Of: trail.TransferSpan{Namespace: "shop", VMI: "db", MigrationUID: "m", From: noon, To: addToNoon(time.Minute)},
		Detail: &trail.TransferDetail{Origin: trail.OriginPrometheus, Samples: 1, Readings: []trail.TransferReading{{Metric: trail.TransferProcessed, Value: new(1.0)}}},
	}
	first := tracker.New("c").Observe(o)
	require.Len(t, first, 1)
	require.Equal(t, trail.ReasonSampled, first[0].Reason)
	require.Equal(t, addToNoon(time.Minute), first[0].OccurredAt)
	again := o
	again.At, again.Detail = addToNoon(time.Hour), &trail.TransferDetail{Origin: trail.OriginPrometheus}
	second := tracker.New("c").Observe(again)
	require.Equal(t, first[0].ID, second[0].ID)
	require.Equal(t, trail.ReasonNotSampled, second[0].Reason)
	again.Of.MigrationUID = "other"
	require.NotEqual(t, first[0].ID, tracker.New("c").Observe(again)[0].ID)
}

// TestWhyWhatWasCopied has migrations end in each way in which a transfer does, with and without samples of it.
func TestWhyWhatWasCopied(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	samples := func(values map[string]float64) *trail.TransferDetail {
		d := &trail.TransferDetail{Origin: trail.OriginPrometheus, Samples: 2}
		for _, metric := range []string{trail.TransferProcessed, trail.TransferRemaining, trail.TransferDirtyRate, trail.TransferRate, trail.TransferPause} {
			r := trail.TransferReading{Metric: metric, Lack: trail.LackNoSample}
			if v, is := values[metric]; is {
				r.Value, r.Lack = &v, ""
			}
			d.Readings = append(d.Readings, r)
		}
		return d
	}
	for _, c := range []struct {
		name     string
		to       string // where it ends; empty: it fails
		mode     string
		seenLive bool // the mode was seen while data moved
		detail   *trail.TransferDetail
		want     trail.Convergence
		lack     trail.LoadLack
		text     string
	}{
		{name: "as usual, nobody asked", to: "n2", want: trail.Converged},
		{
			name: "as usual, with samples", to: "n2", want: trail.Converged,
			detail: samples(map[string]float64{trail.TransferProcessed: 3 * gib, trail.TransferRate: 90 << 20, trail.TransferDirtyRate: 0}),
			text:   "It copied 3 GiB of a guest with 2 GiB of memory, 90 MiB a second, while the guest wrote 0 B a second.",
		},
		{name: "too short for a scrape", to: "n2", want: trail.Converged, detail: samples(nil), lack: trail.LackNoSample},
		{
			name: "the pause is known", to: "n2", want: trail.Converged, detail: samples(map[string]float64{trail.TransferProcessed: gib, trail.TransferPause: 0.0854}),
			text: "It copied 1 GiB of a guest with 2 GiB of memory. The guest stood still for 0.0854 s.",
		},
		{
			name: "it gave up", want: trail.NotConverged, detail: samples(map[string]float64{trail.TransferProcessed: 40 * gib, trail.TransferRemaining: 1.5 * gib}),
			text: "Attempt 1 copied 40 GiB of a guest with 2 GiB of memory. 1.5 GiB were left when KubeVirt gave up.",
		},
		{name: "post-copy", to: "n2", mode: "PostCopy", seenLive: true, want: trail.ConvergedPostCopy, text: "KubeVirt switched to post-copy at about 2026-11-21 00:01:20Z."},
		{name: "post-copy, seen at its end", to: "n2", mode: "PostCopy", want: trail.ConvergedPostCopy, text: "KubeVirt switched to post-copy."},
		{name: "paused", to: "n2", mode: "Paused", want: trail.ConvergedPaused, text: "KubeVirt stopped the guest until all was copied."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			h.applyKubeVirt(0, trail.KubeVirtSettings{Version: "v1.8.4", MigrationNetwork: "migrations"})
			h.changeVM(time.Second, "db", nil)
			h.markVM(time.Minute, "db", "descheduler")
			h.createMigration(time.Minute, "m", "db", nil)
			if c.seenLive {
				h.advanceMigration(70*time.Second, "m", trail.PhaseScheduling, trail.PhaseRunning)
				h.changeVM(80*time.Second, "db", func(v *tracker.VMIObservation) {
					v.State = &tracker.MigrationState{UID: "m", SourceNode: "n1", TargetNode: "n2", StartedAt: day.Add(70 * time.Second), Mode: c.mode, AllowPostCopy: true}
				})
			}
			h.runMigration(90*time.Second, 2*time.Minute, "m", c.to)
			h.changeVM(125*time.Second, "db", func(v *tracker.VMIObservation) {
				s := *v.State
				s.Mode, s.GuestMemory = c.mode, 2*gib
				v.State = &s
			})
			if c.detail != nil {
				span := trail.TransferSpan{Namespace: "shop", VMI: "db", VMIUID: "db-1", Migration: "m-m", MigrationUID: "m", From: day.Add(90 * time.Second), To: day.Add(2 * time.Minute)}
				h.observe(tracker.TransferObservation{Seen: tracker.Seen{At: day.Add(4 * time.Minute)}, Of: span, Detail: c.detail})
			}
			seen := h.deriveAt(5 * time.Minute)
			m := seen.VM("shop", "db").Migrations[0]
			require.Equal(t, c.want, m.Convergence)
			require.Equal(t, c.lack, m.TransferLack)
			require.Equal(t, int64(2*gib), m.GuestMemory)
			require.Equal(t, "migrations", m.Network)
			require.Equal(t, c.seenLive, m.AllowPostCopy)
			text := seen.Why("shop", "db").Paragraph
			require.Contains(t, text, c.text)
			if c.text == "" {
				require.NotContains(t, text, "copied")
				require.NotContains(t, text, "post-copy")
			}
		})
	}
}
