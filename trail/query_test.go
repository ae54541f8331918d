package trail_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-11-21T00:30:00Z":           "2026-11-21T00:30:00Z",
		"2026-11-21T01:30:00.5+01:00":    "2026-11-21T00:30:00.5Z",
		"2026-11-21 00:30:00":            "2026-11-21T00:30:00Z",
		"2026-11-21T00:30":               "2026-11-21T00:30:00Z",
		"2026-11-21 00:30":               "2026-11-21T00:30:00Z",
		"2026-11-21T00:30Z":              "2026-11-21T00:30:00Z",
		"2026-11-21 01:30:00+01:00":      "2026-11-21T00:30:00Z",
		"2026-11-21":                     "2026-11-21T00:00:00Z",
		"90m":                            "2026-11-21T10:30:00Z",
		"7d":                             "2026-11-14T12:00:00Z",
		"1h30m":                          "2026-11-21T10:30:00Z",
		"":                               "0001-01-01T00:00:00Z",
		"yesterday":                      "",
		"-5d":                            "",
		"-5m":                            "",
		"5dd":                            "",
		"99999999d":                      "",
		"9999-12-31T23:59:59-10:00":      "",
		"0000-01-01":                     "",
		"2026-11-21T00:30:00Z and after": "",
	} {
		got, err := trail.ParseTime(text, now)
		if want == "" {
			require.ErrorContains(t, err, "expected a time such as", text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, got.Format(time.RFC3339Nano), text)
	}
}

func TestNameVM(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, namespace, vm string
		want                trail.Query
		says                string
	}{
		{"a name", "", "db", trail.Query{VMI: "db"}, ""},
		{"a name in a namespace", "shop", "db", trail.Query{Namespace: "shop", VMI: "db"}, ""},
		{"both in one", "", "shop/db", trail.Query{Namespace: "shop", VMI: "db"}, ""},
		{"both, twice", "shop", "shop/db", trail.Query{Namespace: "shop", VMI: "db"}, ""},
		{"two namespaces", "web", "shop/db", trail.Query{}, "vm shop/db is not in namespace web"},
		{"no name", "", "shop/", trail.Query{}, `vm "shop/": expected a name or namespace/name`},
		{"too much", "", "shop/db/1", trail.Query{}, "expected a name or namespace/name"},
		{"no namespace", "", "/db", trail.Query{}, "expected a name or namespace/name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q := trail.Query{Namespace: c.namespace}
			err := q.NameVM(c.vm)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, q)
		})
	}
}
