package main

import (
	"log/slog"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/dashboards/dashboardstest"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/citus/citustest"
	"github.com/evictrail/evictrail/store/citus/lint"
	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestStatementsRunOnCitus plays recordings, asks all questions, fetches pages, exports, verifies and drops on a server
// that writes down what it gets: each statement keeps the rules of store/citus/lint, as do the queries of the
// dashboards and the views. No Citus has a part in it: the server says that it is one.
func TestStatementsRunOnCitus(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	server := lint.StartServer(t)
	database := server.NewURL(t)
	useEverything(t, database)
	execSQL(t, database, "SELECT evictrail.begin_drop(date_trunc('month', now(), 'UTC') - interval '1 month', current_user)") // some statements name its table
	l, err := lint.New(t.Context(), database)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close(t.Context())) }()
	sent, err := server.Statements()
	require.NoError(t, err)
	ours := slices.DeleteFunc(sent, func(sql string) bool {
		return !strings.Contains(sql, "evictrail") && !strings.Contains(sql, "plan_cache_mode")
	})
	require.Greater(t, len(ours), 100, "statements that name our tables")
	from := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for _, q := range sqlQueries(t) {
		text, err := dashboardstest.SQL(q.Text, from, from.Add(time.Hour), time.Minute, dashboardstest.Values{
			"cluster": {"c1"}, "namespace": {"demo"}, "vmi": {"vm-d"}, "node": {"worker-1"}, "cause": {"drain"}, "incident": {"0e7e4b83-6e3f-4bd8-ab6d-3d1f9d4d1f3e"},
		})
		require.NoError(t, err, q.Name())
		ours = append(ours, "-- "+q.Name()+"\n"+text)
	}
	for _, v := range trail.Views() {
		ours = append(ours, "SELECT * FROM evictrail_v1."+v.Name)
	}
	t.Logf("%d statements", len(ours))
	for _, sql := range ours {
		found, err := l.Lint(t.Context(), sql)
		require.NoError(t, err)
		for _, f := range found {
			t.Error(f)
		}
	}
	for sql, broken := range map[string]string{
		"SELECT evictrail.ensure_month(now() + interval '1 year')":                                                                               "",
		"SELECT evictrail.begin_drop(date_trunc('month', now(), 'UTC') - interval '2 months', current_user)":                                     "",
		"UPDATE evictrail.retention SET complete = true; SELECT evictrail.finish_drop()":                                                         "",
		"UPDATE evictrail.events SET detail = detail || '{\"user\": \"alice\"}'; SELECT evictrail.erase_requesters(now() - interval '1 day', 2)": "",
		"SELECT evictrail.count_grown()": "size", // nothing grows on the coordinator: there autovacuum of the others counts rows
	} {
		found, err := l.LintNested(t.Context(), sql)
		require.NoError(t, err)
		var names []string
		for _, f := range found {
			names = append(names, f.Rule.Name)
		}
		require.Equal(t, broken, strings.Join(names, " "), sql)
	}
}

// useEverything has evictrail send what it can send to a database.
func useEverything(t *testing.T, database string) {
	t.Helper()
	names := []string{"b-dual-retry-loop-v1.8", "c-node-drain", "g-churn-cooldown", "k-blocked-slot"}
	for _, name := range names {
		playBuiltin(t, database, name)
	}
	run := func(args ...string) {
		code, _, stderr := runCommand(t, append(args, "--database-url", database)...)
		require.Contains(t, []int{exitFound, exitNotFound}, code, "%v: %s", args, stderr)
	}
	for _, view := range []string{
		"requests", "evacuations", "migrations", "cooldowns", "loops", "drains", "upgrade-waves", "downtimes", "gaps", "loads", "consequences", "outages", "timeline",
	} {
		run(view, "--limit", "0")
		run(view, "--limit", "0", "-o", "json")
		run(view, "--limit", "3", "--since", "2026-11-21T00:00:00Z", "--until", "2026-11-21T02:00:00Z", "--cluster", names[0])
	}
	for _, cluster := range names {
		run("drain-preview", "worker-1", "--cluster", cluster)
		run("limits", "--cluster", cluster)
		run("weekly", "--cluster", cluster)
		run("why", "demo/vm-d", "--cluster", cluster)
		run("why-not", "demo/vm-d", "--cluster", cluster, "--at", "2026-11-21T00:40:00Z")
		run("why", "node", "worker-1", "--cluster", cluster)
		run("why-not", "node", "worker-1", "--cluster", cluster)
		run("whatif", "--cluster", cluster)
		run("advise", "--cluster", cluster, "--weeks", "1")
		run("alerts", "backtest", "--cluster", cluster, "--since", "2026-11-20")
	}
	run("settings", "--cluster", names[0])
	run("search", "vm-d")
	run("clusters")
	run("top")
	run("export", "--dir", t.TempDir())
	run("export", "--dir", t.TempDir(), "--format", "parquet", "--what", "facts,evacuations")
	run("schema", "status")
	run("schema", "validate")
	run("ack", "vm", "demo/nbr-1", "--cluster", "k-blocked-slot", "--for", "1h", "--note", "known", "--author", "anna")
	run("ack", "list")
	s, err := store.Open(t.Context(), database, "")
	require.NoError(t, err)
	defer s.Close()
	crawlPages(t, s)
	oldFacts(t, s, 6)
	leadCluster(t, s)
	drains := &drainForecaster{db: s.DB, cluster: "c-node-drain", trouble: trouble{metrics: metrics.New(prometheus.NewRegistry()), log: slog.New(slog.DiscardHandler)}}
	execSQL(t, database, "UPDATE evictrail.drains SET ended_at = NULL, outcome = NULL") // so that one goes on
	drains.forecastDrains(t.Context(), nowUTC())
	require.Empty(t, drains.said)
	run("verify")
	policy := retention.Policy{Facts: 90 * 24 * time.Hour, Rows: 90 * 24 * time.Hour, Requesters: 24 * time.Hour}
	_, err = retention.Retain(t.Context(), s.DB, policy, nowUTC())
	require.NoError(t, err)
	_, err = s.Upkeep(t.Context(), "")
	require.NoError(t, err)
}

// leadCluster does what replicas do that "evictrail run" starts.
func leadCluster(t *testing.T, s *store.Store) {
	t.Helper()
	facts := storetest.Incident("c2", 3)
	leader, other := s.For("c2", "one"), s.For("c2", "two")
	require.NoError(t, leader.Lead(t.Context(), "this", trail.DefaultThresholds()))
	for _, c := range []*store.ClusterStore{leader, other} {
		_, err := c.Append(t.Context(), facts)
		require.NoError(t, err)
		require.NoError(t, c.Alive(t.Context(), nowUTC(), []trail.Watching{{Source: "nodes", Since: nowUTC().Add(-time.Hour)}}))
		_, err = c.LastWatched(t.Context())
		require.NoError(t, err)
		_, err = c.Moved(t.Context(), storetest.Start)
		require.NoError(t, err)
		require.NoError(t, c.Report(t.Context(), trail.ReplicaReport{State: "recording"}))
	}
	_, _, err := leader.KeepUp(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Resume(t.Context(), "c2", func(trail.Fact) {}))
	_, err = s.Rederive(t.Context(), "c2")
	require.NoError(t, err)
	_, err = s.Condition(t.Context())
	require.NoError(t, err)
	_, err = s.DeriveFailures(t.Context(), 10)
	require.NoError(t, err)
}

// namesInPath matches what differs between pages of one kind.
var namesInPath = regexp.MustCompile(`[\w.-]*\d[\w.-]*`)

// crawlPages fetches a page of each kind: each path with each set of parameters.
func crawlPages(t *testing.T, s *store.Store) {
	t.Helper()
	pages := httptest.NewServer(newReadServer(t.Context(), onlyPrimary(t, s), slog.New(slog.DiscardHandler)).Handler())
	defer pages.Close()
	seen := map[string]bool{}
	next := []string{"/", "/?cluster=k-blocked-slot", "/api/v1/openapi.json"}
	for len(next) > 0 {
		address := next[0]
		next = next[1:]
		u, err := url.Parse(address)
		require.NoError(t, err)
		keys := []string{namesInPath.ReplaceAllString(u.Path, "N")}
		for key := range u.Query() {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if kind := strings.Join(keys, " "); seen[kind] || u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			continue
		} else {
			seen[kind] = true
		}
		next = append(next, fetchPage(t, pages, address).links...)
	}
	require.Greater(t, len(seen), 20)
}

// TestSchemaDistribute prints and refuses on a plain Postgres, and spreads by a stand-in for Citus: status shows what
// lies where.
func TestSchemaDistribute(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	plain, claimed := storetest.NewURL(t), storetest.NewURL(t)
	require.NoError(t, citustest.Claim(t.Context(), claimed))
	code, out, stderr := runCommand(t, "schema", "distribute", "--dry-run", "--shards", "7", "--database-url", plain)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "BEGIN;\nSET LOCAL citus.multi_shard_modify_mode = 'sequential';\n"+
		"SELECT create_distributed_table('evictrail.subjects', 'cluster', colocate_with => 'none', shard_count => 7);\n")
	for _, command := range []string{"distribute", "undistribute"} {
		code, _, stderr = runCommand(t, "schema", command, "--database-url", plain)
		require.Equal(t, exitError, code, stderr)
		require.Contains(t, stderr, "this is a plain Postgres")
		code, _, stderr = runCommand(t, "schema", command, "--database-url", storetest.EmptyURL(t))
		require.Equal(t, exitError, code, stderr)
		require.Contains(t, stderr, "run `evictrail schema up`")
	}
	code, _, stderr = runCommand(t, "schema", "distribute", "--shards", "0", "--database-url", plain)
	require.Equal(t, exitUsage, code, stderr)
	code, out, _ = runCommand(t, "schema", "undistribute", "--dry-run", "--database-url", plain)
	require.Equal(t, exitFound, code)
	require.Equal(t, "no table is distributed\n", out)

	code, out, stderr = runCommand(t, "schema", "distribute", "--database-url", claimed)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "SELECT create_reference_table('evictrail.retention');\n")
	code, out, stderr = runCommand(t, "schema", "status", "--database-url", claimed)
	require.Equal(t, exitFound, code, stderr)
	require.Regexp(t, `Citus: +stand-in, \d+ tables distributed\n`, out)
	require.Regexp(t, `two:5432 +true +true +\d{2}`, out)
	code, out, stderr = runCommand(t, "schema", "undistribute", "--database-url", claimed)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "SELECT undistribute_table('evictrail.subjects');\nCOMMIT;\n")
}
