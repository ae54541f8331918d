-- Gaps: times in which a source could not be observed; derived rows (00_schemas.sql). Columns that the view has are
-- described there (../views/gaps.sql).
CREATE TABLE evictrail.gaps (
    cluster    text        NOT NULL,
    subject    text        NOT NULL,
    gap_id     uuid        NOT NULL,
    source     text        NOT NULL,
    opened_at  timestamptz NOT NULL,
    closed_at  timestamptz,
    cause      text        NOT NULL,
    detail     text,
    open_until timestamptz NOT NULL DEFAULT 'infinity',
    changed_at timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, gap_id)
);
CREATE INDEX gaps_by_time ON evictrail.gaps (opened_at);
COMMENT ON INDEX evictrail.gaps_by_time IS 'Newest gaps: view gaps.';
CREATE INDEX gaps_by_change ON evictrail.gaps (changed_at);
COMMENT ON INDEX evictrail.gaps_by_change IS 'What came or changed since a time: view gaps.';
