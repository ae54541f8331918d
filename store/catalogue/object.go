package catalogue

import (
	_ "embed" // of what is expected
	"fmt"
	"strings"
)

// Object is a part of a schema: a table, a column, an index, a constraint, a view, a function, a sequence or a trigger.
type Object struct {
	Kind       string `json:"kind"` // such as "table" or "column"
	Name       string `json:"name"` // with its schema; of what is part of a table, with that, too
	Definition string `json:"definition"`
	Varies     bool   `json:"-"` // it belongs to a month of facts: databases differ in which they have
}

// Schema is what a database has, or is to have, ordered by kind and name.
type Schema []Object

//go:embed expected.txt
var expected string

// Expected returns the schema that this program expects: that of package migrations.
func Expected() Schema { return parseText(expected) }

// header begins the text of a schema.
const header = "# The schema that evictrail expects. Made by \"make generate\": do not edit.\n"

// String returns a schema as text: an object a line, the lines of its definition below, each after a tab. What varies
// is left out.
func (s Schema) String() string {
	var out strings.Builder
	out.WriteString(header)
	for _, o := range s {
		if o.Varies {
			continue
		}
		fmt.Fprintf(&out, "%s %s\n", o.Kind, o.Name)
		for line := range strings.SplitSeq(o.Definition, "\n") {
			fmt.Fprintf(&out, "\t%s\n", line)
		}
	}
	return out.String()
}

// parseText reads what String wrote.
func parseText(text string) Schema {
	var s Schema
	var definition []string
	complete := func() {
		if len(s) > 0 {
			s[len(s)-1].Definition = strings.Join(definition, "\n")
		}
		definition = nil
	}
	text = strings.TrimPrefix(text, header)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if part, is := strings.CutPrefix(line, "\t"); is {
			definition = append(definition, part)
			continue
		}
		complete()
		kind, name, _ := strings.Cut(line, " ")
		s = append(s, Object{Kind: kind, Name: name})
	}
	complete()
	return s
}
