package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/citus"
)

// citusNote says what was tried. docs/scale.md says the same.
const citusNote = `Citus is an extension of your own servers, under the AGPL; evictrail neither brings nor links it. What was run on it: an earlier version of evictrail
with changes by hand, on Citus 13.2.2 and PostgreSQL 15. This command was never run on a Citus: its statements and checks were tried on a plain Postgres that
says it is one. Take a backup first. docs/scale.md has what is known, point by point.`

func newSchemaDistribute() *cobra.Command {
	var db databaseFlags
	shards, dryRun := 32, false
	cmd := &cobra.Command{
		Use: "distribute", Short: "Spread the tables over the servers of a Citus cluster", Args: asUsage(cobra.NoArgs),
		Long: `Spread the tables over the servers of a Citus cluster: each cluster of VMs lies on one server with all its facts and rows, and a few small tables lie on each. All
tables are distributed in one transaction, or none; run again it distributes what a new version brought. It refuses to while an evictrail records, where
Citus or its servers are not set up, and where a user of evictrail cannot log in on one.

` + citusNote,
		Example: `  evictrail schema distribute --dry-run          # prints the statements; a plain Postgres does, too
  evictrail schema distribute --shards 64`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if shards < 1 {
				return usageErrorf("shards %d: expected 1 or more, such as twice as many as there are processors", shards)
			}
			s, err := openPresentSchema(cmd, &db)
			if err != nil {
				return err
			}
			defer s.Close()
			if dryRun {
				state, err := citus.Read(cmd.Context(), s.DB)
				if err != nil {
					return err
				}
				plan, err := citus.Plan(cmd.Context(), s.DB, &state, shards)
				return printDone(cmd, plan, "all tables are distributed", err)
			}
			done, err := citus.Distribute(cmd.Context(), s.DB, shards)
			if err == nil {
				_, err = s.Grant(cmd.Context())
			}
			return printDone(cmd, done, "all tables are distributed", err)
		},
	}
	db.addFlags(cmd)
	cmd.Flags().IntVar(&shards, "shards", shards, "`number` of parts into which clusters of VMs are put: how many servers can be used at most")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the statements, and run none")
	return cmd
}

func newSchemaUndistribute() *cobra.Command {
	var db databaseFlags
	dryRun := false
	cmd := &cobra.Command{
		Use: "undistribute", Short: "Bring distributed tables back to one server", Args: asUsage(cobra.NoArgs),
		Long: `Bring all tables that "schema distribute" spread back to the server of --database-url, in one transaction: it needs room for all of them. It refuses to while an
evictrail records.

` + citusNote,
		Example: `  evictrail schema undistribute --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := openPresentSchema(cmd, &db)
			if err != nil {
				return err
			}
			defer s.Close()
			if dryRun {
				state, err := citus.Read(cmd.Context(), s.DB)
				return printDone(cmd, citus.PlanReturn(state.Tables), "no table is distributed", err)
			}
			done, err := citus.Undistribute(cmd.Context(), s.DB)
			if err == nil {
				_, err = s.Grant(cmd.Context())
			}
			return printDone(cmd, done, "no table is distributed", err)
		},
	}
	db.addFlags(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the statements, and run none")
	return cmd
}

// openPresentSchema opens a database whose schema is that of this program: no other is known well enough to move its
// tables.
func openPresentSchema(cmd *cobra.Command, db *databaseFlags) (*store.Store, error) {
	s, err := db.openStore(cmd.Context())
	if err != nil {
		return nil, err
	}
	status, err := s.Schema(cmd.Context())
	if err == nil {
		err = status.CheckPresent()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// printDone prints statements that were run, or would be, as psql takes them; else what there is instead.
func printDone(cmd *cobra.Command, statements []string, none string, err error) error {
	if err != nil {
		return err
	}
	text := none
	if len(statements) > 0 {
		text = "BEGIN;\n" + strings.Join(statements, ";\n") + ";\nCOMMIT;"
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}
