-- OFFSET 0 has Postgres find the few rows of each cluster by index cooldown_decisions_holding: it guesses that a third
-- of all decisions hold still.
CREATE OR REPLACE VIEW evictrail_v1.cooldowns_now AS
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
    SELECT h.cluster, h.subject, h.namespace, h.vmi, h.vmi_uid, h.node, h.decided_at, h.layer, h.effective_seconds, h.until
    FROM evictrail.cooldown_decisions AS h
    WHERE h.cluster = c.cluster
      AND h.verdict = 'holds'
      AND h.until > c.alive_at
    OFFSET 0
) AS d
WHERE d.decided_at <= c.alive_at
  AND NOT EXISTS (
    SELECT 1 FROM evictrail.cooldown_decisions AS later
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
