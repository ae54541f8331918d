-- +goose Up
-- Which cluster is recorded under a name: the UID of its namespace kube-system, and how often its history began anew (docs/adr/0033).
ALTER TABLE evictrail.clusters ADD COLUMN uid text;
ALTER TABLE evictrail.clusters ADD COLUMN epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0);

-- How often each replica was told that what it gave is stored, and up to when it had seen things then. Only a database that lost commits says less than before.
CREATE TABLE evictrail.acknowledged (
    cluster text        NOT NULL,
    replica text        NOT NULL,
    seq     bigint      NOT NULL CHECK (seq > 0),
    at      timestamptz NOT NULL,
    PRIMARY KEY (cluster, replica)
);

-- +goose Down
DROP TABLE evictrail.acknowledged;
ALTER TABLE evictrail.clusters DROP COLUMN epoch, DROP COLUMN uid;
