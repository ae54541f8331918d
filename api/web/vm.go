package web

import (
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/mux"

	"github.com/evictrail/evictrail/trail"
)

// vmBody is what the page of a VM shows.
type vmBody struct {
	Cluster, Namespace, Name, Node string
	Why                            trail.Answer
	WhyNot                         trail.NotAnswer
	Chart                          chart
	Lines                          []line // of the timeline that is shown
	Cut                            int    // how many lines are left out
	Attempts                       []trail.Migration
	Facts                          string // address of all raw facts of the span of time
}

// line is a line of a timeline, and the address of what it rests on.
type line struct {
	trail.Line
	Href string
}

// linesKept bounds a table of evidence.
const linesKept = 500

func vmPage(v *visit) error {
	at, err := v.parseMoment()
	if err != nil {
		return err
	}
	since, err := v.parseTimeParam("from")
	if err != nil {
		return err
	}
	namespace, name := mux.Vars(v.Request)["namespace"], mux.Vars(v.Request)["name"]
	c, err := v.reader.Ask(v.Context(), trail.Question{Cluster: v.Cluster, Of: trail.VMISubject(namespace, name), At: at, Since: since, Move: v.param("migration")})
	if err != nil {
		return err
	}
	rows := c.VM(namespace, name)
	b := vmBody{Cluster: c.Name, Namespace: namespace, Name: name, Why: c.Why(namespace, name), WhyNot: c.WhyNot(namespace, name)}
	b.Node = b.WhyNot.Node
	from, to := storyFrom(c, b.Why), c.Now
	if m := migrationOf(rows, v.param("migration")); m != nil {
		from, to = m.CreatedAt, m.FinishedAt
	}
	w, err := v.parseWindow(from, to, c.Now)
	if err != nil {
		return err
	}
	d := v.newDraft(w, c)
	b.Chart = vmChart(d, rows)
	b.Chart.Title = "The life of " + namespace + "/" + name
	b.Chart.Range = v.rangeOf(w)
	b.Lines, b.Cut = linesIn(w, rows.Timeline, func(l trail.Line) string {
		id, href := findLineSource(c, l, rows)
		if href != "" {
			return href
		}
		return d.linkToFacts(namespace, name, l.At, l.At, id, "")
	})
	for _, m := range rows.Migrations {
		if w.overlapsSpan(m.CreatedAt, m.FinishedAt) {
			b.Attempts = append(b.Attempts, m)
		}
	}
	if err := v.nameGaps(c.Name, w, at.IsZero()); err != nil {
		return err
	}
	b.Facts = factsHref(c.Name, namespace+"/"+name, "", w.From, w.To, nil, "")
	v.Title, v.Cluster, v.AsOf, v.Content = namespace+"/"+name, c.Name, c.Now, b
	if at.IsZero() {
		v.followLive("vm", namespace+"/"+name)
	}
	return v.renderPage("vm", http.StatusOK)
}

// findLineSource returns the fact behind a line of a timeline, nil where no single one is, or the address of the loop that the line is about.
func findLineSource(c *trail.Cluster, l trail.Line, rows trail.Derived) (id *trail.FactID, href string) {
	switch l.Kind {
	case trail.KindLoopOpened, trail.KindLoopClosed:
		for _, x := range rows.Loops {
			if x.ID == l.EventID || x.ClosedAt.Equal(l.At) {
				return nil, loopHref(c.Name, x.ID)
			}
		}
		return nil, ""
	case trail.KindCooldownDecided:
		for _, x := range rows.Decisions {
			if x.ID == l.EventID {
				return x.EventID, ""
			}
		}
		return nil, ""
	case trail.KindDrainStarted, trail.KindDrainEnded, trail.KindGapOpened, trail.KindGapClosed:
		return nil, ""
	default:
		return &l.EventID, ""
	}
}

// migrationOf finds a migration of a VM by its UID, nil where there is none.
func migrationOf(rows trail.Derived, uid string) *trail.Migration {
	i := slices.IndexFunc(rows.Migrations, func(m trail.Migration) bool { return m.UID == uid })
	if i < 0 {
		return nil
	}
	return &rows.Migrations[i]
}

// storyFrom returns the start of the story of a VM: that of the answer, and of the loops that it is in.
func storyFrom(c *trail.Cluster, a trail.Answer) time.Time {
	from := c.Now.Add(-time.Hour)
	if len(a.Evidence) > 0 {
		from = a.Evidence[0].At
	}
	for _, l := range c.LoopsOf(a.Namespace, a.VMI) {
		if l.Open() && len(l.Evidence) > 0 && l.Evidence[0].At.Before(from) {
			from = l.Evidence[0].At
		}
	}
	return from
}

// linesIn returns the lines of a timeline that lie in a window, the newest of them where they are too many.
func linesIn(w window, all []trail.Line, href func(trail.Line) string) (shown []line, cut int) {
	for _, l := range all {
		if !l.At.Before(w.From) && !l.At.After(w.To) {
			shown = append(shown, line{l, href(l)})
		}
	}
	if cut = len(shown) - linesKept; cut > 0 {
		return shown[cut:], cut
	}
	return shown, 0
}

// vmChart is the one-line life of a VM: where it ran, who asked it to leave, what was tried, what held it back.
func vmChart(d draft, rows trail.Derived) chart {
	c := chart{window: d.window, Ticks: d.buildTicks()}
	c.Lanes, c.Bands = d.loopLanes(d.loopsAbout(rows))
	asked, tried, held, marked := lane{Name: "asked to leave"}, lane{Name: "migrations"}, lane{Name: "held back"}, lane{Name: "to be moved"}
	for _, r := range rows.Requests {
		d.drawRequest(&asked, r)
	}
	for _, e := range rows.Evacuations {
		d.drawEvacuation(&marked, e)
	}
	for _, m := range rows.Migrations {
		d.drawMigration(&tried, m)
	}
	d.drawHolds(&held, rows.Decisions)
	c.Lanes = append(c.Lanes, asked, marked, tried, held)
	c.Lanes = append(c.Lanes, d.nodeLanes(rows.Placements)...)
	c.Legend = slices.Concat(keysOfCauses, keysOfAttempts, keysOfPhases, keysOfHolds, keyOfPlacement)
	if len(c.Bands) > 0 {
		c.Legend = append(c.Legend, keyOfLoops...)
	}
	c.joinMarks(d.closer)
	return c
}

// loopsAbout returns the loops that a VM is in: those derived of itself, and those of nodes that are about it.
func (d draft) loopsAbout(rows trail.Derived) []trail.Loop {
	if len(rows.Placements) == 0 {
		return rows.Loops
	}
	return d.cluster.LoopsOf(rows.Placements[0].Namespace, rows.Placements[0].VMI)
}

// nodeLanes draws on which node a guest ran: a lane for each, in the order in which it came to them.
func (d draft) nodeLanes(placements []trail.Placement) []lane {
	var out []lane
	for _, p := range placements {
		if !d.overlapsSpan(p.FromAt, p.ToAt) {
			continue
		}
		i := slices.IndexFunc(out, func(l lane) bool { return l.Name == p.Node })
		if i < 0 {
			i = len(out)
			out = append(out, lane{Name: p.Node, Href: nodeHref(d.cluster.Name, p.Node), Class: "node"})
		}
		d.drawPlacement(&out[i], p)
	}
	return out
}
