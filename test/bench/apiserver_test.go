package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The resources of which the API server has objects.
const (
	vmis       = "virtualmachineinstances"
	migrations = "virtualmachineinstancemigrations"
	pods       = "pods"
)

// apiServer is an API server in this process that costs next to nothing: a RoundTripper that answers each watch with so many objects of
// a resource, as initial events, and then with changes of them. Objects are made as they are read and held nowhere.
type apiServer struct {
	templates map[string]*template
	objects   map[string]int // how many objects a resource has
	change    string         // the resource that changes
	changes   int            // how many changes come, over the objects in turn
	telling   int            // one in so many changes says something new: a mark comes or goes
	rate      int            // changes a second; 0: as fast as they are read
	began     time.Time      // when the first came; to be read when all have come
	begin     chan struct{}  // closed when they may come
	drained   chan struct{}  // closed when all were read
	once      sync.Once

	listed     chan struct{} // closed when who watches what changes has read all objects; nil: nobody asks
	listedOnce sync.Once
}

func newAPIServer(tb testing.TB, objects map[string]int) *apiServer {
	tb.Helper()
	s := &apiServer{templates: map[string]*template{}, objects: objects, begin: make(chan struct{}), drained: make(chan struct{})}
	for resource, file := range map[string]string{vmis: "vmi", migrations: "migration", pods: "pod"} {
		s.templates[resource] = newTemplate(tb, "testdata/"+file+".json")
	}
	return s
}

// nodes is how many nodes the objects are on.
const nodes = 250

// lastVersion is the resourceVersion of the last change.
func (s *apiServer) lastVersion() string { return strconv.Itoa(listVersion + s.changes) }

// listVersion is that of the lists; those of objects are lower.
const listVersion = 1_000_000_000

// RoundTrip answers a watch.
func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if r.URL.Query().Get("watch") != "true" {
		return nil, fmt.Errorf("%s: only watches are answered", r.URL)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: &stream{ctx: r.Context(), s: s, resource: resource, closed: make(chan struct{})},
	}, nil
}

// definitions are the CRDs, from which kube-state-metrics learns what there is.
const definitions = `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[` +
	`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + vmis + `.kubevirt.io"},"spec":{"group":"kubevirt.io",` +
	`"names":{"kind":"VirtualMachineInstance","plural":"` + vmis + `"},"versions":[{"name":"v1"}]}},` +
	`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + migrations + `.kubevirt.io"},"spec":{"group":"kubevirt.io",` +
	`"names":{"kind":"VirtualMachineInstanceMigration","plural":"` + migrations + `"},"versions":[{"name":"v1"}]}}]}`

// ServeHTTP answers processes: watches with and without initial events, lists, and what kube-state-metrics asks in addition.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Get("watch") == "true":
		body := &stream{ctx: r.Context(), s: s, resource: resource, closed: make(chan struct{})}
		if r.URL.Query().Get("sendInitialEvents") != "true" {
			body.sent = s.objects[resource] + 1
		}
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(flusher{w}, body) // until who reads it goes
	case resource == "version":
		_, _ = io.WriteString(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
	case resource == "customresourcedefinitions":
		_, _ = io.WriteString(w, definitions)
	case s.templates[resource] != nil:
		s.list(w, resource)
	default:
		http.Error(w, r.URL.String()+": neither a watch nor a list of what there is", http.StatusNotFound)
	}
}

// flusher sends at once what is written.
type flusher struct{ http.ResponseWriter }

// Write writes and sends.
func (f flusher) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err != nil {
		return n, err
	}
	return n, http.NewResponseController(f.ResponseWriter).Flush()
}

// list writes all objects of a resource as a list.
func (s *apiServer) list(w io.Writer, resource string) {
	_, _ = fmt.Fprintf(w, `{"kind":"List","apiVersion":"kubevirt.io/v1","metadata":{"resourceVersion":"%d"},"items":[`, listVersion)
	var buffer bytes.Buffer
	for i := range s.objects[resource] {
		if i > 0 {
			_ = buffer.WriteByte(',')
		}
		s.templates[resource].writeObject(&buffer, i, i+1, false)
		_, _ = buffer.WriteTo(w)
	}
	_, _ = io.WriteString(w, "]}")
}

// stream is the body of an answer.
type stream struct {
	ctx      context.Context
	s        *apiServer
	resource string
	sent     int // notifications
	buffer   bytes.Buffer
	closed   chan struct{}
	once     sync.Once
}

// Read makes the next notifications when those before were read.
func (s *stream) Read(p []byte) (int, error) {
	if s.buffer.Len() == 0 {
		if err := s.writeNextEvent(); err != nil {
			return 0, err
		}
	}
	return s.buffer.Read(p)
}

// Close ends it.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *stream) writeNextEvent() error {
	n, changes := s.s.objects[s.resource], 0
	if s.resource == s.s.change {
		changes = s.s.changes
	}
	s.sent++
	switch i := s.sent - 1; {
	case i < n:
		s.writeEvent("ADDED", i, i+1, false)
	case i == n:
		_, _ = fmt.Fprintf(&s.buffer, `{"type":"BOOKMARK","object":{"kind":"Bookmark","apiVersion":"v1","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", listVersion)
	case i <= n+changes:
		if s.s.listed != nil {
			s.s.listedOnce.Do(func() { close(s.s.listed) })
		}
		if err := s.waitFor(s.s.begin); err != nil {
			return err
		}
		i -= n
		if err := s.waitUntilDue(i); err != nil {
			return err
		}
		s.writeEvent("MODIFIED", i%n, listVersion+i, i%s.s.telling == 0 && i/n%2 == 0)
	default:
		if changes > 0 {
			s.s.once.Do(func() { close(s.s.drained) })
		}
		return s.waitFor(nil)
	}
	return nil
}

// waitUntilDue waits until the change of that number is due.
func (s *stream) waitUntilDue(i int) error {
	if s.s.began.IsZero() {
		s.s.began = time.Now()
	}
	if s.s.rate == 0 {
		return nil
	}
	select {
	case <-time.After(time.Until(s.s.dueTime(i))):
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// dueTime is when the change of that number comes.
func (s *apiServer) dueTime(i int) time.Time {
	return s.began.Add(time.Duration(i) * time.Second / time.Duration(s.rate))
}

func (s *stream) writeEvent(kind string, i, version int, marked bool) {
	_, _ = s.buffer.WriteString(`{"type":"` + kind + `","object":`)
	s.s.templates[s.resource].writeObject(&s.buffer, i, version, marked)
	_, _ = s.buffer.WriteString("}\n")
}

// waitFor waits for a channel, or until the answer is not wanted any more.
func (s *stream) waitFor(on chan struct{}) error {
	select {
	case <-on:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-s.closed:
		return io.EOF
	}
}

// template writes objects that differ in name, UID, version, node and mark.
type template struct{ parts []string } // text and @PLACE@ in turn

func newTemplate(tb testing.TB, path string) *template {
	tb.Helper()
	text, err := os.ReadFile(path)
	require.NoError(tb, err)
	var compact bytes.Buffer
	require.NoError(tb, json.Compact(&compact, text))
	return &template{strings.Split(compact.String(), "@")}
}

func (t *template) writeObject(w *bytes.Buffer, i, version int, marked bool) {
	var digits [12]byte
	number, node := strconv.AppendInt(digits[:0], int64(i), 10), "worker-"+strconv.Itoa(i%nodes)
	for _, part := range t.parts {
		switch part {
		case "NAME":
			_, _ = w.WriteString("vm-")
			_, _ = w.Write(number)
		case "UID":
			_, _ = w.WriteString("777b94be-7baa-4468-b08e-00000000000000"[:36-len(number)])
			_, _ = w.Write(number)
		case "VERSION":
			_, _ = w.WriteString(strconv.Itoa(version))
		case "NODE":
			_, _ = w.WriteString(node)
		case "MARK":
			if marked {
				_, _ = w.WriteString(node)
			}
		default:
			_, _ = w.WriteString(part)
		}
	}
}
