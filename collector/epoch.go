package collector

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// Identify gets the UID of the namespace kube-system whenever it was read, empty where that is forbidden. Its error ends the run: the cluster is not the one that is recorded.
type Identify func(ctx context.Context, uid string) error

// RewoundError says that a cluster has gone back behind what was read of it: its etcd was restored from a backup, or it was rebuilt.
type RewoundError struct {
	Resource string
	Recorded string // the highest resourceVersion that was read
	Now      string // that of the API server
	Object   bool   // a list that is not older shows an object at a lower resourceVersion than was read
}

// Error says what was compared.
func (e *RewoundError) Error() string {
	if e.Object {
		return fmt.Sprintf("the cluster went back: a list of %s at resourceVersion %s shows an object as it was before resourceVersion %s", e.Resource, e.Now, e.Recorded)
	}
	return fmt.Sprintf("the cluster went back: %s were read up to resourceVersion %s, the API server is at %s", e.Resource, e.Recorded, e.Now)
}

// presence asks the API server how a resource stands, and for the UID of the cluster.
type presence struct {
	ask    func(ctx context.Context, changed tracker.Latest) (standing, error)
	uid    func(ctx context.Context) (string, error)
	client rest.Interface
}

// standing is the present resourceVersion of a resource, and that of the object that was asked for; empty where there is none.
type standing struct{ version, object string }

// mostPresent bounds the answer to a list of one object: etcd holds none that is larger than 1.5 MiB.
const mostPresent = 8 << 20

// newPresence asks by a list of one object without a resourceVersion: that is a consistent read, never older than what anybody was shown before, whichever
// API server answers. Where one object is asked for by its name and namespace, that is one key of etcd. Otherwise all objects are asked for, not the labelled
// ones, of which the server might look for one in etcd for long.
func (r watched) newPresence(client rest.Interface) presence {
	ask := func(ctx context.Context, changed tracker.Latest) (now standing, err error) {
		options, of := metav1.ListOptions{Limit: 1}, r
		name := changed.Name
		if r.object != "" { // the right to list may be for this one alone
			name = r.object
		}
		if name != "" {
			options.FieldSelector = "metadata.name=" + name
			of.namespace = cmp.Or(changed.Namespace, r.namespace)
		}
		body, err := client.Get().AbsPath(of.buildPath()).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
		if err != nil {
			return standing{}, err
		}
		defer func() { _ = body.Close() }()
		meta, err := decodeList(io.LimitReader(body, mostPresent), func(raw []byte) {
			var o struct {
				Metadata metadata `json:"metadata"`
			}
			if json.Unmarshal(raw, &o) == nil && o.Metadata.Name == changed.Name && o.Metadata.Namespace == changed.Namespace {
				now.object = o.Metadata.ResourceVersion
			}
		})
		now.version = meta.ResourceVersion
		return now, err
	}
	return presence{ask: ask, uid: func(ctx context.Context) (string, error) { return clusterUID(ctx, client) }, client: client}
}

// verifyContinuity makes sure that the API server continues what was read: that it is the same cluster, and has not gone back. A watch would not show that: it waits
// until the cluster has come as far again, or goes on behind where it was. Events are left out: they may have an etcd of their own, that is emptied now and then, and
// none is compared.
func (f *feed) verifyContinuity(ctx context.Context, resumes bool, r presence) error {
	if f.c.Identify == nil || !f.kind.Remembered() {
		return nil
	}
	uid, err := r.uid(ctx)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return err
	}
	if err := f.c.identifyCluster(ctx, uid); err != nil {
		return err
	}
	gone, err := f.compareVersions(ctx, r)
	if err != nil || !gone {
		return err
	}
	// The object that changed last was deleted in the meantime, or never was in a cluster that went back and has come further than it had been. A list of this resource
	// would not show which: everything that is missing would be recorded as deleted. Another resource may show it.
	for _, other := range f.c.feeds {
		if other == f || !other.kind.Remembered() {
			continue
		}
		if _, err := other.compareVersions(ctx, other.newPresence(r.client)); err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if resumes {
		return apierrors.NewResourceExpired("the object that changed last is gone: " + f.String() + " are listed")
	}
	return nil
}

// compareVersions compares how a resource stands with what was read of it, and reports whether the object that changed last is gone. Then it asks for the next one, and so on: a
// cluster that went back may have lost the last ones. Its error is a *RewoundError, which ends the run, where the cluster went back.
func (f *feed) compareVersions(ctx context.Context, r presence) (gone bool, err error) {
	f.c.mu.Lock()
	read, recent := f.latest, f.changed
	f.c.mu.Unlock()
	if read == "" {
		return false, nil
	}
	if len(recent) == 0 {
		recent = tracker.Recent{{}} // the resource alone
	}
	for i, changed := range recent {
		now, err := r.ask(ctx, changed)
		if err != nil {
			return false, err
		}
		back := &RewoundError{Resource: f.String(), Recorded: read, Now: now.version}
		switch {
		case trail.NewerVersion(read, now.version):
		case now.object != "" && trail.NewerVersion(changed.Version, now.object):
			back.Object, back.Recorded = true, changed.Version
		case changed.Name == "" || now.object != "":
			return i > 0, nil
		default:
			continue
		}
		f.c.failRun(back)
		return false, back
	}
	return true, nil
}

// identifyCluster asks whether the cluster is the one that is recorded. Until that is answered nothing counts as watched: another replica may wait for that.
func (c *Collector) identifyCluster(ctx context.Context, uid string) error {
	c.identifying.Add(1)
	defer c.identifying.Add(-1)
	err := c.Identify(ctx, uid)
	if err != nil && ctx.Err() == nil {
		c.failRun(err)
	}
	return err
}

// noteChanged remembers which of the objects that are there changed last; c.mu must be held.
func (f *feed) noteChanged(n notice) {
	switch {
	case n.kind == noticeList:
		f.changed = n.changed
	case n.object != nil:
		f.changed = changedLast(f.changed, n.object, n.gone)
	}
}

// changedLast returns which objects changed last once another one was seen, or is gone.
func changedLast(changed tracker.Recent, o *object, gone bool) tracker.Recent {
	if gone {
		return changed.Without(o.UID)
	}
	return changed.With(tracker.Latest{Version: o.ResourceVersion, UID: o.UID, Namespace: o.Namespace, Name: o.Name})
}

// failRun ends the run with an error.
func (c *Collector) failRun(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = err
	}
	c.stop()
}

// LastWhole returns up to when everything was seen: the last notice once every first list was taken, until then what New was passed. To be asked after Run.
func (c *Collector) LastWhole() time.Time {
	last := c.LastAlive
	if !c.complete {
		return last
	}
	for _, at := range c.lastAt {
		if at.After(last) {
			last = at
		}
	}
	return last
}
