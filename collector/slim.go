package collector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// maxAnnotations is what the API server itself allows for all annotations of an object, in bytes.
//
// Source: k8s.io/apimachinery pkg/api/validation, TotalAnnotationSizeLimitB.
const maxAnnotations = 256 << 10

// object is what a Reflector handles for us: the metadata that it needs, and the observation or why there is none.
type object struct {
	metav1.TypeMeta
	Namespace, Name, UID, ResourceVersion string

	listed  bool // it is the bookmark that ends the list at the beginning of a watch
	observe Observation
	kept    json.RawMessage // what a Recorder keeps of it; nil but in one, and where it keeps nothing
	err     error           // the object could not be read; metadata is there as far as it could be
}

// DeepCopyObject satisfies runtime.Object. Objects are never changed after decoding, so they may be shared.
func (o *object) DeepCopyObject() runtime.Object { return o }

// GetObjectMeta returns the metadata as client-go asks for it.
func (o *object) GetObjectMeta() metav1.Object {
	m := &metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID), ResourceVersion: o.ResourceVersion}
	if o.listed {
		m.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return m
}

// objectList is the answer to a list request.
type objectList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject satisfies runtime.Object. Lists are never changed after decoding, so they may be shared.
func (l *objectList) DeepCopyObject() runtime.Object { return l }

// slim is what the objects of one kind are decoded into: the fields that are read of them, and no others.
type slim interface {
	objectMeta() *metadata
	decodeObservation(m tracker.Meta) (Observation, error) // gets the metadata that is common to all
}

// slimHead is what is read of objects of whose metadata no more is read than of all.
type slimHead struct {
	Metadata metadata `json:"metadata"`
}

func (h *slimHead) objectMeta() *metadata { return &h.Metadata }

// metadata is what is read of every object's metadata.
type metadata struct {
	Name              string    `json:"name"`
	Namespace         string    `json:"namespace"`
	UID               string    `json:"uid"`
	ResourceVersion   string    `json:"resourceVersion"`
	CreationTimestamp time.Time `json:"creationTimestamp"`
	DeletionTimestamp time.Time `json:"deletionTimestamp"`
}

// checkRequired says what makes the metadata unusable.
func (m *metadata) checkRequired() error {
	switch {
	case m.UID == "":
		return errors.New("object without metadata.uid")
	case m.Name == "":
		return errors.New("object without metadata.name")
	case m.ResourceVersion == "":
		return errors.New("object without metadata.resourceVersion")
	}
	return nil
}

// lenient takes what encoding/json takes: it is not for us to judge what an API server stores.
var lenient = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsonv2.MatchCaseInsensitiveNames(true))

// decodeObject reads one object into an empty slim one, whose texts it clips. It always returns one: what cannot be read carries its error,
// so that one bad object does not end a watch.
func decodeObject(raw []byte, into slim) *object {
	err := jsonv2.Unmarshal(raw, into, lenient)
	clipTexts(into)
	m := into.objectMeta()
	if err != nil && m.UID == "" { // the bad field came first
		var head slimHead
		_ = jsonv2.Unmarshal(raw, &head, lenient)
		clipTexts(&head)
		m = head.objectMeta()
	}
	o := &object{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
	if err == nil {
		err = errors.Join(m.checkRequired(), checkAnnotations(raw))
	}
	if err == nil {
		o.observe, err = into.decodeObservation(tracker.Meta{
			UID: m.UID, Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion,
			CreatedAt: m.CreationTimestamp.UTC(), DeletionAt: m.DeletionTimestamp.UTC(),
		})
	}
	if err != nil {
		o.err = fmt.Errorf("read %s/%s: %w", m.Namespace, m.Name, clipError(err))
	}
	return o
}

// checkAnnotations refuses an object with more annotations than are possible.
func checkAnnotations(raw []byte) error {
	if len(raw) <= maxAnnotations {
		return nil
	}
	var v struct {
		Metadata struct {
			Annotations jsontext.Value `json:"annotations"`
		} `json:"metadata"`
	}
	if err := jsonv2.Unmarshal(raw, &v, lenient); err != nil {
		return err
	}
	if n := len(v.Metadata.Annotations); n > maxAnnotations {
		return fmt.Errorf("annotations of %d bytes: at most %d are possible", n, maxAnnotations)
	}
	return nil
}

// decodeList reads the answer to a list request item by item, so that one item is held at a time: take gets it, and owns it until it returns.
func decodeList(r io.Reader, take func(raw []byte)) (metav1.ListMeta, error) {
	return decodeListFrom(jsontext.NewDecoder(r, lenient), func(raw []byte) error { take(raw); return nil })
}

// decodeListFrom is decodeList of what a decoder reads; an error of take ends it.
func decodeListFrom(d *jsontext.Decoder, take func(raw []byte) error) (metav1.ListMeta, error) {
	var m metav1.ListMeta
	if _, err := d.ReadToken(); err != nil {
		return m, fmt.Errorf("read list: %w", err)
	}
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return m, fmt.Errorf("read list: %w", err)
		}
		key := token.String()
		switch key {
		case "metadata":
			err = jsonv2.UnmarshalDecode(d, &m)
		case "items":
			err = decodeItems(d, take)
		default:
			err = d.SkipValue()
		}
		if err != nil {
			return m, fmt.Errorf("read list: %s: %w", key, err)
		}
	}
	return m, nil
}

func decodeItems(d *jsontext.Decoder, take func(raw []byte) error) error {
	if d.PeekKind() == 'n' { // "items": null
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := take(raw); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// watchDecoder reads the stream of a watch. It satisfies watch.Decoder.
type watchDecoder struct {
	body   io.ReadCloser
	json   *jsontext.Decoder
	reader reader
	list   *listing // takes what comes until the list at the beginning is whole; nil: there is none, or it is
}

func newWatchDecoder(body io.ReadCloser, r reader, list *listing) *watchDecoder {
	return &watchDecoder{body: body, json: jsontext.NewDecoder(body, lenient), reader: r, list: list}
}

// Decode reads the next notification of the stream that is not taken as one of the list at its beginning.
func (d *watchDecoder) Decode() (watch.EventType, runtime.Object, error) {
	for {
		kind, read, err := d.nextNotification()
		if isGarbled(err) {
			d.reader.noteStreamError(err)
		}
		o, ok := read.(*object)
		switch {
		case err != nil || d.list == nil || !ok:
			return kind, read, err
		case kind != watch.Bookmark:
			d.list.addObject(kind, o)
			continue
		case o.listed:
			d.list = nil
		}
		return kind, read, nil
	}
}

// nextNotification reads the next notification. The API server writes its type first, so that its object is decoded in place.
func (d *watchDecoder) nextNotification() (kind watch.EventType, o runtime.Object, err error) {
	if _, err := d.json.ReadToken(); err != nil {
		return "", nil, cutOff(err)
	}
	var early []byte // an object that came before its type
	for d.json.PeekKind() != '}' {
		key, err := d.json.ReadToken()
		if err != nil {
			return "", nil, cutOff(err)
		}
		name := key.String()
		raw, err := d.json.ReadValue()
		if err != nil {
			return "", nil, cutOff(err)
		}
		switch {
		case name == "type":
			err = jsonv2.Unmarshal(raw, &kind)
		case name == "object" && kind == "":
			early = bytes.Clone(raw)
		case name == "object":
			o, err = d.decodePayload(kind, raw)
		}
		if err != nil {
			return kind, o, err
		}
	}
	if _, err = d.json.ReadToken(); err == nil && o == nil {
		o, err = d.decodePayload(kind, early)
	}
	return kind, o, cutOff(err)
}

// cutOff returns the error of a stream that ended within a notification as client-go knows it: that is no error of the server's.
func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// errGarbled says that a notification is none that the API server sends.
var errGarbled = errors.New("unknown watch notification")

// isGarbled reports whether an error says that a notification cannot be read, other than because the stream ended.
func isGarbled(err error) bool {
	_, syntactic := errors.AsType[*jsontext.SyntacticError](err)
	_, semantic := errors.AsType[*jsonv2.SemanticError](err)
	return syntactic || semantic || errors.Is(err, errGarbled)
}

// decodePayload reads the object of a notification.
func (d *watchDecoder) decodePayload(kind watch.EventType, raw []byte) (runtime.Object, error) {
	switch kind {
	case watch.Error:
		status := &metav1.Status{}
		err := json.Unmarshal(raw, status)
		d.reader.noteStreamError(&apierrors.StatusError{ErrStatus: *status})
		return status, err
	case watch.Bookmark:
		return decodeBookmark(raw)
	case watch.Added, watch.Modified, watch.Deleted:
		return d.reader.decodeJSON(raw), nil
	}
	return nil, fmt.Errorf("%w %q", errGarbled, kind)
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
	if err := jsonv2.Unmarshal(raw, &b, lenient); err != nil {
		return nil, fmt.Errorf("read bookmark: %w", err)
	}
	return &object{
		ResourceVersion: b.Metadata.ResourceVersion, listed: b.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true",
	}, nil
}

// condition is a condition of any object.
type condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message" text:"message"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

func (c condition) decodeCondition() tracker.Condition {
	return tracker.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, ChangedAt: c.LastTransitionTime.UTC()}
}

func conditionsFrom(in []condition) []tracker.Condition {
	out := make([]tracker.Condition, 0, len(in))
	for _, c := range in {
		out = append(out, c.decodeCondition())
	}
	return out
}

// phaseTime is an entry of status.phaseTransitionTimestamps of VMIs and VMIMs.
type phaseTime struct {
	Phase string    `json:"phase"`
	At    time.Time `json:"phaseTransitionTimestamp"`
}

func phaseTimesFrom(in []phaseTime) []trail.PhaseTime {
	out := make([]trail.PhaseTime, 0, len(in))
	for _, p := range in {
		out = append(out, trail.PhaseTime{Phase: p.Phase, At: p.At.UTC()})
	}
	return out
}
