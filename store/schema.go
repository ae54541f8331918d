package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/evictrail/evictrail/migrations"
)

// SchemaStatus tells which schema a database has and which one this program needs.
type SchemaStatus struct {
	Version  int64 // of the database; 0: empty
	Expected int64
	Oldest   int64 // whose programs get along with that of the database; 0: only its own do
}

// Newer tells whether the database has a newer schema with which this program gets along.
func (s SchemaStatus) Newer() bool {
	return s.Version > s.Expected && s.Oldest > 0 && s.Oldest <= s.Expected
}

// Check gives an error that is ErrSchema when the program cannot work with the schema, saying what to do.
func (s SchemaStatus) Check() error {
	switch {
	case s.Newer():
		return nil
	case s.Version > s.Expected:
		return fmt.Errorf("%w: the database is at version %d, this evictrail knows %d: use a newer evictrail", ErrSchema, s.Version, s.Expected)
	case s.Version < s.Expected:
		return fmt.Errorf("%w: the database is at version %d, this evictrail needs %d: run `evictrail schema up`", ErrSchema, s.Version, s.Expected)
	}
	return nil
}

// provider makes goose's Provider over our files. One migrates at a time (schema_lock.go).
func (s *Store) provider() (*goose.Provider, func(), error) {
	db := stdlib.OpenDBFromPool(s.pool)
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS,
		goose.WithSessionLocker(&schemaLock{store: s}), goose.WithTableName("public.evictrail_schema"))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read schema migrations: %w", err), db.Close())
	}
	return p, func() { _ = db.Close() }, nil
}

// Schema tells which schema the database has.
func (s *Store) Schema(ctx context.Context) (SchemaStatus, error) {
	p, done, err := s.provider()
	if err != nil {
		return SchemaStatus{}, err
	}
	defer done()
	return s.schema(ctx, p)
}

const oldestSchemaQuery = `SELECT evictrail.oldest_schema()`

func (s *Store) schema(ctx context.Context, p *goose.Provider) (SchemaStatus, error) {
	current, expected, err := p.GetVersions(ctx)
	status := SchemaStatus{Version: current, Expected: expected}
	if err == nil && current > expected {
		err = s.pool.QueryRow(ctx, oldestSchemaQuery).Scan(&status.Oldest)
	}
	return status, explain("read schema version", err)
}

// Up brings the database to the schema that this program needs. It gives the names of the schema migrations that it applied, none when there was nothing to do. A
// database that is newer than this program is left alone: the error is ErrSchema where they do not get along.
func (s *Store) Up(ctx context.Context) ([]string, error) {
	p, done, err := s.provider()
	if err != nil {
		return nil, err
	}
	defer done()
	status, err := s.schema(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case status.Version > status.Expected:
		return nil, status.Check()
	}
	results, err := p.Up(ctx)
	var applied []string
	for _, r := range results {
		applied = append(applied, r.Source.Path)
	}
	return applied, explain("migrate schema", err)
}

// Grant gives the roles of evictrail what they need of the present schema, where they exist and the schema is ours to give. It
// tells whether they do: a schema migration may have brought something that the writer has no right to yet.
func (s *Store) Grant(ctx context.Context) (bool, error) {
	const query = `
SELECT pg_has_role(n.nspowner, 'USAGE') AND (SELECT count(*) = 2 FROM pg_roles WHERE rolname IN ('evictrail_reader', 'evictrail_writer'))
FROM pg_namespace n
WHERE n.nspname = 'evictrail'`
	var ours bool
	if err := s.pool.QueryRow(ctx, query).Scan(&ours); err != nil {
		return false, explain("look for roles", err)
	}
	if !ours {
		return false, nil
	}
	_, err := s.pool.Exec(ctx, grants)
	return err == nil, explain("grant to roles", err)
}

// writtenTables are those whose rows a writer makes, changes and deletes.
var writtenTables = []string{
	"evictrail.subjects", "evictrail.aspects", "evictrail.clusters", "evictrail.leaders", "evictrail.watching", "evictrail.recorders", "evictrail.acknowledged", "evictrail.eviction_requests",
	"evictrail.evacuations", "evictrail.migrations", "evictrail.placements", "evictrail.cooldown_decisions", "evictrail.loops", "evictrail.drains",
	"evictrail.drain_blockers", "evictrail.consequences", "evictrail.outages", "evictrail.gaps", "evictrail.timeline", "evictrail.retention", "evictrail.derive_failures",
}

// Roles gives the SQL that makes the roles of evictrail and grants each what it needs. It may be run again.
func Roles() string { return roles + grants }

const roles = `-- Roles of evictrail. Run as a superuser or as the owner of the database, after "evictrail schema up", which from then
-- on grants them what a new version brings; it may be run again. None of the roles can log in: grant them to your users, for example
--   CREATE ROLE grafana LOGIN PASSWORD '...'; GRANT evictrail_reader TO grafana;
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'evictrail_reader') THEN
        CREATE ROLE evictrail_reader NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'evictrail_writer') THEN
        CREATE ROLE evictrail_writer NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'evictrail_retention') THEN
        CREATE ROLE evictrail_retention NOLOGIN;
    END IF;
END
$$;

-- The reader sees the views and nothing else, no query of it runs for long, and none is compiled: that takes longer than what is read.
-- Such settings are those of the role that logs in: repeat the ALTER ROLE for each user.
ALTER ROLE evictrail_reader SET statement_timeout = '5s';
ALTER ROLE evictrail_reader SET default_transaction_read_only = on;
ALTER ROLE evictrail_reader SET jit = off;
`

var grants = `
GRANT USAGE ON SCHEMA evictrail_v1 TO evictrail_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA evictrail_v1 TO evictrail_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA evictrail_v1 GRANT SELECT ON TABLES TO evictrail_reader;

-- The writer adds facts but cannot change them, replaces derived rows, has the partitions of new months made, and has rows counted.
GRANT USAGE ON SCHEMA evictrail TO evictrail_writer;
GRANT EXECUTE ON FUNCTION evictrail.ensure_month(timestamptz), evictrail.count_grown() TO evictrail_writer;
GRANT USAGE ON SCHEMA evictrail_v1 TO evictrail_writer;
GRANT SELECT ON ALL TABLES IN SCHEMA evictrail, evictrail_v1 TO evictrail_writer;
GRANT SELECT ON public.evictrail_schema TO evictrail_writer;
GRANT INSERT ON evictrail.events TO evictrail_writer;
GRANT INSERT, UPDATE, DELETE ON
    ` + strings.Join(writtenTables, ",\n    ") + `
TO evictrail_writer;

-- Who drops what was kept long enough, and erases names: grant it to the user of "evictrail run" beside evictrail_writer. It drops no facts of the last
-- week, and cannot change one but for names in requests that are older than a day.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'evictrail_retention') THEN
        GRANT USAGE ON SCHEMA evictrail TO evictrail_retention;
        GRANT EXECUTE ON FUNCTION evictrail.begin_drop(timestamptz, name), evictrail.finish_drop(), evictrail.erase_requesters(timestamptz, integer)
        TO evictrail_retention;
    END IF;
END
$$;
`
