package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// testIncidents are a loop, a stuck evacuation and a drain of two clusters, in the order of their severity.
func testIncidents() incidents {
	at := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return at.Add(-d) }
	loops := []inClusterOf[trail.Loop]{{cluster: "prod", row: trail.Loop{Kind: trail.LoopDualRetry, Namespace: "shop", VMI: "db-1", Node: "worker-1", OpenedAt: ago(10 * time.Minute), Summary: "Two controllers work against each other."}}}
	evacuations := []inClusterOf[trail.Evacuation]{
		{cluster: "prod", row: trail.Evacuation{Namespace: "shop", VMI: "db-1", Node: "worker-1", MarkedAt: ago(20 * time.Minute), FailedAttempts: 8, NextRetryAt: at.Add(4 * time.Minute)}},
		{cluster: "test", row: trail.Evacuation{Namespace: "ci", VMI: "runner", Node: "worker-7", MarkedAt: ago(time.Hour), FailedAttempts: 2, NextRetryAt: ago(time.Minute), LastFailureClass: trail.FailureDataPlane}},
		{cluster: "test", row: trail.Evacuation{Namespace: "ci", VMI: "fine", Node: "worker-7", MarkedAt: ago(time.Minute), Attempts: 1}},
	}
	drains := []inClusterOf[trail.Drain]{{cluster: "prod", row: trail.Drain{Node: "worker-2", StartedAt: ago(50 * time.Hour), VMIsTotal: 5, VMIsLeft: 1, Requester: "system:serviceaccount:team-a:descheduler", RequesterClass: trail.RequesterServiceAccount}}}
	found := incidents{all: joinIncidents(loops, evacuations, drains), clusters: 3}
	for i := range found.all {
		found.all[i].asOf = at
	}
	sortIncidents(found.all, sortSeverity)
	return found
}

// TestIncidents lists a VM that is in a loop once, with the attempts of its evacuation, and leaves out what goes on as it should.
func TestIncidents(t *testing.T) {
	t.Parallel()
	found := testIncidents()
	text, _ := newIncidentTable(found.all).render(0, false)
	require.Equal(t, `CLUSTER  PROBLEM           VM         NODE      AGE    FAILED  NEXT          SUMMARY
prod     dual retry loop   shop/db-1  worker-1  10m0s  8       in 4m0s       Two controllers work against each other.
test     stuck evacuation  ci/runner  worker-7  1h0m   2       overdue 1m0s  Last failure: data transfer.
prod     drain             -          worker-2  2d 2h  -       -             1 of 5 VMs still on it, requested by team-a/descheduler.
`, text)
	require.Equal(t, "3 problems in 2 of 3 clusters: prod 2, test 1", found.describeSum())
	sortIncidents(found.all, sortAge)
	require.Equal(t, "worker-2", found.all[0].node)
	found = testIncidents()
	found.all[0].ackedBy = "anna"
	sortIncidents(found.all, sortSeverity)
	text, _ = newIncidentTable(found.all).render(0, false)
	require.Regexp(t, `(?s)ci/runner.*worker-2.*shop/db-1 .* Acknowledged by anna\. Two controllers work against each other\.\n$`, text, "what a person knows of comes last")
	require.Equal(t, "No open problems.", incidents{clusters: 1}.describeSum())
	require.Contains(t, incidents{clusters: 1, notices: []string{"x"}}.describeSum(), "not everything is recorded")
}

// TestTopKeys works with top as at a keyboard: every key does what the last line of the screen says.
func TestTopKeys(t *testing.T) {
	t.Parallel()
	m := newTopModel(testIncidents(), sortSeverity, time.Second, terminal{interactive: true, width: 90, height: 12})
	m.ask = func(about incident) (string, error) {
		if about.vm == "" {
			return "", errors.New("the database is away")
		}
		return strings.Repeat("word ", 200) + "\n  evictrail why " + about.vm, nil
	}
	press := func(sent string) (task topTask) {
		for _, key := range parseKeys(sent) {
			task = key.applyTo(m)
		}
		return task
	}
	selected := func() string {
		for line := range strings.Lines(m.renderScreen()) {
			if rest, is := strings.CutPrefix(line, "> "); is {
				return strings.Fields(rest)[1]
			}
		}
		return ""
	}
	for range 3 {
		lines := strings.Split(m.renderScreen(), "\n")
		require.Len(t, lines, 12)
		for _, line := range lines {
			require.LessOrEqual(t, textWidth(line), 90)
		}
		m.on.width -= 10
	}
	m.on.width = 90
	require.Equal(t, "dual", selected())
	press("j\x1b[B\x1bOBj")
	require.Equal(t, "drain", selected())
	press("k")
	require.Equal(t, "stuck", selected())
	press("o")
	require.Contains(t, m.renderScreen(), "o sort: age")
	require.Equal(t, "stuck", selected(), "the same incident stays selected")
	press("o")
	require.Contains(t, m.renderScreen(), "o sort: attempts")

	press("/DRAX\x7fI")
	require.Contains(t, m.renderScreen(), "/DRAI_")
	press("\r")
	require.Equal(t, "drain", selected())
	require.NotContains(t, m.renderScreen(), "stuck")
	task := press("\r")
	require.Contains(t, m.renderScreen(), "worker-2 in prod: drain")
	require.Contains(t, m.renderScreen(), "Looking ...")
	task().applyTo(m)
	require.Contains(t, m.renderScreen(), "the database is away")
	press("q\x1b")
	require.False(t, m.over, "Esc clears the filter first")
	press("gk")
	require.Equal(t, "dual", selected())
	press("\r")().applyTo(m)
	require.NotContains(t, m.renderScreen(), "  evictrail why")
	press("\x1b[6~G")
	require.Contains(t, m.renderScreen(), "\n  evictrail why shop/db-1\n")
	press("\x1b")

	topLoaded{err: errors.New("no answer")}.applyTo(m)
	require.Contains(t, m.renderScreen(), "no answer: shown is what was there before")
	require.Equal(t, "dual", selected())
	found := testIncidents()
	found.all = found.all[1:]
	topLoaded{found: found}.applyTo(m)
	require.NotContains(t, m.renderScreen(), "no answer")
	require.NotContains(t, m.renderScreen(), "dual retry")
	topLoaded{found: incidents{clusters: 2}}.applyTo(m)
	require.Contains(t, m.renderScreen(), "No open problems.")
	require.Nil(t, press("j\r"))
	press("q")
	require.True(t, m.over)
}

// TestTop prints what is open in recordings, by way of the database and of a server; and does not say that nothing is open where nothing is recorded.
func TestTop(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := storetest.NewURL(t)
	code, _, stderr := runCommand(t, "top", "--database-url", url)
	require.Equal(t, exitNotFound, code)
	require.Contains(t, stderr, "nothing is recorded yet")
	playBuiltin(t, url, "c-node-drain")
	playBuiltin(t, url, "k-blocked-slot")
	for _, way := range []string{"--database-url=" + url, "--server=" + serveAPI(t, url)} {
		code, out, stderr := runCommand(t, "top", way)
		require.Equal(t, exitFound, code, stderr)
		require.Equal(t, `1 problem in 1 of 2 clusters: k-blocked-slot 1
CLUSTER         PROBLEM          VM          NODE      AGE    FAILED  NEXT      SUMMARY
k-blocked-slot  dual retry loop  demo/nbr-2  worker-1  2m59s  8       in 4m45s  `+
			"Two controllers work against each other on worker-1: KubeVirt failed 8 times to move demo/nbr-2 (last failure: data transfer, libvirt error) and tries on, while the descheduler asked for the same VM again, once.\n", out)
		code, out, _ = runCommand(t, "top", "--cluster", "c-node-drain", way)
		require.Equal(t, exitFound, code)
		require.Equal(t, "No open problems.\n", out)
		code, _, stderr = runCommand(t, "top", "--cluster", "nope", way)
		require.Equal(t, exitNotFound, code)
		require.Contains(t, stderr, `no cluster named "nope"`)
	}
	f := topFlags{}
	s, err := (&readerFlags{database: databaseFlags{url: url}, changed: func(string) bool { return false }}).openSource(t.Context())
	require.NoError(t, err)
	t.Cleanup(s.Close)
	why, err := f.askWhy(t.Context(), s, incident{cluster: "k-blocked-slot", vm: "demo/nbr-2"})
	require.NoError(t, err)
	require.Contains(t, why, "demo/nbr-2: At 2026-11-21 00:47:41Z the descheduler asked")
	require.Contains(t, why, "\n\nWhat to do:\n")
	require.Contains(t, why, "evictrail why demo/nbr-2 --cluster k-blocked-slot")
}

func TestKeys(t *testing.T) {
	t.Parallel()
	require.Equal(t, []topKey{keyUp, "é", keyEsc, keyPageDown, "q", keyCtrlC}, parseKeys("\x1b[Aé\x1b\x1b[6~\x1b[1;5Cq\x01\x03"))
	require.Equal(t, []topKey{keyEsc}, parseKeys("\x1b"))
	require.Empty(t, parseKeys("\x1b[12"))
	require.Equal(t, "x", fmt.Sprint(parseKeys("\x1bax")[0]))
}
