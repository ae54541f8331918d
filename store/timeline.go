package store

import "github.com/evictrail/evictrail/trail"

// timelineRow is one row of evictrail.timeline.
type timelineRow struct {
	owned
	trail.Line
	Tie int `json:"tie"`
}
