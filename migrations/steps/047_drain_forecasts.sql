-- What was forecast of each drain, to be compared with what became of it (../schema/drain_forecasts.sql).
CREATE TABLE evictrail.drain_forecasts (
    cluster    text        NOT NULL,
    drain_id   uuid        NOT NULL,
    node       text        NOT NULL,
    made_at    timestamptz NOT NULL,
    moves      integer     NOT NULL,
    shuts_down integer     NOT NULL,
    stays      integer     NOT NULL,
    low        interval,
    mid        interval,
    high       interval,
    judged_at  timestamptz,
    PRIMARY KEY (cluster, drain_id),
    CHECK ((mid IS NULL) = (low IS NULL) AND (mid IS NULL) = (high IS NULL))
);
-- When a guest did not run is asked for (../views/downtimes.sql).
CREATE INDEX placements_ended ON evictrail.placements (cluster, to_at)
    WHERE left_by = 'end';
COMMENT ON INDEX evictrail.placements_ended IS 'Guests that ended, in the order of time: view downtimes.';
