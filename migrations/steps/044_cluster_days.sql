-- What happened in a cluster on a day is counted, so that a year of a fleet can be asked (../schema/cluster_days.sql).
CREATE TABLE evictrail.cluster_days (
    cluster              text        NOT NULL,
    day                  date        NOT NULL,
    kubevirt             text,
    rules                text,
    moved                integer     NOT NULL,
    failed               integer     NOT NULL,
    aborted              integer     NOT NULL,
    failed_scheduling    integer     NOT NULL,
    failed_control_plane integer     NOT NULL,
    failed_data_plane    integer     NOT NULL,
    failed_post_copy     integer     NOT NULL,
    failed_guest_lost    integer     NOT NULL,
    failed_unknown       integer     NOT NULL,
    needed               integer     NOT NULL,
    not_needed           integer     NOT NULL,
    helped               integer     NOT NULL,
    harmed               integer     NOT NULL,
    objectives_met       integer     NOT NULL,
    objectives_missed    integer     NOT NULL,
    loops                integer     NOT NULL,
    dual_retry_loops     integer     NOT NULL,
    gaps                 integer     NOT NULL,
    counted_at           timestamptz NOT NULL,
    PRIMARY KEY (cluster, day)
);
CREATE INDEX evacuations_judged ON evictrail.evacuations (cluster, marked_at) INCLUDE (objective_met)
    WHERE objective_met IS NOT NULL;
COMMENT ON INDEX evictrail.evacuations_judged IS 'How often an objective was met on a day: what is counted for a fleet.';
