package web

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// frontBody is what the front page shows of one cluster, or of all.
type frontBody struct {
	All       []fleetRow // where several clusters are recorded and none is chosen, the worst first
	Attention int        // of them, how many need attention
	Sources   bool       // several evictrails record them

	Overview  *trail.Overview
	Certain   bool         // an empty list may be read as "there was none"
	At        template.URL // what leads from the address of another page to the same moment of the past; empty: now
	Headline  trail.Headline
	Figures   []figure
	Groups    []incidentGroup // of those that are shown
	Incidents int             // in all
	Shown     int             // of them
	ShowAll   string          // address of the page with all of them; empty where all are shown
	Checks    []trail.Check
	Lately    []happeningRow
	Older     int // happenings that are not shown
	Moves     movesChart
	Beside    []choice // pages that add up what migrations did
	Drains    []drainCard
	MoreDrain int          // drains that are not shown
	Held      []trail.Hold // of VMs without an incident
	Missing   []string     // what is not known, and how to know it
	Span      string       // how far back, in words
	Spans     []choice     // of time, for what happened
}

// fleetRow is a cluster on the page that lets one choose.
type fleetRow struct {
	trail.FleetLine
	Href    string
	Certain bool // a number of 0 may be read as "there is none"
	Now     time.Time
}

// figure is a number at the top of a cluster's page.
type figure struct {
	N             int
	More, Certain bool // there are more than N; a zero may be read as "there is none"
	Noun, Href    string
	Class         string // how a number that is not zero is drawn
}

// incidentGroup is a trail.IncidentGroup as far as it is shown.
type incidentGroup struct {
	trail.IncidentGroup
	Heading string // empty where incidents are not grouped
	Rows    []incidentRow
}

// incidentRow is an incident as a row of the page.
type incidentRow struct {
	trail.Incident
	Grouped bool // the heading of its group says the cause
	Open    bool // its advice is unfolded
}

// happeningRow is something that happened, with the addresses of what it is about.
type happeningRow struct {
	trail.Happening
	Class, Href string // Href of the migrations that it counts; empty where it counts none
}

// drainCard is a drain and what it waits for.
type drainCard struct {
	trail.Drain
	Standing  string
	Requester string // who asked, in a few words
	Blockers  []trail.DrainBlocker
	More      int // blockers that are not shown
	Done      int // per cent
}

// What the page of a cluster shows at most, so that a bad day fits on it.
const (
	incidentsShown  = 10
	incidentsMost   = 200 // where all are asked for
	happeningsShown = 25
	drainsShown     = 10
	blockersShown   = 10
)

// spans are the times that the front page may look back, each with the step in which moves are counted.
var spans = []struct {
	name       string
	back, step time.Duration
}{
	{"1h", time.Hour, time.Minute}, {"6h", 6 * time.Hour, 5 * time.Minute}, {"24h", 24 * time.Hour, 20 * time.Minute},
	{"7d", 7 * 24 * time.Hour, 2 * time.Hour}, {"31d", 31 * 24 * time.Hour, 8 * time.Hour},
}

// spanShown is the one that is shown where none is chosen.
const spanShown = "6h"

func frontPage(v *visit) error {
	v.Title = "Overview"
	cluster := v.Cluster
	if cluster == "" && len(v.Clusters) == 1 && v.reader != nil {
		cluster = v.Clusters[0].Name
	}
	chosen := v.param("span")
	if chosen == "" {
		chosen = spanShown
	}
	i := slices.IndexFunc(spans, func(s struct {
		name       string
		back, step time.Duration
	}) bool {
		return s.name == chosen
	})
	if i < 0 {
		return fmt.Errorf("%w: span=%q: expected 1h, 6h, 24h, 7d or 31d", errBadQuestion, chosen)
	}
	if cluster == "" {
		if at := v.param("at"); at != "" {
			return fmt.Errorf("%w: at=%q: of all clusters there is no page of the past, choose one", errBadQuestion, at)
		}
		return v.allClusters()
	}
	if !slices.ContainsFunc(v.Clusters, func(c trail.ClusterSummary) bool { return c.Name == cluster }) {
		if v.recorderOf(cluster) != nil { // its recorder runs
			v.Content = frontBody{}
			v.followLive("all", "")
			return v.renderPage("front", http.StatusOK)
		}
		return fmt.Errorf("cluster %s: %w", cluster, trail.ErrNotFound)
	}
	at, err := v.parseMoment()
	if err != nil {
		return err
	}
	o, err := v.reader.Overview(v.Context(), cluster, at, spans[i].back, spans[i].step)
	if short := spans[0]; err == nil && v.param("span") == "" && len(o.Moves) > 0 && o.Moves[0].At.After(o.At.Add(-short.back)) {
		chosen = short.name // all that moved did so in the last hour
		o, err = v.reader.Overview(v.Context(), cluster, at, short.back, short.step)
	}
	if err != nil {
		return err
	}
	b := v.newFrontBody(&o, v.recorderOf(cluster))
	b.Span = chosen
	for _, s := range spans {
		address := v.linkWith("span", s.name)
		if s.name == chosen {
			address = ""
		}
		b.Spans = append(b.Spans, choice{s.name, address})
	}
	v.Cluster, v.AsOf, v.Content = cluster, o.At, b
	if !o.Past {
		v.followLive("all", "")
	}
	return v.renderPage("front", http.StatusOK)
}

// newFrontBody lays out what is known of a cluster.
func (v *visit) newFrontBody(o *trail.Overview, recorder *trail.RecorderStatus) frontBody {
	incidents := o.Incidents()
	b := frontBody{Overview: o, Headline: o.Headline(incidents, recorder), Incidents: len(incidents), Checks: o.Checks(incidents), Moves: movesOf(*o), Missing: listMissingSources(*o)}
	most := incidentsShown
	if v.param("incidents") == "all" {
		most = incidentsMost
	} else if len(incidents) > most {
		b.ShowAll = v.linkWith("incidents", "all")
	}
	b.Beside = []choice{{besideLimits.Name, LimitsPage(o.Cluster)}, {besideWeekly.Name, WeeklyPage(o.Cluster)},
		{besideBacktest.Name, BacktestPage(o.Cluster)}}
	b.addIncidents(trail.GroupIncidents(incidents), most)
	b.addDrains(o)
	b.addLately(o)
	known := map[string]bool{}
	for _, i := range incidents {
		known[i.Subject.String()] = true
	}
	for _, h := range o.Held {
		if !known[h.Namespace+"/"+h.VMI] {
			b.Held = append(b.Held, h)
		}
	}
	if b.Certain = recorder != nil && recorder.Certain(); o.Past {
		b.Certain, b.At = o.Watched(), template.URL("&"+url.Values{"at": {formatTimestamp(o.At)}}.Encode()) //nolint:gosec // of a time
	}
	b.Figures = []figure{
		{N: len(o.Loops), Noun: "open loop", Href: "#incidents", Class: "bad"},
		{N: len(o.Stuck), Noun: "stuck evacuation", Href: "#incidents", Class: "bad"},
		{N: len(o.Waiting), Noun: "evacuation without attempt", Href: "#incidents", Class: "warn"},
		{N: len(o.Drains), Noun: "drain", Href: "#drains", Class: "info"},
		{N: len(o.Held), More: o.HeldMore > 0, Noun: "VM in cooldown or backoff", Href: "#held", Class: "info"},
	}
	for i := range b.Figures {
		b.Figures[i].Certain = b.Certain
	}
	if o.Past { // what held VMs back then is not known
		b.Figures = b.Figures[:len(b.Figures)-1]
	}
	return b
}

// Text returns the noun for the number.
func (f figure) Text() string {
	if f.N == 1 {
		return f.Noun
	}
	for noun, several := range map[string]string{"evacuation without attempt": "evacuations without attempt", "VM in cooldown or backoff": "VMs in cooldown or backoff"} {
		if f.Noun == noun {
			return several
		}
	}
	return f.Noun + "s"
}

// addIncidents adds the first incidents of the groups.
func (b *frontBody) addIncidents(groups []trail.IncidentGroup, most int) {
	for _, g := range groups {
		group := incidentGroup{IncidentGroup: g}
		if g.Cause != "" && len(g.Incidents) > 1 {
			group.Heading = g.Heading()
		}
		for _, i := range g.Incidents {
			if b.Shown == most {
				break
			}
			group.Rows = append(group.Rows, incidentRow{i, group.Heading != "", b.Shown == 0})
			b.Shown++
		}
		if len(group.Rows) > 0 {
			b.Groups = append(b.Groups, group)
		}
	}
}

func (b *frontBody) addDrains(o *trail.Overview) {
	b.MoreDrain = max(len(o.Drains)-drainsShown, 0)
	for _, d := range o.Drains[:len(o.Drains)-b.MoreDrain] {
		card := drainCard{Drain: d, Standing: d.Standing(o.At), Requester: trail.FormatShortRequester(d.Requester, d.Impersonator, d.RequesterClass)}
		if d.VMIsTotal > 0 {
			card.Done = 100 * (d.VMIsTotal - d.VMIsLeft) / d.VMIsTotal
		}
		for _, x := range o.Blockers {
			switch {
			case x.DrainID != d.ID:
			case len(card.Blockers) == blockersShown:
				card.More++
			default:
				card.Blockers = append(card.Blockers, x)
			}
		}
		b.Drains = append(b.Drains, card)
	}
}

// toneClasses say how a happening is drawn.
var toneClasses = map[trail.Tone]string{trail.ToneGood: "good", trail.ToneOdd: "blocked", trail.ToneBad: "bad", trail.ToneNeutral: "unknown"}

func (b *frontBody) addLately(o *trail.Overview) {
	all := o.Lately()
	b.Older = max(len(all)-happeningsShown, 0)
	for _, h := range all[:len(all)-b.Older] {
		row := happeningRow{Happening: h, Class: toneClasses[h.Tone]}
		if h.Listed {
			vm := ""
			if len(h.VMs) == 1 && h.More == 0 {
				vm = h.VMs[0].String()
			}
			row.Href = migrationsHref(o.Cluster, h.From, h.At.Add(time.Second), "vm", vm)
		}
		b.Lately = append(b.Lately, row)
	}
}

// migrationsHref returns the address of the list of migrations that ended in a time, with more parameters of the list as pairs; those that are empty are left out.
func migrationsHref(cluster string, from, to time.Time, pairs ...string) string {
	return buildHref("/migrations", append([]string{"cluster", cluster, "ended-since", formatTimestamp(from), "ended-until", formatTimestamp(to)}, pairs...)...)
}

// allClusters lets one choose among clusters, and shows which of them need somebody.
func (v *visit) allClusters() error {
	lines, err := v.fleet.Fleet(v.Context(), true)
	if err != nil {
		return err
	}
	var b frontBody
	for _, line := range lines {
		row := fleetRow{FleetLine: line, Href: buildHref("/", "cluster", line.Name), Now: line.LastSeenAt}
		row.Certain = row.Recorder != nil && row.Recorder.Certain()
		if line.NeedsAttention() {
			b.Attention++
		}
		b.Sources = b.Sources || line.Source != ""
		b.All = append(b.All, row)
	}
	v.Title, v.Content = "Clusters", b
	if v.reader != nil {
		v.followLive("all", "")
	}
	return v.renderPage("front", http.StatusOK)
}

// listMissingSources says which sources are not there, and what is unknown without them.
func listMissingSources(o trail.Overview) []string {
	var out []string
	if !o.Seen.Audit && !o.Seen.Observer {
		out = append(out, "No audit log connected, so requesters and refused evictions are unknown. Set it up: "+
			"`evictrail generate manifests audit-policy`, then docs/audit.md.")
	} else if !o.Seen.Audit {
		out = append(out, "No audit log connected: the eviction observer reports requests, and nothing reports who cancels and who drains.")
	}
	return out
}

// movesChart is how many migrations ended in each step of time, by what caused them, with those that failed above.
type movesChart struct {
	Bars   []moveBar
	Ticks  []tick
	Totals []moveTotal
	Most   int    // migrations in the fullest step
	Step   string // how long a step is
	window
	cluster string
}

type moveBar struct{ X, W, Y, H, Class, Pattern, Title, Href string }

// moveTotal counts the migrations of one trigger.
type moveTotal struct {
	Trigger trail.Trigger
	Class   string
	Counts  []moveCount // one for each of countedOutcomes
	All     int
}

// countedOutcomes are the columns of the table beside the chart.
var countedOutcomes = []trail.Outcome{trail.OutcomeSucceeded, trail.OutcomeFailed, trail.OutcomeAborted}

// moveCount is a number of migrations, with the address of the list of these.
type moveCount struct {
	N    int
	Href string
}

// Href returns the address of the list of what the chart counts, or of a part of that: a migration that ended in the last second counts, too.
func (c movesChart) Href(pairs ...string) string {
	return migrationsHref(c.cluster, c.From, c.To.Add(time.Second), pairs...)
}

// movesOf stacks the migrations of each step, moves below and failed attempts above.
func movesOf(o trail.Overview) movesChart {
	c := movesChart{window: window{From: o.From, To: o.At, Now: o.At}, Step: formatStep(o.Step), cluster: o.Cluster}
	c.Ticks = c.buildTicks()
	height := map[time.Time]int{}
	totals := map[trail.Trigger]*moveTotal{}
	for _, m := range o.Moves {
		height[m.At] += m.Count
		c.Most = max(c.Most, height[m.At])
		t := totals[m.Trigger]
		if t == nil {
			t = &moveTotal{Trigger: m.Trigger, Class: causeClass(m.Trigger)}
			for _, outcome := range countedOutcomes {
				t.Counts = append(t.Counts, moveCount{Href: c.Href("trigger", string(m.Trigger), "outcome", string(outcome))})
			}
			totals[m.Trigger] = t
		}
		t.All += m.Count
		if i := slices.Index(countedOutcomes, m.Outcome); i >= 0 {
			t.Counts[i].N += m.Count
		}
	}
	moved := slices.Clone(o.Moves)
	slices.SortStableFunc(moved, func(a, b trail.MoveCount) int {
		return trail.CompareBools(a.Outcome != trail.OutcomeSucceeded, b.Outcome != trail.OutcomeSucceeded)
	})
	clear(height)
	for _, m := range moved {
		outcome, _ := styleOutcome(m.Outcome)
		done := "moved"
		if m.Outcome != trail.OutcomeSucceeded {
			done = m.Outcome.Label().Short
		}
		below := height[m.At]
		height[m.At] += m.Count
		x, share := c.positionOf(m.At), func(n int) string { return formatPercent(float64(n) / float64(c.Most) * 100) }
		c.Bars = append(c.Bars, moveBar{
			X: formatPercent(x), W: formatPercent(max(c.positionOf(m.At.Add(o.Step))-x, 0.4)), Y: share(c.Most - below - m.Count), H: share(m.Count),
			Class: causeClass(m.Trigger), Pattern: patternOf("by " + outcome),
			Title: fmt.Sprintf("%s to %s: %d %s, trigger %s", formatTime(m.At), formatTime(m.At.Add(o.Step)), m.Count, done, m.Trigger.Label()),
			Href:  migrationsHref(o.Cluster, m.At, m.At.Add(o.Step), "trigger", string(m.Trigger), "outcome", string(m.Outcome)),
		})
	}
	for _, t := range totals {
		c.Totals = append(c.Totals, *t)
	}
	slices.SortFunc(c.Totals, func(a, b moveTotal) int { return b.All - a.All })
	return c
}

// formatStep writes how long a step of the chart is, such as "5 min".
func formatStep(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d min", d/time.Minute)
}
