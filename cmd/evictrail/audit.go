package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

func newAudit() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Take in audit logs of kube-apiservers", GroupID: "record", Args: refuseUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditImport())
	return cmd
}

func newAuditImport() *cobra.Command {
	var db databaseFlags
	var cluster string
	cmd := &cobra.Command{
		Use: "import FILE...", Short: "Import audit log files", Args: asUsage(cobra.MinimumNArgs(1)),
		Long: `Read audit logs of kube-apiservers, plain or gzip, '-' being standard input, and store who asked for evictions and
migrations. Files may be months old, in any order, and overlap: what is stored already adds nothing, and what was
recorded before is derived again with what they say. Lines are audit.k8s.io Events or EventLists.

Lines that cannot be used are counted and the first is shown; the rest is stored. Exit status 1 when there were any.`,
		Example: `  evictrail audit import /var/log/kubernetes/audit/*.log
  ssh cp-1 sudo zcat /var/log/audit/audit-2026-11-20.log.gz | evictrail audit import - --cluster prod`,
		RunE: func(cmd *cobra.Command, files []string) error {
			s, err := db.openStore(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			if cluster, err = onlyCluster(cmd.Context(), s, cluster); err != nil {
				return err
			}
			return importer{store: s, cluster: cluster, out: cmd.OutOrStdout(), progress: cmd.ErrOrStderr()}.importFiles(cmd.Context(), files, cmd.InOrStdin())
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "`name` of the cluster that the logs are of; not needed where only one is recorded")
	db.addFlags(cmd)
	return cmd
}

// onlyCluster returns the cluster that was named, else the only one that is recorded.
func onlyCluster(ctx context.Context, s *store.Store, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	clusters, err := s.Clusters(ctx)
	switch {
	case err != nil:
		return "", err
	case len(clusters) == 1:
		return clusters[0], nil
	case len(clusters) == 0:
		return "", usageErrorf("no cluster is recorded yet: name it with --cluster, as `evictrail run` will")
	}
	return "", usageErrorf("several clusters are recorded: choose one with --cluster: %s", strings.Join(clusters, ", "))
}

// importer imports audit logs of one cluster.
type importer struct {
	store    *store.Store
	cluster  string
	out      io.Writer
	progress io.Writer
}

// importBatch is how many facts are stored at once: what an import holds in memory.
const importBatch = 2000

// importFiles imports all files, then derives what they touched, whatever one of them is like.
func (i importer) importFiles(ctx context.Context, files []string, stdin io.Reader) error {
	var errs []error
	refused := 0
	for _, name := range files {
		n, err := i.importFile(ctx, name, stdin)
		refused += n
		if err != nil {
			errs = append(errs, err)
		}
		if errors.Is(err, pg.ErrUnavailable) || ctx.Err() != nil {
			break
		}
	}
	reportProgress := i.throttleProgress(func(n int) string { return fmt.Sprintf("derived %d subjects", n) })
	if _, err := i.store.DeriveStale(ctx, i.cluster, reportProgress); err != nil {
		return errors.Join(append(errs, err)...)
	}
	strange, err := i.store.StrangeRequests(ctx, i.cluster)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	if strange > 0 {
		printTextf(i.progress, "%d eviction requests in cluster %s are about pods that evictrail never saw, as they are older than it, or of another cluster; they are listed, and tied to no evacuation\n", strange, i.cluster)
	}
	if refused > 0 {
		errs = append(errs, fmt.Errorf("%d lines or events refused, the rest is stored", refused))
	}
	return errors.Join(errs...)
}

// throttleProgress returns a function that reports a count at most every two seconds.
func (i importer) throttleProgress(text func(int) string) func(int) {
	next := time.Now().Add(2 * time.Second)
	return func(n int) {
		if time.Now().After(next) {
			next = time.Now().Add(2 * time.Second)
			printTextf(i.progress, "%s\n", text(n))
		}
	}
}

// importFile imports one file and says what came of it. Reading and storing go on at the same time.
func (i importer) importFile(ctx context.Context, name string, stdin io.Reader) (refused int, err error) {
	in, label := stdin, "standard input"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return 0, fmt.Errorf("import audit log: %w", err)
		}
		defer func() { _ = file.Close() }()
		in, label = file, name
	}
	started := time.Now()
	latest, err := i.store.LastAlive(ctx, i.cluster)
	if err != nil {
		return 0, err
	}
	if latest.Before(nowUTC()) {
		latest = nowUTC()
	}
	upkeep, err := i.store.Upkeep(ctx, i.cluster)
	if err != nil {
		return 0, err
	}
	settled := 0 // facts of a time whose facts were dropped
	batches := make(chan []trail.Fact, 2)
	g, ctx := errgroup.WithContext(ctx)
	added := 0
	g.Go(func() error {
		for batch := range batches {
			settled += countFactsBefore(upkeep.FactsFrom, batch)
			n, err := i.store.Import(ctx, i.cluster, batch)
			if err != nil {
				return err
			}
			added += n
		}
		return nil
	})
	report, readErr := i.readFacts(ctx, in, latest, batches, label)
	if err := g.Wait(); err != nil {
		return report.Refused, fmt.Errorf("import %s: %w", label, err)
	}
	printTextf(i.out, "%s: %d lines: %d taken, %d known already, %d about something else, %d refused, in %s\n", label, report.Lines,
		added, report.Taken-added, report.Skipped, report.Refused, time.Since(started).Round(time.Millisecond))
	if settled > 0 {
		printTextf(i.progress, "%s: of these, %d from before %s, of which facts were dropped: kept, and the rows about that time stay as they are\n", label, settled,
			upkeep.FactsFrom.UTC().Format(time.DateOnly))
	}
	if report.First != "" {
		printTextf(i.progress, "%s: the first that was refused: %s\n", label, report.First)
	}
	if readErr != nil {
		return report.Refused, fmt.Errorf("import %s: %w", label, readErr)
	}
	return report.Refused, nil
}

// countFactsBefore counts the facts that are from before a time.
func countFactsBefore(at time.Time, facts []trail.Fact) (n int) {
	for _, f := range facts {
		if f.OccurredAt.Before(at) {
			n++
		}
	}
	return n
}

// readFacts makes facts of what it reads and hands them on in batches.
func (i importer) readFacts(ctx context.Context, in io.Reader, latest time.Time, batches chan<- []trail.Fact, label string) (collector.AuditReport, error) {
	defer close(batches)
	tr := tracker.New(i.cluster)
	batch := make([]trail.Fact, 0, importBatch)
	read := 0
	reportProgress := i.throttleProgress(func(n int) string { return fmt.Sprintf("%s: %d events read", label, n) })
	send := func() error {
		select {
		case batches <- batch:
			batch = make([]trail.Fact, 0, importBatch)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	reader := collector.AuditReader{Now: latest, Take: func(r collector.Request) error {
		batch = append(batch, tr.Observe(r(tracker.Seen{At: nowUTC()}))...)
		read++
		reportProgress(read)
		if len(batch) < importBatch {
			return nil
		}
		return send()
	}}
	report, err := reader.Read(in)
	if len(batch) > 0 && ctx.Err() == nil {
		err = errors.Join(err, send())
	}
	return report, err
}
