package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

func newLimits() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:     "limits",
		Short:   "Say whether KubeVirt's limits on parallel migrations fit, and which to raise",
		GroupID: "ask",
		Args:    asUsage(cobra.NoArgs),
		Long: `Say how many migrations came in the last week, how far they filled KubeVirt's slots (parallelMigrationsPerCluster,
parallelOutboundMigrationsPerNode), how long they waited for them, and how long the same migrations would have waited
under twice the limits. Callers who may see only some namespaces of a cluster see nothing of it here, as slots are
shared by all. Exit status 3 when there is no such cluster.`,
		Example: `  evictrail limits
  evictrail limits --cluster prod -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return q.askAll(cmd, func(ctx context.Context, s reader) (any, string, error) {
				all, err := loadLimits(ctx, s, q.cluster)
				return all, renderLimits(all), err
			})
		},
	}
	q.addPresentFlags(cmd)
	return cmd
}

// loadLimits returns whether the limits of clusters fit. The error is trail.ErrNotFound where there is none to say so of.
func loadLimits(ctx context.Context, s api.Reader, cluster string) ([]forecast.Limits, error) {
	all, err := s.Limits(ctx, cluster)
	if err == nil && len(all) == 0 {
		if err = checkCluster(ctx, s, cluster); err == nil {
			err = fmt.Errorf("limits: %w: no cluster is recorded that you may see as a whole", trail.ErrNotFound)
		}
	}
	return slices.Concat([]forecast.Limits{}, all), err
}

// renderLimits returns, for each cluster, what came of its limits, and a table of others.
func renderLimits(all []forecast.Limits) string {
	text := ""
	for _, l := range all {
		if len(all) > 1 {
			text += "\n" + l.Cluster + "\n"
		}
		text += asOf(l.To) + wrapParagraph(cleanText(l.Text())) + "\n" + recordingText(l.Recorder, l.NotObserved)
		if l.Busiest == nil {
			continue
		}
		t := textTable{columns: []tableColumn{{head: "PER NODE"}, {head: "PER CLUSTER"}, {head: "WAITED IN ALL"}, {head: "AT ONCE"}}}
		for _, o := range l.Options {
			t.rows = append(t.rows, tableRow{cells: []string{strconv.Itoa(o.PerNode), strconv.Itoa(o.PerCluster), o.WaitedText(), strconv.Itoa(o.AtOnce)}})
		}
		table, _ := t.render(0, false)
		text += "\n" + table + "\n" + wrapParagraph(l.Rests()) + "\n"
	}
	return text
}
