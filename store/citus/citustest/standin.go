package citustest

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// standIn has a database say that it has Citus, with two servers.
const standIn = `
SET allow_system_table_mods = on;
INSERT INTO pg_catalog.pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion) VALUES (1, 'citus', 10, 11, false, 'stand-in');
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass);
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass, shardid bigint GENERATED ALWAYS AS IDENTITY);
CREATE TABLE pg_catalog.pg_dist_placement (shardid bigint, groupid integer);
CREATE TABLE pg_catalog.pg_dist_node (groupid integer, nodename text, nodeport integer, noderole text, isactive boolean, shouldhaveshards boolean);
INSERT INTO pg_catalog.pg_dist_node VALUES (0, 'one', 5432, 'primary', true, false), (1, 'two', 5432, 'primary', true, true);
GRANT SELECT ON pg_catalog.pg_dist_partition, pg_catalog.pg_dist_shard, pg_catalog.pg_dist_placement, pg_catalog.pg_dist_node TO PUBLIC;
CREATE FUNCTION pg_catalog.create_distributed_table(which regclass, by text, colocate_with text, shard_count integer DEFAULT 1) RETURNS void LANGUAGE sql AS $$
    INSERT INTO pg_catalog.pg_dist_partition VALUES (which);
    INSERT INTO pg_catalog.pg_dist_shard (logicalrelid) SELECT which FROM generate_series(1, shard_count);
    INSERT INTO pg_catalog.pg_dist_placement SELECT shardid, 1 FROM pg_catalog.pg_dist_shard WHERE logicalrelid = which;
$$;
CREATE FUNCTION pg_catalog.create_reference_table(which regclass) RETURNS void LANGUAGE sql AS 'INSERT INTO pg_catalog.pg_dist_partition VALUES (which)';
CREATE FUNCTION pg_catalog.create_distributed_function(which regprocedure) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION pg_catalog.undistribute_table(which regclass) RETURNS void LANGUAGE sql AS $$
    DELETE FROM pg_catalog.pg_dist_partition WHERE logicalrelid = which;
    DELETE FROM pg_catalog.pg_dist_shard WHERE logicalrelid = which;
$$;
CREATE FUNCTION pg_catalog.run_command_on_workers(command text, OUT nodename text, OUT nodeport integer, OUT success boolean, OUT result text) RETURNS SETOF record
LANGUAGE plpgsql AS $$
BEGIN
    nodename := 'two'; nodeport := 5432; success := true;
    EXECUTE command INTO result;
    RETURN NEXT;
END
$$;
CREATE FUNCTION pg_catalog.citus_total_relation_size(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT pg_catalog.pg_total_relation_size($1)'`

// Claim has a database say that it has Citus.
func Claim(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, standIn, pgx.QueryExecModeSimpleProtocol)
	return err
}
