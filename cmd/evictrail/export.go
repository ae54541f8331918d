package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/store/export"
)

// exportFlags are those of "evictrail export".
type exportFlags struct {
	db           databaseFlags
	what         []string
	format       string
	cluster      string
	since, until string
	dir          string
	dryRun       bool
}

// everything is the value of --what for all datasets.
const everything = "all"

func newExport() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use: "export", Short: "Export facts and views as JSON lines or Parquet, for a lakehouse", GroupID: "keep",
		Args: asUsage(cobra.NoArgs),
		Long: `Write facts, or the rows of views of schema evictrail_v1, to files below a directory, one for each
cluster and day:

  DIR/facts/cluster=prod/date=2026-11-20/facts-0000000000000000001-6f1c2a3b.parquet
  DIR/evacuations/cluster=prod/date=2026-11-20/evacuations.parquet

Run it again, and it goes on where it ended, also where it was killed: DIR/*/_manifest.jsonl has what was exported.
Facts are only added: they are in the files of the day on which they were stored, also those that came late, and files
of facts never change. Rows of views do: of what is open, and where an audit log is imported later. The file of each
day (UTC) whose rows are others than in it is written again, and replaced as a whole. What retention deletes in the
database stays in the files (docs/export.md).

--since and --until are rounded down to days. Of facts they count by when they were stored; --since counts in the
first run for a directory. With --dir - rows go to standard output, as JSON lines; then nothing is remembered, and
times count as they are.

The database's user needs the role evictrail_reader. Progress is on standard error. Exit status 0 also when there is
nothing new.`,
		Example: `  evictrail export --what facts --format parquet --dir /srv/lake            # daily, by cron: what came since
  evictrail export --what evacuations,migrations --format parquet --since 30d --dir /srv/lake
  evictrail export --what all --dry-run --dir /srv/lake                     # what would be written
  evictrail export --what loops --since 24h --dir - | jq -r .advice`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.addFlags(cmd)
	return cmd
}

func (f *exportFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	names := []string{everything}
	for _, d := range export.Datasets() {
		names = append(names, d.Name)
	}
	flags.StringSliceVar(&f.what, "what", []string{export.Facts.Name},
		"`datasets`, separated by commas: "+strings.Join(names, ", "))
	flags.StringVar(&f.format, "format", string(export.JSONL), "`format`: jsonl or parquet")
	flags.StringVar(&f.cluster, "cluster", "", "only this `cluster`; by default all")
	flags.StringVar(&f.since, "since", "", "not before: a `time` (2026-11-21) or an age (7d)")
	flags.StringVar(&f.until, "until", "", "before: a `time` or an age")
	flags.StringVar(&f.dir, "dir", "", "`directory` for the files; '-' is standard output, as JSON lines")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print which files would be written, with how many rows, and write nothing")
	f.db.addFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("what", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	formats := cobra.FixedCompletions(export.Formats(), cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("format", formats)
	completeClusters(cmd, &f.db)
}

// toStandardOutput reports whether rows go to standard output.
func (f *exportFlags) toStandardOutput() bool { return f.dir == "-" }

// newJobs returns what the flags ask for; clusters are still to be set.
func (f *exportFlags) newJobs(now time.Time) (jobs []export.Job, err error) {
	j := export.Job{Dir: f.dir}
	if j.Format, err = export.ParseFormat(f.format); err != nil {
		return nil, usageErrorf("format %w", err)
	}
	if j.Since, err = parseTime("since", f.since, now); err != nil {
		return nil, err
	}
	if j.Until, err = parseTime("until", f.until, now); err != nil {
		return nil, err
	}
	if !j.Until.IsZero() && !j.Since.Before(j.Until) {
		return nil, usageErrorf("since %s, until %s: nothing is between them", f.since, f.until)
	}
	what := f.what
	if slices.Contains(what, everything) {
		what = nil
		for _, d := range export.Datasets() {
			what = append(what, d.Name)
		}
	}
	switch {
	case len(what) == 0:
		return nil, usageErrorf("what: name a dataset, such as facts")
	case f.dir == "":
		return nil, usageErrorf("dir: name a directory for the files, or - for standard output")
	case f.toStandardOutput() && j.Format != export.JSONL:
		return nil, usageErrorf("format %s: standard output has JSON lines: leave --format out, or name a directory",
			j.Format)
	case f.toStandardOutput() && len(what) > 1:
		return nil, usageErrorf("what %s: standard output has one dataset: name a directory, or one of them",
			strings.Join(f.what, ","))
	case f.toStandardOutput() && f.dryRun:
		return nil, usageErrorf("dry-run: it is for a directory")
	}
	for _, name := range what {
		if j.Dataset, err = export.FindDataset(name); err != nil {
			return nil, usageErrorf("what %w", err)
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

func (f *exportFlags) run(cmd *cobra.Command) error {
	jobs, err := f.newJobs(nowUTC())
	if err != nil {
		return err
	}
	s, err := f.db.openStore(cmd.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	clusters, err := selectClusters(cmd, s, f.cluster)
	if err != nil {
		return err
	}
	e := export.Exporter{DB: s.DB, Progress: printProgress(cmd.ErrOrStderr())}
	if e.Columns, err = s.Columns(cmd.Context()); err != nil {
		return err
	}
	for _, j := range jobs {
		j.Clusters = clusters
		if f.dryRun {
			j.DryRun = func(path string, rows int64) {
				printTextf(cmd.OutOrStdout(), "%s: %s\n", path, countOf(int(rows), "row"))
			}
		}
		if err := f.runJob(cmd.Context(), e, j, cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
			return err
		}
	}
	return nil
}

// runJob exports one dataset, and says what came of it.
func (f *exportFlags) runJob(ctx context.Context, e export.Exporter, j export.Job, out, notes io.Writer) error {
	started := time.Now()
	var did export.Result
	var err error
	if f.toStandardOutput() {
		buffered := bufio.NewWriterSize(out, 1<<16)
		did, err = e.Stream(ctx, j, buffered)
		err = errors.Join(err, buffered.Flush())
	} else {
		did, err = e.Run(ctx, j)
	}
	verb := "written"
	if f.dryRun {
		verb = "would be written"
	}
	text := fmt.Sprintf("%s: %s %s", j.Dataset.Name, countOf(int(did.Rows), "row"), verb)
	if !f.toStandardOutput() && !f.dryRun {
		text += " to " + countOf(did.Files, "file")
	}
	for _, more := range []struct {
		count int
		of    string
		says  string
	}{
		{did.Unchanged, "day", "unchanged"},
		{did.Kept, "file", "kept with rows that retention deleted"},
		{did.Removed, "file", "removed, as no row is left"},
	} {
		if more.count > 0 {
			text += fmt.Sprintf(", %s %s", countOf(more.count, more.of), more.says)
		}
	}
	printTextf(notes, "%s, in %s\n", text, time.Since(started).Round(time.Millisecond))
	if err != nil && !f.toStandardOutput() {
		return fmt.Errorf("%w (what is written stays: run the same command again, and it goes on from there)", err)
	}
	return err
}

// printProgress returns what prints how far an export is, every two seconds.
func printProgress(out io.Writer) func(export.Progress) {
	next := time.Now().Add(2 * time.Second)
	asked := 0
	return func(p export.Progress) {
		if asked++; asked%1000 != 0 || time.Now().Before(next) { // it is called for each row
			return
		}
		next = time.Now().Add(2 * time.Second)
		printTextf(out, "%s of %s: %d rows, at %s\n", p.Dataset, p.Cluster, p.Rows, p.Day.Format(time.DateOnly))
	}
}
