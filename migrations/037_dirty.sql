-- +goose Up
-- Facts are recorded first and derived later: a subject is dirty since its earliest fact that is in no row yet. Its version counts how often facts were recorded.
ALTER TABLE evictrail.subjects ADD COLUMN version bigint NOT NULL DEFAULT 0, ADD COLUMN dirty_since timestamptz;
CREATE INDEX subjects_dirty ON evictrail.subjects (cluster, dirty_since) WHERE dirty_since IS NOT NULL;

-- +goose Down
DROP INDEX evictrail.subjects_dirty;
ALTER TABLE evictrail.subjects DROP COLUMN dirty_since, DROP COLUMN version;
