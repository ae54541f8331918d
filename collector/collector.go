package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// Sink keeps facts.
type Sink interface {
	// Append stores facts of one cluster and returns when they are durable, with those that were new, also beside an error.
	// It may be given the same fact again. An error that is trail.ErrRefused will not go away by trying again; any other may.
	Append(ctx context.Context, facts []trail.Fact) (trail.News, error)
	// Alive notes that everything seen until at was given to Append, and what has been watched without a break.
	Alive(ctx context.Context, at time.Time, watching []trail.Watching) error
	// Probe writes as Append does, and leaves nothing behind. It returns nil where the Sink takes facts promptly, so that the cause for which it did not take
	// some may lie in these; else why it does not, which may be the cause itself.
	Probe(ctx context.Context, cause error) error
}

// Config is what a Collector needs. All fields are required but for those that say otherwise.
type Config struct {
	REST    *rest.Config
	Tracker *tracker.Tracker // resumed from the store; from here on the collector's
	Sink    Sink             // not needed with a Spool
	Spool   Spool            // keeps facts, which somebody else drains; nil: the Sink gets them from us
	Log     *slog.Logger
	Metrics *metrics.Metrics
	Clock   func() time.Time // must give UTC; safe for concurrent use

	LastAlive   time.Time            // when the store last recorded that evictrail watches the cluster; zero: never. The time since is a gap
	LastSeen    map[string]time.Time // up to when we saw each source, as the store has it: the time since is one where it ends before that of others; optional
	OpenGaps    []trail.GapReport    // that the store has as open: they end when their source is seen; optional
	Since       time.Time            // from when on what happens is counted; zero: from LastAlive on
	Extra       []Observation        // taken when the collector is made, such as the descheduler's policy; optional
	Policy      *PolicyMap           // the ConfigMap with the descheduler's policy, which is then watched; optional
	UnseenAfter time.Duration        // how long a source is refused from the start on before that is recorded as a gap; zero: never
	Breaks      []trail.Break        // why what is seen does not continue what was recorded: they are recorded as gaps in place of the time since LastAlive; empty: it does
	Identify    Identify             // makes sure that the cluster continues what was recorded; nil: nobody does, as where a recording is played
	Backoff     *wait.Backoff        // between attempts to list and watch; nil: 0.5 s to 7.5 s
}

// lastHere returns up to when we were running before, as far as the store knows; zero: never.
func (c Config) lastHere() time.Time {
	last := time.Time{}
	for _, at := range c.LastSeen {
		if at.After(last) {
			last = at
		}
	}
	if last.IsZero() {
		return c.LastAlive
	}
	return last
}

// Observation is an observation without how it was seen.
type Observation func(tracker.Seen) tracker.Observation

// queued bounds the notices that wait for the owner goroutine: with what the writer holds this is the memory that a standing Sink can cost.
const queued = 256

// manyObjects is from how many objects on the first lists take so much memory that it is worth a collection to give it back.
const manyObjects = 1000

// maxRejected bounds the objects whose rejection is logged: more are counted only.
const maxRejected = 1000

// Collector watches one cluster. Make it with New and run it once.
type Collector struct {
	Config
	client      rest.Interface
	feeds       []*feed
	notices     chan notice
	submissions chan submission
	reviews     chan tracker.RequestObservation
	ended       chan struct{} // closed when the owner takes nothing more
	pacing      chan struct{} // anyone who is held back last; the others wait for it
	paced       atomic.Int32  // how many are held back
	out         *writer

	listedFirst int                  // the owner's: objects that the first lists showed
	rejected    map[string]bool      // the owner's: objects whose rejection was logged
	problem     string               // the owner's: the last problem of the descheduler's policy, which was logged
	lastAt      map[string]time.Time // the owner's: last notice of each resource
	complete    bool                 // the owner's: every first list was taken
	started     time.Time            // when this was made
	gaps        openGaps             // the owner's
	semantics   semantics            // the owner's
	wasAway     bool                 // time has passed since evictrail watched: a gap, recorded once complete

	refusedLogged atomic.Bool // that audit events were refused

	identifying atomic.Int64 // how many feeds wait for Identify

	failed error              // under mu: why the run ended by itself
	stop   context.CancelFunc // ends the run

	mu        sync.Mutex
	since     map[string]time.Time // since when each source has been seen without a break
	moved     chan struct{}        // closed and replaced when a feed's version or synced changes
	dropped   int                  // reviews that found no room
	droppedAt time.Time            // the first of them
}

// New makes a collector; it makes no request yet.
func New(config Config) (*Collector, error) {
	m := config.Metrics // not config: the client has this as long as it lives, and that has the Tracker
	client, err := newClient(config.REST, func(skew time.Duration) {
		m.ClockSkew.WithLabelValues(metrics.PeerAPIServer).Set(skew.Seconds())
	})
	if err != nil {
		return nil, err
	}
	c := &Collector{
		Config: config, client: client,
		notices: make(chan notice, queued), submissions: make(chan submission), reviews: make(chan tracker.RequestObservation, reviewed), ended: make(chan struct{}), pacing: make(chan struct{}, 1),
		rejected: map[string]bool{}, lastAt: map[string]time.Time{}, wasAway: wasAway(config), started: config.Clock(), gaps: newOpenGaps(config.OpenGaps),
		moved: make(chan struct{}), since: map[string]time.Time{},
	}
	c.out = newWriter(config, c.listWatchedSources)
	since := config.Since
	if since.IsZero() {
		since = config.LastAlive
	}
	if since.IsZero() {
		since = config.Clock()
	}
	c.Metrics.CountSince(since)
	recent := config.Tracker.Recent()
	for _, r := range watchedWith(config.Policy) {
		f := &feed{watched: r, c: c, changed: recent[r.kind], unseen: config.Clock()}
		if len(f.changed) > 0 {
			f.latest = f.changed[0].Version
		}
		c.feeds = append(c.feeds, f)
		c.Metrics.Watch(r.name, string(r.kind))
	}
	for _, extra := range config.Extra {
		c.recordObservation(context.Background(), extra(tracker.Seen{At: config.Clock()}))
	}
	return c, nil
}

// wasAway reports whether time has passed since we were last alive. None has when a recording is played again: then the
// clock stands at the recording's start. The store keeps microseconds.
func wasAway(c Config) bool {
	return !c.LastAlive.IsZero() && c.Clock().Truncate(time.Microsecond).After(c.LastAlive)
}

// Run watches until ctx ends, then stores what was taken and returns. Its errors are those of storing that rest, a *RewoundError, and those of
// Config.Identify, with which it ends by itself.
func (c *Collector) Run(ctx context.Context) (err error) {
	watching, stop := context.WithCancel(klog.NewContext(ctx, logr.FromSlogHandler(debugOnly{c.Log.Handler()})))
	defer stop()
	c.stop = stop
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()
	g := errgroup.Group{}
	for _, f := range c.feeds {
		f.ctx = watching
		g.Go(func() error { c.runReflector(watching, f); return nil })
	}
	g.Go(func() error {
		defer c.out.close()
		defer close(c.ended)
		c.runOwner(watching)
		c.Tracker = nil // nobody asks it any more, and anyone who asks how we stood need not hold it
		return nil
	})
	g.Go(func() error { return c.out.run(writing, watching.Done()) })
	err = g.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.failed, err)
}

func (c *Collector) runReflector(ctx context.Context, f *feed) {
	logger := klog.FromContext(ctx)
	r := cache.NewReflectorWithOptions(f.listWatch(c.client, f), &object{}, f, cache.ReflectorOptions{
		Name: f.name, TypeDescription: f.String(), Logger: &logger, Backoff: cmp.Or(c.Backoff, &backoff),
	})
	r.RunWithContext(ctx)
}

// enqueueNotice waits for room for a notice.
func (c *Collector) enqueueNotice(ctx context.Context, n notice) error {
	select {
	case c.notices <- n:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runOwner is the owner goroutine: it alone touches the Tracker.
func (c *Collector) runOwner(ctx context.Context) {
	var unseen <-chan time.Time
	if c.UnseenAfter > 0 {
		tick := time.NewTicker(c.UnseenAfter)
		defer tick.Stop()
		unseen = tick.C
	}
	for {
		select {
		case <-unseen:
			c.reportUnseen(ctx, c.Clock())
		case n := <-c.notices:
			c.handleNotice(ctx, n)
		case t := <-c.submissions:
			c.handleRequests(ctx, t)
		case o := <-c.reviews:
			c.handleReview(ctx, o)
		case <-ctx.Done():
			c.drainRequests(ctx)
			return
		}
	}
}

// handleNotice observes a notice and then notifies who waits for it.
func (c *Collector) handleNotice(ctx context.Context, n notice) {
	now := c.Clock()
	switch n.kind {
	case noticeSeen:
		c.observeObject(ctx, n.object, n.feed, tracker.Seen{At: now, Gone: n.gone})
	case noticeListed:
		c.observeObject(ctx, n.object, n.feed, tracker.Seen{At: now, Listed: true, Gone: n.gone})
		return // it is not known yet how far the list goes
	case noticeList:
		c.handleListEnd(ctx, n, now)
	case noticeBookmark:
	case noticeAbsent:
		c.handleAbsent(ctx, n.feed.name, now)
		return
	}
	c.lastAt[n.feed.name] = now
	n.feed.noteActivity(now)
	c.advanceFeed(n)
	c.recordSelfGap(ctx, now)
}

// eventsKept is for how long a list is taken to show every Kubernetes Event: half as long as API servers keep them if nobody set another time (--event-ttl, 1 h).
const eventsKept = 30 * time.Minute

// handleListEnd takes the end of a list, all of which was taken: what it no longer holds. Any list but the first of this run follows a
// break in which states may have come and gone, which is a gap. Events do not go so soon: API servers have no bookmarks for them, so that a watch on which
// few come is too old to be resumed each time it ends, and the list shows what came during that time.
func (c *Collector) handleListEnd(ctx context.Context, n notice, now time.Time) {
	last, again := c.lastAt[n.feed.name]
	switch {
	case !again:
		c.recordUnseen(ctx, n.feed.name, now)
	case n.expired && n.feed.kind == trail.ObjectKubeEvent && now.Sub(last) < eventsKept:
		c.Log.Debug("watch listed again", "resource", n.feed.String(), "reason", trail.ReasonExpired, "elapsed", now.Sub(last))
	default:
		cause := trail.ReasonRelisted
		if n.expired {
			cause = trail.ReasonExpired
		}
		c.observeGap(ctx, now, trail.GapReport{
			Source: n.feed.name, Key: n.feed.version, OpenedAt: last, ClosedAt: now, Cause: cause,
			Detail: fmt.Sprintf("resourceVersion %s to %s", n.feed.version, n.version),
		})
		c.Log.Info("watch listed again", "resource", n.feed.String(), "reason", cause, "elapsed", now.Sub(last))
	}
	if len(n.present) == 0 && n.feed.kind == trail.ObjectPolicy {
		c.logPolicyProblem(n.feed.String() + " " + noPolicy)
	}
	list := tracker.ListObservation{Seen: tracker.Seen{At: now, Listed: true}, Kind: n.feed.kind, ResourceVersion: n.version, Present: n.present}
	if recorded, back := c.Tracker.WentBack(list); back && c.Identify != nil {
		c.failRun(&RewoundError{Resource: n.feed.String(), Recorded: recorded, Now: n.version, Object: true})
		return
	}
	c.recordObservation(ctx, list)
	c.setSeenSince(n.feed.name, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	n.feed.shaken, n.feed.settles = n.feed.isBroken(), time.Time{}
}

// recordUnseen records the time in which a source could not be seen before we ended, which is not recorded yet because we ended before it could
// be seen again. A source is seen up to when the others are.
func (c *Collector) recordUnseen(ctx context.Context, source string, now time.Time) {
	if c.closeUnseen(ctx, source, now) {
		return
	}
	last, known := c.LastSeen[source]
	if !known || !c.wasAway || !last.Before(c.lastHere()) {
		return
	}
	c.observeGap(ctx, now, trail.GapReport{
		Source: source, Key: last.Format(time.RFC3339Nano), OpenedAt: last, ClosedAt: now, Cause: trail.ReasonUnreachable,
	})
}

// observeGap records a gap that is reported now.
func (c *Collector) observeGap(ctx context.Context, now time.Time, gap trail.GapReport) {
	c.recordObservation(ctx, tracker.GapObservation{Seen: tracker.Seen{At: now}, GapReport: gap})
}

// observeObject observes one object, or counts it as skipped when it is about no VM and as rejected when it cannot be read.
func (c *Collector) observeObject(ctx context.Context, o *object, f *feed, seen tracker.Seen) {
	switch {
	case o.err == nil && o.observe == nil:
		c.Metrics.Facts.WithLabelValues(string(f.kind), metrics.StageSkipped).Inc()
		return
	case o.err == nil:
		c.recordObservation(ctx, o.observe(seen))
		return
	}
	c.Metrics.Facts.WithLabelValues(string(f.kind), metrics.StageRejected).Inc()
	c.Metrics.Lost.WithLabelValues(string(f.kind), metrics.LostDecode).Inc()
	key := f.name + " " + o.Namespace + "/" + o.Name
	if !c.rejected[key] && len(c.rejected) < maxRejected {
		c.rejected[key] = true
		c.Log.Error("object rejected", "resource", f.String(), "namespace", o.Namespace, "name", o.Name, "err", o.err)
	}
}

func (c *Collector) recordObservation(ctx context.Context, o tracker.Observation) {
	c.logSemantics(o)
	switch o := o.(type) {
	case tracker.PolicyObservation:
		c.logPolicyProblem(o.Problem)
	case tracker.NodeObservation:
		if !o.Gone {
			c.Metrics.Node(o.Name)
		}
	}
	refused, displaced := c.Tracker.RefusedEvents(), c.Tracker.DisplacedEvents()
	facts := c.factsOf(o)
	if n := c.Tracker.RefusedEvents() - refused; n > 0 {
		c.Metrics.Lost.WithLabelValues(string(trail.ObjectKubeEvent), metrics.LostShare).Add(float64(n))
	}
	c.Metrics.DisplacedEvents.WithLabelValues().Add(float64(c.Tracker.DisplacedEvents() - displaced))
	if len(facts) == 0 {
		return
	}
	for _, f := range facts {
		c.Metrics.Facts.WithLabelValues(string(f.Kind), metrics.StageObserved).Inc()
	}
	c.out.addFacts(ctx, facts)
}

// factsOf returns the facts that an observation adds. One on which the Tracker panics, by a bug, is counted and logged once, and the others go on: it would
// come again after each restart.
func (c *Collector) factsOf(o tracker.Observation) (facts []trail.Fact) {
	defer func() {
		what := recover()
		if what == nil {
			return
		}
		kind := fmt.Sprintf("%T", o)
		c.Metrics.Lost.WithLabelValues(metrics.KindUnknown, metrics.LostDecode).Inc()
		if !c.rejected[kind] {
			c.rejected[kind] = true
			c.Log.Error("observation not recorded: a bug of evictrail, please report it", "kind", kind, "err", what, "stack", string(debug.Stack()))
		}
	}()
	return c.Tracker.Observe(o)
}

// recordSelfGap records the time in which no evictrail watched, once every first list has shown what it missed; those of sources that cannot be
// seen have gaps of their own.
func (c *Collector) recordSelfGap(ctx context.Context, now time.Time) {
	if c.complete || !c.isComplete() {
		return
	}
	c.complete = true
	defer c.out.requestHeartbeat()              // a replica that starts now knows by that that this one watches
	defer c.setSeenSince(trail.SourceSelf, now) // last: who learns that all is seen learns of the gap, too
	if c.listedFirst >= manyObjects {           // the first lists took several times what is kept of them: the machine has it back now, not within minutes
		go debug.FreeOSMemory()
	}
	for _, b := range c.Breaks {
		c.observeGap(ctx, now, trail.GapReport{
			Source: trail.SourceSelf, Key: b.Key, OpenedAt: b.From, ClosedAt: now, Cause: b.Cause, Detail: b.Detail,
		})
	}
	if len(c.Breaks) > 0 || !c.wasAway {
		return
	}
	c.observeGap(ctx, now, trail.GapReport{
		Source: trail.SourceSelf, Key: c.LastAlive.UTC().Format(time.RFC3339Nano),
		OpenedAt: c.LastAlive, ClosedAt: now, Cause: trail.ReasonNotRunning,
	})
}

// setSeenSince notes that a source has been seen without a break since now.
func (c *Collector) setSeenSince(source string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since[source] = now
}

// ensureSeenSince notes that a source is seen: since now, unless it has been already.
func (c *Collector) ensureSeenSince(source string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, seen := c.since[source]; !seen {
		c.since[source] = now
	}
}

// clearSeenSince notes that a source is not seen.
func (c *Collector) clearSeenSince(source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, source)
}

// listWatchedSources returns what was seen at a moment up to which everything is stored, since when without a break: not what is refused, or not
// listed yet, nor a watch that has just gone on where it was, of which there is still to be taken what happened during that time.
func (c *Collector) listWatchedSources(at time.Time) []trail.Watching {
	if c.identifying.Load() > 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	unseen := map[string]bool{}
	for _, f := range c.feeds {
		if f.shaken && !f.isBroken() {
			f.shaken, f.settles = false, at.Add(aliveInterval)
		}
		unseen[f.name] = f.shaken || f.isBroken() || at.Before(f.settles)
	}
	var out []trail.Watching
	for source, since := range c.since {
		if !unseen[source] && at.After(since) {
			out = append(out, trail.Watching{Source: source, Since: since})
		}
	}
	return out
}

// advanceFeed notes how far a feed was taken and wakes who waits for that.
func (c *Collector) advanceFeed(n notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.kind == noticeList && !n.feed.synced {
		n.feed.synced = true
		n.feed.noteSeen()
		c.Metrics.WatchSynced.WithLabelValues(n.feed.name).Set(1)
		c.Log.Info("watch synced", "resource", n.feed.String(), "count", len(n.present))
		c.listedFirst += len(n.present)
	}
	if n.kind == noticeList {
		for kind, held := range c.Tracker.Held() {
			c.Metrics.TrackedObjects.WithLabelValues(string(kind)).Set(float64(held))
		}
	}
	n.feed.version = n.version
	if n.feed.latest == "" || trail.NewerVersion(n.version, n.feed.latest) {
		n.feed.latest = n.version
	}
	n.feed.noteChanged(n)
	close(c.moved)
	c.moved = make(chan struct{})
}

// Watches returns what is known of each watch, but of resources that are absent and need not be there.
func (c *Collector) Watches() []trail.WatchSign {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]trail.WatchSign, 0, len(c.feeds))
	for _, f := range c.feeds {
		if !f.absent {
			out = append(out, f.newWatchSign())
		}
	}
	return out
}

// Taken waits until a resource, named by its plural, was taken up to a resourceVersion. Errors: of ctx, and for a
// resource that is not watched.
func (c *Collector) Taken(ctx context.Context, name, version string) error {
	i := slices.IndexFunc(c.feeds, func(f *feed) bool { return f.name == name })
	if i < 0 {
		return fmt.Errorf("wait for %s: not watched", name)
	}
	for {
		c.mu.Lock()
		at, moved := c.feeds[i].version, c.moved
		c.mu.Unlock()
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

// Flush waits until every fact that was made so far is stored.
func (c *Collector) Flush(ctx context.Context) error { return c.out.flushPending(ctx) }

// errStopped says that facts were left behind because the Sink took them no more.
var errStopped = errors.New("stopped before everything was stored")

// debugOnly lowers what client-go logs to Debug: what an operator must know of it, the feeds say once themselves.
type debugOnly struct{ slog.Handler }

// Enabled reports whether Debug is.
func (h debugOnly) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle passes the record on at level Debug.
func (h debugOnly) Handle(ctx context.Context, r slog.Record) error {
	if r.Level = slog.LevelDebug; !h.Handler.Enabled(ctx, r.Level) { // logr asks Enabled for Info only
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the level lowered.
func (h debugOnly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return debugOnly{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the level lowered.
func (h debugOnly) WithGroup(name string) slog.Handler { return debugOnly{h.Handler.WithGroup(name)} }
