package trail

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// CompareQuery asks how clusters fared, to compare them. Days are counted as a whole, in UTC.
type CompareQuery struct {
	Cluster  string    // empty: all
	KubeVirt string    // the beginning of the version that a cluster had on its last day, with or without v; empty: any
	Since    time.Time // its day is the first; zero: all days
	Until    time.Time // its day is the last; zero: up to today
}

// Matches reports whether a cluster runs a version that is asked for.
func (q CompareQuery) Matches(c ClusterComparison) bool {
	return q.KubeVirt == "" || strings.HasPrefix(strings.TrimPrefix(c.KubeVirt, "v"), strings.TrimPrefix(q.KubeVirt, "v"))
}

// ClusterComparison is what happened in a cluster on some days.
type ClusterComparison struct {
	Cluster  string    `json:"cluster"`
	Source   string    `json:"source,omitempty"`   // the evictrail that records it, of several that a hub asks; else empty
	KubeVirt string    `json:"kubevirt,omitempty"` // version on the last day; empty where it is not known
	Rules    string    `json:"rules,omitempty"`    // which rules follow from the versions and settings of the last day
	First    time.Time `json:"first"`              // day that was counted, at midnight UTC
	Last     time.Time `json:"last"`
	Days     int       `json:"days"`       // that were counted
	GapDays  int       `json:"gap_days"`   // of these, with a gap in the record: there counts may be too low
	Moved    int       `json:"moved"`      // migrations that ended and succeeded
	Failed   int       `json:"failed"`     // that failed
	Aborted  int       `json:"aborted"`    // that were aborted
	Needed   int       `json:"needed"`     // of which it is known that their source was over its threshold
	Needless int       `json:"not_needed"` // of which it is known that it was not
	Helped   int       `json:"helped"`     // that relieved their source
	Harmed   int       `json:"harmed"`     // that overloaded their target
	Met      int       `json:"objectives_met"`
	Missed   int       `json:"objectives_missed"`
	Loops    int       `json:"loops"`            // that were opened
	Dual     int       `json:"dual_retry_loops"` // of these

	// Failures are the failed ones by class; classes that nothing has are missing.
	Failures  map[FailureClass]int `json:"failures"`
	CountedAt time.Time            `json:"counted_at"`
}

// Ended returns how many migrations ended.
func (c ClusterComparison) Ended() int { return c.Moved + c.Failed + c.Aborted }

// FailedShare returns the share of failed migrations in those that succeeded or failed, from 0 to 1; false where none did.
func (c ClusterComparison) FailedShare() (float64, bool) { return shareOf(c.Failed, c.Moved) }

// NeedlessShare returns the share of migrations that were not needed in those of which that is known; false where it is of
// none.
func (c ClusterComparison) NeedlessShare() (float64, bool) { return shareOf(c.Needless, c.Needed) }

// MissedShare returns the share of evacuations that missed their objective; false where none had one.
func (c ClusterComparison) MissedShare() (float64, bool) { return shareOf(c.Missed, c.Met) }

// shareOf returns the share of some in these and the others; false where there are none.
func shareOf(these, others int) (float64, bool) {
	if these+others == 0 {
		return 0, false
	}
	return float64(these) / float64(these+others), true
}

// MostFrequent returns the class of most failures, of equal ones the first by name; empty where nothing failed.
func (c ClusterComparison) MostFrequent() (class FailureClass, count int) {
	for k, n := range c.Failures {
		if n > count || n == count && k < class {
			class, count = k, n
		}
	}
	return class, count
}

// ComparedDays returns the first and the last day that were counted of any of some clusters.
func ComparedDays(all []ClusterComparison) (first, last time.Time) {
	for i, c := range all {
		if i == 0 || c.First.Before(first) {
			first = c.First
		}
		last = maxTime(last, c.Last)
	}
	return first, last
}

// SortCompared sorts clusters: those with most dual retry loops first, then most loops, then the largest share of failed
// migrations.
func SortCompared(all []ClusterComparison) {
	failed := func(c ClusterComparison) float64 { share, _ := c.FailedShare(); return share }
	slices.SortStableFunc(all, func(a, b ClusterComparison) int {
		return cmp.Or(cmp.Compare(b.Dual, a.Dual), cmp.Compare(b.Loops, a.Loops), cmp.Compare(failed(b), failed(a)), cmp.Compare(a.Cluster, b.Cluster))
	})
}
