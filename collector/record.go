package collector

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/trail"
)

// RecorderConfig is what a Recorder needs. All fields are required but for those that say otherwise.
type RecorderConfig struct {
	REST  *rest.Config
	Tape  Tape
	Log   *slog.Logger
	Clock func() time.Time // must give UTC

	Redactor  *Redactor     // hides names; optional
	Policy    *PolicyMap    // the ConfigMap with the descheduler's policy; optional
	AuditFile string        // the audit log to follow; optional
	Scrape    *ScrapeTarget // the descheduler's metrics; optional
	Backoff   *wait.Backoff // between attempts to list and watch; nil: 0.5 s to 7.5 s
}

// Recorder watches one cluster as a Collector does, with the same requests, and returns what it sees to a Tape: of each object what a
// Collector reads of it, and nothing else. Make it with NewRecorder and run it once.
type Recorder struct {
	RecorderConfig
	client  rest.Interface
	feeds   []*tapeFeed
	scrapes *remote.Client // nil without a target

	mu       sync.Mutex
	problems map[string]string   // by resource: why it cannot be seen
	objects  map[string]struct{} // that were recorded
	skipped  int                 // states of objects that cannot be read
	versions map[string]string   // by resource: the resourceVersion up to which it was recorded
	moved    chan struct{}       // closed and replaced when a version changes
}

// flushEvery is how much of a recording is lost at most when it is killed.
const flushEvery = 2 * time.Second

// NewRecorder makes a recorder; it makes no request yet.
func NewRecorder(config RecorderConfig) (*Recorder, error) {
	client, err := newClient(config.REST, nil)
	if err != nil {
		return nil, err
	}
	r := &Recorder{
		RecorderConfig: config, client: client, problems: map[string]string{}, objects: map[string]struct{}{}, versions: map[string]string{}, moved: make(chan struct{}),
	}
	if config.Scrape != nil {
		client, err := config.Scrape.newClient()
		if err != nil {
			return nil, err
		}
		r.scrapes = client
	}
	for _, w := range watchedWith(config.Policy) {
		r.problems[w.name] = fmt.Sprintf("%s: waiting for the first list", w)
		r.feeds = append(r.feeds, &tapeFeed{watched: w, r: r, shape: shapeOfObject(w.slim())})
	}
	return r, nil
}

// Run records until ctx ends; the Tape is the caller's to close. Its only errors are those of the Tape, which end it.
func (r *Recorder) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(klog.NewContext(ctx, logr.FromSlogHandler(debugOnly{r.Log.Handler()})))
	logger := klog.FromContext(ctx)
	for _, f := range r.feeds {
		g.Go(func() error {
			cache.NewReflectorWithOptions(f.listWatch(r.client, f), &object{}, f, cache.ReflectorOptions{
				Name: f.name, TypeDescription: f.String(), Logger: &logger, Backoff: cmp.Or(r.Backoff, &backoff),
			}).RunWithContext(ctx)
			return nil
		})
	}
	if r.AuditFile != "" {
		started := r.Clock()
		f := follower{path: r.AuditFile, since: started, log: r.Log, take: func(_ context.Context, part io.Reader, name string, _ int64) error {
			return r.writeAuditEvents(part, name, started)
		}}
		g.Go(func() error { _ = f.followLog(ctx); return nil })
	}
	if r.scrapes != nil {
		g.Go(func() error { r.keepScraping(ctx); return nil })
	}
	g.Go(func() error { return r.keepFlushing(ctx) })
	return g.Wait()
}

func (r *Recorder) keepFlushing(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		if err := r.Tape.Flush(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Taken waits until a resource, named by its plural, was recorded up to a resourceVersion. Its only error is that of ctx.
func (r *Recorder) Taken(ctx context.Context, name, version string) error {
	for {
		r.mu.Lock()
		at, moved := r.versions[name], r.moved
		r.mu.Unlock()
		if at != "" && !trail.NewerVersion(version, at) {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// advanceVersion notes how far a resource was recorded and wakes who waits for that.
func (r *Recorder) advanceVersion(name, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions[name] = version
	close(r.moved)
	r.moved = make(chan struct{})
}

// Problems says what cannot be recorded now, one line each; none when all is well.
func (r *Recorder) Problems() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(r.problems)) {
		if problem := r.problems[name]; problem != "" {
			lines = append(lines, problem)
		}
	}
	return lines
}

// Seen counts the objects that were recorded, and the states of objects that could not be read and are not in the recording.
func (r *Recorder) Seen() (objects, unreadable int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.objects), r.skipped
}

// countObject counts an object, or that it could not be read.
func (r *Recorder) countObject(o *object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.err != nil {
		r.skipped++
		return
	}
	r.objects[o.UID] = struct{}{}
}

// setProblem notes why a resource cannot be seen, empty where it can, and logs it when it is new.
func (r *Recorder) setProblem(resource, text string) {
	r.mu.Lock()
	before := r.problems[resource]
	r.problems[resource] = text
	r.mu.Unlock()
	switch {
	case before == text:
	case text != "":
		r.Log.Warn("not recorded", "resource", resource, "err", text)
	default:
		r.Log.Info("recorded", "resource", resource)
	}
}

// encodeRedacted returns what is kept of a value as it is written.
func (r *Recorder) encodeRedacted(v any) json.RawMessage {
	if r.Redactor != nil {
		v = r.Redactor.Value(v)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what was decoded
	return bytes.TrimSpace(out.Bytes())
}

// PolicyText records the text of the descheduler's policy, as far as it is read. A recording has one policy, the first.
func (r *Recorder) PolicyText(text []byte) error {
	kept, err := keepPolicy(text)
	if err != nil {
		r.Log.Warn("descheduler policy not recorded: it cannot be read", "err", err)
		return nil
	}
	if r.Redactor != nil {
		kept = r.Redactor.redactTexts(kept)
	}
	out, err := yaml.Marshal(kept)
	if err != nil {
		return err
	}
	first, err := r.Tape.Policy(out)
	if err == nil && !first {
		r.Log.Warn("the descheduler's policy changed: the recording keeps the first one")
	}
	return err
}

// writeAuditEvents writes the audit events of a part of a file that were logged since a time and are about evictions and migrations.
func (r *Recorder) writeAuditEvents(part io.Reader, name string, since time.Time) error {
	reader := AuditReader{Now: r.Clock(), keep: func(e *slimAudit) error {
		if e.StageAt.Before(since) {
			return nil
		}
		v, err := e.pruneEvent()
		if err == nil {
			r.Tape.Audit(r.encodeRedacted(v))
		}
		return err
	}}
	report, err := reader.Read(part)
	if report.Refused > 0 {
		r.Log.Warn("audit events not recorded", "path", name, "count", report.Refused, "reason", report.First)
	}
	return err
}

// keepScraping records the descheduler's metrics at once and then at each interval until ctx ends.
func (r *Recorder) keepScraping(ctx context.Context) {
	tick := time.NewTicker(r.Scrape.Interval)
	defer tick.Stop()
	for {
		err := r.ScrapeOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		problem := ""
		if err != nil {
			problem = "descheduler metrics: " + err.Error()
		}
		r.setProblem(SourceDescheduler, problem)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// ScrapeOnce records what the descheduler's metrics say now.
func (r *Recorder) ScrapeOnce(ctx context.Context) error {
	body, err := r.Scrape.fetchMetrics(ctx, r.scrapes)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	families, err := readFamilies(body)
	if err == nil {
		_, _, err = decodeFamilies(families)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.Scrape.URL, err)
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if r.Redactor != nil {
			r.Redactor.redactMetrics(families[name])
		}
		if _, err := expfmt.MetricFamilyToText(&out, families[name]); err != nil {
			return err
		}
	}
	r.Tape.Scrape(out.String())
	return nil
}
