package web

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

// A page of a list shows listRows rows, unless its address asks for another number, and never more than listRowsMost or listBytes.
const (
	listRows     = 50
	listRowsMost = 500
	listBytes    = 8 << 20
)

// list is a page that shows the rows of a view as a table. What it can be asked by are the parameters of the API for that view.
type list struct {
	path    string // of the page
	title   string // a plural
	about   string // which rows there are, where the title does not say it
	view    trail.View
	always  map[string]string // parameters that have these values whatever the address says
	usually map[string]string // parameters that have these values unless the address says otherwise
	columns []column
	prepare func(*visit, trail.Query) (states, error) // reads what else its columns show; nil: nothing
	beside  []choice                                  // pages that add up what the rows are about, without their cluster
}

// listBody is what the page of a list shows.
type listBody struct {
	Title   string
	About   string
	Beside  []choice
	Fields  []listField
	Hidden  []hidden
	Spans   []choice // how far back; the one without an address is shown
	Reset   string   // address without filters; empty where there are none
	Heads   []listHead
	Rows    [][]cell
	None    string // says that there are no rows
	Notice  string // says what is left out; empty: nothing is
	First   string // address of the first page; empty: this is it
	Next    string // address of the next page; empty: this is the last
	CSV     string
	JSON    string
	Command string // that asks the API for the same
}

// listField is a field of the form above a list.
type listField struct {
	Name, Label, Value, Hint string
	Options                  []listOption // of a choice; none: it is a text
}

type listOption struct {
	Value, Text string
	Chosen      bool
}

// listHead is the head of a column.
type listHead struct {
	Label string
	Sort  string // ascending or descending, where the rows are in its order
	Href  string // sorts by it the other way; empty: rows cannot be sorted by it
}

// cell is a cell of a list: one part under another.
type cell struct {
	Class string
	Parts []part
}

// part is a text, a link or a time.
type part struct {
	Text, Title, Href string
	At                time.Time // zero: it is no time
	Small             bool
}

// listLink leads to a list from the head of each page.
type listLink struct {
	Title, Href string
	Here        bool // it is this page
}

// Lists returns the links to the lists, for the cluster of the page, and to the comparison of clusters.
func (f frame) Lists() []listLink {
	here, _, _ := strings.Cut(f.Here, "?")
	links := []listLink{{"VMs", vmsPath, false}, {"Nodes", nodesPath, false}}
	for _, l := range lists {
		if l.path != vmsPath {
			links = append(links, listLink{l.title, l.path, false})
		}
	}
	for i := range links {
		links[i].Here = links[i].Href == here
		links[i].Href = buildHref(links[i].Href, "cluster", f.Cluster)
	}
	return append(links, listLink{"Compare", comparePath, here == comparePath}) // of all clusters, from whichever page
}

// appearance are parameters that say how a page looks and not what it shows.
var appearance = []string{zoneParam}

// show shows a page of the list.
func (l list) show(v *visit) error {
	if v.leadToTidyAddress() {
		return nil
	}
	values := v.URL.Query()
	for name, value := range l.usually {
		if !values.Has(name) {
			values.Set(name, value)
		}
	}
	for name, value := range l.always {
		values.Set(name, value)
	}
	q, err := v.site.ParseList(l.view, dropAppearance(values).Encode(), v.asked)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadQuestion, err)
	}
	if !values.Has("limit") {
		q.Limit = listRows
	}
	q.Limit, q.MaxBytes = min(q.Limit, listRowsMost), listBytes
	t, err := v.readTable(l.view, q)
	if err != nil {
		return err
	}
	var more states
	if l.prepare != nil {
		if more, err = l.prepare(v, q); err != nil {
			return err
		}
	}
	b := listBody{Title: l.title, About: l.about, None: describeNone(l.title, values, l, q), Spans: v.listSpans()}
	b.CSV, b.JSON, b.Command = v.apiLinks(l.view.Noun, values)
	for _, other := range l.beside {
		b.Beside = append(b.Beside, choice{other.Name, buildHref(other.Href, "cluster", v.Cluster)})
	}
	b.Fields, b.Hidden = l.fields(v, values), v.hiddenFields("order", "limit")
	b.Reset = v.resetLink()
	several := v.Cluster == "" && len(v.Clusters) > 1
	columns := l.columns
	if several {
		columns = append([]column{{"Cluster", showCluster}}, columns...)
	}
	b.Heads = l.heads(v, columns, q)
	for _, cells := range t.Rows {
		r := listRow{view: l.view, columns: t.Columns, cells: cells, states: more}
		r.now = v.lastSeen(r.text("cluster"))
		row := make([]cell, len(columns))
		for i, c := range columns {
			row[i] = c.show(r)
		}
		b.Rows = append(b.Rows, row)
	}
	if t.Next != nil {
		key, err := t.Next.MarshalText()
		if err != nil {
			return err
		}
		b.Next = v.linkWith("page", string(key))
	}
	if q.Before != nil {
		b.First = v.linkWith("page", "")
	}
	from, to := q.Period(t.Next, v.asked)
	return v.renderList(b, from, to)
}

// readTable reads the rows that a query asks for, fewer where so many are too large.
func (v *visit) readTable(view trail.View, q trail.Query) (trail.Table, error) {
	t, err := v.fleet.ListText(v.Context(), view, q)
	if large, is := errors.AsType[*trail.TooLargeError](err); is {
		q.Limit, q.MaxBytes = max(1, large.Rows), 0
		return v.fleet.ListText(v.Context(), view, q)
	}
	return t, err
}

// renderList renders the page of a list, and names what was not observed in its period.
func (v *visit) renderList(b listBody, from, to time.Time) error {
	all, err := v.fleet.Recorders(v.Context(), v.Cluster, from, to)
	if err != nil {
		return err
	}
	var gaps []trail.Gap
	for _, s := range all {
		gaps = append(gaps, s.NotObserved...)
	}
	v.Unobserved = trail.DescribeGaps(gaps)
	v.Title, v.AsOf, v.Content = b.Title, v.asked, b
	return v.renderPage("list", http.StatusOK)
}

// leadToTidyAddress leads to the address without the parameters that the form above a list sent empty, so that it is short enough to share; false:
// it is tidy.
func (v *visit) leadToTidyAddress() bool {
	q := v.URL.Query()
	tidy := url.Values{}
	for name, values := range q {
		for _, value := range values {
			if value = strings.TrimSpace(value); value != "" {
				tidy.Add(name, value)
			}
		}
	}
	if len(tidy) == len(q) {
		return false
	}
	u := url.URL{Path: v.URL.Path, RawQuery: tidy.Encode()}
	redirectToPath(v.w, v.Request, u.String())
	return true
}

func dropAppearance(values url.Values) url.Values {
	for _, name := range appearance {
		values.Del(name)
	}
	return values
}

// lastSeen returns until when a cluster is known: ages count to there.
func (v *visit) lastSeen(cluster string) time.Time {
	for _, c := range v.Clusters {
		if c.Name == cluster && !c.LastSeenAt.IsZero() && c.LastSeenAt.Before(v.asked) {
			return c.LastSeenAt
		}
	}
	return v.asked
}

// resetLink returns the address of the list without filters, empty where it has none.
func (v *visit) resetLink() string {
	for name := range v.URL.Query() {
		if name != "cluster" && name != "order" && !slices.Contains(appearance, name) {
			return buildHref(v.URL.Path, "cluster", v.Cluster)
		}
	}
	return ""
}

// hiddenFields returns the parameters that the form keeps.
func (v *visit) hiddenFields(names ...string) []hidden {
	var out []hidden
	for _, name := range names {
		if value := v.param(name); value != "" {
			out = append(out, hidden{name, value})
		}
	}
	return out
}

// listSpans leads to the rows of the last hours or days.
func (v *visit) listSpans() []choice {
	spans := []choice{{"1 h", "1h"}, {"6 h", "6h"}, {"24 h", "24h"}, {"7 d", "7d"}, {"All", ""}}
	for i, s := range spans {
		if s.Href == v.param("since") && v.param("until") == "" {
			spans[i].Href = ""
		} else {
			spans[i].Href = v.linkWith("since", s.Href, "until", "", "page", "")
		}
	}
	return spans
}

// apiLinks returns the addresses at which the API answers the same, as CSV and as JSON, and a command that asks for it.
func (v *visit) apiLinks(noun string, values url.Values) (csv, json, command string) {
	asked := url.Values{}
	for name := range values {
		if name != "page" && name != "limit" && !slices.Contains(appearance, name) {
			asked.Set(name, values.Get(name))
		}
	}
	address := func(format string) string {
		if format != "" {
			asked.Set("format", format)
		}
		u := url.URL{Path: "/api/v1/" + noun, RawQuery: asked.Encode()}
		return u.String()
	}
	header := ""
	if v.site.Guarded {
		header = `-H "Authorization: Bearer $TOKEN" `
	}
	command = "curl -fsS " + header + quoteForShell(SiteOf(v.Request)+address(""))
	return address("csv"), address("json"), command
}

// quoteForShell quotes a text so that a shell takes it as one word as it is.
func quoteForShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// heads returns the heads of columns: that of the time by which rows are ordered leads to the other order.
func (l list) heads(v *visit, columns []column, q trail.Query) []listHead {
	out := make([]listHead, len(columns))
	for i, c := range columns {
		out[i].Label = c.label
		if c.label != l.timeLabel() {
			continue
		}
		out[i].Sort, out[i].Href = "descending", v.linkWith("order", "oldest", "page", "")
		if q.Oldest {
			out[i].Sort, out[i].Href = "ascending", v.linkWith("order", "", "page", "")
		}
	}
	return out
}

// timeLabel returns the label of the column of the time by which rows are ordered: the first that shows it.
func (l list) timeLabel() string { return timeLabels[l.view.At] }

// fields returns the fields of the form above a list: the parameters of the API for its view.
func (l list) fields(v *visit, values url.Values) []listField {
	fields := v.clusterField()
	text := func(name, label, hint string) {
		fields = append(fields, listField{Name: name, Label: label, Value: values.Get(name), Hint: hint})
	}
	if l.view.HasVM() {
		text("namespace", "Namespace", "")
		text("vm", "VM", "db-1 or shop/db-1")
	}
	if l.view.HasNode() {
		text("node", "Node", "")
	}
	if _, fixed := l.always["open"]; l.view.End != "" && !fixed {
		state := values.Get("state")
		if state == "" && values.Get("open") == "true" {
			state = "open"
		}
		fields = append(fields, listField{Name: "state", Label: "State", Options: []listOption{
			{"", "any", state == ""}, {"open", "open", state == "open"}, {"closed", "closed", state == "closed"},
		}})
	}
	for _, column := range l.view.Sets {
		set, _ := trail.FindLabelSet(l.view.Name + "." + column)
		f := listField{Name: column, Label: trail.UpperFirst(strings.ReplaceAll(column, "_", " ")), Options: []listOption{{"", "any", values.Get(column) == ""}}}
		for _, label := range set.Labels {
			f.Options = append(f.Options, listOption{label.Value, label.Short, label.Value == values.Get(column)})
		}
		fields = append(fields, f)
	}
	text("since", "From", "7d or a time")
	text("until", "To", "1h or a time")
	if values.Has("ended-since") || values.Has("ended-until") { // a link leads there
		text("ended-since", "Ended from", "7d or a time")
		text("ended-until", "Ended to", "1h or a time")
	}
	return fields
}

// clusterField lets visitors choose a cluster, where there are several.
func (v *visit) clusterField() []listField {
	if len(v.Clusters) < 2 {
		if v.Cluster == "" {
			return nil
		}
		return []listField{{Name: "cluster", Label: "Cluster", Value: v.Cluster}}
	}
	f := listField{Name: "cluster", Label: "Cluster", Options: []listOption{{"", "all", v.Cluster == ""}}}
	known := false
	for _, c := range v.Clusters {
		f.Options = append(f.Options, listOption{c.Name, c.Name, c.Name == v.Cluster})
		known = known || c.Name == v.Cluster
	}
	if !known && v.Cluster != "" {
		f.Options = append(f.Options, listOption{v.Cluster, v.Cluster, true})
	}
	return []listField{f}
}

// describeNone says that a list is empty, and which rows were looked for.
func describeNone(title string, values url.Values, l list, q trail.Query) string {
	noun := title
	if strings.ToUpper(title) != title && title != "VMs" {
		noun = strings.ToLower(title)
	}
	if q.Before != nil {
		return "No more " + noun + "."
	}
	matching := ""
	for name := range values {
		if value := values.Get(name); !slices.Contains([]string{"cluster", "since", "until", "order", "limit"}, name) && l.always[name] != value && l.usually[name] != value {
			matching = " match the filters"
		}
	}
	period := ""
	switch {
	case !q.Since.IsZero() && !q.Until.IsZero():
		period = " from " + formatTime(q.Since) + " to " + formatTime(q.Until)
	case !q.Until.IsZero():
		period = " before " + formatTime(q.Until)
	case !q.Since.IsZero():
		period = " since " + formatTime(q.Since)
		if age := values.Get("since"); isAge(age) {
			period = " in the last " + spaceAge(age)
		}
	case matching == "":
		period = " recorded"
	}
	return "No " + noun + matching + period + "."
}

// isAge reports whether a time is written as an age, such as 90m or 7d.
func isAge(text string) bool {
	return strings.Trim(text, "0123456789") != text && !strings.Contains(text, "-")
}

// spaceAge returns an age as it reads in a sentence: "6 h" for 6h.
func spaceAge(age string) string {
	unit := strings.TrimLeft(age, "0123456789")
	n := strings.TrimSuffix(age, unit)
	if short, known := map[string]string{"s": "s", "m": "min", "h": "h", "d": "d"}[unit]; known {
		return n + " " + short
	}
	return age
}

// nodesPath is the page of all nodes.
const nodesPath = "/nodes"

// nodesPage shows nodes, those in trouble first.
func nodesPage(v *visit) error {
	if v.leadToTidyAddress() {
		return nil
	}
	values := v.URL.Query()
	q, err := v.site.ParseNodes(dropAppearance(values).Encode(), v.asked)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadQuestion, err)
	}
	nodes, err := v.fleet.Nodes(v.Context(), q)
	if err != nil {
		return err
	}
	b := listBody{Title: "Nodes", About: "Nodes that something was recorded about.", Reset: v.resetLink(), Hidden: v.hiddenFields("limit"), None: "No nodes recorded."}
	b.CSV, b.JSON, b.Command = v.apiLinks("nodes", values)
	if q.Name != "" {
		b.None = "No nodes match the filters."
	}
	order := listField{Name: "order", Label: "Order"}
	for _, o := range nodeOrders {
		order.Options = append(order.Options, listOption{string(o.order), o.text, o.order == q.Order})
	}
	b.Fields = append(v.clusterField(), listField{Name: "name", Label: "Name", Value: q.Name, Hint: "a part of it"}, order)
	if len(nodes) >= q.Limit {
		b.Notice = "Only the first " + strconv.Itoa(q.Limit) + " nodes are shown. A part of the name finds others."
	}
	several := v.Cluster == "" && len(v.Clusters) > 1
	for _, label := range []string{"Cluster", "Node", "State", "VMs", "Leaving", "Stuck", "Open loops"} {
		if label != "Cluster" || several {
			b.Heads = append(b.Heads, listHead{Label: label, Sort: nodeSort(label, q.Order)})
		}
	}
	for _, n := range nodes {
		row := showNodeSummary(n, v.lastSeen(n.Cluster))
		if !several {
			row = row[1:]
		}
		b.Rows = append(b.Rows, row)
	}
	return v.renderList(b, v.asked, time.Time{})
}

// nodeOrders are the orders of nodes with what people read.
var nodeOrders = []struct {
	order trail.NodeOrder
	text  string
}{{trail.NodesByTrouble, "worst first"}, {trail.NodesByVMs, "most VMs first"}, {trail.NodesByName, "by name"}}

// nodeSort says which column nodes are ordered by.
func nodeSort(label string, order trail.NodeOrder) string {
	switch {
	case label == "Node" && order == trail.NodesByName:
		return "ascending"
	case label == "VMs" && order == trail.NodesByVMs:
		return "descending"
	}
	return ""
}

// showNodeSummary returns the cells of a node.
func showNodeSummary(n trail.NodeSummary, now time.Time) []cell {
	state := cell{Parts: []part{{Text: "–"}}}
	if !n.DrainingSince.IsZero() {
		state = cell{Class: "warn", Parts: []part{{Text: "being drained"}, {Text: "for " + formatSpan(now.Sub(n.DrainingSince)), Small: true}}}
	}
	if !n.NotReadySince.IsZero() {
		state = cell{Class: "bad", Parts: []part{{Text: "not ready"}, {Text: "for " + formatSpan(now.Sub(n.NotReadySince)), Small: true}}}
	}
	count := func(k int, class, href string) cell {
		c := cell{Class: "number", Parts: []part{{Text: strconv.Itoa(k)}}}
		if k > 0 {
			c.Class, c.Parts[0].Href = strings.TrimSpace("number "+class), href
		}
		return c
	}
	at := func(path string) string {
		return buildHref(path, "cluster", n.Cluster, "node", n.Node, "state", "open")
	}
	return []cell{
		{Parts: []part{{Text: n.Cluster}}}, {Parts: []part{{Text: n.Node, Title: n.Node, Href: nodeHref(n.Cluster, n.Node)}}}, state,
		count(n.VMs, "", buildHref(vmsPath, "cluster", n.Cluster, "node", n.Node)),
		count(n.Leaving, "", at("/evacuations")), count(n.Stuck, "bad", at("/evacuations")), count(n.Loops, "bad", at("/loops")),
	}
}
