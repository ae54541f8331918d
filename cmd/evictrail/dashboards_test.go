package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/dashboards"
	"github.com/evictrail/evictrail/dashboards/dashboardstest"
	"github.com/evictrail/evictrail/store/storetest"
)

// scenario is a recording on which the dashboards are tried, up to a moment, and what the variables choose.
type scenario struct {
	name  string
	until string // time of day, UTC; empty: to the end
	vm    string // whose story is shown
	node  string // that is investigated
}

func (s scenario) String() string { return strings.TrimSuffix(s.name+" until "+s.until, " until ") }

var dashboardScenarios = []scenario{
	{"b-dual-retry-loop-v1.8", "", "vm-d", "worker-1"},
	{"c-node-drain", "", "web-3", "worker-2"},
	{"c-node-drain", "00:34:05", "web-3", "worker-2"}, // while VMs are left
	{"d-external-strategy", "", "ext-2", "worker-1"},
	{"e-user-migrations", "", "app-3", "worker-1"},
	{"g-churn-cooldown", "", "churner", "worker-1"},
	{"k-blocked-slot", "", "nbr-2", "worker-1"},
}

// mustHaveRows says on which recording a query must have rows. Each panel of SQL stands here or in emptyPanels.
var mustHaveRows = map[string][]string{
	"evictrail-fleet/Clusters/A":                                                {"b-dual-retry-loop-v1.8", "c-node-drain", "d-external-strategy", "e-user-migrations", "g-churn-cooldown", "k-blocked-slot"},
	"evictrail-fleet/Clusters compared/A":                                       {"b-dual-retry-loop-v1.8", "c-node-drain"},
	"evictrail-fleet/Failed migrations a day/A":                                 {"b-dual-retry-loop-v1.8", "c-node-drain"},
	"evictrail-fleet/Loops opened a day/A":                                      {"b-dual-retry-loop-v1.8"},
	"evictrail-overview/Loops and advice/A":                                     {"b-dual-retry-loop-v1.8", "g-churn-cooldown", "k-blocked-slot"},
	"evictrail-overview/Started migrations by cause/A":                          {"b-dual-retry-loop-v1.8", "c-node-drain", "e-user-migrations", "g-churn-cooldown"},
	"evictrail-overview/Moves by benefit/A":                                     {"b-dual-retry-loop-v1.8", "g-churn-cooldown"},
	"evictrail-overview/Requesters and stated reasons/A":                        {"b-dual-retry-loop-v1.8", "c-node-drain", "e-user-migrations"},
	"evictrail-overview/Node states/A":                                          {"b-dual-retry-loop-v1.8", "c-node-drain", "e-user-migrations"},
	"evictrail-overview/Moves between nodes/nodes":                              {"g-churn-cooldown"},
	"evictrail-overview/Moves between nodes/edges":                              {"g-churn-cooldown"},
	"evictrail-loop/Timeline of the stuck VM and of those moved in its place/A": {"b-dual-retry-loop-v1.8", "k-blocked-slot"},
	"evictrail-loop/Incidents and advice/A":                                     {"b-dual-retry-loop-v1.8", "k-blocked-slot"},
	"evictrail-loop/Evidence/A":                                                 {"b-dual-retry-loop-v1.8", "k-blocked-slot"},
	"evictrail-loop/Backoff before each attempt/A":                              {"b-dual-retry-loop-v1.8", "k-blocked-slot"},
	"evictrail-loop/Slot holders/A":                                             {"k-blocked-slot"},
	"evictrail-drain/Blocked VMs and their blockers/A":                          {"c-node-drain until 00:34:05"},
	"evictrail-drain/Drain timeline/A":                                          {"c-node-drain", "c-node-drain until 00:34:05"},
	"evictrail-drain/Drains/A":                                                  {"c-node-drain"},
	"evictrail-drain/Late evacuations/A":                                        {"b-dual-retry-loop-v1.8", "d-external-strategy", "k-blocked-slot"},
	"evictrail-drain/VMs with eviction strategy External/A":                     {"d-external-strategy"},
	"evictrail-migrations/Time per phase by outcome/A":                          {"b-dual-retry-loop-v1.8", "e-user-migrations"},
	"evictrail-migrations/Cost of migrations by requester/A":                    {"b-dual-retry-loop-v1.8", "c-node-drain", "e-user-migrations"},
	"evictrail-migrations/Failures by reason and pair of nodes/A":               {"b-dual-retry-loop-v1.8", "e-user-migrations", "k-blocked-slot"},
	"evictrail-cooldown/Cooldowns of the 30 most moved VMs/A":                   {"g-churn-cooldown"},
	"evictrail-cooldown/Paths of VMs moved more than once/A":                    {"g-churn-cooldown"},
	"evictrail-cooldown/Cooldown decisions against the true history/A":          {"g-churn-cooldown", "k-blocked-slot"},
	"evictrail-cooldown/Blocked evictions by reason/A":                          {"g-churn-cooldown"},
	"evictrail-vm/VM timeline/A":                                                {"b-dual-retry-loop-v1.8", "c-node-drain", "d-external-strategy", "e-user-migrations", "g-churn-cooldown"},
	"evictrail-vm/VM history/A":                                                 {"b-dual-retry-loop-v1.8", "e-user-migrations"},
	"evictrail-vm/Holds by layer/A":                                             {"k-blocked-slot"},
	"evictrail-vm/Migrations of this VM/A":                                      {"b-dual-retry-loop-v1.8", "e-user-migrations"},
	"evictrail-vm/Eviction requests/A":                                          {"b-dual-retry-loop-v1.8", "c-node-drain", "d-external-strategy"},
	"evictrail-vm/Loops with this VM/A":                                         {"b-dual-retry-loop-v1.8", "g-churn-cooldown"},
}

// emptyPanels are the panels of SQL without rows on any recording, each with the reason.
var emptyPanels = map[string]string{
	"evictrail-overview/Gaps in the record/A":         "the recordings are seen whole; TestDashboardsShowGaps cuts one",
	"evictrail-collector/Gaps in the record/A":        "the recordings are seen whole; TestDashboardsShowGaps cuts one",
	"evictrail-migrations/Guests lost in migration/A": "no recorded guest was lost in migration",
}

// TestDashboardQueriesRun runs every query of SQL of every panel, variable and annotation on played recordings, as Grafana
// would send it and with the time limit of the reader's role.
func TestDashboardQueriesRun(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	g := playForGrafana(t)
	filled := map[string][]string{}
	for _, s := range dashboardScenarios {
		for _, q := range sqlQueries(t) {
			rows := g.queryPanel(t, q, s)
			checkRows(t, q, s, rows)
			if len(rows) > 0 {
				filled[q.Name()] = append(filled[q.Name()], s.String())
			}
		}
	}
	for _, q := range sqlQueries(t) {
		switch {
		case q.Of == dashboards.OfVariable:
			require.NotEmpty(t, filled[q.Name()], q.Name())
		case q.Of == dashboards.OfPanel && emptyPanels[q.Name()] != "":
			require.Empty(t, filled[q.Name()], "%s has rows now: say where", q.Name())
		case q.Of == dashboards.OfPanel:
			require.NotEmpty(t, mustHaveRows[q.Name()], "on which recording must %s have rows?", q.Name())
			require.Subset(t, filled[q.Name()], mustHaveRows[q.Name()], q.Name())
		}
	}
	require.Contains(t, filled["evictrail-loop/Loops/Anno"], "b-dual-retry-loop-v1.8")
	require.Contains(t, filled["evictrail-loop/Evictions by the descheduler/Anno"], "b-dual-retry-loop-v1.8")
	require.Contains(t, filled["evictrail-drain/Drains/Anno"], "c-node-drain")
	require.Contains(t, filled["evictrail-overview/Changes of the rules/Anno"], "k-blocked-slot")
}

// TestDashboardsShowGaps plays a recording whose watches forget their history: gaps are rows and shaded regions.
func TestDashboardsShowGaps(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	g := playForGrafana(t, "--expire-every=120")
	for _, q := range sqlQueries(t) {
		if strings.HasPrefix(q.Panel, "Gaps in the record") {
			rows := g.queryPanel(t, q, dashboardScenarios[0])
			require.NotEmpty(t, rows, q.Name())
			if q.Of == dashboards.OfAnnotation {
				require.True(t, rows[0]["timeend"].(time.Time).After(rows[0]["time"].(time.Time)), "a gap has a length")
			}
		}
	}
}

// TestLoopInvestigatorShowsTheStory reads the lanes of a dual retry loop as a person would.
func TestLoopInvestigatorShowsTheStory(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	g := playForGrafana(t)
	i := slices.IndexFunc(sqlQueries(t), func(q dashboards.Query) bool {
		return q.Panel == "Timeline of the stuck VM and of those moved in its place"
	})
	states := map[string][]string{}
	for _, row := range g.queryPanel(t, sqlQueries(t)[i], dashboardScenarios[0]) {
		lane := row["lane"].(string)
		states[lane] = append(states[lane], row["Value"].(string))
	}
	require.Equal(t, []string{
		"attempt 1 pending", "attempt 1 fails: data transfer", "backoff until 00:33:24 UTC",
		"attempt 2 pending: backoff", "attempt 2 fails: data transfer", "backoff until 00:34:13 UTC",
		"attempt 3 pending: backoff", "attempt 3 fails: data transfer", "backoff until 00:35:53 UTC",
		"attempt 4 pending: backoff", "attempt 4 fails: target setup", "backoff until 00:38:35 UTC",
		"attempt 5 fails: data transfer", "backoff until 00:44:02 UTC",
		"attempt 6 pending: backoff", "attempt 6 succeeds",
	}, states["A  demo/vm-d cannot leave"])
	require.Equal(t, []string{"migrates", "moved"}, states["B  demo/vm-a"])
	require.Contains(t, states["C  slots in use"], "1 of 2")
	require.Contains(t, states["C  slots in use"], "2 of 2: full")
	require.Equal(t, []string{"annotation not there", "annotation there"}, states["D  the descheduler sees demo/vm-d"])
}

// sqlQueries are those that Postgres answers.
func sqlQueries(t *testing.T) []dashboards.Query {
	t.Helper()
	all, err := dashboards.Queries()
	require.NoError(t, err)
	return slices.DeleteFunc(all, func(q dashboards.Query) bool { return q.Language != dashboards.SQL })
}

// grafana asks a database with played recordings as Grafana does.
type grafana struct{ conn *pgx.Conn }

func playForGrafana(t *testing.T, args ...string) grafana {
	t.Helper()
	url := storetest.NewURL(t)
	played := map[string]bool{}
	for _, s := range dashboardScenarios {
		if !played[s.name] {
			playBuiltin(t, url, s.name, append(args, "--evacuation-objective=any=2m")...)
		}
		played[s.name] = true
	}
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), "SET statement_timeout = '5s'; SET default_transaction_read_only = on; SET jit = off")
	require.NoError(t, err)
	return grafana{conn}
}

// queryPanel returns the rows of a query over the time of a scenario, by the names of their columns.
func (g grafana) queryPanel(t *testing.T, q dashboards.Query, s scenario) []map[string]any {
	t.Helper()
	from, to := g.queryTimeRange(t, s)
	vars := dashboardstest.Values{
		"cluster": {s.name}, "namespace": {"demo"}, "vmi": {s.vm}, "node": {s.node},
		"cause":    {"descheduler", "drain", "user", "KubeVirt update", "other eviction", "controller", "unknown"},
		"incident": g.queryColumn(t, "SELECT loop_id::text FROM evictrail_v1.loops WHERE cluster = $1", s.name),
	}
	if q.Dashboard != dashboards.UIDLoop {
		vars["node"] = g.queryColumn(t, "SELECT DISTINCT node FROM evictrail_v1.placements WHERE cluster = $1", s.name)
	}
	text, err := dashboardstest.SQL(q.Text, from, to, to.Sub(from)/100, vars)
	require.NoError(t, err, q.Name())
	result, err := g.conn.Query(t.Context(), text, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err, "%s on %s", q.Name(), s)
	rows, err := pgx.CollectRows(result, pgx.RowToMap)
	require.NoError(t, err, "%s on %s", q.Name(), s)
	return rows
}

// queryTimeRange is the time range of a scenario.
func (g grafana) queryTimeRange(t *testing.T, s scenario) (from, to time.Time) {
	t.Helper()
	err := g.conn.QueryRow(t.Context(), "SELECT min(at), max(at) FROM evictrail_v1.events WHERE cluster = $1", s.name).Scan(&from, &to)
	require.NoError(t, err)
	if s.until != "" {
		to, err = time.Parse(time.DateTime, from.UTC().Format(time.DateOnly)+" "+s.until)
		require.NoError(t, err)
	}
	return from, to
}

func (g grafana) queryColumn(t *testing.T, query string, args ...any) []string {
	t.Helper()
	result, err := g.conn.Query(t.Context(), query, args...)
	require.NoError(t, err)
	out, err := pgx.CollectRows(result, pgx.RowTo[string])
	require.NoError(t, err)
	return out
}

// checkRows looks at what Grafana needs of rows: times sorted in series, states that follow each other in lanes.
func checkRows(t *testing.T, q dashboards.Query, s scenario, rows []map[string]any) {
	t.Helper()
	var before time.Time
	ends := map[string]time.Time{}
	var lanes []string
	for _, row := range rows {
		at, _ := row["time"].(time.Time)
		if q.Series {
			require.False(t, at.IsZero(), "%s on %s: no time", q.Name(), s)
			require.False(t, at.Before(before), "%s on %s: not sorted by time", q.Name(), s)
			require.Contains(t, row, "metric")
			before = at
		}
		if lane, ok := row["lane"].(string); ok {
			end := row["time_end"].(time.Time)
			require.True(t, end.After(at), "%s on %s: a state of no length in lane %s", q.Name(), s, lane)
			require.False(t, at.Before(ends[lane]), "%s on %s: states of lane %s overlap at %s", q.Name(), s, lane, at)
			require.NotEmpty(t, row["Value"], "%s on %s: a state without a name", q.Name(), s)
			if !slices.Contains(lanes, lane) {
				lanes = append(lanes, lane)
			}
			require.Equal(t, lane, lanes[len(lanes)-1], "%s on %s: lanes are mixed", q.Name(), s)
			ends[lane] = end
		}
	}
}
