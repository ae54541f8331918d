package collector

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// absentRetry is how long is waited before a resource is asked for again that need not be there: its CRD may come with
// an update of KubeVirt, and its API group with another feature gate.
const absentRetry = 5 * time.Minute

// explainRefusal returns the error of a request, or NotFound in place of a refusal where the API server does not
// serve the resource at all: it looks at rights first, and those of an older installation do not name a resource that
// need not be there.
func (r watched) explainRefusal(ctx context.Context, client rest.Interface, err error) error {
	if r.optional == 0 || !apierrors.IsForbidden(err) {
		return err
	}
	if served := client.Get().AbsPath("/apis", r.group, r.version).Do(ctx).Error(); apierrors.IsNotFound(served) {
		return served
	}
	return err
}

// isAbsent reports whether an error says that the API server does not know the resource, and it need not.
func (r watched) isAbsent(err error) bool { return r.optional > 0 && apierrors.IsNotFound(err) }

// pauseIfAbsent waits before a resource is asked for again that is absent. What a Reflector waits by itself is for
// failures.
func (r watched) pauseIfAbsent(ctx context.Context, err error) {
	if !r.isAbsent(err) {
		return
	}
	select {
	case <-time.After(r.optional):
	case <-ctx.Done():
	}
}

// noteAbsent notes that the API server does not know the resource, which need not be there; that is logged once.
func (f *feed) noteAbsent(ctx context.Context) {
	f.c.mu.Lock()
	logged := f.absent
	f.hindrance, f.absent, f.synced, f.shaken, f.expired, f.garbled = hindrance{}, true, false, false, false, ""
	f.noteSeen()
	f.c.mu.Unlock()
	if !logged {
		f.c.Log.Info("not installed, looking for it now and then", "resource", f.String())
	}
	_ = f.c.enqueueNotice(ctx, notice{feed: f, kind: noticeAbsent}) // its error is that of a run that is over
}

// handleAbsent takes that the API server does not know a resource that need not be there: that nothing of it is there
// is seen as well as a list would show it, and when it comes that is no break.
func (c *Collector) handleAbsent(ctx context.Context, source string, now time.Time) {
	delete(c.lastAt, source)
	c.closeUnseen(ctx, source, now)
	c.ensureSeenSince(source, now)
	c.Metrics.NoWatch(source)
	c.recordSelfGap(ctx, now)
}

// logAbsent notes that there is nothing to see of a resource that need not be there, and logs it once.
func (r *Recorder) logAbsent(resource, name string) {
	r.mu.Lock()
	logged := r.problems[name] == ""
	r.problems[name] = ""
	r.mu.Unlock()
	if !logged {
		r.Log.Info("not installed, looking for it now and then", "resource", resource)
	}
}
