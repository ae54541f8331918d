package bench_test

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
)

// row is a line of the table: what was measured, and what it was measured against.
type row struct {
	what    string
	unit    string
	ours    []float64 // of each round
	against string    // empty: nothing
	theirs  []float64 // of the same rounds; none where there is no anchor, or it would be too large
}

// table gathers the rows of all tests, in order.
var table struct {
	sync.Mutex
	rows []row
}

func addRows(rows ...row) {
	table.Lock()
	defer table.Unlock()
	table.rows = append(table.rows, rows...)
}

// writeTable prints the medians of each row, and the median and the spread of the ratios of its rounds.
func writeTable(w io.Writer, rows []row) {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	_, _ = fmt.Fprintln(t, "| Measured\t| unit\t| evictrail\t| against\t| \t| ratio\t| least to most\t| rounds\t|")
	_, _ = fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, r := range rows {
		if len(r.theirs) == 0 {
			_, _ = fmt.Fprintf(t, "| %s\t| %s\t| %s\t| \t| \t| \t| %s to %s\t| %d\t|\n", r.what, r.unit, formatNumber(computeMedian(r.ours)), formatNumber(slices.Min(r.ours)), formatNumber(slices.Max(r.ours)), len(r.ours))
			continue
		}
		ratios := make([]float64, len(r.ours))
		for i := range ratios {
			ratios[i] = r.ours[i] / r.theirs[i]
		}
		_, _ = fmt.Fprintf(t, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s to %s\t| %d\t|\n", r.what, r.unit, formatNumber(computeMedian(r.ours)), r.against, formatNumber(computeMedian(r.theirs)),
			formatNumber(computeMedian(ratios)), formatNumber(slices.Min(ratios)), formatNumber(slices.Max(ratios)), len(ratios))
	}
	_ = t.Flush()
}

func computeMedian(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// formatNumber writes three digits, as more would say what was not measured.
func formatNumber(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
