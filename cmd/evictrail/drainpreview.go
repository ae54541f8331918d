package main

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

func newDrainPreview() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:               "drain-preview NODE",
		Short:             "Say how a drain of a node would go, and how long it takes",
		GroupID:           "ask",
		Args:              asUsage(cobra.ExactArgs(1)),
		ValidArgsFunction: completeNode(&q),
		Long: `Say what an eviction does to each VM of a node: it moves, it is shut down, or it stays and why; and how long it takes
until those that move have left, estimated from how migrations of this cluster went in the last 30 days, with KubeVirt's
limits and waits. While a drain goes on, say how much longer it takes. Nothing is evicted or changed. Times are a band:
one in ten drains is done sooner, one in ten later. Exit status 3 when the node is not known.`,
		Example: `  evictrail drain-preview worker-2
  evictrail drain-preview worker-2 -o json
  evictrail drain-preview worker-2 --server https://evictrail.example`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !isName(args[0]) {
				return usageErrorf("%q: expected the name of a node", args[0])
			}
			of := trail.Subject{Kind: trail.SubjectNode, Name: args[0]}
			return q.askReader(cmd.Context(), of, func(ctx context.Context, r reader, asked trail.Question) error {
				d, err := r.DrainForecast(ctx, asked)
				if err != nil {
					return err
				}
				if q.output == "json" {
					return api.WriteJSON(cmd.OutOrStdout(), d)
				}
				return writeForecast(cmd.OutOrStdout(), d)
			})
		},
	}
	q.addPresentFlags(cmd)
	return cmd
}

// writeForecast writes the forecast of a drain for people.
func writeForecast(out io.Writer, d forecast.Drain) error {
	text := asOf(d.At) + wrapParagraph(cleanText(d.Text())) + "\n" + recordingText(d.Recorder, d.NotObserved)
	if len(d.Guests) > 0 {
		t := textTable{columns: []tableColumn{
			{head: "VM"}, {head: "WHAT"}, {head: "LEFT AFTER"}, {head: "BETWEEN"}, {head: "LAST"}, {head: "MOVED"}, {head: "FAILED"}, {head: "WHY", prose: true},
		}}
		for _, g := range d.Guests {
			row := []string{renderCell("text", g.Namespace+"/"+g.VMI), g.Effect.Label().Short, noValue, noValue, noValue, strconv.Itoa(g.Moves), strconv.Itoa(g.Failures), renderCell("text", g.Because)}
			copy(row[2:], g.Cells())
			t.rows = append(t.rows, tableRow{cells: row})
		}
		table, _ := t.render(0, false)
		text += "\n" + table
	}
	if rests := d.Rests(); rests != "" {
		text += "\n" + wrapParagraph(rests) + "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}
