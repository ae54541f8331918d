package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/spool"
	"github.com/evictrail/evictrail/trail"
)

func newSpool() *cobra.Command {
	cmd := &cobra.Command{
		Use: "spool", Short: "Look after facts that were refused", GroupID: "keep", Args: refuseUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSpoolRefused(), newSpoolReplay())
	return cmd
}

// lettersFlags say which file of dead letters is meant.
type lettersFlags struct {
	dir     string
	cluster string
}

func (f *lettersFlags) addFlags(cmd *cobra.Command) {
	addSpoolDir(cmd, &f.dir)
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "`name` of the cluster whose facts were refused; not needed where the directory has those of one only")
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		clusters, _ := spool.LettersOf(f.dir)
		return clusters, cobra.ShellCompDirectiveNoFileComp
	})
}

// readLetters reads the letters of the cluster that is meant. Without any the error is ErrNotFound.
func (f *lettersFlags) readLetters() (letters []spool.DeadLetter, unreadable int, err error) {
	if f.cluster == "" {
		clusters, err := spool.LettersOf(f.dir)
		switch {
		case err != nil:
			return nil, 0, err
		case len(clusters) > 1:
			return nil, 0, usageErrorf("facts of several clusters were refused: choose one with --cluster: %s", strings.Join(clusters, ", "))
		case len(clusters) == 0:
			return nil, 0, fmt.Errorf("%w: no refused facts in %s", trail.ErrNotFound, f.dir)
		}
		f.cluster = clusters[0]
	}
	letters, unreadable, err = spool.DeadLetters(f.dir, f.cluster)
	if err == nil && len(letters) == 0 && unreadable == 0 {
		err = fmt.Errorf("%w: no refused facts of cluster %s in %s", trail.ErrNotFound, f.cluster, f.dir)
	}
	return letters, unreadable, err
}

func newSpoolRefused() *cobra.Command {
	var f lettersFlags
	var output string
	cmd := &cobra.Command{
		Use: "refused", Short: "List facts that were refused and set aside", Args: asUsage(cobra.NoArgs),
		Long: `List the facts that the database, or evictrail itself, refused to store, and why. They lie beside the spool until 'evictrail spool replay' stores them.
It may run while evictrail records. -o json has the facts themselves, one a line. Exit status 3 when there are none.`,
		Example: `  evictrail spool refused
  evictrail spool refused --spool-dir /var/spool/evictrail --cluster prod -o json | jq .reason
  kubectl exec -n evictrail evictrail-0 -- evictrail spool refused --spool-dir /var/spool/evictrail`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return usageErrorf("output %s: expected table or json", output)
			}
			letters, unreadable, err := f.readLetters()
			if err != nil {
				return err
			}
			if unreadable > 0 {
				printTextf(cmd.ErrOrStderr(), "%d lines of %s cannot be read\n", unreadable, spool.LettersPath(f.dir, f.cluster))
			}
			return printLetters(cmd.OutOrStdout(), letters, output)
		},
	}
	f.addFlags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "`format`: table or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func printLetters(out io.Writer, letters []spool.DeadLetter, format string) error {
	if format == "json" {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		for _, l := range letters {
			if err := e.Encode(l); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "REFUSED AT\tKIND\tABOUT\tREASON")
	for _, l := range letters {
		reason := strings.Join(strings.Fields(l.Reason), " ")
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.At.UTC().Format(time.RFC3339), quoteLine(string(l.Kind)), quoteLine(l.About), quoteLine(reason))
	}
	return w.Flush()
}

// quoteLine makes text of others fit for a terminal: what moves the cursor, or ends a line, is written out.
func quoteLine(text string) string {
	quoted := fmt.Sprintf("%+q", text)
	return strings.ReplaceAll(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), `\\`, `\`)
}

func newSpoolReplay() *cobra.Command {
	var f lettersFlags
	var db databaseFlags
	cmd := &cobra.Command{
		Use: "replay", Short: "Store facts that were refused before", Args: asUsage(cobra.NoArgs),
		Long: `Store the facts that were refused and set aside, as after an upgrade that accepts them. What is stored is taken out of the file; what is refused again stays,
with its new reason on standard error. It may run while evictrail records, and again: a fact that is stored already adds nothing.

Exit status 0 when all are stored, 1 when some are refused again, 3 when there are none.`,
		Example: `  evictrail spool replay
  evictrail spool replay --spool-dir /var/spool/evictrail --cluster prod --database-url postgres://evictrail@db.example/evictrail
  kubectl exec -n evictrail evictrail-0 -- evictrail spool replay --spool-dir /var/spool/evictrail`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			letters, unreadable, err := f.readLetters()
			if err != nil {
				return err
			}
			s, err := db.openStore(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			return f.replayLetters(cmd, s, letters, unreadable)
		},
	}
	f.addFlags(cmd)
	db.addFlags(cmd)
	return cmd
}

// replayedTogether is how many facts are stored before they are taken out of the file.
const replayedTogether = 500

// replayLetters stores letters one by one and takes those that are stored out of the file, also where it ends early.
func (f *lettersFlags) replayLetters(cmd *cobra.Command, s *store.Store, letters []spool.DeadLetter, refused int) error {
	total := 0
	stored := map[trail.FactID]bool{}
	drop := func() error {
		if len(stored) == 0 {
			return nil
		}
		defer clear(stored)
		total += len(stored)
		return spool.DropLetters(f.dir, f.cluster, stored)
	}
	for _, l := range letters {
		err := f.storeLetter(cmd.Context(), s, l)
		switch {
		case err == nil:
			stored[l.ID] = true
		case errors.Is(err, pg.ErrUnavailable), errors.Is(err, pg.ErrSchema), cmd.Context().Err() != nil:
			return errors.Join(err, drop())
		default:
			refused++
			printTextf(cmd.ErrOrStderr(), "%s of %s is refused again: %s\n", quoteLine(string(l.Kind)), quoteLine(l.About), quoteLine(err.Error()))
		}
		if len(stored) == replayedTogether {
			if err := drop(); err != nil {
				return err
			}
		}
	}
	if err := drop(); err != nil {
		return err
	}
	printTextf(cmd.OutOrStdout(), "%d facts stored, %d refused again\n", total, refused)
	if refused > 0 {
		return fmt.Errorf("%d facts stay in %s", refused, spool.LettersPath(f.dir, f.cluster))
	}
	return nil
}

// storeLetter stores the fact of a letter.
func (f *lettersFlags) storeLetter(ctx context.Context, s *store.Store, l spool.DeadLetter) error {
	if l.Fact == nil {
		return errors.New("it has no text that could be stored")
	}
	fact, err := trail.ReadFact(f.cluster, l.Fact)
	if err != nil {
		return err
	}
	_, err = s.Append(ctx, f.cluster, []trail.Fact{fact})
	return err
}
