package tracker

import (
	"strconv"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// ScrapeObservation is what the metrics of a descheduler said at one moment.
type ScrapeObservation struct {
	Seen
	Target    string    // names the descheduler; not its address, which may change
	StartedAt time.Time // process_start_time_seconds; never zero
	Version   string    // descheduler_build_info, DeschedulerVersion; empty where it does not say
	Plugin    bool      // KubevirtMigrationAware is at work: its histogram of cooldowns is there, also while it is empty
	Blocks    []BlockCount
}

// BlockCount is one series of the counter of evictions that KubevirtMigrationAware held back since its process was
// started. It counts evaluations: one VM in its cooldown may add one in every cycle.
//
// Source: kubevirt-descheduler-plugins plugins/kubevirtmigrationaware/metrics.go, descheduler_kubevirt_eviction_blocks_total.
type BlockCount struct {
	Reason    string
	Node      string
	Namespace string // of the pod
	Count     float64
}

// The aspects of a descheduler that are recorded.
const (
	whatProcess = "process"
	whatBlocks  = "blocks/" // and reason, node and namespace
)

// observeScrape records the starts of the descheduler and the growth of its counters. A counter belongs to a process:
// in a younger one than was recorded it has grown from zero, and what an older one says, or a smaller count of the same, was
// recorded before: a scrape that is seen again adds nothing.
//
// A scrape has no resourceVersion. In its place stands our time of it in microseconds of Unix, never less than the last
// one: it says after a restart since when the counters may have grown, and is no part of any identity.
func (t *Tracker) observeScrape(o ScrapeObservation) []trail.Fact {
	key := objectKey{trail.ObjectDescheduler, o.Target}
	known := t.objects[key]
	if known == nil {
		known = &object{}
		t.objects[key] = known
	}
	known.subject, known.namespace = trail.Subject{Kind: trail.SubjectConfig, Name: string(trail.ObjectPolicy)}, ""
	before, _ := strconv.ParseInt(known.rv, 10, 64)
	known.rv = strconv.FormatInt(max(o.At.UnixMicro(), before), 10)
	r := &recorder{t: t, object: known, seen: o.Seen, id: trail.Object{Kind: trail.ObjectDescheduler, UID: o.Target, ResourceVersion: known.rv}}
	start := r.recordProcess(o)
	since := start
	if scraped := time.UnixMicro(before).UTC(); scraped.After(start) && scraped.Before(o.At) {
		since = scraped
	}
	for _, b := range o.Blocks {
		r.recordBlocks(o, b, start, since)
	}
	return r.facts
}

// recordProcess records the start of a process younger than the one recorded. It returns the start as it was first recorded.
func (r *recorder) recordProcess(o ScrapeObservation) time.Time {
	start := o.StartedAt.UTC().Truncate(trail.TimeResolution)
	value, _ := r.object.aspectValue(whatProcess)
	last := trail.ParseProcessCount(value).StartedAt // zero before the first
	switch {
	case trail.SameProcess(start, last):
		return last
	case start.Before(last):
		return start
	}
	value = trail.ProcessCount{StartedAt: start}.String()
	r.object.setAspect(whatProcess, value)
	r.recordOnce(trail.KindDeschedulerStarted, trail.ReasonStarted, whatProcess, value).withEvidence("process_start_time_seconds").
		withTime(clockTime{start, trail.ClockEmitter}).withDetail(&trail.DeschedulerDetail{Target: o.Target, Version: o.Version, Plugin: o.Plugin})
	return start
}

// recordBlocks records the growth of one counter. Its value is the start of its process and the count.
func (r *recorder) recordBlocks(o ScrapeObservation, b BlockCount, start, since time.Time) {
	what := whatBlocks + strings.Join([]string{b.Reason, b.Node, b.Namespace}, "/")
	count, from := int64(b.Count), int64(0)
	switch last := r.lastBlocks(what); {
	case trail.SameProcess(start, last.StartedAt):
		start, from = last.StartedAt, last.Count
	case start.Before(last.StartedAt):
		return
	}
	if count <= from {
		return
	}
	value := trail.ProcessCount{StartedAt: start, Count: count}.String()
	r.object.setAspect(what, value)
	f := r.recordOnce(trail.KindBlocksObserved, trail.BlockReason(b.Reason), what, value).withEvidence("descheduler_kubevirt_eviction_blocks_total").
		withDetail(&trail.BlocksDetail{Target: o.Target, Reason: b.Reason, Increase: count - from, Count: count, Since: since})
	f.Subject, f.Node, f.Namespace = trail.Subject{Kind: trail.SubjectNode, Name: b.Node}, b.Node, b.Namespace
}

// lastBlocks returns the process and the count that were last recorded of a counter, zero where none were.
func (r *recorder) lastBlocks(what string) trail.ProcessCount {
	value, _ := r.object.aspectValue(what)
	return trail.ParseProcessCount(value)
}
