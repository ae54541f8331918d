package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// testLoops is a list of an open loop and of one that is over, as a database returns it.
func testLoops() trail.Table {
	text := func(s string) *string { return &s }
	summary := "Two controllers work against each other on worker-1: KubeVirt failed 8 times to move shop/db-1 and tries on, while the descheduler asked for the same VM again, once."
	t := trail.Table{Columns: []string{"cluster", "namespace", "vmi", "node", "loop_id", "kind", "path", "opened_at", "closed_at", "closed_by", "summary", "counts"}}
	t.Rows = [][]*string{
		{text("prod"), text("shop"), text("db-1"), text("worker-1"), text("1"), text("dual_retry"), text("request_forgotten"), text("2026-11-21 01:07:41.5+00"), nil, nil, text(summary), text("{}")},
		{text("prod"), text("shop"), text("db-1"), text("worker-1"), text("2"), text("endless_retry"), nil, text("2026-11-21 00:57:41+00"), text("2026-11-21 01:07:41+00"), text("became_dual_retry"), text(summary), text("{}")},
	}
	return t
}

// TestTablesFit renders a table for terminals of every width: no line is longer, a cell that is shown is whole or marked as cut, and what has no room is named.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	table := newTextTable(testLoops(), trail.ViewLoops, withoutCluster(testLoops(), columnsOf(testLoops(), trail.ViewLoops, false)), false)
	wide, leftOut := table.render(0, false)
	require.Empty(t, leftOut)
	require.Len(t, strings.Split(strings.TrimSpace(wide), "\n"), 3, "without a width a row is a line")
	require.Equal(t, []string{"KIND", "PATH", "NODE", "VM", "OPENED", "AT", "(UTC)", "CLOSED", "AT", "(UTC)", "CLOSED", "BY", "SUMMARY"}, strings.Fields(strings.Split(wide, "\n")[0]))
	before := len(table.columns)
	for width := 48; width <= 400; width++ {
		text, leftOut := table.render(width, false)
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, textWidth(strings.TrimSuffix(line, "\n")), width, "%d:\n%s", width, text)
		}
		require.LessOrEqual(t, len(leftOut), before, "a wider terminal shows less:\n%s", text)
		before = len(leftOut)
	}
	require.Zero(t, before)
	require.Equal(t, []string{"ab", "cd", "e"}, foldText("abcde", 2))
	require.Equal(t, "節点…", cutText("節点の名前", 5), "a wide character takes two columns")
	narrow, leftOut := table.render(80, true)
	require.Equal(t, []string{"PATH", "CLOSED BY"}, leftOut)
	const open, over = "\x1b[1;31m", "\x1b[0m"
	above, _, _ := strings.Cut(narrow, "endless")
	require.Equal(t, `KIND     NODE      VM         OPENED AT   CLOSED AT   SUMMARY
                              (UTC)       (UTC)
`+open+`dual     worker-1  shop/db-1  2026-11-21  -           Two controllers work`+over+`
`+open+`retry                         01:07:41                against each other on`+over+`
`+open+`loop                                                  worker-1: KubeVirt failed`+over+`
`+open+`                                                      8 times to move shop/db-1`+over+`
`+open+`                                                      and tries on, while the`+over+`
`+open+`                                                      descheduler asked for the…`+over+`
`, above)
}

func TestCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, cell, text string }{
		{typeInterval, "00:04:44.618084", "4m45s"},
		{typeInterval, "10 days 20:00:01", "10d 20h"},
		{typeInterval, "1 day 02:03:04", "26h3m"},
		{typeInterval, "1 mon 2 days", "32d 0h"},
		{typeInterval, "-00:01:02", "-1m2s"},
		{typeInterval, "soon", "soon"},
		{typeBoolean, "t", "yes"},
		{typeBoolean, "f", "no"},
		{"text", "t", "t"},
		{"text", "2026-11-21 00:32:56+00", "2026-11-21 00:32:56+00"},
		{typeTime, "2026-11-21 00:32:56.25+00", "2026-11-21 00:32:56"},
		{typeNumber, "0.46399999999999997", "0.464"},
		{"text", "", "-"},
		{"text", "a\x1b[31mb\u009bc\u202ed\ne", "a [31mb c d e"},
	} {
		require.Equal(t, c.text, renderCell(c.kind, c.cell), "%s %q", c.kind, c.cell)
	}
}

// TestWatchedChanges compares one look at a list with the next: rows that came, changed and went, and nothing where only time went on.
func TestWatchedChanges(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 1, 8, 0, 0, time.UTC)
	text := func(s string) *string { return &s }
	look := func(rows ...[]*string) trail.Table {
		return trail.Table{Columns: []string{"cluster", "namespace", "vmi", "vmi_uid", "node", "layer", "until", "remaining"}, Page: trail.Page[[]*string]{Rows: rows}}
	}
	row := func(vm, until, remaining string) []*string {
		return []*string{text("prod"), text("shop"), text(vm), text("uid-" + vm), text("worker-1"), text("cooldown"), text(until), text(remaining)}
	}
	changes := changeLog{view: trail.ViewHolds}
	fields := func(out string) [][]string {
		var lines [][]string
		for line := range strings.Lines(out) {
			lines = append(lines, strings.Fields(line)[2:5])
		}
		return lines
	}
	const ten, eleven = "2026-11-21 10:00:00+00", "2026-11-21 11:00:00+00"
	require.Equal(t, [][]string{{"CHANGE", "CLUSTER", "VM"}, {"listed", "prod", "shop/db-1"}, {"listed", "prod", "shop/db-2"}},
		fields(changes.record(look(row("db-1", ten, "00:10:00"), row("db-2", ten, "00:10:00")), at)))
	require.Empty(t, changes.record(look(row("db-1", ten, "00:09:58"), row("db-2", ten, "00:09:58")), at))
	require.Equal(t, [][]string{{"changed", "prod", "shop/db-1"}, {"new", "prod", "shop/db-3"}, {"gone", "prod", "shop/db-2"}},
		fields(changes.record(look(row("db-1", eleven, "01:09:56"), row("db-3", ten, "00:09:56")), at)))
}
