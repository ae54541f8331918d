package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/evictrail/evictrail/trail"
)

// maxAnnotations is what the API server itself allows for all annotations of an object, in bytes.
//
// Source: k8s.io/apimachinery pkg/api/validation, TotalAnnotationSizeLimitB.
const maxAnnotations = 256 << 10

// object is what a Reflector handles for us: the metadata that it needs, and the observation or why there is none.
type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	observe Observation
	kept    json.RawMessage // what a Recorder keeps of it; nil but in one, and where it keeps nothing
	err     error           // the object could not be read; metadata is there as far as it could be
}

// DeepCopyObject satisfies runtime.Object. Objects are never changed after decoding, so they may be shared.
func (o *object) DeepCopyObject() runtime.Object { return o }

// objectList is the answer to a list request.
type objectList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject satisfies runtime.Object. Lists are never changed after decoding, so they may be shared.
func (l *objectList) DeepCopyObject() runtime.Object { return l }

// decoder reads one kind of object. It gets the metadata that is common to all.
type decoder func(raw []byte, m trail.Meta) (Observation, error)

// metadata is what is read of every object's metadata.
type metadata struct {
	Name              string          `json:"name"`
	Namespace         string          `json:"namespace"`
	UID               string          `json:"uid"`
	ResourceVersion   string          `json:"resourceVersion"`
	CreationTimestamp metav1.Time     `json:"creationTimestamp"`
	DeletionTimestamp *metav1.Time    `json:"deletionTimestamp"`
	Annotations       annotationsSize `json:"annotations"`
}

// annotationsSize measures the annotations without keeping them.
type annotationsSize int

// UnmarshalJSON takes the length of the annotations as they are written.
func (s *annotationsSize) UnmarshalJSON(raw []byte) error {
	*s = annotationsSize(len(raw))
	return nil
}

// check says what makes the metadata unusable.
func (m metadata) check() error {
	switch {
	case m.UID == "":
		return errors.New("object without metadata.uid")
	case m.Name == "":
		return errors.New("object without metadata.name")
	case m.ResourceVersion == "":
		return errors.New("object without metadata.resourceVersion")
	case m.Annotations > maxAnnotations:
		return fmt.Errorf("annotations of %d bytes: at most %d are possible", m.Annotations, maxAnnotations)
	}
	return nil
}

// decodeObject reads one object. It always gives one: what cannot be read carries its error, so that one bad object
// does not end a watch.
func decodeObject(raw []byte, decode decoder) *object {
	var head struct {
		Metadata metadata `json:"metadata"`
	}
	err := json.Unmarshal(raw, &head)
	m := head.Metadata
	o := &object{ObjectMeta: metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: types.UID(m.UID), ResourceVersion: m.ResourceVersion,
	}}
	if err == nil {
		err = m.check()
	}
	if err == nil {
		meta := trail.Meta{
			UID: m.UID, Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion, CreatedAt: m.CreationTimestamp.UTC(),
		}
		if m.DeletionTimestamp != nil {
			meta.DeletionAt = m.DeletionTimestamp.UTC()
		}
		o.observe, err = decode(raw, meta)
	}
	if err != nil {
		o.err = fmt.Errorf("read %s/%s: %w", m.Namespace, m.Name, err)
	}
	return o
}

// decodeList reads the answer to a list request item by item, so that one item is held at a time.
func decodeList(r io.Reader, read func(raw []byte) *object) (*objectList, error) {
	list := &objectList{}
	d := json.NewDecoder(r)
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("read list: %w", err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("read list: %w", err)
		}
		switch key {
		case "metadata":
			err = d.Decode(&list.ListMeta)
		case "items":
			err = decodeItems(d, read, list)
		default:
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
		if err != nil {
			return nil, fmt.Errorf("read list: %v: %w", key, err)
		}
	}
	return list, nil
}

func decodeItems(d *json.Decoder, read func(raw []byte) *object, list *objectList) error {
	start, err := d.Token()
	if err != nil || start == nil { // "items": null
		return err
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		list.Items = append(list.Items, read(raw))
	}
	_, err = d.Token()
	return err
}

// watchDecoder reads the stream of a watch. It satisfies watch.Decoder.
type watchDecoder struct {
	body   io.ReadCloser
	json   *json.Decoder
	reader reader
}

func newWatchDecoder(body io.ReadCloser, r reader) *watchDecoder {
	return &watchDecoder{body: body, json: json.NewDecoder(body), reader: r}
}

// Decode reads the next notification of the stream.
func (d *watchDecoder) Decode() (watch.EventType, runtime.Object, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := d.json.Decode(&event); err != nil {
		return "", nil, err
	}
	switch event.Type {
	case watch.Error:
		status := &metav1.Status{}
		err := json.Unmarshal(event.Object, status)
		d.reader.broken(&apierrors.StatusError{ErrStatus: *status})
		return event.Type, status, err
	case watch.Bookmark:
		o, err := decodeBookmark(event.Object)
		return event.Type, o, err
	case watch.Added, watch.Modified, watch.Deleted:
		return event.Type, d.reader.read(event.Object), nil
	}
	return event.Type, nil, fmt.Errorf("unknown watch notification %q", event.Type)
}

// Close ends the stream.
func (d *watchDecoder) Close() { _ = d.body.Close() }

func decodeBookmark(raw []byte) (*object, error) {
	var b struct {
		Metadata struct {
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Errorf("read bookmark: %w", err)
	}
	return &object{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: b.Metadata.ResourceVersion, Annotations: b.Metadata.Annotations,
	}}, nil
}

// utc gives the time of an optional field, zero where it is absent.
func utc(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// condition is a condition of any object.
type condition struct {
	Type               string       `json:"type"`
	Status             string       `json:"status"`
	Reason             string       `json:"reason"`
	Message            string       `json:"message"`
	LastTransitionTime *metav1.Time `json:"lastTransitionTime"`
}

func (c condition) decode() trail.Condition {
	return trail.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, ChangedAt: utc(c.LastTransitionTime)}
}

func conditionsFrom(in []condition) []trail.Condition {
	out := make([]trail.Condition, 0, len(in))
	for _, c := range in {
		out = append(out, c.decode())
	}
	return out
}

// phaseTime is an entry of status.phaseTransitionTimestamps of VMIs and VMIMs.
type phaseTime struct {
	Phase string      `json:"phase"`
	At    metav1.Time `json:"phaseTransitionTimestamp"`
}

func phaseTimesFrom(in []phaseTime) []trail.PhaseTime {
	out := make([]trail.PhaseTime, 0, len(in))
	for _, p := range in {
		out = append(out, trail.PhaseTime{Phase: p.Phase, At: p.At.UTC()})
	}
	return out
}
