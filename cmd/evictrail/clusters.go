package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

func newClusters() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:     "clusters",
		Short:   "List the clusters, and whether each is recorded as it should be",
		GroupID: "ask",
		Args:    asUsage(cobra.NoArgs),
		Long: `List the clusters of which anything is recorded: how it stands with the recording of each, how old its
newest event is, and what to do where it is not recorded as it should be. Exit status 3 when there is none.`,
		Example: `  evictrail clusters
  evictrail clusters --cluster prod -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return q.askAll(cmd, func(ctx context.Context, s reader) (any, string, error) {
				all, err := loadClusters(ctx, s, q.cluster)
				if err == nil && len(all) == 0 {
					err = fmt.Errorf("clusters: %w: nothing is recorded yet", trail.ErrNotFound)
				}
				return all, renderClusters(all), err
			})
		},
	}
	q.addPresentFlags(cmd)
	return cmd
}

// askAll asks a question that is about no one VM or node, and writes its answer: for people or for programs.
func (q *question) askAll(cmd *cobra.Command, ask func(context.Context, reader) (answer any, text string, err error)) error {
	if err := q.checkOutput(); err != nil {
		return err
	}
	s, err := q.from.openSource(cmd.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	var answer any
	var text string
	err = s.answer(cmd.Context(), func(ctx context.Context, r reader) (err error) {
		answer, text, err = ask(ctx, r)
		return err
	})
	if err != nil {
		return err
	}
	if q.output == "json" {
		return api.WriteJSON(cmd.OutOrStdout(), answer)
	}
	printTextf(cmd.OutOrStdout(), "%s", text)
	return nil
}

// loadClusters returns the state of the recorder of each cluster, or of one, which must be recorded.
func loadClusters(ctx context.Context, s api.Reader, cluster string) ([]trail.RecorderStatus, error) {
	all, err := s.Recorders(ctx, cluster, time.Time{}, time.Time{})
	if err == nil && len(all) == 0 {
		err = checkCluster(ctx, s, cluster)
	}
	return slices.Concat([]trail.RecorderStatus{}, all), err
}

// renderClusters returns a table of clusters and, below it, what to do about those that are not recorded as they should
// be.
func renderClusters(all []trail.RecorderStatus) string {
	t := textTable{columns: []tableColumn{{head: "CLUSTER"}, {head: "RECORDING"}}}
	var more strings.Builder
	for _, s := range all {
		name := renderCell("text", s.Cluster)
		t.rows = append(t.rows, tableRow{cells: []string{name, s.Headline()}})
		if notice := s.Notice(); notice != "" {
			more.WriteString("\n" + wrapParagraph(strings.TrimSpace(name+": "+notice+" "+s.Advice())) + "\n")
		}
	}
	text, _ := t.render(0, false)
	return text + more.String()
}
