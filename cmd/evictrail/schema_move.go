package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/move"
	"github.com/evictrail/evictrail/trail"
)

// moving is a command line of "evictrail schema move-cluster".
type moving struct {
	from, to   databaseFlags
	dryRun     bool
	dropSource bool
	abandon    bool
}

func newSchemaMoveCluster() *cobra.Command {
	var f moving
	cmd := &cobra.Command{
		Use: "move-cluster CLUSTER", Short: "Move all that is recorded of a cluster to another database",
		Args: asUsage(cobra.ExactArgs(1)),
		Long: `Copy all rows of a cluster to another database, and compare them. Recording goes on there: facts keep their
numbers and times, so that exports and the evidence of days go on as well. Both databases need the present schema (schema up).
Other clusters of both go on being recorded.

Stop all replicas of the cluster first: while one reports, nothing is moved. What happens until they run again with the
destination is read from what the cluster still shows, and is a gap.

Run it again, and it goes on where it ended, also where it was killed. Until it has ended, the destination has a part of
the cluster, and records nothing of it; --abandon removes that part. A destination that has the cluster already, from
elsewhere, is refused.

The source stays as it is. --drop-source deletes the cluster there, also in a later run: only where all rows were
compared, and the source has not changed since. The user of the destination must own the schema, that of the source
needs the role evictrail_writer, or with --drop-source must own it. Progress is on standard error. Exit status 0 when
the destination has all of it, 3 when the source does not have the cluster.`,
		Example: `  export EVICTRAIL_DATABASE_URL=postgres://evictrail@old.example/evictrail?sslmode=verify-full
  to=postgres://evictrail@new.example/evictrail?sslmode=verify-full
  evictrail schema move-cluster prod --to-database-url "$to" --dry-run
  evictrail schema move-cluster prod --to-database-url "$to"
  evictrail schema move-cluster prod --to-database-url "$to" --drop-source`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.from.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.to.url, "to-database-url", "", "PostgreSQL `URL` of the destination, without a password")
	flags.StringVar(&f.to.passwordFile, "to-database-password-file", "",
		"`file` whose first line is the password of the destination; a pgpass file works too")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would be copied, with sizes, and write nothing")
	flags.BoolVar(&f.dropSource, "drop-source", false, "delete the cluster from the source, once all rows were compared")
	flags.BoolVar(&f.abandon, "abandon", false, "remove what a move that has not ended copied to the destination")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		from := &readerFlags{database: f.from, changed: cmd.Flags().Changed}
		return findCompletions(cmd, from, trail.NameQuery{Kind: trail.NameCluster, Prefix: typed}, "")
	}
	return cmd
}

// open opens both databases, which must have the present schema.
func (f *moving) open(ctx context.Context) (from, to *store.Store, err error) {
	f.to.insecure = f.from.insecure
	if f.dryRun && f.dropSource || f.dryRun && f.abandon || f.dropSource && f.abandon {
		return nil, nil, usageErrorf("dry-run, drop-source, abandon: give one of them")
	}
	if f.to.url == "" {
		return nil, nil, usageErrorf("to-database-url: name the database that the cluster is to move to")
	}
	if err := f.to.checkURL("to-database-url", f.to.url); err != nil {
		return nil, nil, err
	}
	if from, err = f.from.openStore(ctx); err != nil {
		return nil, nil, err
	}
	if to, err = store.Open(ctx, f.to.url, f.to.passwordFile); err != nil {
		from.Close()
		return nil, nil, fmt.Errorf("destination: %w", err)
	}
	for name, s := range map[string]*store.Store{"source": from, "destination": to} {
		status, err := s.Schema(ctx)
		if err == nil {
			err = status.CheckPresent()
		}
		if err != nil {
			from.Close()
			to.Close()
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return from, to, nil
}

func (f *moving) run(cmd *cobra.Command, cluster string) error {
	from, to, err := f.open(cmd.Context())
	if err != nil {
		return err
	}
	defer from.Close()
	defer to.Close()
	started := time.Now()
	m := move.Mover{From: from.DB, To: to.DB, Cluster: cluster, Progress: printMoveProgress(cmd.ErrOrStderr())}
	out := cmd.OutOrStdout()
	switch {
	case f.dryRun:
		sizes, err := m.Plan(cmd.Context())
		if err != nil {
			return explainUnknown(cmd, from, cluster, err)
		}
		return printSizes(out, cluster, sizes)
	case f.abandon:
		n, err := m.Abandon(cmd.Context())
		if err == nil {
			printTextf(out, "%s: %s removed from the destination; the source is as it was\n", cluster, countOf(int(n), "row"))
		}
		return err
	}
	did, err := m.Run(cmd.Context(), f.dropSource)
	if errors.Is(err, trail.ErrNotFound) {
		return explainUnknown(cmd, from, cluster, err)
	}
	if err != nil {
		return fmt.Errorf("%w (what is done stays: once that is put right, run the same command again)", err)
	}
	if did.Arrived.IsZero() {
		printTextf(out, "%s: moved: %s of %s are the same in both databases, in %s\n", cluster,
			countOf(int(did.Rows), "row"), countOf(did.Tables, "table"), time.Since(started).Round(time.Millisecond))
	} else {
		printTextf(out, "%s: had arrived in the destination at %s, with %s\n", cluster,
			did.Arrived.Format(time.RFC3339), countOf(int(did.Rows), "row"))
	}
	if did.Repaired > 0 {
		printTextf(cmd.ErrOrStderr(), "%s: the source had changed since it was copied: what differed was copied again\n",
			cluster)
	}
	if f.dropSource {
		printTextf(out, "%s: %s deleted from the source\n", cluster, countOf(int(did.Deleted), "row"))
	} else {
		printTextf(cmd.ErrOrStderr(), "start the replicas of the cluster with --database-url of the destination; the source "+
			"has it until the same command runs with --drop-source\n")
	}
	return nil
}

// explainUnknown names the clusters that the source has where it does not have the one that was named.
func explainUnknown(cmd *cobra.Command, from *store.Store, cluster string, err error) error {
	if errors.Is(err, trail.ErrNotFound) {
		if _, unknown := selectClusters(cmd, from, cluster); unknown != nil {
			return unknown
		}
	}
	return err
}

// printSizes prints what would be copied.
func printSizes(out io.Writer, cluster string, sizes []move.Size) error {
	if sizes == nil {
		printTextf(out, "%s: has arrived in the destination: nothing would be copied\n", cluster)
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TABLE\tROWS\tSIZE WITHOUT INDEXES")
	var rows, bytes int64
	for _, s := range sizes {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\n", s.Table, s.Rows, trail.FormatBytes(s.Bytes))
		rows, bytes = rows+s.Rows, bytes+s.Bytes
	}
	_, _ = fmt.Fprintf(w, "all\t%d\t%s\n", rows, trail.FormatBytes(bytes))
	return w.Flush()
}

// printMoveProgress returns what prints how far a move is, every two seconds.
func printMoveProgress(out io.Writer) func(move.Progress) {
	next := time.Now().Add(2 * time.Second)
	var last move.Progress
	return func(p move.Progress) {
		if p.Doing == last.Doing && p.Table == last.Table {
			p.Rows += last.Rows
		}
		last = p
		if time.Now().After(next) {
			next = time.Now().Add(2 * time.Second)
			printTextf(out, "%s: %s %s\n", p.Table, countOf(int(p.Rows), "row"), p.Doing)
		}
	}
}
