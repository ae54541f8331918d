package api

import (
	"bytes"
	"encoding/json"

	"github.com/evictrail/evictrail/trail"
)

// schema is a JSON Schema of the dialect of OpenAPI 3.1, as far as it is used here.
type schema struct {
	Ref         string   `json:"$ref,omitempty"`
	Type        types    `json:"type,omitempty"`
	Format      string   `json:"format,omitempty"`
	Description string   `json:"description,omitempty"`
	Enum        []any    `json:"enum,omitempty"`
	Examples    []any    `json:"examples,omitempty"`
	Default     any      `json:"default,omitempty"`
	Minimum     *int     `json:"minimum,omitempty"`
	Maximum     *int     `json:"maximum,omitempty"`
	Items       *schema  `json:"items,omitempty"`
	Required    []string `json:"required,omitempty"`
	Properties  fields   `json:"properties,omitempty"`
	Values      *schema  `json:"additionalProperties,omitempty"` // of an object whose properties have any name
}

// types are those that a value may have; one stands alone.
type types []string

// MarshalJSON implements json.Marshaler.
func (t types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// fields are named things whose order is kept.
type fields []field

type field struct {
	Name  string
	Value any
}

// MarshalJSON implements json.Marshaler.
func (f fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, one := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(one.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(one.Value)
		if err != nil {
			return nil, err
		}
		b.Write(append(append(name, ':'), value...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func newTextSchema() schema { return schema{Type: types{"string"}} }

func withDescription(s schema, about string) schema {
	s.Description = about
	return s
}

func withDefault(s schema, value any) schema {
	s.Default = value
	return s
}

func newIntegerSchema(most, otherwise int) schema {
	least := 1
	return schema{Type: types{"integer"}, Minimum: &least, Maximum: &most, Default: otherwise}
}

func newBooleanSchema(otherwise bool) schema {
	return schema{Type: types{"boolean"}, Default: otherwise}
}

func oneOf[T ~string](values ...T) schema {
	s := newTextSchema()
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}

func listOf(s schema) schema { return schema{Type: types{"array"}, Items: &s} }

func newRefSchema(name string) schema { return schema{Ref: "#/components/schemas/" + name} }

func newObjectSchema(required []string, properties fields) schema {
	return schema{Type: types{"object"}, Required: required, Properties: properties}
}

// orNull lets a value be null as well.
func orNull(s schema) schema {
	s.Type = append(s.Type, "null")
	if s.Enum != nil {
		s.Enum = append(s.Enum, nil)
	}
	return s
}

// closedSets are the columns whose values the domain lists.
var closedSets = map[string]schema{
	"eviction_requests.requester_class": oneOf(trail.Requesters()...),
	"eviction_requests.answer":          oneOf(trail.Answers()...),
	"evacuations.trigger":               oneOf(trail.Triggers()...),
	"evacuations.last_failure_class":    oneOf(trail.FailureClasses()...),
	"migrations.trigger":                oneOf(trail.Triggers()...),
	"migrations.requester_class":        oneOf(trail.Requesters()...),
	"migrations.failure_class":          oneOf(trail.FailureClasses()...),
	"migrations.wait_reason":            oneOf(trail.WaitReasons()...),
	"migration_queue.trigger":           oneOf(trail.Triggers()...),
	"migration_queue.wait_reason":       oneOf(trail.WaitReasons()...),
	"cooldown_decisions.layer":          oneOf(trail.Layers()...),
	"cooldown_decisions.verdict":        oneOf(trail.VerdictHolds, trail.VerdictBlocked, trail.VerdictReleased),
	"cooldowns_now.layer":               oneOf(trail.Layers()...),
	"loops.kind":                        oneOf(trail.LoopKinds()...),
	"loops.path":                        oneOf(trail.PathAnnotationLost, trail.PathFreeSlot, trail.PathRequestForgotten, trail.PathGateOff, trail.PathUnclassified),
	"drains.outcome":                    oneOf(trail.DrainEmptied, trail.DrainAbandoned, trail.DrainNodeGone),
	"drain_blockers.blocker":            oneOf(trail.Blockers()...),
	"node_outages.cause":                oneOf(trail.OutageSilent, trail.OutageReported),
	"node_outages.ended_by":             oneOf(trail.OutageRecovered, trail.OutageNodeGone),
	"loops.evidence":                    listOf(schema{Type: types{"object"}}),
	"loops.nodes":                       listOf(schema{Type: types{"string"}}),
	"upgrade_waves.methods":             listOf(schema{Type: types{"string"}}),
}

// typesOf says how JSON writes a type of Postgres.
var typesOf = map[string]schema{
	"boolean":                  {Type: types{"boolean"}},
	"smallint":                 {Type: types{"integer"}},
	"integer":                  {Type: types{"integer"}},
	"bigint":                   {Type: types{"integer"}},
	"double precision":         {Type: types{"number"}},
	"interval":                 newTextSchema(), // 01:30:00, 2 days 00:10:00
	"jsonb":                    {Type: types{"object"}},
	"text":                     newTextSchema(),
	"timestamp with time zone": {Type: types{"string"}, Format: "date-time"},
	"uuid":                     {Type: types{"string"}, Format: "uuid"},
}

// rowSchema describes the rows of a view.
func rowSchema(v trail.View, columns []trail.Column) schema {
	s := newObjectSchema(nil, nil)
	for _, c := range columns {
		if c.View != v.Name {
			continue
		}
		column, closed := closedSets[v.Name+"."+c.Name]
		if !closed {
			column = typesOf[c.Type]
		}
		if column.Type == nil {
			panic("describe " + v.Name + "." + c.Name + ": how is a " + c.Type + " written in JSON? say it in typesOf")
		}
		if c.Name != "cluster" && c.Name != v.At {
			column = orNull(column)
		}
		s.Required = append(s.Required, c.Name)
		s.Properties = append(s.Properties, field{c.Name, withDescription(column, c.About)})
	}
	return s
}
