package collector

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/evictrail/evictrail/trail"
)

// The bounds of what is kept of anything that arrives. docs/architecture.md lists them under "Bounds". trail.ClipText cuts.
const (
	maxName    = 512      // bytes of a name, a reason, a label or an annotation: names of Kubernetes have at most 253
	maxMessage = 1 << 10  // bytes of a message of a watched object, as events.k8s.io/v1 bounds the note of an Event
	maxText    = 4 << 10  // bytes of what people wrote, and of the answer, in an audit event or a review
	maxPolicy  = 64 << 10 // bytes of the text of a descheduler's policy
	maxEcho    = 256      // bytes of an error that may quote what it refuses
	maxItems   = 256      // entries of a list or map of an object, the first ones
	maxTexts   = 96 << 10 // bytes of all texts of an object together
)

// clipError bounds the text of an error that may quote what it refuses.
func clipError(err error) error {
	if err == nil || len(err.Error()) <= maxEcho {
		return err
	}
	return &briefError{trail.ClipText(err.Error(), maxEcho), err}
}

// briefError is an error of which less is said.
type briefError struct {
	text  string
	whole error
}

func (e *briefError) Error() string { return e.text }

func (e *briefError) Unwrap() error { return e.whole }

// A field of a slim type names another bound of its texts than that of names by the tag "text".
const (
	textMessage = "message"
	textWhole   = "-" // not clipped here
)

// firstOf is a list of which the first entries are decoded, and the others skipped.
type firstOf[T any] []T

// UnmarshalJSONFrom decodes the first entries.
func (l *firstOf[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*l = nil
	if d.PeekKind() != '[' {
		return jsonv2.UnmarshalDecode(d, (*[]T)(l)) // null, or its error
	}
	var bad error
	err := decodeItems(d, func(raw []byte) error {
		if len(*l) == maxItems || bad != nil {
			return nil
		}
		*l = append(*l, *new(T))
		bad = jsonv2.Unmarshal(raw, &(*l)[len(*l)-1], lenient)
		return nil
	})
	return errors.Join(err, bad)
}

// maxIPs bounds the addresses that are kept of a request.
const maxIPs = 5

// lastIPs are the last entries of a list of addresses, at most maxIPs: what stands before them a client can write, as long as it likes. What is no address is
// left out.
type lastIPs []string

// UnmarshalJSONFrom decodes the last entries.
func (l *lastIPs) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*l = nil
	if d.PeekKind() != '[' {
		return d.SkipValue()
	}
	return decodeItems(d, func(raw []byte) error {
		var text string
		if jsonv2.Unmarshal(raw, &text, lenient) != nil {
			return nil
		}
		if ip, err := netip.ParseAddr(text); err == nil {
			*l = append(*l, ip.WithZone("").String())
			*l = (*l)[max(0, len(*l)-maxIPs):]
		}
		return nil
	})
}

// decodeKnown decodes the entries of a map of texts whose keys are known, at most maxItems, and skips the others.
func decodeKnown(d *jsontext.Decoder, into *map[string]string, known func(key string) bool) error {
	*into = nil
	if d.PeekKind() != '{' {
		return jsonv2.UnmarshalDecode(d, into) // null, or its error
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		key := token.String()
		if !known(key) || len(*into) == maxItems {
			if err := d.SkipValue(); err != nil {
				return err
			}
			continue
		}
		var value string
		if err := jsonv2.UnmarshalDecode(d, &value); err != nil {
			return err
		}
		if *into == nil {
			*into = map[string]string{}
		}
		(*into)[key] = value
	}
	_, err := d.ReadToken()
	return err
}

// clipper clips the texts of one object.
type clipper struct{ left int } // bytes that its texts may still have

// clipping clips the texts in values of one type; nil: they have none.
type clipping func(*clipper, reflect.Value)

// clippings has the clipping of each slim type, by its type.
var clippings sync.Map

// clipTexts clips every text of what into points to, and cuts off what its lists and maps have too many of.
func clipTexts(into any) {
	v := reflect.ValueOf(into).Elem()
	made, known := clippings.Load(v.Type())
	if !known {
		made, _ = clippings.LoadOrStore(v.Type(), clippingOf(v.Type(), maxName))
	}
	made.(clipping)(&clipper{left: maxTexts}, v)
}

// clippingOf makes the clipping of a type. The bound is that of its texts, where it names no other.
func clippingOf(t reflect.Type, most int) clipping {
	switch t.Kind() {
	case reflect.String:
		return func(c *clipper, v reflect.Value) {
			if text := v.String(); len(text) > min(most, c.left) {
				v.SetString(trail.ClipText(text, min(most, c.left)))
			}
			c.left -= v.Len()
		}
	case reflect.Pointer:
		if inner := clippingOf(t.Elem(), most); inner != nil {
			return func(c *clipper, v reflect.Value) {
				if !v.IsNil() {
					inner(c, v.Elem())
				}
			}
		}
	case reflect.Slice:
		return clippingOfSlice(clippingOf(t.Elem(), most))
	case reflect.Map:
		return clippingOfMap(t, most)
	case reflect.Struct:
		return clippingOfStruct(t, most)
	default:
		return nil
	}
	return nil
}

func clippingOfSlice(inner clipping) clipping {
	return func(c *clipper, v reflect.Value) {
		if v.Len() > maxItems { // into an array of its own: the rest is not to be held
			v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, maxItems), v.Slice(0, maxItems)))
		}
		for i := 0; inner != nil && i < v.Len(); i++ {
			inner(c, v.Index(i))
		}
	}
}

// clippingOfMap keeps the first entries of a map in the order of their keys.
func clippingOfMap(t reflect.Type, most int) clipping {
	texts := reflect.TypeFor[map[string]string]()
	if !t.ConvertibleTo(texts) {
		panic(fmt.Sprintf("clip %s: only texts by texts are read", t))
	}
	return func(c *clipper, v reflect.Value) {
		all := v.Convert(texts).Interface().(map[string]string)
		if len(all) == 0 {
			return
		}
		kept := make(map[string]string, min(len(all), maxItems))
		for _, key := range slices.Sorted(maps.Keys(all))[:min(len(all), maxItems)] {
			name := trail.ClipText(key, min(most, c.left))
			c.left -= len(name)
			kept[name] = trail.ClipText(all[key], min(most, c.left))
			c.left -= len(kept[name])
		}
		v.Set(reflect.ValueOf(kept).Convert(t))
	}
}

func clippingOfStruct(t reflect.Type, most int) clipping {
	if t == reflect.TypeFor[time.Time]() {
		return nil
	}
	var fields []int
	var inner []clipping
	for i := range t.NumField() {
		f := t.Field(i)
		bound := most
		switch tag := f.Tag.Get("text"); {
		case tag == textMessage:
			bound = maxMessage
		case tag == textWhole || !f.IsExported() && !f.Anonymous:
			continue
		}
		if of := clippingOf(f.Type, bound); of != nil {
			fields, inner = append(fields, i), append(inner, of)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return func(c *clipper, v reflect.Value) {
		for k, i := range fields {
			inner[k](c, v.Field(i))
		}
	}
}
