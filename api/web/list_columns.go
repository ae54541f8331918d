package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// vmsPath is the page of all VMs that run.
const vmsPath = "/vms"

// lists are the pages of lists, in the order in which the head of each page names them; that of nodes is nodesPage.
var lists = []list{
	{
		path: vmsPath, title: "VMs", about: "VMs that run now.", view: trail.ViewPlacements, always: map[string]string{"open": "true"}, prepare: (*visit).loadStates,
		columns: []column{
			{"VM", showVM}, {"Node", showNode}, {"State", showVMState}, {"On this node since", showTime("from_at")}, {"Came by", showArrival}, {"Why not migratable", showText("not_migratable")},
		},
	},
	{
		path: "/loops", title: "Loops", view: trail.ViewLoops,
		columns: []column{
			{"Loop", showLoop}, {"State", showEnd("closed_by")}, {"VM", showVM}, {"Node", showNode}, {"Opened", showTime("opened_at")}, {"For", showSpan("opened_at", "closed_at")},
			{"Summary", showText("summary")},
		},
	},
	{
		path: "/evacuations", title: "Evacuations", view: trail.ViewEvacuations, beside: []choice{besideWeekly},
		columns: []column{
			{"VM", showVM}, {"Node", showNode}, {"State", showEnd("outcome")}, {"Marked", showTime("marked_at")}, {"For", showSpan("marked_at", "ended_at")},
			{"Asked by", showRequester}, {"Attempts", showAttempts}, {"Last failure", showLabels("last_failure_class", "last_failure_reason")},
		},
	},
	{
		path: "/migrations", title: "Migrations", view: trail.ViewMigrations, beside: []choice{besideWeekly},
		columns: []column{
			{"VM", showVM}, {"Migration", showMigration}, {"From, to", showRoute}, {"Phase", showPhase}, {"Created", showTime("created_at")}, {"For", showSpan("created_at", "finished_at")},
			{"Trigger", showLabels("trigger", "requester_class")}, {"Failure", showLabels("failure_class", "failure_reason")},
		},
	},
	{
		path: "/queue", title: "Queue", about: "Migrations that wait for a slot, in the order in which KubeVirt takes them.", view: trail.ViewQueue, usually: map[string]string{"order": "oldest"},
		beside: []choice{besideLimits},
		columns: []column{
			{"Place", showPlace}, {"VM", showVM}, {"Node", showNode}, {"Migration", showMigration}, {"Created", showTime("created_at")}, {"For", showSpan("created_at", "")},
			{"Trigger", showLabels("trigger")}, {"Priority", showText("priority")}, {"Waits because", showLabels("wait_reason")}, {"After", showText("after_vmi")}, {"Slots in use", showSlots},
		},
	},
	{
		path: "/requests", title: "Requests", view: trail.ViewRequests, usually: map[string]string{"repeats": "false"},
		columns: []column{
			{"Requested", showTime("requested_at")}, {"VM", showVM}, {"Node", showNode}, {"Asked by", showRequester}, {"Answer", showLabels("answer")}, {"Effect", showLabels("effect")},
			{"Repeats", showText("repeats")}, {"Stated reason", showText("stated_reason")},
		},
	},
	{
		path: "/drains", title: "Drains", view: trail.ViewDrains,
		columns: []column{
			{"Node", showNode}, {"State", showEnd("outcome")}, {"Started", showTime("started_at")}, {"For", showSpan("started_at", "ended_at")}, {"Asked by", showRequester}, {"VMs still on it", showLeft},
		},
	},
	{
		path: "/upgrade-waves", title: "Upgrade waves", view: trail.ViewUpgradeWaves,
		columns: []column{
			{"State", showEnd("outcome")}, {"Started", showTime("started_at")}, {"For", showSpan("started_at", "ended_at")}, {"From", showText("version_from")}, {"To", showText("version_to")},
			{"Left", showText("summary")}, {"Moved", showText("moved")}, {"Failed attempts", showText("failed_attempts")}, {"Shut down", showText("shut_down")},
			{"Moved again", showText("moved_again")},
		},
	},
	{
		path: "/downtimes", title: "Downtimes", about: "When the guest of a VM did not run. The pause of a live migration is none.", view: trail.ViewDowntimes,
		beside: []choice{besideWeekly},
		columns: []column{
			{"VM", showVM}, {"Node", showNode}, {"State", showDown}, {"Down since", showTime("down_at")}, {"For", showDownSpan}, {"Cause", showLabels("cause")},
			{"Planned", showPlanned}, {"Began by", showRequester}, {"Back on", showBackOn}, {"Detail", showText("detail")},
		},
	},
	{
		path: "/cooldowns", title: "Cooldowns", view: trail.ViewDecisions,
		columns: []column{
			{"Decided", showTime("decided_at")}, {"VM", showVM}, {"Node", showNode}, {"Held back by", showLabels("layer")}, {"Verdict", showLabels("verdict", "reason")}, {"Until", showTime("until")},
		},
	},
	{
		path: "/gaps", title: "Gaps", view: trail.ViewGaps,
		columns: []column{
			{"Source", showLabels("source")}, {"State", showEnd("")}, {"Opened", showTime("opened_at")}, {"For", showSpan("opened_at", "closed_at")}, {"Cause", showCause}, {"Detail", showText("detail")},
		},
	},
}

// timeLabels are the labels of the columns of time by which rows are ordered.
var timeLabels = map[string]string{
	"from_at": "On this node since", "opened_at": "Opened", "marked_at": "Marked", "created_at": "Created", "requested_at": "Requested", "started_at": "Started", "decided_at": "Decided",
	"down_at": "Down since",
}

// column is a column of a list.
type column struct {
	label string
	show  func(listRow) cell
}

// listRow is a row of a view.
type listRow struct {
	view    trail.View
	columns []string
	cells   []*string
	now     time.Time // until when its cluster is known
	states  states
}

// text returns a value of the row, empty for NULL.
func (r listRow) text(column string) string {
	i := slices.Index(r.columns, column)
	if i < 0 || r.cells[i] == nil {
		return ""
	}
	return *r.cells[i]
}

// at returns a time of the row, zero for NULL.
func (r listRow) at(column string) time.Time {
	t, err := time.Parse(trail.CellTime, r.text(column))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// label returns the label of a value of a closed set.
func (r listRow) label(column string) trail.Label {
	set, _ := trail.FindLabelSet(r.view.Name + "." + column)
	return set.Label(r.text(column))
}

// newPart returns a text, a dash where it is empty.
func newPart(text string) part { return part{Text: cmp.Or(text, "–")} }

// newLabelPart returns a label with what it means as its title.
func newLabelPart(l trail.Label) part {
	p := newPart(l.Short)
	if l.Text != "" {
		p.Title = l.Value + ": " + l.Text
	}
	return p
}

func showCluster(r listRow) cell { return cell{Parts: []part{newPart(r.text("cluster"))}} }

func showVM(r listRow) cell {
	namespace, name := r.text("namespace"), r.text("vmi")
	if name == "" {
		return cell{Parts: []part{newPart(namespace)}}
	}
	text := namespace + "/" + name
	return cell{Parts: []part{{Text: text, Title: text, Href: vmHref(r.text("cluster"), namespace, name)}}}
}

func showNode(r listRow) cell { return cell{Parts: []part{newNodePart(r, "node")}} }

func newNodePart(r listRow, column string) part {
	node := r.text(column)
	if node == "" {
		return newPart("")
	}
	return part{Text: node, Title: node, Href: nodeHref(r.text("cluster"), node)}
}

func showTime(column string) func(listRow) cell {
	return func(r listRow) cell {
		at := r.at(column)
		if at.IsZero() {
			return cell{Parts: []part{newPart("")}}
		}
		return cell{Parts: []part{{At: at}}}
	}
}

// showSpan shows how long something lasted, or lasts since.
func showSpan(from, to string) func(listRow) cell {
	return func(r listRow) cell {
		end := r.at(to)
		if end.IsZero() {
			end = r.now
		}
		return cell{Class: "span", Parts: []part{newPart(formatSpan(end.Sub(r.at(from))))}}
	}
}

// showEnd shows how something ended, or that it goes on.
func showEnd(column string) func(listRow) cell {
	return func(r listRow) cell {
		switch {
		case r.text(r.view.End) == "":
			return cell{Class: "warn", Parts: []part{{Text: "open"}}}
		case column == "":
			return cell{Parts: []part{{Text: "closed"}}}
		}
		return cell{Parts: []part{newLabelPart(r.label(column))}}
	}
}

func showText(column string) func(listRow) cell {
	return func(r listRow) cell {
		p := newPart(r.text(column))
		p.Title = r.text(column)
		return cell{Class: "long", Parts: []part{p}}
	}
}

// showLabels shows values of closed sets, each where there is one.
func showLabels(columns ...string) func(listRow) cell {
	return func(r listRow) cell {
		var c cell
		for i, column := range columns {
			if i > 0 && r.text(column) == "" {
				continue
			}
			p := newLabelPart(r.label(column))
			p.Small = i > 0
			c.Parts = append(c.Parts, p)
		}
		return c
	}
}

// showRequester shows who asked in a few words, with the whole name as a title, and what sort of program that is.
func showRequester(r listRow) cell {
	class := newLabelPart(r.label("requester_class"))
	who := r.text("requester")
	if who == "" {
		return cell{Parts: []part{class}}
	}
	c := cell{Class: "long", Parts: []part{{Text: trail.FormatShortRequester(who, r.text("impersonator"), trail.RequesterClass(r.text("requester_class"))), Title: who}}}
	if class.Small = true; !strings.Contains(c.Parts[0].Text, class.Text) {
		c.Parts = append(c.Parts, class)
	}
	return c
}

func showLoop(r listRow) cell {
	p := newLabelPart(r.label("kind"))
	p.Href = buildHref("/loops/"+r.text("loop_id"), "cluster", r.text("cluster"))
	c := cell{Parts: []part{p}}
	if r.text("path") != "" {
		path := newLabelPart(r.label("path"))
		path.Small = true
		c.Parts = append(c.Parts, path)
	}
	return c
}

func showAttempts(r listRow) cell {
	c := cell{Class: "number", Parts: []part{newPart(r.text("attempts"))}}
	if failed := r.text("failed_attempts"); failed != "" && failed != "0" {
		c.Parts = append(c.Parts, part{Text: failed + " failed", Small: true})
	}
	return c
}

func showMigration(r listRow) cell {
	name := r.text("migration")
	href := buildHref("/vms/"+r.text("namespace")+"/"+r.text("vmi"), "cluster", r.text("cluster"), "migration", r.text("migration_uid"))
	return cell{Parts: []part{{Text: name, Title: name, Href: href}}}
}

// showPlace shows the place of a migration among those that wait in its cluster.
func showPlace(r listRow) cell {
	return cell{Parts: []part{newPart(r.text("place") + " of " + r.text("waiting"))}}
}

// showSlots shows how many slots are in use of those that a migration needs one of: in the cluster and for the node that its guest leaves.
func showSlots(r listRow) cell {
	node := newPart("from its node " + r.text("running_from_node") + " of " + r.text("node_limit"))
	node.Small = true
	return cell{Parts: []part{newPart(r.text("running_in_cluster") + " of " + r.text("cluster_limit")), node}}
}

// showRoute shows from where to where a migration led, with the zones and the pools of both nodes where these are known. A target that the
// guest did not reach may have no page: nothing else may be recorded about it.
func showRoute(r listRow) cell {
	target := newNodePart(r, "target_node")
	if trail.Outcome(r.text("outcome")) != trail.OutcomeSucceeded {
		target.Href = ""
	}
	c := cell{Parts: []part{newNodePart(r, "source_node"), target}}
	for _, what := range []string{"zone", "pool"} {
		if p := newPlacePart(what, r.text("source_"+what), r.text("target_"+what), r.text("target_node") != ""); p.Text != "" {
			c.Parts = append(c.Parts, p)
		}
	}
	return c
}

// newPlacePart names the zone or the pool of both ends of a migration, by the labels that the nodes had before it ended; empty where neither is known. A
// migration that waits may have no target yet.
func newPlacePart(what, source, target string, targeted bool) part {
	switch {
	case source == "" && target == "":
		return part{}
	case !targeted:
		return part{Text: what + " " + source, Small: true}
	case source == target:
		return part{Text: what + " " + source, Small: true, Title: "Both nodes are in " + what + " " + source + "."}
	}
	return part{Text: what + " " + cmp.Or(source, "?") + " → " + cmp.Or(target, "?"), Small: true, Title: "From " + what + " to " + what + "; ? where it is not known."}
}

// showPhase shows how a migration ended or, while it goes on, its phase and what it waits for.
func showPhase(r listRow) cell {
	if r.text("outcome") != "" {
		c := cell{Parts: []part{newLabelPart(r.label("outcome"))}}
		if trail.Outcome(r.text("outcome")) == trail.OutcomeFailed {
			c.Class = "bad"
		}
		return c
	}
	c := showLabels("phase", "wait_reason")(r)
	c.Class = "warn"
	return c
}

func showLeft(r listRow) cell {
	return cell{Class: "number", Parts: []part{{Text: r.text("vmis_left") + " of " + r.text("vmis_total")}}}
}

func showCause(r listRow) cell {
	return cell{Parts: []part{newLabelPart(trail.Gap{Cause: trail.Reason(r.text("cause"))}.Label())}}
}

// showArrival shows how a VM came to its node: by a migration, which is a link.
func showArrival(r listRow) cell {
	by := r.text("arrived_by")
	if by == trail.ArrivedStart || by == trail.ArrivedUnknown {
		return cell{Parts: []part{newLabelPart(r.label("arrived_by"))}}
	}
	href := buildHref("/vms/"+r.text("namespace")+"/"+r.text("vmi"), "cluster", r.text("cluster"), "migration", by)
	return cell{Parts: []part{{Text: "migration", Title: by, Href: href}}}
}

// states are the signs of VMs that are to leave their nodes.
type states struct {
	of    map[[3]string]trail.VMSigns // by cluster, namespace and name
	whole bool                        // of all of them
}

// statesRead bounds the evacuations whose VMs' states a list shows.
const statesRead = 1_000

// loadStates reads which VMs are to leave their nodes.
func (v *visit) loadStates(q trail.Query) (states, error) {
	open, err := v.readTable(trail.ViewEvacuations, trail.Query{Cluster: q.Cluster, Namespace: q.Namespace, VMI: q.VMI, Node: q.Node, Open: true, Limit: statesRead, MaxBytes: listBytes})
	if err != nil {
		return states{}, err
	}
	out := states{map[[3]string]trail.VMSigns{}, open.Next == nil}
	for _, cells := range open.Rows {
		r := listRow{view: trail.ViewEvacuations, columns: open.Columns, cells: cells}
		failed, _ := strconv.Atoi(r.text("failed_attempts")) // a number
		key := r.vmKey()
		if known, is := out.of[key]; !is || known.FailedAttempts < failed {
			out.of[key] = trail.VMSigns{Marked: true, FailedAttempts: failed}
		}
	}
	return out, nil
}

func (r listRow) vmKey() [3]string {
	return [3]string{r.text("cluster"), r.text("namespace"), r.text("vmi")}
}

// showVMState shows how it stands with a VM that runs.
func showVMState(r listRow) cell {
	signs, marked := r.states.of[r.vmKey()]
	if !marked && !r.states.whole {
		return cell{Parts: []part{{Text: "not known", Title: "More VMs are to leave their nodes than this page looks at: choose a node or a namespace."}}}
	}
	signs.Terminating, signs.NotMigratable = r.text("terminating_since") != "", r.text("not_migratable") != ""
	state := signs.State()
	c := cell{Class: vmStateClasses[state], Parts: []part{newLabelPart(state.Label())}}
	if signs.FailedAttempts > 0 {
		c.Parts = append(c.Parts, part{Text: strings.TrimSpace(strconv.Itoa(signs.FailedAttempts) + " failed attempt" + pluralSuffix(signs.FailedAttempts)), Small: true})
	}
	return c
}

// vmStateClasses say how the state of a VM is drawn.
var vmStateClasses = map[trail.VMState]string{trail.VMStuck: "bad", trail.VMLeaving: "warn", trail.VMTerminating: "warn", trail.VMNotMigratable: "warn"}
