package collector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/evictrail/evictrail/trail"
)

// Tape takes what a Recorder sees, at the moment at which it sees it. Its methods are safe for concurrent use and return soon.
type Tape interface {
	List(resource, version string, items []json.RawMessage)
	Event(resource string, kind watch.EventType, object json.RawMessage)
	ListFailed(resource string)
	WatchEnded(resource string, failed bool) // it is asked for again: from where it ended, or with a new list
	Audit(event json.RawMessage)
	Scrape(text string)
	Policy(text []byte) (first bool, err error) // keeps the first and reports whether this was it
	Flush() error                               // makes what was given durable
}

// tapeFeed is the store of one Reflector: what the Reflector would cache is written to the tape. It is the Reflector
// goroutine's, but for read and broken, which that of the stream calls.
type tapeFeed struct {
	watched
	hindrance
	r     *Recorder
	shape *shape

	listed   bool        // the first list was written: before it, nothing is
	watching bool        // the last request was a watch, and was answered
	refused  atomic.Bool // the server ended that watch with an error
	failing  bool        // the last request failed
}

// decodeJSON reads an object as a Collector does, and keeps what that reads.
func (f *tapeFeed) decodeJSON(raw []byte) *object {
	o := f.watched.decodeJSON(raw)
	if o.err != nil || o.observe == nil { // or it is about no VM
		return o
	}
	if f.ofPolicy() {
		var v slimPolicyMap
		o.err = json.Unmarshal(raw, &v)
		o.kept = []byte(v.Data[policyKey])
		return o
	}
	v, err := f.shape.pruneJSON(raw)
	o.err = err
	if err == nil && f.needsRecording(v) {
		o.kept = f.r.encodeRedacted(v)
	}
	return o
}

// aboutVMs are the kinds of objects of which Kubernetes Events are recorded. Of pods, those of VMs are.
var aboutVMs = []any{"VirtualMachineInstance", "VirtualMachineInstanceMigration", "VirtualMachine", "Pod"}

// needsRecording reports whether an object is recorded: of Kubernetes Events only those about VMs are.
func (f *tapeFeed) needsRecording(v any) bool {
	if f.kind != trail.ObjectKubeEvent {
		return true
	}
	event, _ := v.(map[string]any)
	about, _ := event["involvedObject"].(map[string]any)
	name, _ := about["name"].(string)
	return slices.Contains(aboutVMs, about["kind"]) && (about["kind"] != "Pod" || strings.HasPrefix(name, launcherPrefix))
}

// noteRequest notes how a request went: when there is one, the watch before it has ended. A failure is written once, when it begins.
func (f *tapeFeed) noteRequest(ctx context.Context, isWatch bool, err error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	if f.isAbsent(err) && !f.listed {
		f.r.logAbsent(f.String(), f.name)
		return
	}
	if f.listed && !f.ofPolicy() {
		if f.watching {
			f.r.Tape.WatchEnded(f.name, f.refused.Load())
		}
		switch {
		case err == nil || f.failing:
		case isWatch:
			f.r.Tape.WatchEnded(f.name, true)
		default:
			f.r.Tape.ListFailed(f.name)
		}
	}
	f.failing, f.watching = err != nil, isWatch && err == nil
	f.refused.Store(false)
	f.updateProblem(isWatch, f.explainError(err))
	if err != nil || f.listed {
		f.r.setProblem(f.name, f.problem)
	}
}

// beginList has the Reflector gather a list: it is written as a whole.
func (f *tapeFeed) beginList() *listing { return nil }

func (f *tapeFeed) verifyContinuity(context.Context, bool, presence) error { return nil }

// noteStreamError notes that the server ends a watch with an error. What came before it may still be on its way.
func (f *tapeFeed) noteStreamError(error) { f.refused.Store(true) }

// ofPolicy reports whether the feed is the descheduler's policy, of which a recording has the text alone.
func (f *tapeFeed) ofPolicy() bool { return f.object != "" }

// Add writes that an object was created.
func (f *tapeFeed) Add(obj any) error { return f.writeEvent(watch.Added, obj) }

// Update writes that an object was changed.
func (f *tapeFeed) Update(obj any) error { return f.writeEvent(watch.Modified, obj) }

// Delete writes the last state of an object that was deleted.
func (f *tapeFeed) Delete(obj any) error { return f.writeEvent(watch.Deleted, obj) }

// Resync does nothing: there is no cache to repeat.
func (f *tapeFeed) Resync() error { return nil }

// Bookmark writes that everything up to a resourceVersion was delivered.
func (f *tapeFeed) Bookmark(version string) error {
	if !f.ofPolicy() {
		f.r.Tape.Event(f.name, watch.Bookmark, f.r.encodeRedacted(map[string]any{"metadata": map[string]any{"resourceVersion": version}}))
	}
	f.r.advanceVersion(f.name, version)
	return nil
}

// Replace writes a whole list.
func (f *tapeFeed) Replace(items []any, version string) error {
	kept := make([]json.RawMessage, 0, len(items))
	for _, item := range items {
		raw, err := f.recordObject(item)
		if err != nil {
			return err
		}
		if raw != nil {
			kept = append(kept, raw)
		}
	}
	if !f.ofPolicy() {
		f.r.Tape.List(f.name, version, kept)
	}
	f.listed = true
	problem := f.problem
	if f.ofPolicy() && len(items) == 0 {
		problem = f.String() + " " + noPolicy
	}
	f.r.setProblem(f.name, problem)
	f.r.advanceVersion(f.name, version)
	return nil
}

func (f *tapeFeed) writeEvent(kind watch.EventType, obj any) error {
	raw, err := f.recordObject(obj)
	if err != nil {
		return err
	}
	if raw != nil {
		f.r.Tape.Event(f.name, kind, raw)
	}
	f.r.advanceVersion(f.name, obj.(*object).ResourceVersion)
	return nil
}

// recordObject returns what is written of an object; nil where that is nothing. The policy's text is written here.
func (f *tapeFeed) recordObject(obj any) (json.RawMessage, error) {
	o, ok := obj.(*object)
	if !ok {
		return nil, fmt.Errorf("watch of %s: unexpected %T", f, obj)
	}
	if o.err != nil {
		f.r.countObject(o)
		f.r.Log.Warn("object not recorded", "resource", f.String(), "namespace", o.Namespace, "name", o.Name, "err", o.err)
		return nil, nil
	}
	if f.ofPolicy() {
		return nil, f.r.PolicyText(o.kept)
	}
	if o.kept != nil {
		f.r.countObject(o)
	}
	return o.kept, nil
}
