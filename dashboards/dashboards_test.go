package dashboards

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// fold is the height of what a screen shows at once, in rows of the grid.
const fold = 20

// panelsOf returns the panels of a dashboard as decoded JSON, as Grafana will see them, with the row that each is in.
func panelsOf(t *testing.T, d Dashboard) (all map[string]any, panels []map[string]any) {
	t.Helper()
	text, err := d.JSON()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &all))
	for _, p := range all["panels"].([]any) {
		panel := p.(map[string]any)
		panels = append(panels, panel)
		inner, _ := panel["panels"].([]any)
		for _, p := range inner {
			panels = append(panels, p.(map[string]any))
		}
	}
	return all, panels
}

// findPath follows names into decoded JSON; it returns nil where there is nothing.
func findPath(v any, path ...string) any {
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// TestNoOptionIsEmpty finds options that nobody set: Grafana's panels know no value "" for them.
func TestNoOptionIsEmpty(t *testing.T) {
	t.Parallel()
	var look func(where string, v any)
	look = func(where string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				look(where+"."+k, inner)
			}
		case string:
			all := strings.HasSuffix(where, ".reduceOptions.fields") // there it means all fields
			require.True(t, v != "" || all, where)
		}
	}
	for _, d := range All() {
		_, panels := panelsOf(t, d)
		for _, p := range panels {
			look(d.UID+"/"+p["title"].(string), findPath(p, "options"))
			look(d.UID+"/"+p["title"].(string), findPath(p, "fieldConfig", "defaults", "custom"))
		}
	}
}

func TestUIDsStay(t *testing.T) {
	t.Parallel()
	var uids []string
	for _, d := range All() {
		uids = append(uids, d.UID)
		require.Regexp(t, `^evictrail / [A-Z]\w+: .+\?$`, d.Title, "%s: found by the product, by a noun and by its question", d.UID)
		require.NotEmpty(t, d.Short)
		all, _ := panelsOf(t, d)
		require.Equal(t, d.UID, all["uid"])
		require.Equal(t, []any{Tag}, all["tags"])
		require.Equal(t, map[string]any{"from": "now-6h", "to": "now"}, all["time"])
		require.Equal(t, "utc", all["timezone"], "as pages and the command line have it")
		require.Equal(t, map[bool]string{true: "30s", false: "1m"}[d.UID == UIDCollector], all["refresh"], "SQL over hours costs more than Prometheus")
	}
	require.Equal(t, []string{
		"evictrail-overview", "evictrail-loop", "evictrail-drain", "evictrail-migrations", "evictrail-cooldown", "evictrail-vm", "evictrail-collector", "evictrail-fleet",
	}, uids, "alerts and bookmarks lead there")
}

func TestPanelsKeepTheHouseRules(t *testing.T) {
	t.Parallel()
	for _, d := range All() {
		t.Run(d.UID, func(t *testing.T) {
			t.Parallel()
			_, panels := panelsOf(t, d)
			count := 0
			titles := map[string]bool{}
			for _, p := range panels {
				title := p["title"].(string)
				if p["type"] == "row" {
					require.Regexp(t, `\?( \(needs Loki\))?$`, title, "a row asks one question")
					continue
				}
				count++
				require.False(t, titles[title], "two panels are called %s", title)
				titles[title] = true
				require.Regexp(t, `\.$`, p["description"], "%s: a description of whole sentences", title)
				if p["type"] == "text" {
					continue
				}
				targets, _ := p["targets"].([]any)
				require.NotEmpty(t, targets, title)
				refs := map[any]bool{}
				for _, target := range targets {
					require.False(t, refs[findPath(target, "refId")], "%s: two queries have one letter", title)
					refs[findPath(target, "refId")] = true
					require.Contains(t, []any{"${ds_prom}", "${ds_pg}", "${ds_loki}"}, findPath(target, "datasource", "uid"), title)
					require.NotEmpty(t, findPath(target, "datasource", "type"), title)
				}
				requireUnit(t, p)
				requireLegend(t, p)
				if p["type"] == "stat" {
					requireThresholds(t, p, targets)
				}
			}
			require.LessOrEqual(t, count, 13, "at most 12 panels, and one in a row that is closed at first")
		})
	}
}

func requireUnit(t *testing.T, p map[string]any) {
	t.Helper()
	if p["type"] == "heatmap" {
		require.NotEmpty(t, findPath(p, "options", "yAxis", "unit"), p["title"])
		return
	}
	require.NotEmpty(t, findPath(p, "fieldConfig", "defaults", "unit"), "%s: a unit; none where the values are texts and times", p["title"])
	if p["type"] == "timeseries" || p["type"] == "barchart" || p["type"] == "bargauge" {
		require.NotEqual(t, "none", findPath(p, "fieldConfig", "defaults", "unit"), "%s: an axis has a unit", p["title"])
	}
}

func requireLegend(t *testing.T, p map[string]any) {
	t.Helper()
	if p["type"] != "timeseries" && p["type"] != "barchart" {
		return
	}
	require.Equal(t, "table", findPath(p, "options", "legend", "displayMode"), p["title"])
	require.Equal(t, "Last *", findPath(p, "options", "legend", "sortBy"), p["title"])
	require.Equal(t, true, findPath(p, "options", "legend", "sortDesc"), p["title"])
}

// requireThresholds wants a unit and thresholds for each number.
func requireThresholds(t *testing.T, p map[string]any, targets []any) {
	t.Helper()
	overrides := findPath(p, "fieldConfig", "overrides").([]any)
	for _, target := range targets {
		i := slices.IndexFunc(overrides, func(o any) bool {
			return findPath(o, "matcher", "id") == "byFrameRefID" && findPath(o, "matcher", "options") == findPath(target, "refId")
		})
		require.GreaterOrEqual(t, i, 0, "%s: number %v has no thresholds", p["title"], findPath(target, "refId"))
		var set []any
		for _, property := range findPath(overrides[i], "properties").([]any) {
			set = append(set, findPath(property, "id"))
		}
		require.Subset(t, set, []any{"unit", "thresholds"}, p["title"])
	}
}

func TestPanelsHaveTheirPlaces(t *testing.T) {
	t.Parallel()
	for _, d := range All() {
		_, panels := panelsOf(t, d)
		taken := map[[2]int]any{}
		ids := map[float64]bool{}
		above := 0
		for _, p := range panels {
			id := p["id"].(float64)
			require.Positive(t, id)
			require.False(t, ids[id], "%s: two panels have number %v", d.UID, id)
			ids[id] = true
			pos := p["gridPos"].(map[string]any)
			x, y, w, h := int(pos["x"].(float64)), int(pos["y"].(float64)), int(pos["w"].(float64)), int(pos["h"].(float64))
			require.LessOrEqual(t, x+w, fullWidth, "%s: %v", d.UID, p["title"])
			for i := x; i < x+w; i++ {
				for j := y; j < y+h; j++ {
					require.Nil(t, taken[[2]int{i, j}], "%s: %v lies over %v", d.UID, p["title"], taken[[2]int{i, j}])
					taken[[2]int{i, j}] = p["title"]
				}
			}
			if p["type"] != "row" && y < fold {
				above++
			}
		}
		require.LessOrEqual(t, above, 4, "%s: panels above the fold", d.UID)
	}
}

var (
	linkPattern = regexp.MustCompile(`/d/([\w-]+)\?`)
	varsPattern = regexp.MustCompile(`[?&]var-(\w+)=`)
	queryParams = regexp.MustCompile(`\$\{(\w+):queryparam\}`)
)

func TestLinksLeadToDashboardsThatTakeThem(t *testing.T) {
	t.Parallel()
	takes := map[string][]string{}
	for _, d := range All() {
		built, err := d.Build()
		require.NoError(t, err)
		for _, v := range built.Templating.List {
			takes[d.UID] = append(takes[d.UID], v.Name)
		}
	}
	for _, d := range All() {
		_, panels := panelsOf(t, d)
		for _, p := range panels {
			for _, url := range urlsIn(p) {
				to := linkPattern.FindStringSubmatch(url)
				require.NotNil(t, to, "%v: %s", p["title"], url)
				require.Contains(t, takes, to[1], "%v: %s", p["title"], url)
				require.Contains(t, url, "${__url_time_range}", "%v: the time range is kept", p["title"])
				for _, name := range append(varsPattern.FindAllStringSubmatch(url, -1), queryParams.FindAllStringSubmatch(url, -1)...) {
					require.Contains(t, takes[to[1]], name[1], "%v: %s", p["title"], url)
				}
				for _, name := range queryParams.FindAllStringSubmatch(url, -1) {
					require.Contains(t, takes[d.UID], name[1], "%v: %s", p["title"], url)
				}
			}
			if p["type"] == "table" && d.UID != UIDFleet {
				require.Contains(t, strings.Join(urlsIn(p), " "), "/d/"+UIDVM+"?", "%v: each VM leads to its story", p["title"])
			}
		}
	}
}

// TestTablesLinkToPages: with the address of the pages, and only then, every column that leads to a dashboard leads to a page, too.
func TestTablesLinkToPages(t *testing.T) {
	t.Parallel()
	const address = "https://evictrail.example"
	pages := 0
	for _, d := range All() {
		_, without := panelsOf(t, d)
		_, with := panelsOf(t, d.LinkPages(address+"/"))
		for i, p := range with {
			require.NotContains(t, strings.Join(urlsIn(without[i]), " "), address, "%v", p["title"])
			overrides, _ := findPath(p, "fieldConfig", "overrides").([]any)
			for _, o := range overrides {
				links := strings.Join(urlsIn(o), " ")
				if p["type"] != "table" || links == "" {
					continue
				}
				want := map[any]string{"vmi": "/vms/", "node": "/nodes/", "kind": "/loops/", "cluster": "/?cluster="}[findPath(o, "matcher", "options")]
				require.NotEmpty(t, want, "%s: a column that leads to no page", p["title"])
				require.Contains(t, links, address+want, p["title"])
				require.Contains(t, links, "cluster=", p["title"])
				pages++
			}
		}
	}
	require.Greater(t, pages, 40)
}

// TestPrometheusIsAskedOfTheCluster: a Prometheus of a fleet has series of all clusters.
func TestPrometheusIsAskedOfTheCluster(t *testing.T) {
	t.Parallel()
	require.Equal(t, `sum by (a) (evictrail_x{cluster=~"$cluster|", node="n"}) / max(evictrail:y:z{cluster=~"$cluster|"}) + count(ALERTS{cluster=~"$cluster|", alertname=~"Evictrail.+"})`,
		filterCluster(`sum by (a) (evictrail_x{node="n"}) / max(evictrail:y:z) + count(ALERTS{alertname=~"Evictrail.+"})`))
}

// urlsIn returns the addresses of all links of a panel.
func urlsIn(v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if url, ok := inner.(string); ok && name == "url" {
				out = append(out, url)
			}
			out = append(out, urlsIn(inner)...)
		}
	case []any:
		for _, inner := range v {
			out = append(out, urlsIn(inner)...)
		}
	}
	return out
}

func TestQueriesOfPostgresAreBounded(t *testing.T) {
	t.Parallel()
	queries, err := Queries()
	require.NoError(t, err)
	for _, q := range queries {
		if q.Language != SQL {
			continue
		}
		require.Regexp(t, `\nLIMIT \d+$`, q.Text, q.Name())
		require.Regexp(t, `(?m)^ORDER BY `, q.Text, q.Name())
		for _, from := range regexp.MustCompile(`(?:FROM|JOIN) (evictrail[\w.]*)`).FindAllStringSubmatch(q.Text, -1) {
			require.Regexp(t, `^evictrail_v1\.`, from[1], "%s: views alone", q.Name())
		}
		if q.Panel != VarCluster && !strings.Contains(q.Text, "cooldowns_now") {
			require.Regexp(t, `\$__time(Filter|From|To)\(`, q.Text, "%s: the time range", q.Name())
		}
		if q.Panel != VarCluster && q.Dashboard != UIDFleet {
			require.Contains(t, q.Text, ofCluster, "%s: one cluster", q.Name())
		}
	}
}

func TestQueriesOfPrometheusKeepToTheRules(t *testing.T) {
	t.Parallel()
	queries, err := Queries()
	require.NoError(t, err)
	counter := regexp.MustCompile(`(\w+)\(\w+_(?:total|bucket|count)\b[^[]*\[(\$?\w+)\]`)
	for _, q := range queries {
		if q.Language != PromQL {
			continue
		}
		require.NotEmpty(t, MetricsIn(q.Text), q.Name())
		for _, use := range counter.FindAllStringSubmatch(q.Text, -1) {
			require.Contains(t, []string{"rate", "increase"}, use[1], q.Name())
			require.Contains(t, []string{"$__rate_interval", "$__range"}, use[2], q.Name())
		}
	}
}

func TestVariablesOfQueriesExist(t *testing.T) {
	t.Parallel()
	used := regexp.MustCompile(`\$\{?(cluster|node|namespace|vmi|cause|incident)\b`)
	has := map[string][]string{}
	for _, d := range All() {
		built, err := d.Build()
		require.NoError(t, err)
		for _, v := range built.Templating.List {
			has[d.UID] = append(has[d.UID], v.Name)
			if v.Type == dashboard.VariableTypeQuery {
				require.NotNil(t, v.Datasource)
			}
		}
		require.Subset(t, has[d.UID], []string{varPrometheus, varPostgres})
		require.Equal(t, d.UID != UIDFleet, slices.Contains(has[d.UID], VarCluster), d.UID)
	}
	queries, err := Queries()
	require.NoError(t, err)
	for _, q := range queries {
		for _, name := range used.FindAllStringSubmatch(q.Text, -1) {
			require.Contains(t, has[q.Dashboard], name[1], q.Name())
		}
	}
}

func TestCausesCoverTheTriggers(t *testing.T) {
	t.Parallel()
	for _, trigger := range []trail.Trigger{
		trail.TriggerDescheduler, trail.TriggerDrain, trail.TriggerDrainTaint, trail.TriggerEviction, trail.TriggerWorkloadUpdate,
		trail.TriggerHotplug, trail.TriggerStorage, trail.TriggerNamedNode, trail.TriggerUser, trail.TriggerController, trail.TriggerDecentralized,
	} {
		require.Contains(t, causeOfTrigger, "'"+string(trigger)+"'")
		require.True(t, slices.ContainsFunc(triggerPaints(), func(p paint) bool { return p.of == string(trigger) }), trigger)
	}
	for _, p := range causePaints() {
		require.Contains(t, causeOfTrigger, "'"+p.of+"'")
	}
}

// TestGoldens compares deploy/dashboards with what the code makes; "make generate" writes them.
func TestGoldens(t *testing.T) {
	t.Parallel()
	var want []string
	for _, d := range All() {
		text, err := d.JSON()
		require.NoError(t, err)
		name := d.UID + ".json"
		want = append(want, name)
		golden, err := os.ReadFile(filepath.Join("..", "deploy", "dashboards", name))
		require.NoError(t, err)
		require.Equal(t, string(golden), string(text), name)
	}
	files, err := os.ReadDir(filepath.Join("..", "deploy", "dashboards"))
	require.NoError(t, err)
	require.Len(t, files, len(want), "no other file lies there")
	text, err := Markdown()
	require.NoError(t, err)
	golden, err := os.ReadFile(filepath.Join("..", "docs", "dashboards.md"))
	require.NoError(t, err)
	require.Equal(t, string(golden), string(text))
}
