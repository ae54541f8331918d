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
	KindNodeCordoned           Kind = "node_cordoned"
	KindNodeUncordoned         Kind = "node_uncordoned"
	KindNodeTainted            Kind = "node_tainted"
	KindNodeUntainted          Kind = "node_untainted"
	KindNodeNotReady           Kind = "node_not_ready"
	KindNodeReady              Kind = "node_ready"
	KindNodeGone               Kind = "node_gone"
	KindKubernetesEvent        Kind = "kubernetes_event"
	KindConfigSeen             Kind = "config_seen"
	KindEvictionRequested      Kind = "eviction_requested"
	KindActionRequested        Kind = "action_requested"
	KindBlocksObserved         Kind = "blocks_observed"
	KindDeschedulerStarted     Kind = "descheduler_started"
	KindNodeLoad               Kind = "node_load"
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
	Text   string
}

// KindInfo explains a kind of fact and its closed set of reasons.
type KindInfo struct {
	Kind    Kind
	Text    string
	Reasons []Sentence
}

// Kinds lists every kind of fact with its reasons, in the order of the documentation.
func Kinds() []KindInfo {
	return []KindInfo{
		{KindEvacuationMarked, "KubeVirt accepted to move the VMI: status.evacuationNodeName became set.", []Sentence{
			{ReasonDescheduler, "The annotation eviction-source, set with the mark, names the descheduler."},
			{ReasonDeschedulerInherited, "The annotation names the descheduler but was there before the mark, so it may be stale."},
			{ReasonRequesterUnnamed, "No field of the VMI names the requester."},
		}},
		{KindEvacuationUnmarked, "The mark went away.", []Sentence{
			{ReasonMigrated, "The guest runs on another node than the marked one."},
			{ReasonCleared, "The guest still runs on the marked node: the evacuation was cancelled."},
		}},
		{KindAnnotationSet, "An annotation about evictions appeared or changed its value.", annotationReasons},
		{KindAnnotationCleared, "An annotation about evictions went away.", annotationReasons},
		{KindMigrationSeen, "A migration exists.", []Sentence{
			{ReasonEvacuation, "It carries the annotation of KubeVirt's evacuation controller."},
			{ReasonWorkloadUpdate, "It carries the annotation of KubeVirt's workload updater."},
			{ReasonVolumeUpdate, "It carries the label of a storage migration."},
			{ReasonNamedNode, "It names the node to go to."},
			{ReasonDecentralized, "It is one half of a migration between clusters or namespaces."},
			{ReasonPlain, "It carries no sign of a controller: a user or a program made it."},
		}},
		{KindMigrationPhase, "A migration reached a phase.", []Sentence{
			{ReasonPhaseReached, "The migration is under way."},
			{ReasonSucceeded, "The migration ended well."},
			{ReasonFailed, "The migration ended without moving the guest, by failure or abort."},
		}},
		{KindMigrationResult, "An object reported how a migration goes: nodes, mode, failure.", []Sentence{
			{ReasonHandedOver, "Source and target nodes are fixed."},
			{ReasonStarted, "Data began to move."},
			{ReasonSucceeded, "Data stopped moving and nothing failed."},
			{ReasonFailed, "It failed."},
		}},
		{KindMigrationDeletionAsked, "Somebody deleted the migration object.", []Sentence{
			{ReasonDeletionAsked, "A deletionTimestamp appeared: an abort unless the migration was final before."},
		}},
		{KindMigrationGone, "The migration object exists no more.", goneReasons},
		{KindMigrationCondition, "A condition of a migration changed.", conditionReasons},
		{KindMigrationCompleted, "The VMI shows the end of a migration: what the descheduler's cooldown counts.", []Sentence{
			{ReasonSucceeded, "It did not fail."},
			{ReasonFailed, "It failed; a running descheduler counts it all the same."},
		}},
		{KindVMIPlaced, "The guest runs on a node.", []Sentence{
			{ReasonStarted, "It was started there."},
			{ReasonMigrated, "A migration brought it there."},
			{ReasonMoved, "It is on another node than before; the VMI does not say by which migration."},
			{ReasonFound, "It was there when it was first seen."},
		}},
		{KindVMIDeletionAsked, "Somebody deleted the VMI while its guest ran.", []Sentence{
			{ReasonDeletionAsked, "A deletionTimestamp appeared: from then on KubeVirt moves the guest no more."},
		}},
		{KindVMIEnded, "The VMI ended.", append([]Sentence{
			{ReasonGuestStopped, "The guest was shut down."},
			{ReasonGuestFailed, "The guest was lost or its pod was taken away."},
		}, goneReasons...)},
		{KindVMICondition, "A condition of the VMI that bears on moving it changed.", conditionReasons},
		{KindLauncherPod, "A virt-launcher pod took a step.", []Sentence{
			{ReasonPodCreated, "It was created."},
			{ReasonUnschedulable, "The scheduler found no node for it."},
			{ReasonScheduled, "It has a node."},
			{ReasonDisrupted, "Kubernetes takes it away: evicted, tainted, preempted, under pressure."},
			{ReasonPodTerminating, "Its deletion was asked for while it ran: it is Terminating until its kubelet confirms its end."},
			{ReasonPodEnded, "It ended."},
			{ReasonPodGone, "It exists no more."},
		}},
		{KindNodeCordoned, "The node takes no new pods.", []Sentence{{ReasonCordoned, "spec.unschedulable became true."}}},
		{KindNodeUncordoned, "The node takes new pods again.", []Sentence{{ReasonUncordoned, "spec.unschedulable went away."}}},
		{KindNodeTainted, "A taint that keeps pods away appeared.", []Sentence{{ReasonTainted, "An entry of spec.taints appeared or changed its value."}}},
		{KindNodeUntainted, "A taint went away.", []Sentence{{ReasonUntainted, "An entry of spec.taints went away."}}},
		{KindNodeNotReady, "The node is not ready.", []Sentence{
			{ReasonKubeletSilent, "Its condition Ready became Unknown: its kubelet does not answer."},
			{ReasonKubeletNotReady, "Its condition Ready became False: its kubelet reports why."},
		}},
		{KindNodeReady, "The node is ready again.", []Sentence{{ReasonKubeletReady, "Its condition Ready became True."}}},
		{KindNodeGone, "The node exists no more.", []Sentence{{ReasonNodeDeleted, "The Node object was deleted."}}},
		{KindKubernetesEvent, "KubeVirt emitted a Kubernetes Event that says what no object says.", []Sentence{
			{ReasonEmitted, "The Event appeared, or its count rose."},
		}},
		{KindConfigSeen, "The rules in force were seen or changed.", []Sentence{
			{ReasonKubeVirtSettings, "Settings of the KubeVirt CR."},
			{ReasonDeschedulerPolicy, "The policy of the descheduler."},
			{ReasonMigrationPolicy, "A MigrationPolicy of KubeVirt."},
			{ReasonMigrationPolicyDeleted, "A MigrationPolicy exists no more."},
		}},
		{KindEvictionRequested, "Somebody asked to evict a virt-launcher pod; the reason is the answer.", []Sentence{
			{Reason(AnswerMarked), "KubeVirt marked the VMI: it will be moved."},
			{Reason(AnswerAlreadyMarked), "The VMI was marked before; nothing changed."},
			{Reason(AnswerNotMigratable), "KubeVirt refused: the VMI cannot be live-migrated."},
			{Reason(AnswerTargetPod), "KubeVirt refused: the pod is the target of a migration."},
			{Reason(AnswerPDB), "The API server refused: a PodDisruptionBudget forbids it."},
			{Reason(AnswerAllowed), "The pod was deleted."},
			{Reason(AnswerNotFound), "The pod was gone already."},
			{Reason(AnswerError), "It failed for another cause."},
			{Reason(AnswerUnknown), "The observer saw it; the answer was not seen."},
		}},
		{KindActionRequested, "Somebody asked for something else that moves VMs or keeps them.", []Sentence{
			{ReasonMigrationCreated, "To make a migration."},
			{ReasonMigrationDeleted, "To delete a migration."},
			{ReasonMigrateCalled, "To migrate a VM, through KubeVirt's subresource."},
			{ReasonCancelCalled, "To cancel an evacuation, through KubeVirt's subresource."},
			{ReasonNodeChanged, "To change a Node: cordon, uncordon, taint."},
		}},
		{KindBlocksObserved, "The descheduler's metrics say how often KubevirtMigrationAware held back an eviction.", []Sentence{
			{ReasonCooldown, "The VM had migrated not long before."},
			{ReasonMigrationInProgress, "The VM was being migrated."},
			{ReasonOther, "For a reason that evictrail does not know; the detail has it as it came."},
		}},
		{KindDeschedulerStarted, "The descheduler's metrics name the start of its process.", []Sentence{
			{ReasonStarted, "A start that was not recorded before: it was started, or is seen for the first time."},
		}},
		{KindNodeLoad, "How loaded the nodes of a migration were at a moment of it: when it was asked for, began, ended, and some minutes after.", []Sentence{
			{ReasonSampled, "Some of it is known; the detail has each metric."},
			{ReasonNotSampled, "Nothing of it is known; the detail says why."},
		}},
		{KindGapOpened, "A source could not be seen from here on.", gapReasons},
		{KindGapClosed, "A source can be seen again.", gapReasons},
	}
}

var (
	annotationReasons = []Sentence{
		{ReasonEvictionSource, "kubevirt.io/eviction-source on the VMI: who asked for the eviction."},
		{ReasonEvictionInProgress, "eviction-in-progress on the pod: what the descheduler believes to be under way."},
		{ReasonPreferNoEviction, "prefer-no-eviction on the pod: the descheduler is asked to leave it alone."},
	}
	conditionReasons = []Sentence{
		{ReasonConditionSet, "The condition appeared or changed."},
		{ReasonConditionRemoved, "The condition went away."},
	}
	goneReasons = []Sentence{
		{ReasonDeleted, "Its deletion was seen."},
		{ReasonDeletedUnseen, "It was missing from a later list: it was deleted while nobody watched."},
		{ReasonNotRestored, "It was not there any more when the cluster had been restored from a backup or rebuilt."},
	}
	gapReasons = []Sentence{
		{ReasonExpired, "The API server had forgotten the resourceVersion to resume from (410 Gone)."},
		{ReasonRelisted, "The watch broke and the client listed again."},
		{ReasonNotRunning, "evictrail was not running."},
		{ReasonOverflow, "More came than could be kept."},
		{ReasonUnreachable, "It did not answer, or not with what was expected."},
		{ReasonForbidden, "evictrail has no right to see it."},
		{ReasonCorrupted, "It was seen, and what was kept of it on disk could not be read again."},
		{ReasonRefused, "It was seen, and the database refused to store it."},
		{ReasonClusterRestored, "The cluster went back to an earlier state: its etcd was restored from a backup."},
		{ReasonClusterRebuilt, "Another cluster is recorded under the same name: it was rebuilt."},
		{ReasonDatabaseRewound, "The database lost what it had confirmed: it was restored, or failed over to a standby that was behind."},
	}
)
