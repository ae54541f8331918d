package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

const nodesPath = "/api/v1/nodes"

// Bounds of the list of nodes.
const (
	defaultNodes = 1_000
	maxNodes     = 5_000
)

// askedNodes is what the list of nodes is asked for.
type askedNodes struct {
	trail.NodeQuery
	format string // json or csv; empty: Accept says
}

// nodeListParams are the parameters of the list of nodes.
func nodeListParams() []param[askedNodes] {
	return []param[askedNodes]{
		{name: "cluster", about: "Only this cluster.", schema: newTextSchema(), example: "prod",
			read: readText("cluster", func(a *askedNodes) *string { return &a.Cluster }), write: func(a askedNodes) string { return a.Cluster }},
		{name: "name", about: "Only nodes whose names contain this.", schema: newTextSchema(), example: "worker-",
			read: readText("name", func(a *askedNodes) *string { return &a.Name }), write: func(a askedNodes) string { return a.Name }},
		{name: "order", about: "Which nodes come first: trouble (not ready, then the most stuck evacuations, loops and drains), name, or vms (the most VMs).",
			schema: withDefault(oneOf(trail.NodeOrders()...), trail.NodesByTrouble), example: "name",
			read: func(text string, _ time.Time, a *askedNodes) error {
				if a.Order = trail.NodeOrder(text); !slices.Contains(trail.NodeOrders(), a.Order) {
					return fmt.Errorf("order %q: expected one of %v", text, trail.NodeOrders())
				}
				return nil
			}, write: func(a askedNodes) string { return string(a.Order) }},
		{name: "limit", about: "The first so many nodes.", schema: newIntegerSchema(maxNodes, defaultNodes), example: "50",
			read: func(text string, _ time.Time, a *askedNodes) (err error) {
				if a.Limit, err = strconv.Atoi(text); err != nil || a.Limit < 1 || a.Limit > maxNodes {
					return fmt.Errorf("limit %q: expected a number from 1 to %d", text, maxNodes)
				}
				return nil
			}, write: func(a askedNodes) string { return onlyIf(a.Limit > 0, strconv.Itoa(a.Limit)) }},
		{name: "format", about: "The format of the answer; it has precedence over Accept.", schema: oneOf(formats...), example: "csv",
			read: func(text string, _ time.Time, a *askedNodes) error {
				if a.format = text; !slices.Contains(formats, text) {
					return fmt.Errorf("format %q: expected json or csv", text)
				}
				return nil
			}, write: func(a askedNodes) string { return a.format }},
	}
}

// readNodes reads what the list of nodes is asked for. An error is a *Problem.
func readNodes(raw string, now time.Time) (askedNodes, error) {
	a := askedNodes{NodeQuery: trail.NodeQuery{Order: trail.NodesByTrouble, Limit: defaultNodes}}
	err := readParams(nodeListParams(), raw, now, &a)
	return a, err
}

// readNodePageQuery is readPageQuery for nodes.
func readNodePageQuery(raw string, now time.Time) (trail.NodeQuery, error) {
	a, err := readNodes(raw, now)
	return a.NodeQuery, err
}

// NodesURL returns the path, relative to that of evictrail, and the query string of the list of nodes.
func NodesURL(q trail.NodeQuery) *url.URL {
	return &url.URL{Path: nodesPath, RawQuery: writeParams(nodeListParams(), askedNodes{q, "json"}).Encode()}
}

// listNodes answers with nodes.
func listNodes(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	now := time.Now().UTC()
	a, err := readNodes(r.URL.RawQuery, now)
	if err != nil {
		return reply{}, err
	}
	if a.format == "" {
		if a.format, err = acceptedFormat(r.Header.Values("Accept")); err != nil {
			return reply{}, err
		}
	}
	nodes, err := reader.Nodes(ctx, a.NodeQuery)
	if err != nil {
		return reply{}, err
	}
	if nodes == nil {
		nodes = []trail.NodeSummary{} // an empty array, not null
	}
	answer, err := newJSONReply(nodes, nil)
	if a.format == "csv" {
		var b bytes.Buffer
		err = WriteCSV(&b, newNodeTable(nodes))
		answer = reply{contentType: contentTypes["csv"], body: b.Bytes()}
	}
	if err != nil {
		return reply{}, err
	}
	answer.header = http.Header{"Vary": {"Accept"}}
	_, err = addListRecorders(ctx, reader, answer.header, a.Cluster, now, time.Time{})
	return answer, err
}

// newNodeTable returns nodes as a table, whose columns are the names in JSON.
func newNodeTable(nodes []trail.NodeSummary) trail.Table {
	t := trail.Table{Columns: strings.Fields("cluster node vms leaving stuck loops draining_since not_ready_since")}
	for _, n := range nodes {
		row := []*string{&n.Cluster, &n.Node}
		for _, count := range []int{n.VMs, n.Leaving, n.Stuck, n.Loops} {
			text := strconv.Itoa(count)
			row = append(row, &text)
		}
		for _, at := range []time.Time{n.DrainingSince, n.NotReadySince} {
			var text *string
			if !at.IsZero() {
				written := at.UTC().Format(trail.CellTime)
				text = &written
			}
			row = append(row, text)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func nodeSchema() schema {
	return withDescription(newObjectSchema([]string{"cluster", "node", "vms", "leaving", "stuck", "loops"}, fields{
		{"cluster", newTextSchema()},
		{"node", newTextSchema()},
		{"vms", newCountSchema("VMs that run on it now.")},
		{"leaving", newCountSchema("Of its evacuations, those that are open.")},
		{"stuck", newCountSchema("Of these, those with failed attempts.")},
		{"loops", newCountSchema("Loops that are open.")},
		{"draining_since", newTimeSchema("Since when it is being drained. Missing where it is not.")},
		{"not_ready_since", newTimeSchema("Since when it is not ready. Missing where nothing says so.")},
	}), "A node, with what is on it now.")
}

func (s *reads) nodesRoute() route {
	const about = "Each node that something was recorded about, with numbers of what is on it now: VMs, evacuations that are open (leaving) and, of these, those with failed attempts " +
		"(stuck), open loops. CSV has the same names as columns. "
	rows := mediaTypeEntry{mediaTypes["json"], listOf(newRefSchema("Node")), nil}
	table := mediaTypeEntry{mediaTypes["csv"], newTextSchema(), nil}
	return route{
		method: http.MethodGet, path: nodesPath, tag: tagLists, id: "listNodes", short: "List nodes", about: about + csvAbout, params: describeParams(nodeListParams()), problems: listProblems,
		answers: []answer{{http.StatusOK, "Nodes.", whyHeaders, []mediaTypeEntry{rows, table}}, newUnchangedAnswer(whyHeaders)}, handler: s.newHandler(listNodes),
	}
}
