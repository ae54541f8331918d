package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

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
		example: "  evictrail evacuations --node worker-1 --since 24h\n  evictrail evacuations --open --watch   # until Ctrl-C\n  evictrail evacuations -o json | jq '.[] | select(.failed_attempts > 3)'"}
	migrationsList = list{view: trail.ViewMigrations,
		example: "  evictrail migrations --namespace shop --vm db-1\n  evictrail migrations --since 2026-11-01 -o csv > november.csv\n  evictrail migrations --queue --cluster prod            # that wait for a slot, with their places",
		other:   &other{"queue", "those that wait for a slot, with their places in KubeVirt's queue", trail.ViewQueue}}
	downtimesList = list{view: trail.ViewDowntimes, none: "No downtimes recorded",
		example: "  evictrail downtimes --since 7d\n  evictrail downtimes --vm shop/db-1\n  evictrail downtimes --since 30d -o json | jq -r '.[] | select(.planned | not) | .namespace' | sort | uniq -c"}
	cooldownsList = list{view: trail.ViewDecisions,
		example: "  evictrail cooldowns --now                 # what holds VMs back now, one row per VM\n  evictrail cooldowns --vm shop/db-1 --since 24h -o json",
		other:   &other{"now", "what holds VMs back now, one row per VM", trail.ViewHolds}}
	loopsList = list{view: trail.ViewLoops, none: "No loops recorded",
		example: "  evictrail loops --since 24h\n  evictrail loops --open -o json | jq -r '.[].advice'"}
	drainsList = list{view: trail.ViewDrains,
		example: "  evictrail drains --open --watch\n  evictrail drains --since 7d -o wide\n  evictrail drains --blockers --node worker-2   # each VM that is left, and why",
		other:   &other{"blockers", "each VM that drains have left, and why", trail.ViewBlockers}}
	upgradeWavesList = list{view: trail.ViewUpgradeWaves, none: "No upgrade waves recorded",
		example: "  evictrail upgrade-waves --open --watch\n  evictrail upgrade-waves --since 90d -o wide\n  evictrail upgrade-waves --open -o json | jq -r '.[] | .summary'"}
	gapsList = list{view: trail.ViewGaps, none: "No gaps recorded",
		example: "  evictrail gaps --since 24h"}
	loadsList = list{view: trail.ViewContext,
		example: "  evictrail loads --vm shop/db-1 --since 24h\n  evictrail loads --node worker-1 -o json | jq '.[] | select(.value > .threshold)'"}
	consequencesList = list{view: trail.ViewConsequences,
		example: "  evictrail consequences --since 7d\n  evictrail consequences -o json | jq '.[] | select(.needless_uid)'   # that would not have been but for a needless move"}
	outagesList = list{view: trail.ViewOutages,
		example: "  evictrail outages --since 7d\n  evictrail outages --open -o json | jq -r '.[].node'   # that are not ready now"}
	timelineList = list{view: trail.ViewTimeline,
		example: "  evictrail timeline --namespace shop --vm db-1\n  evictrail timeline --node worker-1 --since 1h"}
)

// queryFlags are the filters that all lists share.
type queryFlags struct {
	query        trail.Query
	since, until string
	output       string
	color        string
	watch        bool
	every        time.Duration
	from         readerFlags
}

// outputs are the formats of a list.
var outputs = []string{outputTable, outputWide, outputJSON, outputYAML, outputCSV}

const (
	outputTable = "table"
	outputWide  = "wide"
	outputJSON  = "json"
	outputYAML  = "yaml"
	outputCSV   = "csv"
)

// watchEvery is how often --watch and top ask by default.
const watchEvery = 2 * time.Second

// addEveryFlag adds --every.
func addEveryFlag(cmd *cobra.Command, every *time.Duration) {
	cmd.Flags().DurationVar(every, "every", watchEvery, "`duration` between two looks")
}

// checkEvery refuses a duration in which nobody could be asked.
func checkEvery(every time.Duration) error {
	if every < 100*time.Millisecond {
		return usageErrorf("every %s: expected 100ms or more", every)
	}
	return nil
}

// checkColor refuses values that --color does not have.
func checkColor(color string) error {
	if !slices.Contains(colorChoices, color) {
		return usageErrorf("color %q: expected auto, always or never", color)
	}
	return nil
}

func (q *queryFlags) addFlags(cmd *cobra.Command, view trail.View) {
	f := cmd.Flags()
	f.StringVar(&q.query.Cluster, "cluster", "", "only this `cluster`")
	if view.HasVM() {
		f.StringVarP(&q.query.Namespace, "namespace", "n", "", "only this `namespace`")
		f.StringVar(&q.query.VMI, "vm", "", "only this VM: `name` or namespace/name")
	}
	if view.HasNode() {
		f.StringVar(&q.query.Node, "node", "", "only this `node`")
	}
	f.StringVar(&q.since, "since", "", "not before: a `time` (2026-11-21 or 2026-11-21T00:30:00Z) or an age (90m, 24h, 7d)")
	f.StringVar(&q.until, "until", "", "before: a `time` or an age")
	f.IntVar(&q.query.Limit, "limit", 200, "the newest `N` rows; 0: all")
	if view.End != "" {
		f.BoolVar(&q.query.Open, "open", false, "only what is not over")
	}
	f.StringVarP(&q.output, "output", "o", outputTable, "`format`: table, wide (every column, nothing shortened), json, yaml or csv")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
	f.BoolVarP(&q.watch, "watch", "w", false, "look again and again, until Ctrl-C: a terminal shows the list as it is, a file or a pipe gets what changed")
	addEveryFlag(cmd, &q.every)
	addColorFlag(cmd, &q.color)
	q.from.addFlags(cmd)
	completeNames(cmd, &q.from, &q.query.Cluster)
}

// parseFlags reads what the flags say, now being the moment from which ages count.
func (q *queryFlags) parseFlags(now time.Time) error {
	if !slices.Contains(outputs, q.output) {
		return usageErrorf("output %q: expected table, wide, json, yaml or csv", q.output)
	}
	if q.watch && q.output != outputTable && q.output != outputWide {
		return usageErrorf("watch shows tables: leave out -o %s, or ask again yourself; programs can follow /api/v1/stream of an evictrail that serves", q.output)
	}
	if err := cmp.Or(checkEvery(q.every), checkColor(q.color)); err != nil {
		return err
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
most telling ones, with words for values such as dual_retry. On a terminal it is fitted to the width: long texts are folded, and what has no room is
left out and named below. -o wide has every column, -o json, yaml and csv have values as they are stored. All times are UTC. They come from
the database, or with --server from an evictrail that serves it: the answer is the same. ` + l.statusOfNothing(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := q.parseFlags(time.Now()); err != nil {
				return err
			}
			if useOther && q.query.Open {
				return usageErrorf("open and %s exclude each other: %s is about what is there now", l.other.flag, l.other.flag)
			}
			s, err := q.from.openSource(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			if useOther {
				l.view = l.other.view
			}
			if q.watch {
				return l.watchRows(cmd.Context(), s, &q, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return l.printAnswer(cmd.Context(), s, &q, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	q.addFlags(cmd, l.view)
	if l.other != nil {
		cmd.Flags().BoolVar(&useOther, l.other.flag, false, l.other.usage+": the view evictrail_v1."+l.other.view.Name)
	}
	return cmd
}

// printAnswer writes what printRows does, once all of it is there.
func (l list) printAnswer(ctx context.Context, s *source, q *queryFlags, out, notes io.Writer) error {
	on := detectTerminal(out, q.color)
	var text, warnings bytes.Buffer
	err := s.answer(ctx, func(ctx context.Context, r reader) error {
		text.Reset()
		warnings.Reset()
		return l.printRows(ctx, r, q, on, &text, &warnings)
	})
	_, unnoted := warnings.WriteTo(notes)
	_, unwritten := text.WriteTo(out)
	return cmp.Or(err, unwritten, unnoted)
}

// printRows writes the rows in the format asked for, the oldest first, and warnings about their recording to notes. Without rows it returns
// trail.ErrNotFound.
func (l list) printRows(ctx context.Context, s reader, q *queryFlags, on terminal, out, notes io.Writer) error {
	if q.output == outputJSON || q.output == outputYAML {
		return l.printObjects(ctx, s, q, out, notes)
	}
	t, unseen, err := l.loadTable(ctx, s, q, notes)
	if err != nil {
		return err
	}
	if q.output == outputCSV {
		err = api.WriteCSV(out, t)
	} else if len(t.Rows) > 0 {
		_, err = io.WriteString(out, renderList(t, l.view, q.output == outputWide, on))
	}
	if err != nil {
		return err
	}
	return l.explainNothing(ctx, s, q, len(t.Rows), unseen, out)
}

// printObjects writes the rows as JSON or YAML.
func (l list) printObjects(ctx context.Context, s reader, q *queryFlags, out, notes io.Writer) error {
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
	write := api.WriteJSON
	if q.output == outputYAML {
		write = writeYAML
	}
	if err := write(out, page.Rows); err != nil {
		return err
	}
	return l.explainNothing(ctx, s, q, len(page.Rows), unseen, out)
}

// writeYAML writes a value as YAML, by way of its JSON.
func writeYAML(out io.Writer, v any) error {
	text, err := yaml.Marshal(v)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

// loadTable reads the rows as text, the oldest first, and writes warnings about their recording to notes. It reports whether there were any.
func (l list) loadTable(ctx context.Context, s api.Reader, q *queryFlags, notes io.Writer) (t trail.Table, unseen bool, err error) {
	query := q.query
	query.First = q.output == outputTable || q.output == outputWide // whose rows say how often they were repeated
	if t, err = s.ListText(ctx, l.view, query); err != nil {
		return t, false, err
	}
	unseen, err = noteRecorders(ctx, s, q.query, t.Next, notes)
	slices.Reverse(t.Rows)
	return t, unseen, err
}

// renderList returns the lines of a table and, where not everything had room, of what was left out.
func renderList(t trail.Table, view trail.View, wide bool, on terminal) string {
	if wide {
		on.width = 0
	}
	columns := columnsOf(t, view, wide)
	if !wide {
		columns = withoutCluster(t, columns)
	}
	text, leftOut := newTextTable(t, view, columns, wide).render(on.width, on.color)
	if len(leftOut) == 0 {
		return text
	}
	note := strings.Join(foldText("Without "+strings.Join(leftOut, ", ")+", for want of room: -o wide has them.", on.width), "\n") + "\n"
	if on.color {
		note = styleDim.applyTo(note)
	}
	return text + note
}

// noteRecorders warns of clusters of a list that are not fully recorded, and names the gaps that overlap its period. It reports whether there was anything
// to warn of.
func noteRecorders(ctx context.Context, s api.Reader, q trail.Query, next *trail.Key, notes io.Writer) (unseen bool, err error) {
	from, to := q.Period(next, time.Now().UTC())
	all, err := s.Recorders(ctx, q.Cluster, from, to)
	if err != nil {
		return false, err
	}
	if behind := trail.OldestStandby(all).Notice(); behind != "" {
		printTextf(notes, "evictrail: %s\n", behind)
	}
	unseen = missingIn(s) != ""
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
func (l list) explainNothing(ctx context.Context, s api.Reader, q *queryFlags, rows int, unseen bool, out io.Writer) error {
	if rows > 0 {
		return nil
	}
	if err := checkCluster(ctx, s, q.query.Cluster); err != nil {
		return err
	}
	if none := l.goodNews(q); none != "" && !unseen {
		recorded, err := s.Names(ctx, trail.NameQuery{Kind: trail.NameCluster})
		if err != nil {
			return err
		}
		if len(recorded) > 0 {
			if q.output == outputTable || q.output == outputWide {
				printTextf(out, "%s.\n", none)
			}
			return nil
		}
	}
	return fmt.Errorf("%s: %w: try without filters, or `evictrail timeline` to see what is there", l.view.Name, trail.ErrNotFound)
}

// goodNews says that there are no rows, and of which period, where that is good news; else it is empty.
func (l list) goodNews(q *queryFlags) string {
	none := l.none
	if q.query.Open {
		none = "No open " + l.view.Noun
	}
	if none != "" && !q.query.Since.IsZero() {
		none += " since " + trail.FormatClock(q.query.Since)
	}
	if none != "" && !q.query.Until.IsZero() {
		none += " until " + trail.FormatClock(q.query.Until)
	}
	return none
}

// statusOfNothing describes the exit status where there are no rows.
func (l list) statusOfNothing() string {
	switch {
	case l.none != "":
		return "Exit status 0 also when there are none, 3 when there are none and not all of the time was recorded."
	case l.view.End != "":
		return "Exit status 3 when there is nothing to show; with --open 0 also when there are none, and all of the time was recorded."
	}
	return "Exit status 3 when there is nothing to show."
}
