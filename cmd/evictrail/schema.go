package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/store"
)

func newSchema() *cobra.Command {
	cmd := &cobra.Command{
		Use: "schema", Short: "Look after the database schema", GroupID: "keep", Args: refuseUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSchemaUp(), newSchemaStatus(), newSchemaValidate(), newSchemaRoles())
	cmd.AddCommand(newSchemaMoveCluster(), newSchemaDistribute(), newSchemaUndistribute())
	return cmd
}

func newSchemaUp() *cobra.Command {
	var db databaseFlags
	cmd := &cobra.Command{
		Use: "up", Short: "Bring the schema to what this version needs", Args: asUsage(cobra.NoArgs),
		Long: `Make the schema in an empty database, or apply the schema migrations that the database does not have, all of them or none. It is safe to run
while an evictrail of the version before still writes, and to run again. "run" does the same at its start.`,
		Example: `  evictrail schema up --database-url 'postgres://evictrail@db.example:5432/evictrail?sslmode=verify-full'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := db.openStore(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			applied, err := s.Up(cmd.Context())
			for _, version := range applied {
				_, _ = fmt.Fprintln(cmd.OutOrStdout(), "applied schema", version)
			}
			if err == nil {
				err = s.EnsureMonths(cmd.Context(), nowUTC())
			}
			if err == nil {
				_, err = s.Grant(cmd.Context())
			}
			if err == nil && len(applied) == 0 {
				_, _ = fmt.Fprintln(cmd.OutOrStdout(), "the schema is up to date")
			}
			return err
		},
	}
	db.addFlags(cmd)
	return cmd
}

func newSchemaStatus() *cobra.Command {
	var db databaseFlags
	var r retentionFlags
	var capacity byteSize
	var output string
	cmd := &cobra.Command{
		Use: "status", Short: "Show which schema the database has, and what lies in it", Args: asUsage(cobra.NoArgs),
		Long: `Print the version of the database's schema and the one that this evictrail needs, the months of facts with their sizes, how many facts come a day, what is
dropped next and when, and for how long the room lasts; on Citus also its servers, and how many shards each has. Exit status 1 when they do not get along.

A database does not report how much room it has: set it with --capacity. How long things are kept is a flag of "run": set the same here where it is not the default.
Rows are counted as Postgres estimates them.`,
		Example: `  evictrail schema status --capacity 50GiB
  evictrail schema status --keep-facts 30d --capacity 20GiB -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.checkFlags(); err != nil {
				return err
			}
			if output != "table" && output != "json" {
				return usageErrorf("output %s: expected table or json", output)
			}
			s, err := db.openStore(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			return showSchemaStatus(cmd.Context(), s, cmd.OutOrStdout(), output, r.newPolicy(), int64(capacity))
		},
	}
	db.addFlags(cmd)
	r.addKept(cmd)
	cmd.Flags().Var(&capacity, "capacity", "room that the database has, in `bytes`, such as 50GiB: shows for how long it lasts")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "`format`: table or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func newSchemaRoles() *cobra.Command {
	return &cobra.Command{
		Use: "roles", Short: "Print the SQL that makes the roles", Args: asUsage(cobra.NoArgs),
		Long: `Print the SQL that creates evictrail_reader, evictrail_writer and evictrail_retention and grants them what they need. Nothing is run. Once they exist,
"schema up" grants them what a new version brings, where the schema belongs to the user that runs it.`,
		Example: `  evictrail schema roles | psql -d evictrail`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), store.Roles())
			return err
		},
	}
}
