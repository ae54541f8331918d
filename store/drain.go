package store

import "github.com/evictrail/evictrail/trail"

// drainRow is one row of evictrail.drains.
type drainRow struct {
	owned
	trail.Drain
}

// blockerRow is one row of evictrail.drain_blockers.
type blockerRow struct {
	owned
	trail.DrainBlocker
}

// Drains is the view of drains.
var Drains = View{
	Name: "drains", at: "started_at", key: "drain_id", where: []string{"node"},
	Brief: []string{"cluster", "node", "started_at", "ended_at", "requester", "requester_class", "vmis_total", "vmis_left", "outcome", "last_asked_at"},
}

// Blockers is the view of what is left of drains, and why.
var Blockers = View{
	Name: "drain_blockers", at: "waiting_since", key: "vmi_uid", where: vmFilters,
	Brief: []string{"cluster", "node", "namespace", "vmi", "blocker", "reason", "next", "waiting_since"},
}
