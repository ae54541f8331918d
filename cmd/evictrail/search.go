package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

func newSearch() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:               "search TEXT",
		Short:             "Find VMs, nodes and migrations by a part of their names",
		GroupID:           "ask",
		Args:              asUsage(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Find VMs and nodes by a part of their names (of a VM also as namespace/name), migrations by the beginning of
their names, and migrations and VMs by their UIDs. What is named exactly so comes first, then what begins so. Of a VM
that runs it says where, and how it stands with it. Exit status 3 when nothing is found.`,
		Example: `  evictrail search db-1
  evictrail search shop/
  evictrail search kubevirt-evacuation-pchh5 --cluster prod
  evictrail search worker -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return q.askAll(cmd, func(ctx context.Context, s reader) (any, string, error) {
				asked := api.SearchQuery{Cluster: q.cluster, Text: args[0]}
				found, err := searchNames(ctx, s, asked)
				if err == nil && len(found.Found) == 0 {
					err = fmt.Errorf("search %q: %w", asked.Text, trail.ErrNotFound)
				}
				return found, renderFound(found), err
			})
		},
	}
	q.addPresentFlags(cmd)
	return cmd
}

// searchNames returns what has a text in its name. The cluster must be recorded.
func searchNames(ctx context.Context, s api.Reader, q api.SearchQuery) (api.SearchAnswer, error) {
	found, total, err := s.Find(ctx, q.Cluster, q.Text)
	if err == nil && len(found) == 0 {
		err = checkCluster(ctx, s, q.Cluster)
	}
	return api.SearchAnswer{Found: slices.Concat([]trail.Found{}, found), Total: total}, err
}

// renderFound returns a table of what was found, and how much is not in it.
func renderFound(a api.SearchAnswer) string {
	t := textTable{
		columns: []tableColumn{{head: "KIND"}, {head: "CLUSTER"}, {head: "NAME"}, {head: "NODE"}, {head: "STATE"}},
	}
	for _, f := range a.Found {
		name := strings.TrimPrefix(f.Namespace+"/"+f.Name, "/")
		if f.Kind == trail.FoundMigration {
			name = fmt.Sprintf("%s of %s/%s", f.Name, f.Namespace, f.VMI)
		}
		state := ""
		if f.State != "" {
			state = f.State.Label().Short
		}
		t.rows = append(t.rows, tableRow{cells: []string{
			f.Kind.Label().Short,
			renderCell("text", f.Cluster),
			renderCell("text", name),
			renderCell("text", f.Node),
			renderCell("text", state),
		}})
	}
	text, _ := t.render(0, false)
	if more := a.Total - len(a.Found); more > 0 {
		text += fmt.Sprintf("%s not shown: search for more of the name.\n", countOf(more, "more result"))
	}
	return text
}
