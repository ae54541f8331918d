-- +goose Up
-- Who derives a cluster: the holder of the latest term. Each transaction that derives takes this row for the length of it and compares
-- its own term, so that a replica which has been replaced, and does not know that yet, changes no derived row (docs/adr/0013).
CREATE TABLE evictrail.leaders (
    cluster text        NOT NULL PRIMARY KEY,
    term    bigint      NOT NULL CHECK (term > 0),
    holder  text        NOT NULL,
    since   timestamptz NOT NULL
);

-- What each replica has been watching without a break, since when and up to when: what one did not see is a gap only if no other saw it.
CREATE TABLE evictrail.watching (
    cluster text        NOT NULL,
    replica text        NOT NULL,
    source  text        NOT NULL,
    since   timestamptz NOT NULL,
    upto    timestamptz NOT NULL,
    PRIMARY KEY (cluster, replica, source)
);

-- +goose Down
DROP TABLE evictrail.watching, evictrail.leaders;
