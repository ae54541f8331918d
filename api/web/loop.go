package web

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/mux"

	"github.com/evictrail/evictrail/trail"
)

// loopBody is what the page of a loop shows.
type loopBody struct {
	Cluster  string
	Loop     trail.Loop
	Name     string
	Lasted   time.Duration
	Chart    chart
	Evidence []proof
	Lanes    string // what the lanes of the chart are, in a sentence
	Checks   []trail.Check
	Whole    string // address of the whole of it, where only the end is drawn
}

// proof is a piece of evidence with the address of the fact behind it.
type proof struct {
	trail.Exhibit
	VMHref, Href string
}

// loopMargin is how much time before a loop and after it is shown: what led to it, and what came of it.
const loopMargin = 5 * time.Minute

// drawnMost is how much of a loop is drawn where nothing asks for more: some go on for weeks.
const drawnMost = 24 * time.Hour

func loopPage(v *visit) error {
	var id trail.FactID
	if err := id.UnmarshalText([]byte(mux.Vars(v.Request)["id"])); err != nil {
		return fmt.Errorf("%w: %w", errBadQuestion, err)
	}
	cluster, l, err := v.reader.Loop(v.Context(), v.Cluster, id)
	if err != nil {
		return err
	}
	of := trail.Subject{Kind: trail.SubjectNode, Name: l.Node}
	if l.Kind != trail.LoopDualRetry && l.VMI != "" || l.Node == "" {
		of = trail.VMISubject(l.Namespace, l.VMI)
	}
	seen, err := v.reader.LastSeen(v.Context(), cluster, time.Now().UTC())
	if err != nil {
		return err
	}
	b := loopBody{Cluster: cluster, Loop: l, Name: l.Name()}
	if of.Name != "/" { // a loop about slots of the cluster is about no one thing that could be drawn
		if err := v.drawLoop(&b, of, seen); err != nil {
			return err
		}
	}
	over := seen
	if !l.Open() {
		over = l.ClosedAt
	}
	b.Lasted = over.Sub(l.OpenedAt)
	from, to := findEvidenceSpan(l, seen)
	period := window{From: from, To: to, Now: seen} // also a gap beside the loop hides a part of it
	if err := v.nameGaps(cluster, period, l.Open()); err != nil {
		return err
	}
	for _, x := range l.Evidence {
		b.Evidence = append(b.Evidence, proofOf(cluster, l, x))
	}
	v.Title, v.Cluster, v.AsOf, v.Content = b.Name, cluster, seen, b
	if l.Open() {
		if err := v.showAcknowledgement(cluster, l.Problem(), of); err != nil {
			return err
		}
		v.followLive("node", l.Node)
	}
	return v.renderPage("loop", http.StatusOK)
}

// drawLoop draws what is asked for of a loop, else all of it, or the last of it where it is long.
func (v *visit) drawLoop(b *loopBody, of trail.Subject, seen time.Time) error {
	begin, to := findEvidenceSpan(b.Loop, seen)
	from := begin
	if latest := to.Add(-drawnMost); begin.Before(latest) {
		from = latest
	}
	w, err := v.parseWindow(from, to, seen)
	if err != nil {
		return err
	}
	if w.From.After(begin) && from.After(begin) {
		b.Whole = v.linkWith("from", formatTimestamp(begin), "to", formatTimestamp(to))
	}
	at := w.To
	if seen.Before(at) {
		at = seen
	}
	c, err := v.reader.Ask(v.Context(), trail.Question{Cluster: b.Cluster, Of: of, From: w.From, At: at})
	if err != nil {
		return err
	}
	if !b.Loop.Open() {
		b.Checks = checksAfter(b.Loop, c)
	}
	b.drawChart(v.newDraft(w, c), of)
	b.Chart.Range = v.rangeOf(w)
	return nil
}

// checksAfter returns what is to be looked at now because of what a loop that is over left behind.
func checksAfter(l trail.Loop, c *trail.Cluster) []trail.Check {
	var o trail.Overview
	for _, m := range slices.Backward(c.VM(l.Namespace, l.VMI).Migrations) {
		if !m.FinishedAt.Before(l.OpenedAt) && !m.FinishedAt.After(l.ClosedAt.Add(loopMargin)) {
			o.Recent = append(o.Recent, m)
		}
	}
	return o.Checks(nil)
}

// findEvidenceSpan returns the span of time that a loop's evidence covers, with what was before and after.
func findEvidenceSpan(l trail.Loop, now time.Time) (from, to time.Time) {
	from, to = l.OpenedAt, now
	if n := len(l.Evidence); n > 0 && l.Evidence[0].At.Before(from) {
		from = l.Evidence[0].At
	}
	if !l.Open() {
		to = l.ClosedAt
	}
	if after := to.Add(loopMargin); after.Before(now) {
		to = after
	}
	return from, to
}

func proofOf(cluster string, l trail.Loop, x trail.Exhibit) proof {
	p := proof{Exhibit: x}
	vm := x.VMI
	if vm == "" && l.VMI != "" {
		vm = l.Namespace + "/" + l.VMI
	}
	node := ""
	if vm == "" {
		node = l.Node
	}
	if vm != "" {
		p.VMHref = buildHref("/vms/"+vm, "cluster", cluster)
	}
	if x.EventID != nil {
		p.Href = factsHref(cluster, vm, node, x.At.Add(-around), x.At.Add(around), x.EventID, "")
	}
	return p
}

// drawChart lays out the picture that fits the kind of loop.
func (b *loopBody) drawChart(d draft, of trail.Subject) {
	namespace, vmi := of.VM()
	switch {
	case b.Loop.Kind == trail.LoopDualRetry:
		b.Chart = twoLanes(d, b.Loop)
		b.Lanes = "Above, what KubeVirt tries again and again for the VM that cannot leave. Below it, whom the descheduler took from the same node during that time."
		if !b.Loop.Open() {
			b.Lanes = "Above, what KubeVirt tried again and again for the VM that could not leave. Below it, whom the descheduler took from the same node during that time."
		}
	case of.Kind == trail.SubjectVMI:
		b.Chart = vmChart(d, d.cluster.VM(namespace, vmi))
		b.Lanes = "What happened to the VM while the loop was open."
	default:
		b.Chart = nodeChart(d, of.Name, d.cluster.Node(of.Name))
		b.Lanes = "What happened on the node while the loop was open; VMs whose attempts failed are above."
	}
	b.Chart.Title = "The picture of the loop"
}

// twoLanes draws a dual retry loop so that it is seen at once: the VM that is stuck above, those that were evicted in its place below,
// then how many slots of the descheduler are in use, and whether it sees that the stuck one is under way.
func twoLanes(d draft, l trail.Loop) chart {
	c := chart{window: d.window, Ticks: d.buildTicks()}
	c.Bands = []mark{d.newSpanMark(shapeBand, "loop", l.OpenedAt, l.ClosedAt)}
	c.Lanes = d.stuckLanes(l)
	others := 0
	for _, vm := range d.vmsOf(l.Node) {
		switch {
		case vm.namespace == l.Namespace && vm.name == l.VMI || !d.takenFrom(l.Node, vm, d.From):
			continue
		case vm.isHidden():
			others++
			continue
		}
		row := d.vmLane(l.Node, vm)
		if row.Note = "taken before"; d.takenFrom(l.Node, vm, l.OpenedAt.Add(-time.Second)) {
			row.Note = "taken instead"
		}
		c.Lanes = append(c.Lanes, row)
	}
	if len(c.Lanes) > vmLanesKept {
		c.More = len(c.Lanes) - vmLanesKept
		c.Lanes = c.Lanes[:vmLanesKept]
	}
	c.Lanes = append(append(c.Lanes, othersLane(others)...), d.slotLane(l.Node))
	if l.VMI != "" {
		c.Lanes = append(c.Lanes, d.annotationLane(l))
	}
	c.joinMarks(d.closer)
	c.explainMarks()
	return c
}

// stuckLanes draws what was tried for the VM that a loop is about, and who asked that it leaves.
func (d draft) stuckLanes(l trail.Loop) []lane {
	if l.VMI == "" {
		return []lane{{Name: "a VM of another namespace", Class: "vm stuck", Note: couldNot(l) + " leave"}}
	}
	rows := d.cluster.VM(l.Namespace, l.VMI)
	name, href := l.Namespace+"/"+l.VMI, vmHref(d.cluster.Name, l.Namespace, l.VMI)
	tried := lane{Name: name, Href: href, Class: "vm stuck", Note: couldNot(l) + " leave: attempts"}
	asked := lane{Name: name, Href: href, Class: "vm stuck", Note: "asked to leave, held back"}
	for _, m := range rows.Migrations {
		d.drawMigration(&tried, m)
	}
	d.drawHolds(&asked, rows.Decisions)
	for _, r := range rows.Requests {
		d.drawRequest(&asked, r)
	}
	return []lane{tried, asked}
}

// couldNot says that a VM cannot, or while the loop was open could not.
func couldNot(l trail.Loop) string {
	if l.Open() {
		return "cannot"
	}
	return "could not"
}

// takenFrom reports whether the descheduler had a VM leave a node, from a time on and in the window.
func (d draft) takenFrom(node string, vm vmOn, from time.Time) bool {
	return slices.ContainsFunc(vm.rows.Evacuations, func(e trail.Evacuation) bool {
		return e.Node == node && e.RequesterClass == trail.RequesterDescheduler && !e.MarkedAt.Before(from) && e.MarkedAt.Before(d.To)
	})
}

// annotationLane draws when the descheduler could see that the stuck VM is on its way.
func (d draft) annotationLane(l trail.Loop) lane {
	out := lane{Name: "annotation", Note: "by which the descheduler counts"}
	for _, s := range d.cluster.Annotated(l.Node) {
		if s.Namespace == l.Namespace && s.VMI == l.VMI {
			out.addMark(d.window, s.From, s.To, mark{
				Shape: shapeBar, Class: "annotated", Title: "The pod of " + l.Namespace + "/" + l.VMI + " bears eviction-in-progress from " + formatTime(s.From),
				Href: d.linkToFacts(s.Namespace, s.VMI, s.From, s.From, &s.EventID, ""), of: "annotations",
			})
		}
	}
	return out
}
