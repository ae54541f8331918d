CREATE OR REPLACE VIEW evictrail_v1.eviction_requests AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    request_id,
    requested_at,
    answered_at,
    pod,
    requester,
    requester_class,
    user_agent,
    stated_reason,
    source,
    confidence,
    dry_run,
    answer,
    answer_code,
    answer_text,
    effect,
    evacuation_id,
    repeat_of,
    repeats,
    last_repeat_at,
    evidence,
    seen_late,
    event_id,
    changed_at,
    impersonator,
    source_ip,
    policy
FROM evictrail.eviction_requests;

COMMENT ON VIEW evictrail_v1.eviction_requests IS 'Eviction requests: each call of pods/eviction on a virt-launcher pod, one row whether the audit log, the observer, both, or only its mark showed it.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.vmi IS 'Name of the VirtualMachineInstance. NULL where the pod was never seen and the answer does not name it.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.node IS 'Node of the pod. NULL where the pod was never seen.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.request_id IS 'Identity of the request. It may change once, when another source reports the same request.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.requested_at IS 'When the API server received it; where only the mark shows it, when the VMI was marked.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.answered_at IS 'When the API server answered. NULL without an audit event.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.pod IS 'Pod that was to be evicted. NULL where only the mark shows it and the pod was not seen.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.requester IS 'User name of who asked: of an impersonation, the user as whom was asked. NULL where unknown.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.requester_class IS 'What sort of program asked, by its account: descheduler, kubectl, cluster_autoscaler, karpenter, machine_config, cluster_api, node_maintenance, kured, kubevirt, forklift, harvester, console, argo_cd, flux, service_account (one that is not known), other (a user), unknown (unknown who).';
COMMENT ON COLUMN evictrail_v1.eviction_requests.user_agent IS 'User agent of the request. NULL without an audit event.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.stated_reason IS 'The reason that the requester wrote into the Eviction, verbatim. NULL where none was written or seen.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.source IS 'Who saw it: audit, admission (the observer), admission+audit, or mark: only what it did was seen.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.confidence IS 'How it is known: observed (an audit event has it), asserted (a field names the requester, or the eviction observer alone reports it), inferred.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.dry_run IS 'True when it was only tried: nothing changed, and it is not counted.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.answer IS 'marked, already_marked, not_migratable, target_pod, pdb, allowed (the pod was deleted), not_found, error, unknown (not seen).';
COMMENT ON COLUMN evictrail_v1.eviction_requests.answer_code IS 'HTTP status of the answer. NULL where unknown.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.answer_text IS 'Message of the answer, as it came. NULL where there was none.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.effect IS 'What it changed: evacuation (it marked the VMI), shutdown (its pod held the guest: shut down, not moved), none. NULL where that is not known.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.evacuation_id IS 'The evacuation that it began, or that was under way. NULL where there was none.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.repeat_of IS 'The first request of the same requester that this one repeats. NULL for the first.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.repeats IS 'How many later requests repeat this one.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.last_repeat_at IS 'When the last of them came. NULL where none did.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.evidence IS 'What the row rests on: audit and an audit ID, admission and the UID of a review, mark and an event_id, or a field.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.seen_late IS 'True when it reached evictrail more than 10 minutes after its answer, as an imported audit log does.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.event_id IS 'The fact that reported it, as in view events.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.impersonator IS 'User name of who really asked, where that was as another user. NULL where it was not, and where the audit log does not have the request.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.source_ip IS 'The address from which was asked. Of several, separated by commas, the API server saw the last; those before it came in headers, which a client can write. NULL where the audit log does not have it.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.policy IS 'Fingerprint of the settings in force when it was requested, such as "kubevirt 1a2b3c, descheduler 4d5e6f"; evictrail settings shows what is behind it. NULL where no settings were seen.';
