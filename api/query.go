package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// asked is what a list is asked for.
type asked struct {
	trail.Query
	format string // json or csv; empty: Accept says
}

// timeAbout describes how times are written.
const timeAbout = "a time (RFC 3339), a date, or an age such as 90m or 7d"

// listParams are the parameters of a view: those that it has columns for, named as on the command line.
func listParams(v trail.View) []param[asked] {
	all := []param[asked]{clusterParam()}
	if v.HasVM() {
		all = append(all, vmParams()...)
	}
	if v.HasNode() {
		all = append(all, nodeParam())
	}
	all = append(all, timeParams()...)
	if v.Changed != "" {
		all = append(all, changesParam())
	}
	if v.End != "" {
		all = append(all, param[asked]{name: "open", about: "Only rows of what is not over: " + v.End + " is null.", schema: newBooleanSchema(false), example: "true",
			read: readBool("open", func(a *asked, yes bool) { a.Open = yes }), write: func(a asked) string { return onlyIf(a.Open, "true") }})
		all = append(all, stateParam(v))
		all = append(all, endParams(v)...)
	}
	for _, column := range v.Sets {
		all = append(all, setParam(v, column))
	}
	if v.Repeat != "" {
		all = append(all, param[asked]{name: "repeats", about: "Whether rows that only repeat another come too: " + v.Repeat + " is not null.", schema: newBooleanSchema(true), example: "false",
			read: readBool("repeats", func(a *asked, yes bool) { a.First = !yes }), write: func(a asked) string { return onlyIf(a.First, "false") }})
	}
	return append(all, pageParams()...)
}

// stateParam says the same as open and, beyond that, closed.
func stateParam(v trail.View) param[asked] {
	return param[asked]{
		name: "state", about: "open is the same as open=true; closed: only rows of what is over, " + v.End + " is not null.", schema: oneOf(stateOpen, stateClosed), example: stateClosed,
		read: func(text string, _ time.Time, a *asked) error {
			switch {
			case text == stateClosed && !a.Open:
				a.Closed = true
			case text == stateClosed:
				return errors.New("state closed and open true are of no row at once: leave one out")
			case text == stateOpen:
				a.Open = true
			default:
				return fmt.Errorf("state %q: expected open or closed", text)
			}
			return nil
		},
		write: func(a asked) string { return onlyIf(a.Closed, stateClosed) },
	}
}

const stateOpen, stateClosed = "open", "closed"

// setParam asks by a column that holds a closed set of values.
func setParam(v trail.View, column string) param[asked] {
	set, _ := trail.FindLabelSet(v.Name + "." + column)
	var values []string
	for _, l := range set.Labels {
		values = append(values, l.Value)
	}
	return param[asked]{
		name: column, about: "Only rows with this value of " + column + ".", schema: oneOf(values...), example: values[0],
		read: func(text string, _ time.Time, a *asked) error {
			if !slices.Contains(values, text) {
				return fmt.Errorf("%s %q: expected one of %s", column, text, strings.Join(values, ", "))
			}
			if a.Values == nil {
				a.Values = map[string]string{}
			}
			a.Values[column] = text
			return nil
		},
		write: func(a asked) string { return a.Values[column] },
	}
}

const orderNewest, orderOldest = "newest", "oldest"

func readOrder(text string, _ time.Time, a *asked) error {
	if text != orderNewest && text != orderOldest {
		return fmt.Errorf("order %q: expected newest or oldest", text)
	}
	a.Oldest = text == orderOldest
	return nil
}

func onlyIf(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}

func clusterParam() param[asked] {
	return param[asked]{name: "cluster", about: "Only this cluster.", schema: newTextSchema(), example: "prod",
		read: readText("cluster", func(a *asked) *string { return &a.Cluster }), write: func(a asked) string { return a.Cluster }}
}

func nodeParam() param[asked] {
	return param[asked]{name: "node", about: "Only this node.", schema: newTextSchema(), example: "worker-1",
		read: readText("node", func(a *asked) *string { return &a.Node }), write: func(a asked) string { return a.Node }}
}

func vmParams() []param[asked] {
	return []param[asked]{
		{name: "namespace", about: "Only this namespace.", schema: newTextSchema(), example: "shop",
			read: readText("namespace", func(a *asked) *string { return &a.Namespace }), write: func(a asked) string { return a.Namespace }},
		{name: "vm", about: "Only this VM: its name, or namespace/name.", schema: newTextSchema(), example: "shop/db-1",
			read: func(text string, _ time.Time, a *asked) error {
				if !isText(text) {
					return errors.New("vm: expected text in UTF-8")
				}
				return a.NameVM(text)
			}, write: func(a asked) string { return a.VMI }},
	}
}

func timeParams() []param[asked] {
	return []param[asked]{
		{name: "since", about: "Not before: " + timeAbout + ". From since to until (by default now) may be 31 days at most; without since the newest rows are given, however old.", schema: newTextSchema(), example: "24h",
			read: readTime("since", func(a *asked) *time.Time { return &a.Since }), write: func(a asked) string { return writeTime(a.Since) }},
		{name: "until", about: "Before: " + timeAbout + ".", schema: newTextSchema(), example: "2026-11-22",
			read: readTime("until", func(a *asked) *time.Time { return &a.Until }), write: func(a asked) string { return writeTime(a.Until) }},
	}
}

func endParams(v trail.View) []param[asked] {
	return []param[asked]{
		{name: "ended-since", about: "Only rows whose " + v.End + " is not before: " + timeAbout + ".", schema: newTextSchema(), example: "24h",
			read: readTime("ended-since", func(a *asked) *time.Time { return &a.EndedSince }), write: func(a asked) string { return writeTime(a.EndedSince) }},
		{name: "ended-until", about: "Only rows whose " + v.End + " is before: " + timeAbout + ".", schema: newTextSchema(), example: "2026-11-22",
			read: readTime("ended-until", func(a *asked) *time.Time { return &a.EndedUntil }), write: func(a asked) string { return writeTime(a.EndedUntil) }},
	}
}

func changesParam() param[asked] {
	return param[asked]{name: "changes-since", about: "Only rows that came or changed then or later, whatever time they are about: " + timeAbout + ". Go on with the header " + changesHeader + " of the answer before.", schema: newTextSchema(), example: "2026-11-21T00:45:00Z",
		read: readTime("changes-since", func(a *asked) *time.Time { return &a.ChangedSince }), write: func(a asked) string { return writeTime(a.ChangedSince) }}
}

func pageParams() []param[asked] {
	return []param[asked]{
		{name: "order", about: "Which rows come first.", schema: withDefault(oneOf(orderNewest, orderOldest), orderNewest), example: orderOldest, read: readOrder,
			write: func(a asked) string { return onlyIf(a.Oldest, orderOldest) }},
		{name: "limit", about: "The first so many rows.", schema: newIntegerSchema(MaxLimit, DefaultLimit), example: "50", read: readLimit,
			write: func(a asked) string { return onlyIf(a.Limit > 0, strconv.Itoa(a.Limit)) }},
		{name: "page", about: "The rows that come after a page: what the header Link of that one names.", schema: newTextSchema(), read: readPage, write: writePage},
		{name: "format", about: "The format of the answer; it has precedence over Accept.", schema: oneOf(formats...), example: "csv", read: readFormat,
			write: func(a asked) string { return a.format }},
	}
}

func readLimit(text string, _ time.Time, a *asked) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxLimit {
		return fmt.Errorf("limit %q: expected a number from 1 to %d; more rows come by pages", text, MaxLimit)
	}
	a.Limit = n
	return nil
}

func readPage(text string, _ time.Time, a *asked) error {
	var key trail.Key
	if err := key.UnmarshalText([]byte(text)); err != nil || !isText(key.ID) || !isText(key.Cluster) {
		return fmt.Errorf("page %q: expected what the header Link of the page before named", text)
	}
	a.Before = &key
	return nil
}

func writePage(a asked) string {
	if a.Before == nil {
		return ""
	}
	text, err := a.Before.MarshalText()
	if err != nil {
		panic("write a key: " + err.Error()) // cannot fail
	}
	return string(text)
}

func readFormat(text string, _ time.Time, a *asked) error {
	if !slices.Contains(formats, text) {
		return fmt.Errorf("format %q: expected json or csv", text)
	}
	a.format = text
	return nil
}

// readPageQuery reads what a page asks a list for: what the API would be asked with the same query string.
func readPageQuery(v trail.View, raw string, now time.Time) (trail.Query, error) {
	a, err := readQuery(v, raw, now)
	return a.Query, err
}

// readQuery reads what a list is asked for. An error is a *Problem.
func readQuery(v trail.View, raw string, now time.Time) (asked, error) {
	a := asked{Query: trail.Query{Limit: DefaultLimit}}
	if err := readParams(listParams(v), raw, now, &a); err != nil {
		return asked{}, err
	}
	if err := a.checkRange(now); err != nil {
		return asked{}, err
	}
	return a, nil
}

// checkRange refuses a range of time that is longer than a list may be asked for. The error is a *Problem.
func (a asked) checkRange(now time.Time) error {
	if !a.Since.IsZero() && a.rangeEnd(now).Sub(a.Since) > MaxRange {
		return newProblem(http.StatusBadRequest, "from since to until are more than 31 days: ask for less at once, or leave out since and go back page by page")
	}
	return nil
}

// rangeEnd is before when the rows are: a page of the newest first ends where the one before did.
func (a asked) rangeEnd(now time.Time) time.Time {
	end := now
	if !a.Until.IsZero() {
		end = a.Until
	}
	if a.Before != nil && !a.Oldest && a.Before.At.Before(end) {
		end = a.Before.At
	}
	return end
}

// listsPath is followed by a view's noun.
const listsPath = "/api/v1/"

// ListURL returns the path, relative to that of evictrail, and the query string of a list, in a format: json or csv. What the view has
// no parameter for is left out.
func ListURL(v trail.View, q trail.Query, format string) *url.URL {
	return &url.URL{Path: listsPath + v.Noun, RawQuery: writeParams(listParams(v), asked{q, format}).Encode()}
}
