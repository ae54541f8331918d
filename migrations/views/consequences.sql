CREATE OR REPLACE VIEW evictrail_v1.consequences AS
SELECT
    c.cluster,
    c.namespace,
    c.vmi,
    c.vmi_uid,
    c.node,
    c.consequence_id,
    c.at,
    c.migration_uid,
    c.cause_uid,
    c.cause_need,
    c.likelihood,
    c.because,
    r.cause_uid AS needless_uid,
    r.likelihood AS needless_likelihood,
    r.steps,
    c.changed_at
FROM evictrail.consequences AS c
LEFT JOIN LATERAL (
    WITH RECURSIVE up AS (
        SELECT c.cause_uid, c.cause_need, c.likelihood, 1 AS steps
        UNION ALL
        SELECT n.cause_uid, n.cause_need, greatest(up.likelihood, n.likelihood), up.steps + 1
        FROM up
        JOIN evictrail.consequences AS n ON n.cluster = c.cluster AND n.migration_uid = up.cause_uid
        WHERE up.steps < 5
          AND up.cause_need <> 'not_needed'
    )
    SELECT cause_uid, likelihood, steps
    FROM up
    WHERE cause_need = 'not_needed'
    ORDER BY likelihood, steps, cause_uid
    LIMIT 1
) AS r ON true;

COMMENT ON VIEW evictrail_v1.consequences IS 'Consequences: evictions by the descheduler from a node that an earlier move had come to and overloaded, or without need.';
COMMENT ON COLUMN evictrail_v1.consequences.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.consequences.namespace IS 'Namespace of the VMI that was moved in consequence.';
COMMENT ON COLUMN evictrail_v1.consequences.vmi IS 'Name of that VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.consequences.vmi_uid IS 'UID of that VirtualMachineInstance. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.consequences.node IS 'Node that the earlier move had come to and the later one left.';
COMMENT ON COLUMN evictrail_v1.consequences.consequence_id IS 'Identity of the consequence; it stays the same when the row is derived again.';
COMMENT ON COLUMN evictrail_v1.consequences.at IS 'When the later migration was made.';
COMMENT ON COLUMN evictrail_v1.consequences.migration_uid IS 'UID of the later migration: the consequence.';
COMMENT ON COLUMN evictrail_v1.consequences.cause_uid IS 'UID of the migration that had come to the node.';
COMMENT ON COLUMN evictrail_v1.consequences.cause_need IS 'Whether that one was needed: see migrations.need.';
COMMENT ON COLUMN evictrail_v1.consequences.likelihood IS 'likely (the earlier move brought the node over its threshold, and the later one began while it was over it) or possible (only time and node speak for it).';
COMMENT ON COLUMN evictrail_v1.consequences.because IS 'The numbers that it rests on.';
COMMENT ON COLUMN evictrail_v1.consequences.needless_uid IS 'UID of the needless migration at the beginning of the chain of consequences, at most five steps back. NULL where there is none.';
COMMENT ON COLUMN evictrail_v1.consequences.needless_likelihood IS 'likely where each step to it is, else possible.';
COMMENT ON COLUMN evictrail_v1.consequences.steps IS 'How many steps back that is; 1: it is the cause itself.';
COMMENT ON COLUMN evictrail_v1.consequences.changed_at IS 'When the row came or last changed, by the clock of the database; see evacuations.changed_at.';
