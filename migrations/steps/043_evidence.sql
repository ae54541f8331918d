-- Facts are numbered in the order in which they are stored, for exports and for digests of days (../schema/facts.sql, ../schema/evidence.sql). Those that
-- are there are not: that would write all of them again. They are read once for the index; what is seen waits in the spool for so long.
CREATE SEQUENCE evictrail.events_seq;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'evictrail_writer') THEN -- programs that record do not wait for the grants of a new version
        GRANT USAGE ON SEQUENCE evictrail.events_seq TO evictrail_writer;
    END IF;
END
$$;
ALTER TABLE evictrail.events
    ADD COLUMN seq bigint NOT NULL DEFAULT 0 CHECK (seq >= 0);
ALTER TABLE evictrail.events
    ALTER COLUMN seq SET DEFAULT nextval('evictrail.events_seq');
-- What is kept of facts that are being dropped keeps its number, also where the version before keeps it, which knows none.
ALTER TABLE IF EXISTS evictrail.events_next
    ADD COLUMN seq bigint NOT NULL DEFAULT 0 CHECK (seq >= 0);
CREATE INDEX events_by_seq ON evictrail.events (cluster, seq)
    WHERE seq > 0;
COMMENT ON INDEX evictrail.events_by_seq IS 'Facts in the order in which they were stored: exports, and digests of days.';
CREATE TABLE evictrail.evidence (
    cluster      text        NOT NULL,
    day          date        NOT NULL,
    month        date        NOT NULL,
    after_seq    bigint      NOT NULL,
    last_seq     bigint      NOT NULL CHECK (last_seq > after_seq),
    facts        bigint      NOT NULL CHECK (facts > 0),
    facts_digest bytea       NOT NULL,
    names_digest bytea       NOT NULL,
    names_salt   bytea,
    digest       bytea       NOT NULL,
    sealed_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (cluster, last_seq, month)
);
