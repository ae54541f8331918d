package main

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const openAPIPath = "api/openapi.yaml"

// openAPI is as much of an OpenAPI document as the page shows.
type openAPI struct {
	Info       struct{ Description string }
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]operation // by method, by path
	Components struct {
		Headers map[string]struct{ Description string }
		Schemas map[string]schema
	}
}

type operation struct {
	Tags                 []string
	Summary, Description string
	Parameters           []parameter
	RequestBody          struct {
		Description string
		Content     map[string]struct{}
	}
	Responses map[string]response // by status
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                schema
}

type response struct {
	Description string
	Headers     map[string]struct{}
	Content     map[string]struct{ Schema schema } // by media type
}

type schema struct {
	Ref                       string `json:"$ref"`
	Type                      any    // a name or several
	Format, Description       string
	Enum                      []any
	Default, Minimum, Maximum any
	Items                     *schema
	Properties                map[string]schema
}

const problemType = "application/problem+json"

// renderAPI returns the page about the HTTP API.
func renderAPI(files fs.FS) (string, error) {
	text, err := fs.ReadFile(files, openAPIPath)
	if err != nil {
		return "", err
	}
	var d openAPI
	if err := yaml.Unmarshal(text, &d); err != nil {
		return "", fmt.Errorf("read %s: %w", openAPIPath, err)
	}
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "# HTTP API\n\n%s\n\nAn evictrail that serves has this page at `/docs`, with examples, and the OpenAPI document at `/api/v1/openapi.yaml`.\n", escapeMarkdown(d.Info.Description))
	errors := map[string]string{}
	for _, tag := range d.Tags {
		_, _ = fmt.Fprintf(&out, "\n## %s\n\n%s\n", capitalizeFirst(tag.Name), escapeMarkdown(tag.Description))
		for _, path := range sortedKeys(d.Paths) {
			for _, method := range sortedKeys(d.Paths[path]) {
				if o := d.Paths[path][method]; slices.Contains(o.Tags, tag.Name) {
					_, _ = fmt.Fprintf(&out, "\n### %s %s\n", strings.ToUpper(method), path)
					o.write(&out, errors)
				}
			}
		}
	}
	out.WriteString("\n## Errors\n")
	writeTable(&out, []string{"Status", "Meaning"}, listMeanings(errors))
	out.WriteString("\n## Headers\n")
	headers := map[string]string{}
	for name, h := range d.Components.Headers {
		headers["`"+name+"`"] = h.Description
	}
	writeTable(&out, []string{"Header", "Meaning"}, listMeanings(headers))
	out.WriteString("\n## Schemas\n")
	for _, name := range sortedKeys(d.Components.Schemas) {
		writeSchema(&out, name, d.Components.Schemas[name])
	}
	return out.String(), nil
}

// write writes what an operation takes and answers, and notes what its errors mean.
func (o operation) write(out *strings.Builder, errors map[string]string) {
	_, _ = fmt.Fprintf(out, "\n%s. %s\n", escapeMarkdown(o.Summary), escapeMarkdown(o.Description))
	var rows [][]string
	for _, p := range o.Parameters {
		name := "`" + p.Name + "`"
		if p.In != "query" {
			name += " (" + p.In + ")"
		}
		if p.Required {
			name += ", required"
		}
		rows = append(rows, []string{name, p.Schema.describe(), escapeMarkdown(p.Description)})
	}
	writeTable(out, []string{"Parameter", "Values", "Meaning"}, rows)
	if len(o.RequestBody.Content) > 0 {
		_, _ = fmt.Fprintf(out, "\nBody (%s): %s\n", formatCodes(sortedKeys(o.RequestBody.Content)), escapeMarkdown(o.RequestBody.Description))
	}
	rows = nil
	var failures []string
	for _, status := range sortedKeys(o.Responses) {
		r := o.Responses[status]
		if _, is := r.Content[problemType]; is {
			errors[status], failures = r.Description, append(failures, status)
			continue
		}
		var bodies []string
		for _, mediaType := range sortedKeys(r.Content) {
			bodies = append(bodies, "`"+mediaType+"`: "+r.Content[mediaType].Schema.describe())
		}
		meaning := escapeMarkdown(r.Description)
		if len(r.Headers) > 0 {
			meaning += " Headers: " + formatCodes(sortedKeys(r.Headers)) + "."
		}
		rows = append(rows, []string{status, strings.Join(bodies, "; "), meaning})
	}
	writeTable(out, []string{"Status", "Body", "Meaning"}, rows)
	if len(failures) > 0 {
		_, _ = fmt.Fprintf(out, "\n[Errors](#errors): %s.\n", strings.Join(failures, ", "))
	}
}

// viewRow is how the names of schemas begin that are rows of a view.
const viewRow = "row_"

// writeSchema writes the section of a schema. The columns of a row are on the page of the views.
func writeSchema(out *strings.Builder, name string, s schema) {
	_, _ = fmt.Fprintf(out, "\n### %s\n\n%s\n", name, escapeMarkdown(s.Description))
	if view, is := strings.CutPrefix(name, viewRow); is {
		_, _ = fmt.Fprintf(out, "\nIts fields are the [columns of the view](views.md#%s).\n", view)
		return
	}
	var rows [][]string
	for _, field := range sortedKeys(s.Properties) {
		p := s.Properties[field]
		rows = append(rows, []string{"`" + field + "`", p.describe(), escapeMarkdown(p.Description)})
	}
	writeTable(out, []string{"Field", "Type", "Meaning"}, rows)
}

// describe says in a few words of Markdown what values a schema has.
func (s schema) describe() string {
	if s.Ref != "" {
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		return fmt.Sprintf("[%s](#%s)", escapeMarkdown(name), makeAnchor(name))
	}
	var out string
	switch t := s.Type.(type) {
	case string:
		out = t
	case []any:
		out = strings.Join(strings.Fields(strings.Trim(fmt.Sprint(t...), "[]")), " or ")
	}
	if s.Items != nil {
		out += " of " + s.Items.describe()
	}
	if s.Format != "" {
		out += " (" + s.Format + ")"
	}
	for i, v := range s.Enum {
		out += fmt.Sprintf("%s `%v`", map[bool]string{true: ":", false: ","}[i == 0], v)
	}
	for _, bound := range []struct {
		word  string
		value any
	}{{"from", s.Minimum}, {"to", s.Maximum}, {"default", s.Default}} {
		if bound.value != nil {
			out += fmt.Sprintf(", %s `%v`", bound.word, bound.value)
		}
	}
	return strings.ReplaceAll(out, "|", `\|`)
}

// listMeanings returns rows of names with their descriptions, sorted.
func listMeanings(meanings map[string]string) [][]string {
	var rows [][]string
	for _, name := range sortedKeys(meanings) {
		rows = append(rows, []string{name, escapeMarkdown(meanings[name])})
	}
	return rows
}

func formatCodes(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

func capitalizeFirst(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
