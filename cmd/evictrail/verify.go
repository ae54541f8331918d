package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/evidence"
	"github.com/evictrail/evictrail/trail"
)

// verification is a command line of "evictrail verify".
type verification struct {
	db      databaseFlags
	cluster string
	anchor  string
}

func newVerify() *cobra.Command {
	var v verification
	cmd := &cobra.Command{
		Use: "verify", Short: "Verify that recorded facts are as they were recorded", GroupID: "keep",
		Args: asUsage(cobra.NoArgs),
		Long: `Compute the digests of the facts of each day again, and compare them with those that were made when
the day was over: in the database, and with --anchor in the file that 'evictrail run --audit-anchor' wrote. What
was changed, removed, added or reordered since shows as the day of which it was. Who can write to the database can
make the digests of the database again as well: only the file, or the log, proves that nobody did.

Facts and names that retention dropped or erased are no difference: of these the digests alone are compared
(docs/evidence.md). It reads every fact that is there, a day at a time, and holds nobody up. The database's user needs
the role evictrail_writer, or owns the schema.

Exit status 0 when nothing differs, 1 when something does: each day that differs is a line, and the first of them is
named on standard error.`,
		Example: `  evictrail verify
  evictrail verify --cluster prod --anchor /var/lib/evictrail/anchors.jsonl
  ssh log-1 cat /srv/worm/anchors.jsonl | evictrail verify --anchor -`,
		RunE: func(cmd *cobra.Command, _ []string) error { return v.run(cmd) },
	}
	cmd.Flags().StringVar(&v.cluster, "cluster", "", "only this `cluster`; by default all")
	cmd.Flags().StringVar(&v.anchor, "anchor", "",
		"`file` with the digests that 'evictrail run --audit-anchor' wrote; '-' is standard input")
	v.db.addFlags(cmd)
	completeClusters(cmd, &v.db)
	return cmd
}

// completeClusters completes the flag cluster of a command that asks a database.
func completeClusters(cmd *cobra.Command, db *databaseFlags) {
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(
		cmd *cobra.Command, _ []string, typed string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		from := &readerFlags{database: *db, changed: cmd.Flags().Changed}
		return findCompletions(cmd, from, trail.NameQuery{Kind: trail.NameCluster, Prefix: typed}, "")
	})
}

// selectClusters returns the cluster that was named, else all that are recorded. The error is trail.ErrNotFound where it is
// not recorded, or none is. It needs no right but that to read the views.
func selectClusters(cmd *cobra.Command, s *store.Store, named string) ([]string, error) {
	clusters, err := s.Clusters(cmd.Context())
	switch {
	case err != nil:
		return nil, err
	case named != "" && !slices.Contains(clusters, named):
		return nil, &unknownClusterError{named, clusters}
	case named != "":
		return []string{named}, nil
	case len(clusters) == 0:
		return nil, fmt.Errorf("%w: no cluster is recorded yet", trail.ErrNotFound)
	}
	return clusters, nil
}

func (v *verification) run(cmd *cobra.Command) error {
	anchors, err := v.readAnchors(cmd)
	if err != nil {
		return err
	}
	s, err := v.db.openStore(cmd.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	clusters, err := selectClusters(cmd, s, v.cluster)
	if err != nil {
		return err
	}
	var differs []error
	for _, cluster := range clusters {
		next := time.Now().Add(2 * time.Second)
		r, err := evidence.Verify(cmd.Context(), s.DB, cluster, anchors, func(day time.Time) {
			if time.Now().After(next) {
				next = time.Now().Add(2 * time.Second)
				printTextf(cmd.ErrOrStderr(), "%s: verified up to %s\n", cluster, day.Format(time.DateOnly))
			}
		})
		if err != nil {
			return err
		}
		printTextf(cmd.OutOrStdout(), "%s", describeReport(r, anchors != nil))
		switch {
		case len(r.Problems) > 0:
			first := r.Problems[0]
			differs = append(differs, fmt.Errorf("%s: the first day that differs is %s: %s",
				cluster, first.Day.Format(time.DateOnly), first.Why))
		case anchors != nil && r.Days > 0 && r.Anchored == 0:
			differs = append(differs, fmt.Errorf(
				"%s: the anchor file has no day of it: name the file of the replica that derives it", cluster))
		}
	}
	return errors.Join(differs...)
}

// readAnchors reads the anchor file; nil where none is named.
func (v *verification) readAnchors(cmd *cobra.Command) ([]evidence.Anchor, error) {
	if v.anchor == "" {
		return nil, nil
	}
	in := cmd.InOrStdin()
	if v.anchor != "-" {
		file, err := os.Open(v.anchor)
		if err != nil {
			return nil, fmt.Errorf("read anchors: %w", err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	anchors, torn, err := evidence.ReadAnchors(in)
	if err != nil {
		return nil, fmt.Errorf("read anchors: %s: %w", v.anchor, err)
	}
	if torn {
		printTextf(cmd.ErrOrStderr(),
			"the last line of %s is not whole and left out: a crash cut it off, and evictrail writes it again\n", v.anchor)
	}
	if anchors == nil {
		anchors = []evidence.Anchor{}
	}
	return anchors, nil
}

// describeReport says in lines what a verification found.
func describeReport(r evidence.Report, anchored bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if r.Days == 0 {
		line("%s: no day is sealed yet: the replica that derives seals each day after midnight (UTC)", r.Cluster)
	} else {
		verdict := "intact"
		if len(r.Problems) > 0 {
			verdict = "NOT intact"
		}
		line("%s: %s: %s from %s to %s, %s compared",
			r.Cluster, verdict, countOf(r.Days, "day"), r.From.Format(time.DateOnly), r.To.Format(time.DateOnly), countOf(int(r.Facts), "fact"))
	}
	for _, p := range r.Problems {
		line("  %s: %s", p.Day.Format(time.DateOnly), p.Why)
	}
	for _, note := range []struct {
		count int
		of    string
		says  string
	}{
		{r.Dropped, "day", "dropped by retention, in whole or in part: only the digests are compared"},
		{r.Erased, "day", "with erased names: the names of these days are not compared"},
		{r.Unanchored, "day", "not in the anchor file yet"},
		{int(r.Unsealed), "fact", "stored since, not sealed yet"},
		{int(r.Unnumbered), "fact", "from before schema 43, which no digest covers"},
	} {
		if note.count > 0 && (anchored || note.says != "not in the anchor file yet") {
			line("  %s %s", countOf(note.count, note.of), note.says)
		}
	}
	if !anchored && r.Days > 0 {
		line("  no anchor file: who can write to the database can make its digests again (--anchor)")
	}
	return b.String()
}
