package main

import (
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
)

// findOpenLoop returns the page of the loop about a VM that is open.
func findOpenLoop(t *testing.T, database, vmi string) string {
	t.Helper()
	var found []string
	for _, l := range queryRows[struct{ ID, VMI string }](t, database, "SELECT loop_id::text AS id, vmi FROM evictrail_v1.loops WHERE closed_at IS NULL") {
		if l.VMI == vmi {
			found = append(found, "/loops/"+l.ID)
		}
	}
	require.Len(t, found, 1)
	return found[0]
}

// TestAck acknowledges the problems of a VM and a node on the command line, to the database and by way of a server, and looks at the list, the view
// and the pages.
func TestAck(t *testing.T) {
	t.Parallel()
	url := playedURL(t, "k-blocked-slot")
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	serve := func(l listenFlags) *httptest.Server {
		server := httptest.NewServer(l.newServer(t.Context(), s, onlyPrimary(t, s), slog.New(slog.NewTextHandler(prefixed{t, "site: "}, nil))).Handler())
		t.Cleanup(server.Close)
		return server
	}
	open := serve(listenFlags{auth: authNone, alertmanager: "https://alertmanager.example/"})
	closed := serve(listenFlags{})
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := runCommand(t, args...)
		require.Equal(t, want, code, out+errs)
		return out + errs
	}

	out := run(exitFound, "ack", "vm", "demo/nbr-1", "--note", "disk  array is being\nfixed", "--ticket", "OPS-17", "--author", "anna", "--for", "2d", "--database-url", url)
	require.Regexp(t, `^demo/nbr-1 is acknowledged by anna until \S+ \S+Z: disk array is being fixed\. Ticket OPS-17\nID: \S+\n$`, out)
	id := regexp.MustCompile(`ID: (\S+)`).FindStringSubmatch(out)[1]
	require.Contains(t, run(exitFound, "ack", "node", "worker-1", "--ticket", "javascript:alert(1)", "--author", "ben", "--server", open.URL), "node worker-1 is acknowledged by ben until ")

	listed := run(exitFound, "ack", "list", "--database-url", url)
	require.Contains(t, listed, "disk array is being fixed")
	require.Contains(t, run(exitFound, "ack", "list", "--node", "worker-1", "-o", "csv", "--server", open.URL), "javascript:alert(1)")

	page := fetchPage(t, open, "/vms/demo/nbr-1")
	require.Contains(t, page.text, "Acknowledged by anna until")
	require.Contains(t, page.text, ": disk array is being fixed. Ticket OPS-17")
	require.Contains(t, page.links, "https://alertmanager.example/#/silences/new?filter=%7Bcluster%3D~%22k-blocked-slot%7C%22%2Cnamespace%3D%22demo%22%2Cvmi%3D%22nbr-1%22%7D&comment=disk%20array%20is%20being%20fixed%20OPS-17")
	require.Contains(t, page.text, "Withdraw")
	require.Contains(t, fetchPage(t, open, findOpenLoop(t, url, "nbr-2")).links, "https://alertmanager.example/#/silences/new?filter=%7Bcluster%3D~%22k-blocked-slot%7C%22%2Cnode%3D%22worker-1%22%7D",
		"the alerts about a dual retry loop are about its node")
	require.NotContains(t, fetchPage(t, closed, "/vms/demo/nbr-1").text, "Withdraw", "where nothing is written there is no form")
	require.NotContains(t, fetchPage(t, open, "/vms/demo/nbr-1?at=2026-11-21T00:45:00Z").text, "Acknowledge", "the past is not acknowledged")
	require.Contains(t, fetchPage(t, open, "/").text, "Critical: demo/nbr-2 cannot leave worker-1")
	run(exitFound, "ack", "vm", "demo/nbr-2", "--note", "known", "--author", "dora", "--database-url", url)
	front := fetchPage(t, open, "/").text
	require.Regexp(t, `Info: demo/nbr-2 cannot leave worker-1 .* asked by descheduler\. Acknowledged by dora\.`, front)
	require.Regexp(t, `demo/nbr-2 cannot leave its node: data transfer, libvirt error acknowledged by dora until \S+ \S+ : known\.`, front)
	page = fetchPage(t, open, "/nodes/worker-1")
	require.Contains(t, page.text, "Ticket javascript:alert(1)")
	for _, link := range page.links {
		require.False(t, strings.HasPrefix(link, "javascript:"), link)
	}

	require.Contains(t, run(exitFound, "ack", "withdraw", id, "--author", "carl", "--server", open.URL), "demo/nbr-1 was acknowledged by anna until ")
	require.Contains(t, run(exitNotFound, "ack", "withdraw", id, "--author", "carl", "--database-url", url), "it has ended already")
	require.Contains(t, fetchPage(t, open, "/vms/demo/nbr-1").text, "Acknowledge a problem")

	require.Contains(t, run(exitError, "ack", "vm", "demo/nbr-1", "--note", "known", "--server", closed.URL), "start it with --auth=kubernetes")
	require.Contains(t, run(exitNotFound, "ack", "vm", "demo/nobody", "--note", "known", "--database-url", url), "VM demo/nobody: nothing found")
	require.Contains(t, run(exitUsage, "ack", "vm", "demo/nbr-1", "--database-url", url), "say what is known of the problem")
	require.Contains(t, run(exitUsage, "ack", "vm", "demo/nbr-1", "--note", "known", "--for", "31d", "--database-url", url), "at most 30 days")
	require.Contains(t, run(exitUsage, "ack", "vm", "demo/nbr-1", "--note", "known", "--for", "soon", "--database-url", url), "expected a time such as 8h or 2d")
	require.Contains(t, run(exitUsage, "ack", "withdraw", "x", "--database-url", url), "expected the ID of an acknowledgement")
}
