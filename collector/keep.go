package collector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/evictrail/evictrail/trail"
)

// shape is what is kept of a JSON value: of an object the fields named here, of an array what its items have, of anything else
// the value itself where it is no object and no array. It is made of the types into which we decode, so that a recording holds
// what evictrail reads and nothing else: no environment, no volumes, no cloud-init, no managedFields, no annotation that is not
// named in a slim type.
type shape struct {
	fields map[string]*shape     // of an object; nil: it is none
	others *shape                // of an object's fields that are not named: of a map
	reads  func(key string) bool // which of these are read; nil: all
	items  *shape                // of an array
}

// unmarshaler is what reads itself: a value, such as a time.
var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// readsSome is a map of which some keys are read.
type readsSome interface{ readsKey(key string) bool }

// shapeOf returns the shape of the values that are decoded into a type.
func shapeOf(t reflect.Type) *shape {
	s := &shape{}
	s.addType(t)
	return s
}

// addType takes up what else is decoded of the same value.
func (s *shape) addType(t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler):
	case t.Kind() == reflect.Slice:
		s.items = shapeOf(t.Elem())
	case t.Kind() == reflect.Map:
		s.others = shapeOf(t.Elem())
		if some, is := reflect.Zero(t).Interface().(readsSome); is {
			s.reads = some.readsKey
		}
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			s.addField(t.Field(i))
		}
	}
}

func (s *shape) addField(f reflect.StructField) {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case f.Anonymous && name == "":
		s.addType(f.Type)
		return
	case !f.IsExported():
		return
	}
	if name == "" {
		name = f.Name
	}
	if s.fields == nil {
		s.fields = map[string]*shape{}
	}
	if s.fields[name] == nil {
		s.fields[name] = &shape{}
	}
	s.fields[name].addType(f.Type)
}

// pruneValue returns what is kept of a value, which it changes, and whether anything is. Nothing is kept of no shape. Texts are clipped to the largest bound that any
// text has that is read: who reads the recording clips to the bound of each.
func (s *shape) pruneValue(v any) (any, bool) {
	if s == nil {
		return nil, false
	}
	switch v := v.(type) {
	case map[string]any:
		if s.fields == nil && s.others == nil {
			return nil, false
		}
		for key, value := range v {
			kept, some := s.findField(key).pruneValue(value)
			if !some {
				delete(v, key)
				continue
			}
			v[key] = kept
		}
		return v, true
	case []any:
		if s.items == nil {
			return nil, false
		}
		kept := v[:0]
		for _, item := range v[:min(len(v), maxItems)] { // as many as are read
			if item, some := s.items.pruneValue(item); some {
				kept = append(kept, item)
			}
		}
		return kept, true
	case string:
		return trail.ClipText(v, maxText), true
	}
	return v, true
}

// findField returns the shape of a field; nil where it is not kept. As in decoding, the case of its name does not matter where no other name fits.
func (s *shape) findField(key string) *shape {
	if field, found := s.fields[key]; found {
		return field
	}
	for name, field := range s.fields {
		if strings.EqualFold(name, key) {
			return field
		}
	}
	if s.reads != nil && !s.reads(key) {
		return nil
	}
	return s.others
}

// head is what is kept of every object.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	slimHead
}

// shapeOfObject returns the shape of the objects that are decoded into a slim type.
func shapeOfObject(of slim) *shape {
	s := shapeOf(reflect.TypeFor[head]())
	s.addType(reflect.TypeOf(of))
	return s
}

// pruneJSON reads JSON and returns what is kept of it.
func (s *shape) pruneJSON(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("bad JSON: %w", err)
	}
	kept, _ := s.pruneValue(v)
	return kept, nil
}
