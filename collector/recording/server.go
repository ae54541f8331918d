package recording

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// ServerOptions say how unkind the server is to its watchers. Zero is never.
type ServerOptions struct {
	CutEvery    int // end each watch after N notifications; the client resumes and misses nothing
	ExpireEvery int // answer all watches 410 Gone at every N-th line; the clients must list again
}

// Server serves a recording as a Kubernetes API, as far as it was released. It is an http.Handler, safe for concurrent
// use; Release is the player's alone.
type Server struct {
	options   ServerOptions
	rec       *Recording
	resources map[string]*resource // by path
	byName    map[string]*resource
	steps     []step                     // one for each line
	cuts      atomic.Int64               // every other one drops the connection
	scrape    atomic.Pointer[ScrapeLine] // what the descheduler's metrics say now; nil before the first
}

// ScrapePath is where the recorded metrics of the descheduler are served.
const ScrapePath = "/metrics/descheduler"

// apis are the resources that are served, by their plural: the path of their group and version, and their kind.
var apis = map[string]struct{ group, kind string }{
	"pods":                             {"/api/v1/", "Pod"},
	"nodes":                            {"/api/v1/", "Node"},
	"events":                           {"/api/v1/", "Event"},
	"kubevirts":                        {"/apis/kubevirt.io/v1/", "KubeVirt"},
	"virtualmachines":                  {"/apis/kubevirt.io/v1/", "VirtualMachine"},
	"virtualmachineinstances":          {"/apis/kubevirt.io/v1/", "VirtualMachineInstance"},
	"virtualmachineinstancemigrations": {"/apis/kubevirt.io/v1/", "VirtualMachineInstanceMigration"},
	"migrationpolicies":                {"/apis/migrations.kubevirt.io/v1alpha1/", "MigrationPolicy"},
	"evictionrequests":                 {"/apis/lifecycle.k8s.io/v1alpha1/", "EvictionRequest"},
	"evictions":                        {"/apis/lifecycle.k8s.io/v1alpha1/", "Eviction"},
	"poddisruptionbudgets":             {"/apis/policy/v1/", "PodDisruptionBudget"},
}

// resource is the state of one resource as far as it was released.
type resource struct {
	kind       string
	apiVersion string

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	ready   bool          // a list was released
	down    bool          // the recorder could not see: requests are refused
	epoch   int           // of breaks: a stream of an older one ends
	gone    bool          // the break that began this epoch is answered as 410
	objects map[string]json.RawMessage
	order   []string // keys in the order of their first sight, so that lists are stable
	version uint64
	oldest  uint64 // a watch from an earlier version gets 410
	log     []notification
	dropped int // notifications that were cut off the front of log
}

// notification is one released line that watchers get.
type notification struct {
	kind    Kind
	version uint64
	object  json.RawMessage
}

// step is what releasing a line does beside its own object.
type step struct {
	completes bool // the last line of a list: the list is now the state
	relists   bool // a break after which the recorder had to list again
	items     []int
}

// NewServer makes a server of which nothing is released yet.
func NewServer(rec *Recording, options ServerOptions) *Server {
	s := &Server{options: options, rec: rec, resources: map[string]*resource{}, byName: map[string]*resource{}}
	recorded := map[string]bool{}
	for _, l := range rec.Lines {
		recorded[l.Resource] = true
	}
	for plural, api := range apis {
		version := strings.Trim(strings.TrimPrefix(strings.TrimPrefix(api.group, "/apis/"), "/api/"), "/")
		r := &resource{kind: api.kind, apiVersion: version, changed: make(chan struct{}), objects: map[string]json.RawMessage{}}
		r.ready, r.version = !recorded[plural], 1
		s.resources[api.group+plural], s.byName[plural] = r, r
	}
	s.steps = planSteps(rec.Lines)
	return s
}

// planSteps looks ahead once: which line ends a list, and after which breaks the recorder had to list again.
func planSteps(lines []Line) []step {
	steps := make([]step, len(lines))
	last := map[string]int{}       // the line before of each resource
	items := map[string][]int{}    // of the list that is being read
	breaking := map[string][]int{} // breaks that wait for what follows them
	for i, l := range lines {
		before, seen := last[l.Resource]
		same := seen && lines[before].Kind.isList() && l.Kind.isList() && lines[before].ListResourceVersion == l.ListResourceVersion
		if seen && lines[before].Kind.isList() && !same {
			steps[before].completes, steps[before].items = true, items[l.Resource]
		}
		if !same {
			items[l.Resource] = nil
		}
		if l.Kind == KindSync {
			items[l.Resource] = append(items[l.Resource], i)
		}
		if l.Kind.isBreak() {
			breaking[l.Resource] = append(breaking[l.Resource], i)
		} else {
			for _, b := range breaking[l.Resource] {
				steps[b].relists = l.Kind.isList()
			}
			breaking[l.Resource] = nil
		}
		last[l.Resource] = i
	}
	for name, i := range last {
		if lines[i].Kind.isList() {
			steps[i].completes, steps[i].items = true, items[name]
		}
	}
	return steps
}

// Position is what a client must have taken to have seen a line.
type Position struct {
	Resource        string
	ResourceVersion string
}

// Release makes line i visible, in the order of the lines, each once. It returns what clients must take to have seen it:
// nothing for a line that no client can see by itself, every resource where all watches were expired with it.
func (s *Server) Release(i int) []Position {
	n := s.options.ExpireEvery
	expiring := n > 0 && (i+1)%n == 0
	at, visible := s.releaseLine(i, expiring)
	switch {
	case expiring:
		return s.expireAll(i)
	case visible:
		return []Position{at}
	}
	return nil
}

// expireAll makes the server forget all versions at line i: watches end with 410 Gone and clients must list. As on an API
// server a list is of the latest version of all resources, but never of one that the resource has yet to reach: its watch
// may lag behind the others', and a client that listed past a notification would miss it.
func (s *Server) expireAll(i int) []Position {
	var latest uint64
	for _, r := range s.byName {
		r.mu.Lock()
		latest = max(latest, r.version)
		r.mu.Unlock()
	}
	ahead := s.findNextVersions(i)
	var out []Position
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		version := latest
		if next, known := ahead[name]; known {
			version = min(latest, next-1)
		}
		if version, done := s.byName[name].expireVersions(version); done {
			out = append(out, Position{name, formatVersion(version)})
		}
	}
	return out
}

// findNextVersions returns the version of the next line after line i of each resource that has one; never 0.
func (s *Server) findNextVersions(i int) map[string]uint64 {
	next := map[string]uint64{}
	for _, l := range slices.Backward(s.rec.Lines[i+1:]) {
		if v := max(parseVersion(l.ListResourceVersion), parseVersion(l.ResourceVersion)); v > 0 {
			next[l.Resource] = v
		}
	}
	return next
}

// releaseLine makes line i part of the state. Where all watches are expired with it, no stream sees it: whether one did would
// be chance.
func (s *Server) releaseLine(i int, expiring bool) (at Position, visible bool) {
	l, step := s.rec.Lines[i], s.steps[i]
	r := s.byName[l.Resource]
	if r == nil {
		return at, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.signalChange()
	switch {
	case step.completes:
		r.applyList(s.rec.Lines, step.items, l.ListResourceVersion)
		return Position{l.Resource, l.ListResourceVersion}, true
	case l.Kind.isList():
		return at, false
	case l.Kind.isBreak():
		r.epoch++
		r.down = r.down || step.relists
		r.gone = r.gone && r.down || l.Kind == KindWatchError && step.relists
		return at, false
	}
	r.ready = true // should the recording begin in the middle of a watch
	r.applyLine(l)
	if expiring { // what was forgotten here already, a stream would send before expire ends it, and its client would list twice
		r.log = r.log[:len(r.log)-1]
	}
	return Position{l.Resource, l.ResourceVersion}, true
}

// applyList makes a list the state: what it does not hold was deleted unseen, and history begins again.
func (r *resource) applyList(lines []Line, items []int, version string) {
	if r.ready {
		r.epoch++
	}
	r.objects, r.order = map[string]json.RawMessage{}, nil
	for _, i := range items {
		r.putObject(lines[i].Key, lines[i].Object)
	}
	r.version = max(r.version, parseVersion(version))
	r.ready, r.down, r.gone = true, false, false
	r.dropHistory()
}

// dropHistory drops the history: a watch can begin at the present version, not before.
func (r *resource) dropHistory() {
	r.dropped += len(r.log)
	r.log, r.oldest = nil, r.version
}

// expireVersions forgets all versions, so that anyone who watches must list. It returns the version of such a list, at least the one
// asked for, and reports whether there was anything to forget.
func (r *resource) expireVersions(version uint64) (listed uint64, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ready || r.down {
		return 0, false
	}
	r.version = max(r.version, version)
	r.dropHistory()
	r.oldest = r.version + 1
	r.epoch++
	r.gone = true
	r.signalChange()
	return r.version, true
}

// admitCurrentVersion makes the present version one to watch from: it was just listed. The lock must be held.
func (r *resource) admitCurrentVersion() { r.oldest = min(r.oldest, r.version) }

func (r *resource) putObject(key string, object json.RawMessage) {
	if _, known := r.objects[key]; !known {
		r.order = append(r.order, key)
	}
	r.objects[key] = object
}

func (r *resource) applyLine(l Line) {
	switch l.Kind {
	case KindDeleted:
		delete(r.objects, l.Key)
		r.order = slices.DeleteFunc(r.order, func(k string) bool { return k == l.Key })
	case KindBookmark:
	default:
		r.putObject(l.Key, l.Object)
	}
	r.version = max(r.version, parseVersion(l.ResourceVersion))
	r.log = append(r.log, notification{l.Kind, parseVersion(l.ResourceVersion), l.Object})
}

// signalChange wakes the streams; the lock must be held.
func (r *resource) signalChange() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// ServeHTTP answers list and watch requests.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r := s.resources[strings.TrimSuffix(req.URL.Path, "/")]
	if r == nil {
		r = s.resourceOfOne(req)
	}
	from := req.URL.Query().Get("resourceVersion")
	switch {
	case req.Method != http.MethodGet:
		writeStatus(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "a recording can only be read")
	case req.URL.Path == "/version":
		writeJSON(w, map[string]string{"major": "1", "minor": "35", "gitVersion": "v1.35.0"})
	case req.URL.Path == ScrapePath:
		s.serveScrape(w)
	case r == nil:
		writeStatus(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case from != "" && !isVersion(from):
		writeStatus(w, http.StatusBadRequest, "BadRequest", "resourceVersion "+strconv.Quote(from)+": expected a number")
	case !r.waitReady(req.Context()):
		writeStatus(w, http.StatusServiceUnavailable, "ServiceUnavailable", "the recorder could not see the API server at this time")
	case isTrue(req, "watch"):
		s.serveWatch(w, req, r)
	default:
		r.serveList(w, req)
	}
}

// Bookmark sends a bookmark to each watch that asked for them, as an API server does about once a minute.
func (s *Server) Bookmark() {
	for _, r := range s.resources {
		r.mu.Lock()
		if r.ready && !r.down {
			r.log = append(r.log, notification{KindBookmark, r.version, encodeJSON(map[string]any{
				"kind": r.kind, "apiVersion": r.apiVersion, "metadata": map[string]any{"resourceVersion": formatVersion(r.version)},
			})})
			r.signalChange()
		}
		r.mu.Unlock()
	}
}

// ReleaseScrape makes scrape i what the descheduler's metrics say.
func (s *Server) ReleaseScrape(i int) { s.scrape.Store(&s.rec.Scrapes[i]) }

func (s *Server) serveScrape(w http.ResponseWriter) {
	now := s.scrape.Load()
	if now == nil {
		writeStatus(w, http.StatusServiceUnavailable, "ServiceUnavailable", "nothing was scraped up to this time")
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = io.WriteString(w, now.Text)
}

// waitReady waits for the first list and reports whether the resource can be served.
func (r *resource) waitReady(ctx context.Context) bool {
	for {
		r.mu.Lock()
		ready, down, changed := r.ready, r.down, r.changed
		r.mu.Unlock()
		if ready || down {
			return !down
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (r *resource) serveList(w http.ResponseWriter, req *http.Request) {
	selects := selectorOf(req)
	r.mu.Lock()
	items := make([]json.RawMessage, 0, len(r.order))
	for _, key := range r.order {
		if selects(r.objects[key]) {
			items = append(items, r.objects[key])
		}
	}
	r.admitCurrentVersion()
	version := r.version
	r.mu.Unlock()
	writeJSON(w, map[string]any{
		"kind": r.kind + "List", "apiVersion": r.apiVersion, "metadata": map[string]string{"resourceVersion": formatVersion(version)}, "items": items,
	})
}

func isTrue(req *http.Request, param string) bool {
	on, err := strconv.ParseBool(req.URL.Query().Get(param))
	return err == nil && on
}

func writeJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// writeStatus answers with a Status, as an API server does.
func writeStatus(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(newStatus(code, reason, message))
}

func newStatus(code int, reason, message string) map[string]any {
	return map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "message": message, "reason": reason, "code": code,
	}
}

func tooOld(asked, oldest uint64) string {
	return fmt.Sprintf("too old resource version: %d (%d)", asked, oldest)
}

func isVersion(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

// parseVersion reads a version that Open has checked.
func parseVersion(text string) uint64 {
	v, _ := strconv.ParseUint(text, 10, 64)
	return v
}

func formatVersion(v uint64) string { return strconv.FormatUint(v, 10) }
