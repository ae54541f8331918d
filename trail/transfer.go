package trail

import (
	"fmt"
	"strings"
	"time"
)

// The metrics of what a migration copies, as columns of view migrations name them.
const (
	TransferProcessed = "data_processed"       // bytes that were copied, those that the guest wrote again included
	TransferRemaining = "data_remaining"       // bytes that were left to copy
	TransferDirtyRate = "dirty_memory_rate"    // bytes a second that the guest wrote
	TransferRate      = "memory_transfer_rate" // bytes a second that were copied
	TransferPause     = "guest_pause"          // seconds for which the guest stood still at the end
)

// TransferSpan is when a migration copied: what a source is asked about it.
type TransferSpan struct {
	Namespace, VMI, VMIUID  string
	Migration, MigrationUID string
	SourceNode              string
	From, To                time.Time // UTC
}

// Span returns from when to when samples can matter.
func (s TransferSpan) Span() (from, to time.Time) { return s.From, s.To }

// Migrates returns the UID of the migration.
func (s TransferSpan) Migrates() string { return s.MigrationUID }

// WhatTransfer is the aspect of the fact about what a migration copied.
const WhatTransfer = "transfer"

// Transfer returns when the migration copied, once that is over and its samples are there; false before, and where no data moved.
func (m Moved) Transfer(now time.Time, last bool) (TransferSpan, bool) {
	s := TransferSpan{
		Namespace: m.Namespace, VMI: m.VMI, VMIUID: m.VMIUID, Migration: m.Name, MigrationUID: m.UID, SourceNode: m.SourceNode,
		From: m.RunningAt, To: m.bestEndTime(),
	}
	if s.From.IsZero() || s.To.IsZero() || s.To.After(now) {
		return s, false
	}
	return s, last || !s.To.Add(LoadSettles).After(now)
}

// HasTransfer reports whether an origin has reported what the migration copied.
func (m Moved) HasTransfer(origin LoadOrigin) bool {
	_, has := m.Looked[WhatTransfer+" "+string(origin)]
	return has
}

// Transfers is what an origin reports about the migrations of a time.
type Transfers struct {
	Metrics []LoadMetric // that it was asked for
	Points  map[TransferKey][]LoadPoint
}

// TransferKey names the series of a metric of a VM that moves.
type TransferKey struct{ Namespace, VMI, Metric string }

// TransferReading is one metric of one migration.
type TransferReading struct {
	Metric string   `json:"metric"`
	Value  *float64 `json:"value,omitempty"` // nil where it is not known
	Lack   LoadLack `json:"lack,omitempty"`  // why not
}

// TransferDetail is what a migration copied, as one origin reports it after its end.
type TransferDetail struct {
	Origin   LoadOrigin        `json:"origin"`
	Samples  int               `json:"samples"` // times at which anything was measured
	Readings []TransferReading `json:"readings"`
}

func (*TransferDetail) isDetail() {}

// Known reports whether any value is known.
func (d *TransferDetail) Known() bool { return d.Samples > 0 }

// Read summarizes the samples of a migration: how much was copied at the most and left at last, how fast on average.
func (t Transfers) Read(s TransferSpan) *TransferDetail {
	d := &TransferDetail{}
	times := map[time.Time]bool{}
	for _, metric := range t.Metrics {
		r := TransferReading{Metric: metric.Name, Lack: metric.Lack}
		var most, sum, newest float64
		n := 0
		for _, p := range t.Points[TransferKey{s.Namespace, s.VMI, metric.Name}] {
			if p.At.Before(s.From) || p.At.After(s.To) {
				continue
			}
			most, sum, newest = max(most, p.Value), sum+p.Value, p.Value
			times[p.At] = true
			n++
		}
		switch {
		case n == 0 && r.Lack == "":
			r.Lack = LackNoSample
		case n == 0:
		case metric.Name == TransferRemaining:
			r.Value, r.Lack = &newest, ""
		case metric.Name == TransferProcessed, metric.Name == TransferPause:
			r.Value, r.Lack = &most, ""
		default:
			mean := sum / float64(n)
			r.Value, r.Lack = &mean, ""
		}
		d.Readings = append(d.Readings, r)
	}
	d.Samples = len(times)
	return d
}

// Convergence is whether copying kept up with a guest that goes on writing; empty where that did not show.
type Convergence string

// The ways in which a transfer ends.
const (
	Converged         Convergence = "converged"     // what was left became so little that the guest moved
	ConvergedPostCopy Convergence = "post_copy"     // KubeVirt moved the guest before its memory
	ConvergedPaused   Convergence = "paused"        // KubeVirt stopped the guest, so that it writes no more
	NotConverged      Convergence = "not_converged" // KubeVirt gave up
)

// Convergences lists the ways in which a transfer ends.
func Convergences() []Convergence { return convergenceLabels.values() }

// modePaused is the mode of a migration whose guest KubeVirt stopped.
//
// Source: kubevirt staging/src/kubevirt.io/api/core/v1/types.go, MigrationPaused.
const modePaused = "Paused"

// summarizeTransfer fills in what the migration copied. Its failure is classified by then.
func (m *migration) summarizeTransfer(env *Env) {
	m.GuestMemory, m.Network = m.result.GuestMemory, env.kubevirtSettingsAt(m.CreatedAt).MigrationNetwork
	switch {
	case m.Mode == modePostCopy:
		m.Convergence = ConvergedPostCopy
	case m.Mode == modePaused:
		m.Convergence = ConvergedPaused
	case m.Outcome == OutcomeSucceeded && !m.RunningAt.IsZero():
		m.Convergence = Converged
	case m.FailureReason == CauseNoProgress || m.FailureReason == CauseTooSlow || m.FailureReason == CauseMonitorAbort:
		m.Convergence = NotConverged
	}
	if m.transfer == nil {
		return
	}
	for _, r := range m.transfer.Readings {
		if r.Metric == TransferProcessed {
			m.TransferLack = r.Lack
		}
		if r.Value == nil {
			continue
		}
		whole := int64(*r.Value)
		switch r.Metric {
		case TransferProcessed:
			m.DataProcessed = &whole
		case TransferRemaining:
			m.DataRemaining = &whole
		case TransferDirtyRate:
			m.DirtyMemoryRate = &whole
		case TransferRate:
			m.MemoryTransferRate = &whole
		case TransferPause:
			m.GuestPause = r.Value
		}
	}
}

// describeTransfer says what a migration copied, and how that ended; empty where nothing of it is known, or all was as usual. The
// subject begins the sentence: It, or Attempt 3.
func (m Migration) describeTransfer(subject string) string {
	var text []string
	if m.DataProcessed != nil {
		copied := subject + " copied " + FormatBytes(*m.DataProcessed)
		if m.GuestMemory > 0 {
			copied += fmt.Sprintf(" of a guest with %s of memory", FormatBytes(m.GuestMemory))
		}
		if m.DirtyMemoryRate != nil && m.MemoryTransferRate != nil {
			copied += fmt.Sprintf(", %s a second, while the guest wrote %s a second", FormatBytes(*m.MemoryTransferRate), FormatBytes(*m.DirtyMemoryRate))
		}
		text = append(text, copied+".")
	}
	switch {
	case m.Convergence == NotConverged && m.DataRemaining != nil:
		text = append(text, FormatBytes(*m.DataRemaining)+" were left when KubeVirt gave up.")
	case m.Convergence == ConvergedPostCopy && !m.PostCopyAt.IsZero():
		text = append(text, fmt.Sprintf("KubeVirt switched to post-copy at about %s.", FormatClock(m.PostCopyAt)))
	case m.Convergence == ConvergedPostCopy:
		text = append(text, "KubeVirt switched to post-copy.")
	case m.Convergence == ConvergedPaused:
		text = append(text, "KubeVirt stopped the guest until all was copied.")
	}
	if m.GuestPause != nil {
		text = append(text, fmt.Sprintf("The guest stood still for %.3g s.", *m.GuestPause))
	}
	return strings.Join(text, " ")
}

// FormatBytes writes a size with three digits: 512 B, 1.5 MiB, 40 GiB.
func FormatBytes(n int64) string {
	value, unit := float64(n), 0
	for ; value >= 1000 && unit < 4; unit++ {
		value /= 1024
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", value, []string{"", "KiB", "MiB", "GiB", "TiB"}[unit])
}
