package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/migrations"
	"github.com/evictrail/evictrail/store/citus"
	"github.com/evictrail/evictrail/store/pg"
)

// SchemaStatus says which schema a database has and which one this program needs.
type SchemaStatus struct {
	Version  int64 // of the database; 0: empty
	Expected int64
	Oldest   int64 // whose programs get along with that of the database; 0: only its own do
}

// Newer reports whether the database has a newer schema with which this program gets along.
func (s SchemaStatus) Newer() bool {
	return s.Version > s.Expected && s.Oldest > 0 && s.Oldest <= s.Expected
}

// TooOld reports whether no steps lead from the database's schema to ours.
func (s SchemaStatus) TooOld() bool { return s.Version > 0 && s.Version < migrations.Oldest() }

// CheckPresent is Check for a program that gets along with no newer schema either, as it has to know each table.
func (s SchemaStatus) CheckPresent() error {
	if s.Version > s.Expected {
		return s.newerError()
	}
	return s.Check()
}

func (s SchemaStatus) newerError() error {
	return fmt.Errorf("%w: the database is at version %d, this evictrail knows %d: use a newer evictrail", pg.ErrSchema, s.Version, s.Expected)
}

// Check returns an error that is ErrSchema when the program cannot work with the schema, saying what to do.
func (s SchemaStatus) Check() error {
	switch {
	case s.Newer():
		return nil
	case s.Version > s.Expected:
		return s.newerError()
	case s.TooOld():
		return fmt.Errorf("%w: the database is at version %d, this evictrail updates version %d or newer: first run `evictrail schema up` of an evictrail that needs version %[3]d",
			pg.ErrSchema, s.Version, migrations.Oldest())
	case s.Version < s.Expected:
		return fmt.Errorf("%w: the database is at version %d, this evictrail needs %d: run `evictrail schema up`", pg.ErrSchema, s.Version, s.Expected)
	}
	return nil
}

// querier is what a version is read with: the pool, or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

const (
	versionedQuery    = `SELECT to_regclass('public.evictrail_schema') IS NOT NULL`
	versionQuery      = `SELECT coalesce(max(version_id), 0) FROM public.evictrail_schema WHERE is_applied`
	oldestSchemaQuery = `SELECT evictrail.oldest_schema()`
)

// Schema returns which schema the database has.
func (s *Store) Schema(ctx context.Context) (SchemaStatus, error) {
	status, err := readSchema(ctx, s.DB)
	return status, pg.Explain("read schema version", err)
}

func readSchema(ctx context.Context, q querier) (SchemaStatus, error) {
	status := SchemaStatus{Expected: migrations.Version()}
	var versioned bool
	if err := q.QueryRow(ctx, versionedQuery).Scan(&versioned); err != nil || !versioned {
		return status, err
	}
	err := q.QueryRow(ctx, versionQuery).Scan(&status.Version)
	if err == nil && status.Version > status.Expected {
		err = q.QueryRow(ctx, oldestSchemaQuery).Scan(&status.Oldest)
	}
	return status, err
}

// One program at a time updates the schema: it locks what goose locked for programs before schema 39, so that these
// wait, too. The lock ends with the transaction, so no pooler can keep it. Tables are waited for a while at most:
// anyone who wants to read one waits behind us.
const lockSchema = `
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = '5min';
SELECT pg_advisory_xact_lock(4097083626);
SET LOCAL lock_timeout = '30s';
` + citus.Sequential

const appliedQuery = `INSERT INTO public.evictrail_schema (version_id, is_applied) VALUES (@version, true)`

// Up brings the database to the schema that this program needs, in one transaction. It returns the versions that it
// went through, none when there was nothing to do: a database that is newer than this program is left alone. The error
// is ErrSchema where they do not get along, or where no steps lead from what the database has.
func (s *Store) Up(ctx context.Context) ([]int64, error) {
	status, err := s.Schema(ctx)
	if err != nil {
		return nil, err
	}
	if status.Version >= status.Expected {
		return nil, status.Check()
	}
	var applied []int64
	err = s.DB.InTx(ctx, "update schema", func(tx pgx.Tx) error {
		applied = nil
		if _, err := tx.Exec(ctx, lockSchema); err != nil {
			return err
		}
		status, err := readSchema(ctx, tx) // again: another program may have been here
		if err != nil {
			return err
		}
		if status.Version >= status.Expected || status.TooOld() {
			return status.Check()
		}
		for _, script := range migrations.Update(status.Version) {
			if _, err := tx.Exec(ctx, script.SQL); err != nil {
				return fmt.Errorf("%s: %w", script.Name, err)
			}
			if script.Version == 0 {
				continue
			}
			if err := citus.DistributeNew(ctx, tx); err != nil {
				return fmt.Errorf("%s: %w", script.Name, err)
			}
			if _, err := tx.Exec(ctx, appliedQuery, pgx.StrictNamedArgs{"version": script.Version}); err != nil {
				return err
			}
			applied = append(applied, script.Version)
		}
		return nil
	})
	return applied, err
}

// Grant returns the roles of evictrail what they need of the present schema, where they exist and the schema is ours to give. It
// reports whether they do: a schema migration may have brought something that the writer has no right to yet.
func (s *Store) Grant(ctx context.Context) (bool, error) {
	const query = `
SELECT pg_has_role(n.nspowner, 'USAGE') AND (SELECT count(*) = 2 FROM pg_roles WHERE rolname IN ('evictrail_reader', 'evictrail_writer'))
FROM pg_namespace n
WHERE n.nspname = 'evictrail'`
	var ours bool
	if err := s.DB.QueryRow(ctx, query).Scan(&ours); err != nil {
		return false, pg.Explain("look for roles", err)
	}
	if !ours {
		return false, nil
	}
	_, err := s.DB.Exec(ctx, grants)
	return err == nil, pg.Explain("grant to roles", err)
}

// writtenTables are those whose rows a writer makes, changes and deletes.
var writtenTables = []string{
	"evictrail.subjects", "evictrail.aspects", "evictrail.clusters", "evictrail.leaders", "evictrail.watching", "evictrail.recorders", "evictrail.acknowledged", "evictrail.eviction_requests",
	"evictrail.evacuations", "evictrail.migrations", "evictrail.placements", "evictrail.cooldown_decisions", "evictrail.loops", "evictrail.drains",
	"evictrail.drain_blockers", "evictrail.consequences", "evictrail.outages", "evictrail.gaps", "evictrail.timeline", "evictrail.retention", "evictrail.derive_failures", "evictrail.acknowledgements",
	"evictrail.cluster_days", "evictrail.drain_forecasts", "evictrail.receivers", "evictrail.deliveries",
}

// Roles returns the SQL that makes the roles of evictrail and grants each what it needs. It may be run again.
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

-- The writer adds facts, and digests of them, but cannot change them, replaces derived rows, has the partitions of new months made, and has rows counted.
GRANT USAGE ON SCHEMA evictrail TO evictrail_writer;
GRANT EXECUTE ON FUNCTION evictrail.ensure_month(timestamptz), evictrail.count_grown() TO evictrail_writer;
GRANT USAGE ON SCHEMA evictrail_v1 TO evictrail_writer;
GRANT SELECT ON ALL TABLES IN SCHEMA evictrail, evictrail_v1 TO evictrail_writer;
GRANT SELECT ON public.evictrail_schema TO evictrail_writer;
GRANT INSERT ON
    evictrail.events,
    evictrail.evidence
TO evictrail_writer;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA evictrail TO evictrail_writer;
GRANT INSERT, UPDATE, DELETE ON
    ` + strings.Join(writtenTables, ",\n    ") + `
TO evictrail_writer;

-- Who drops what was kept long enough, and erases names: grant it to the user of "evictrail run" beside evictrail_writer. It drops no facts of the last
-- week, and cannot change one but for names in requests that are older than a day.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'evictrail_retention') THEN
        GRANT USAGE ON SCHEMA evictrail TO evictrail_retention;
        GRANT EXECUTE ON FUNCTION
            evictrail.begin_drop(timestamptz, name),
            evictrail.finish_drop(),
            evictrail.drop_facts(text, text[], timestamptz[], uuid[]),
            evictrail.erase_requesters(timestamptz, integer, text)
        TO evictrail_retention;
    END IF;
END
$$;
`
