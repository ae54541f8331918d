package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

func newClusters() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:     "clusters",
		Short:   "List the clusters, the worst first, and whether each is recorded as it should be",
		GroupID: "ask",
		Args:    asUsage(cobra.NoArgs),
		Long: `List the clusters of which anything is recorded, the worst first: open loops, evacuations whose attempts
fail and drains of each, how it stands with its recording and how old its newest event is; below, what is wrong,
and what to do where it is not recorded as it should be. Exit status 3 when there is none.`,
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

// loadClusters returns how it stands with each cluster, the worst first, or with one, which must be recorded.
func loadClusters(ctx context.Context, s api.Reader, cluster string) ([]trail.FleetLine, error) {
	all, err := s.Fleet(ctx, true)
	if cluster != "" {
		all = slices.DeleteFunc(all, func(l trail.FleetLine) bool { return l.Name != cluster })
	}
	if err == nil && len(all) == 0 {
		err = checkCluster(ctx, s, cluster)
	}
	return slices.Concat([]trail.FleetLine{}, all), err
}

// renderClusters returns a table of clusters and, below it, what is wrong with each and what to do about its recording.
func renderClusters(all []trail.FleetLine) string {
	t := textTable{columns: []tableColumn{
		{head: "CLUSTER"}, {head: "LOOPS"}, {head: "STUCK"}, {head: "DRAINS"}, {head: "RECORDING"},
	}}
	sources := slices.ContainsFunc(all, func(l trail.FleetLine) bool { return l.Source != "" })
	if sources {
		t.columns = slices.Insert(t.columns, 1, tableColumn{head: "SOURCE"})
	}
	var more strings.Builder
	for _, l := range all {
		cells := []string{renderCell("text", l.Name), strconv.Itoa(l.Loops), strconv.Itoa(l.Stuck), strconv.Itoa(l.Drains), ""}
		paragraph := []string{l.Text}
		if l.Recorder != nil {
			cells[4] = l.Recorder.Headline()
			paragraph = append(paragraph, l.Recorder.Advice())
		}
		if sources {
			cells = slices.Insert(cells, 1, renderCell("text", l.Source))
		}
		t.rows = append(t.rows, tableRow{cells: cells})
		if text := strings.TrimSpace(strings.Join(paragraph, " ")); text != "" {
			more.WriteString("\n" + wrapParagraph(cleanText(l.Name+": "+text)) + "\n")
		}
	}
	text, _ := t.render(0, false)
	return text + more.String()
}
