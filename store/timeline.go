package store

import "github.com/evictrail/evictrail/trail"

// timelineRow is one row of evictrail.timeline.
type timelineRow struct {
	owned
	trail.Line
}

// Timeline is the view of sentences that tell a story.
var Timeline = View{
	Name: "timeline", at: "at", key: "event_id", where: vmFilters,
	Brief: []string{"cluster", "at", "namespace", "vmi", "node", "sentence"},
}
