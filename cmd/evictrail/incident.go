package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// incident is a problem that is open now: a loop, an evacuation whose attempts fail, or a drain.
type incident struct {
	cluster string
	kind    incidentKind
	label   string // what it is, for people
	vm      string // namespace/name; empty where it is about a node
	node    string
	since   time.Time
	asOf    time.Time // up to when its cluster was seen: ages count to there
	failed  int       // attempts
	next    time.Time // before which there is no next attempt; zero where none is known
	text    string
	ackedBy string // who acknowledged it; empty where nobody did
}

// incidentKind orders incidents by how much they need somebody.
type incidentKind int

const (
	kindDrain incidentKind = iota
	kindStuck
	kindLoop
)

// key returns what an incident is recognized by from one look to the next.
func (i incident) key() string {
	return strings.Join([]string{i.cluster, i.label, i.vm, i.node, i.since.UTC().Format(time.RFC3339Nano)}, "\x00")
}

// subject returns about whom to ask why.
func (i incident) subject() trail.Subject {
	if namespace, name, ok := strings.Cut(i.vm, "/"); ok {
		return trail.VMISubject(namespace, name)
	}
	return trail.Subject{Kind: trail.SubjectNode, Name: i.node}
}

// describeNext says when the next attempt comes.
func (i incident) describeNext() string {
	switch wait := i.next.Sub(i.asOf); {
	case i.next.IsZero():
		return noValue
	case wait < 0:
		return "overdue " + trail.CompactAge(-wait)
	default:
		return "in " + trail.CompactAge(wait)
	}
}

// incidents are what is open in the clusters that are recorded.
type incidents struct {
	all      []incident
	clusters int
	behind   string   // that all of this is older than now (trail.StandbySigns.Notice)
	notices  []string // of clusters that are not recorded as they should be, and of what is left out
}

// mostOpen bounds how many rows of each list are read.
const mostOpen = 1000

// loadIncidents reads what is open, the worst first, by the lists that people can ask for.
func loadIncidents(ctx context.Context, s api.Reader, cluster string, now time.Time) (incidents, error) {
	var found incidents
	recorders, err := s.Recorders(ctx, cluster, time.Time{}, time.Time{})
	if err != nil {
		return found, err
	}
	asOf := map[string]time.Time{}
	for _, r := range recorders {
		asOf[r.Cluster] = now
		if now.Sub(r.AliveAt) >= trail.SilenceAmber {
			asOf[r.Cluster] = r.AliveAt
		}
		if notice := r.Notice(); notice != "" {
			found.notices = append(found.notices, cmp.Or(r.Cluster, "cluster not known yet")+": "+notice)
		}
	}
	found.behind = trail.OldestStandby(recorders).Notice()
	if missing := missingIn(s); missing != "" {
		found.notices = append(found.notices, missing)
	}
	if found.clusters = len(recorders); found.clusters == 0 {
		found.notices = append(found.notices, "nothing is recorded yet")
	}
	q := trail.Query{Cluster: cluster, Open: true, Limit: mostOpen}
	loops, loopsLeft, err := listOpen[trail.Loop](ctx, s, trail.ViewLoops, q)
	if err != nil {
		return found, err
	}
	evacuations, evacuationsLeft, err := listOpen[trail.Evacuation](ctx, s, trail.ViewEvacuations, q)
	if err != nil {
		return found, err
	}
	drains, drainsLeft, err := listOpen[trail.Drain](ctx, s, trail.ViewDrains, q)
	if err != nil {
		return found, err
	}
	if loopsLeft || evacuationsLeft || drainsLeft {
		found.notices = append(found.notices, fmt.Sprintf("more than %d loops, evacuations or drains are open: only the newest of them are looked at", mostOpen))
	}
	found.all = joinIncidents(loops, evacuations, drains)
	for i := range found.all {
		one := &found.all[i]
		if one.asOf = asOf[one.cluster]; one.asOf.IsZero() {
			one.asOf = now
		}
	}
	sortIncidents(found.all, sortSeverity)
	return found, nil
}

// inClusterOf is a row with its cluster.
type inClusterOf[Row any] struct {
	cluster string
	ackedBy string
	row     Row
}

// listOpen reads the open rows of a view. It reports whether there are more.
func listOpen[Row any](ctx context.Context, s api.Reader, v trail.View, q trail.Query) ([]inClusterOf[Row], bool, error) {
	page, err := s.ListJSON(ctx, v, q)
	if err != nil {
		return nil, false, err
	}
	rows := make([]inClusterOf[Row], len(page.Rows))
	for i, raw := range page.Rows {
		var named struct {
			Cluster string `json:"cluster"`
			AckedBy string `json:"acknowledged_by"`
		}
		if err := cmp.Or(json.Unmarshal(raw, &named), json.Unmarshal(raw, &rows[i].row)); err != nil {
			return nil, false, fmt.Errorf("read a row of %s: %w", v.Name, err)
		}
		rows[i].cluster, rows[i].ackedBy = named.Cluster, named.AckedBy
	}
	return rows, page.Next != nil, nil
}

// joinIncidents makes incidents of open rows. An evacuation of a VM that is in a loop is the same incident: the loop takes its attempts over.
func joinIncidents(loops []inClusterOf[trail.Loop], evacuations []inClusterOf[trail.Evacuation], drains []inClusterOf[trail.Drain]) []incident {
	var all []incident
	failing := map[string]trail.Evacuation{} // by cluster and VM
	vmKey := func(cluster, namespace, vmi string) string { return cluster + "\x00" + namespace + "/" + vmi }
	for _, e := range evacuations {
		if e.row.FailedAttempts > 0 {
			failing[vmKey(e.cluster, e.row.Namespace, e.row.VMI)] = e.row
		}
	}
	joined := map[string]bool{}
	for _, l := range loops {
		one := incident{cluster: l.cluster, kind: kindLoop, label: l.row.Kind.Label().Short, node: l.row.Node, since: l.row.OpenedAt, text: l.row.Summary, ackedBy: l.ackedBy}
		if l.row.VMI != "" {
			one.vm = l.row.Namespace + "/" + l.row.VMI
			key := vmKey(l.cluster, l.row.Namespace, l.row.VMI)
			if e, is := failing[key]; is {
				one.failed, one.next, joined[key] = e.FailedAttempts, e.NextRetryAt, true
			}
		}
		all = append(all, one)
	}
	for _, e := range evacuations {
		key := vmKey(e.cluster, e.row.Namespace, e.row.VMI)
		if e.row.FailedAttempts == 0 || joined[key] {
			continue
		}
		all = append(all, incident{
			cluster: e.cluster, kind: kindStuck, label: "stuck evacuation", vm: e.row.Namespace + "/" + e.row.VMI, node: e.row.Node,
			since: e.row.MarkedAt, failed: e.row.FailedAttempts, next: e.row.NextRetryAt,
			text: "Last failure: " + e.row.DescribeLastFailure() + ".", ackedBy: e.ackedBy,
		})
	}
	for _, d := range drains {
		text := fmt.Sprintf("%d of %d VMs still on it", d.row.VMIsLeft, d.row.VMIsTotal)
		if d.row.Requester != "" {
			text += ", requested by " + trail.ShortRequester(d.row.Requester, d.row.RequesterClass)
		}
		all = append(all, incident{cluster: d.cluster, kind: kindDrain, label: "drain", node: d.row.Node, since: d.row.StartedAt, text: text + "."})
	}
	return all
}

// The orders of incidents.
const (
	sortSeverity = "severity"
	sortAge      = "age"
	sortAttempts = "attempts"
)

var sortOrders = []string{sortSeverity, sortAge, sortAttempts}

// sortIncidents puts those first that need a person most: what nobody has acknowledged, by severity loops, then stuck evacuations, then drains, among equals those with
// the most failed attempts, then the oldest.
func sortIncidents(all []incident, order string) {
	slices.SortStableFunc(all, func(a, b incident) int {
		severity, attempts, age := cmp.Or(trail.CompareBools(a.ackedBy != "", b.ackedBy != ""), cmp.Compare(b.kind, a.kind)), cmp.Compare(b.failed, a.failed), a.since.Compare(b.since)
		rest := cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.vm, b.vm), cmp.Compare(a.node, b.node))
		switch order {
		case sortAge:
			return cmp.Or(age, severity, attempts, rest)
		case sortAttempts:
			return cmp.Or(attempts, severity, age, rest)
		}
		return cmp.Or(severity, attempts, age, rest)
	})
}

// filterIncidents returns those that hold a text in their cluster, name, node or kind.
func filterIncidents(all []incident, text string) []incident {
	text = strings.ToLower(text)
	return slices.DeleteFunc(slices.Clone(all), func(i incident) bool {
		return !strings.Contains(strings.ToLower(strings.Join([]string{i.cluster, i.label, i.vm, i.node}, " ")), text)
	})
}

// describeSum says how many problems there are, and where; without any, that there are none.
func (i incidents) describeSum() string {
	switch {
	case len(i.all) == 0 && len(i.notices) > 0:
		return "No open problem is known, but not everything is recorded."
	case len(i.all) == 0:
		return "No open problems."
	}
	counts := map[string]int{}
	for _, one := range i.all {
		counts[one.cluster]++
	}
	var worst []string
	for cluster := range counts {
		worst = append(worst, cluster)
	}
	slices.SortFunc(worst, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	for n, cluster := range worst {
		worst[n] = fmt.Sprintf("%s %d", cleanText(cluster), counts[cluster])
	}
	return fmt.Sprintf("%s in %d of %s: %s", countOf(len(i.all), "problem"), len(worst), countOf(i.clusters, "cluster"), strings.Join(worst, ", "))
}

// render returns how many problems there are, and a table of the first so many.
func (i incidents) render(first int, on terminal) string {
	text := i.describeSum() + "\n"
	if first > 0 {
		table, _ := newIncidentTable(i.all[:first]).render(on.width, on.color)
		text += table
	}
	return text
}

// listNotices returns what is to be read before the problems: that all of them are older than now, then the notices.
func (i incidents) listNotices() []string {
	if i.behind == "" {
		return i.notices
	}
	return append([]string{i.behind}, i.notices...)
}

// countOf returns a number with its noun.
func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// newIncidentTable makes a table of incidents, each one line high.
func newIncidentTable(all []incident) textTable {
	t := textTable{maxLines: 1, columns: []tableColumn{
		{head: "CLUSTER"}, {head: "PROBLEM"}, {head: "VM"}, {head: "NODE", minor: 1}, {head: "AGE"}, {head: "FAILED"}, {head: "NEXT"}, {head: "SUMMARY", prose: true, minor: 2},
	}}
	for _, one := range all {
		failed := noValue
		if one.failed > 0 {
			failed = fmt.Sprint(one.failed)
		}
		style, text := styleProblem, one.text
		if one.kind == kindDrain {
			style = styleOpen
		}
		if one.ackedBy != "" {
			style, text = styleOpen, "Acknowledged by "+one.ackedBy+". "+text
		}
		t.rows = append(t.rows, tableRow{[]string{
			renderCell("text", one.cluster), one.label, renderCell("text", one.vm), renderCell("text", one.node), trail.CompactAge(one.asOf.Sub(one.since)), failed,
			one.describeNext(), renderCell("text", text),
		}, style})
	}
	return t
}
