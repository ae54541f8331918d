package retention

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/evictrail/evictrail/store/pg"
)

// Policy says how long what is recorded is kept at least. Zero: for ever.
type Policy struct {
	Facts time.Duration // facts; they are dropped by whole months, so that some are kept for a month longer
	Rows  time.Duration // derived rows, from the end of what they are about on

	Requesters time.Duration // names of people who asked; they are erased. Zero: as long as the rest
}

// LeastFacts is the shortest time for which facts are kept.
const LeastFacts = 7 * 24 * time.Hour

// LeastNames is the shortest time for which names of people are kept, where they are erased.
const LeastNames = 24 * time.Hour

// Validate says what makes a Policy unusable.
func (r Policy) Validate() error {
	switch {
	case r.Facts < 0 || r.Rows < 0 || r.Requesters < 0:
		return errors.New("must not be negative; 0 keeps for ever")
	case r.Facts > 0 && r.Facts < LeastFacts:
		return fmt.Errorf("facts for %s: must be %s or longer, as what happens is understood by what happened days before; 0 keeps them for ever", formatDays(r.Facts), formatDays(LeastFacts))
	case r.Rows > 0 && r.Facts == 0:
		return errors.New("derived rows are made of facts: as long as those are kept for ever, so are they")
	case r.Rows > 0 && r.Rows < r.Facts:
		return fmt.Errorf("derived rows for %s and facts for %s: derived rows are made of facts, and must be kept as long or longer", formatDays(r.Rows), formatDays(r.Facts))
	case r.Requesters > 0 && r.Requesters < LeastNames:
		return fmt.Errorf("names for %s: must be %s or longer, as audit logs come late", formatDays(r.Requesters), formatDays(LeastNames))
	case r.Requesters > 0 && r.Facts > 0 && r.Requesters > r.Facts:
		return fmt.Errorf("names for %s and facts for %s: names are erased in facts, and must be kept as long or shorter", formatDays(r.Requesters), formatDays(r.Facts))
	}
	return nil
}

// formatDays writes a time as people give it.
func formatDays(d time.Duration) string { return fmt.Sprintf("%gd", math.Round(d.Hours()/24*100)/100) }

// Retained is what Retain did.
type Retained struct {
	Facts      time.Time      // before which months were dropped; zero: none ever were
	Dropped    []Partition    // the months that were dropped, in their order
	Old        int64          // facts of these and of earlier months that were there
	Kept       int64          // those of them that were kept, as what came after rests on them
	Thinned    int64          // facts of clusters that are kept for a shorter time than others, and were deleted
	Rows       map[string]int // derived rows that were dropped, by table
	Requesters int            // facts and rows in which the name of a person was erased
	Waits      string         // why facts that are old enough were not dropped; empty where they were, or none are
}

// RowCount is how many derived rows were dropped.
func (r Retained) RowCount() int {
	n := 0
	for _, of := range r.Rows {
		n += of
	}
	return n
}

// Partition is one month of facts.
type Partition struct {
	Name     string
	From, To time.Time // To is exclusive; zero: without an end
	Facts    int64
	Bytes    int64 // with indexes
}

// months are those of a database in which facts lie.
type months struct{ *pg.DB }

// Retain drops what is older than it is to be kept at a time: of each cluster as was noted (SetPolicy), of those for
// which nothing was as r says. A month of facts is dropped when no cluster needs it any more; facts of clusters that
// are kept for a shorter time are deleted within it. Its work is done in small transactions: one that is cut off at
// any point is gone on with by the next, and nobody waits for it for long. Where others hold it up it says so and
// leaves the rest to the next time. Of facts those stay on which what came after rests (adr/0020), so that no answer
// changes.
func Retain(ctx context.Context, db *pg.DB, r Policy, now time.Time) (Retained, error) {
	s := months{db}
	out := Retained{Rows: map[string]int{}}
	all, err := s.policies(ctx, r)
	if err != nil {
		return out, err
	}
	if err := s.eraseNames(ctx, all, now, &out); err != nil {
		return out, err
	}
	if boundary, ok := firstBoundary(all, now); ok {
		if err := s.dropFacts(ctx, boundary, &out); err != nil {
			return out, err
		}
	}
	monthsWait := out.Waits != ""
	for _, of := range all {
		if of.Facts > 0 && !monthsWait { // else what can be dropped as a month would be deleted one by one
			err = s.thinFacts(ctx, of.cluster, of.boundary(now), &out)
		}
		if of.Rows > 0 && err == nil {
			err = s.dropAcknowledgements(ctx, of.cluster, now.Add(-of.Rows), out.Rows)
		}
		if of.Rows > 0 && err == nil {
			err = s.dropRows(ctx, of.cluster, now.Add(-of.Rows), out.Rows)
		}
		if err != nil {
			return out, err
		}
	}
	state, err := s.dropState(ctx)
	out.Facts = pg.TimeOrZero(state.FactsFrom)
	return out, err
}
