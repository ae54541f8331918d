-- +goose Up
-- What each replica says of its own recording, every few seconds: whoever reads the database, also while no replica runs, sees from it
-- whether what is there is complete. A report that is minutes old says that its replica has stopped, or cannot write.
CREATE TABLE evictrail.recorders (
    cluster        text        NOT NULL,
    replica        text        NOT NULL,
    alive_at       timestamptz NOT NULL,
    started_at     timestamptz NOT NULL,
    state          text        NOT NULL CHECK (state IN ('recording', 'degraded', 'derivation_behind', 'no_leader', 'database_read_only', 'not_recording')),
    since          timestamptz NOT NULL,
    why            text[]      NOT NULL,
    unseen         text[]      NOT NULL,
    leads          boolean     NOT NULL,
    leader_known   boolean     NOT NULL,
    leader_since   timestamptz NOT NULL,
    leader_problem text        NOT NULL,
    derived_at     timestamptz,
    failure        text        NOT NULL,
    PRIMARY KEY (cluster, replica)
);
COMMENT ON TABLE evictrail.recorders IS 'What each replica says of its own recording, and when.';

ALTER TABLE evictrail.clusters ADD COLUMN last_event_at timestamptz, ADD COLUMN replayed boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN evictrail.clusters.last_event_at IS 'When the newest event was seen. NULL where there is none.';
UPDATE evictrail.clusters AS c
SET last_event_at = e.newest
FROM (SELECT cluster, max(occurred_at) AS newest FROM evictrail.events WHERE object_kind <> 'Source' GROUP BY cluster) AS e
WHERE e.cluster = c.cluster;
COMMENT ON COLUMN evictrail.clusters.replayed IS 'It was played from a recording.';

-- +goose Down
ALTER TABLE evictrail.clusters DROP COLUMN last_event_at, DROP COLUMN replayed;
DROP TABLE evictrail.recorders;
