package store

import "github.com/evictrail/evictrail/trail"

// timelineRow is one row of evictrail.timeline.
type timelineRow struct {
	owned
	trail.Line
	Tie int `json:"tie"`
}

// timelineRows gives the rows of lines that are in the order in which they are told.
func timelineRows(of owned, lines []trail.Line) []timelineRow {
	out := make([]timelineRow, len(lines))
	for i, l := range lines {
		out[i] = timelineRow{owned: of.with(l), Line: l}
		if i > 0 && l.At.Equal(lines[i-1].At) {
			out[i].Tie = out[i-1].Tie + 1
		}
	}
	return out
}
