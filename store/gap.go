package store

import "github.com/evictrail/evictrail/trail"

// gapRow is one row of evictrail.gaps.
type gapRow struct {
	owned
	trail.Gap
}

// Gaps is the view of gaps in what could be seen.
var Gaps = View{
	Name: "gaps", at: "opened_at", key: "gap_id",
	Brief: []string{"cluster", "source", "opened_at", "closed_at", "cause", "detail"},
}
