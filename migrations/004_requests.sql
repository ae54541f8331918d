-- +goose Up
-- Eviction requests, each told once, and who is behind the rest.
CREATE TABLE evictrail.eviction_requests (
    cluster         text        NOT NULL,
    subject         text        NOT NULL,
    request_id      uuid        NOT NULL,
    namespace       text        NOT NULL,
    vmi             text,
    vmi_uid         text,
    node            text,
    pod             text,
    requested_at    timestamptz NOT NULL,
    answered_at     timestamptz,
    requester       text,
    requester_class text        NOT NULL CHECK (requester_class IN ('descheduler', 'kubectl', 'cluster_autoscaler', 'karpenter', 'machine_config', 'cluster_api', 'node_maintenance', 'kured', 'kubevirt', 'other', 'unknown')),
    user_agent      text,
    stated_reason   text,
    source          text        NOT NULL CHECK (source IN ('admission', 'audit', 'admission+audit', 'mark')),
    confidence      text        NOT NULL CHECK (confidence IN ('observed', 'asserted', 'inferred')),
    dry_run         boolean     NOT NULL,
    answer          text        NOT NULL CHECK (answer IN ('marked', 'already_marked', 'not_migratable', 'target_pod', 'pdb', 'allowed', 'not_found', 'error', 'unknown')),
    answer_code     integer,
    answer_text     text,
    effect          text        CHECK (effect IN ('evacuation', 'shutdown', 'none')),
    evacuation_id   uuid,
    repeat_of       uuid,
    repeats         integer     NOT NULL CHECK (repeats >= 0),
    last_repeat_at  timestamptz,
    evidence        text        NOT NULL,
    seen_late       boolean     NOT NULL,
    PRIMARY KEY (cluster, subject, request_id),
    CHECK (repeat_of IS NULL OR repeats = 0)
);
CREATE INDEX eviction_requests_by_time ON evictrail.eviction_requests (requested_at);
COMMENT ON INDEX evictrail.eviction_requests_by_time IS 'Newest requests: view eviction_requests.';

ALTER TABLE evictrail.evacuations ADD COLUMN requester text, ADD COLUMN cancelled_by text;
ALTER TABLE evictrail.migrations ADD COLUMN requester text, ADD COLUMN aborted_by text;
ALTER TABLE evictrail.placements ADD COLUMN ended_by text
    CHECK (ended_by IN ('evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'stopped', 'deleted', 'failed'));

CREATE INDEX events_by_launcher ON evictrail.events (cluster, namespace, (detail ->> 'pod')) WHERE kind = 'launcher_pod';
COMMENT ON INDEX evictrail.events_by_launcher IS 'Whose pod a request is about: derive that VM again.';
CREATE INDEX events_by_new_migration ON evictrail.events (cluster, namespace, occurred_at) WHERE kind = 'migration_seen';
COMMENT ON INDEX evictrail.events_by_new_migration IS 'Which migrations a request in their namespace made: derive their VMs again.';
CREATE INDEX events_by_migration_name ON evictrail.events (cluster, namespace, migration) WHERE kind = 'migration_seen';
COMMENT ON INDEX evictrail.events_by_migration_name IS 'Which migration a request names: derive its VM again.';

CREATE VIEW evictrail_v1.eviction_requests AS
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
    seen_late
FROM evictrail.eviction_requests;
COMMENT ON VIEW evictrail_v1.eviction_requests IS 'Eviction requests: each call of pods/eviction on a virt-launcher pod, told once whether the audit log, the observer, both, or only its mark tells of it.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.vmi IS 'Name of the VirtualMachineInstance. NULL where the pod was never seen and the answer does not name it.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.node IS 'Node of the pod. NULL where the pod was never seen.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.request_id IS 'Identity of the request. It may change once, when another source tells of the same request.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.requested_at IS 'When the API server received it; where only the mark tells, when the VMI was marked.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.answered_at IS 'When the API server answered. NULL where no audit event tells.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.pod IS 'Pod that was to be evicted. NULL where only the mark tells and the pod was not seen.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.requester IS 'User name of who asked, the impersonated one where there is one. NULL where nobody saw the request.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.requester_class IS 'What sort of program asked: descheduler, kubectl, cluster_autoscaler, karpenter, machine_config, cluster_api, node_maintenance, kured, kubevirt, other, unknown.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.user_agent IS 'User agent of the request. NULL where no audit event tells.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.stated_reason IS 'The reason that the requester wrote into the Eviction, verbatim. NULL where none was written or seen.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.source IS 'Who saw it: audit, admission (the observer), admission+audit, or mark: only what it did was seen.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.confidence IS 'How it is known: observed (the request was seen), asserted (a field names the requester), inferred.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.dry_run IS 'True when it was only tried: nothing changed, and it is not counted.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.answer IS 'marked, already_marked, not_migratable, target_pod, pdb, allowed (the pod was deleted), not_found, error, unknown (nobody saw it).';
COMMENT ON COLUMN evictrail_v1.eviction_requests.answer_code IS 'HTTP status of the answer. NULL where nobody saw it.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.answer_text IS 'Message of the answer, as it came. NULL where there was none.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.effect IS 'What it changed: evacuation (it marked the VMI), shutdown (its pod held the guest: shut down, not moved), none. NULL where that is not known.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.evacuation_id IS 'The evacuation that it began, or that was under way. NULL where there was none.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.repeat_of IS 'The first request of the same requester that this one repeats. NULL for the first.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.repeats IS 'How many later requests repeat this one.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.last_repeat_at IS 'When the last of them came. NULL where none did.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.evidence IS 'What the row rests on: audit and an audit ID, admission and the UID of a review, mark and an event_id, or a field.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.seen_late IS 'True when it reached evictrail more than 10 minutes after its answer, as an imported audit log does.';

CREATE OR REPLACE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence,
    ended_at, outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late,
    requester,
    cancelled_by
FROM evictrail.evacuations;
COMMENT ON COLUMN evictrail_v1.evacuations.trigger IS 'Why: descheduler, drain, drain_taint, eviction, unknown.';
COMMENT ON COLUMN evictrail_v1.evacuations.requester_class IS 'What sort of program requested the eviction: a class of eviction_requests.requester_class, or unknown where no source tells or, under a drain taint, none was requested.';
COMMENT ON COLUMN evictrail_v1.evacuations.confidence IS 'How the requester or trigger is known: observed (the request was seen), asserted (a field says so), inferred, unknown.';
COMMENT ON COLUMN evictrail_v1.evacuations.seen_late IS 'True when it was read from a list, not seen when it happened, or when its requester was told more than 10 minutes later.';
COMMENT ON COLUMN evictrail_v1.evacuations.requester IS 'User name of who asked; under a drain taint, of who set it. NULL where nobody saw that.';
COMMENT ON COLUMN evictrail_v1.evacuations.cancelled_by IS 'User name of who cancelled it. NULL where it was not cancelled, or nobody saw by whom.';

CREATE OR REPLACE VIEW evictrail_v1.migrations AS
SELECT
    cluster, namespace, vmi, vmi_uid, source_node AS node, migration, migration_uid, trigger, trigger_confidence, trigger_evidence,
    evacuation_id, attempt, priority, source_node, target_node, created_at, pending_at, scheduling_at, scheduled_at, preparing_target_at,
    target_ready_at, running_at, finished_at, phase,
    greatest(scheduling_at - created_at, interval '0') AS queue_wait,
    greatest(finished_at - created_at, interval '0') AS duration,
    outcome, failure_class, failure_reason, failure_text, failure_evidence, mode, policy, seen_late,
    requester,
    aborted_by
FROM evictrail.migrations;
COMMENT ON COLUMN evictrail_v1.migrations.seen_late IS 'True when its creation or its end was read from a list, not seen when it happened, or when the requester of its evacuation was told more than 10 minutes later.';
COMMENT ON COLUMN evictrail_v1.migrations.requester IS 'User name of who asked for it: for an evacuation who evicted, else who made it or called migrate. NULL where nobody saw.';
COMMENT ON COLUMN evictrail_v1.migrations.aborted_by IS 'User name of who deleted it before it was over. NULL where it was not aborted, or nobody saw by whom.';

CREATE OR REPLACE VIEW evictrail_v1.placements AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, placement_id, from_at, to_at, arrived_by, left_by, seen_late,
    ended_by
FROM evictrail.placements;
COMMENT ON COLUMN evictrail_v1.placements.ended_by IS 'Why the guest ended there: evicted, taint_manager, preempted, node_pressure, pod_gc (Kubernetes took its pod away), stopped, deleted, failed. NULL unless left_by is end.';

COMMENT ON COLUMN evictrail_v1.timeline.at IS 'When it happened, by the best clock there is. Where that clock knows whole seconds only and the sight came later, the end of that second.';

-- +goose Down
DROP VIEW evictrail_v1.eviction_requests, evictrail_v1.evacuations, evictrail_v1.migrations, evictrail_v1.placements;
DROP INDEX evictrail.events_by_launcher, evictrail.events_by_new_migration, evictrail.events_by_migration_name;
DROP TABLE evictrail.eviction_requests;
ALTER TABLE evictrail.evacuations DROP COLUMN requester, DROP COLUMN cancelled_by;
ALTER TABLE evictrail.migrations DROP COLUMN requester, DROP COLUMN aborted_by;
ALTER TABLE evictrail.placements DROP COLUMN ended_by;
CREATE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence,
    ended_at, outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late
FROM evictrail.evacuations;
CREATE VIEW evictrail_v1.migrations AS
SELECT
    cluster, namespace, vmi, vmi_uid, source_node AS node, migration, migration_uid, trigger, trigger_confidence, trigger_evidence,
    evacuation_id, attempt, priority, source_node, target_node, created_at, pending_at, scheduling_at, scheduled_at, preparing_target_at,
    target_ready_at, running_at, finished_at, phase,
    greatest(scheduling_at - created_at, interval '0') AS queue_wait,
    greatest(finished_at - created_at, interval '0') AS duration,
    outcome, failure_class, failure_reason, failure_text, failure_evidence, mode, policy, seen_late
FROM evictrail.migrations;
CREATE VIEW evictrail_v1.placements AS
SELECT cluster, namespace, vmi, vmi_uid, node, placement_id, from_at, to_at, arrived_by, left_by, seen_late
FROM evictrail.placements;
