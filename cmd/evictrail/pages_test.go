package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// document is what a test reads of a page.
type document struct {
	status int
	ids    map[string]int    // how often each is given
	links  []string          // addresses on the page, in its order
	names  map[string]string // the text of the last link to each
	rows   int               // of its tables, without their heads
	text   string            // with single spaces
}

// fetchPage fetches a page.
func fetchPage(t *testing.T, server *httptest.Server, address string) document {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+address, nil)
	require.NoError(t, err)
	answer, err := server.Client().Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	d := document{status: answer.StatusCode, ids: map[string]int{}, names: map[string]string{}}
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		return d
	}
	root, err := html.Parse(answer.Body)
	require.NoError(t, err)
	var text []string
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			text = append(text, strings.Fields(n.Data)...)
		}
		if n.Data == "tr" && n.Parent.Data == "tbody" {
			d.rows++
		}
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				d.ids[a.Val]++
			case "href", "src":
				d.links = append(d.links, a.Val)
				d.names[a.Val] = ""
				for inner := range n.Descendants() {
					if inner.Type == html.TextNode {
						d.names[a.Val] += inner.Data
					}
				}
			}
		}
	}
	d.text = strings.Join(text, " ")
	return d
}

// serveSite plays recordings and serves their pages.
func serveSite(t *testing.T, names ...string) (databaseURL string, server *httptest.Server) {
	t.Helper()
	databaseURL = playedURL(t, names...)
	s, err := store.Open(t.Context(), databaseURL, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	log := slog.New(slog.NewTextHandler(prefixed{t, "site: "}, nil))
	server = httptest.NewServer(newReadServer(t.Context(), onlyPrimary(t, s), log).Handler())
	t.Cleanup(server.Close)
	return databaseURL, server
}

// TestPagesLeadToEvidence follows every link from the front page on, through all recordings: each page is there, and each fact that
// a link points at is on the page that it leads to.
func TestPagesLeadToEvidence(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	names := storetest.Sample(listRecordings(t))
	_, server := serveSite(t, names...)
	seen, stepped, facts := map[string]document{}, map[string]bool{}, 0
	var follow func(from, link string, moved bool)
	follow = func(from, link string, moved bool) {
		u, err := url.Parse(link)
		require.NoError(t, err)
		if document, ours := strings.CutPrefix(link, "https://github.com/evictrail/evictrail/blob/main/"); ours {
			require.FileExists(t, filepath.Join("../..", document), "linked from %s", from)
			return
		}
		if strings.HasPrefix(u.Path, "/docs") || strings.HasPrefix(u.Path, "/api/") || u.Path == "" {
			return // they have tests of their own
		}
		chosen := u.Path != "/facts" && slices.ContainsFunc([]string{"from", "since", "order", "page", "ended-since"}, u.Query().Has)
		if chosen && (moved || stepped[u.Path]) {
			return // one step along the time, or along a list, is enough
		}
		stepped[u.Path] = stepped[u.Path] || chosen
		address := u.EscapedPath()
		if u.RawQuery != "" {
			address += "?" + u.RawQuery
		}
		page, known := seen[address]
		if !known {
			page = fetchPage(t, server, address)
			seen[address] = page
			require.Equal(t, http.StatusOK, page.status, "%s, linked from %s", address, from)
			for id, n := range page.ids {
				require.Equal(t, 1, n, "id %s of %s", id, address)
			}
		}
		if u.Fragment != "" {
			require.Contains(t, page.ids, u.Fragment, "%s, linked from %s", link, from)
			facts++
		}
		if known {
			return
		}
		for _, next := range page.links {
			follow(address, next, chosen)
		}
	}
	follow("", "/", false)
	kinds := map[string]int{}
	for address := range seen {
		kind, _, _ := strings.Cut(strings.TrimPrefix(address, "/"), "/")
		kind, _, _ = strings.Cut(kind, "?")
		kinds[kind]++
	}
	t.Logf("%d pages, %d links to single facts: %v", len(seen), facts, kinds)
	require.Greater(t, kinds["vms"], 4*len(names))
	require.Greater(t, kinds["nodes"], 2*len(names))
	require.Greater(t, kinds["loops"], len(names))
	require.Greater(t, facts, 100*len(names))
}

// countInLink finds the number in a link to what it counts: in a table "3", at a bar "2026-11-21 00:31:00 to 00:32:00: 3 moved, ...".
var countInLink = regexp.MustCompile(`(?:^|: )(\d+)(?:$| )`)

// TestFrontPageLeadsSomewhere reads the front page of clusters that have an open loop, a loop that is over, none at all, and those of all clusters:
// each says first how it stands, then what is or was wrong, with VM, node and who asked, and counts lead to what they count.
func TestFrontPageLeadsSomewhere(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	_, server := serveSite(t, "k-blocked-slot", "b-dual-retry-loop-v1.8", "c-node-drain", "d-external-strategy")
	for _, c := range []struct {
		cluster string
		says    []string
		links   []string // the beginnings of addresses
	}{
		{"k-blocked-slot", []string{
			"Critical: demo/nbr-2 cannot leave worker-1 (data transfer, libvirt error). For 22 min, 8 failed attempts, asked by descheduler.", "Incidents (1)",
			"over its threshold of 35 %", "dual retry loop (descheduler forgets requests)", "What to do", "Migration failed, 8 times", "8 × data transfer, libvirt error",
			"Recorded since 2026-11-21 00:47:37 : what happened before is not known.", "Each bar: 1 min, from its start",
		}, []string{"#incidents", "/loops/", "/vms/demo/nbr-2", "/nodes/worker-1", "/migrations?cluster=k-blocked-slot&ended-since=2026-11-21T00%3A"}},
		{"b-dual-retry-loop-v1.8", []string{
			"Warning: Nothing is open at the end of the recording, but in the last 1 h: 1 loop closed (dual retry loop of demo/vm-d); " +
				"5 of 13 migrations failed (demo/vm-d), moved later; 1 needless move (demo/vm-d)",
			"No open loops. No stuck evacuations.", "To check, and to prevent",
			"worker-2 went over the descheduler's threshold when VMs came (demo/vm-d)", "Loop closed: dual retry loop",
			"Moved without need, and overloaded its target", "Then: demo/vm-e left worker-2 16 s later",
		}, []string{"/loops/", "/vms/demo/vm-d", "/nodes/worker-2"}},
		{"c-node-drain", []string{
			"Warning: Nothing is open at the end of the recording, but in the last 1 h: " +
				"2 VMs shut down or lost (demo/ifposs-1, demo/batch-1): evicted on worker-2, asked by kubernetes-admin (kubectl); " +
				"1 of 4 migrations failed (demo/web-3), moved later.",
			"Drain: emptied – worker-2 kubernetes-admin (kubectl) 6 of 6 VMs gone, 2 of them shut down or lost, 3 moved",
			"the VM was shut down, not moved, as its strategy is None; it started again on", "To prevent it Have KubeVirt move it when it is evicted",
		}, []string{"/vms/demo/ifposs-1", "/nodes/worker-2"}},
		{"d-external-strategy", []string{"Warning: Nothing is open at the end of the recording, but in the last 1 h: " +
			"2 evacuations ended without a move (demo/ext-2, demo/ext-1).", "Evacuation without a move: cancelled",
			"its eviction strategy External leaves the move to its owner; cancelled by alice",
			"demo/ext-1 was shut down on worker-1 at 2026-11-21 00:44:11Z, not moved: descheduler had asked to evict it at 2026-11-21 00:42:49Z",
			"Who deleted its VMI is not recorded; it started again on worker-3"}, []string{"/vms/demo/ext-2", "/vms/demo/ext-1"}},
	} {
		page := fetchPage(t, server, "/?cluster="+c.cluster)
		for _, text := range c.says {
			require.Contains(t, page.text, text, c.cluster)
		}
		for _, link := range c.links {
			require.True(t, slices.ContainsFunc(page.links, func(l string) bool { return strings.HasPrefix(l, link) }), "%s has no link to %s", c.cluster, link)
		}
		for _, words := range []string{"on its way", "system:serviceaccount"} {
			require.NotContains(t, page.text, words, c.cluster)
		}
	}
	for cluster, want := range map[string]int{"k-blocked-slot": 3, "b-dual-retry-loop-v1.8": 6, "c-node-drain": 4} {
		links := 0 // numbers and bars
		page := fetchPage(t, server, "/?cluster="+cluster)
		for address, name := range page.names {
			number := countInLink.FindStringSubmatch(name)
			if !strings.HasPrefix(address, "/migrations?") || !strings.Contains(address, "outcome=") {
				continue
			}
			require.NotNil(t, number, "%s: %s", address, name)
			require.Equal(t, number[1], strconv.Itoa(fetchPage(t, server, address).rows), "%s: %s", address, name)
			links++
		}
		require.GreaterOrEqual(t, links, want, cluster)
	}
	fleet := fetchPage(t, server, "/")
	require.Contains(t, fleet.text, "Clusters: 4 of 4 need attention")
	for _, over := range []string{
		"c-node-drain Replayed 0 0 0 – 2026-11-21 00:36:58 In the last 1 h: 2 VMs shut down or lost (demo/ifposs-1, demo/batch-1): evicted on worker-2",
		"In the last 1 h: 2 evacuations ended without a move (demo/ext-2, demo/ext-1).",
	} {
		require.Contains(t, fleet.text, over)
	}
	require.Regexp(t, "Worst k-blocked-slot Replayed 1 1 0 22 min", fleet.text, "the worst is the first")
	long := fetchPage(t, server, "/?cluster=k-blocked-slot&span=31d")
	require.Contains(t, long.text, "None in the last 31d, recorded since 2026-11-21 00:47:37")
}

// TestFrontPageOfThePast looks at clusters as of moments before: what was open then is open again, with the attempts up to then, and links lead to pages of that moment.
func TestFrontPageOfThePast(t *testing.T) {
	t.Parallel()
	_, server := serveSite(t, "b-dual-retry-loop-v1.8", "c-node-drain")
	const loop = "/?cluster=b-dual-retry-loop-v1.8"
	then := fetchPage(t, server, loop+"&at=2026-11-21T00:35:00Z")
	for _, text := range []string{
		"You are looking at 2026-11-21 00:35:00 UTC", "Critical: demo/vm-d cannot leave worker-1 (data transfer, no progress)", "3 failed attempts, asked by descheduler.",
		"1 open loop 1 stuck evacuation", "Attempts 3 of 3 failed", "What was to do then",
	} {
		require.Contains(t, then.text, text)
	}
	require.NotContains(t, then.text, "In cooldown or backoff")
	require.Contains(t, then.links, "/vms/demo/vm-d?cluster=b-dual-retry-loop-v1.8&at=2026-11-21T00%3A35%3A00Z")
	require.Contains(t, then.links, loop, "back to now")
	require.Contains(t, fetchPage(t, server, loop).text, "Nothing is open at the end of the recording")
	later := fetchPage(t, server, loop+"&at=2026-11-21T00:44:30Z").text
	require.Regexp(t, "Nothing is open at that time, but in the last 1 h: .*5 of 9 migrations failed", later)
	require.Contains(t, fetchPage(t, server, loop+"&at=2026-11-20T00:00:00Z").text, "Not known whether all is well: the cluster is not fully recorded.")
	require.Regexp(t, `worker-2: .*[1-5] of 6 VMs still on it`, fetchPage(t, server, "/?cluster=c-node-drain&at=2026-11-21T00:34:20Z").text, "a drain is as far as it was")
	require.Equal(t, http.StatusBadRequest, fetchPage(t, server, "/?at=2026-11-21T00:35:00Z").status, "of all clusters there is no past")

	vm := fetchPage(t, server, "/vms/demo/vm-d?cluster=b-dual-retry-loop-v1.8&at=2026-11-21T00:35:00Z")
	require.Regexp(t, `Then and now .*Status On worker-1 .* On worker-2 .* Verdict The last attempt was needed: worker-1 was at .* The move was not needed, and made worker-2 worse: worker-1 was at 40 %`, vm.text)
	vm = fetchPage(t, server, "/vms/demo/vm-d?cluster=b-dual-retry-loop-v1.8&at=2026-11-21T00:35:00Z&with=2026-11-21T00:33:30Z")
	require.Regexp(t, `Then and later About 2026-11-21 00:33:30 UTC 2026-11-21 00:35:00 UTC`, vm.text, "the earlier moment comes first")
	node := fetchPage(t, server, "/nodes/worker-2?cluster=b-dual-retry-loop-v1.8&at=2026-11-21T00:33:00Z")
	require.Regexp(t, `Then and now .* VMs .* demo/vm-d`, node.text)
	require.NotContains(t, fetchPage(t, server, "/nodes/worker-2?cluster=b-dual-retry-loop-v1.8").text, "Then and")
}

// TestManyIncidents makes many evacuations stuck for a cause: the page has the first ten of them, grouped, and leads to all. One that is marked without an
// attempt is shown, too.
func TestManyIncidents(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	address, server := serveSite(t, "k-blocked-slot")
	db, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
	const copies = `
INSERT INTO evictrail.evacuations
SELECT (jsonb_populate_record(e, jsonb_build_object('subject', 'vmi:demo/copy-' || n, 'vmi', 'copy-' || n, 'attempts', $2::int, 'failed_attempts', $2::int, 'evacuation_id', gen_random_uuid()))).*
FROM evictrail.evacuations AS e, generate_series(1, $1::int) AS n
WHERE e.ended_at IS NULL AND e.vmi = 'nbr-2'`
	_, err = db.Exec(t.Context(), copies, 17, 4)
	require.NoError(t, err)
	page := fetchPage(t, server, "/?cluster=k-blocked-slot")
	for _, text := range []string{"18 VMs cannot leave their nodes. Cause: data transfer, libvirt error. Oldest: demo/nbr-2, 22 min.", "Incidents (18)", "18 VMs cannot leave their nodes: data transfer, libvirt error", "Show all 18"} {
		require.Contains(t, page.text, text)
	}
	require.Equal(t, 10, strings.Count(page.text, "What to do"))
	require.Equal(t, 18, strings.Count(fetchPage(t, server, "/?cluster=k-blocked-slot&incidents=all").text, "What to do"))

	_, err = db.Exec(t.Context(), "DELETE FROM evictrail.evacuations WHERE vmi LIKE 'copy-%'")
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), copies, 1, 0)
	require.NoError(t, err)
	require.Contains(t, fetchPage(t, server, "/?cluster=k-blocked-slot").text, "Also: demo/copy-1 is marked to leave its node, without an attempt.")
}

// TestPagesSayWhatTheCommandSays compares the words of why and why-not on the pages with those of the commands.
func TestPagesSayWhatTheCommandSays(t *testing.T) {
	t.Parallel()
	databaseURL, server := serveSite(t, "b-dual-retry-loop-v1.8", "c-node-drain")
	for _, vm := range []string{"demo/vm-d", "demo/vm-a", "demo/web-3", "demo/db-local"} {
		var why trail.Answer
		var not trail.NotAnswer
		answerOf(t, &why, "why", vm, "--database-url", databaseURL)
		answerOf(t, &not, "why-not", vm, "--database-url", databaseURL)
		page := fetchPage(t, server, "/vms/"+vm+"?evidence=500")
		require.Contains(t, page.text, oneLine(why.Paragraph))
		for _, l := range why.Brief.Lines() {
			require.Contains(t, page.text, l.Label+" "+oneLine(l.Text))
		}
		require.Contains(t, page.text, oneLine(not.Paragraph))
		for _, l := range why.Evidence {
			require.Contains(t, page.text, oneLine(l.Sentence))
		}
	}
	var not trail.NotAnswer
	answerOf(t, &not, "why-not", "node", "worker-2", "--cluster", "c-node-drain", "--database-url", databaseURL)
	require.Contains(t, fetchPage(t, server, "/nodes/worker-2?cluster=c-node-drain").text, oneLine(not.Paragraph))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func answerOf(t *testing.T, into any, args ...string) {
	t.Helper()
	code, out, stderr := runCommand(t, append(args, "-o", "json")...)
	require.Equal(t, exitFound, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(out), into))
}

// TestHeldBackIsDrawn compares the lane of what held a VM back on its page without and with a span of time in the address.
func TestHeldBackIsDrawn(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	_, server := serveSite(t, "b-dual-retry-loop-v1.8")
	drawn := func(page document) int { return strings.Count(page.text, "KubeVirt's backoff of ") }
	page := fetchPage(t, server, "/vms/demo/vm-d")
	i := slices.IndexFunc(page.links, func(l string) bool { return strings.HasPrefix(l, "/vms/demo/vm-d?") && strings.Contains(l, "from=") })
	require.GreaterOrEqual(t, i, 0)
	from := page.links[i:]
	i = slices.IndexFunc(from, func(l string) bool {
		u, err := url.Parse(l)
		return err == nil && u.Query().Get("from") < "2026-11-21T00:30"
	})
	require.GreaterOrEqual(t, i, 0, "one that zooms out")
	require.Equal(t, 5, drawn(fetchPage(t, server, from[i])))
	require.Equal(t, 5, drawn(page))
}

// TestLongLoopsAreDrawnFromTheirEnd makes a recorded loop three days longer: its page draws the last day, and leads to the whole.
func TestLongLoopsAreDrawnFromTheirEnd(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	address, server := serveSite(t, "b-dual-retry-loop")
	db, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
	var id string
	require.NoError(t, db.QueryRow(t.Context(), "SELECT loop_id FROM evictrail_v1.loops WHERE kind = 'dual_retry' LIMIT 1").Scan(&id))
	page := "/loops/" + id + "?cluster=b-dual-retry-loop"
	const part = "This is a part of it"
	require.NotContains(t, fetchPage(t, server, page).text, part)

	_, err = db.Exec(t.Context(), "UPDATE evictrail.loops SET opened_at = opened_at - interval '3 days' WHERE loop_id = $1", id)
	require.NoError(t, err)
	long := fetchPage(t, server, page)
	require.Contains(t, long.text, part)
	whole := slices.IndexFunc(long.links, func(l string) bool { return strings.HasPrefix(l, "/loops/"+id) && strings.Contains(l, "from=") })
	require.GreaterOrEqual(t, whole, 0)
	all := fetchPage(t, server, long.links[whole])
	require.Equal(t, http.StatusOK, all.status)
	require.NotContains(t, all.text, part)
}

// TestPagesRefuse asks for what is not there, and wrongly.
func TestPagesRefuse(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	_, server := serveSite(t, "b-dual-retry-loop", "b-dual-retry-loop-v1.8")
	for _, c := range []struct {
		name, address string
		status        int
		says          string
	}{
		{"a VM that nobody knows", "/vms/demo/nobody", http.StatusNotFound, "Search for a part of its name."},
		{"a node that nobody knows", "/nodes/nowhere", http.StatusNotFound, "No record of"},
		{"a VM in two clusters", "/vms/demo/vm-d", http.StatusMultipleChoices, "Which one do you mean?"},
		{"facts of a VM in two clusters", "/facts?vm=demo/vm-d", http.StatusMultipleChoices, "Which one do you mean?"},
		{"a cluster that nobody knows", "/?cluster=none", http.StatusNotFound, "No record of"},
		{"no time", "/vms/demo/vm-d?cluster=b-dual-retry-loop&from=yesterday", http.StatusBadRequest, `from="yesterday": expected a time`},
		{"a time that ends before it begins", "/vms/demo/vm-d?cluster=b-dual-retry-loop&from=2026-11-21T01:00:00Z&to=2026-11-21T00:00:00Z", http.StatusBadRequest, "expected at least"},
		{"no span", "/?cluster=b-dual-retry-loop&span=ever", http.StatusBadRequest, "expected 1h, 6h"},
		{"no loop", "/loops/one", http.StatusBadRequest, "expected a UUID"},
		{"a loop that nobody knows", "/loops/00000000-0000-8000-8000-000000000000", http.StatusNotFound, "No record of"},
		{"facts of nobody", "/facts", http.StatusBadRequest, "expected vm=NAMESPACE/NAME or node=NAME"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			page := fetchPage(t, server, c.address)
			require.Equal(t, c.status, page.status)
			require.Contains(t, page.text, c.says)
		})
	}
	for _, text := range []string{`"><script src=x></script>`, `<img src=x onerror=alert(1)>`, `'"></title><a href=x>`} {
		for _, address := range []string{"/search?q=", "/?cluster=", "/vms/demo/vm-d?cluster=", "/loops/x?cluster=", "/facts?vm="} {
			require.NotContains(t, fetchPage(t, server, address+url.QueryEscape(text)).links, "x", "%s%s: what is asked becomes no part of the page", address, text)
		}
	}
}

// TestLongRetriesStayShort makes the attempts of a recorded VM 250: its page shows the newest singly and folds those before them, and says how many lines of
// evidence it leaves out.
func TestLongRetriesStayShort(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	address, server := serveSite(t, "k-blocked-slot")
	const more = `INSERT INTO evictrail.migrations SELECT (jsonb_populate_record(m, jsonb_build_object(
		'migration_uid', 'u' || n, 'attempt', 8 + n, 'created_at', m.created_at + n * interval '1 millisecond'))).*
		FROM evictrail.migrations AS m, generate_series(1, 241) AS n WHERE m.vmi = 'nbr-2' AND m.attempt = 8`
	execSQL(t, address, more)
	page := fetchPage(t, server, "/vms/demo/nbr-2")
	require.Equal(t, http.StatusOK, page.status)
	require.Equal(t, 10, strings.Count(page.text, " descheduler observed "), "rows of single attempts")
	require.Contains(t, page.text, "Attempts 1-240: 240 × data transfer, libvirt error, first ")
	require.Regexp(t, `The latest 20 lines; \d+ earlier ones are left out. Show more`, page.text)
	require.NotContains(t, fetchPage(t, server, "/vms/demo/nbr-2?evidence=100").text, "left out")
	require.Equal(t, http.StatusBadRequest, fetchPage(t, server, "/vms/demo/nbr-2?evidence=all").status)
}
