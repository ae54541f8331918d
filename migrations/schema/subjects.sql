-- Subjects: each with a history of its own, such as vmi:shop/db-1. Each has a row from its first fact on, which is the
-- queue of what is to be derived (docs/adr/0037).
CREATE TABLE evictrail.subjects (
    cluster     text        NOT NULL,
    subject     text        NOT NULL,
    derived_at  timestamptz NOT NULL, -- last, by the clock of the database; -infinity: never
    version     bigint      NOT NULL DEFAULT 0, -- how often facts of it were recorded
    dirty_since timestamptz, -- its earliest fact that is in no row yet; NULL: all are
    next_at     timestamptz, -- when time alone changes its rows, as when a cooldown is over; NULL: never
    PRIMARY KEY (cluster, subject)
);
CREATE INDEX subjects_due ON evictrail.subjects (cluster, next_at)
    WHERE next_at IS NOT NULL;
COMMENT ON INDEX evictrail.subjects_due IS 'What time alone changes: derive again.';
CREATE INDEX subjects_named ON evictrail.subjects (cluster, subject)
    WHERE subject LIKE 'vmi:%' OR subject LIKE 'node:%';
COMMENT ON INDEX evictrail.subjects_named IS 'Search, and names to complete: VMs and nodes, without the many more pods.';
CREATE INDEX subjects_dirty ON evictrail.subjects (cluster, dirty_since)
    WHERE dirty_since IS NOT NULL;
COMMENT ON INDEX evictrail.subjects_dirty IS 'What is still to be derived.';

-- Subjects that could not be derived: they are left out, so that the others go on, and tried again later.
CREATE TABLE evictrail.derive_failures (
    cluster  text        NOT NULL,
    subject  text        NOT NULL,
    reason   text        NOT NULL, -- why, as an error says it
    failures integer     NOT NULL CHECK (failures > 0), -- attempts in a row
    since    timestamptz NOT NULL, -- the first of them
    retry_at timestamptz NOT NULL, -- not derived before
    PRIMARY KEY (cluster, subject)
);
