package store

import "github.com/evictrail/evictrail/trail"

// decisionRow is one row of evictrail.cooldown_decisions.
type decisionRow struct {
	owned
	trail.Decision
}

// Decisions is the view of cooldown decisions: what began to hold VMs back, what met that, and when it was over.
var Decisions = View{
	Name: "cooldown_decisions", at: "decided_at", key: "decision_id", where: vmFilters,
	Brief: []string{"cluster", "decided_at", "namespace", "vmi", "node", "layer", "verdict", "reason", "count", "effective", "until", "capped", "model", "origin"},
}

// Holds is the view of what holds VMs back now.
var Holds = View{
	Name: "cooldowns_now", at: "until", key: "vmi_uid", where: vmFilters,
	Brief: []string{"cluster", "namespace", "vmi", "node", "layer", "effective", "until", "remaining", "descheduler_cooldown_until", "kubevirt_backoff_until"},
}
