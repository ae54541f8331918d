package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

// nodeBody is what the page of a node shows.
type nodeBody struct {
	Cluster, Node string
	WhyNot        trail.NotAnswer
	Guests        []trail.Guest  // the worst first
	MoreGuests    int            // that are left out
	Load          *trail.Reading // the latest; nil where none is known
	Slots         string         // how many slots of the descheduler are in use; empty where it has no limit
	SlotsOver     bool           // more than there are
	Loops         []trail.Loop
	Drains        []trail.Drain
	Blockers      []trail.DrainBlocker
	Chart         chart
	Lines         evidence
	Facts         string
	Forecast      *forecast.Drain // of a drain that goes on, or that is asked about; nil where it is not
	Preview       string          // asks for it; empty where it is there, or the node is empty
}

// guestsShown bounds the table of VMs on a node.
const guestsShown = 50

// guestsCompared bounds the names of the VMs on a node at two moments.
const guestsCompared = 30

// vmLanesKept bounds the VMs that the chart of a node shows.
const vmLanesKept = 60

// nodeSpan is the span of time that the page of a node shows where nothing asks for another.
const nodeSpan = time.Hour

func nodePage(v *visit) error {
	at, err := v.parseMoment()
	if err != nil {
		return err
	}
	since, err := v.parseTimeParam("from")
	if err != nil {
		return err
	}
	node := mux.Vars(v.Request)["node"]
	of := trail.Subject{Kind: trail.SubjectNode, Name: node}
	c, err := v.reader.Ask(v.Context(), trail.Question{Cluster: v.Cluster, Of: of, At: at, Since: since})
	if err != nil {
		return err
	}
	if err := v.compareMoments(c, of, func(c *trail.Cluster) []trail.BriefLine { return describeNode(c, node) }); err != nil {
		return err
	}
	rows := c.Node(node)
	w, err := v.parseWindow(findStoryStart(c, node), c.Now, c.Now)
	if err != nil {
		return err
	}
	b := nodeBody{Cluster: c.Name, Node: node, WhyNot: c.WhyNotNode(node), Drains: rows.Drains, Blockers: rows.Blockers}
	b.Guests, b.Load = c.Guests(b.WhyNot.Obstacles), c.NodeLoad(node)
	b.MoreGuests = max(len(b.Guests)-guestsShown, 0)
	b.Guests = b.Guests[:len(b.Guests)-b.MoreGuests]
	b.Slots, b.SlotsOver = describeSlots(c, node)
	through, err := v.loadLoopsThrough(c, node)
	if err != nil {
		return err
	}
	for _, l := range slices.Concat(c.LoopsAt(node), through) {
		if l.ClosedBy != trail.LoopRefuted && w.overlapsSpan(l.OpenedAt, l.ClosedAt) {
			b.Loops = append(b.Loops, l)
		}
	}
	slices.SortStableFunc(b.Loops, func(x, y trail.Loop) int { // what is open first, then the newest
		return cmp.Or(trail.CompareBools(!x.Open(), !y.Open()), y.OpenedAt.Compare(x.OpenedAt))
	})
	b.Drains = slices.DeleteFunc(slices.Clone(rows.Drains), func(x trail.Drain) bool { return !w.overlapsSpan(x.StartedAt, x.EndedAt) })
	b.Chart = nodeChart(v.newDraft(w, c), node, rows)
	b.Chart.Title = "VM movements on " + node
	b.Chart.Range = v.rangeOf(w)
	if b.Lines, err = v.findEvidence(w, rows.Timeline, func(l trail.Line) string {
		id, href := findLineSource(c, l, rows)
		if href != "" {
			return href
		}
		return factsHref(c.Name, "", node, l.At.Add(-around), l.At.Add(around), id, "")
	}); err != nil {
		return err
	}
	if err := v.nameGaps(c.Name, w, at.IsZero()); err != nil {
		return err
	}
	b.Facts = factsHref(c.Name, "", node, w.From, w.To, nil, "")
	v.Title, v.Cluster, v.AsOf, v.Content = node, c.Name, c.Now, b
	if at.IsZero() {
		if err := v.showAcknowledgement(c.Name, of, of); err != nil {
			return err
		}
		v.followLive("node", node)
		if err := v.forecastDrain(&b, of); err != nil {
			return err
		}
		v.Content = b
	}
	return v.renderPage("node", http.StatusOK)
}

// loopsThroughRead bounds the loops that are looked through for those of VMs that were moved to and from a node.
const loopsThroughRead = 100

// loadLoopsThrough returns the loops of VMs that are moved again and again, to and from the node among others, as they are recorded:
// those that were closed since the moment of the page were open at it.
func (v *visit) loadLoopsThrough(c *trail.Cluster, node string) ([]trail.Loop, error) {
	page, err := v.reader.ListJSON(v.Context(), trail.ViewLoops, trail.Query{
		Cluster: c.Name, Node: node, Until: c.Now.Add(time.Microsecond), Limit: loopsThroughRead,
	})
	if err != nil {
		return nil, err
	}
	var out []trail.Loop
	for _, row := range page.Rows {
		var l trail.Loop
		if err := json.Unmarshal(row, &l); err != nil {
			return nil, fmt.Errorf("decode a loop: %w", err)
		}
		if l.Node != "" {
			continue // LoopsAt has it
		}
		if l.ClosedAt.After(c.Now) {
			l.ClosedAt, l.ClosedBy = time.Time{}, ""
		}
		out = append(out, l)
	}
	return out, nil
}

// previewParam asks the page of a node for what a drain of it would do.
const previewParam = "drain"

// forecastDrain adds how a drain goes on, or would go where that is asked for: it takes longer than the rest of the page.
func (v *visit) forecastDrain(b *nodeBody, of trail.Subject) error {
	draining := slices.ContainsFunc(b.Drains, func(d trail.Drain) bool { return d.EndedAt.IsZero() })
	switch {
	case len(b.Guests) == 0:
		return nil
	case !draining && v.param(previewParam) == "":
		b.Preview = buildHref("/nodes/"+of.Name, "cluster", b.Cluster, previewParam, "preview") + "#forecast"
		return nil
	}
	d, err := v.reader.DrainForecast(v.Context(), trail.Question{Cluster: b.Cluster, Of: of})
	b.Forecast = &d
	return err
}

// describeNode says how it stands with a node in a few labelled lines.
func describeNode(c *trail.Cluster, node string) []trail.BriefLine {
	not := c.WhyNotNode(node)
	lines := []trail.BriefLine{{Label: "Status", Text: not.Paragraph}}
	var names []string
	for _, g := range c.Guests(not.Obstacles) {
		names = append(names, g.Namespace+"/"+g.VMI)
	}
	slices.Sort(names)
	if more := len(names) - guestsCompared; more > 0 {
		names = append(names[:guestsCompared], fmt.Sprintf("and %d more", more))
	}
	lines = append(lines, trail.BriefLine{Label: "VMs", Text: strings.Join(names, ", ")})
	if l := c.NodeLoad(node); l != nil {
		lines = append(lines, trail.BriefLine{Label: "Load", Text: fmt.Sprintf("%s, threshold %s", formatShare(l.Value), formatShare(l.Threshold))})
	}
	if text, _ := describeSlots(c, node); text != "" {
		lines = append(lines, trail.BriefLine{Label: "Slots", Text: text})
	}
	var loops []string
	for _, l := range c.LoopsAt(node) {
		if l.Open() {
			loops = append(loops, l.Name())
		}
	}
	return append(lines, trail.BriefLine{Label: "Open loops", Text: strings.Join(loops, ", ")})
}

// describeSlots says how many of its slots on a node the descheduler counts as in use now; empty where it has no limit.
func describeSlots(c *trail.Cluster, node string) (text string, over bool) {
	limit, used := c.SlotLimit(c.Now), 0
	if limit == 0 {
		return "", false
	}
	for _, s := range c.Annotated(node) {
		if s.To.IsZero() {
			used++
		}
	}
	return fmt.Sprintf("%d of %d descheduler slot%s in use", used, limit, pluralSuffix(limit)), used > limit
}

// findStoryStart returns the start of the story of a node: from the first of what happened in the last hour, and of what is
// still going on.
func findStoryStart(c *trail.Cluster, node string) time.Time {
	from, recent := c.Now, c.Now.Add(-nodeSpan)
	since := func(t time.Time, open bool) {
		if t.Before(from) && (open || t.After(recent)) {
			from = t
		}
	}
	for _, d := range c.Node(node).Drains {
		since(d.StartedAt, d.Outcome == "")
	}
	for _, l := range c.LoopsAt(node) {
		since(l.OpenedAt, l.Open())
	}
	for _, rows := range c.Rows {
		for _, e := range rows.Evacuations {
			since(e.MarkedAt, e.Node == node && e.Outcome == "")
		}
		for _, p := range rows.Placements {
			since(p.FromAt, false)
		}
	}
	return from
}

// nodeChart draws what holds for the node, then a lane for each VM that came or went: those that cannot leave above.
func nodeChart(d draft, node string, rows trail.Derived) chart {
	c := chart{window: d.window, Ticks: d.buildTicks()}
	c.Lanes, c.Bands = d.loopLanes(d.cluster.LoopsAt(node))
	for _, l := range []lane{d.drainLane(rows.Drains), d.slotLane(node)} {
		if len(l.Marks) > 0 {
			c.Lanes = append(c.Lanes, l)
		}
	}
	all := d.vmsOf(node)
	vms := slices.DeleteFunc(slices.Clone(all), vmOn.isHidden)
	c.More = max(len(vms)-vmLanesKept, 0)
	for _, vm := range vms[:len(vms)-c.More] {
		c.Lanes = append(c.Lanes, d.vmLane(node, vm))
	}
	c.Lanes = append(c.Lanes, othersLane(len(all)-len(vms))...)
	c.joinMarks(d.closer)
	c.explainMarks()
	return c
}

// drainLane draws drains, with how many guests were left from each departure on.
func (d draft) drainLane(drains []trail.Drain) lane {
	l := lane{Name: "drain", Note: "VMs still on it"}
	for _, x := range drains {
		until := x.EndedAt
		if until.IsZero() {
			until = d.Now
		}
		title := fmt.Sprintf("Drained from %s by %s: %d of %d VMs still on it", formatTime(x.StartedAt), cmp.Or(x.Requester, x.RequesterClass.Label().Short), x.VMIsLeft, x.VMIsTotal)
		if x.Outcome != "" {
			title += fmt.Sprintf(", %s at %s", x.Outcome.Label(), formatTime(x.EndedAt))
		}
		href := factsHref(d.cluster.Name, "", x.Node, x.StartedAt.Add(-around), x.StartedAt.Add(time.Minute), nil, "")
		moments := append(d.listDepartures(x.Node, x.StartedAt, until), until)
		for i, from := range slices.Concat([]time.Time{x.StartedAt}, moments[:len(moments)-1]) {
			if from.Before(moments[i]) {
				left := d.countGuests(x.Node, from)
				l.addMark(d.window, from, moments[i], mark{
					Shape: shapeBar, Class: "drain", Label: fmt.Sprint(left), Title: fmt.Sprintf("%d left from %s on. %s", left, formatTime(from), title), Href: href, of: "departures",
				})
			}
		}
	}
	return l
}

// listDepartures returns when guests left a node between two times, in order.
func (d draft) listDepartures(node string, from, to time.Time) []time.Time {
	var out []time.Time
	for _, rows := range d.cluster.Rows {
		for _, p := range rows.Placements {
			if p.Node == node && p.ToAt.After(from) && p.ToAt.Before(to) {
				out = append(out, p.ToAt)
			}
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// countGuests counts the guests of a node at a time.
func (d draft) countGuests(node string, at time.Time) int {
	n := 0
	for _, rows := range d.cluster.Rows {
		for _, p := range rows.Placements {
			if p.Node == node && !p.FromAt.After(at) && (p.ToAt.IsZero() || p.ToAt.After(at)) {
				n++
			}
		}
	}
	return n
}

// slotLane draws how many VMs bear the annotation by which the descheduler counts its evictions from a node.
func (d draft) slotLane(node string) lane {
	l := lane{Name: "slots in use", Note: "of the descheduler"}
	if limit := d.cluster.SlotLimit(d.Now); limit > 0 {
		l.Note = fmt.Sprintf("of the descheduler; limit %d", limit)
	}
	type edge struct {
		at   time.Time
		by   int
		href string
	}
	var edges []edge
	for _, s := range d.cluster.Annotated(node) {
		var from, to string
		if s.VMI != "" { // else the visitor may not see whose it is
			from, to = d.linkToFacts(s.Namespace, s.VMI, s.From, s.From, &s.EventID, ""), d.linkToFacts(s.Namespace, s.VMI, s.To, s.To, nil, "")
		}
		edges = append(edges, edge{s.From, 1, from})
		if !s.To.IsZero() {
			edges = append(edges, edge{s.To, -1, to})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	used := 0
	for i, e := range edges {
		used += e.by
		until := time.Time{}
		if i+1 < len(edges) {
			until = edges[i+1].at
		}
		if used == 0 || until.Equal(e.at) {
			continue
		}
		title, class, label := fmt.Sprintf("The descheduler counts %d evictions from %s as under way since %s", used, node, formatTime(e.at)), "slots", fmt.Sprint(used)
		if limit := d.cluster.SlotLimit(e.at); limit > 0 {
			label = fmt.Sprintf("%d of %d slots", used, limit)
			title = fmt.Sprintf("Evictions from %s that the descheduler counts as under way since %s: %s", node, formatTime(e.at), label)
			switch {
			case used > limit:
				class = "slots over"
			case used == limit:
				class = "slots full"
			}
		}
		l.addMark(d.window, e.at, until, mark{Shape: shapeBar, Class: class, Label: label, Short: fmt.Sprint(used), Title: title, Href: e.href, of: "changes"})
	}
	return l
}

// vmOn is a VM that was on a node, or was to leave it.
type vmOn struct {
	namespace, name string
	rows            trail.Derived
	stuck           bool      // an evacuation from there has failed, or it cannot be moved
	left            time.Time // when it left; zero: it did not
	came            time.Time
}

// vmsOf finds the VMs that were on a node in the window: those that are stuck first, then those that left, then the rest, each in the
// order of their times.
func (d draft) vmsOf(node string) []vmOn {
	var out []vmOn
	for s, rows := range d.cluster.Rows {
		if s.Kind != trail.SubjectVMI {
			continue
		}
		vm := vmOn{rows: rows}
		vm.namespace, vm.name = s.VM()
		there := false
		for _, p := range rows.Placements {
			if p.Node == node && d.overlapsSpan(p.FromAt, p.ToAt) {
				there, vm.came, vm.left = true, p.FromAt, p.ToAt
			}
		}
		for _, e := range rows.Evacuations {
			if e.Node == node && d.overlapsSpan(e.MarkedAt, e.EndedAt) {
				there, vm.stuck = true, vm.stuck || e.FailedAttempts > 0
			}
		}
		if there {
			out = append(out, vm)
		}
	}
	slices.SortFunc(out, func(a, b vmOn) int {
		return cmp.Or(trail.CompareBools(!a.stuck, !b.stuck), trail.CompareBools(a.left.IsZero(), b.left.IsZero()), a.left.Compare(b.left), a.came.Compare(b.came),
			strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name))
	})
	return out
}

// isHidden reports whether the visitor may not see which VM it is.
func (vm vmOn) isHidden() bool { return vm.namespace == "" }

// othersLane stands for so many VMs that the visitor may not see; none for none.
func othersLane(n int) []lane {
	if n == 0 {
		return nil
	}
	return []lane{{Name: fmt.Sprintf("and %d VM%s", n, pluralSuffix(n)), Note: "of other namespaces", Class: "vm"}}
}

// vmLane draws one VM on a node: where it was, that it was to leave, what was tried, who asked.
func (d draft) vmLane(node string, vm vmOn) lane {
	l := lane{Name: vm.namespace + "/" + vm.name, Href: vmHref(d.cluster.Name, vm.namespace, vm.name), Class: "vm"}
	if vm.stuck {
		l.Class, l.Note = "vm stuck", "could not leave"
	}
	for _, p := range vm.rows.Placements {
		if p.Node == node {
			d.drawPlacement(&l, p)
		}
	}
	for _, e := range vm.rows.Evacuations {
		if e.Node == node {
			d.drawEvacuation(&l, e)
		}
	}
	for _, m := range vm.rows.Migrations {
		if m.SourceNode == node {
			class, sign := styleMigration(m)
			tried := mark{
				Shape: shapeStrip, Class: class, Title: migrationTitle(m), Href: d.linkToFacts(m.Namespace, m.VMI, m.CreatedAt, m.FinishedAt, nil, m.UID),
				of: "migrations", what: formatState(m),
			}
			l.addMark(d.window, m.CreatedAt, m.FinishedAt, tried)
			if !m.FinishedAt.IsZero() {
				tried.Shape, tried.Label = shapeTick, sign
				l.addMark(d.window, m.FinishedAt, m.FinishedAt, tried)
			}
		}
	}
	for _, r := range vm.rows.Requests {
		if r.Node == node {
			d.drawRequest(&l, r)
		}
	}
	return l
}
