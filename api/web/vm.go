package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"github.com/evictrail/evictrail/trail"
)

// vmBody is what the page of a VM shows.
type vmBody struct {
	Cluster, Namespace, Name, Node string
	Brief                          []trail.BriefLine
	Why                            trail.Answer
	WhyNot                         trail.NotAnswer
	Advice                         []string // what to do, each once
	Chart                          chart
	Lines                          evidence
	Attempts                       []attempt // newest first
	Older                          int       // how many attempts are in none of them
	Facts                          string    // address of all raw facts of the span of time
}

// attempt is a migration, or a run of them that failed alike.
type attempt struct {
	trail.AttemptRun
	Href string // the span of time of a run; empty for a single one
}

// evidence is the newest lines of a timeline.
type evidence struct {
	Lines []line // in the order of their times
	Cut   int    // how many older ones are left out
	More  string // address of the page with more of them; empty where there are none, or no more are shown
}

// line is a line of a timeline, and the address of what it rests on.
type line struct {
	trail.Line
	Href string
}

// The bounds of the tables of a page.
const (
	linesShown    = 20  // of evidence, where nothing asks for more
	linesKept     = 500 // of evidence, at most
	attemptsAlone = 10  // the newest, each by itself
	runsKept      = 10  // of the attempts before them
)

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
	of := trail.VMISubject(namespace, name)
	c, err := v.reader.Ask(v.Context(), trail.Question{Cluster: v.Cluster, Of: of, At: at, Since: since, Move: v.param("migration")})
	if err != nil {
		return err
	}
	if err := v.compareMoments(c, of, func(c *trail.Cluster) []trail.BriefLine { return c.Why(namespace, name).Brief.Lines() }); err != nil {
		return err
	}
	rows := c.VM(namespace, name)
	b := vmBody{Cluster: c.Name, Namespace: namespace, Name: name, Why: c.Why(namespace, name), WhyNot: c.WhyNot(namespace, name)}
	b.Node, b.Brief = b.WhyNot.Node, b.Why.Brief.Lines()
	b.Advice = slices.DeleteFunc(slices.Compact([]string{b.Why.Advice, b.WhyNot.Advice}), func(a string) bool { return a == "" })
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
	b.Chart.Title = "Timeline of " + namespace + "/" + name
	b.Chart.Range = v.rangeOf(w)
	if b.Lines, err = v.findEvidence(w, rows.Timeline, func(l trail.Line) string {
		id, href := findLineSource(c, l, rows)
		if href != "" {
			return href
		}
		return d.linkToFacts(namespace, name, l.At, l.At, id, "")
	}); err != nil {
		return err
	}
	b.Attempts, b.Older = d.foldAttempts(rows.Migrations)
	if err := v.nameGaps(c.Name, w, at.IsZero()); err != nil {
		return err
	}
	b.Facts = factsHref(c.Name, namespace+"/"+name, "", w.From, w.To, nil, "")
	v.Title, v.Cluster, v.AsOf, v.Content = namespace+"/"+name, c.Name, c.Now, b
	if at.IsZero() {
		if err := v.showAcknowledgement(c.Name, of, of); err != nil {
			return err
		}
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

// foldAttempts returns the migrations in the window, newest first and those before the newest folded; older counts those that are left out.
func (d draft) foldAttempts(migrations []trail.Migration) (attempts []attempt, older int) {
	var shown []trail.Migration
	for _, m := range migrations {
		if d.overlapsSpan(m.CreatedAt, m.FinishedAt) {
			shown = append(shown, m)
		}
	}
	runs, older := trail.FoldAttempts(shown, attemptsAlone, runsKept)
	for _, r := range runs {
		a := attempt{AttemptRun: r}
		if r.Count > 1 {
			a.Href = d.closer(r.First.CreatedAt, r.Last.FinishedAt)
		}
		attempts = append(attempts, a)
	}
	return attempts, older
}

// findEvidence returns the newest lines of a timeline that lie in a window: as many as the parameter evidence says.
func (v *visit) findEvidence(w window, all []trail.Line, href func(trail.Line) string) (evidence, error) {
	limit := linesShown
	if text := v.param("evidence"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > linesKept {
			return evidence{}, fmt.Errorf("%w: evidence=%q: expected a number of lines from 1 to %d", errBadQuestion, text, linesKept)
		}
	}
	var out evidence
	for _, l := range all {
		if !l.At.Before(w.From) && !l.At.After(w.To) {
			out.Lines = append(out.Lines, line{l, href(l)})
		}
	}
	if out.Cut = max(len(out.Lines)-limit, 0); out.Cut > 0 && limit < linesKept {
		out.More = v.linkWith("evidence", strconv.Itoa(min(5*limit, linesKept))) + "#evidence"
	}
	out.Lines = out.Lines[out.Cut:]
	return out, nil
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
	c.joinMarks(d.closer)
	c.explainMarks()
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
