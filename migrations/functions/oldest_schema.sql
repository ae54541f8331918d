-- oldest_schema returns the oldest schema whose programs may work on this one (docs/adr/0038). A schema that they would
-- not get along with comes with another.
CREATE OR REPLACE FUNCTION evictrail.oldest_schema() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 38::bigint';
