-- +goose Up
CREATE SCHEMA IF NOT EXISTS evictrail;
COMMENT ON SCHEMA evictrail IS 'Internal tables of evictrail. Read the views of schema evictrail_v1 instead.';

-- Facts: what was seen. Never updated; months are dropped when their retention is over. Uniqueness of (cluster, id) is
-- kept by the writer, which holds the row of the subject in evictrail.subjects while it compares (docs/adr/0003).
CREATE TABLE evictrail.events (
    cluster        text        NOT NULL CHECK (cluster <> ''),
    subject        text        NOT NULL CHECK (subject LIKE '%:%'),
    occurred_at    timestamptz NOT NULL,
    id             uuid        NOT NULL,
    kind           text        NOT NULL CHECK (kind <> ''),
    reason         text        NOT NULL CHECK (reason <> ''),
    clock          text        NOT NULL CHECK (clock IN ('apiserver', 'virt_controller', 'source_node', 'emitter', 'observer')),
    observed_at    timestamptz NOT NULL,
    stored_at      timestamptz NOT NULL DEFAULT now(),
    seen_late      boolean     NOT NULL,
    namespace      text,
    vmi            text,
    vmi_uid        text,
    node           text,
    migration      text,
    migration_uid  text,
    object_kind    text        NOT NULL,
    object_uid     text        NOT NULL,
    object_version text        NOT NULL,
    what           text        NOT NULL,
    value          text        NOT NULL,
    evidence       text        NOT NULL,
    detail         jsonb,
    PRIMARY KEY (cluster, subject, occurred_at, id)
) PARTITION BY RANGE (occurred_at);

-- What lies outside of any month that a cluster can be in. It should stay empty.
CREATE TABLE evictrail.events_default PARTITION OF evictrail.events DEFAULT;

CREATE INDEX events_by_time ON evictrail.events (occurred_at);
COMMENT ON INDEX evictrail.events_by_time IS 'Newest facts and windows of time: view events.';
CREATE INDEX events_by_vmi ON evictrail.events (cluster, namespace, vmi, occurred_at);
COMMENT ON INDEX evictrail.events_by_vmi IS 'The facts of one VM: views events and migration_phases.';
CREATE INDEX events_by_evacuated_node ON evictrail.events (cluster, node, occurred_at)
    WHERE kind IN ('evacuation_marked', 'migration_seen');
COMMENT ON INDEX evictrail.events_by_evacuated_node IS 'Which VMs a fact about a node concerns: derive again.';

-- Makes the partition of the month that begins at the time given. It runs as the owner, who alone may attach partitions,
-- so that the writer needs no right to change tables.
-- +goose StatementBegin
CREATE FUNCTION evictrail.ensure_month(month timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    first timestamp := date_trunc('month', month AT TIME ZONE 'UTC');
BEGIN
    EXECUTE format(
        'CREATE TABLE IF NOT EXISTS evictrail.events_%s PARTITION OF evictrail.events FOR VALUES FROM (%L) TO (%L)',
        to_char(first, 'YYYY_MM'), first AT TIME ZONE 'UTC', (first + interval '1 month') AT TIME ZONE 'UTC');
END
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION evictrail.ensure_month(timestamptz) FROM PUBLIC;

-- One row per subject: who holds it may derive it.
CREATE TABLE evictrail.subjects (
    cluster    text        NOT NULL,
    subject    text        NOT NULL,
    derived_at timestamptz NOT NULL,
    PRIMARY KEY (cluster, subject)
);

-- The last value of each aspect of the objects that still exist: where a restart resumes.
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
    PRIMARY KEY (cluster, object_kind, object_uid, what)
);

-- When evictrail last said that it had stored all it saw.
CREATE TABLE evictrail.clusters (
    cluster  text        NOT NULL PRIMARY KEY,
    alive_at timestamptz NOT NULL
);

-- +goose Down
DROP SCHEMA evictrail CASCADE;
