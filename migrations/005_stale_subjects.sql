-- +goose Up
-- Facts that come in bulk are stored first and derived after: until then their subject is stale from the time of the
-- earliest of them on, and a crash in between loses nothing. A schema migration that comes with new rules makes every
-- subject stale from the epoch on: the next start derives everything anew.
ALTER TABLE evictrail.subjects ADD COLUMN stale_since timestamptz;
CREATE INDEX subjects_stale ON evictrail.subjects (cluster, subject) WHERE stale_since IS NOT NULL;
COMMENT ON INDEX evictrail.subjects_stale IS 'What is still to be derived.';

-- Everything that was derived before is derived anew: it lacks what 004 brought.
UPDATE evictrail.subjects SET stale_since = to_timestamp(0);

-- +goose Down
DROP INDEX evictrail.subjects_stale;
ALTER TABLE evictrail.subjects DROP COLUMN stale_since;
