package store

import "github.com/evictrail/evictrail/trail"

// evacuationRow is one row of evictrail.evacuations.
type evacuationRow struct {
	owned
	trail.Evacuation
}

// Evacuations is the view of evacuations, from mark to end.
var Evacuations = View{
	Name: "evacuations", at: "marked_at", key: "evacuation_id", where: vmFilters,
	Brief: []string{"cluster", "namespace", "vmi", "node", "marked_at", "trigger", "requester_class", "confidence", "attempts", "failed_attempts", "last_failure_class", "outcome", "ended_at"},
}
