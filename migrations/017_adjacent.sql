-- +goose Up
-- Two versions get along for a while: the one that is being replaced, or that is put back (docs/adr/0025).
CREATE FUNCTION evictrail.oldest_schema() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 17::bigint';
COMMENT ON FUNCTION evictrail.oldest_schema() IS 'The oldest schema whose programs may work on this one. A schema migration that they would not get along with replaces it.';
ALTER TABLE evictrail.leaders ADD COLUMN program text, ADD COLUMN program_term bigint;
COMMENT ON COLUMN evictrail.leaders.program IS 'Version of the program that derives, or that derived last of those that say so. NULL: from before schema 17.';
COMMENT ON COLUMN evictrail.leaders.program_term IS 'Term in which that was said: where it is not the latest, a program that does not say so has derived since.';

-- +goose Down
ALTER TABLE evictrail.leaders DROP COLUMN program_term, DROP COLUMN program;
DROP FUNCTION evictrail.oldest_schema();
