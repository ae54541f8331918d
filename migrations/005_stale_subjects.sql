-- +goose Up
-- Facts that come in bulk are stored first and derived after: until then their subject is stale from the time of the
-- earliest of them on. Whoever holds a stale subject derives it; a crash in between loses nothing.
ALTER TABLE evictrail.subjects ADD COLUMN stale_since timestamptz;
CREATE INDEX subjects_stale ON evictrail.subjects (cluster, subject) WHERE stale_since IS NOT NULL;
COMMENT ON INDEX evictrail.subjects_stale IS 'What is still to be derived.';

-- +goose Down
DROP INDEX evictrail.subjects_stale;
ALTER TABLE evictrail.subjects DROP COLUMN stale_since;
