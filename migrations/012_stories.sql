-- +goose Up
-- What is told of a VM is read from its rows: these are what it needs of them beyond the views.
ALTER TABLE evictrail.timeline ADD COLUMN tie integer;
COMMENT ON COLUMN evictrail.timeline.tie IS 'How many lines of the same subject and moment are told before this one; NULL: nobody knows, from before schema 12.';
ALTER TABLE evictrail.migrations ADD COLUMN phase_since timestamptz;
COMMENT ON COLUMN evictrail.migrations.phase_since IS 'Since when it is in its phase; NULL: it has none.';

-- +goose Down
ALTER TABLE evictrail.migrations DROP COLUMN phase_since;
ALTER TABLE evictrail.timeline DROP COLUMN tie;
