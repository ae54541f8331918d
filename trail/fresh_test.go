package trail_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// replica watches one VMI and returns what it has to report.
type replica struct {
	tracker *tracker.Tracker
	pending []trail.Fact
}

func (r *replica) observeMark(rv int, mark string, listed bool) {
	r.pending = append(r.pending, r.tracker.Observe(tracker.VMIObservation{
		Seen: tracker.Seen{At: time.Date(2026, 11, 21, 0, 0, rv, 0, time.UTC), Listed: listed},
		Meta: tracker.Meta{UID: "u1", Namespace: "shop", Name: "db", ResourceVersion: strconv.Itoa(rv)}, Node: "n1", Phase: "Running", Strategy: "LiveMigrate", Mark: mark,
	})...)
}

// listMarks returns the values of the mark in the order of their resourceVersions, with those versions.
func listMarks(facts []trail.Fact) (out []string) {
	facts = slices.Clone(facts)
	slices.SortStableFunc(facts, func(a, b trail.Fact) int {
		if trail.NewerVersion(b.Object.ResourceVersion, a.Object.ResourceVersion) {
			return -1
		}
		return 1
	})
	for _, f := range facts {
		if f.What == "mark" {
			out = append(out, f.Value)
		}
	}
	return out
}

func TestFresh(t *testing.T) {
	t.Parallel()
	two := func() (a, b *replica) {
		return &replica{tracker: tracker.New("c1")}, &replica{tracker: tracker.New("c1")}
	}
	store := func(stored []trail.Fact, r *replica) []trail.Fact {
		stored = append(stored, trail.Fresh(slices.Values(stored), r.pending)...)
		r.pending = nil
		return stored
	}
	t.Run("a list reports what a watch reported before", func(t *testing.T) {
		t.Parallel()
		watches, lists := two()
		for _, r := range []*replica{watches, lists} {
			r.observeMark(8, "", true)
		}
		watches.observeMark(10, "n1", false)
		stored := store(nil, watches)
		lists.observeMark(12, "n1", true)
		require.Len(t, lists.pending, len(stored))
		require.Equal(t, []string{"n1"}, listMarks(store(stored, lists)))
	})
	t.Run("a watch reports what a list reported before", func(t *testing.T) {
		t.Parallel()
		watches, lists := two()
		for _, r := range []*replica{watches, lists} {
			r.observeMark(8, "", true)
		}
		lists.observeMark(12, "n1", true)
		stored := store(nil, lists)
		watches.observeMark(10, "n1", false)
		require.Equal(t, []string{"n1"}, listMarks(store(stored, watches)))
	})
	t.Run("a list hides that there was more between", func(t *testing.T) {
		t.Parallel()
		watches, lists := two()
		for _, r := range []*replica{watches, lists} {
			r.observeMark(8, "", true)
		}
		lists.observeMark(14, "n1", true)
		stored := store(nil, lists)
		watches.observeMark(10, "n1", false)
		watches.observeMark(12, "", false)
		watches.observeMark(14, "n1", false)
		require.Equal(t, []string{"n1", "", "n1"}, listMarks(store(stored, watches)))
	})
	t.Run("two watches report the same, and again", func(t *testing.T) {
		t.Parallel()
		a, b := two()
		var stored []trail.Fact
		for _, r := range []*replica{a, b} {
			r.observeMark(8, "", true)
			for rv, mark := range []string{"n1", "", "n1", ""} {
				r.observeMark(10+rv, mark, false)
			}
			stored = store(stored, r)
			require.Equal(t, []string{"n1", "", "n1", ""}, listMarks(stored))
		}
	})
}

// TestFreshOfManyReplicas has replicas watch an object whose mark comes and goes; each is cut off at times and lists again. Stored
// together, what they report is what one that saw everything reports.
func TestFreshOfManyReplicas(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		dice := rand.New(rand.NewPCG(seed, 1))
		var history []string
		for range 30 {
			history = append(history, []string{"", "n1", "n2"}[dice.IntN(3)])
		}
		all := &replica{tracker: tracker.New("c1")}
		all.observeMark(9, "", true)
		for i, mark := range history {
			all.observeMark(10+i, mark, false)
		}
		want := listMarks(all.pending)

		replicas := []*replica{{tracker: tracker.New("c1")}, {tracker: tracker.New("c1")}}
		away := []int{0, 0}
		var stored []trail.Fact
		for _, r := range replicas {
			r.observeMark(9, "", true)
		}
		for i, mark := range history {
			for j, r := range replicas {
				if away[j] > 0 && away[1-j] == 0 { // one of them always watches
					if away[j]--; away[j] == 0 {
						r.observeMark(10+i, mark, true)
					}
					continue
				}
				r.observeMark(10+i, mark, false)
				if dice.IntN(6) == 0 && away[1-j] == 0 {
					away[j] = 1 + dice.IntN(5)
				}
			}
			first := dice.IntN(2)
			for _, r := range []*replica{replicas[first], replicas[1-first]} {
				stored = append(stored, trail.Fresh(slices.Values(stored), r.pending)...)
				r.pending = nil
			}
		}
		require.Equal(t, want, listMarks(stored), "seed %d", seed)
	}
}

// TestFreshCounts has two replicas read the same counter, each when it likes: together they report as much as it grew.
func TestFreshCounts(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, 2))
		replicas := []*tracker.Tracker{tracker.New("c1"), tracker.New("c1")}
		var stored []trail.Fact
		pending := [][]trail.Fact{nil, nil}
		count, starts := 0, 0
		for second := range 60 {
			count += dice.IntN(3)
			for i, tr := range replicas {
				if dice.IntN(3) > 0 {
					continue
				}
				pending[i] = append(pending[i], tr.Observe(tracker.ScrapeObservation{
					Seen: tracker.Seen{At: began.Add(time.Duration(second) * time.Second)}, Target: "descheduler",
					StartedAt: began.Add(-time.Hour + time.Duration(dice.IntN(1000))*time.Millisecond), Plugin: true,
					Blocks: []tracker.BlockCount{{Reason: "cooldown", Node: "n1", Namespace: "shop", Count: float64(count)}},
				})...)
			}
			if i := dice.IntN(2); dice.IntN(2) == 0 || second == 59 {
				for _, i := range []int{i, 1 - i} {
					stored = append(stored, trail.Fresh(slices.Values(stored), pending[i])...)
					pending[i] = nil
				}
			}
		}
		increase, most := int64(0), int64(0)
		for _, f := range stored {
			if d, ok := f.Detail.(*trail.BlocksDetail); ok {
				require.Positive(t, d.Increase)
				increase, most = increase+d.Increase, max(most, d.Count)
			} else if f.Kind == trail.KindDeschedulerStarted {
				starts++
			}
		}
		require.Equal(t, most, increase, "seed %d", seed)
		require.Equal(t, 1, starts, "seed %d", seed)
	}
}
