package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/migrations"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/catalogue"
)

func newSchemaValidate() *cobra.Command {
	var db databaseFlags
	var output string
	cmd := &cobra.Command{
		Use: "validate", Short: "Compare what the database has with the schema that this version expects",
		Args: asUsage(cobra.NoArgs), ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Compare the tables, columns, constraints, indexes, triggers, views and functions that the database has with
those that this version expects, and print what is missing, extra or different: somebody changed it by hand, or a
restore was not complete. It reads the catalogues of Postgres, builds nothing and changes nothing; the role evictrail_reader
suffices. The months of facts, the order of columns, comments, rights and what Citus adds are no difference.

"schema up" leaves a schema of its version as it is: put back what differs as the owner, by the definitions that -o json
has, or restore a backup.

Exit status 0 when nothing differs, 1 when something does, or when the database is of another version.`,
		Example: `  evictrail schema validate
  evictrail schema validate -o json | jq -r '.differences[] | select(.verdict != "extra") | .expected'
  kubectl -n evictrail exec evictrail-0 -- evictrail schema validate`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return usageErrorf("output %s: expected text or json", output)
			}
			s, err := db.openStore(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			return validateSchema(cmd.Context(), s, cmd.OutOrStdout(), output)
		},
	}
	db.addFlags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`format`: text or json")
	formats := cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("output", formats)
	return cmd
}

// validateSchema prints how the schema of a database is other than expected. Where it is, that is the error, too.
func validateSchema(ctx context.Context, s *store.Store, out io.Writer, format string) error {
	found, err := catalogue.Read(ctx, s.DB)
	if err != nil {
		return err
	}
	differences := catalogue.Compare(catalogue.Expected(), found)
	if len(differences) > 0 {
		// A reader may not ask for the version: then the differences have to say it.
		if status, err := s.Schema(ctx); err == nil && status.CheckPresent() != nil {
			return status.CheckPresent()
		}
	}
	switch {
	case format == "json":
		err = api.WriteJSON(out, map[string]any{
			"version": migrations.Version(), "differences": append([]catalogue.Difference{}, differences...),
		})
	case len(differences) == 0:
		_, err = fmt.Fprintf(out, "the schema is as version %d has it\n", migrations.Version())
	default:
		err = printDifferences(out, differences)
	}
	if err == nil && len(differences) > 0 {
		err = fmt.Errorf("%s from schema version %d: put it back as the owner of the database, or restore a backup "+
			"(-o json has the definitions)", countOf(len(differences), "difference"), migrations.Version())
	}
	return err
}

// printDifferences writes a line for each object, and below it where its definition differs first.
func printDifferences(out io.Writer, differences []catalogue.Difference) error {
	for _, d := range differences {
		if _, err := fmt.Fprintf(out, "%-9s  %-10s  %s\n", d.Verdict, d.Kind, d.Name); err != nil {
			return err
		}
		if d.Verdict != catalogue.Different {
			continue
		}
		expected, found := d.FirstDifference()
		if _, err := fmt.Fprintf(out, "           expected    %s\n           found       %s\n", expected, found); err != nil {
			return err
		}
	}
	return nil
}
