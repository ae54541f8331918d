package api_test

import (
	"context"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// TestNoCellIsAFormula asks for a table of texts that spreadsheets would run, and of numbers, which stay numbers.
func TestNoCellIsAFormula(t *testing.T) {
	t.Parallel()
	cells := map[string]string{
		"=cmd|'/C calc'!A0": "'=cmd|'/C calc'!A0", "@SUM(1)": "'@SUM(1)", "-2+3": "'-2+3", "+1-1": "'+1-1", `=HYPERLINK("http://x")`: `'=HYPERLINK("http://x")`,
		"\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1", "'=1": "''=1", "''-x": "'''-x", "-": "'-", "-1 days +02:00:00": "'-1 days +02:00:00",
		"-2": "-2", "-2.5": "-2.5", "-00:00:05.25": "-00:00:05.25", "-1e-07": "-1e-07", "+3": "+3",
		"db-1": "db-1", "'quoted'": "'quoted'", "'": "'", "a=b": "a=b", "2026-11-21 00:00:00+00": "2026-11-21 00:00:00+00",
	}
	var table trail.Table
	table.Columns = []string{"text"}
	var want []string
	for text, cell := range cells {
		table.Rows = append(table.Rows, []*string{&text})
		want = append(want, cell)
		require.Equal(t, text, api.CellText(cell))
	}
	h := api.Server{Readers: api.ForAll(&fakeReader{listText: func(context.Context, trail.View, trail.Query) (trail.Table, error) { return table, nil }})}.Handler()
	body := sendGet(t, h, "/api/v1/requests?format=csv").Body.String()
	records, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, len(want)+1)
	for i, cell := range want {
		require.Equal(t, cell, records[i+1][0])
	}
}
