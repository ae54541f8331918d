-- Facts: what was seen, as trail.Fact has it. They are only ever inserted; months are dropped when their retention is
-- over, and names of people in requests are erased (retention.sql). What is recorded twice is found in aspects before
-- it is inserted (docs/adr/0037).
CREATE SEQUENCE evictrail.events_seq;
CREATE TABLE evictrail.events (
    cluster        text        NOT NULL CHECK (cluster <> ''),
    subject        text        NOT NULL CHECK (subject LIKE '%:%'), -- whose history it belongs to, such as vmi:shop/db-1 or node:worker-1
    occurred_at    timestamptz NOT NULL, -- by the clock of what it is about, named in clock
    id             uuid        NOT NULL, -- of its natural key: the same change has the same ID no matter who sees it
    kind           text        NOT NULL CHECK (kind <> ''),
    reason         text        NOT NULL CHECK (reason <> ''),
    clock          text        NOT NULL CHECK (clock IN ('apiserver', 'virt_controller', 'source_node', 'emitter', 'observer')),
    observed_at    timestamptz NOT NULL, -- by the clock of the recorder
    stored_at      timestamptz NOT NULL DEFAULT now(), -- by the clock of the database
    seen_late      boolean     NOT NULL, -- it was read from a list, not seen when it happened
    namespace      text,
    vmi            text,
    vmi_uid        text,
    node           text,
    migration      text,
    migration_uid  text,
    object_kind    text        NOT NULL, -- of the object that showed it, as are the next two
    object_uid     text        NOT NULL,
    object_version text        NOT NULL, -- its resourceVersion; empty where it has none
    what           text        NOT NULL, -- the aspect of that object which has the value
    value          text        NOT NULL,
    evidence       text        NOT NULL, -- the field or record that it was read from
    detail         jsonb,
    -- The order in which the facts of a cluster were stored: replicas record one after the other (tables.RecordAloneQuery), so each
    -- fact has a higher one than all that were committed before. 0: it was stored before schema 43.
    seq            bigint      NOT NULL DEFAULT nextval('evictrail.events_seq') CHECK (seq >= 0),
    PRIMARY KEY (cluster, subject, occurred_at, id)
) PARTITION BY RANGE (occurred_at);

-- Months are made by evictrail.ensure_month. This partition has what lies outside of any month that a cluster can be
-- in: it should stay empty.
CREATE TABLE evictrail.events_default PARTITION OF evictrail.events DEFAULT;

CREATE INDEX events_by_time ON evictrail.events (occurred_at);
COMMENT ON INDEX evictrail.events_by_time IS 'Newest facts and windows of time: view events.';
CREATE INDEX events_by_vmi ON evictrail.events (cluster, namespace, vmi, occurred_at);
COMMENT ON INDEX evictrail.events_by_vmi IS 'The facts of one VM: views events and migration_phases.';
CREATE INDEX events_by_launcher ON evictrail.events (cluster, namespace, ((detail ->> 'pod')))
    WHERE kind = 'launcher_pod';
COMMENT ON INDEX evictrail.events_by_launcher IS 'Whose pod a request is about: derive that VM again.';
CREATE INDEX events_by_migration_name ON evictrail.events (cluster, namespace, migration)
    WHERE kind = 'migration_seen';
COMMENT ON INDEX evictrail.events_by_migration_name IS 'Which migration a request names: derive its VM again.';
CREATE INDEX events_by_evacuated_node ON evictrail.events (cluster, node, occurred_at)
    WHERE kind IN ('evacuation_marked', 'migration_seen', 'migration_completed');
COMMENT ON INDEX evictrail.events_by_evacuated_node IS 'Which VMs a fact about a node, the rules or the descheduler concerns: derive again.';
CREATE INDEX events_by_change ON evictrail.events (stored_at);
COMMENT ON INDEX evictrail.events_by_change IS 'What was stored since a time: view events.';
CREATE INDEX events_by_node ON evictrail.events (cluster, node, occurred_at)
    WHERE node IS NOT NULL;
COMMENT ON INDEX evictrail.events_by_node IS 'The facts about one node: view events.';
CREATE INDEX events_by_namespace ON evictrail.events (cluster, namespace, occurred_at);
COMMENT ON INDEX evictrail.events_by_namespace IS 'The facts of one namespace: view events. Which migrations a request in their namespace made: derive their VMs again.';
CREATE INDEX events_by_rule ON evictrail.events (cluster, occurred_at)
    WHERE kind = 'config_seen';
COMMENT ON INDEX evictrail.events_by_rule IS 'When the rules in force changed: annotations of dashboards, by view events.';
CREATE INDEX events_by_load ON evictrail.events (occurred_at)
    WHERE kind = 'node_load';
COMMENT ON INDEX evictrail.events_by_load IS 'The load of nodes in a time, and the newest of any cluster: view node_context.';
CREATE INDEX events_by_annotation ON evictrail.events (cluster, namespace, vmi, occurred_at)
    WHERE kind IN ('annotation_set', 'annotation_cleared');
COMMENT ON INDEX evictrail.events_by_annotation IS 'When the annotations of one VM came and went: dashboards, by view events.';
CREATE INDEX events_about_nodes ON evictrail.events (cluster, subject, occurred_at)
    WHERE subject LIKE 'node:%' AND kind <> 'action_requested';
COMMENT ON INDEX evictrail.events_about_nodes IS 'What became of a node, without what was asked of it: derive the node and its VMs.';
CREATE INDEX events_of_node_labels ON evictrail.events (cluster, subject, occurred_at)
    WHERE kind IN ('node_labels', 'node_gone');
COMMENT ON INDEX evictrail.events_of_node_labels IS 'Which zone and pool a node was of: views node_labels, migrations and weekly_objectives.';
CREATE INDEX events_by_tainted_node ON evictrail.events (cluster, node, occurred_at)
    WHERE kind = 'launcher_pod' AND reason = 'disrupted';
COMMENT ON INDEX evictrail.events_by_tainted_node IS 'Which VMs a taint of a node may have shut down: derive again.';
CREATE INDEX events_by_seq ON evictrail.events (cluster, seq)
    WHERE seq > 0;
COMMENT ON INDEX evictrail.events_by_seq IS 'Facts in the order in which they were stored: exports, and digests of days.';

-- The last value of each aspect of the objects that still exist: where a restart resumes, and what decides whether a fact
-- is recorded already.
CREATE TABLE evictrail.aspects (
    cluster        text NOT NULL,
    object_kind    text NOT NULL,
    object_uid     text NOT NULL,
    what           text NOT NULL,
    value          text NOT NULL,
    object_version text NOT NULL,
    subject        text NOT NULL,
    namespace      text,
    vmi            text,
    vmi_uid        text,
    node           text,
    migration      text,
    pod            text,
    fact_id        uuid, -- the fact that showed the value; NULL: nothing is known of it
    PRIMARY KEY (cluster, object_kind, object_uid, what)
);
