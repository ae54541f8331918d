-- Citus knows no WITH RECURSIVE over several servers, so the five steps are written out.
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
    -- Each row is a way back, up to the first cause that was not needed.
    SELECT
        coalesce(n5.cause_uid, n4.cause_uid, n3.cause_uid, n2.cause_uid, n1.cause_uid) AS cause_uid,
        greatest(n1.likelihood, n2.likelihood, n3.likelihood, n4.likelihood, n5.likelihood) AS likelihood,
        num_nonnulls(n1.cause_uid, n2.cause_uid, n3.cause_uid, n4.cause_uid, n5.cause_uid) AS steps
    FROM evictrail.consequences AS n1
    LEFT JOIN evictrail.consequences AS n2 ON n2.cluster = n1.cluster AND n2.migration_uid = n1.cause_uid AND n1.cause_need <> 'not_needed'
    LEFT JOIN evictrail.consequences AS n3 ON n3.cluster = n2.cluster AND n3.migration_uid = n2.cause_uid AND n2.cause_need <> 'not_needed'
    LEFT JOIN evictrail.consequences AS n4 ON n4.cluster = n3.cluster AND n4.migration_uid = n3.cause_uid AND n3.cause_need <> 'not_needed'
    LEFT JOIN evictrail.consequences AS n5 ON n5.cluster = n4.cluster AND n5.migration_uid = n4.cause_uid AND n4.cause_need <> 'not_needed'
    WHERE n1.cluster = c.cluster
      AND n1.subject = c.subject
      AND n1.consequence_id = c.consequence_id
      AND coalesce(n5.cause_need, n4.cause_need, n3.cause_need, n2.cause_need, n1.cause_need) = 'not_needed'
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
