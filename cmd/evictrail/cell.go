package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// The types of columns whose values Postgres writes in its own way.
const (
	typeTime     = "timestamp with time zone"
	typeInterval = "interval"
	typeBoolean  = "boolean"
	typeNumber   = "double precision"
	typeJSON     = "jsonb"
)

// columnTypes are the types of the columns of evictrail_v1 as view.column.
var columnTypes = sync.OnceValue(func() map[string]string {
	types := map[string]string{}
	for _, c := range api.Columns() {
		types[c.View+"."+c.Name] = c.Type
	}
	return types
})

// layout is how a table for people shows a view where it has more columns than a terminal has room for.
type layout struct {
	prose []string // columns of sentences
	minor []string // columns that are left out, the first one first
}

// vmColumn is the column that namespace and vmi are one in: a VM as `why` takes it.
const vmColumn = "vm"

// layouts are those of the views, by name.
var layouts = map[string]layout{
	trail.ViewRequests.Name: {[]string{"stated_reason"},
		[]string{"dry_run", "source", "last_repeat_at", "stated_reason", "requester_class", "repeats", "effect", "node"}},
	trail.ViewEvacuations.Name: {nil,
		[]string{"confidence", "requester_class", "overdue", "ended_at", "trigger", "next_retry_at", "last_failure_class", "attempts"}},
	trail.ViewMigrations.Name: {nil,
		[]string{"attempt", "duration", "trigger", "migration", "outcome", "failure_reason", "failure_class", "source_node"}},
	trail.ViewDecisions.Name:    {nil, []string{"model", "origin", "capped", "count", "until", "reason", "node", "effective"}},
	trail.ViewQueue.Name:        {nil, []string{"migration", "priority", "after_vmi", "trigger", "node_limit", "running_from_node"}},
	trail.ViewHolds.Name:        {nil, []string{"kubevirt_backoff_until", "descheduler_cooldown_until", "effective", "node"}},
	trail.ViewLoops.Name:        {[]string{"summary"}, []string{"path", "closed_by", "node", "closed_at"}},
	trail.ViewDrains.Name:       {nil, []string{"requester_class", "last_asked_at", "requester", "ended_at"}},
	trail.ViewUpgradeWaves.Name: {[]string{"summary"}, []string{"moved_again", "shut_down", "failed_attempts", "moved", "version_from", "ended_at"}},
	trail.ViewBlockers.Name:     {[]string{"reason", "next"}, []string{"last_asked_at", "next", "waiting_since"}},
	trail.ViewGaps.Name:         {[]string{"detail"}, nil},
	trail.ViewContext.Name: {[]string{"reason"},
		[]string{"reason", "origin", "sampled_at", "sample", "migration", "after_end", "moment"}},
	trail.ViewConsequences.Name: {[]string{"because"}, []string{"needless_likelihood", "needless_uid", "steps", "cause_need", "node"}},
	trail.ViewOutages.Name:      {[]string{"message"}, []string{"ended_by", "cause"}},
	trail.ViewTimeline.Name:     {[]string{"sentence"}, []string{"node"}},
}

// problems report, of the rows of a view that are not over, which need somebody. Views that are not here have none.
var problems = map[string]func(cell func(column string) string) bool{
	trail.ViewLoops.Name:   func(func(string) string) bool { return true },
	trail.ViewOutages.Name: func(func(string) string) bool { return true },
	trail.ViewGaps.Name:    func(func(string) string) bool { return true },
	trail.ViewEvacuations.Name: func(cell func(string) string) bool {
		failed, err := strconv.Atoi(cell("failed_attempts"))
		return err == nil && failed > 0
	},
}

// cellsOf returns a function that reads the cells of a row by their columns; of NULL it returns an empty text.
func cellsOf(t trail.Table, row []*string) func(column string) string {
	return func(column string) string {
		if i := slices.Index(t.Columns, column); i >= 0 && row[i] != nil {
			return *row[i]
		}
		return ""
	}
}

// styleOf returns how a row of a view stands out.
func styleOf(view trail.View, cell func(column string) string) textStyle {
	is, has := problems[view.Name]
	switch {
	case view.End == "" || cell(view.End) != "":
		return stylePlain
	case has && is(cell):
		return styleProblem
	}
	return styleOpen
}

// newTextTable makes a table for people of the rows of a view, with labels for the values of closed sets; in a wide one no name is shortened.
func newTextTable(t trail.Table, view trail.View, columns []string, wide bool) textTable {
	of := layouts[view.Name]
	out := textTable{maxLines: cellLines}
	var render []func(cell func(string) string) string
	for _, column := range columns {
		kind := columnTypes()[view.Name+"."+column]
		c := tableColumn{head: strings.ToUpper(strings.ReplaceAll(column, "_", " ")), prose: slices.Contains(of.prose, column)}
		if kind == typeTime {
			c.head += " (UTC)"
		}
		if i := slices.Index(of.minor, column); i >= 0 {
			c.minor = len(of.minor) - i
		}
		out.columns = append(out.columns, c)
		render = append(render, cellRenderer(view, column, kind, wide))
	}
	for _, row := range t.Rows {
		cell := cellsOf(t, row)
		texts := make([]string, len(render))
		for i := range render {
			texts[i] = render[i](cell)
		}
		out.rows = append(out.rows, tableRow{texts, styleOf(view, cell)})
	}
	return out
}

// cellLines is how many lines a cell is folded into on a terminal before its rest is cut off.
const cellLines = 6

// columnsOf returns the columns of a table: of a wide one all, the brief ones first, but for those that hold JSON.
func columnsOf(t trail.Table, view trail.View, wide bool) []string {
	var out []string
	if wide {
		out = slices.Clone(view.Brief)
		for _, column := range t.Columns {
			if !slices.Contains(out, column) && columnTypes()[view.Name+"."+column] != typeJSON {
				out = append(out, column)
			}
		}
		return out
	}
	for _, column := range view.Brief {
		switch column {
		case "vmi":
		case "namespace":
			out = append(out, vmColumn)
		default:
			out = append(out, column)
		}
	}
	return out
}

// withoutCluster returns columns without the cluster where all rows are of one.
func withoutCluster(t trail.Table, columns []string) []string {
	i := slices.Index(t.Columns, "cluster")
	for _, row := range t.Rows {
		if *row[i] != *t.Rows[0][i] {
			return columns
		}
	}
	return slices.DeleteFunc(columns, func(column string) bool { return column == "cluster" })
}

// cellRenderer returns what makes the text of a column of a row.
func cellRenderer(view trail.View, column, kind string, wide bool) func(cell func(string) string) string {
	set, _ := trail.FindLabelSet(view.Name + "." + column)
	switch {
	case column == vmColumn:
		return func(cell func(string) string) string {
			if cell("vmi") == "" {
				return renderCell(kind, "")
			}
			return renderCell(kind, cell("namespace")+"/"+cell("vmi"))
		}
	case column == "requester" && !wide:
		return func(cell func(string) string) string {
			return renderCell(kind, trail.ShortRequester(cell(column), trail.RequesterClass(cell("requester_class"))))
		}
	}
	return func(cell func(string) string) string { return set.Label(renderCell(kind, cell(column))).Short }
}

// tableCell is renderCell of a text that may be NULL or a time.
func tableCell(cell *string) string {
	if cell == nil {
		return renderCell("", "")
	}
	return renderCell("", *cell)
}

// renderCell writes a value as people read it: a dash for NULL and for nothing, times without a zone (all are UTC) and to the second, durations with two units,
// yes and no, and no control characters, which texts of a VM or of a requester may hold.
func renderCell(kind, cell string) string {
	if cell == "" {
		return noValue
	}
	switch kind {
	case typeBoolean:
		return map[string]string{"t": "yes", "f": "no"}[cell]
	case typeInterval:
		if d, err := parseInterval(cell); err == nil {
			return trail.CompactAge(d)
		}
	case typeNumber:
		if n, err := strconv.ParseFloat(cell, 64); err == nil {
			return strconv.FormatFloat(n, 'g', 4, 64)
		}
	case typeTime, "":
		if t, err := time.Parse(trail.CellTime, cell); err == nil {
			return t.UTC().Format(cellTime)
		}
	}
	return cleanText(cell)
}

// cleanText returns a text in which a space stands for what would move the cursor, colour the terminal or turn the direction of writing.
func cleanText(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
}

const cellTime = "2006-01-02 15:04:05"

// interval matches a duration as Postgres writes it, such as 1 day 00:04:44.618084.
var interval = regexp.MustCompile(`^(?:(-?\d+) years? ?)?(?:(-?\d+) mons? ?)?(?:(-?\d+) days? ?)?(?:([+-]?)(\d+):(\d\d):(\d\d(?:\.\d+)?))?$`)

// parseInterval reads a duration as Postgres writes it; a month has 30 days, and a year 365.
func parseInterval(text string) (time.Duration, error) {
	m := interval.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("interval %q: expected one such as 1 day 00:04:44", text)
	}
	var sum time.Duration
	for i, days := range []int{365, 30, 1} {
		if n, err := strconv.Atoi(m[i+1]); err == nil {
			sum += time.Duration(n*days) * 24 * time.Hour
		}
	}
	if m[5] == "" {
		return sum, nil
	}
	clock, err := time.ParseDuration(m[4] + m[5] + "h" + m[6] + "m" + m[7] + "s")
	return sum + clock, err
}
