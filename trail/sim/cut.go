package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// longestCut bounds how long a watch of Cut is broken.
const longestCut = time.Minute

// Cut returns the same history as it is seen through watches that break now and then, one or all at a time, for 5 s to a
// minute, and then list again: what happened during that time shows as one change, what came and went not at all. The audit log
// is whole. The truth stays what it is.
func (r Run) Cut() Run {
	d := newDice(r.Seed + 1<<40)
	cuts := cutsOf(d, r.Start, r.End)
	var out []sight
	for _, k := range watched {
		out = append(out, cutWatch(r.Observations, k.kind, k.source, cuts)...)
	}
	for _, o := range r.Observations {
		if kind, at := kindOf(o); kind == "" {
			out = append(out, sight{at, o})
		}
	}
	w := watcher{seen: out}
	r.Observations = w.listObservations()
	return r
}

// watched are the kinds that have a watch, in the order in which the collector starts them, and what their gaps are
// called.
var watched = []struct {
	kind   trail.ObjectKind
	source string
}{
	{trail.ObjectNode, "nodes"},
	{trail.ObjectPod, "pods"},
	{trail.ObjectVMI, "virtualmachineinstances"},
	{trail.ObjectMigration, "virtualmachineinstancemigrations"},
}

// cut is a time in which a watch is broken; an empty kind stands for all of them.
type cut struct {
	kind     trail.ObjectKind
	from, to time.Time
}

// cutsOf breaks something every few minutes, one thing after another: far more often than a cluster does.
func cutsOf(d dice, start, end time.Time) []cut {
	var out []cut
	at := start.Add(d.pickDuration(time.Minute, 5*time.Minute))
	for ; at.Before(end.Add(-2 * time.Minute)); at = at.Add(d.pickDuration(70*time.Second, 6*time.Minute)) {
		kind := pickOne(d, "", watched[d.IntN(len(watched))].kind)
		out = append(out, cut{kind, at, at.Add(d.pickDuration(5*time.Second, longestCut))})
	}
	return out
}

// cutWatch returns what one watch reports: all that happens while it is whole, and a list after each cut.
func cutWatch(all []tracker.Observation, kind trail.ObjectKind, source string, cuts []cut) []sight {
	var out []sight
	is := map[string]tracker.Observation{} // the objects that exist, as they are
	version := ""
	next := 0
	skip := func() {
		for next < len(cuts) && cuts[next].kind != "" && cuts[next].kind != kind {
			next++
		}
	}
	for _, o := range all {
		k, at := kindOf(o)
		if k != kind {
			continue
		}
		for skip(); next < len(cuts) && !at.Before(cuts[next].to); skip() {
			out = append(out, buildRelist(is, kind, source, version, cuts[next])...)
			next++
		}
		if next >= len(cuts) || at.Before(cuts[next].from) {
			out = append(out, sight{at, o})
		}
		if _, seen, meta, ok := describeObject(o); ok {
			version = meta.ResourceVersion
			is[meta.UID] = o
			if seen.Gone {
				delete(is, meta.UID)
			}
		}
	}
	for skip(); next < len(cuts); skip() {
		out = append(out, buildRelist(is, kind, source, version, cuts[next])...)
		next++
	}
	return out
}

// buildRelist is what a collector takes after a cut: the gap, every object that exists, and the end of the list.
func buildRelist(is map[string]tracker.Observation, kind trail.ObjectKind, source, version string, c cut) []sight {
	seen := tracker.Seen{At: c.to, Listed: true}
	out := []sight{{c.to, tracker.GapObservation{Seen: tracker.Seen{At: c.to}, GapReport: trail.GapReport{
		Source: source, Key: strconv.FormatInt(c.from.UnixNano(), 10), OpenedAt: c.from, ClosedAt: c.to, Cause: trail.ReasonRelisted,
	}}}}
	present := map[string]struct{}{}
	for _, uid := range slices.Sorted(maps.Keys(is)) {
		present[uid] = struct{}{}
		switch o := is[uid].(type) {
		case tracker.VMIObservation:
			o.Seen = seen
			out = append(out, sight{c.to, o})
		case tracker.PodObservation:
			o.Seen = seen
			out = append(out, sight{c.to, o})
		case tracker.MigrationObservation:
			o.Seen = seen
			out = append(out, sight{c.to, o})
		case tracker.NodeObservation:
			o.Seen = seen
			out = append(out, sight{c.to, o})
		}
	}
	return append(out, sight{c.to, tracker.ListObservation{Seen: seen, Kind: kind, ResourceVersion: version, Present: present}})
}

// describeObject returns what the observations of objects have in common.
func describeObject(o tracker.Observation) (trail.ObjectKind, tracker.Seen, tracker.Meta, bool) {
	switch o := o.(type) {
	case tracker.VMIObservation:
		return trail.ObjectVMI, o.Seen, o.Meta, true
	case tracker.PodObservation:
		return trail.ObjectPod, o.Seen, o.Meta, true
	case tracker.MigrationObservation:
		return trail.ObjectMigration, o.Seen, o.Meta, true
	case tracker.NodeObservation:
		return trail.ObjectNode, o.Seen, o.Meta, true
	default:
		return "", tracker.Seen{}, tracker.Meta{}, false
	}
}

// kindOf returns the watch that an observation comes from, empty where it comes from none, and its time.
func kindOf(o tracker.Observation) (trail.ObjectKind, time.Time) {
	switch x := o.(type) {
	case tracker.ListObservation:
		return x.Kind, x.At
	case tracker.RequestObservation:
		return "", x.At
	case tracker.KubeVirtObservation:
		return "", x.At
	case tracker.PolicyObservation:
		return "", x.At
	}
	kind, seen, _, _ := describeObject(o)
	return kind, seen.At
}
