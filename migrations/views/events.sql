CREATE OR REPLACE VIEW evictrail_v1.events AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, id AS event_id, occurred_at AS at, clock, observed_at, stored_at, kind, reason, migration, migration_uid,
    object_kind, object_uid, object_version, what, value, evidence, detail, seen_late, stored_at AS changed_at
FROM evictrail.events
UNION ALL
SELECT
    cluster, namespace, vmi, vmi_uid, node, decision_id, decided_at, NULL, NULL, NULL, 'cooldown_decided', reason, inputs ->> 'migration', inputs ->> 'migration_uid',
    'Decision', decision_id::text, '', layer, verdict, model, to_jsonb(d) - 'cluster' - 'subject' - 'changed_at' - 'open_until', false, changed_at
FROM evictrail.cooldown_decisions AS d;

COMMENT ON VIEW evictrail_v1.events IS 'Events: every fact, as it was recorded, and every cooldown decision, in one stream.';
COMMENT ON COLUMN evictrail_v1.events.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.events.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.events.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.events.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.events.node IS 'Node that the fact names. NULL where it names none.';
COMMENT ON COLUMN evictrail_v1.events.event_id IS 'Identity of the fact, from its natural key; of a decision, its decision_id.';
COMMENT ON COLUMN evictrail_v1.events.at IS 'When it happened: the time of the cluster, read from the clock named in column clock.';
COMMENT ON COLUMN evictrail_v1.events.clock IS 'Whose clock: apiserver, virt_controller, source_node, emitter, observer (ours). NULL for decisions.';
COMMENT ON COLUMN evictrail_v1.events.observed_at IS 'When evictrail saw it. NULL for decisions.';
COMMENT ON COLUMN evictrail_v1.events.stored_at IS 'When it was stored. NULL for decisions.';
COMMENT ON COLUMN evictrail_v1.events.kind IS 'What sort of fact it is; cooldown_decided for decisions.';
COMMENT ON COLUMN evictrail_v1.events.reason IS 'Why: a closed set per kind.';
COMMENT ON COLUMN evictrail_v1.events.migration IS 'Name of the migration that the fact names. NULL where it names none.';
COMMENT ON COLUMN evictrail_v1.events.migration_uid IS 'UID of the migration that the fact names. NULL where it names none.';
COMMENT ON COLUMN evictrail_v1.events.object_kind IS 'Kind of the object on which it showed.';
COMMENT ON COLUMN evictrail_v1.events.object_uid IS 'UID of that object.';
COMMENT ON COLUMN evictrail_v1.events.object_version IS 'resourceVersion at which it showed.';
COMMENT ON COLUMN evictrail_v1.events.what IS 'Which aspect of the object changed.';
COMMENT ON COLUMN evictrail_v1.events.value IS 'What the aspect became.';
COMMENT ON COLUMN evictrail_v1.events.evidence IS 'The field that says so.';
COMMENT ON COLUMN evictrail_v1.events.detail IS 'What else is known, by kind.';
COMMENT ON COLUMN evictrail_v1.events.seen_late IS 'True when it was read from a list, not seen when it happened.';
COMMENT ON COLUMN evictrail_v1.events.changed_at IS 'When a fact was stored, or a decision came or last changed; see evacuations.changed_at.';
