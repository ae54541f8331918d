package perses_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/dashboards"
	"github.com/evictrail/evictrail/dashboards/perses"
)

// textsOf returns the expressions and the notes of a dashboard for Perses.
func textsOf(t *testing.T, d *perses.Dashboard) (exprs []string, notes string) {
	t.Helper()
	text, err := d.JSON()
	require.NoError(t, err)
	var read struct {
		Spec struct {
			Panels map[string]struct {
				Spec struct {
					Plugin struct {
						Kind string
						Spec struct{ Text string }
					}
					Queries []struct {
						Spec struct {
							Plugin struct{ Spec struct{ Query string } }
						}
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &read))
	for _, p := range read.Spec.Panels {
		if p.Spec.Plugin.Kind == "Markdown" {
			notes += p.Spec.Plugin.Spec.Text + "\n"
		}
		for _, q := range p.Spec.Queries {
			exprs = append(exprs, q.Spec.Plugin.Spec.Query)
		}
	}
	slices.Sort(exprs)
	return exprs, notes
}

// TestNothingIsLeftOutSilently holds that each panel that asks Prometheus is there with its expressions, and that all others are named in a note.
func TestNothingIsLeftOutSilently(t *testing.T) {
	t.Parallel()
	queries, err := dashboards.Queries()
	require.NoError(t, err)
	drawn, named := 0, 0
	for _, d := range dashboards.All() {
		made, draws, err := perses.Convert(d, "")
		require.NoError(t, err)
		exprs, notes := textsOf(t, made)
		require.Equal(t, len(exprs) > 0, draws, d.UID)
		for _, q := range queries {
			if q.Dashboard != d.UID || q.Of != dashboards.OfPanel {
				continue
			}
			at := slices.Index(exprs, q.Text)
			if q.Language == dashboards.PromQL {
				require.GreaterOrEqual(t, at, 0, q.Name())
				exprs = slices.Delete(exprs, at, at+1)
				drawn++
				continue
			}
			require.Contains(t, notes, "- **"+q.Panel+"**: ", q.Name())
			named++
		}
		require.Empty(t, exprs, "%s: asked by no panel of Grafana", d.UID)
	}
	require.Greater(t, drawn, 50)
	require.Greater(t, named, 30)
}

// TestNotesLinkToThePages holds that the address of the pages is in each note, where there is one.
func TestNotesLinkToThePages(t *testing.T) {
	t.Parallel()
	made, _, err := perses.Convert(dashboards.All()[0], "https://evictrail.example")
	require.NoError(t, err)
	_, notes := textsOf(t, made)
	require.Equal(t, strings.Count(notes, "Not shown here"), strings.Count(notes, "[evictrail's pages](https://evictrail.example)"))
}

// TestGoldens compares deploy/perses with what the code makes; "make generate" writes them.
func TestGoldens(t *testing.T) {
	t.Parallel()
	var names []string
	for _, d := range dashboards.All() {
		made, draws, err := perses.Convert(d, "")
		require.NoError(t, err)
		if !draws {
			continue
		}
		want, err := made.JSON()
		require.NoError(t, err)
		name := d.UID + ".json"
		names = append(names, name)
		got, err := os.ReadFile("../../deploy/perses/" + name)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), name)
	}
	entries, err := os.ReadDir("../../deploy/perses")
	require.NoError(t, err)
	require.Len(t, entries, len(names))
	require.Equal(t, "PersesDashboard", (&perses.Dashboard{}).Object("monitoring").Kind)
}
