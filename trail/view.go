package trail

import "slices"

// View is a view of schema evictrail_v1 as readers ask for it, by command, over HTTP or through the store.
type View struct {
	Noun    string   // in commands and routes
	Name    string   // in SQL
	About   string   // what its rows are, without a stop
	At      string   // column of time that orders the rows and that Since and Until bound
	Key     string   // column that orders rows of one time
	End     string   // column that is NULL while what a row shows goes on; empty where rows do not last
	Repeat  string   // column that is NULL unless a row repeats another; empty where none does
	Changed string   // column of the time at which a row came or last changed, which ChangedSince bounds; empty where there is none
	Where   []string // the columns that it can be asked by beside the cluster: namespace, vmi, node
	Nodes   string   // column of a list of nodes, any of which node may be where rows are asked by it; empty: it is that of the row
	Sets    []string // columns of closed sets that it can be asked by, too; nothing in them is hidden from anybody who sees the row
	Brief   []string // the columns that a table for people shows
}

// HasVM reports whether rows can be asked for by namespace and VMI.
func (v View) HasVM() bool { return slices.Contains(v.Where, "vmi") }

// HasNode reports whether rows can be asked for by node.
func (v View) HasNode() bool { return slices.Contains(v.Where, "node") }

// Column is a column of a view of evictrail_v1, as the database describes it.
type Column struct {
	View  string `json:"view"`
	Name  string `json:"name"`
	Type  string `json:"type"`  // as Postgres writes it: text, uuid, timestamp with time zone, interval, ...
	About string `json:"about"` // its COMMENT
}

var byVM = []string{"namespace", "vmi", "node"}

const changedAt = "changed_at"

// The views that can be listed.
var (
	ViewRequests = View{
		Noun: "requests", Name: "eviction_requests", About: "eviction requests: who asked, with which words, and what was answered",
		At: "requested_at", Key: "request_id", Repeat: "repeat_of", Changed: changedAt, Where: byVM,
		Sets:  []string{"requester_class", "answer"},
		Brief: []string{"cluster", "requested_at", "namespace", "vmi", "node", "requester", "requester_class", "answer", "effect", "repeats", "last_repeat_at", "stated_reason", "source", "dry_run"},
	}
	ViewEvacuations = View{
		Noun: "evacuations", Name: "evacuations", About: "evacuations: who had to leave which node, and how that went",
		At: "marked_at", Key: "evacuation_id", End: "ended_at", Changed: changedAt, Where: byVM,
		Sets:  []string{"requester_class", "trigger", "outcome"},
		Brief: []string{"cluster", "namespace", "vmi", "node", "marked_at", "trigger", "requester_class", "confidence", "attempts", "failed_attempts", "last_failure_class", "next_retry_at", "overdue", "outcome", "ended_at"},
	}
	ViewMigrations = View{
		Noun: "migrations", Name: "migrations", About: "migrations: why each was made, its phases' times, why it failed",
		At: "created_at", Key: "migration_uid", End: "finished_at", Changed: changedAt, Where: byVM,
		Sets:  []string{"requester_class", "trigger", "phase", "outcome", "failure_class"},
		Brief: []string{"cluster", "namespace", "vmi", "migration", "trigger", "attempt", "source_node", "target_node", "created_at", "phase", "outcome", "failure_class", "failure_reason", "duration"},
	}
	ViewQueue = View{
		Noun: "migrations/queue", Name: "migration_queue", About: "migrations that wait for a slot, with their places in KubeVirt's queue",
		At: "created_at", Key: "migration_uid", Changed: changedAt, Where: byVM,
		Sets:  []string{"trigger", "wait_reason"},
		Brief: []string{"cluster", "place", "namespace", "vmi", "node", "migration", "trigger", "priority", "waits_for", "wait_reason", "after_vmi", "running_in_cluster", "cluster_limit", "running_from_node", "node_limit"},
	}
	ViewPlacements = View{
		Noun: "placements", Name: "placements", About: "placements: on which node each guest ran, and how it came and left",
		At: "from_at", Key: "placement_id", End: "to_at", Changed: changedAt, Where: byVM,
		Brief: []string{"cluster", "namespace", "vmi", "node", "from_at", "to_at", "arrived_by", "left_by", "ended_by"},
	}
	ViewDowntimes = View{
		Noun: "downtimes", Name: "downtimes", About: "downtimes: when the guest of a VM did not run, why, and who began it",
		At: "down_at", Key: "downtime_id", End: "up_at", Changed: changedAt, Where: byVM,
		Sets:  []string{"cause"},
		Brief: []string{"cluster", "down_at", "up_at", "lasted", "namespace", "vmi", "node", "cause", "planned", "requester", "detail"},
	}
	ViewDecisions = View{
		Noun: "cooldowns", Name: "cooldown_decisions", About: "cooldown decisions: what began to hold a VM back, what met that, and when it was over",
		At: "decided_at", Key: "decision_id", Changed: changedAt, Where: byVM,
		Sets:  []string{"layer", "verdict"},
		Brief: []string{"cluster", "decided_at", "namespace", "vmi", "node", "layer", "verdict", "reason", "count", "effective", "until", "capped", "model", "origin"},
	}
	ViewHolds = View{
		Noun: "cooldowns/now", Name: "cooldowns_now", About: "what holds VMs back now, one row per VM",
		At: "until", Key: "vmi_uid", Where: byVM,
		Brief: []string{"cluster", "namespace", "vmi", "node", "layer", "effective", "until", "remaining", "descheduler_cooldown_until", "kubevirt_backoff_until"},
	}
	ViewLoops = View{
		Noun: "loops", Name: "loops", About: "loops: repetition that does not converge, with what to do",
		At: "opened_at", Key: "loop_id", End: "closed_at", Changed: changedAt, Where: byVM, Nodes: "nodes",
		Sets:  []string{"kind"},
		Brief: []string{"cluster", "kind", "path", "node", "namespace", "vmi", "opened_at", "closed_at", "closed_by", "summary"},
	}
	ViewDrains = View{
		Noun: "drains", Name: "drains", About: "drains: who empties which node, and how far that is",
		At: "started_at", Key: "drain_id", End: "ended_at", Changed: changedAt, Where: []string{"node"},
		Sets:  []string{"requester_class", "outcome"},
		Brief: []string{"cluster", "node", "started_at", "ended_at", "requester", "requester_class", "vmis_total", "vmis_left", "outcome", "last_asked_at"},
	}
	ViewUpgradeWaves = View{
		Noun: "upgrade-waves", Name: "upgrade_waves", About: "upgrade waves: how far VMs are on the way to a new version of KubeVirt, and how much longer they take",
		At: "started_at", Key: "wave_id", End: "ended_at",
		Sets: []string{"outcome"},
		Brief: []string{
			"cluster", "started_at", "ended_at", "version_from", "version_to", "outcome", "moved", "failed_attempts", "shut_down", "moved_again", "summary",
		},
	}
	ViewBlockers = View{
		Noun: "drains/blockers", Name: "drain_blockers", About: "each VM that drains have left, and why",
		At: "waiting_since", Key: "vmi_uid", Changed: changedAt, Where: byVM,
		Brief: []string{"cluster", "node", "namespace", "vmi", "blocker", "reason", "next", "waiting_since", "last_asked_at"},
	}
	ViewGaps = View{
		Noun: "gaps", Name: "gaps", About: "gaps: when a source could not be seen",
		At: "opened_at", Key: "gap_id", End: "closed_at", Changed: changedAt,
		Sets:  []string{"source"},
		Brief: []string{"cluster", "source", "opened_at", "closed_at", "cause", "detail"},
	}
	ViewContext = View{
		Noun: "loads", Name: "node_context", About: "node load: how loaded source and target were at the moments of each migration",
		At: "at", Key: "context_id", Changed: changedAt, Where: byVM,
		Brief: []string{"cluster", "at", "namespace", "vmi", "migration", "moment", "after_end", "side", "node", "metric", "value", "threshold", "sample", "sampled_at", "origin", "reason"},
	}
	ViewConsequences = View{
		Noun: "consequences", Name: "consequences", About: "consequences: evictions from a node that an earlier move had come to and overloaded, or without need",
		At: "at", Key: "consequence_id", Changed: changedAt, Where: byVM,
		Brief: []string{"cluster", "at", "namespace", "vmi", "node", "likelihood", "because", "cause_need", "needless_uid", "needless_likelihood", "steps"},
	}
	ViewOutages = View{
		Noun: "outages", Name: "node_outages", About: "node outages: when a node was not ready, and what its kubelet said",
		At: "began_at", Key: "outage_id", End: "ended_at", Changed: changedAt, Where: []string{"node"},
		Brief: []string{"cluster", "node", "began_at", "ended_at", "ended_by", "cause", "message"},
	}
	ViewAcknowledgements = View{
		Noun: "acknowledgements", Name: "acknowledgements", About: "acknowledgements: who knows the problem of a VM or a node, until when, and the ticket",
		At: "created_at", Key: "acknowledgement_id", End: "ended_at", Changed: changedAt, Where: byVM,
		Brief: []string{"cluster", "namespace", "vmi", "node", "author", "note", "ticket", "created_at", "expires_at", "ended_at", "acknowledgement_id"},
	}
	ViewTimeline = View{
		Noun: "timeline", Name: "timeline", About: "the timeline: the story of VMs and nodes, one sentence a line",
		At: "at", Key: "event_id", Changed: changedAt, Where: byVM,
		Brief: []string{"cluster", "at", "namespace", "vmi", "node", "sentence"},
	}
	ViewEvents = View{
		Noun: "events", Name: "events", About: "every fact as it was recorded, and every cooldown decision, in one stream",
		At: "at", Key: "event_id", Changed: changedAt, Where: byVM,
		Brief: []string{"cluster", "at", "namespace", "vmi", "node", "kind", "reason", "what", "value", "evidence"},
	}
)

// Views returns all of them, in the order in which they are documented.
func Views() []View {
	return []View{
		ViewRequests, ViewEvacuations, ViewMigrations, ViewQueue, ViewPlacements, ViewDowntimes, ViewDecisions, ViewHolds, ViewLoops, ViewDrains, ViewBlockers,
		ViewUpgradeWaves, ViewGaps, ViewContext, ViewConsequences, ViewOutages, ViewAcknowledgements, ViewTimeline, ViewEvents,
	}
}
