package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

func newCompare() *cobra.Command {
	var q question
	var asked trail.CompareQuery
	var since, until string
	cmd := &cobra.Command{
		Use:     "compare",
		Short:   "Compare clusters: failures, needless moves, missed objectives, loops and versions",
		GroupID: "ask",
		Args:    asUsage(cobra.NoArgs),
		Long: `Compare what happened in clusters over days: migrations that ended and which share of them failed, the most
frequent class of failures, which share was not needed, evacuations that missed their objective, and loops. Those
with most dual retry loops come first, then most loops, then the largest share of failures. Whole days are
counted, in UTC (view cluster_days); callers who may see only some namespaces of a cluster see nothing of it here.
Exit status 3 when no day was counted.`,
		Example: `  evictrail compare
  evictrail compare --since 365d
  evictrail compare --kubevirt v1.6 --since 7d -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			now := nowUTC()
			asked.Cluster = q.cluster
			var err error
			if asked.Since, err = parseTime("since", since, now); err != nil {
				return err
			}
			if asked.Until, err = parseTime("until", until, now); err != nil {
				return err
			}
			return q.askAll(cmd, func(ctx context.Context, s reader) (any, string, error) {
				all, err := loadComparison(ctx, s, asked)
				return all, renderComparison(all), err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "30d", "the first day: that of a `time` (2026-11-21) or an age (24h, 7d)")
	f.StringVar(&until, "until", "", "the last day: that of a `time` or an age; by default today")
	f.StringVar(&asked.KubeVirt, "kubevirt", "", "only clusters whose KubeVirt had a `version` that begins so (v1.6) on their last day")
	q.addPresentFlags(cmd)
	return cmd
}

// loadComparison returns how clusters fared. The error is trail.ErrNotFound where no day of them was counted.
func loadComparison(ctx context.Context, s api.Reader, q trail.CompareQuery) ([]trail.ClusterComparison, error) {
	all, err := s.Compare(ctx, q)
	if err == nil && len(all) == 0 {
		if err = checkCluster(ctx, s, q.Cluster); err == nil {
			err = fmt.Errorf("compare: %w: no day was counted %s%s; a recorder that leads counts every ten minutes, and `evictrail play` at its end",
				trail.ErrNotFound, describeDays(q.Since, q.Until), onlyFor(q.KubeVirt))
		}
	}
	return slices.Concat([]trail.ClusterComparison{}, all), err
}

// describeDays says which days are asked for.
func describeDays(since, until time.Time) string {
	text := "up to today"
	if !until.IsZero() {
		text = "up to " + until.UTC().Format(time.DateOnly)
	}
	if !since.IsZero() {
		text = "from " + since.UTC().Format(time.DateOnly) + " " + text
	}
	return text
}

func onlyFor(version string) string {
	if version == "" {
		return ""
	}
	return " of a cluster with KubeVirt " + version
}

// renderComparison returns a table of clusters and, below it, which days it is about and where there are gaps.
func renderComparison(all []trail.ClusterComparison) string {
	if len(all) == 0 {
		return ""
	}
	t := textTable{columns: []tableColumn{
		{head: "CLUSTER"}, {head: "KUBEVIRT"}, {head: "MIGRATIONS"}, {head: "FAILED"}, {head: "MOST OFTEN"}, {head: "NOT NEEDED"}, {head: "MISSED"}, {head: "LOOPS"}, {head: "DUAL RETRY"},
	}}
	var blind []string
	for _, c := range all {
		often := ""
		if class, n := c.MostFrequent(); n > 0 {
			often = fmt.Sprintf("%s (%d)", class.Label().Short, n)
		}
		t.rows = append(t.rows, tableRow{cells: []string{
			renderCell("text", c.Cluster), renderCell("text", c.KubeVirt), strconv.Itoa(c.Ended()), renderShare(c.FailedShare()), often,
			renderShare(c.NeedlessShare()), renderShare(c.MissedShare()), strconv.Itoa(c.Loops), strconv.Itoa(c.Dual),
		}})
		if c.GapDays > 0 {
			blind = append(blind, fmt.Sprintf("%s (%d of %d)", c.Cluster, c.GapDays, c.Days))
		}
	}
	first, last := trail.ComparedDays(all)
	text, _ := t.render(0, false)
	text += "\n" + wrapParagraph(fmt.Sprintf("Days from %s to %s, UTC. Shares are of what is known: migrations that succeeded or failed, moves whose need is known, "+
		"evacuations with an objective.", first.Format(time.DateOnly), last.Format(time.DateOnly))) + "\n"
	if len(blind) > 0 {
		text += "\n" + wrapParagraph(cleanText("Days with gaps in the record, on which counts may be too low: "+strings.Join(blind, ", ")+".")) + "\n"
	}
	return text
}

// renderShare returns a share in percent; a dash where it is of nothing.
func renderShare(share float64, known bool) string {
	if !known {
		return noValue
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}
