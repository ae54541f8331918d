-- +goose Up
-- By how much the next attempt of an evacuation is overdue. The subquery is run only where the column is asked for.
CREATE OR REPLACE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at, changed_at,
    make_interval(secs => objective_seconds) AS objective,
    objective_met,
    first_failed_at,
    impersonator,
    cancel_impersonator,
    policy,
    (
      SELECT c.alive_at - e.next_retry_at
      FROM evictrail.clusters AS c
      WHERE c.cluster = e.cluster
        AND e.ended_at IS NULL
        AND e.next_retry_at < c.alive_at
    ) AS overdue
FROM evictrail.evacuations AS e;
COMMENT ON COLUMN evictrail_v1.evacuations.overdue IS 'How long ago its next attempt was due (next_retry_at), as of when evictrail last saw the cluster. NULL unless one is overdue.';

-- Nothing ever was of the layer node_damping: it was never computed.
ALTER TABLE evictrail.cooldown_decisions
    DROP CONSTRAINT cooldown_decisions_layer_check,
    ADD CONSTRAINT cooldown_decisions_layer_check CHECK (layer IN ('descheduler_cooldown', 'kubevirt_backoff')) NOT VALID;
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.layer IS 'Who holds the VM back: descheduler_cooldown, kubevirt_backoff.';
DROP VIEW evictrail_v1.cooldowns_now;
CREATE VIEW evictrail_v1.cooldowns_now AS
SELECT
    c.cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    (array_agg(layer ORDER BY until DESC))[1] AS layer,
    (array_agg(make_interval(secs => effective_seconds) ORDER BY until DESC))[1] AS effective,
    max(until) AS until,
    max(until) - alive_at AS remaining,
    max(until) FILTER (WHERE layer = 'descheduler_cooldown') AS descheduler_cooldown_until,
    max(until) FILTER (WHERE layer = 'kubevirt_backoff') AS kubevirt_backoff_until
FROM evictrail.clusters AS c
CROSS JOIN LATERAL (
    SELECT *
    FROM evictrail.cooldown_decisions AS h
    WHERE h.cluster = c.cluster
      AND h.verdict = 'holds'
      AND h.until > c.alive_at
    OFFSET 0
) AS d
WHERE d.decided_at <= c.alive_at
  AND NOT EXISTS (
    SELECT FROM evictrail.cooldown_decisions AS later
    WHERE later.cluster = d.cluster
      AND later.subject = d.subject
      AND later.layer = d.layer
      AND later.vmi_uid = d.vmi_uid
      AND (later.verdict = 'holds' AND later.decided_at > d.decided_at OR later.verdict = 'released' AND later.decided_at >= d.decided_at)
    OFFSET 0
  )
GROUP BY c.cluster, namespace, vmi, vmi_uid, node, alive_at;
COMMENT ON VIEW evictrail_v1.cooldowns_now IS 'What holds VMs back now, one row per VM. Now is when evictrail last saw the cluster.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.node IS 'Node of the guest.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.layer IS 'The layer that holds it longest.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.effective IS 'How long that one holds in all.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.until IS 'Until when it is held back.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.remaining IS 'How long that still is.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.descheduler_cooldown_until IS 'The descheduler leaves it alone until then. NULL where it does not.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.kubevirt_backoff_until IS 'KubeVirt makes no next attempt before. NULL where none waits.';

-- +goose StatementBegin
DO $$
DECLARE
    reader text;
BEGIN
    FOR reader IN SELECT rolname FROM pg_roles WHERE rolname IN ('evictrail_reader', 'evictrail_writer') LOOP
        EXECUTE format('GRANT SELECT ON evictrail_v1.cooldowns_now TO %I', reader);
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP VIEW evictrail_v1.cooldowns_now;
CREATE VIEW evictrail_v1.cooldowns_now AS
SELECT
    c.cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    (array_agg(layer ORDER BY until DESC))[1] AS layer,
    (array_agg(make_interval(secs => effective_seconds) ORDER BY until DESC))[1] AS effective,
    max(until) AS until,
    max(until) - alive_at AS remaining,
    max(until) FILTER (WHERE layer = 'descheduler_cooldown') AS descheduler_cooldown_until,
    max(until) FILTER (WHERE layer = 'node_damping') AS node_damping_until,
    max(until) FILTER (WHERE layer = 'kubevirt_backoff') AS kubevirt_backoff_until
FROM evictrail.clusters AS c
CROSS JOIN LATERAL (
    SELECT *
    FROM evictrail.cooldown_decisions AS h
    WHERE h.cluster = c.cluster
      AND h.verdict = 'holds'
      AND h.until > c.alive_at
    OFFSET 0
) AS d
WHERE d.decided_at <= c.alive_at
  AND NOT EXISTS (
    SELECT FROM evictrail.cooldown_decisions AS later
    WHERE later.cluster = d.cluster
      AND later.subject = d.subject
      AND later.layer = d.layer
      AND later.vmi_uid = d.vmi_uid
      AND (later.verdict = 'holds' AND later.decided_at > d.decided_at OR later.verdict = 'released' AND later.decided_at >= d.decided_at)
    OFFSET 0
  )
GROUP BY c.cluster, namespace, vmi, vmi_uid, node, alive_at;
COMMENT ON VIEW evictrail_v1.cooldowns_now IS 'What holds VMs back now, one row per VM. Now is when evictrail last saw the cluster.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.node IS 'Node of the guest.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.layer IS 'The layer that holds it longest.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.effective IS 'How long that one holds in all.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.until IS 'Until when it is held back.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.remaining IS 'How long that still is.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.descheduler_cooldown_until IS 'The descheduler leaves it alone until then. NULL where it does not.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.kubevirt_backoff_until IS 'KubeVirt makes no next attempt before. NULL where none waits.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.node_damping_until IS 'The node is spared until then. NULL where it is not.';

-- +goose StatementBegin
DO $$
DECLARE
    reader text;
BEGIN
    FOR reader IN SELECT rolname FROM pg_roles WHERE rolname IN ('evictrail_reader', 'evictrail_writer') LOOP
        EXECUTE format('GRANT SELECT ON evictrail_v1.cooldowns_now TO %I', reader);
    END LOOP;
END
$$;
-- +goose StatementEnd

COMMENT ON COLUMN evictrail_v1.cooldown_decisions.layer IS 'Who holds the VM back: descheduler_cooldown, node_damping, kubevirt_backoff.';
ALTER TABLE evictrail.cooldown_decisions
    DROP CONSTRAINT cooldown_decisions_layer_check,
    ADD CONSTRAINT cooldown_decisions_layer_check CHECK (layer IN ('descheduler_cooldown', 'node_damping', 'kubevirt_backoff')) NOT VALID;
DROP VIEW evictrail_v1.evacuations;
CREATE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at, changed_at,
    make_interval(secs => objective_seconds) AS objective,
    objective_met,
    first_failed_at,
    impersonator,
    cancel_impersonator,
    policy
FROM evictrail.evacuations;
