package rewind

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// The reaches: how long before the period rows bear on it, beyond those that are open in it.
const (
	// MovesReach is for how long moves and failures are counted in gauges.
	MovesReach = 24 * time.Hour
	// OpenReach is how long an evacuation, a drain or a loop that has ended may have lasted for it to be found.
	OpenReach = 31 * 24 * time.Hour
)

// History is what is recorded of a cluster in a period, in any order.
type History struct {
	From, To     time.Time
	Rules        []trail.Fact // of trail.RuleSubjects, of all times
	Thresholds   trail.Thresholds
	Annotations  []trail.Fact // that set eviction-in-progress on pods or cleared it
	Blocks       []trail.Fact // counters of the descheduler
	Requests     []trail.EvictionRequest
	Evacuations  []trail.Evacuation
	Migrations   []trail.Migration
	Placements   []trail.Placement
	Decisions    []trail.Decision
	Loops        []trail.Loop
	Drains       []trail.Drain
	Outages      []trail.Outage
	RecordedFrom time.Time // when the first fact of the period was observed; zero: there is none
}

// Nodes names the nodes that rows are about, each once, in no order.
func (h *History) Nodes() []string {
	known := map[string]bool{}
	for i := range h.Placements {
		known[h.Placements[i].Node] = true
	}
	for i := range h.Evacuations {
		known[h.Evacuations[i].Node] = true
	}
	for i := range h.Drains {
		known[h.Drains[i].Node] = true
	}
	delete(known, "")
	out := make([]string, 0, len(known))
	for node := range known {
		out = append(out, node)
	}
	return out
}
