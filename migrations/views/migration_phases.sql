CREATE OR REPLACE VIEW evictrail_v1.migration_phases AS
SELECT
    e.cluster,
    e.namespace,
    e.vmi,
    m.vmi_uid,
    m.source_node AS node,
    e.migration,
    e.migration_uid,
    e.value AS phase,
    e.occurred_at AS at,
    e.observed_at,
    e.seen_late
FROM evictrail.events AS e
LEFT JOIN evictrail.migrations AS m ON m.cluster = e.cluster AND m.subject = e.subject AND m.migration_uid = e.migration_uid
WHERE e.kind = 'migration_phase';

COMMENT ON VIEW evictrail_v1.migration_phases IS 'Migration phases: each phase that a migration reached, once.';
COMMENT ON COLUMN evictrail_v1.migration_phases.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.migration_phases.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.migration_phases.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.migration_phases.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.migration_phases.node IS 'Node that the guest is to leave. NULL where unknown.';
COMMENT ON COLUMN evictrail_v1.migration_phases.migration IS 'Name of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.migration_phases.migration_uid IS 'UID of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.migration_phases.phase IS 'The phase, as KubeVirt spells it.';
COMMENT ON COLUMN evictrail_v1.migration_phases.at IS 'When it was reached; virt-controller''s clock, 1 s resolution.';
COMMENT ON COLUMN evictrail_v1.migration_phases.observed_at IS 'When evictrail saw it.';
COMMENT ON COLUMN evictrail_v1.migration_phases.seen_late IS 'True when it was read from a list, not seen when it happened.';
