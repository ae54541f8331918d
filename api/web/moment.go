package web

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// moment lets a visitor look at the page as of a moment of the past, and come back.
type moment struct {
	At     time.Time // that the page is of; zero: now
	Age    string    // of it
	Back   string    // address of the page as of now
	Hidden []hidden
}

// parseMoment reads the moment of which the page is to be, zero for now, and offers others.
func (v *visit) parseMoment() (time.Time, error) {
	at, err := v.parsePastParam("at")
	if err != nil {
		return at, err
	}
	m := moment{At: at, Back: v.linkWith("at", "", withParam, ""), Hidden: v.hiddenWithout("at", "from", "to", withParam, zoneParam)}
	if !at.IsZero() {
		m.Age = trail.Age(v.asked.Sub(at))
	}
	v.Moment = &m
	return at, nil
}

// parsePastParam reads a parameter that is a moment of the past, zero where it is missing.
func (v *visit) parsePastParam(name string) (time.Time, error) {
	at, err := v.parseTimeParam(name)
	if err == nil && at.After(v.asked) {
		err = fmt.Errorf("%w: %s=%q is in the future", errBadQuestion, name, v.param(name))
	}
	return at, err
}

// Past reports whether the page is of a moment of the past: then what was to do is over.
func (f frame) Past() bool { return f.Moment != nil && !f.Moment.At.IsZero() }

// hiddenWithout returns the parameters of the page that a form keeps: all but some.
func (v *visit) hiddenWithout(names ...string) []hidden {
	var out []hidden
	q := v.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if slices.Contains(names, name) {
			continue
		}
		for _, value := range q[name] {
			out = append(out, hidden{name, value})
		}
	}
	return out
}
