package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// etcd is a cluster whose state can be put back. It answers as a kube-apiserver does, also to a watch from a resourceVersion that it has not come to: that waits.
type etcd struct {
	mu      sync.Mutex
	uid     string                    // of kube-system
	version int                       // of the latest change
	refuses bool                      // everything
	ends    string                    // the resource whose watch ends next; empty: none does
	meets   func(resource string)     // is called with each watch before it is served; nil: nothing is
	goBack  func()                    // puts the last snapshot back, and ends no connection
	held    *coordinationv1.Lease     // nil: none yet
	updates int                       // of the lease
	objects map[string]map[string]any // by path
	changes []change                  // since the API server was started
	changed chan struct{}
	server  *httptest.Server
	config  string
}

type change struct {
	resource string
	version  int
	kind     string
	object   map[string]any
}

func newEtcd(t *testing.T, uid string, version int) *etcd {
	t.Helper()
	e := &etcd{uid: uid, version: version, objects: map[string]map[string]any{}, changed: make(chan struct{})}
	e.server = httptest.NewServer(e)
	t.Cleanup(func() { e.server.CloseClientConnections(); e.server.Close() })
	e.config = writeKubeconfig(t, e.server.URL)
	return e
}

// putObject writes an object; spec and status beside its metadata.
func (e *etcd) putObject(resource, namespace, name, uid string, rest map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.version++
	o := maps.Clone(rest)
	if o == nil {
		o = map[string]any{}
	}
	o["metadata"] = map[string]any{
		"namespace": namespace, "name": name, "uid": uid, "resourceVersion": strconv.Itoa(e.version), "creationTimestamp": "2026-01-01T00:00:00Z",
	}
	e.objects[resource+"/"+namespace+"/"+name] = o
	e.recordChange(change{resource, e.version, "MODIFIED", o})
}

func (e *etcd) removeObject(resource, namespace, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.version++
	key := resource + "/" + namespace + "/" + name
	o := e.objects[key]
	delete(e.objects, key)
	e.recordChange(change{resource, e.version, "DELETED", o})
}

func (e *etcd) recordChange(c change) {
	e.changes = append(e.changes, c)
	close(e.changed)
	e.changed = make(chan struct{})
}

// endWatch has the watch of one resource end, and no other.
func (e *etcd) endWatch(resource string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ends = resource
	close(e.changed)
	e.changed = make(chan struct{})
}

// putVMI writes a guest on a node, with a mark where it is to leave that.
func (e *etcd) putVMI(name, uid, node, mark string) {
	status := map[string]any{"phase": "Running", "nodeName": node}
	if mark != "" {
		status["evacuationNodeName"] = mark
	}
	e.putObject("virtualmachineinstances", "shop", name, uid, map[string]any{"status": status, "spec": map[string]any{"evictionStrategy": "LiveMigrate"}})
}

// saveSnapshot returns a function that puts the present state back, as an etcd that is restored while the API server is stopped.
func (e *etcd) saveSnapshot() (restore func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	uid, version, objects := e.uid, e.version, maps.Clone(e.objects)
	e.goBack = func() { e.swapState(uid, version, objects) }
	return func() { e.swapAndDisconnect(uid, version, objects) }
}

// rebuildCluster makes it another cluster, in which nothing is yet.
func (e *etcd) rebuildCluster(uid string, version int) {
	e.swapAndDisconnect(uid, version, map[string]map[string]any{})
}

func (e *etcd) swapAndDisconnect(uid string, version int, objects map[string]map[string]any) {
	e.swapState(uid, version, objects)
	e.server.CloseClientConnections()
}

func (e *etcd) swapState(uid string, version int, objects map[string]map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.uid, e.version, e.objects, e.changes = uid, version, maps.Clone(objects), nil
}

// setRefusing has the API server answer nothing, or everything again.
func (e *etcd) setRefusing(all bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refuses = all
}

func (e *etcd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	refuses, meets := e.refuses, e.meets
	e.mu.Unlock()
	if refuses {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource := path[len(path)-1]
	switch {
	case strings.Contains(r.URL.Path, "/leases"):
		e.serveLease(w, r)
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		e.mu.Lock()
		defer e.mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"name": "kube-system", "uid": e.uid, "resourceVersion": "1"}})
	case r.URL.Query().Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422})
	case r.URL.Query().Get("watch") != "":
		if meets != nil {
			meets(resource)
		}
		e.serveWatch(w, r, resource)
	default:
		e.mu.Lock()
		defer e.mu.Unlock()
		items := []any{}
		_, name, _ := strings.Cut(r.URL.Query().Get("fieldSelector"), "metadata.name=")
		for _, key := range slices.Sorted(maps.Keys(e.objects)) {
			if strings.HasPrefix(key, resource+"/") && strings.HasSuffix(key, name) {
				items = append(items, e.objects[key])
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items, "metadata": map[string]any{"resourceVersion": strconv.Itoa(e.version)}})
	}
}

// serveLease serves the only lease there is: who updates it must have seen its latest version.
func (e *etcd) serveLease(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	decoded, _, _ := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	sent, _ := decoded.(*coordinationv1.Lease)
	e.mu.Lock()
	defer e.mu.Unlock()
	refuse := func(code int, reason string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})
	}
	switch {
	case sent == nil && e.held == nil:
		refuse(http.StatusNotFound, "NotFound")
		return
	case sent != nil && e.held != nil && sent.ResourceVersion != e.held.ResourceVersion:
		refuse(http.StatusConflict, "Conflict")
		return
	case sent != nil:
		e.updates++
		e.held, sent.ResourceVersion = sent, strconv.Itoa(e.updates)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(e.held)
}

func (e *etcd) serveWatch(w http.ResponseWriter, r *http.Request, resource string) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.(http.Flusher).Flush()
	for {
		e.mu.Lock()
		changes, changed, ends := e.changes, e.changed, e.ends == resource
		if ends {
			e.ends = ""
		}
		e.mu.Unlock()
		if ends {
			return
		}
		for _, c := range changes {
			if c.version <= from {
				continue
			}
			from = c.version
			if c.resource == resource {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": c.kind, "object": c.object})
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
