-- +goose Up
-- Derived rows: a pure function of the facts of their subject, replaced when one arrives.
CREATE TABLE evictrail.evacuations (
    cluster             text        NOT NULL,
    subject             text        NOT NULL,
    evacuation_id       uuid        NOT NULL,
    namespace           text        NOT NULL,
    vmi                 text        NOT NULL,
    vmi_uid             text        NOT NULL,
    node                text        NOT NULL,
    strategy            text,
    marked_at           timestamptz NOT NULL,
    marked_by           text        NOT NULL CHECK (marked_by IN ('mark', 'taint', 'migration')),
    trigger             text        NOT NULL,
    requester_class     text        NOT NULL,
    confidence          text        NOT NULL CHECK (confidence IN ('observed', 'asserted', 'inferred', 'unknown')),
    evidence            text        NOT NULL,
    ended_at            timestamptz,
    outcome             text        CHECK (outcome IN ('migrated', 'cancelled', 'vmi_gone')),
    attempts            integer     NOT NULL CHECK (attempts >= 0),
    failed_attempts     integer     NOT NULL CHECK (failed_attempts BETWEEN 0 AND attempts),
    last_failure_class  text,
    last_failure_reason text,
    fulfilled_by        text,
    seen_late           boolean     NOT NULL,
    PRIMARY KEY (cluster, subject, evacuation_id),
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX evacuations_by_time ON evictrail.evacuations (marked_at);
COMMENT ON INDEX evictrail.evacuations_by_time IS 'Newest evacuations: view evacuations.';

CREATE TABLE evictrail.migrations (
    cluster             text        NOT NULL,
    subject             text        NOT NULL,
    migration_uid       text        NOT NULL,
    migration           text        NOT NULL,
    namespace           text        NOT NULL,
    vmi                 text        NOT NULL,
    vmi_uid             text,
    trigger             text        NOT NULL,
    trigger_confidence  text        NOT NULL CHECK (trigger_confidence IN ('observed', 'asserted', 'inferred', 'unknown')),
    trigger_evidence    text        NOT NULL,
    evacuation_id       uuid,
    attempt             integer     CHECK (attempt > 0),
    priority            text,
    source_node         text,
    target_node         text,
    created_at          timestamptz NOT NULL,
    pending_at          timestamptz,
    scheduling_at       timestamptz,
    scheduled_at        timestamptz,
    preparing_target_at timestamptz,
    target_ready_at     timestamptz,
    running_at          timestamptz,
    finished_at         timestamptz,
    phase               text,
    outcome             text        CHECK (outcome IN ('succeeded', 'failed', 'aborted')),
    failure_class       text        CHECK (failure_class IN ('scheduling', 'control_plane', 'data_plane', 'post_copy', 'aborted', 'guest_lost', 'unknown')),
    failure_reason      text,
    failure_text        text,
    failure_evidence    text,
    mode                text,
    policy              text,
    seen_late           boolean     NOT NULL,
    PRIMARY KEY (cluster, subject, migration_uid),
    CHECK ((evacuation_id IS NULL) = (attempt IS NULL))
);
CREATE INDEX migrations_by_time ON evictrail.migrations (created_at);
COMMENT ON INDEX evictrail.migrations_by_time IS 'Newest migrations: view migrations.';

CREATE TABLE evictrail.placements (
    cluster      text        NOT NULL,
    subject      text        NOT NULL,
    placement_id uuid        NOT NULL,
    namespace    text        NOT NULL,
    vmi          text        NOT NULL,
    vmi_uid      text        NOT NULL,
    node         text        NOT NULL,
    from_at      timestamptz NOT NULL,
    to_at        timestamptz,
    arrived_by   text        NOT NULL,
    left_by      text,
    seen_late    boolean     NOT NULL,
    PRIMARY KEY (cluster, subject, placement_id),
    CHECK ((to_at IS NULL) = (left_by IS NULL))
);
CREATE INDEX placements_by_node ON evictrail.placements (cluster, node, from_at);
COMMENT ON INDEX evictrail.placements_by_node IS 'Which guests a node had: view placements.';

CREATE TABLE evictrail.gaps (
    cluster   text        NOT NULL,
    subject   text        NOT NULL,
    gap_id    uuid        NOT NULL,
    source    text        NOT NULL,
    opened_at timestamptz NOT NULL,
    closed_at timestamptz,
    cause     text        NOT NULL,
    detail    text,
    PRIMARY KEY (cluster, subject, gap_id)
);
CREATE INDEX gaps_by_time ON evictrail.gaps (opened_at);
COMMENT ON INDEX evictrail.gaps_by_time IS 'Newest gaps: view gaps.';

CREATE TABLE evictrail.timeline (
    cluster   text        NOT NULL,
    subject   text        NOT NULL,
    event_id  uuid        NOT NULL,
    at        timestamptz NOT NULL,
    kind      text        NOT NULL,
    reason    text        NOT NULL,
    namespace text,
    vmi       text,
    vmi_uid   text,
    node      text,
    sentence  text        NOT NULL,
    seen_late boolean     NOT NULL,
    PRIMARY KEY (cluster, subject, event_id)
);
CREATE INDEX timeline_by_vmi ON evictrail.timeline (cluster, namespace, vmi, at);
COMMENT ON INDEX evictrail.timeline_by_vmi IS 'The story of one VM: view timeline.';
CREATE INDEX timeline_by_time ON evictrail.timeline (at);
COMMENT ON INDEX evictrail.timeline_by_time IS 'Newest lines: view timeline.';

-- +goose Down
DROP TABLE evictrail.evacuations, evictrail.migrations, evictrail.placements, evictrail.gaps, evictrail.timeline;
