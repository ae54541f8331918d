package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestBacktestPage tries alerts on history on a page and over the API, with the figures of the command.
func TestBacktestPage(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	database, server := serveSite(t, "b-dual-retry-loop-v1.8", "g-churn-cooldown")
	const cluster = "g-churn-cooldown"
	const period = "&since=2026-11-20&until=2026-11-21T00%3A42%3A54Z&step=15s"

	blank := fetchPage(t, server, "/backtest?cluster="+cluster)
	require.Equal(t, http.StatusOK, blank.status)
	require.Zero(t, blank.rows, "it replays when it is asked to")
	require.Contains(t, blank.text, "Replay to see which alerts would have fired.")
	require.Contains(t, fetchPage(t, server, "/?cluster="+cluster).links, "/backtest?cluster="+cluster)
	require.Contains(t, fetchPage(t, server, "/whatif?cluster="+cluster).links, "/backtest?cluster="+cluster)

	all := fetchPage(t, server, "/backtest?cluster="+cluster+period)
	require.Equal(t, http.StatusOK, all.status)
	a := askBacktest(t, database, server.URL, "cluster="+cluster+period)
	variants := 0
	for _, r := range a.Rules {
		fired := false
		for _, v := range r.Variants {
			fired = fired || v.Count > 0
		}
		if fired {
			variants += len(r.Variants)
			continue
		}
		require.Contains(t, all.text, r.Alert+" ("+r.Severity+")", "never fired")
	}
	require.Positive(t, variants)
	require.Equal(t, variants, all.rows)
	require.Contains(t, all.text, "EvictrailVMPingPong")
	for _, n := range a.NotInHistory {
		require.Contains(t, all.text, n.Alert)
		require.Contains(t, all.text, n.Reason)
	}
	one := "/backtest?cluster=" + cluster + "&rule=EvictrailVMPingPong&since=2026-11-20&step=15s" +
		"&until=2026-11-21T00%3A42%3A54Z"
	require.Contains(t, all.links, one, "leads to the firings")

	named := fetchPage(t, server, one+"&threshold=1")
	a = askBacktest(t, database, server.URL, strings.TrimPrefix(one, "/backtest?")+"&threshold=1")
	require.Len(t, a.Rules, 1)
	require.Len(t, a.Rules[0].Variants, 2, "present, 1 in place of 2")
	require.NotEmpty(t, a.Rules[0].Firings)
	require.Equal(t, 2+len(a.Rules[0].Firings), named.rows)
	require.Contains(t, named.text, "1 in place of 2")
	for _, f := range a.Rules[0].Firings {
		require.Contains(t, named.text, f.FiredAt.Format("2006-01-02 15:04:05"))
		require.NotEmpty(t, f.Causes)
		require.Contains(t, named.text, f.Causes[0].Describe())
		namespace, vm := f.VM()
		link := "/vms/" + namespace + "/" + vm + "?at=" + url.QueryEscape(f.FiredAt.Format("2006-01-02T15:04:05Z")) +
			"&cluster=" + cluster
		require.Contains(t, named.links, link)
		require.Equal(t, http.StatusOK, fetchPage(t, server, link).status)
	}
	require.Contains(t, named.text, "evictrail alerts backtest --cluster "+cluster+" --since 2026-11-20")

	week := fetchPage(t, server, "/backtest?rule=EvictrailVMPingPong&until=2026-11-21T00%3A42%3A54Z&cluster="+cluster)
	require.Contains(t, week.text, "evictrail alerts backtest --cluster "+cluster+" --since 2026-11-14T00:42:54Z --until",
		"by default the command replays more than a week")

	choose := fetchPage(t, server, "/backtest?since=2026-11-20")
	require.Equal(t, http.StatusMultipleChoices, choose.status)
	none := fetchPage(t, server, "/backtest?cluster=nope&since=7d")
	require.Equal(t, http.StatusNotFound, none.status)
	empty := fetchPage(t, server, "/backtest?cluster="+cluster+"&since=2020-01-01&until=2020-01-02")
	require.Contains(t, empty.text, "Nothing was recorded in that time.")
	wrong := fetchPage(t, server, "/backtest?rule=Nope&cluster="+cluster)
	require.Equal(t, http.StatusBadRequest, wrong.status)
	require.Contains(t, wrong.text, `Rule: no alert is named "Nope"; there are: EvictrailDualRetryLoop, `)
	require.Contains(t, wrong.text, "Replay", "the form can be changed")
}

// askBacktest asks the API, and requires that the command has the same answer, to the byte.
func askBacktest(t *testing.T, database, server, query string) (a backtest.Answer) {
	t.Helper()
	status, body := getBacktest(t, server, query)
	require.Equal(t, http.StatusOK, status, body)
	args := []string{"alerts", "backtest", "-o", "json", "--database-url", database}
	values, err := url.ParseQuery(query)
	require.NoError(t, err)
	for name := range values {
		args = append(args, "--"+name, values.Get(name))
	}
	code, out, stderr := runCommand(t, args...)
	require.Equal(t, exitFound, code, stderr)
	require.Equal(t, out, body)
	require.NoError(t, json.Unmarshal([]byte(body), &a))
	return a
}

func getBacktest(t *testing.T, server, query string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server+"/api/v1/alerts/backtest?"+query, http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

// TestBacktestProblems asks the API what it refuses, each with what to do.
func TestBacktestProblems(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	_, server := serveSite(t, "b-dual-retry-loop-v1.8", "g-churn-cooldown")
	for query, says := range map[string]string{
		"rule=Nope":                                  `rule: no alert is named \"Nope\"; there are: EvictrailDualRetryLoop, `,
		"rule=EvictrailVMPingPong,":                  `rule \"\": expected the name of an alert`,
		"threshold=3":                                "threshold: say of which alert, with one rule",
		"threshold=x&rule=EvictrailVMPingPong":       `threshold \"x\": expected a number, or PRESENT=OTHER such as`,
		"threshold=1%3DInf&rule=EvictrailVMPingPong": `threshold \"1=Inf\": expected a number`,
		"threshold=5&rule=EvictrailEvacuationStuck":  "has several thresholds (3, 2100): say which, as in 3=5",
		"threshold=7%3D5&rule=EvictrailVMPingPong":   "compares nothing to 7; its thresholds: 2",
		"for=soon": `for \"soon\": expected a duration such as 30s, 15m or 1h`,
		"step=1s":  "step 1s: expected 10s to 5m",
		"step=10s&since=2026-11-01&until=2026-11-21":   "step 10s: expected 29s or more for so long a time",
		"evacuation-target=50":                         "evacuation-target 50: expected 95 to 99.99",
		"since=2026-10-01&until=2026-11-21":            "at most 31 days can be asked about at once",
		"since=2026-11-21&until=2026-11-20":            "expected a time before until",
		"since=yesterday":                              "since ",
		"rule=EvictrailVMPingPong&rule=EvictrailNope":  "rule is given 2 times: give it once",
		"alert=EvictrailVMPingPong":                    `there is no parameter \"alert\" here`,
		"rule=EvictrailVMPingPong&for=1m,2m&threshold": "threshold is empty",
	} {
		status, body := getBacktest(t, server.URL, query)
		require.Equal(t, http.StatusBadRequest, status, query)
		require.Contains(t, body, says, query)
	}
	status, body := getBacktest(t, server.URL, "since=2026-11-20")
	require.Equal(t, http.StatusConflict, status, body)
	status, body = getBacktest(t, server.URL, "cluster=nope")
	require.Equal(t, http.StatusNotFound, status, body)
	status, body = getBacktest(t, server.URL, "cluster=g-churn-cooldown&since=2020-01-01&until=2020-01-02")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, "nothing was recorded of g-churn-cooldown from ")
	status, body = getBacktest(t, server.URL, "cluster=g-churn-cooldown&since=1m")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, "g-churn-cooldown is known up to 2026-11-21 ")
}

// tryAlerts has a tenant, and who may see the whole cluster, try alerts on its history.
func tryAlerts(t *testing.T, c *sharedCluster) {
	t.Helper()
	namespace, _, _ := strings.Cut(c.vms[0], "/")
	c.rights.setNamespaces("tries-some", namespace)
	c.rights.setNamespaces("tries-all", everythingThere)
	const asks = "?rule=EvictrailVMPingPong&since=2026-11-20&until=2026-11-22"
	const refusal = "history: nothing found that you may see: it is of all namespaces of shared, and you may see some"
	w := c.getAs(t, "tries-some", "/api/v1/alerts/backtest"+asks)
	require.Equal(t, http.StatusNotFound, w.Code, w.Body)
	require.Contains(t, w.Body.String(), refusal)
	w = c.getAs(t, "tries-some", "/backtest"+asks)
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "Alerts speak of a whole cluster, and you may see only some of its namespaces.")
	require.NotContains(t, w.Body.String(), "<table")
	w = c.getAs(t, "tries-some", assistantTarget("backtest", `{"rule": "EvictrailVMPingPong", "since": "2026-11-20"}`))
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), refusal)
	require.Contains(t, w.Body.String(), `"isError":true`)

	for _, target := range []string{"/api/v1/alerts/backtest" + asks, "/backtest" + asks} {
		w = c.getAs(t, "tries-all", target)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.Contains(t, w.Body.String(), "EvictrailVMPingPong")
	}
	_, err := c.store.SeenBy(trail.Only("shared", namespace)).Rewind(t.Context(), "shared", c.loops[0].OpenedAt,
		c.loops[0].OpenedAt.AddDate(0, 0, 1))
	require.ErrorIs(t, err, trail.ErrNotFound)
}
