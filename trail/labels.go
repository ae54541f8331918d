package trail

import "slices"

// The labels of every closed set of values: what pages, commands, alerts, dashboards and docs/glossary.md call them. Those of facts are in Kinds. A set whose
// values are listed elsewhere, such as in Triggers, takes them from here.

var requesterLabels = labels[RequesterClass]{
	{RequesterDescheduler, "descheduler", "The descheduler, which moves VMs off nodes that are over their thresholds."},
	{RequesterKubectl, "kubectl", "A person or a script with kubectl or oc, such as kubectl drain."},
	{RequesterClusterAutoscaler, "cluster autoscaler", "The cluster autoscaler, which empties nodes that it removes."},
	{RequesterKarpenter, "Karpenter", "Karpenter, which replaces and removes nodes."},
	{RequesterMachineConfig, "machine config operator", "OpenShift's machine config operator, which updates and reboots nodes."},
	{RequesterClusterAPI, "Cluster API", "Cluster API, which replaces and removes machines."},
	{RequesterNodeMaintenance, "node maintenance operator", "The node maintenance operator, which empties nodes for maintenance."},
	{RequesterKured, "kured", "kured, which reboots nodes."},
	{RequesterKubeVirt, "KubeVirt", "A component of KubeVirt."},
	{RequesterForklift, "Forklift", "Forklift, which migrates VMs from other platforms."},
	{RequesterHarvester, "Harvester", "Harvester, the platform around KubeVirt."},
	{RequesterConsole, "web console", "A person with a web console or a browser."},
	{RequesterArgoCD, "Argo CD", "Argo CD, which applies what is in a repository."},
	{RequesterFlux, "Flux", "Flux, which applies what is in a repository."},
	{RequesterEvictionRequest, "EvictionRequest", "A program that made an EvictionRequest (lifecycle.k8s.io), under the name that it has there."},
	{RequesterServiceAccount, "unknown service account", "A service account that evictrail does not know: a controller, or anybody's program."},
	{RequesterOther, "user", "A user who is none of the programs above."},
	{RequesterUnknown, "unknown requester", "No source shows who it was."},
}

var answerLabels = labels[RequestAnswer]{
	{AnswerMarked, "accepted", "KubeVirt marked the VMI: it will be moved."},
	{AnswerAlreadyMarked, "already marked", "The VMI was marked before; nothing changed."},
	{AnswerNotMigratable, "refused: not migratable", "KubeVirt refused: the VMI cannot be live-migrated."},
	{AnswerTargetPod, "refused: migration target", "KubeVirt refused: the pod is the target of a migration."},
	{AnswerPDB, "refused: disruption budget", "The API server refused: a PodDisruptionBudget forbids it."},
	{AnswerAllowed, "allowed", "The pod was deleted, or would be in a dry run."},
	{AnswerNotFound, "pod not found", "The pod was gone already."},
	{AnswerError, "error", "It failed for another cause."},
	{AnswerUnknown, "answer not seen", "The observer saw it; the answer was not seen."},
}

var effectLabels = labels[Effect]{
	{EffectEvacuation, "evacuation", "KubeVirt marked the VMI because of it."},
	{EffectShutdown, "shutdown", "Its pod ran the guest: the VM was shut down, not moved."},
	{EffectNone, "no effect", "It was refused, repeated or a dry run, or the pod had ended already."},
}

var requestSourceLabels = labels[string]{
	{string(SourceAdmission), "eviction observer", "evictrail's admission webhook saw it, and the audit log did not."},
	{string(SourceAudit), "audit log", "The audit log has it, and the observer did not see it."},
	{sourceBoth, "observer and audit log", "The observer saw it, and the audit log has it."},
	{string(SourceMark), "mark only", "The request itself was not seen; its mark shows that there was one."},
}

var confidenceLabels = labels[Confidence]{
	{ConfidenceObserved, "observed", "The audit log has the request."},
	{ConfidenceAsserted, "asserted", "A field of an object says so, or the eviction observer alone."},
	{ConfidenceInferred, "inferred", "It is deduced from what else was seen."},
	{ConfidenceUnknown, "unknown", "Nothing that was seen says so."},
}

var markedByLabels = labels[string]{
	{MarkedByMark, "mark", "KubeVirt set status.evacuationNodeName of the VMI."},
	{MarkedByTaint, "drain taint", "The node got KubeVirt's drain taint, which marks no VMI."},
	{MarkedByMigration, "first attempt", "Its first attempt shows it; the mark itself was not seen."},
}

var triggerLabels = labels[Trigger]{
	{TriggerDescheduler, "descheduler", "The descheduler evicted the VM."},
	{TriggerDrain, "drain", "The VM was evicted from a cordoned node, which is being emptied."},
	{TriggerDrainTaint, "drain taint", "The node got KubeVirt's drain taint."},
	{TriggerEviction, "single eviction", "An eviction that is neither the descheduler's nor a drain's."},
	{TriggerWorkloadUpdate, "workload update", "KubeVirt moves VMs to run them in its new version."},
	{TriggerHotplug, "hotplug", "KubeVirt moves the VM to change its CPU, memory or devices."},
	{TriggerStorage, "storage migration", "The volumes of the VM go to other storage."},
	{TriggerNamedNode, "named node", "Somebody asked to move the VM to a certain node."},
	{TriggerUser, "user", "A person asked to migrate the VM."},
	{TriggerController, "controller", "A program that is no part of KubeVirt made the migration."},
	{TriggerDecentralized, "decentralized migration", "It is one half of a migration between clusters or namespaces."},
	{TriggerUnknown, "unknown trigger", "Nothing that was seen says why it exists."},
}

var outcomeLabels = labels[Outcome]{
	{OutcomeMigrated, "moved", "Evacuation: the guest has left the node."},
	{OutcomeCancelled, "cancelled", "Evacuation: the mark was taken away while the guest was still there."},
	{OutcomeVMIGone, "VMI ended", "Evacuation: the guest ended, or its VMI was deleted, before it had moved."},
	{OutcomeSucceeded, "succeeded", "Migration: the guest runs on its target."},
	{OutcomeFailed, "failed", "Migration: it ended without moving the guest."},
	{OutcomeAborted, "aborted", "Migration: somebody deleted it, or its VMI, before it was over."},
}

var phaseLabels = labels[string]{
	{PhasePending, "pending", "It has no target pod yet."},
	{PhaseScheduling, "scheduling", "Its target pod waits for a node."},
	{PhaseScheduled, "scheduled", "Its target pod has a node and starts."},
	{PhasePreparingTarget, "preparing target", "virt-handler of the target node prepares the VM there."},
	{PhaseTargetReady, "target ready", "The target waits for the data."},
	{PhaseRunning, "running", "Data moves."},
	{PhaseWaitingForSync, "waiting for sync", "One half of a decentralized migration waits for the other."},
	{PhaseSynchronizing, "synchronizing", "The halves of a decentralized migration exchange their state."},
	{PhaseSucceeded, "succeeded", "The guest runs on its target."},
	{PhaseFailed, "failed", "It ended without moving the guest."},
}

var waitLabels = labels[WaitReason]{
	{WaitDeleting, "being deleted", "It is being deleted, and a finalizer keeps it."},
	{WaitQuota, "resource quota", "A ResourceQuota refuses the target pod; there is no time limit."},
	{WaitBackup, "backup running", "A backup of the VM runs."},
	{WaitUtilityVolumes, "utility volumes attached", "Utility volumes are still attached to the VM."},
	{WaitBackoff, "backoff", "KubeVirt waits after a failed attempt."},
	{WaitLeftoverPods, "leftover pods", "Another pod of the VM is still there."},
	{WaitClusterLimit, "cluster limit", "As many migrations run as the cluster may have."},
	{WaitNodeLimit, "node limit", "As many migrations leave the node as may."},
	{WaitQueued, "queued", "None of the other reasons: the controller has not come to it yet."},
	{WaitTargetNode, "target node not ready", "It has its target pod, on a node that is not ready: it holds its slot and does not get on."},
}

var failureClassLabels = labels[FailureClass]{
	{FailureScheduling, "scheduling", "The target pod found no node."},
	{FailureControlPlane, "target setup", "The target died or was refused before data moved."},
	{FailureDataPlane, "data transfer", "The transfer failed; the guest still runs on its source."},
	{FailurePostCopy, "post-copy", "The transfer failed after the guest had left its source: it is lost."},
	{FailureAborted, "aborted", "Somebody deleted the migration, or its VMI, before it was over."},
	{FailureGuestLost, "guest lost", "The guest was lost at hand-over: it ran on neither node."},
	{FailureUnknown, "unknown cause", "Nothing that was seen says where it failed."},
}

var failureReasonLabels = labels[FailureReason]{
	{CauseUnschedulable, "target pod unschedulable", "The scheduler found no node for the target pod."},
	{CauseNoCPUModel, "no matching CPU model", "No node has the CPU model that the guest needs."},
	{CausePendingTimeout, "target pod pending", "The target pod did not start in time."},
	{CauseTargetRemoved, "target pod removed", "The target pod was removed while the migration ran."},
	{CauseTargetCrashed, "target pod crashed", "The target pod ended while the migration ran."},
	{CauseAttachmentCrashed, "attachment pod crashed", "The pod that attaches hotplugged volumes on the target ended."},
	{CauseTargetDown, "target pod down", "KubeVirt found the target pod down."},
	{CauseQuota, "quota exceeded", "A ResourceQuota refused the target pod."},
	{CausePodRefused, "target pod refused", "The API server refused the target pod."},
	{CauseUtilityVolumes, "utility volumes attached", "Utility volumes were not detached in time."},
	{CauseBackup, "backup running", "A backup of the VM was running."},
	{CauseConcurrent, "concurrent migration", "Another migration of the VM was under way."},
	{CauseStateLost, "migration state lost", "KubeVirt found the migration's state on the VMI cleared."},
	{CauseVMIGone, "VMI ended", "The VMI was shut down or deleted."},
	{CauseSync, "target setup failed", "virt-handler could not set up volumes, network or resources on the target."},
	{CauseNoProgress, "no progress", "No data got across for as long as the progress timeout."},
	{CauseTooSlow, "too slow", "It did not end within its completion timeout: the guest writes faster than data moves."},
	{CauseMonitorAbort, "aborted by KubeVirt", "KubeVirt ended the transfer; whether stuck or too slow is not known."},
	{CauseVolumeTooSmall, "target volume too small", "The destination volume is smaller than the source volume."},
	{CausePreparing, "preparation failed", "virt-launcher could not prepare the transfer on the source."},
	{CauseTestHook, "functional test", "KubeVirt's own functional tests made it fail."},
	{CauseConnection, "connection lost", "The connection between source and target broke."},
	{CauseTargetQEMU, "target QEMU died", "QEMU on the target ended during the transfer."},
	{CauseIncompatible, "incompatible target", "The target cannot run the guest as it is configured."},
	{CauseStorage, "storage error", "A disk could not be read, written or locked."},
	{CauseStateLock, "libvirt lock held", "libvirt could not lock the domain to change it."},
	{CauseLibvirt, "libvirt error", "libvirt failed in a way that is not classified; its own text says how."},
	{CauseReported, "reported by source", "The source node reported the failure without a text."},
	{CauseUserAbort, "aborted by user", "Somebody deleted the migration."},
	{CausePostCopy, "post-copy failed", "The transfer broke in post-copy mode: the guest cannot be recovered."},
	{CauseNeverObserved, "never on target", "KubeVirt never saw the guest on its target."},
	{CauseUnknownHost, "unknown host", "The guest went to a host that KubeVirt does not know."},
	{CauseBeforeHandOver, "ended before hand-over", "It ended before the target pod was ready; nothing says why."},
	{CauseBeforeStart, "ended before start", "It ended after the target pod was ready and before data moved; nothing says why."},
	{CauseDuringTransfer, "ended during transfer", "It ended while data moved; nothing says why."},
	{CauseEndNotSeen, "end not seen", "It vanished, and how it ended was not seen."},
	{CauseNothingSaid, "no reason given", "No object and no Kubernetes Event says why."},
	{CauseDecentralizedHosts, "certificate mismatch", "The certificate of the other cluster does not match its host name."},
}

var needLabels = labels[Need]{
	{Needed, "needed", "The source was over its threshold when the attempt began."},
	{NotNeeded, "not needed", "The source was not over its threshold when the attempt began."},
	{NeedUnknown, "unknown", "The load of the source at that time is not known."},
}

var benefitLabels = labels[Benefit]{
	{Helped, "helped", "The source is under its threshold now, or less over it, and the target is not over its own."},
	{NoEffect, "no effect", "The source is as loaded as before or was not over its threshold, or the target was over its own before."},
	{Harmed, "harmed", "The target went over its threshold."},
	{BenefitUnknown, "unknown", "The load of the nodes after the move is not known."},
}

var likelihoodLabels = labels[Likelihood]{
	{Likely, "likely", "The earlier move brought the node over its threshold, and the later one began while it was over it."},
	{Possible, "possible", "Only the order in time and the node speak for it: of one of the two the load is not known."},
}

var arrivalLabels = labels[string]{
	{ArrivedStart, "started there", "The VM was started on the node."},
	{LeftEnd, "guest ended", "The guest ended on the node."},
	{ArrivedUnknown, "unknown", "Nothing that was seen says by which migration."},
}

var endingLabels = labels[Ending]{
	{EndingEvicted, "evicted", "KubeVirt let an eviction of the pod pass, instead of moving the VM."},
	{EndingTaint, "NoExecute taint", "A NoExecute taint took the pod away."},
	{EndingPreempted, "preempted", "The scheduler made room for another pod."},
	{EndingNodePressure, "node pressure", "The kubelet ended the pod: under pressure, for a critical pod, or as the node shut down."},
	{EndingPodGC, "node gone", "The pod was cleaned up after its node."},
	{EndingPostCopy, "lost in post-copy", "A live migration failed when the guest already ran on its target."},
	{EndingHandOver, "lost at hand-over", "A live migration ended, and the guest was on neither node."},
	{EndingStopped, "stopped", "The guest was shut down by itself or by its owner."},
	{EndingDeleted, "deleted", "The VMI was deleted."},
	{EndingFailed, "failed", "The guest was lost, and nothing that was seen says why."},
}

var layerLabels = labels[Layer]{
	{LayerCooldown, "descheduler's cooldown", "After a migration the descheduler leaves the VM alone for a while."},
	{LayerBackoff, "KubeVirt's backoff", "After a failed attempt KubeVirt waits before the next one."},
}

var verdictLabels = labels[Verdict]{
	{VerdictHolds, "held back", "From here on the VM is held back."},
	{VerdictBlocked, "blocked", "An eviction or an attempt met what holds the VM back: it was stopped, or should have been."},
	{VerdictReleased, "released", "The VM is held back no more."},
}

var decisionLabels = labels[string]{
	{DecidedCompleted, "migration ended", "A migration ended: a cooldown begins."},
	{DecidedAgain, "recomputed", "The descheduler was started, or its policy changed, while it held."},
	{DecidedFailed, "attempt failed", "An attempt failed: a backoff begins."},
	{DecidedInProgress, "migration running", "A running migration was met."},
	{DecidedCooldown, "cooldown", "A cooldown was met."},
	{DecidedExpired, "expired", "The time is over."},
	{DecidedOver, "ended early", "The evacuation or the VMI ended before the time was over."},
	{DecidedObserved, "counted block", "A counter of the descheduler rose."},
}

var decisionOriginLabels = labels[string]{
	{OriginDerived, "derived", "evictrail follows from what it saw that it must be so."},
	{OriginObserved, "observed", "A counter of the descheduler says so; it names no VM."},
}

var loopKindLabels = labels[LoopKind]{
	{LoopDualRetry, "dual retry loop", "KubeVirt retries one VM while the descheduler goes on evicting from its node."},
	{LoopEndlessRetry, "endless retry", "KubeVirt retries one VM again and again."},
	{LoopPingPong, "ping-pong", "The descheduler moves a VM back to nodes that it took it from."},
	{LoopChurn, "churn", "The descheduler moves one VM very often."},
	{LoopOscillation, "oscillation", "The descheduler moves VMs to and fro between two nodes, or in a circle through more."},
	{LoopFrequentMoves, "frequent moving", "One VM is moved very often, no matter who asks."},
	{LoopRepeatedFailures, "repeated failure", "Migrations of one VM fail again and again, no matter who asks."},
	{LoopShutdownChurn, "shutdown loop", "The descheduler shuts one VM down again and again."},
	{LoopBudgetPinned, "blocked descheduler", "Stuck evacuations occupy all slots of the descheduler."},
	{LoopPriorityInversion, "priority inversion", "A drain waits for a VM whose migration has the lowest priority."},
	{LoopUnansweredExternal, "unanswered eviction", "Nobody moves a VM that its owner has to move."},
}

var loopPathLabels = labels[LoopPath]{
	{PathAnnotationLost, "annotation lost", "KubeVirt takes the annotation eviction-in-progress off at each failure, so the descheduler sees a free slot."},
	{PathFreeSlot, "descheduler has free slots", "The annotation stays, and the descheduler has another slot, so it evicts another VM."},
	{PathRequestForgotten, "descheduler forgets requests", "The descheduler forgets its request after 10 to 20 minutes, and begins again."},
	{PathGateOff, "requests taken for failures", "The descheduler does not count evictions in the background: its feature gate is off."},
	{PathUnclassified, "unclassified", "The policy of the descheduler was not seen."},
}

var loopEndLabels = labels[LoopEnd]{
	{LoopMigrated, "moved", "The VM has moved."},
	{LoopCancelled, "cancelled", "The evacuation was cancelled."},
	{LoopVMIGone, "VMI ended", "The VMI ended."},
	{LoopQuiet, "quiet", "Nothing that belongs to it has happened for a while; of a blocked descheduler: a slot is free again."},
	{LoopBecameDualRetry, "became dual retry", "The descheduler acts on the node, too: it goes on as a dual retry loop."},
	{LoopRefuted, "refuted", "Later facts show that it never was."},
}

var loopCountLabels = labels[string]{
	{countFailedAttempts, "failed attempts", "How many attempts of the evacuation failed."},
	{countDeschedulerActs, "descheduler's evictions", "How often the descheduler evicted from the node since then."},
	{countOtherVMs, "other VMs evicted", "How many other VMs of the node it evicted."},
	{countSameVMRequests, "same VM again", "How often it asked for the same VM again."},
	{countWaits, "seconds waited", "How long the drain waited for the VM."},
	{countMoves, "moves", "How often the VM was moved."},
	{countReturns, "returns", "How often it was moved back to a node that it came from."},
	{countSwings, "swings", "How often a move from or to the node answered one of another VM the other way."},
	{countMembers, "members", "How many VMs these moves were of."},
	{countPeriod, "period", "How long once to and fro, or round, takes on average, in seconds."},
	{countFailures, "failures", "How many migrations of the VM failed in a row."},
	{countShutdowns, "shutdowns", "How often the VM was shut down."},
	{countSlots, "slots", "How many slots the descheduler has."},
	{countHeld, "slots held", "How many of them evacuations that do not end hold."},
}

var drainOutcomeLabels = labels[DrainOutcome]{
	{DrainEmptied, "emptied", "No guest is left on the node."},
	{DrainAbandoned, "abandoned", "The node takes pods again, or nobody asks any more, with guests left."},
	{DrainNodeGone, "node gone", "The node was deleted."},
}

var noticeLabels = labels[NoticeKind]{
	{NoticeLoopOpened, "loop opened", "A loop began: repetition that does not converge."},
	{NoticeLoopClosed, "loop closed", "A loop is over."},
	{NoticeEvacuationStuck, "evacuation stuck", "A VM is to leave its node, and an attempt to move it has failed."},
	{NoticeEvacuationEnded, "evacuation ended", "A VM left the node that it was to leave, or has to leave it no more."},
	{NoticeGuestLost, "guest lost", "A guest went down, and its owner did not ask for that."},
	{NoticeDrainStarted, "drain started", "A node is being emptied."},
	{NoticeDrainEnded, "drain ended", "A node is emptied, or is to be emptied no more."},
}

var deliveryLabels = labels[Delivery]{
	{DeliveryTaken, "taken", "The receiver took it."},
	{DeliveryRefused, "refused", "The receiver will never take it: it is left out."},
	{DeliveryFailed, "failed", "The receiver did not take it, and is sent again."},
}

var waveOutcomeLabels = labels[WaveOutcome]{
	{WaveCompleted, "completed", "No VM is left in an outdated virt-launcher."},
	{WaveStopped, "stopped", "VMs are left, and for an hour nothing happened to any."},
	{WaveSuperseded, "superseded", "The next wave began within an hour, with VMs left."},
}

var blockerLabels = labels[Blocker]{
	{BlockerNotMigratable, "not migratable", "The VM cannot be live-migrated: shut it down, or remove the obstacle."},
	{BlockerFailing, "failing", "Attempts to move the VM failed."},
	{BlockerQueued, "queued", "The migration of the VM waits for its turn."},
	{BlockerMigrating, "migrating", "The VM is on its way."},
	{BlockerExternal, "owner has to move", "The eviction strategy is External: the owner of the VM has to move it."},
	{BlockerOptedOut, "opted out", "The eviction strategy is None: an eviction would shut the VM down."},
	{BlockerPDB, "disruption budget", "A PodDisruptionBudget forbids the eviction."},
	{BlockerNodeNotReady, "node not ready", "The node of the VM is not ready."},
}

var drainEffectLabels = labels[DrainEffect]{
	{DrainStays, "stays", "As things are the VM does not leave the node."},
	{DrainShutsDown, "is shut down", "The pod of the VM is deleted, and its memory is lost."},
	{DrainMoves, "moves", "KubeVirt moves the VM to another node."},
}

var outageCauseLabels = labels[OutageCause]{
	{OutageSilent, "kubelet silent", "The kubelet of the node does not answer."},
	{OutageReported, "kubelet not ready", "The kubelet of the node reports that it is not ready."},
}

var outageEndLabels = labels[OutageEnd]{
	{OutageRecovered, "recovered", "The node is ready again."},
	{OutageNodeGone, "node gone", "The node was deleted."},
}

var outlookLabels = labels[Outlook]{
	{OutlookNever, "never as configured", "The evacuation cannot succeed as the VM, its disks and the nodes are configured."},
	{OutlookNotUntil, "not until something changes", "The evacuation cannot succeed before something changes that need not change by itself."},
	{OutlookTransient, "may still succeed", "What is in the way of the evacuation may pass by itself."},
}

var obstacleLabels = labels[ObstacleKind]{
	{ObstacleGone, "not running", "The VM does not run."},
	{ObstacleNodeNotReady, "on an unready node", "The node of the VM is not ready."},
	{ObstacleTerminating, "terminating", "The pod of the VM is being deleted."},
	{ObstacleMigrating, "on the way", "Nothing: the VM is being moved."},
	{ObstacleStalled, "stalled", "The VM is on the way to a node that is not ready."},
	{ObstacleExternal, "left to the owner", "The eviction strategy is External: the owner has to move the VM."},
	{ObstacleNotMigratable, "not migratable", "The VM cannot be live-migrated."},
	{ObstacleFailing, "failing", "The migrations of the VM fail."},
	{ObstacleWaiting, "waiting", "The migration of the VM waits for its turn."},
	{ObstacleBackoff, "in backoff", "KubeVirt waits after a failed attempt."},
	{ObstacleGivenUp, "not retried", "A migration made by hand failed, and nobody tries again."},
	{ObstacleStrategy, "without live-migrate strategy", "An eviction would shut the VM down."},
	{ObstacleCooldown, "in cooldown", "The descheduler leaves the VM alone for a while."},
	{ObstacleOptedOut, "opted out", "The descheduler is asked to leave the VM alone."},
	{ObstacleSlots, "waiting for a slot", "Other evacuations hold the slots of the descheduler."},
	{ObstacleNobodyAsks, "free to move", "Nothing is in the way, and nobody asks."},
}

var convergenceLabels = labels[Convergence]{
	{Converged, "converged", "So little was left to copy that the guest moved."},
	{ConvergedPostCopy, "post-copy", "KubeVirt moved the guest before its memory."},
	{ConvergedPaused, "guest stopped", "KubeVirt stopped the guest until all was copied."},
	{NotConverged, "gave up", "Copying did not keep up with what the guest wrote, and KubeVirt gave up."},
}

var momentLabels = labels[LoadMoment]{
	{MomentRequest, "request", "When the eviction was requested or, outside of evacuations, the migration was made."},
	{MomentAttempt, "attempt", "When the attempt got its target pod."},
	{MomentEnd, "end", "When the migration was over."},
	{MomentAfter, "after", "When the guest had been on its new node for a while."},
}

var sampleLabels = labels[LoadSample]{
	{SampleBefore, "last before", "The last sample at the moment or before."},
	{SampleNext, "next", "The first sample after the moment."},
	{SamplePeak, "peak", "Of the target: the highest sample of the first minutes after the move."},
	{SampleLastOver, "last over threshold", "Of an attempt: the last sample before in which the node was over its threshold."},
}

var lackLabels = labels[LoadLack]{
	{LackNoSeries, "no such metric", "The source answered, and has no such metric of anything."},
	{LackNoSample, "no sample", "The source has the metric, and not of this node or VM at that time."},
	{LackNotANumber, "not a number", "The value is no number."},
	{LackRefused, "query refused", "The source does not take the query."},
	{LackUnanswered, "no answer", "The source was asked for hours without a usable answer."},
	{LackNotAsked, "not asked", "There was no source to ask: evictrail runs without --prometheus-url, or has not asked yet."},
}

var loadOriginLabels = labels[LoadOrigin]{
	{OriginPrometheus, "Prometheus", "A Prometheus was asked."},
	{OriginDescheduler, "descheduler's metrics", "The descheduler's own metrics: what it saw in its last cycle."},
}

var recorderLabels = labels[RecorderState]{
	{RecorderRecording, "recording", "Everything is seen, stored and derived."},
	{RecorderDegraded, "degraded", "Something is not seen, or would be lost by a restart."},
	{RecorderBehind, "derivation behind", "Facts are stored, and what they mean is not derived yet."},
	{RecorderNoLeader, "no leader", "Facts are stored, and no replica may derive what they mean."},
	{RecorderReadOnly, "database not writable", "The database takes no writes: facts wait in the spool."},
	{RecorderNotRecording, "not recording", "Nothing is seen, or no recorder runs."},
}

var standbyLabels = labels[StandbyCause]{
	{StandbyAway, "standby away", "The standby of the database does not answer, so the primary answers what is asked."},
	{StandbyPrimary, "no standby", "The server that is to be the standby takes writes: it was promoted, or is none."},
	{StandbyLags, "standby behind", "The standby is further behind the primary than it may be."},
}

var sourceLabels = labels[string]{
	{"virtualmachineinstances", "VMIs", "The watch of VirtualMachineInstances."},
	{"virtualmachineinstancemigrations", "migrations", "The watch of VirtualMachineInstanceMigrations."},
	{"pods", "pods", "The watch of virt-launcher pods."},
	{"nodes", "nodes", "The watch of Nodes."},
	{"kubevirts", "KubeVirt settings", "The watch of the KubeVirt resource."},
	{"events", "Kubernetes Events", "The watch of Kubernetes Events."},
	{"configmaps", "descheduler's policy", "The watch of the ConfigMap that holds the policy of the descheduler."},
	{"migrationpolicies", "migration policies", "The watch of MigrationPolicies."},
	{"evictionrequests", "EvictionRequests", "The watch of EvictionRequests (lifecycle.k8s.io)."},
	{"evictions", "Evictions", "The watch of Evictions (lifecycle.k8s.io)."},
	{"descheduler", "descheduler's metrics", "The metrics of the descheduler."},
	{string(OriginPrometheus), "Prometheus", "The Prometheus that is asked for the load of nodes."},
	{string(SourceAudit), "audit log", "The audit log of the API server."},
	{string(SourceAdmission), "eviction observer", "The admission webhook that sees eviction requests."},
	{SourceSelf, "evictrail", "evictrail itself: it did not run, or lost something."},
}

var clockLabels = labels[Clock]{
	{ClockAPIServer, "API server", "The API server: creation and deletion of objects, audit events."},
	{ClockVirtController, "virt-controller", "virt-controller: phases and conditions; to the second."},
	{ClockSourceNode, "source node", "The node that the guest leaves: start and end of the transfer; to the second."},
	{ClockEmitter, "emitter", "Who emitted the Kubernetes Event or set the condition or taint."},
	{ClockObserver, "evictrail", "evictrail itself: the object has no time for this change."},
}

var annotationLabels = labels[string]{
	{AnnotatedByAttempt, "until attempt fails", "KubeVirt takes the annotation off when an attempt fails (until v1.6.0)."},
	{AnnotatedByMark, "until evacuation ends", "The annotation stays until the evacuation ends."},
	{AnnotatedUnknown, "unknown", "The version of KubeVirt is not known."},
}

var vmStateLabels = labels[VMState]{
	{VMRunning, "running", "It runs, and nothing is known to be in the way of a move."},
	{VMLeaving, "leaving", "It is to leave its node: an evacuation is open."},
	{VMStuck, "stuck", "It is to leave its node, and an attempt has failed."},
	{VMTerminating, "terminating", "Its pod is being deleted while the guest runs."},
	{VMNotMigratable, "not migratable", "It runs, and cannot be live-migrated."},
}

var foundLabels = labels[FoundKind]{
	{FoundVM, "VM", "A virtual machine, by its namespace and name or the UID of its VMI."},
	{FoundNode, "node", "A node."},
	{FoundMigration, "migration", "A migration, by its name or UID."},
}

// Label returns the label of the requester class.
func (c RequesterClass) Label() Label { return requesterLabels.of(c) }

// Label returns the label of the answer.
func (a RequestAnswer) Label() Label { return answerLabels.of(a) }

// Label returns the label of the effect.
func (e Effect) Label() Label { return effectLabels.of(e) }

// Label returns the label of the confidence.
func (c Confidence) Label() Label { return confidenceLabels.of(c) }

// Label returns the label of the trigger.
func (t Trigger) Label() Label { return triggerLabels.of(t) }

// Label returns the label of the outcome.
func (o Outcome) Label() Label { return outcomeLabels.of(o) }

// Label returns the label of the outlook.
func (o Outlook) Label() Label { return outlookLabels.of(o) }

// Label returns the label of the reason.
func (r WaitReason) Label() Label { return waitLabels.of(r) }

// Label returns the label of the failure class.
func (c FailureClass) Label() Label { return failureClassLabels.of(c) }

// Label returns the label of the failure reason.
func (r FailureReason) Label() Label { return failureReasonLabels.of(r) }

// Label returns the label of the verdict.
func (n Need) Label() Label { return needLabels.of(n) }

// Label returns the label of the verdict.
func (b Benefit) Label() Label { return benefitLabels.of(b) }

// Label returns the label of the likelihood.
func (l Likelihood) Label() Label { return likelihoodLabels.of(l) }

// Label returns the label of the ending.
func (e Ending) Label() Label { return endingLabels.of(e) }

// Label returns the label of the layer.
func (l Layer) Label() Label { return layerLabels.of(l) }

// Label returns the label of the verdict.
func (v Verdict) Label() Label { return verdictLabels.of(v) }

// Label returns the label of the kind.
func (k LoopKind) Label() Label { return loopKindLabels.of(k) }

// Label returns the label of the path.
func (p LoopPath) Label() Label { return loopPathLabels.of(p) }

// Label returns the label of the end.
func (e LoopEnd) Label() Label { return loopEndLabels.of(e) }

// Label returns the label of the outcome.
func (o DrainOutcome) Label() Label { return drainOutcomeLabels.of(o) }

// Label returns the label of the blocker.
func (b Blocker) Label() Label { return blockerLabels.of(b) }

// Label returns the label of the effect.
func (e DrainEffect) Label() Label { return drainEffectLabels.of(e) }

// Label returns the label of the cause.
func (c OutageCause) Label() Label { return outageCauseLabels.of(c) }

// Label returns the label of the end.
func (e OutageEnd) Label() Label { return outageEndLabels.of(e) }

// Label returns the label of the kind.
func (k ObstacleKind) Label() Label { return obstacleLabels.of(k) }

// Label returns the label of the cause.
func (l LoadLack) Label() Label { return lackLabels.of(l) }

// Label returns the label of the way in which a transfer ended.
func (c Convergence) Label() Label { return convergenceLabels.of(c) }

// Label returns the label of the state.
func (s RecorderState) Label() Label { return recorderLabels.of(s) }

// Label returns the label of the clock.
func (c Clock) Label() Label { return clockLabels.of(c) }

// Label returns the label of the kind.
func (k FoundKind) Label() Label { return foundLabels.of(k) }

// Label returns the label of the state.
func (s VMState) Label() Label { return vmStateLabels.of(s) }

// LabelPhase returns the label of a phase of a migration.
func LabelPhase(phase string) Label { return phaseLabels.of(phase) }

// LabelSource returns the label of a source of facts, as gaps name it.
func LabelSource(source string) Label { return sourceLabels.of(source) }

// LabelCount returns the label of a number that a loop counts.
func LabelCount(name string) Label { return loopCountLabels.of(name) }

// LabelSets returns every closed set, in the order of docs/glossary.md. No column is of two sets.
func LabelSets() []LabelSet {
	sets := []LabelSet{
		requesterLabels.newSet("requester class", "eviction_requests.requester_class", "evacuations.requester_class", "migrations.requester_class", "drains.requester_class",
			"placements.ended_requester_class", "downtimes.requester_class", "weekly_downtimes.requester_class", "weekly_objectives.requester_class",
			"weekly_move_costs.requester_class"),
		answerLabels.newSet("answer to an eviction request", "eviction_requests.answer"),
		effectLabels.newSet("effect of an eviction request", "eviction_requests.effect"),
		requestSourceLabels.newSet("source of an eviction request", "eviction_requests.source"),
		confidenceLabels.newSet("confidence", "eviction_requests.confidence", "evacuations.confidence", "migrations.trigger_confidence"),
		outlookLabels.newSet("outlook of an evacuation", "evacuations.outlook"),
		markedByLabels.newSet("beginning of an evacuation", "evacuations.marked_by"),
		triggerLabels.newSet("trigger", "evacuations.trigger", "migrations.trigger", "migration_queue.trigger"),
		outcomeLabels.newSet("outcome", "evacuations.outcome", "migrations.outcome"),
		phaseLabels.newSet("phase of a migration", "migrations.phase"),
		waitLabels.newSet("reason for which a migration waits", "migrations.wait_reason", "migration_queue.wait_reason"),
		failureClassLabels.newSet("failure class", "evacuations.last_failure_class", "migrations.failure_class"),
		failureReasonLabels.newSet("failure reason", "evacuations.last_failure_reason", "migrations.failure_reason"),
		needLabels.newSet("need of an attempt", "migrations.need", "consequences.cause_need"),
		benefitLabels.newSet("benefit of a move", "migrations.benefit"),
		likelihoodLabels.newSet("likelihood of a consequence", "consequences.likelihood", "consequences.needless_likelihood"),
		arrivalLabels.newSet("arrival and departure of a guest", "placements.arrived_by", "placements.left_by"),
		endingLabels.newSet("end of a guest", "placements.ended_by", "downtimes.cause", "weekly_downtimes.cause"),
		layerLabels.newSet("layer that holds a VM back", "cooldown_decisions.layer", "cooldowns_now.layer"),
		verdictLabels.newSet("verdict of a decision", "cooldown_decisions.verdict"),
		decisionLabels.newSet("reason of a decision", "cooldown_decisions.reason"),
		decisionOriginLabels.newSet("origin of a decision", "cooldown_decisions.origin"),
		loopKindLabels.newSet("loop kind", "loops.kind"),
		loopPathLabels.newSet("path of a dual retry loop", "loops.path"),
		loopEndLabels.newSet("end of a loop", "loops.closed_by"),
		loopCountLabels.newSet("count of a loop"),
		drainOutcomeLabels.newSet("outcome of a drain", "drains.outcome"),
		noticeLabels.newSet("kind of a notice"),
		deliveryLabels.newSet("delivery of a notice"),
		waveOutcomeLabels.newSet("outcome of an upgrade wave", "upgrade_waves.outcome"),
		blockerLabels.newSet("blocker of a drain", "drain_blockers.blocker"),
		drainEffectLabels.newSet("effect of a drain on a VM"),
		outageCauseLabels.newSet("cause of a node outage", "node_outages.cause"),
		outageEndLabels.newSet("end of a node outage", "node_outages.ended_by"),
		obstacleLabels.newSet("obstacle to a move"),
		momentLabels.newSet("moment of a load sample", "node_context.moment"),
		sampleLabels.newSet("sample around a moment", "node_context.sample"),
		lackLabels.newSet("reason for which a measurement is not known", "node_context.reason", "migrations.transfer_lack"),
		convergenceLabels.newSet("end of a transfer", "migrations.convergence"),
		loadOriginLabels.newSet("origin of load", "node_context.origin"),
		recorderLabels.newSet("state of the recorder"),
		standbyLabels.newSet("cause for which a standby does not answer"),
		sourceLabels.newSet("source of facts", "gaps.source"),
		clockLabels.newSet("clock of a fact", "events.clock"),
		annotationLabels.newSet("life of the annotation eviction-in-progress"),
		foundLabels.newSet("kind of a search result"),
		vmStateLabels.newSet("state of a VM that runs"),
	}
	return slices.Concat(sets, factLabelSets())
}
