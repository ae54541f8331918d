package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/evictrail/evictrail/trail"
)

// param is one parameter of a query string: how it is read, how a client writes it, and how the document describes it.
type param[T any] struct {
	name, about, example string

	schema schema
	must   bool // it has to be given
	read   func(text string, now time.Time, into *T) error
	write  func(T) string // empty: it need not be sent; nil: clients do not send it
}

// Bounds of what a list can be asked for.
const (
	DefaultLimit = 200                 // rows
	MaxLimit     = 10_000              // rows
	MaxRange     = 31 * 24 * time.Hour // from since to until
)

// readParams reads a query string. What it does not know, what comes twice and what is empty is refused: a filter that does
// not filter would be a wrong answer.
func readParams[T any](params []param[T], raw string, now time.Time, into *T) error {
	given, err := url.ParseQuery(raw)
	if err != nil {
		return newProblem(http.StatusBadRequest, "the query string cannot be read: expected name=value, joined by &, with % before codes of two digits")
	}
	for _, p := range params {
		values := given[p.name]
		delete(given, p.name)
		switch {
		case len(values) > 1:
			return newProblem(http.StatusBadRequest, p.name+" is given "+strconv.Itoa(len(values))+" times: give it once")
		case len(values) == 0 && p.must:
			return newProblem(http.StatusBadRequest, p.name+" is missing: "+p.about)
		case len(values) == 0:
			continue
		case values[0] == "":
			return newProblem(http.StatusBadRequest, p.name+" is empty: leave it out, or say what is meant")
		}
		if err := p.read(values[0], now, into); err != nil {
			return newProblem(http.StatusBadRequest, err.Error())
		}
	}
	for name := range given {
		return newProblem(http.StatusBadRequest, fmt.Sprintf("there is no parameter %q here: there are %s", name, strings.Join(namesOfParams(params), ", ")))
	}
	return nil
}

func namesOfParams[T any](params []param[T]) []string {
	var names []string
	for _, p := range params {
		names = append(names, p.name)
	}
	return names
}

// writeParams is the reverse of readParams.
func writeParams[T any](params []param[T], from T) url.Values {
	values := url.Values{}
	for _, p := range params {
		if p.write == nil {
			continue
		}
		if text := p.write(from); text != "" {
			values.Set(p.name, text)
		}
	}
	return values
}

// readText takes a name; field says where it goes.
func readText[T any](name string, field func(*T) *string) func(string, time.Time, *T) error {
	return func(text string, _ time.Time, into *T) error {
		if !isText(text) {
			return fmt.Errorf("%s: expected text in UTF-8", name)
		}
		*field(into) = text
		return nil
	}
}

// isText reports whether Postgres can compare a text with others.
func isText(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// readTime takes a time, a date or an age; field says where it goes.
func readTime[T any](name string, field func(*T) *time.Time) func(string, time.Time, *T) error {
	return func(text string, now time.Time, into *T) (err error) {
		if *field(into), err = trail.ParseTime(text, now); err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
		return nil
	}
}

// readBool takes true or false; field says where it goes.
func readBool[T any](name string, set func(*T, bool)) func(string, time.Time, *T) error {
	return func(text string, _ time.Time, into *T) error {
		if text != "true" && text != "false" {
			return fmt.Errorf("%s %q: expected true or false", name, text)
		}
		set(into, text == "true")
		return nil
	}
}

func writeTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
