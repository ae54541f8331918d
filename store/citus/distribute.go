package citus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

// ErrNotReady says why tables are not spread, or not brought back; its text says what to do.
var ErrNotReady = errors.New("not possible yet")

// functionsQuery asks for the functions that statements call of rows: those run where the rows are.
const functionsQuery = `
SELECT 'evictrail.' || proname || '(' || oidvectortypes(proargtypes) || ')'
FROM pg_catalog.pg_proc
WHERE pronamespace = 'evictrail'::regnamespace
  AND provolatile = 'i'
  AND pronargs > 0
ORDER BY 1`

// Plan returns the statements that spread what is not spread yet; none where all is. It asks for nothing of Citus, so
// any Postgres with the schema has one.
func Plan(ctx context.Context, q Querier, s *State, shards int) ([]string, error) {
	tables, err := Tables(ctx, q)
	if err != nil {
		return nil, pg.Explain("read tables", err)
	}
	left := slices.DeleteFunc(tables, func(t Table) bool { return slices.Contains(s.Tables, t.Name) })
	if len(left) == 0 {
		return nil, nil
	}
	functions, err := collectRows(ctx, q, functionsQuery, pgx.RowTo[string])
	return PlanDistribution(left, functions, shards, slices.Contains(s.Tables, first)), pg.Explain("read functions", err)
}

// Distribute spreads what is not spread yet, in one transaction, and returns the statements that it ran. The error is
// ErrNotReady where something has to be done before.
func Distribute(ctx context.Context, db *pg.DB, shards int) (done []string, err error) {
	return runPlan(ctx, db, "distribute tables", func(tx pgx.Tx, s *State) ([]string, error) {
		if err := errors.Join(s.checkServers(), checkRoles(ctx, tx, s)); err != nil {
			return nil, err
		}
		return Plan(ctx, tx, s, shards)
	})
}

// Undistribute brings all tables back to the server that is asked, in one transaction, and returns the statements that
// it ran. The error is ErrNotReady where something has to be done before.
func Undistribute(ctx context.Context, db *pg.DB) (done []string, err error) {
	return runPlan(ctx, db, "undistribute tables", func(_ pgx.Tx, s *State) ([]string, error) {
		return PlanReturn(s.Tables), nil
	})
}

// DistributeNew spreads the tables that a new schema brought, where others are spread already: views that are made next
// read both.
func DistributeNew(ctx context.Context, tx pgx.Tx) error {
	s, err := readState(ctx, tx)
	if err != nil || !s.IsDistributed() {
		return err
	}
	statements, err := Plan(ctx, tx, &s, 0)
	if err != nil {
		return err
	}
	return execAll(ctx, tx, statements)
}

// runPlan makes a plan and runs it in one transaction, once nothing writes.
func runPlan(ctx context.Context, db *pg.DB, doing string, plan func(pgx.Tx, *State) ([]string, error)) (done []string, err error) {
	s, err := Read(ctx, db)
	if err == nil {
		err = s.checkExtension(ctx, db)
	}
	if err != nil {
		return nil, err
	}
	err = db.InTx(ctx, doing, func(tx pgx.Tx) (err error) {
		if err := refuseWriters(ctx, tx); err != nil {
			return err
		}
		if done, err = plan(tx, &s); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		return execAll(ctx, tx, done)
	})
	if err != nil {
		done = nil
	}
	return done, err
}

func execAll(ctx context.Context, tx pgx.Tx, statements []string) error {
	for _, sql := range statements {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

const (
	// A replica says so every few seconds. Nothing that is dropped may be half dropped.
	writersQuery = `
SELECT cluster || ' (' || replica || ')'
FROM evictrail.recorders
WHERE alive_at > clock_timestamp() - interval '1 minute'
ORDER BY 1`
	droppingQuery  = `SELECT count(*) > 0 FROM evictrail.retention WHERE dropping IS NOT NULL`
	availableQuery = `SELECT count(*) > 0 FROM pg_catalog.pg_available_extensions WHERE name = 'citus'`
)

// refuseWriters returns an error that is ErrNotReady where an evictrail writes.
func refuseWriters(ctx context.Context, tx pgx.Tx) error {
	writers, err := collectRows(ctx, tx, writersQuery, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(writers) > 0 {
		return fmt.Errorf("%w: these replicas record now: %s. Stop each \"evictrail run\", wait a minute, and run this again",
			ErrNotReady, strings.Join(writers, ", "))
	}
	var dropping bool
	if err := tx.QueryRow(ctx, droppingQuery).Scan(&dropping); err != nil {
		return err
	}
	if dropping {
		return fmt.Errorf("%w: facts of old months are being dropped. Let \"evictrail run\" finish that (its log says when), "+
			"and run this again", ErrNotReady)
	}
	return nil
}

// checkExtension returns an error that is ErrNotReady on a plain Postgres.
func (s *State) checkExtension(ctx context.Context, q Querier) error {
	if s.Version != "" {
		return nil
	}
	var available bool
	if err := q.QueryRow(ctx, availableQuery).Scan(&available); err != nil {
		return pg.Explain("look for Citus", err)
	}
	if available {
		return fmt.Errorf("%w: the server has Citus, but this database does not use it: run CREATE EXTENSION citus in it, "+
			"on each server, as a superuser", ErrNotReady)
	}
	return fmt.Errorf("%w: this is a plain Postgres: tables can be distributed on a server with the extension Citus alone, "+
		"which evictrail does not bring (https://docs.citusdata.com, AGPL). Without it take a bigger server, or several databases: docs/scale.md", ErrNotReady)
}

// checkServers returns an error that is ErrNotReady where no server may have shards.
func (s *State) checkServers() error {
	for _, n := range s.Nodes {
		if n.Active && n.Holds {
			return nil
		}
	}
	return fmt.Errorf("%w: no server may have shards: run SELECT citus_set_coordinator_host('HOST'), "+
		"and SELECT citus_add_node('HOST', 5432) for each other server", ErrNotReady)
}

// rolesQuery asks where a user of evictrail cannot log in: the coordinator asks other servers as the user who asks it.
const rolesQuery = `
SELECT u.rolname || ' on ' || w.nodename || ':' || w.nodeport
FROM pg_catalog.pg_roles AS u
CROSS JOIN LATERAL run_command_on_workers(format('SELECT count(*) FROM pg_catalog.pg_roles WHERE rolname = %L AND rolcanlogin', u.rolname)) AS w
WHERE u.rolcanlogin
  AND NOT (w.success AND w.result = '1')
  AND (u.rolname = current_user OR EXISTS (
    SELECT 1
    FROM pg_catalog.pg_roles AS g
    WHERE g.rolname IN ('evictrail_reader', 'evictrail_writer', 'evictrail_retention')
      AND NOT u.rolsuper
      AND pg_has_role(u.oid, g.oid, 'MEMBER')
  ))
ORDER BY 1`

// checkRoles returns an error that is ErrNotReady where a user of evictrail cannot log in on a server.
func checkRoles(ctx context.Context, q Querier, s *State) error {
	if len(s.Nodes) < 2 {
		return nil
	}
	missing, err := collectRows(ctx, q, rolesQuery, pgx.RowTo[string])
	if err != nil {
		return pg.Explain("look for roles on other servers", err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: these users cannot log in there, as whom the coordinator asks: %s. Run CREATE ROLE ... LOGIN there, "+
			"and the SQL of \"evictrail schema roles\" on the coordinator", ErrNotReady, strings.Join(missing, ", "))
	}
	return nil
}
