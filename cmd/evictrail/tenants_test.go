package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// rights says what the users of a cluster may see, by the tokens they send: those of "everything" all, others the VMs of namespaces.
type rights struct {
	mu         sync.Mutex
	namespaces map[string][]string // by token
	audiences  map[string]string   // by token, of those that were not made for audience evictrail
	reviews    atomic.Int64        // of tokens
	questions  atomic.Int64        // about rights
}

// everything is a namespace that stands for all of them; scrape is one that stands for the metrics.
const (
	everythingThere = "*"
	scrape          = "/metrics"
)

// setNamespaces says what the user of a token may see from now on.
func (a *rights) setNamespaces(token string, may ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.namespaces[token] = may
}

// ServeHTTP speaks the two APIs by which an API server is asked about callers.
func (a *rights) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Spec       map[string]any `json:"spec"`
		Status     map[string]any `json:"status"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.Method != http.MethodPost {
		http.Error(w, "expected a review", http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r.URL.Path + " " + review.APIVersion + " " + review.Kind {
	case "/apis/authentication.k8s.io/v1/tokenreviews authentication.k8s.io/v1 TokenReview":
		a.reviews.Add(1)
		token := review.Spec["token"].(string)
		review.Status = map[string]any{"authenticated": false, "error": "not one of ours"}
		asked, _ := review.Spec["audiences"].([]any)
		if _, known := a.namespaces[token]; known && a.madeFor(token, asked) {
			review.Status = map[string]any{"authenticated": true, "audiences": asked, "user": map[string]any{"username": "user-of-" + token, "uid": "1", "groups": []string{"system:authenticated"}, "extra": map[string][]string{"a/b": {"c"}}}}
		}
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews authorization.k8s.io/v1 SubjectAccessReview":
		a.questions.Add(1)
		asked := scrape
		if resource, ok := review.Spec["resourceAttributes"].(map[string]any); ok {
			asked, _ = resource["namespace"].(string)
			if asked == "" {
				asked = everythingThere
			}
			if resource["group"] != "kubevirt.io" || resource["resource"] != "virtualmachineinstances" || resource["verb"] != "get" {
				asked = "something else"
			}
		} else if nonResource := review.Spec["nonResourceAttributes"].(map[string]any); nonResource["path"] != "/metrics" || nonResource["verb"] != "get" {
			asked = "something else"
		}
		token := strings.TrimPrefix(review.Spec["user"].(string), "user-of-")
		whole := fmt.Sprint(review.Spec["uid"], review.Spec["groups"], review.Spec["extra"]) == "1[system:authenticated] map[a/b:[c]]"
		review.Status = map[string]any{"allowed": whole && slices.Contains(a.namespaces[token], asked)}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review)
}

// apiServer is the audience of tokens that were made for the API server itself: those that kubectl makes when none is named.
const apiServer = "https://kubernetes.default.svc"

// madeFor reports whether a token was made for one of the audiences that a review asks for; for the API server, where it asks for none.
func (a *rights) madeFor(token string, asked []any) bool {
	audience := cmp.Or(a.audiences[token], "evictrail")
	return slices.Contains(asked, any(audience)) || len(asked) == 0 && audience == apiServer
}

// sharedCluster is the history of a cluster that many tenants share, and what serves it to them.
type sharedCluster struct {
	store   *store.Store
	rights  *rights
	handler http.Handler
	owner   map[string]string // namespace of each name that is one tenant's: of VMs, migrations, and UIDs
	vms     []string          // namespace/name
	nodes   []string
	loops   []trail.Loop
	users   int // that ask everything
}

const tenants = 50

// shareCluster fills a database, and serves it as run does with --auth=kubernetes.
func shareCluster(t *testing.T) *sharedCluster {
	t.Helper()
	const cluster = "shared"
	url := storetest.NewURL(t)
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	tr := tracker.New(cluster)
	var facts []trail.Fact
	history := sim.Shared(6, tenants)
	for _, o := range history.Observations {
		facts = append(facts, tr.Observe(o)...)
	}
	// What a gap says in words may name anything of the cluster.
	facts = append(facts, tr.Observe(tracker.GapObservation{
		Seen: tracker.Seen{At: history.End}, GapReport: trail.GapReport{
			Source: "pods", Key: "1", OpenedAt: history.End.Add(-time.Minute), ClosedAt: history.End, Cause: trail.ReasonRelisted,
			Detail: "the first object that could not be read is one of tenant-1, the last one of tenant-2",
		},
	})...)
	for name, facts := range map[string][]trail.Fact{cluster: facts, "other": facts[:len(facts)/8]} { // no right here names the latter
		_, err = s.Import(t.Context(), name, facts)
		require.NoError(t, err)
		require.NoError(t, s.Alive(t.Context(), name, history.End))
		_, err = s.Rederive(t.Context(), name)
		require.NoError(t, err)
		_, err = s.DeriveStale(t.Context(), name, func(int) {})
		require.NoError(t, err)
	}
	c := &sharedCluster{users: 200, store: s, rights: &rights{namespaces: map[string][]string{}}, owner: map[string]string{}}
	apiserver := httptest.NewServer(c.rights)
	t.Cleanup(apiserver.Close)
	if testing.Short() {
		c.users = 40
	}
	l := listenFlags{listen: "127.0.0.1:0", auth: authKubernetes, audiences: []string{"evictrail"}, serverTokens: string(api.ServerTokensMetrics)}
	log := slog.New(slog.NewTextHandler(prefixed{t, "site: "}, nil))
	gate, err := l.newGate(&rest.Config{Host: apiserver.URL}, onlyPrimary(t, s), func() string { return cluster }, metrics.New(prometheus.NewRegistry()), log)
	require.NoError(t, err)
	answers := newReadServer(t.Context(), onlyPrimary(t, s), log)
	answers.Gate, answers.Failed = gate, func(err error) { t.Log(err) }
	c.handler = answers.Handler()
	for _, p := range queryRows[struct{ Namespace, VMI, Node, UID string }](t, url, "SELECT DISTINCT namespace, vmi, node, vmi_uid AS uid FROM evictrail_v1.placements WHERE cluster = 'shared' ORDER BY 1, 2, 3, 4") {
		c.owner[p.VMI], c.owner[p.UID] = p.Namespace, p.Namespace
		if vm := p.Namespace + "/" + p.VMI; !slices.Contains(c.vms, vm) {
			c.vms = append(c.vms, vm)
		}
		if !slices.Contains(c.nodes, p.Node) {
			c.nodes = append(c.nodes, p.Node)
		}
	}
	for _, m := range queryRows[struct{ Namespace, Migration, UID string }](t, url, "SELECT namespace, migration, migration_uid AS uid FROM evictrail_v1.migrations WHERE cluster = 'shared'") {
		c.owner[m.Migration], c.owner[m.UID] = m.Namespace, m.Namespace
	}
	loops, err := s.ListJSON(t.Context(), trail.ViewLoops, trail.Query{Cluster: cluster})
	require.NoError(t, err)
	for _, row := range loops.Rows {
		var l trail.Loop
		require.NoError(t, json.Unmarshal(row, &l))
		c.loops = append(c.loops, l)
	}
	require.NotEmpty(t, c.loops)
	require.Greater(t, len(c.vms), 200)
	return c
}

// getAs asks as who has a token, from an address of their own; a target with a space and a body behind it is sent it.
func (c *sharedCluster) getAs(t *testing.T, token, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // questions that take long wait for each other
	defer cancel()
	method, path, body := http.MethodGet, target, io.Reader(http.NoBody)
	if before, after, posted := strings.Cut(target, " "); posted {
		method, path, body = http.MethodPost, before, strings.NewReader(after)
	}
	r := httptest.NewRequestWithContext(ctx, method, path, body)
	r.RemoteAddr = "[" + token + "]:1"
	r.Header.Set("Authorization", "Bearer "+token)
	if path == api.AssistantPath {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w
}

var words = regexp.MustCompile(`[a-z0-9][-a-z0-9]*`)

// findNamespaces finds the namespaces whose VMs, migrations or names a text names.
func (c *sharedCluster) findNamespaces(text string) map[string]string {
	found := map[string]string{}
	for _, word := range words.FindAllString(text, -1) {
		if owner, one := c.owner[word]; one {
			found[owner] = word
		} else if strings.HasPrefix(word, "tenant-") {
			found[word] = word
		}
	}
	return found
}

// listTargets returns addresses of every route that a caller can ask, about what is theirs and what is not: those of the document, and the pages.
func (c *sharedCluster) listTargets(t *testing.T, chance *rand.Rand) []string {
	t.Helper()
	var document struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	text := c.getAs(t, "nobody", "/api/v1/openapi.yaml").Body.Bytes()
	require.NoError(t, yaml.Unmarshal(text, &document))
	one := func(of []string) string { return of[chance.IntN(len(of))] }
	about := strings.NewReplacer("{namespace}/{name}", one(c.vms), "{node}", one(c.nodes))
	vm, node, loop := one(c.vms), one(c.nodes), c.loops[chance.IntN(len(c.loops))]
	namespace, name, _ := strings.Cut(vm, "/")
	var out []string
	for path, methods := range document.Paths {
		if _, read := methods["get"]; !read || path == "/livez" || path == "/readyz" || path == "/metrics" || path == "/api/v1/stream" {
			continue // the former are about no VM; the stream has a test of its own
		}
		noun := strings.TrimPrefix(path, "/api/v1/")
		if i := slices.IndexFunc(trail.Views(), func(v trail.View) bool { return v.Noun == noun }); i >= 0 {
			v := trail.Views()[i]
			out = append(out, path+"?limit=60", path+"?format=csv&limit=60&cluster=shared", path+"?cluster=other")
			if v.HasVM() {
				out = append(out, path+"?limit=100&namespace="+namespace, path+"?limit=100&vm="+vm, path+"?limit=100&vm="+name)
			}
			if v.HasNode() {
				out = append(out, path+"?limit=100&node="+node)
			}
			if v.Changed != "" {
				out = append(out, path+"?limit=100&changes-since=1h")
			}
			continue
		}
		switch path {
		case "/api/v1/names":
			for _, kind := range trail.NameKinds() {
				out = append(out, fmt.Sprintf("%s?kind=%s", path, kind), fmt.Sprintf("%s?kind=%s&prefix=%s", path, kind, vm[:len(vm)-1]))
			}
		case "/api/v1/search":
			out = append(out, path+"?q=vm-1", path+"?q="+url.QueryEscape(vm), path+"?cluster=shared&q="+node)
		case "/api/v1/nodes":
			out = append(out, path, path+"?format=csv&name="+node[:len(node)-1], path+"?cluster=other")
		case "/api/v1/whatif/advice":
			short := path + "?weeks=1&learn=1&sweep=node-limit%3D1..2"
			out = append(out, short, short+"&cluster=other")
		case "/api/v1/alerts/backtest":
			short := path + "?rule=EvictrailVMPingPong&since=2026-11-20&until=2026-11-22"
			out = append(out, short, short+"&cluster=other")
		case "/docs", "/api/v1/openapi.yaml":
		default:
			filled := about.Replace(path)
			require.NotContains(t, filled, "{", "a route that this test does not know: say what it is asked")
			out = append(out, filled, filled+"?at=2026-11-21T02:00:00Z&cluster=shared", filled+"?cluster=other")
		}
	}
	out = append(out, assistantTargets(vm, node)...)
	slices.Sort(out)
	span := "&from=2026-11-21T00:00:00Z&to=2026-11-22T00:00:00Z"
	for _, list := range []string{"/vms", "/evacuations", "/migrations", "/requests", "/cooldowns", "/loops"} {
		out = append(out, list, list+"?limit=200&order=oldest&node="+node, list+"?limit=200&namespace="+namespace)
	}
	return append(out, "/nodes", "/nodes?name="+node, "/limits", "/limits?cluster=shared", "/weekly", "/weekly?cluster=shared&weeks=26", "/weekly?namespace="+namespace, "/downtimes", "/drains", "/gaps", "/", "/?cluster=shared&span=24h", "/?cluster=other", "/vms/"+vm, "/nodes/"+node, "/nodes/"+node+"?cluster=shared"+span, "/nodes/"+node+"?cluster=shared&drain=preview", "/loops/"+loop.ID.String(), "/loops/"+loop.ID.String()+"?cluster=other",
		"/backtest", "/backtest?rule=EvictrailVMPingPong&since=2026-11-20&until=2026-11-22",
		"/whatif", "/advice?weeks=1&learn=1&policies=node-limit%3D1", "/whatif?policy=try-once&policy=keep-mark&other=node-limit%3D1&sweep=give-up-after%3D1..3", `/api/v1/whatif {"policies": ["try-once", "keep-mark", "node-limit=1", "base=1h"]}`,
		`/api/v1/whatif {"namespace": "`+namespace+`", "node": "`+node+`"}`, `/api/v1/whatif {"cluster": "other"}`, "/facts?vm="+vm+span, "/facts?node="+node+span, "/search?q=vm-1", "/search?q="+name, "/search?q=kubevirt-evac", "/search?q="+url.QueryEscape(vm), "/search?q="+node, "/nowhere")
}

// TestTenants has those who share a cluster ask about it.
func TestTenants(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	c := shareCluster(t)
	for name, test := range map[string]func(*testing.T, *sharedCluster){
		"see their own": seeTheirOwn, "have pages of their own": havePagesOfTheirOwn, "hear of their own": hearOfTheirOwn,
		"ask as assistants": askAsAssistants, "try alerts": tryAlerts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// seeTheirOwn has two hundred users (in the short form, and by way of a hub, forty) with rights in some of fifty namespaces ask everything that can be asked, and looks for
// the name of anything of a namespace that is not theirs in every answer.
func seeTheirOwn(t *testing.T, c *sharedCluster) {
	t.Helper()
	users := c.users
	var asked, own, refused, foreign atomic.Int64
	var g errgroup.Group
	g.SetLimit(4)
	for n := range users {
		chance := rand.New(rand.NewPCG(7, uint64(n)))
		token := fmt.Sprintf("token%d", n)
		mine := map[string]bool{}
		for len(mine) < n%8 {
			mine[fmt.Sprintf("tenant-%d", 1+chance.IntN(tenants))] = true
		}
		may := []string{"tenant-none"} // of which nothing is recorded
		for namespace := range mine {
			may = append(may, namespace)
		}
		all := n%40 == 39
		if all {
			may = append(may, everythingThere)
		}
		c.rights.setNamespaces(token, may...)
		targets := c.listTargets(t, chance)
		chance.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
		targets = targets[:len(targets)/8] // each is asked by an eighth of the users
		g.Go(func() error {
			for _, target := range targets {
				w := c.getAs(t, token, target)
				for range 5 {
					if w.Code == http.StatusServiceUnavailable { // on a busy machine
						time.Sleep(time.Second)
						w = c.getAs(t, token, target)
					}
				}
				asked.Add(1)
				body := strings.ReplaceAll(w.Body.String(), `\n`, " ") // within JSON, else it would stand before a name
				if w.Code >= http.StatusInternalServerError {
					return fmt.Errorf("%s: %d %s", target, w.Code, body)
				}
				if vary := strings.Join(w.Header().Values("Vary"), ","); !strings.Contains(vary, "Authorization, Cookie") || !strings.HasPrefix(w.Header().Get("Cache-Control"), "private") {
					return fmt.Errorf("%s: others on the way may keep it: Vary %q, Cache-Control %q", target, vary, w.Header().Get("Cache-Control"))
				}
				if len(mine) == 0 && !all {
					if w.Code != http.StatusForbidden {
						return fmt.Errorf("%s: %d for who may see nothing", target, w.Code)
					}
					refused.Add(1)
					continue
				}
				for owner, word := range c.findNamespaces(body) {
					switch {
					case mine[owner]:
						own.Add(1)
					case all:
						foreign.Add(1)
					case !strings.Contains(target, word) && !strings.Contains(target, url.QueryEscape(word)): // what was asked for may be said again
						return fmt.Errorf("%s shows %s, who may see %v, the %s of %s:\n%s", target, token, may, word, owner, extractContext(body, word))
					}
				}
				if w.Code == http.StatusOK && strings.Contains(target, "cluster=other") && strings.TrimSpace(body) != "[]" {
					return fmt.Errorf("%s: of a cluster that was not asked about rights:\n%s", target, body)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	t.Logf("%d answers to %d users: %d times they named what is the user's, %d times all; %d were refused; %d reviews of tokens, %d questions about rights",
		asked.Load(), users, own.Load(), foreign.Load(), refused.Load(), c.rights.reviews.Load(), c.rights.questions.Load())
	require.Greater(t, own.Load(), int64(5*users))
	require.Greater(t, foreign.Load(), int64(users/2), "who may see everything does")
	require.LessOrEqual(t, c.rights.reviews.Load(), int64(users)*4, "one a minute for each")
}

// extractContext returns a word with what stands beside it.
func extractContext(text, word string) string {
	i := strings.Index(text, word)
	return text[max(0, i-200):min(len(text), i+200)]
}

// sinceRecording finds how long ago, by our clock, the recorder stopped, and the newest event was.
var sinceRecording = regexp.MustCompile(`(UTC\n, for|recorder stopped|Last event) \d+ \w+(?: \d+ \w+)?`)

// havePagesOfTheirOwn compares the pages of a node and of a loop on it as who sees the whole cluster, who owns the VM that is stuck, and
// who owns one that was taken instead read them.
func havePagesOfTheirOwn(t *testing.T, c *sharedCluster) {
	t.Helper()
	i := slices.IndexFunc(c.loops, func(l trail.Loop) bool { return l.Kind == trail.LoopDualRetry && l.Counts["other_vms"] >= 2 })
	require.GreaterOrEqual(t, i, 0, "no loop that shows others")
	loop := c.loops[i]
	roles := map[string][]string{"admin": {everythingThere}, "stuck": {loop.Namespace}}
	for _, x := range loop.Evidence {
		if namespace, _, _ := strings.Cut(x.VMI, "/"); namespace != loop.Namespace {
			roles["taken"] = []string{namespace}
		}
	}
	require.Len(t, roles, 3)
	for role, may := range roles {
		c.rights.setNamespaces(role, may...)
		for page, address := range map[string]string{"loop": "/loops/" + loop.ID.String(), "node": "/nodes/" + loop.Node + "?from=" + url.QueryEscape(loop.OpenedAt.Add(-time.Hour).Format(time.RFC3339)) + "&to=" + url.QueryEscape(loop.OpenedAt.Add(time.Hour).Format(time.RFC3339))} {
			w := c.getAs(t, role, address)
			require.Equal(t, http.StatusOK, w.Code, w.Body)
			compareGolden(t, "testdata/access/"+page+"-"+role+".txt", sinceRecording.ReplaceAllString(textOf(t, w.Body), "$1 AGE"))
		}
	}
}

// textOf returns what a page says: a line for each piece of text, but for the times of the moment at which it was made.
func textOf(t *testing.T, page io.Reader) string {
	t.Helper()
	root, err := html.Parse(page)
	require.NoError(t, err)
	var lines []string
	for n := range root.Descendants() {
		if text := strings.Join(strings.Fields(n.Data), " "); n.Type == html.TextNode && text != "" && n.Parent.Data != "script" {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// hearOfTheirOwn compares the tags of lists: they reveal nothing of what changes for others.
func hearOfTheirOwn(t *testing.T, c *sharedCluster) {
	t.Helper()
	namespace, _, _ := strings.Cut(c.vms[0], "/")
	c.rights.setNamespaces("mine", namespace)
	seen := c.store.SeenBy(trail.Only("shared", namespace))
	all, err := c.store.Changes(t.Context(), trail.Query{}, time.Hour)
	require.NoError(t, err)
	own, err := seen.Changes(t.Context(), trail.Query{}, time.Hour)
	require.NoError(t, err)
	require.NotEmpty(t, own)
	require.LessOrEqual(t, len(own), len(all))
	other := c.vms[len(c.vms)-1]
	theirs, name, _ := strings.Cut(other, "/")
	none, err := seen.Changes(t.Context(), trail.Query{Namespace: theirs, VMI: name}, time.Hour)
	require.NoError(t, err)
	require.Empty(t, none)
	tag := c.getAs(t, "mine", "/api/v1/migrations").Header().Get("ETag")
	require.Equal(t, http.StatusNotModified, c.getAs(t, "mine", "/api/v1/migrations", "If-None-Match", tag).Code)
	c.rights.setNamespaces("all", everythingThere)
	require.NotEqual(t, tag, c.getAs(t, "all", "/api/v1/migrations").Header().Get("ETag"))
	require.NotEqual(t, sha256.Sum256(c.getAs(t, "mine", "/").Body.Bytes()), sha256.Sum256(c.getAs(t, "all", "/").Body.Bytes()))
}

// compareGolden compares a text with what stands in a file, or writes it there.
func compareGolden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text, file)
}
