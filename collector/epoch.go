package collector

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/trail"
)

// Identify is told the UID of the namespace kube-system whenever it was read, empty where that is forbidden. Its error ends the run: the cluster is not the one that is recorded.
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

// presence asks the API server for the present resourceVersion of a resource, and the UID of the cluster.
type presence struct {
	version func(ctx context.Context) (string, error)
	uid     func(ctx context.Context) (string, error)
}

// mostPresent bounds the answer to a list of one object: etcd holds none that is larger than 1.5 MiB.
const mostPresent = 8 << 20

// presence asks by a list of one object without a resourceVersion: that is a consistent read, never older than what anybody was shown before, whichever
// API server answers. All objects are asked for, not the labelled ones, of which the server might look for one in etcd for long.
func (r watched) presence(client rest.Interface) presence {
	return presence{
		version: func(ctx context.Context) (string, error) {
			options := metav1.ListOptions{Limit: 1}
			if r.object != "" { // the right to list may be for this one alone
				options.FieldSelector = "metadata.name=" + r.object
			}
			body, err := client.Get().AbsPath(r.path()).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
			if err != nil {
				return "", err
			}
			defer func() { _ = body.Close() }()
			meta, err := decodeList(io.LimitReader(body, mostPresent), func([]byte) {})
			return meta.ResourceVersion, err
		},
		uid: func(ctx context.Context) (string, error) { return clusterUID(ctx, client) },
	}
}

// verify makes sure that the API server continues what was read: that it is the same cluster, and has not gone back. A watch would not show that: it waits
// until the cluster has come as far again. Events are left out: they may have an etcd of their own, that is emptied now and then, and none is compared.
func (f *feed) verify(ctx context.Context, r presence) error {
	if f.c.Identify == nil || !f.kind.Remembered() {
		return nil
	}
	uid, err := r.uid(ctx)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return err
	}
	if err := f.c.Identify(ctx, uid); err != nil {
		if ctx.Err() == nil {
			f.c.fail(err)
		}
		return err
	}
	f.c.mu.Lock()
	read := f.latest
	f.c.mu.Unlock()
	if read == "" {
		return nil
	}
	now, err := r.version(ctx)
	if err != nil {
		return err
	}
	if trail.NewerVersion(read, now) {
		err := &RewoundError{Resource: f.String(), Recorded: read, Now: now}
		f.c.fail(err)
		return err
	}
	return nil
}

// fail ends the run with an error.
func (c *Collector) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = err
	}
	c.stop()
}

// LastWhole returns up to when everything was seen: the last notice once every first list was taken, until then what New was told. To be asked after Run.
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
