package trail

// Kind says what sort of fact it is. The set is closed; Kinds lists it with a sentence for each.
type Kind string

// The kinds of facts.
const (
	KindEvacuationMarked       Kind = "evacuation_marked"
	KindEvacuationUnmarked     Kind = "evacuation_unmarked"
	KindAnnotationSet          Kind = "annotation_set"
	KindAnnotationCleared      Kind = "annotation_cleared"
	KindMigrationSeen          Kind = "migration_seen"
	KindMigrationPhase         Kind = "migration_phase"
	KindMigrationResult        Kind = "migration_result"
	KindMigrationDeletionAsked Kind = "migration_deletion_asked"
	KindMigrationGone          Kind = "migration_gone"
	KindMigrationCondition     Kind = "migration_condition"
	KindMigrationCompleted     Kind = "migration_completed"
	KindVMIPlaced              Kind = "vmi_placed"
	KindVMIDeletionAsked       Kind = "vmi_deletion_asked"
	KindVMIEnded               Kind = "vmi_ended"
	KindVMICondition           Kind = "vmi_condition"
	KindLauncherPod            Kind = "launcher_pod"
	KindLauncherOutdated       Kind = "launcher_outdated"
	KindLauncherCurrent        Kind = "launcher_current"
	KindNodeCordoned           Kind = "node_cordoned"
	KindNodeUncordoned         Kind = "node_uncordoned"
	KindNodeTainted            Kind = "node_tainted"
	KindNodeUntainted          Kind = "node_untainted"
	KindNodeLabels             Kind = "node_labels"
	KindNodeNotReady           Kind = "node_not_ready"
	KindNodeReady              Kind = "node_ready"
	KindNodeGone               Kind = "node_gone"
	KindKubernetesEvent        Kind = "kubernetes_event"
	KindConfigSeen             Kind = "config_seen"
	KindEvictionRequested      Kind = "eviction_requested"
	KindActionRequested        Kind = "action_requested"
	KindEvictionIntent         Kind = "eviction_intent"
	KindEvictionProgress       Kind = "eviction_progress"
	KindEvictionCondition      Kind = "eviction_condition"
	KindBlocksObserved         Kind = "blocks_observed"
	KindDeschedulerStarted     Kind = "descheduler_started"
	KindNodeLoad               Kind = "node_load"
	KindMigrationTransfer      Kind = "migration_transfer"
	KindGapOpened              Kind = "gap_opened"
	KindGapClosed              Kind = "gap_closed"
)

// The kinds of lines of a timeline that show no fact but what was derived.
const (
	KindCooldownDecided Kind = "cooldown_decided"
	KindLoopOpened      Kind = "loop_opened"
	KindLoopClosed      Kind = "loop_closed"
	KindDrainStarted    Kind = "drain_started"
	KindDrainEnded      Kind = "drain_ended"
)

// Reason says why a fact is what it is. The set is closed per kind; Kinds lists it with a sentence for each.
type Reason string

// The reasons of facts.
const (
	ReasonDescheduler            Reason = "descheduler"
	ReasonDeschedulerInherited   Reason = "descheduler_inherited"
	ReasonRequesterUnnamed       Reason = "requester_unnamed"
	ReasonMigrated               Reason = "migrated"
	ReasonCleared                Reason = "cleared"
	ReasonEvictionSource         Reason = "eviction_source"
	ReasonEvictionInProgress     Reason = "eviction_in_progress"
	ReasonPreferNoEviction       Reason = "prefer_no_eviction"
	ReasonEvacuation             Reason = "evacuation"
	ReasonWorkloadUpdate         Reason = "workload_update"
	ReasonVolumeUpdate           Reason = "volume_update"
	ReasonNamedNode              Reason = "named_node"
	ReasonDecentralized          Reason = "decentralized"
	ReasonPlain                  Reason = "plain"
	ReasonPhaseReached           Reason = "phase_reached"
	ReasonSucceeded              Reason = "succeeded"
	ReasonFailed                 Reason = "failed"
	ReasonHandedOver             Reason = "handed_over"
	ReasonStarted                Reason = "started"
	ReasonDeletionAsked          Reason = "deletion_asked"
	ReasonDeleted                Reason = "deleted"
	ReasonDeletedUnseen          Reason = "deleted_unseen"
	ReasonNotRestored            Reason = "not_restored"
	ReasonConditionSet           Reason = "condition_set"
	ReasonConditionRemoved       Reason = "condition_removed"
	ReasonFound                  Reason = "found"
	ReasonMoved                  Reason = "moved"
	ReasonGuestStopped           Reason = "guest_stopped"
	ReasonGuestFailed            Reason = "guest_failed"
	ReasonPodCreated             Reason = "pod_created"
	ReasonUnschedulable          Reason = "unschedulable"
	ReasonScheduled              Reason = "scheduled"
	ReasonDisrupted              Reason = "disrupted"
	ReasonPodTerminating         Reason = "pod_terminating"
	ReasonPodEnded               Reason = "pod_ended"
	ReasonPodGone                Reason = "pod_gone"
	ReasonLabelSet               Reason = "label_set"
	ReasonLabelsSeen             Reason = "labels_seen"
	ReasonLabelRemoved           Reason = "label_removed"
	ReasonCordoned               Reason = "cordoned"
	ReasonUncordoned             Reason = "uncordoned"
	ReasonTainted                Reason = "tainted"
	ReasonUntainted              Reason = "untainted"
	ReasonKubeletSilent          Reason = "kubelet_silent"
	ReasonKubeletNotReady        Reason = "kubelet_not_ready"
	ReasonKubeletReady           Reason = "kubelet_ready"
	ReasonNodeDeleted            Reason = "node_deleted"
	ReasonEmitted                Reason = "emitted"
	ReasonKubeVirtSettings       Reason = "kubevirt_settings"
	ReasonDeschedulerPolicy      Reason = "descheduler_policy"
	ReasonMigrationPolicy        Reason = "migration_policy"
	ReasonMigrationPolicyDeleted Reason = "migration_policy_deleted"
	ReasonMigrationCreated       Reason = "migration_created"
	ReasonMigrationDeleted       Reason = "migration_deleted"
	ReasonMigrateCalled          Reason = "migrate_called"
	ReasonCancelCalled           Reason = "cancel_called"
	ReasonNodeChanged            Reason = "node_changed"
	ReasonEvictionWanted         Reason = "eviction_wanted"
	ReasonWithdrawn              Reason = "withdrawn"
	ReasonResponderInactive      Reason = "responder_inactive"
	ReasonResponderActive        Reason = "responder_active"
	ReasonResponderInterrupted   Reason = "responder_interrupted"
	ReasonResponderCanceled      Reason = "responder_canceled"
	ReasonResponderCompleted     Reason = "responder_completed"
	ReasonResponderReports       Reason = "responder_reports"
	ReasonCooldown               Reason = "cooldown"
	ReasonMigrationInProgress    Reason = "migration_in_progress"
	ReasonOther                  Reason = "other"
	ReasonSampled                Reason = "sampled"
	ReasonNotSampled             Reason = "not_sampled"
	ReasonExpired                Reason = "expired"
	ReasonRelisted               Reason = "relisted"
	ReasonNotRunning             Reason = "not_running"
	ReasonOverflow               Reason = "overflow"
	ReasonUnreachable            Reason = "unreachable"
	ReasonForbidden              Reason = "forbidden"
	ReasonCorrupted              Reason = "corrupted"
	ReasonRefused                Reason = "refused"
	ReasonClusterRestored        Reason = "cluster_restored"
	ReasonClusterRebuilt         Reason = "cluster_rebuilt"
	ReasonDatabaseRewound        Reason = "database_rewound"
)

// Sentence explains a reason.
type Sentence struct {
	Reason Reason
	Short  string // its label
	Text   string
}

// KindInfo explains a kind of fact and its closed set of reasons.
type KindInfo struct {
	Kind    Kind
	Short   string // its label
	Text    string
	Reasons []Sentence
}

// Kinds lists every kind of fact with its reasons, in the order of the documentation.
func Kinds() []KindInfo {
	return []KindInfo{
		{KindEvacuationMarked, "marked to move", "KubeVirt accepted to move the VMI: status.evacuationNodeName became set.", []Sentence{
			{ReasonDescheduler, "by the descheduler", "The annotation eviction-source, set with the mark, names the descheduler."},
			{ReasonDeschedulerInherited, "descheduler, perhaps earlier", "The annotation names the descheduler but was there before the mark, so it may be stale."},
			{ReasonRequesterUnnamed, "requester not named", "No field of the VMI names the requester."},
		}},
		{KindEvacuationUnmarked, "mark removed", "The mark went away.", []Sentence{
			{ReasonMigrated, "guest moved", "The guest runs on another node than the marked one."},
			{ReasonCleared, "cancelled", "The guest still runs on the marked node: the evacuation was cancelled."},
		}},
		{KindAnnotationSet, "annotation set", "An annotation about evictions appeared or changed its value.", annotationReasons},
		{KindAnnotationCleared, "annotation removed", "An annotation about evictions went away.", annotationReasons},
		{KindMigrationSeen, "migration seen", "A migration exists.", []Sentence{
			{ReasonEvacuation, "evacuation", "It carries the annotation of KubeVirt's evacuation controller."},
			{ReasonWorkloadUpdate, "workload update", "It carries the annotation of KubeVirt's workload updater."},
			{ReasonVolumeUpdate, "storage migration", "It carries the label of a storage migration."},
			{ReasonNamedNode, "named node", "It names the node to go to."},
			{ReasonDecentralized, "decentralized migration", "It is one half of a migration between clusters or namespaces."},
			{ReasonPlain, "no controller", "It carries no sign of a controller: a user or a program made it."},
		}},
		{KindMigrationPhase, "migration phase", "A migration reached a phase.", []Sentence{
			{ReasonPhaseReached, "under way", "The migration is under way."},
			{ReasonSucceeded, "succeeded", "The migration ended well."},
			{ReasonFailed, "failed or aborted", "The migration ended without moving the guest, by failure or abort."},
		}},
		{KindMigrationResult, "migration state", "An object showed how a migration goes: nodes, mode, failure.", []Sentence{
			{ReasonHandedOver, "nodes fixed", "Source and target nodes are fixed."},
			{ReasonStarted, "transfer started", "Data began to move."},
			{ReasonSucceeded, "transfer succeeded", "Data stopped moving and nothing failed."},
			{ReasonFailed, "failed", "It failed."},
		}},
		{KindMigrationDeletionAsked, "migration deletion requested", "Somebody deleted the migration object.", []Sentence{
			{ReasonDeletionAsked, "deletion requested", "A deletionTimestamp appeared: an abort unless the migration was final before."},
		}},
		{KindMigrationGone, "migration gone", "The migration object exists no more.", goneReasons},
		{KindMigrationCondition, "migration condition", "A condition of a migration changed.", conditionReasons},
		{KindMigrationCompleted, "migration ended", "The VMI shows the end of a migration: what the descheduler's cooldown counts.", []Sentence{
			{ReasonSucceeded, "succeeded", "It did not fail."},
			{ReasonFailed, "failed", "It failed; a running descheduler counts it all the same."},
		}},
		{KindVMIPlaced, "guest on node", "The guest runs on a node.", []Sentence{
			{ReasonStarted, "started there", "It was started there."},
			{ReasonMigrated, "by a migration", "A migration brought it there."},
			{ReasonMoved, "migration not known", "It is on another node than before; the VMI does not say by which migration."},
			{ReasonFound, "found there", "It was there when it was first seen."},
		}},
		{KindVMIDeletionAsked, "VMI deletion requested", "Somebody deleted the VMI while its guest ran.", []Sentence{
			{ReasonDeletionAsked, "deletion requested", "A deletionTimestamp appeared: from then on KubeVirt moves the guest no more."},
		}},
		{KindVMIEnded, "VMI ended", "The VMI ended.", append([]Sentence{
			{ReasonGuestStopped, "guest shut down", "The guest was shut down."},
			{ReasonGuestFailed, "guest lost", "The guest was lost or its pod was taken away."},
		}, goneReasons...)},
		{KindVMICondition, "VMI condition", "A condition of the VMI that bears on moving it changed.", conditionReasons},
		{KindLauncherPod, "virt-launcher pod", "A virt-launcher pod took a step.", []Sentence{
			{ReasonPodCreated, "created", "It was created."},
			{ReasonUnschedulable, "unschedulable", "The scheduler found no node for it."},
			{ReasonScheduled, "scheduled", "It has a node."},
			{ReasonDisrupted, "disrupted", "Kubernetes takes it away: evicted, tainted, preempted, under pressure."},
			{ReasonPodTerminating, "terminating", "Its deletion was asked for while it ran: it is Terminating until its kubelet confirms its end."},
			{ReasonPodEnded, "ended", "It ended."},
			{ReasonPodGone, "gone", "It exists no more."},
		}},
		{KindLauncherOutdated, "launcher outdated", "The guest runs in a virt-launcher of another version than KubeVirt now starts.", []Sentence{
			{ReasonLabelSet, "label set", "KubeVirt set the label kubevirt.io/outdatedLauncherImage on the VMI."},
		}},
		{KindLauncherCurrent, "launcher current", "The guest runs in a virt-launcher of the version that KubeVirt starts.", []Sentence{
			{ReasonLabelRemoved, "label removed", "KubeVirt took the label kubevirt.io/outdatedLauncherImage off the VMI."},
		}},
		{KindNodeCordoned, "node cordoned", "The node takes no new pods.", []Sentence{{ReasonCordoned, "cordoned", "spec.unschedulable became true."}}},
		{KindNodeUncordoned, "node uncordoned", "The node takes new pods again.", []Sentence{{ReasonUncordoned, "uncordoned", "spec.unschedulable went away."}}},
		{KindNodeTainted, "node tainted", "A taint that keeps pods away appeared.", []Sentence{{ReasonTainted, "tainted", "An entry of spec.taints appeared or changed its value."}}},
		{KindNodeUntainted, "node untainted", "A taint went away.", []Sentence{{ReasonUntainted, "untainted", "An entry of spec.taints went away."}}},
		{KindNodeLabels, "node labels", "Where the node is, and of what kind, by its labels.", []Sentence{
			{ReasonLabelsSeen, "labels seen", "Labels of its place, type or pool were seen, or changed."},
		}},
		{KindNodeNotReady, "node not ready", "The node is not ready.", []Sentence{
			{ReasonKubeletSilent, "kubelet silent", "Its condition Ready became Unknown: its kubelet does not answer."},
			{ReasonKubeletNotReady, "kubelet not ready", "Its condition Ready became False: its kubelet reports why."},
		}},
		{KindNodeReady, "node ready", "The node is ready again.", []Sentence{{ReasonKubeletReady, "kubelet ready", "Its condition Ready became True."}}},
		{KindNodeGone, "node gone", "The node exists no more.", []Sentence{{ReasonNodeDeleted, "node deleted", "The Node object was deleted."}}},
		{KindKubernetesEvent, "Kubernetes Event", "KubeVirt emitted a Kubernetes Event that says what no object says.", []Sentence{
			{ReasonEmitted, "emitted", "The Event appeared, or its count rose."},
		}},
		{KindConfigSeen, "settings seen", "The rules in force were seen or changed.", []Sentence{
			{ReasonKubeVirtSettings, "KubeVirt settings", "Settings of the KubeVirt CR."},
			{ReasonDeschedulerPolicy, "descheduler's policy", "The policy of the descheduler."},
			{ReasonMigrationPolicy, "migration policy", "A MigrationPolicy of KubeVirt."},
			{ReasonMigrationPolicyDeleted, "migration policy deleted", "A MigrationPolicy exists no more."},
		}},
		{KindEvictionRequested, "eviction requested", "Somebody asked to evict a virt-launcher pod; the reason is the answer.", answerReasons()},
		{KindActionRequested, "other request", "Somebody asked for something else that moves VMs or keeps them.", []Sentence{
			{ReasonMigrationCreated, "create migration", "To make a migration."},
			{ReasonMigrationDeleted, "delete migration", "To delete a migration."},
			{ReasonMigrateCalled, "migrate VM", "To migrate a VM, through KubeVirt's subresource."},
			{ReasonCancelCalled, "cancel evacuation", "To cancel an evacuation, through KubeVirt's subresource."},
			{ReasonNodeChanged, "change node", "To change a Node: cordon, uncordon, taint."},
		}},
		{KindEvictionIntent, "eviction intent", "What a requester wants of a virt-launcher pod, by an EvictionRequest (lifecycle.k8s.io).", append([]Sentence{
			{ReasonEvictionWanted, "eviction wanted", "It wants the pod evicted."},
			{ReasonWithdrawn, "withdrawn", "It does not want that any more."},
			{ReasonOther, "other intent", "An intent that evictrail does not know; the detail has it as it came."},
		}, goneReasons...)},
		{KindEvictionProgress, "eviction progress", "A responder of the Eviction (lifecycle.k8s.io) of a virt-launcher pod took a step.", append([]Sentence{
			{ReasonResponderInactive, "responder waits", "Its turn has not come."},
			{ReasonResponderActive, "responder active", "It is its turn to evict the pod."},
			{ReasonResponderInterrupted, "responder interrupted", "It sent no heartbeat for 20 minutes: the next responder has its turn."},
			{ReasonResponderCanceled, "responder cancelled", "No requester wants the eviction any more."},
			{ReasonResponderCompleted, "responder done", "It says that it is done."},
			{ReasonResponderReports, "responder reports", "It has another message. Each text is recorded once, and at most 20 of a responder."},
			{ReasonOther, "other state", "A state that evictrail does not know; the detail has it as it came."},
		}, goneReasons...)},
		{KindEvictionCondition, "eviction condition", "A condition of an EvictionRequest or an Eviction of a virt-launcher pod changed.", conditionReasons},
		{KindBlocksObserved, "blocks counted", "The descheduler's metrics say how often KubevirtMigrationAware held back an eviction.", []Sentence{
			{ReasonCooldown, "cooldown", "The VM had migrated not long before."},
			{ReasonMigrationInProgress, "migration running", "The VM was being migrated."},
			{ReasonOther, "other reason", "For a reason that evictrail does not know; the detail has it as it came."},
		}},
		{KindDeschedulerStarted, "descheduler started", "The descheduler's metrics name the start of its process.", []Sentence{
			{ReasonStarted, "start seen", "A start that was not recorded before: it was started, or is seen for the first time."},
		}},
		{KindNodeLoad, "node load", "How loaded the nodes of a migration were at a moment of it: when it was asked for, began, ended, and some minutes after.", []Sentence{
			{ReasonSampled, "sampled", "Some of it is known; the detail has each metric."},
			{ReasonNotSampled, "not known", "Nothing of it is known; the detail says why."},
		}},
		{KindMigrationTransfer, "migration transfer", "What a migration copied, and how fast, as a Prometheus had it after its end.", []Sentence{
			{ReasonSampled, "sampled", "Some of it is known; the detail has each metric."},
			{ReasonNotSampled, "not known", "Nothing of it is known; the detail says why."},
		}},
		{KindGapOpened, "gap opened", "A source could not be seen from here on.", gapReasons},
		{KindGapClosed, "gap closed", "A source can be seen again.", gapReasons},
	}
}

var (
	annotationReasons = []Sentence{
		{ReasonEvictionSource, "eviction source", "kubevirt.io/eviction-source on the VMI: who asked for the eviction."},
		{ReasonEvictionInProgress, "eviction in progress", "eviction-in-progress on the pod: what the descheduler believes to be under way."},
		{ReasonPreferNoEviction, "prefer no eviction", "prefer-no-eviction on the pod: the descheduler is asked to leave it alone."},
	}
	conditionReasons = []Sentence{
		{ReasonConditionSet, "condition set", "The condition appeared or changed."},
		{ReasonConditionRemoved, "condition removed", "The condition went away."},
	}
	goneReasons = []Sentence{
		{ReasonDeleted, "deleted", "Its deletion was seen."},
		{ReasonDeletedUnseen, "deleted unseen", "It was missing from a later list: it was deleted while nobody watched."},
		{ReasonNotRestored, "not restored", "It was not there any more when the cluster had been restored from a backup or rebuilt."},
	}
	gapReasons = []Sentence{
		{ReasonExpired, "watch expired", "The API server had forgotten the resourceVersion to resume from (410 Gone)."},
		{ReasonRelisted, "watch broke", "The watch broke and the client listed again."},
		{ReasonNotRunning, "not running", "evictrail was not running."},
		{ReasonOverflow, "too much at once", "More came than could be kept."},
		{ReasonUnreachable, "unreachable", "It did not answer, or not with what was expected."},
		{ReasonForbidden, "forbidden", "evictrail has no right to see it."},
		{ReasonCorrupted, "spool unreadable", "It was seen, and what was kept of it on disk could not be read again."},
		{ReasonRefused, "refused by database", "It was seen, and the database refused to store it."},
		{ReasonClusterRestored, "cluster restored", "The cluster went back to an earlier state: its etcd was restored from a backup."},
		{ReasonClusterRebuilt, "cluster rebuilt", "Another cluster is recorded under the same name: it was rebuilt."},
		{ReasonDatabaseRewound, "database restored", "The database lost what it had confirmed: it was restored, or failed over to a standby that was behind."},
	}
)

// derivedKinds are the labels of the kinds of lines about what was derived.
var derivedKinds = labels[Kind]{
	{KindCooldownDecided, "cooldown decision", "A cooldown or a backoff began, was met, or is over."},
	{KindLoopOpened, "loop opened", "A loop opened."},
	{KindLoopClosed, "loop closed", "A loop is over."},
	{KindDrainStarted, "drain started", "A node began to be emptied."},
	{KindDrainEnded, "drain ended", "A drain is over."},
}

// answerReasons are the answers to an eviction request as reasons of its fact.
func answerReasons() []Sentence {
	var all []Sentence
	for _, a := range answerLabels {
		all = append(all, Sentence{Reason(a.value), a.short, a.text})
	}
	return all
}

// Label returns the label of a kind.
func (k Kind) Label() Label { return kindLabels().of(k) }

// LabelReason returns the label of a reason of a fact of the kind.
func (k Kind) LabelReason(r Reason) Label {
	for _, info := range Kinds() {
		if info.Kind == k {
			return reasonLabels(info.Reasons).of(r)
		}
	}
	return Label{Value: string(r), Short: string(r)}
}

// Label returns the label of the cause of the gap.
func (g Gap) Label() Label { return reasonLabels(gapReasons).of(g.Cause) }

func kindLabels() labels[Kind] {
	var all labels[Kind]
	for _, k := range Kinds() {
		all = append(all, labelled[Kind]{k.Kind, k.Short, k.Text})
	}
	return append(all, derivedKinds...)
}

func reasonLabels(reasons []Sentence) labels[Reason] {
	var all labels[Reason]
	for _, r := range reasons {
		all = append(all, labelled[Reason]{r.Reason, r.Short, r.Text})
	}
	return all
}

// factLabelSets returns the kinds of facts, and the reasons of each. Those of gaps come once, as what they are the causes of.
func factLabelSets() []LabelSet {
	sets := []LabelSet{reasonLabels(gapReasons).newSet("cause of a gap", "gaps.cause"), kindLabels().newSet("kind of a fact", "events.kind")}
	for _, k := range Kinds() {
		if k.Kind != KindGapOpened && k.Kind != KindGapClosed && k.Kind != KindEvictionRequested {
			sets = append(sets, reasonLabels(k.Reasons).newSet("reason of "+string(k.Kind)))
		}
	}
	return sets
}
