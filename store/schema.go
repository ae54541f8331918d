package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/evictrail/evictrail/migrations"
)

// SchemaStatus tells which schema a database has and which one this program needs.
type SchemaStatus struct {
	Version  int64 // of the database; 0: empty
	Expected int64
}

// Check gives an error that is ErrSchema when the two differ, saying what to do.
func (s SchemaStatus) Check() error {
	switch {
	case s.Version > s.Expected:
		return fmt.Errorf("%w: the database is at version %d, this evictrail knows %d: use a newer evictrail", ErrSchema, s.Version, s.Expected)
	case s.Version < s.Expected:
		return fmt.Errorf("%w: the database is at version %d, this evictrail needs %d: run `evictrail schema up`", ErrSchema, s.Version, s.Expected)
	}
	return nil
}

// provider makes goose's Provider over our files. One migrates at a time: the others wait for an advisory lock.
func (s *Store) provider() (*goose.Provider, func(), error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, nil, fmt.Errorf("make schema lock: %w", err)
	}
	db := stdlib.OpenDBFromPool(s.pool)
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS,
		goose.WithSessionLocker(locker), goose.WithTableName("public.evictrail_schema"))
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
	current, expected, err := p.GetVersions(ctx)
	if err != nil {
		return SchemaStatus{}, explain("read schema version", err)
	}
	return SchemaStatus{Version: current, Expected: expected}, nil
}

// Up brings the database to the schema that this program needs. It gives the names of the schema migrations that it applied, none when there was nothing to do. A database that is
// newer than this program is left alone: the error is ErrSchema.
func (s *Store) Up(ctx context.Context) ([]string, error) {
	p, done, err := s.provider()
	if err != nil {
		return nil, err
	}
	defer done()
	current, expected, err := p.GetVersions(ctx)
	if err != nil {
		return nil, explain("read schema version", err)
	}
	if current > expected {
		return nil, SchemaStatus{current, expected}.Check()
	}
	results, err := p.Up(ctx)
	var applied []string
	for _, r := range results {
		applied = append(applied, r.Source.Path)
	}
	return applied, explain("migrate schema", err)
}

// Roles gives the SQL that makes the roles of evictrail and grants each what it needs. It may be run again.
func Roles() string {
	return strings.Replace(roles, "DERIVED", "    "+strings.Join(writtenTables, ",\n    "), 1)
}

// writtenTables are those whose rows a writer makes, changes and deletes.
var writtenTables = []string{
	"evictrail.subjects", "evictrail.aspects", "evictrail.clusters", "evictrail.leaders", "evictrail.watching", "evictrail.eviction_requests",
	"evictrail.evacuations", "evictrail.migrations", "evictrail.placements", "evictrail.cooldown_decisions", "evictrail.loops", "evictrail.drains",
	"evictrail.drain_blockers", "evictrail.gaps", "evictrail.timeline",
}

const roles = `-- Roles of evictrail. Run as a superuser or as the owner of the database, after "evictrail schema up"; it may
-- be run again, and must be after each upgrade. None of the roles can log in: grant them to your users, for example
--   CREATE ROLE grafana LOGIN PASSWORD '...'; GRANT evictrail_reader TO grafana;
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'evictrail_reader') THEN
        CREATE ROLE evictrail_reader NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'evictrail_writer') THEN
        CREATE ROLE evictrail_writer NOLOGIN;
    END IF;
END
$$;

-- The reader sees the views and nothing else, and no query of it runs for long. The timeout is that of the role that
-- logs in: repeat the ALTER ROLE for each user.
ALTER ROLE evictrail_reader SET statement_timeout = '5s';
ALTER ROLE evictrail_reader SET default_transaction_read_only = on;
GRANT USAGE ON SCHEMA evictrail_v1 TO evictrail_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA evictrail_v1 TO evictrail_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA evictrail_v1 GRANT SELECT ON TABLES TO evictrail_reader;

-- The writer adds facts but cannot change them, replaces derived rows, and has the partitions of new months made.
GRANT USAGE ON SCHEMA evictrail TO evictrail_writer;
GRANT EXECUTE ON FUNCTION evictrail.ensure_month(timestamptz) TO evictrail_writer;
GRANT USAGE ON SCHEMA evictrail_v1 TO evictrail_writer;
GRANT SELECT ON ALL TABLES IN SCHEMA evictrail, evictrail_v1 TO evictrail_writer;
GRANT SELECT ON public.evictrail_schema TO evictrail_writer;
GRANT INSERT ON evictrail.events TO evictrail_writer;
GRANT INSERT, UPDATE, DELETE ON
DERIVED
TO evictrail_writer;
`

// readPassword sets the password from the first line of a file, where one is named.
func readPassword(config *pgxpool.Config, file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read database password: %w", err)
	}
	config.ConnConfig.Password, _, _ = strings.Cut(strings.TrimRight(string(text), "\r\n"), "\n")
	return nil
}
