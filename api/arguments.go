package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Arguments are what a question can be asked with by a program that sends one JSON object, such as an assistant: the
// parameters of the query string, named, described, bounded and read alike.
type Arguments[T any] struct{ params []param[T] }

// Schema describes the object as a JSON Schema.
func (a Arguments[T]) Schema() json.RawMessage {
	s := newObjectSchema(nil, fields{})
	for _, p := range a.params {
		one := withDescription(p.schema, p.about)
		if p.example != "" {
			one.Examples = []any{exampleOf(p.schema, p.example)}
		}
		if p.must {
			s.Required = append(s.Required, p.name)
		}
		s.Properties = append(s.Properties, field{p.name, one})
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic("marshal schema: " + err.Error()) // our own types: cannot fail
	}
	return raw
}

// Read reads an object, now being the moment from which ages count. What is null is as if it were missing. The error
// says what is wrong with which argument.
func (a Arguments[T]) Read(object json.RawMessage, now time.Time, into *T) error {
	values := url.Values{}
	given := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	if err := d.Decode(&given); err != nil && !errors.Is(err, io.EOF) {
		return newProblem(
			http.StatusBadRequest,
			"the arguments cannot be read: expected one JSON object with "+strings.Join(namesOfParams(a.params), ", "),
		)
	}
	for name, value := range given {
		switch v := value.(type) {
		case nil:
		case string:
			values.Set(name, v)
		case bool, json.Number:
			values.Set(name, fmt.Sprint(v))
		default:
			return newProblem(http.StatusBadRequest, name+": expected text, a number, true or false")
		}
	}
	return readParams(a.params, values.Encode(), now, into)
}

// The bounds of a list that is asked for with Arguments.
const (
	defaultArgumentRows = 50
	maxArgumentRows     = 500
)

// ListArguments are those of a list. It has fewer than the query string: one way to ask for each thing, and what an
// answer in words can show.
func ListArguments(v trail.View) Arguments[trail.Query] {
	var a Arguments[trail.Query]
	for _, p := range listParams(v) {
		switch p.name {
		case "changes-since",
			"open",
			"order",
			"repeats",
			"format",
			"ended-since",
			"ended-until": // state says the same as open
			continue
		case "limit":
			p.about, p.example = "The newest so many rows.", "100"
			p.schema = newIntegerSchema(maxArgumentRows, defaultArgumentRows)
			p.read = readNumber("limit", maxArgumentRows, func(a *asked) *int { return &a.Limit })
		case "page":
			p.about = "The rows that are older than those of an answer: what its next_page says, " +
				"with the other arguments unchanged."
		}
		read := p.read
		a.params = append(
			a.params,
			param[trail.Query]{name: p.name, about: p.about, example: p.example, schema: p.schema, must: p.must,
				read: func(text string, now time.Time, q *trail.Query) error {
					one := asked{Query: *q}
					err := read(text, now, &one)
					*q = one.Query
					return err
				},
			},
		)
	}
	return a
}

// ReadList reads what a list is asked for with ListArguments.
func ReadList(v trail.View, object json.RawMessage, now time.Time) (trail.Query, error) {
	q := trail.Query{Limit: defaultArgumentRows}
	if err := ListArguments(v).Read(object, now, &q); err != nil {
		return q, err
	}
	return q, asked{Query: q}.checkRange(now)
}

// WhyQuery is a question about a VM or a node, and how much of the answer is wanted.
type WhyQuery struct {
	trail.Question
	Verbose  bool // the full account of a VM, too
	Evidence int  // the latest so many facts
}

// The bounds of the evidence of an answer.
const (
	defaultEvidence = 20
	maxEvidence     = 500
)

// WhyArguments are those of why or, without what only that has, of why-not.
func WhyArguments(not bool) Arguments[WhyQuery] {
	a := Arguments[WhyQuery]{params: []param[WhyQuery]{
		{
			name:    "vm",
			about:   "The VM that the question is about, as namespace/name. Either vm or node must be given.",
			schema:  newTextSchema(),
			example: "shop/db-1",
			read: func(text string, _ time.Time, q *WhyQuery) error {
				namespace, name, ok := strings.Cut(text, "/")
				if !ok || namespace == "" || name == "" || strings.Contains(name, "/") || !isText(text) {
					return fmt.Errorf(
						"vm %q: expected namespace/name, such as shop/db-1; the tool search finds the namespace",
						text,
					)
				}
				return q.setSubject(trail.VMISubject(namespace, name))
			},
		},
		{name: "node", about: "The node that the question is about.", schema: newTextSchema(), example: "worker-1",
			read: func(text string, _ time.Time, q *WhyQuery) error {
				if !isText(text) || strings.Contains(text, "/") {
					return fmt.Errorf("node %q: expected the name of a node", text)
				}
				return q.setSubject(trail.Subject{Kind: trail.SubjectNode, Name: text})
			}},
	}}
	for _, p := range questionParams() {
		read := p.read
		a.params = append(a.params, param[WhyQuery]{name: p.name, about: p.about, example: p.example, schema: p.schema,
			read: func(text string, now time.Time, q *WhyQuery) error { return read(text, now, &q.Question) }})
	}
	if not {
		return a
	}
	a.params = append(
		a.params,
		param[WhyQuery]{
			name:    "verbose",
			about:   "Whether to have the full account of a VM, too.",
			schema:  newBooleanSchema(false),
			example: "true",
			read:    readBool("verbose", func(q *WhyQuery, yes bool) { q.Verbose = yes }),
		},
		param[WhyQuery]{
			name:    "evidence",
			about:   "The latest so many facts that the answer rests on.",
			schema:  newIntegerSchema(maxEvidence, defaultEvidence),
			example: "50",
			read:    readNumber("evidence", maxEvidence, func(q *WhyQuery) *int { return &q.Evidence }),
		},
	)
	return a
}

// setSubject sets about whom the question is, once.
func (q *WhyQuery) setSubject(of trail.Subject) error {
	if q.Of != (trail.Subject{}) {
		return errWhom
	}
	q.Of = of
	return nil
}

var errWhom = errors.New("one question is about one VM or one node: give either vm, such as shop/db-1, or node")

// ReadWhy reads a question asked with WhyArguments.
func ReadWhy(not bool, object json.RawMessage, now time.Time) (WhyQuery, error) {
	q := WhyQuery{Evidence: defaultEvidence}
	err := WhyArguments(not).Read(object, now, &q)
	if err == nil && q.Of == (trail.Subject{}) {
		err = newProblem(http.StatusBadRequest, errWhom.Error())
	}
	return q, err
}

// SearchArguments are those of a search.
func SearchArguments() Arguments[SearchQuery] { return Arguments[SearchQuery]{searchParams()} }

// SettingsArguments are those of a question about settings.
func SettingsArguments() Arguments[trail.SettingsQuery] {
	return Arguments[trail.SettingsQuery]{settingsParams()}
}

// OpenQuery asks for what is open.
type OpenQuery struct {
	Cluster string // empty: of all clusters
	Sort    string // an order
}

// OpenArguments are those of a question about what is open, in one of these orders; without orders, of one about
// clusters.
func OpenArguments(orders ...string) Arguments[OpenQuery] {
	a := Arguments[OpenQuery]{params: []param[OpenQuery]{
		{
			name:    "cluster",
			about:   "Only this cluster.",
			schema:  newTextSchema(),
			example: "prod",
			read:    readText("cluster", func(q *OpenQuery) *string { return &q.Cluster }),
		},
	}}
	if len(orders) == 0 {
		return a
	}
	a.params = append(
		a.params,
		param[OpenQuery]{
			name:    "sort",
			about:   "What comes first: the worst, the oldest, or what failed most often.",
			schema:  withDefault(oneOf(orders...), orders[0]),
			example: orders[len(orders)-1],
			read: func(text string, _ time.Time, q *OpenQuery) error {
				if q.Sort = text; !slices.Contains(orders, text) {
					return fmt.Errorf("sort %q: expected one of %s", text, strings.Join(orders, ", "))
				}
				return nil
			},
		},
	)
	return a
}

// readNumber takes a number from 1 on; field says where it goes.
func readNumber[T any](name string, most int, field func(*T) *int) func(string, time.Time, *T) error {
	return func(text string, _ time.Time, into *T) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("%s %q: expected a number from 1 to %d", name, text, most)
		}
		*field(into) = n
		return nil
	}
}
