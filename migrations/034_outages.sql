-- +goose Up
-- Times in which nodes were not ready: derived of the facts of each node.
CREATE TABLE evictrail.outages (
    cluster    text        NOT NULL,
    subject    text        NOT NULL,
    outage_id  uuid        NOT NULL,
    node       text        NOT NULL,
    began_at   timestamptz NOT NULL,
    ended_at   timestamptz,
    ended_by   text        CHECK (ended_by IN ('recovered', 'node_gone')),
    cause      text        NOT NULL CHECK (cause IN ('silent', 'reported')),
    message    text,
    changed_at timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, outage_id),
    CHECK ((ended_at IS NULL) = (ended_by IS NULL))
);
CREATE INDEX outages_by_time ON evictrail.outages (began_at);
COMMENT ON INDEX evictrail.outages_by_time IS 'Newest outages: view node_outages.';
CREATE INDEX outages_by_change ON evictrail.outages (changed_at);
COMMENT ON INDEX evictrail.outages_by_change IS 'What came or changed since a time: view node_outages.';
CREATE INDEX outages_open ON evictrail.outages (cluster) WHERE ended_at IS NULL;
COMMENT ON INDEX evictrail.outages_open IS 'Which nodes are not ready: what keeps a VM from moving.';
CREATE INDEX migrations_to_node ON evictrail.migrations (cluster, target_node, created_at) WHERE target_node IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_to_node IS 'Whose target pods are on a node that becomes ready or not.';

CREATE VIEW evictrail_v1.node_outages AS
SELECT cluster, node, outage_id, began_at, ended_at, ended_by, cause, message, changed_at
FROM evictrail.outages;
COMMENT ON VIEW evictrail_v1.node_outages IS 'Node outages: when a node was not ready. While its kubelet was silent no VM left it, and no migration to it got on.';
COMMENT ON COLUMN evictrail_v1.node_outages.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.node_outages.node IS 'Node that was not ready.';
COMMENT ON COLUMN evictrail_v1.node_outages.outage_id IS 'Identity of the outage; it stays the same when the row is derived again.';
COMMENT ON COLUMN evictrail_v1.node_outages.began_at IS 'When its condition Ready or a taint began to say so.';
COMMENT ON COLUMN evictrail_v1.node_outages.ended_at IS 'When it was ready again, or deleted. NULL while it is not ready.';
COMMENT ON COLUMN evictrail_v1.node_outages.ended_by IS 'recovered (it was ready again) or node_gone (it was deleted). NULL while it is not ready.';
COMMENT ON COLUMN evictrail_v1.node_outages.cause IS 'silent (its kubelet did not answer: Ready Unknown, or the taint unreachable) or reported (its kubelet said that it was not ready: Ready False, or the taint not-ready); the last one, where both came.';
COMMENT ON COLUMN evictrail_v1.node_outages.message IS 'Reason and message of the condition Ready. NULL where only a taint was seen.';
COMMENT ON COLUMN evictrail_v1.node_outages.changed_at IS 'When the row came or last changed, by the clock of the database; see evacuations.changed_at.';

ALTER TABLE evictrail.placements ADD COLUMN terminating_since timestamptz;
CREATE OR REPLACE VIEW evictrail_v1.placements AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, placement_id, from_at, to_at, arrived_by, left_by, seen_late, ended_by, strategy, not_migratable,
    not_migratable_since, opted_out,
    changed_at,
    ended_requester, ended_requester_class, ended_detail,
    CASE
      WHEN ended_by IN ('evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'post_copy', 'hand_over') THEN true
      WHEN ended_by IN ('stopped', 'deleted') THEN false
    END AS memory_lost,
    CASE
      WHEN ended_by IN ('evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'post_copy', 'hand_over') THEN (
        SELECT min(b.from_at)
        FROM evictrail.placements AS b
        WHERE b.cluster = p.cluster
          AND b.namespace = p.namespace
          AND b.vmi = p.vmi
          AND b.vmi_uid <> p.vmi_uid
          AND b.from_at >= date_trunc('second', p.to_at)
      )
    END AS back_at,
    terminating_since
FROM evictrail.placements AS p;
COMMENT ON COLUMN evictrail_v1.placements.terminating_since IS 'Since when its pod is being deleted (Terminating) while the guest is there. NULL where it is not, or the guest is gone.';

ALTER TABLE evictrail.migrations DROP CONSTRAINT migrations_wait_reason_check;
ALTER TABLE evictrail.migrations ADD CONSTRAINT migrations_wait_reason_check CHECK (wait_reason IN (
    'deleting', 'quota', 'backup', 'utility_volumes', 'backoff', 'leftover_pods', 'cluster_limit', 'node_limit', 'queued', 'target_node_not_ready'
)) NOT VALID;
COMMENT ON COLUMN evictrail_v1.migrations.wait_reason IS 'Why it has no target pod yet, or does not get on with it, or for what it waited longest: deleting, quota, backup, utility_volumes, backoff, leftover_pods, cluster_limit, node_limit, queued, target_node_not_ready (its target pod is on a node that is not ready; it holds its slot). NULL where it did not wait for 3 s.';

ALTER TABLE evictrail.drain_blockers DROP CONSTRAINT drain_blockers_blocker_check;
ALTER TABLE evictrail.drain_blockers ADD CONSTRAINT drain_blockers_blocker_check CHECK (blocker IN (
    'not_migratable', 'failing', 'queued', 'migrating', 'external', 'opted_out', 'pdb', 'node_not_ready'
)) NOT VALID;
COMMENT ON COLUMN evictrail_v1.drain_blockers.blocker IS 'not_migratable, failing, queued, migrating, external, opted_out (its strategy does not ask to be moved), pdb, node_not_ready (nothing leaves the node).';

-- +goose Down
COMMENT ON COLUMN evictrail_v1.drain_blockers.blocker IS 'not_migratable, failing, queued, migrating, external, opted_out (its strategy does not ask to be moved), pdb.';
ALTER TABLE evictrail.drain_blockers DROP CONSTRAINT drain_blockers_blocker_check;
UPDATE evictrail.drain_blockers SET blocker = 'queued' WHERE blocker = 'node_not_ready';
ALTER TABLE evictrail.drain_blockers ADD CONSTRAINT drain_blockers_blocker_check CHECK (blocker IN (
    'not_migratable', 'failing', 'queued', 'migrating', 'external', 'opted_out', 'pdb'
));
COMMENT ON COLUMN evictrail_v1.migrations.wait_reason IS 'Why it has no target pod yet or, once it has, for what it waited longest: deleting, quota, backup, utility_volumes, backoff, leftover_pods, cluster_limit, node_limit, queued. NULL where it did not wait for 3 s.';
ALTER TABLE evictrail.migrations DROP CONSTRAINT migrations_wait_reason_check;
UPDATE evictrail.migrations SET wait_reason = NULL, wait_detail = NULL WHERE wait_reason = 'target_node_not_ready';
ALTER TABLE evictrail.migrations ADD CONSTRAINT migrations_wait_reason_check CHECK (wait_reason IN (
    'deleting', 'quota', 'backup', 'utility_volumes', 'backoff', 'leftover_pods', 'cluster_limit', 'node_limit', 'queued'
));
DROP VIEW evictrail_v1.placements;
ALTER TABLE evictrail.placements DROP COLUMN terminating_since;
CREATE VIEW evictrail_v1.placements AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, placement_id, from_at, to_at, arrived_by, left_by, seen_late, ended_by, strategy, not_migratable,
    not_migratable_since, opted_out,
    changed_at,
    ended_requester, ended_requester_class, ended_detail,
    CASE
      WHEN ended_by IN ('evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'post_copy', 'hand_over') THEN true
      WHEN ended_by IN ('stopped', 'deleted') THEN false
    END AS memory_lost,
    CASE
      WHEN ended_by IN ('evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'post_copy', 'hand_over') THEN (
        SELECT min(b.from_at)
        FROM evictrail.placements AS b
        WHERE b.cluster = p.cluster
          AND b.namespace = p.namespace
          AND b.vmi = p.vmi
          AND b.vmi_uid <> p.vmi_uid
          AND b.from_at >= date_trunc('second', p.to_at)
      )
    END AS back_at
FROM evictrail.placements AS p;
DROP VIEW evictrail_v1.node_outages;
DROP INDEX evictrail.migrations_to_node;
DROP TABLE evictrail.outages;
