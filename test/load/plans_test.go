package load_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plansShown is how many plans are printed: those of the slowest statements, each statement once.
const plansShown = 5

var (
	entryOf    = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \w+ \[\d+\] LOG:  duration: ([\d.]+) ms  plan:\n((?:\t.*\n?)*)`)
	statements = regexp.MustCompile(`(?s)^\tQuery Text:.*?\n\t[A-Z][a-zA-Z ]+  \(cost=`)
)

// logSize returns how much the log of the Postgres that is kept holds already.
func logSize(tb testing.TB) map[string]int64 {
	tb.Helper()
	sizes := map[string]int64{}
	for _, name := range findLogs(tb) {
		info, err := os.Stat(name)
		require.NoError(tb, err)
		sizes[name] = info.Size()
	}
	return sizes
}

func findLogs(tb testing.TB) []string {
	tb.Helper()
	if *dir == "" || os.Getenv(urlEnv) != "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(*dir, "*.log"))
	require.NoError(tb, err)
	return names
}

// writePlans prints the plans that the Postgres that is kept logged of the slowest statements; elsewhere there are none.
func writePlans(tb testing.TB, to io.Writer, before map[string]int64) {
	tb.Helper()
	type plan struct {
		ms   float64
		text string
	}
	slowest := map[string]plan{}
	for _, name := range findLogs(tb) {
		text, err := os.ReadFile(name)
		require.NoError(tb, err)
		for _, m := range entryOf.FindAllStringSubmatch(string(text[min(before[name], int64(len(text))):]), -1) {
			took, err := strconv.ParseFloat(m[1], 64)
			require.NoError(tb, err)
			if of := statements.FindString(m[2]); took > slowest[of].ms {
				slowest[of] = plan{took, m[2]}
			}
		}
	}
	all := make([]plan, 0, len(slowest))
	for _, p := range slowest {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b plan) int { return int(b.ms*1000) - int(a.ms*1000) })
	for _, p := range all[:min(len(all), plansShown)] {
		_, _ = fmt.Fprintf(to, "\n%.1f ms:\n%s", p.ms, strings.ReplaceAll(p.text, "\t", "  "))
	}
}
