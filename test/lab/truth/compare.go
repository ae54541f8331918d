package truth

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// near is how far a time that evictrail has may be from the time at which the Witness saw the same: both watch, and times in objects have whole seconds.
const near = 3 * time.Second

// late is how long after its backoff KubeVirt may take to begin the next attempt: its controllers work when something changes.
const late = 90 * time.Second

// Report says how a comparison ended.
type Report struct {
	Compared    int      // facts of which there was something to compare
	Differences []string // one line each, sorted
}

// Compare compares what evictrail recorded with what the components say, and what evictrail says of backoffs with when KubeVirt began the next attempt.
func Compare(seen, recorded History) Report {
	r := &comparison{}
	compareLists(r, "eviction request", seen.Requests, recorded.Requests, requestKey, func(q Request) time.Time { return q.At }, compareRequest)
	compareLists(r, "mark", seen.Marks, recorded.Marks, func(m Mark) string { return m.VMI + " on " + m.Node }, func(m Mark) time.Time { return m.From }, compareMark)
	compareLists(r, "migration", seen.Migrations, recorded.Migrations, func(m Migration) string { return m.VMI + " " + m.UID }, func(Migration) time.Time { return time.Time{} }, compareMigration)
	compareLists(r, "stay", seen.Stays, recorded.Stays, func(s Stay) string { return s.VMI + " " + s.UID }, func(s Stay) time.Time { return s.From }, compareStay)
	compareLists(r, "upgrade wave", seen.Waves, recorded.Waves, func(w Wave) string { return "to " + w.To }, func(Wave) time.Time { return time.Time{} }, compareWave)
	compareBackoffs(r, seen.Migrations, recorded.Backoffs)
	slices.Sort(r.Differences)
	return r.Report
}

// comparison is a Report that is being made.
type comparison struct{ Report }

func (r *comparison) addDifference(format string, args ...any) {
	r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
}

// compareTimes compares two times; what says of what they are.
func (r *comparison) compareTimes(what string, seen, recorded time.Time) {
	if isOpen(seen) != isOpen(recorded) || !isOpen(seen) && seen.Sub(recorded).Abs() > near {
		r.addDifference("%s: seen %s, recorded %s", what, formatClock(seen), formatClock(recorded))
	}
}

func formatClock(at time.Time) string {
	if isOpen(at) {
		return "never"
	}
	return at.UTC().Format("15:04:05.000")
}

// compareLists compares two lists of facts: of the same key as many, in the same order of time, each alike.
func compareLists[T any](r *comparison, what string, seen, recorded []T, key func(T) string, at func(T) time.Time, compare func(r *comparison, what string, seen, recorded T)) {
	group := func(all []T) map[string][]T {
		out := map[string][]T{}
		for _, one := range slices.SortedStableFunc(slices.Values(all), func(a, b T) int { return at(a).Compare(at(b)) }) {
			out[key(one)] = append(out[key(one)], one)
		}
		return out
	}
	wanted, had := group(seen), group(recorded)
	both := maps.Clone(wanted)
	maps.Copy(both, had)
	for _, k := range slices.Sorted(maps.Keys(both)) {
		r.Compared += len(wanted[k])
		if len(wanted[k]) != len(had[k]) {
			r.addDifference("%s %s: seen %d times, recorded %d times", what, k, len(wanted[k]), len(had[k]))
		}
		for i := range min(len(wanted[k]), len(had[k])) {
			compare(r, what+" "+k, wanted[k][i], had[k][i])
		}
	}
}

func requestKey(q Request) string { return fmt.Sprintf("for %s/%s by %s", q.Namespace, q.Pod, q.User) }

func compareRequest(r *comparison, what string, seen, recorded Request) {
	r.compareTimes(what, seen.At, recorded.At)
	if seen.Code != recorded.Code {
		r.addDifference("%s at %s: answered %d, recorded %d", what, formatClock(seen.At), seen.Code, recorded.Code)
	}
}

func compareMark(r *comparison, what string, seen, recorded Mark) {
	r.compareTimes("beginning of the "+what, seen.From, recorded.From)
	r.compareTimes("end of the "+what, seen.Until, recorded.Until)
}

func compareMigration(r *comparison, what string, seen, recorded Migration) {
	for _, field := range []struct{ name, seen, recorded string }{
		{"source node", seen.Source, recorded.Source},
		{"target node", seen.Target, recorded.Target},
		{"phase", seen.Phase, recorded.Phase},
		{"failure", strings.TrimSpace(seen.Failure), strings.TrimSpace(recorded.Failure)},
	} {
		if field.seen != "" && field.seen != field.recorded {
			r.addDifference("%s: %s %q, recorded %q", what, field.name, field.seen, field.recorded)
		}
	}
	if seen.Update && !recorded.Update {
		r.addDifference("%s: KubeVirt made it to update the VMI, not recorded", what)
	}
	for _, phase := range slices.Sorted(maps.Keys(seen.Phases)) {
		r.Compared++
		r.compareTimes(what+": "+phase, seen.Phases[phase], recorded.Phases[phase])
	}
}

func compareStay(r *comparison, what string, seen, recorded Stay) {
	if seen.Node != recorded.Node {
		r.addDifference("%s from %s: on %s, recorded %s", what, formatClock(seen.From), seen.Node, recorded.Node)
		return
	}
	r.compareTimes("beginning of the "+what, seen.From, recorded.From)
	r.compareTimes("end of the "+what, seen.Until, recorded.Until)
}

func compareWave(r *comparison, what string, seen, recorded Wave) {
	if seen != recorded {
		r.addDifference("%s: seen %+v, recorded %+v", what, seen, recorded)
	}
}

// compareBackoffs compares how long KubeVirt is said to wait with when its next attempt for the VMI left Pending: not before, and not much later.
func compareBackoffs(r *comparison, attempts []Migration, backoffs []Backoff) {
	byVMI := map[string][]time.Time{}
	for _, m := range attempts {
		if began, has := m.Phases["Scheduling"]; has {
			byVMI[m.VMI] = append(byVMI[m.VMI], began)
		}
	}
	for _, b := range slices.SortedFunc(slices.Values(backoffs), func(a, b Backoff) int { return cmp.Or(cmp.Compare(a.VMI, b.VMI), a.From.Compare(b.From)) }) {
		next := slices.DeleteFunc(slices.SortedFunc(slices.Values(byVMI[b.VMI]), time.Time.Compare), func(at time.Time) bool { return !at.After(b.From) })
		if len(next) == 0 {
			continue // it was not tried again
		}
		r.Compared++
		if wait := next[0].Sub(b.Until); wait < -near || wait > late {
			r.addDifference("backoff of %s after %s: until %s, KubeVirt tried again at %s", b.VMI, formatClock(b.From), formatClock(b.Until), formatClock(next[0]))
		}
	}
}
