package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// list is a command that prints the rows of one view.
type list struct {
	view    trail.View
	example string
	other   *other // another view of the same noun that a flag chooses
	none    string // says that there are no rows, which is good news; empty: who finds none should look elsewhere
}

// other is a second view that a list can show instead.
type other struct {
	flag, usage string
	view        trail.View
}

var (
	requestsList = list{view: trail.ViewRequests,
		example: "  evictrail requests --since 24h\n  evictrail requests --vm shop/db-1 -o json   # every one, also those that a table counts as repeats"}
	evacuationsList = list{view: trail.ViewEvacuations,
		example: "  evictrail evacuations --node worker-1 --since 24h\n  evictrail evacuations -o json | jq '.[] | select(.outcome == null)'"}
	migrationsList = list{view: trail.ViewMigrations,
		example: "  evictrail migrations --namespace shop --vm db-1\n  evictrail migrations --since 2026-11-01 -o csv > november.csv"}
	cooldownsList = list{view: trail.ViewDecisions,
		example: "  evictrail cooldowns --now                 # what holds VMs back now, one row per VM\n  evictrail cooldowns --vm shop/db-1 --since 24h -o json",
		other:   &other{"now", "what holds VMs back now, one row per VM", trail.ViewHolds}}
	loopsList = list{view: trail.ViewLoops, none: "No loops recorded.",
		example: "  evictrail loops --since 24h\n  evictrail loops -o json | jq -r '.[] | select(.closed_at == null) | .advice'"}
	drainsList = list{view: trail.ViewDrains,
		example: "  evictrail drains --since 7d\n  evictrail drains --blockers --node worker-2   # each VM that is left, and why",
		other:   &other{"blockers", "each VM that drains have left, and why", trail.ViewBlockers}}
	gapsList = list{view: trail.ViewGaps, none: "No gaps recorded.",
		example: "  evictrail gaps --since 24h"}
	loadsList = list{view: trail.ViewContext,
		example: "  evictrail loads --vm shop/db-1 --since 24h\n  evictrail loads --node worker-1 -o json | jq '.[] | select(.value > .threshold)'"}
	consequencesList = list{view: trail.ViewConsequences,
		example: "  evictrail consequences --since 7d\n  evictrail consequences -o json | jq '.[] | select(.needless_uid)'   # that would not have been but for a needless move"}
	outagesList = list{view: trail.ViewOutages,
		example: "  evictrail outages --since 7d\n  evictrail outages -o json | jq -r '.[] | select(.ended_at == null) | .node'   # that are not ready now"}
	timelineList = list{view: trail.ViewTimeline,
		example: "  evictrail timeline --namespace shop --vm db-1\n  evictrail timeline --node worker-1 --since 1h"}
)

// queryFlags are the filters that all lists share.
type queryFlags struct {
	query        trail.Query
	since, until string
	output       string
	from         readerFlags
}

func (q *queryFlags) addFlags(cmd *cobra.Command, withVM, withNode bool) {
	f := cmd.Flags()
	f.StringVar(&q.query.Cluster, "cluster", "", "only this `cluster`")
	if withVM {
		f.StringVarP(&q.query.Namespace, "namespace", "n", "", "only this `namespace`")
		f.StringVar(&q.query.VMI, "vm", "", "only this VM: `name` or namespace/name")
	}
	if withNode {
		f.StringVar(&q.query.Node, "node", "", "only this `node`")
	}
	f.StringVar(&q.since, "since", "", "not before: a `time` (2026-11-21 or 2026-11-21T00:30:00Z) or an age (90m, 24h, 7d)")
	f.StringVar(&q.until, "until", "", "before: a `time` or an age")
	f.IntVar(&q.query.Limit, "limit", 200, "the newest `N` rows; 0: all")
	f.StringVarP(&q.output, "output", "o", "table", "`format`: table, json or csv")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "csv"}, cobra.ShellCompDirectiveNoFileComp))
	q.from.addFlags(cmd)
	completeNames(cmd, &q.from, &q.query.Cluster)
}

// parseFlags reads what the flags say, now being the moment from which ages count.
func (q *queryFlags) parseFlags(now time.Time) error {
	if !slices.Contains([]string{"table", "json", "csv"}, q.output) {
		return usageErrorf("output %q: expected table, json or csv", q.output)
	}
	if q.query.Limit < 0 {
		return usageErrorf("limit %d: must not be negative", q.query.Limit)
	}
	if err := q.query.NameVM(q.query.VMI); err != nil {
		return usageErrorf("%w", err)
	}
	var err error
	if q.query.Since, err = parseTime("since", q.since, now); err != nil {
		return err
	}
	q.query.Until, err = parseTime("until", q.until, now)
	return err
}

// parseTime reads the time that a flag says; empty means zero.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	t, err := trail.ParseTime(text, now)
	if err != nil {
		return t, usageErrorf("%s %w", flag, err)
	}
	return t, nil
}

func newList(l list) *cobra.Command {
	var q queryFlags
	useOther, short := false, "List "+l.view.About
	cmd := &cobra.Command{
		Use: l.view.Noun, Short: short, Example: l.example, GroupID: "ask", Args: asUsage(cobra.NoArgs),
		Long: short + `.

The newest rows are shown, oldest first. The columns are those of the view evictrail_v1.` + l.view.Name + `; a table shows the
most telling ones, with words for values such as dual_retry; -o json and -o csv have all columns, and values as they are stored. They come from the database, or with --server from an evictrail that serves it: the answer is
the same. ` + l.statusOfNothing(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := q.parseFlags(time.Now()); err != nil {
				return err
			}
			s, err := q.from.openReader(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			if useOther {
				l.view = l.other.view
			}
			return l.printRows(cmd.Context(), s, &q, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	q.addFlags(cmd, l.view.HasVM(), l.view.HasNode())
	if l.other != nil {
		cmd.Flags().BoolVar(&useOther, l.other.flag, false, l.other.usage+": the view evictrail_v1."+l.other.view.Name)
	}
	return cmd
}

// printRows writes the rows in the format asked for, the oldest first, and warnings about their recording to notes. Without rows it returns
// trail.ErrNotFound.
func (l list) printRows(ctx context.Context, s reader, q *queryFlags, out, notes io.Writer) error {
	if q.output == "json" {
		page, err := s.ListJSON(ctx, l.view, q.query)
		if err != nil {
			return err
		}
		unseen, err := noteRecorders(ctx, s, q.query, page.Next, notes)
		if err != nil {
			return err
		}
		slices.Reverse(page.Rows)
		if page.Rows == nil {
			page.Rows = []json.RawMessage{} // an empty array, not null
		}
		if err := api.WriteJSON(out, page.Rows); err != nil {
			return err
		}
		return l.explainNothing(ctx, s, q, len(page.Rows), unseen, out)
	}
	query := q.query
	query.First = q.output == "table" // whose rows say how often they were repeated
	t, err := s.ListText(ctx, l.view, query)
	if err != nil {
		return err
	}
	unseen, err := noteRecorders(ctx, s, q.query, t.Next, notes)
	if err != nil {
		return err
	}
	slices.Reverse(t.Rows)
	if q.output == "csv" {
		err = api.WriteCSV(out, t)
	} else if len(t.Rows) > 0 {
		err = writeTable(out, t, l.view)
	}
	if err != nil {
		return err
	}
	return l.explainNothing(ctx, s, q, len(t.Rows), unseen, out)
}

// noteRecorders warns of clusters of a list that are not fully recorded, and names the gaps that overlap its period. It reports whether there was anything
// to warn of.
func noteRecorders(ctx context.Context, s reader, q trail.Query, next *trail.Key, notes io.Writer) (unseen bool, err error) {
	from, to := q.Period(next, time.Now().UTC())
	all, err := s.Recorders(ctx, q.Cluster, from, to)
	if err != nil {
		return false, err
	}
	for _, r := range all {
		for _, line := range []string{r.Notice(), trail.DescribeGaps(r.NotObserved)} {
			if line != "" {
				unseen = true
				printTextf(notes, "evictrail: %s: %s\n", cmp.Or(r.Cluster, "cluster not known yet"), line)
			}
		}
	}
	return unseen, nil
}

// explainNothing says why a list has no rows, where it has none: that the cluster is not known, that there are none, which is good news where all of the
// period was seen, or that nothing was found, as a trail.ErrNotFound.
func (l list) explainNothing(ctx context.Context, s reader, q *queryFlags, rows int, unseen bool, out io.Writer) error {
	if rows > 0 {
		return nil
	}
	if err := checkCluster(ctx, s, q.query.Cluster); err != nil {
		return err
	}
	if l.none != "" && !unseen {
		recorded, err := s.Names(ctx, trail.NameQuery{Kind: trail.NameCluster})
		if err != nil {
			return err
		}
		if len(recorded) > 0 {
			if q.output == "table" {
				printTextf(out, "%s\n", l.none)
			}
			return nil
		}
	}
	return fmt.Errorf("%s: %w: try without filters, or `evictrail timeline` to see what is there", l.view.Name, trail.ErrNotFound)
}

// statusOfNothing describes the exit status where there are no rows.
func (l list) statusOfNothing() string {
	if l.none != "" {
		return "Exit status 0 also when there are none, 3 when there are none and not all of the time was recorded."
	}
	return "Exit status 3 when there is nothing to show."
}

// writeTable writes the brief columns for people, with labels for the values of closed sets. The cluster is left out where all rows are of one.
func writeTable(out io.Writer, t trail.Table, view trail.View) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var at []int
	var head []string
	var sets []trail.LabelSet // of the columns; empty where one holds no closed set
	for _, column := range view.Brief {
		i := slices.Index(t.Columns, column)
		if column == "cluster" && sameCells(t, i) {
			continue
		}
		at, head = append(at, i), append(head, strings.ToUpper(strings.ReplaceAll(column, "_", " ")))
		set, _ := trail.FindLabelSet(view.Name + "." + column)
		sets = append(sets, set)
	}
	_, _ = fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, row := range t.Rows {
		cells := make([]string, len(at))
		for i, from := range at {
			cells[i] = sets[i].Label(tableCell(row[from])).Short
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

func sameCells(t trail.Table, column int) bool {
	for _, row := range t.Rows {
		if tableCell(row[column]) != tableCell(t.Rows[0][column]) {
			return false
		}
	}
	return true
}

// tableCell shortens a value for people: a dash for NULL and for nothing, times without a zone (all are UTC) and to the second, no
// control characters, which a VM's texts may hold.
func tableCell(cell *string) string {
	if cell == nil || *cell == "" {
		return "-"
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, *cell)
	if t, err := time.Parse(trail.CellTime, text); err == nil {
		return t.UTC().Format("2006-01-02 15:04:05")
	}
	return text
}
