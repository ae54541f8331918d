package api

import (
	"bytes"
	_ "embed" // for the files below
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/evictrail/evictrail/trail"
)

// document is an OpenAPI document, as far as it is used here.
type document struct {
	OpenAPI    string     `json:"openapi"`
	Info       info       `json:"info"`
	Tags       []tag      `json:"tags"`
	Paths      fields     `json:"paths"` // operations by method by path
	Components components `json:"components"`
}

type info struct {
	Title       string  `json:"title"`
	Version     string  `json:"version"`
	Description string  `json:"description"`
	License     license `json:"license"`
}

type license struct {
	Name       string `json:"name"`
	Identifier string `json:"identifier"`
}

type tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type components struct {
	Headers fields `json:"headers"`
	Schemas fields `json:"schemas"`
}

type operation struct {
	Tags        []string     `json:"tags"`
	OperationID string       `json:"operationId"`
	Summary     string       `json:"summary"`
	Description string       `json:"description,omitempty"`
	Parameters  []parameter  `json:"parameters,omitempty"`
	RequestBody *requestBody `json:"requestBody,omitempty"`
	Responses   fields       `json:"responses"`
}

type parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Description string `json:"description"`
	Required    bool   `json:"required,omitempty"`
	Schema      schema `json:"schema"`
	Example     any    `json:"example,omitempty"`
}

type requestBody struct {
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Content     fields `json:"content"`
}

type response struct {
	Description string `json:"description"`
	Headers     fields `json:"headers,omitempty"`
	Content     fields `json:"content,omitempty"`
}

type content struct {
	Schema  schema `json:"schema"`
	Example any    `json:"example,omitempty"`
}

// describeParams returns the parameters of a query string as the document has them.
func describeParams[T any](params []param[T]) []parameter {
	var all []parameter
	for _, p := range params {
		one := parameter{Name: p.name, In: "query", Description: p.about, Required: p.must, Schema: p.schema}
		if p.example != "" {
			one.Example = exampleOf(p.schema, p.example)
		}
		all = append(all, one)
	}
	return all
}

// exampleOf converts an example to the type of its schema.
func exampleOf(s schema, text string) any {
	var v any
	if !slices.Contains(s.Type, "string") && json.Unmarshal([]byte(text), &v) == nil {
		return v
	}
	return text
}

func pathParam(name, about, example string) parameter {
	return parameter{Name: name, In: "path", Description: about, Required: true, Schema: newTextSchema(), Example: example}
}

func jsonContent(s schema, example any) []mediaTypeEntry {
	return []mediaTypeEntry{{mediaTypes["json"], s, example}}
}

// describeOperation returns the route as the document has it.
func (r route) describeOperation() operation {
	o := operation{Tags: []string{r.tag}, OperationID: r.id, Summary: r.short, Description: r.about, Parameters: r.params, RequestBody: r.body}
	for _, a := range r.answers {
		one := response{Description: a.about}
		for _, name := range a.headers {
			one.Headers = append(one.Headers, field{name, schema{Ref: "#/components/headers/" + name}})
		}
		for _, c := range a.content {
			one.Content = append(one.Content, field{c.mediaType, content{c.schema, c.example}})
		}
		o.Responses = append(o.Responses, field{strconv.Itoa(a.status), one})
	}
	for _, status := range r.problems {
		one := response{Description: problemAbout[status], Content: fields{{problemType, content{newRefSchema("Problem"), newProblem(status, problemAbout[status])}}}}
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			one.Headers = fields{{headerRetry, schema{Ref: "#/components/headers/" + headerRetry}}}
		}
		o.Responses = append(o.Responses, field{strconv.Itoa(status), one})
	}
	return o
}

// newFullServer is a server with all parts but reviews, which have a listener of their own; only the routes are asked for.
func newFullServer() Server {
	assistant := func(Reader, string) http.Handler { return http.NotFoundHandler() }
	return Server{Health: &Health{}, Audit: &Audit{}, Readers: ForAll(nil), Stream: &Stream{}, Assistant: assistant}
}

// newDocument describes every route, with the columns of the views as they are.
func newDocument(columns []trail.Column) document {
	d := document{OpenAPI: "3.1.0", Info: about, Tags: tags, Components: components{describeHeaders(), describeSchemas(columns)}}
	for _, r := range newFullServer().buildRoutes(newCrowd()) {
		one := field{strings.ToLower(r.method), r.describeOperation()}
		if i := slices.IndexFunc(d.Paths, func(f field) bool { return f.Name == r.path }); i >= 0 {
			d.Paths[i].Value = append(d.Paths[i].Value.(fields), one)
			continue
		}
		d.Paths = append(d.Paths, field{r.path, fields{one}})
	}
	return d
}

// columnsJSON describes the columns of the views as a database with the current schema does; openAPI is made of it. Both
// are generated.
//
//go:embed columns.json
var columnsJSON []byte

// Columns returns the columns of the views, as a database with the current schema describes them.
func Columns() []trail.Column {
	var columns []trail.Column
	if err := json.Unmarshal(columnsJSON, &columns); err != nil {
		panic("read columns.json: " + err.Error()) // it is built in
	}
	return columns
}

//go:embed openapi.yaml
var openAPI []byte

// Generate returns the generated files of this package by name, from the columns of the views.
func Generate(columns []trail.Column) (map[string][]byte, error) {
	var listed bytes.Buffer
	if err := WriteJSON(&listed, columns); err != nil {
		return nil, err
	}
	text, err := toYAML(newDocument(columns))
	return map[string][]byte{"columns.json": listed.Bytes(), "openapi.yaml": text}, err
}

func documentRoutes() []route {
	return []route{
		{
			method: http.MethodGet, path: "/api/v1/openapi.yaml", tag: tagDocument, id: "getOpenAPI", short: "Get this document",
			answers: []answer{{status: http.StatusOK, about: "The document.", content: []mediaTypeEntry{{yamlType, schema{Type: types{"object"}}, nil}}}},
			handler: http.HandlerFunc(serveOpenAPI),
		},
		{
			method: http.MethodGet, path: "/docs", tag: tagDocument, id: "getDocs", short: "Read this document in a browser",
			answers: []answer{{status: http.StatusOK, about: "The page.", content: []mediaTypeEntry{{"text/html", newTextSchema(), nil}}}},
			handler: newDocs(),
		},
	}
}

const yamlType = "application/yaml"

func serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", uncached)
	reply{contentType: yamlType, body: openAPI}.write(w, r)
}
