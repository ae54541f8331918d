package collector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// watched is one resource that is watched, in all namespaces, or one object of it.
type watched struct {
	name     string // plural, as in the API's path
	group    string // empty for the core group
	version  string
	kind     trail.ObjectKind
	selector string        // label selector
	slim     func() slim   // makes what an object is decoded into
	optional time.Duration // how long is waited before it is asked for again where the API server does not know it, which is then no gap; zero: it must be there

	namespace, object string // the one object that is watched; empty: all
}

// resources are watched in this order of starting; their watches have no common order.
var resources = []watched{
	{name: "kubevirts", group: "kubevirt.io", version: "v1", kind: trail.ObjectKubeVirt, slim: func() slim { return &slimKubeVirt{} }},
	{name: "nodes", version: "v1", kind: trail.ObjectNode, slim: func() slim { return &slimNode{} }},
	{name: "virtualmachineinstances", group: "kubevirt.io", version: "v1", kind: trail.ObjectVMI, slim: func() slim { return &slimVMI{} }},
	{name: "virtualmachineinstancemigrations", group: "kubevirt.io", version: "v1", kind: trail.ObjectMigration, slim: func() slim { return &slimMigration{} }},
	{name: "pods", version: "v1", kind: trail.ObjectPod, selector: "kubevirt.io=virt-launcher", slim: func() slim { return &slimPod{} }},
	{name: "events", version: "v1", kind: trail.ObjectKubeEvent, slim: func() slim { return &slimKubeEvent{} }},
	{
		name: "migrationpolicies", group: "migrations.kubevirt.io", version: "v1alpha1", kind: trail.ObjectMigrationPolicy,
		slim: func() slim { return &slimMigrationPolicy{} }, optional: absentRetry,
	},
	{
		name: "evictionrequests", group: "lifecycle.k8s.io", version: "v1alpha1", kind: trail.ObjectEvictionRequest,
		slim: func() slim { return &slimEvictionRequest{} }, optional: absentRetry,
	},
	{
		name: "evictions", group: "lifecycle.k8s.io", version: "v1alpha1", kind: trail.ObjectEviction,
		slim: func() slim { return &slimEviction{} }, optional: absentRetry,
	},
}

// watchedWith returns the resources to watch, with the ConfigMap of the descheduler's policy where there is one.
func watchedWith(policy *PolicyMap) []watched {
	if policy == nil {
		return resources
	}
	return append(slices.Clone(resources), policy.toWatched())
}

// backoff is how long is waited between attempts to list and watch. client-go's own grows to a minute, in which KubeVirt, that keeps five
// migrations of a VM, may make and forget more than that.
var backoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 5 * time.Second}

// findResource finds a watched resource by its plural.
func findResource(name string) (watched, bool) {
	for _, r := range resources {
		if r.name == name {
			return r, true
		}
	}
	return watched{}, false
}

// Watches reports whether the collector watches a resource, named by its plural.
func Watches(name string) bool {
	_, found := findResource(name)
	return found
}

// Decode reads an object of a watched resource, named by its plural, as its watch would. The observation does not have how it
// was seen; it is nil of an EvictionRequest or Eviction about a pod that is no VM's.
func Decode(name string, raw []byte) (Observation, error) {
	r, found := findResource(name)
	if !found {
		return nil, fmt.Errorf("read %s: not watched", name)
	}
	o := r.decodeJSON(raw)
	return o.observe, o.err
}

// Check says what makes an object unreadable. Resources that are not watched are not read.
func Check(name string, raw []byte) error {
	if !Watches(name) {
		return nil
	}
	_, err := Decode(name, raw)
	return err
}

func (r watched) buildPath() string {
	base := "/apis/" + r.group + "/" + r.version + "/"
	if r.group == "" {
		base = "/api/" + r.version + "/"
	}
	if r.namespace != "" {
		base += "namespaces/" + r.namespace + "/"
	}
	return base + r.name
}

// decodeJSON reads one object.
func (r watched) decodeJSON(raw []byte) *object { return decodeObject(raw, r.slim()) }

// String names the resource as kubectl does.
func (r watched) String() string {
	switch {
	case r.object != "":
		return r.name + " " + r.namespace + "/" + r.object
	case r.group == "":
		return r.name
	}
	return r.name + "." + r.group
}

// describeScope says in which namespaces the resource is watched.
func (r watched) describeScope() string {
	if r.namespace != "" {
		return "in namespace " + r.namespace
	}
	return "in all namespaces"
}

// newClient makes a REST client that knows no types: answers are read by our own decoders, errors as Status.
func newClient(config *rest.Config, skew func(time.Duration)) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	c := rest.CopyConfig(config)
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.GroupVersion = &schema.GroupVersion{Version: "v1"}
	if skew != nil {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &clockReader{next, skew} })
	}
	c.QPS = -1 // a handful of watches: the server's own fairness is enough
	client, err := rest.UnversionedRESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make Kubernetes client: %w", err)
	}
	return client, nil
}

// reader reads what a Reflector gets, and is notified how its requests went.
type reader interface {
	decodeJSON(raw []byte) *object
	beginList() *listing                                                  // a list begins; nil: the Reflector is to gather it
	verifyContinuity(ctx context.Context, resumes bool, r presence) error // makes sure, before a list or a watch that resumes, that the server continues what was read
	noteRequest(ctx context.Context, watch bool, err error)               // a list or watch request was answered
	noteStreamError(err error)                                            // the server sent an error in the stream of a watch, or what cannot be read
}

// listWatch lists and watches the resource and notifies the reader how that went.
func (r watched) listWatch(client rest.Interface, to reader) *cache.ListWatch {
	request := func(options metav1.ListOptions) *rest.Request {
		options.LabelSelector = r.selector
		if r.object != "" {
			options.FieldSelector = "metadata.name=" + r.object
		}
		return client.Get().AbsPath(r.buildPath()).VersionedParams(&options, metav1.ParameterCodec)
	}
	var list *listing
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.Continue == "" {
				if err := to.verifyContinuity(ctx, false, r.newPresence(client)); err != nil {
					to.noteRequest(ctx, false, err)
					r.pauseIfAbsent(ctx, err)
					return nil, err
				}
			}
			if options.Limit > 0 && options.Continue == "" {
				options.ResourceVersion = "" // any other is answered in one piece, for which a server allows a minute
			}
			body, err := request(options).Stream(ctx)
			err = r.explainRefusal(ctx, client, err)
			to.noteRequest(ctx, false, err)
			if err != nil {
				r.pauseIfAbsent(ctx, err)
				return nil, err
			}
			defer func() { _ = body.Close() }()
			if options.Continue == "" { // not the next page
				list = to.beginList()
			}
			answer := &objectList{}
			answer.ListMeta, err = decodeList(body, func(raw []byte) {
				if o := to.decodeJSON(raw); list != nil {
					list.addObject(watch.Added, o)
				} else {
					answer.Items = append(answer.Items, o)
				}
			})
			if err != nil && ctx.Err() == nil {
				to.noteStreamError(err)
			}
			return answer, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			resumes := options.SendInitialEvents == nil // otherwise it lists, too
			if err := to.verifyContinuity(ctx, resumes, r.newPresence(client)); err != nil {
				to.noteRequest(ctx, true, err)
				return nil, err
			}
			options.Watch = true
			body, err := request(options).Stream(ctx)
			err = r.explainRefusal(ctx, client, err)
			if options.SendInitialEvents != nil && apierrors.IsInvalid(err) { // an older server: the Reflector goes on with a list
				return nil, err
			}
			if err == nil && resumes {
				// Once more: a cluster that was put back since the first check answered this watch. What is put back later ends it.
				if err = to.verifyContinuity(ctx, resumes, r.newPresence(client)); err != nil {
					_ = body.Close()
				}
			}
			to.noteRequest(ctx, true, err)
			if err != nil {
				return nil, err
			}
			var list *listing
			if options.SendInitialEvents != nil {
				list = to.beginList()
			}
			reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")
			return watch.NewStreamWatcherWithLogger(klog.FromContext(ctx), newWatchDecoder(body, to, list), reporter), nil
		},
	}
}

// hindrance is why a resource cannot be watched, as the requests for it show.
type hindrance struct {
	problem string // empty while it can
	ofWatch bool   // a watch had it: a list that works does not make it good
}

// updateProblem takes in the problem of a request, empty where it had none, and reports whether the resource has another one now.
func (h *hindrance) updateProblem(isWatch bool, problem string) (changed bool) {
	if problem == "" && !isWatch && h.ofWatch {
		return false
	}
	changed = h.problem != problem
	h.problem, h.ofWatch = problem, isWatch && problem != ""
	return changed
}

// feed is the store of one Reflector: what the Reflector would cache is handed to the owner goroutine instead, in
// order, waiting for room in the queue. Its fields are the Reflector goroutine's, but for those under the collector's
// lock.
type feed struct {
	watched
	c   *Collector
	ctx context.Context // of the collector's run: a Reflector's store methods get none

	hindrance                // under c.mu
	synced    bool           // under c.mu: the first list was taken
	version   string         // under c.mu: the resourceVersion up to which it was taken
	latest    string         // under c.mu: the highest resourceVersion that was ever taken in this epoch
	changed   tracker.Recent // under c.mu: of the objects that are there, those that changed last
	expired   bool           // under c.mu: the server forgot our resourceVersion, which the next list makes good
	cause     string         // under c.mu: of the problem, in a few words
	garbled   string         // under c.mu: what the server sent cannot be read; empty once something can
	unseen    time.Time      // under c.mu: since when it is not seen; zero while it is
	bookmarks bool           // under c.mu: the API server has sent bookmarks, and is to go on
	absent    bool           // under c.mu: the API server does not know the resource, which need not be there: there is nothing to see
	started   bool           // it was answered before
	listed    *listing       // the last attempt at a list; nil once it is whole

	shaken  bool      // under c.mu: it was broken, and has not been listed since nor reported
	settles time.Time // under c.mu: until when a watch that went on where it was may still be behind
}

// isBroken reports whether it cannot be seen now; the lock must be held.
func (f *feed) isBroken() bool { return f.problem != "" || f.expired || f.garbled != "" }

// noteSeen notes since when it is not seen, or that it is; the lock must be held.
func (f *feed) noteSeen() {
	switch seen := f.synced && !f.isBroken(); {
	case seen, f.absent:
		f.unseen = time.Time{}
	case f.unseen.IsZero():
		f.unseen = f.c.Clock()
	}
}

// newWatchSign returns what is known of the watch; the lock must be held.
func (f *feed) newWatchSign() trail.WatchSign {
	w := trail.WatchSign{Source: f.name, Synced: f.synced && !f.isBroken(), Since: f.unseen}
	switch {
	case f.problem != "":
		w.Cause, w.Problem = f.cause, f.problem
	case f.garbled != "":
		w.Cause, w.Problem = "what the API server sends cannot be read", f.garbled
	case f.expired:
		w.Cause, w.Problem = "listed again", fmt.Sprintf("watch of %s: the API server has forgotten where it was; it is listed again", f)
	}
	return w
}

// noteActivity shows in the metrics when the API server last said something about the watch.
func (f *feed) noteActivity(at time.Time) {
	f.c.Metrics.WatchLastActivity.WithLabelValues(f.name).Set(metrics.Unix(at))
}

// noteBroken notes that it is broken, and has the store record up to when it was seen; the lock must be held.
func (f *feed) noteBroken() {
	if !f.shaken {
		f.shaken = true
		f.c.out.requestHeartbeat()
	}
}

// notice is what a feed hands to the owner goroutine.
type notice struct {
	feed    *feed
	kind    noticeKind
	object  *object             // nil of lists and bookmarks
	present map[string]struct{} // of a list that was read to its end: the UIDs
	changed tracker.Recent      // of a list that was read to its end: the objects that changed last
	version string
	gone    bool // the object is
	expired bool // the server had forgotten where the watch before the list was
}

type noticeKind int

const (
	noticeSeen noticeKind = iota
	noticeListed
	noticeList
	noticeBookmark
	noticeAbsent
)

// Add hands on an object that was created.
func (f *feed) Add(obj any) error { return f.enqueueObject(obj, false) }

// Update hands on an object that was changed.
func (f *feed) Update(obj any) error { return f.enqueueObject(obj, false) }

// Delete hands on the last state of an object that was deleted.
func (f *feed) Delete(obj any) error { return f.enqueueObject(obj, true) }

// Resync does nothing: there is no cache to repeat.
func (f *feed) Resync() error { return nil }

// Bookmark hands on that everything up to a resourceVersion was delivered.
func (f *feed) Bookmark(version string) error {
	f.c.mu.Lock()
	f.bookmarks = true
	f.c.mu.Unlock()
	f.noteReadable()
	return f.c.enqueueNotice(f.ctx, notice{feed: f, kind: noticeBookmark, version: version})
}

// Replace hands on that a list was read to its end, and what was in it. The objects were handed on before.
func (f *feed) Replace(_ []any, version string) error {
	f.c.mu.Lock()
	expired := f.expired
	f.expired, f.garbled = false, ""
	f.noteSeen()
	f.c.mu.Unlock()
	n := notice{feed: f, kind: noticeList, version: version, expired: expired, present: f.listed.present, changed: f.listed.changed}
	f.listed = nil
	return f.c.enqueueNotice(f.ctx, n)
}

func (f *feed) enqueueObject(obj any, gone bool) error {
	o, ok := obj.(*object)
	if !ok {
		return fmt.Errorf("watch of %s: unexpected %T", f, obj)
	}
	f.noteReadable()
	return f.c.enqueueNotice(f.ctx, notice{feed: f, kind: noticeSeen, object: o, gone: gone, version: o.ResourceVersion})
}

// noteRequest notes how a list or watch request went: the problem is logged once, when it appears and when it is over. A watch that was renewed shows that
// the API server is there, and is a sign of life where it sends no bookmarks. Where it does, a watch on which none come delivers nothing, however often
// it is renewed.
func (f *feed) noteRequest(ctx context.Context, isWatch bool, err error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	if f.isAbsent(err) {
		f.noteAbsent(ctx)
		return
	}
	f.countRestart(err)
	problem := f.explainError(err)
	f.c.mu.Lock()
	f.absent = false
	changed := f.updateProblem(isWatch, problem)
	if changed {
		f.cause = causeOf(err)
	}
	if f.problem != "" {
		f.noteBroken()
	}
	f.noteSeen()
	bookmarks := f.bookmarks
	f.c.mu.Unlock()
	if isWatch && err == nil && !bookmarks {
		f.noteActivity(f.c.Clock())
	}
	switch {
	case !changed:
	case problem != "":
		f.c.Log.Warn("watch refused", "resource", f.String(), "err", problem)
	default:
		f.c.Log.Info("watch works again", "resource", f.String())
	}
}

func (f *feed) countRestart(err error) {
	reason := metrics.RestartClosed
	switch {
	case isExpired(err):
		f.noteStreamError(err)
		reason = metrics.RestartExpired
	case err != nil:
		reason = metrics.RestartError
	case !f.started:
		f.started = true
		return
	}
	f.c.Metrics.WatchRestarts.WithLabelValues(f.name, reason).Inc()
}

// noteStreamError notes that the server forgot the resourceVersion to resume from, which it says in its answer or in the middle of a stream, or that
// what it sends cannot be read, which is logged once.
func (f *feed) noteStreamError(err error) {
	garbled := ""
	if !isExpired(err) {
		if garbled = fmt.Sprintf("watch of %s: what the API server sends cannot be read: %v: is there a proxy between?", f, err); refusedBy(err) {
			return // its next request says so
		}
	}
	f.c.mu.Lock()
	logged := garbled == "" || f.garbled != ""
	f.expired, f.garbled = f.expired || garbled == "", garbled
	f.noteBroken()
	f.noteSeen()
	f.c.mu.Unlock()
	if !logged {
		f.c.Log.Warn("watch cannot be read", "resource", f.String(), "err", err)
	}
}

// refusedBy reports whether an error is an answer of the API server.
func refusedBy(err error) bool {
	_, is := errors.AsType[*apierrors.StatusError](err)
	return is
}

// noteReadable notes that something could be read.
func (f *feed) noteReadable() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.garbled != "" {
		f.garbled = ""
		f.noteSeen()
		f.c.Log.Info("watch can be read again", "resource", f.String())
	}
}

func isExpired(err error) bool {
	return err != nil && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err))
}

// explainError says in one line what is wrong and what to do about it; empty without an error. An expired
// resourceVersion is no problem: the Reflector lists again at once.
func (r watched) explainError(err error) string {
	if err == nil || isExpired(err) {
		return ""
	}
	why := clipError(stripVarying(err))
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("no right to watch %s: grant list and watch on %s %s (%v)", r, r, r.describeScope(), why)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("the API server does not accept our credentials for %s: renew the kubeconfig or the service account token (%v)", r, why)
	case apierrors.IsNotFound(err) && r.group != "":
		return fmt.Sprintf("the API server knows no %s: install KubeVirt, or wait until its operator has created the CRD (%v)", r, why)
	}
	return fmt.Sprintf("cannot watch %s: %v", r, why)
}

// Causes that say that we may not see something.
const (
	causeForbidden    = "no right"
	causeUnauthorized = "credentials refused"
)

// causeOf says in a few words why a request failed, the same for all resources.
func causeOf(err error) string {
	switch {
	case err == nil:
		return ""
	case apierrors.IsForbidden(err):
		return causeForbidden
	case apierrors.IsUnauthorized(err):
		return causeUnauthorized
	case apierrors.IsNotFound(err):
		return "not installed"
	}
	text := err.Error() // an error of the network ends with what went wrong in the end: connection refused
	return trail.ClipText(strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:]), maxEcho)
}
