CREATE OR REPLACE VIEW evictrail_v1.facts AS
SELECT
    cluster,
    seq,
    subject,
    id AS event_id,
    occurred_at AS at,
    clock,
    observed_at,
    stored_at,
    seen_late,
    kind,
    reason,
    namespace,
    vmi,
    vmi_uid,
    node,
    migration,
    migration_uid,
    object_kind,
    object_uid,
    object_version,
    what,
    value,
    evidence,
    detail
FROM evictrail.events;

COMMENT ON VIEW evictrail_v1.facts IS 'Facts: what was seen, as it was recorded. They are only added, but for names of people that are erased.';
COMMENT ON COLUMN evictrail_v1.facts.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.facts.seq IS 'Place in the order in which the facts of the cluster were stored: a fact has a higher one than all that were there before. 0 of those from before schema 43.';
COMMENT ON COLUMN evictrail_v1.facts.subject IS 'Whose history it belongs to, such as vmi:shop/db-1 or node:worker-1.';
COMMENT ON COLUMN evictrail_v1.facts.event_id IS 'Identity of the fact, from its natural key; that of view events.';
COMMENT ON COLUMN evictrail_v1.facts.at IS 'When it happened: the time of the cluster, read from the clock named in column clock.';
COMMENT ON COLUMN evictrail_v1.facts.clock IS 'Whose clock: apiserver, virt_controller, source_node, emitter, observer (ours).';
COMMENT ON COLUMN evictrail_v1.facts.observed_at IS 'When evictrail saw it.';
COMMENT ON COLUMN evictrail_v1.facts.stored_at IS 'When it was stored: when the transaction that did so began, by the clock of the database.';
COMMENT ON COLUMN evictrail_v1.facts.seen_late IS 'True when it was read from a list, not seen when it happened.';
COMMENT ON COLUMN evictrail_v1.facts.kind IS 'What sort of fact it is.';
COMMENT ON COLUMN evictrail_v1.facts.reason IS 'Why: a closed set per kind.';
COMMENT ON COLUMN evictrail_v1.facts.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.facts.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.facts.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.facts.node IS 'Node that the fact names. NULL where it names none.';
COMMENT ON COLUMN evictrail_v1.facts.migration IS 'Name of the migration that the fact names. NULL where it names none.';
COMMENT ON COLUMN evictrail_v1.facts.migration_uid IS 'UID of the migration that the fact names. NULL where it names none.';
COMMENT ON COLUMN evictrail_v1.facts.object_kind IS 'Kind of the object on which it showed.';
COMMENT ON COLUMN evictrail_v1.facts.object_uid IS 'UID of that object.';
COMMENT ON COLUMN evictrail_v1.facts.object_version IS 'resourceVersion at which it showed.';
COMMENT ON COLUMN evictrail_v1.facts.what IS 'Which aspect of the object changed.';
COMMENT ON COLUMN evictrail_v1.facts.value IS 'What the aspect became.';
COMMENT ON COLUMN evictrail_v1.facts.evidence IS 'The field that says so.';
COMMENT ON COLUMN evictrail_v1.facts.detail IS 'What else is known, by kind.';
