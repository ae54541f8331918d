package store

import "github.com/evictrail/evictrail/trail"

// loopRow is one row of evictrail.loops.
type loopRow struct {
	owned
	trail.Loop
}

// Loops is the view of loops, with their evidence and advice.
var Loops = View{
	Name: "loops", at: "opened_at", key: "loop_id", where: vmFilters,
	Brief: []string{"cluster", "kind", "path", "node", "namespace", "vmi", "opened_at", "closed_at", "closed_by", "summary"},
}
