-- Evacuations: from KubeVirt's mark to their end; derived rows (00_schemas.sql). Columns that the view has are described there
-- (../views/evacuations.sql).
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
    requester           text,
    requester_class     text        NOT NULL,
    impersonator        text,
    confidence          text        NOT NULL CHECK (confidence IN ('observed', 'asserted', 'inferred', 'unknown')),
    evidence            text        NOT NULL,
    policy              text,
    ended_at            timestamptz,
    outcome             text        CHECK (outcome IN ('migrated', 'cancelled', 'vmi_gone')),
    cancelled_by        text,
    cancel_impersonator text,
    fulfilled_by        text,
    attempts            integer     NOT NULL CHECK (attempts >= 0),
    failed_attempts     integer     NOT NULL CHECK (failed_attempts BETWEEN 0 AND attempts),
    first_failed_at     timestamptz,
    last_failure_class  text,
    last_failure_reason text,
    next_retry_at       timestamptz,
    in_progress         text,
    in_progress_lost_at timestamptz,
    objective_seconds   double precision CHECK (objective_seconds > 0),
    objective_met       boolean,
    outlook             text        CHECK (outlook IN ('never', 'not_until', 'transient')),
    outlook_because     text,
    outlook_change      text,
    seen_late           boolean     NOT NULL,
    open_until          timestamptz NOT NULL DEFAULT 'infinity',
    changed_at          timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, evacuation_id),
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX evacuations_by_time ON evictrail.evacuations (marked_at);
COMMENT ON INDEX evictrail.evacuations_by_time IS 'Newest evacuations: view evacuations.';
CREATE INDEX evacuations_stuck ON evictrail.evacuations (cluster, marked_at)
    WHERE ended_at IS NULL OR ended_at - marked_at > interval '5 minutes';
COMMENT ON INDEX evictrail.evacuations_stuck IS 'Derive the cluster: evacuations that may hold slots for long.';
CREATE INDEX evacuations_open ON evictrail.evacuations (cluster)
    WHERE ended_at IS NULL;
COMMENT ON INDEX evictrail.evacuations_open IS 'The state of a cluster: open evacuations.';
CREATE INDEX evacuations_by_change ON evictrail.evacuations (changed_at);
COMMENT ON INDEX evictrail.evacuations_by_change IS 'What came or changed since a time: view evacuations.';
CREATE INDEX evacuations_by_vmi ON evictrail.evacuations (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.evacuations_by_vmi IS 'The evacuations of one VM, or in one namespace: view evacuations.';
CREATE INDEX evacuations_of_descheduler ON evictrail.evacuations (cluster, marked_at) INCLUDE (node, ended_at)
    WHERE trigger = 'descheduler';
COMMENT ON INDEX evictrail.evacuations_of_descheduler IS 'From which nodes the descheduler evicted, and when: dashboards.';
CREATE INDEX evacuations_failing ON evictrail.evacuations (cluster, marked_at) INCLUDE (node, first_failed_at, ended_at)
    WHERE first_failed_at IS NOT NULL;
COMMENT ON INDEX evictrail.evacuations_failing IS 'From which nodes evacuations failed, and when: dashboards.';
CREATE INDEX evacuations_by_node ON evictrail.evacuations (cluster, node, marked_at, open_until);
COMMENT ON INDEX evictrail.evacuations_by_node IS 'The evacuations of a node, in the order of time, and since a time: view evacuations, derive the node.';
CREATE INDEX evacuations_unmoved ON evictrail.evacuations (cluster, ended_at)
    WHERE outcome IN ('cancelled', 'vmi_gone');
COMMENT ON INDEX evictrail.evacuations_unmoved IS 'Evacuations that ended without a move of late: the pages of a fleet and of a cluster.';
CREATE INDEX evacuations_judged ON evictrail.evacuations (cluster, marked_at) INCLUDE (objective_met)
    WHERE objective_met IS NOT NULL;
COMMENT ON INDEX evictrail.evacuations_judged IS 'How often an objective was met on a day: what is counted for a fleet.';
