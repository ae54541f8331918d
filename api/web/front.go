package web

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// frontBody is what the front page shows of one cluster, or of all.
type frontBody struct {
	All      []clusterCard // where several clusters are recorded and none is chosen
	Overview *trail.Overview
	Moves    movesChart
	Drains   []drainCard
	Missing  []string // what is not known, and how to know it
	Spans    []choice // of time, for the moves
}

// clusterCard is a cluster on the page that lets one choose.
type clusterCard struct {
	trail.ClusterSummary
	Href  string
	Loops []trail.Loop // that are open

	Recorder *trail.RecorderStatus // nil where its state is not known
	Certain  bool                  // a number of 0 may be read as "there is none"
}

// drainCard is a drain and what it waits for.
type drainCard struct {
	trail.Drain
	Standing string
	Blockers []trail.DrainBlocker
	Done     int // per cent
}

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
	if cluster == "" && len(v.Clusters) == 1 {
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
	o, err := v.reader.Overview(v.Context(), cluster, spans[i].back, spans[i].step)
	if short := spans[0]; err == nil && v.param("span") == "" && len(o.Moves) > 0 && o.Moves[0].At.After(o.At.Add(-short.back)) {
		chosen = short.name // all that moved did so in the last hour
		o, err = v.reader.Overview(v.Context(), cluster, short.back, short.step)
	}
	if err != nil {
		return err
	}
	b := frontBody{Overview: &o, Moves: movesOf(o), Missing: listMissingSources(o)}
	for _, s := range spans {
		address := v.linkWith("span", s.name)
		if s.name == chosen {
			address = ""
		}
		b.Spans = append(b.Spans, choice{s.name, address})
	}
	for _, d := range o.Drains {
		card := drainCard{Drain: d, Standing: d.Standing(o.At)}
		if d.VMIsTotal > 0 {
			card.Done = 100 * (d.VMIsTotal - d.VMIsLeft) / d.VMIsTotal
		}
		for _, x := range o.Blockers {
			if x.DrainID == d.ID {
				card.Blockers = append(card.Blockers, x)
			}
		}
		b.Drains = append(b.Drains, card)
	}
	v.Cluster, v.AsOf, v.Content = cluster, o.At, b
	v.followLive("all", "")
	return v.renderPage("front", http.StatusOK)
}

// loopsShown bounds the loops that the page of all clusters names of each.
const loopsShown = 3

// allClusters lets one choose among clusters, and shows which of them need somebody.
func (v *visit) allClusters() error {
	var b frontBody
	for _, c := range v.Clusters {
		card := clusterCard{ClusterSummary: c, Href: buildHref("/", "cluster", c.Name), Recorder: v.recorderOf(c.Name)}
		card.Certain = card.Recorder != nil && isCertain(*card.Recorder)
		if c.Loops > 0 {
			o, err := v.reader.Overview(v.Context(), c.Name, time.Hour, time.Hour)
			if err != nil {
				return err
			}
			card.Loops = o.Loops[:min(len(o.Loops), loopsShown)]
		}
		b.All = append(b.All, card)
	}
	v.Content = b
	v.followLive("all", "")
	return v.renderPage("front", http.StatusOK)
}

// listMissingSources says which sources are not there, and what is unknown without them.
func listMissingSources(o trail.Overview) []string {
	var out []string
	if !o.Seen.Audit && !o.Seen.Observer {
		out = append(out, "No audit events and no observer: who asked for an eviction, with which words, and what was refused is not known. "+
			"`evictrail generate manifests audit-policy` begins that; docs/audit.md says the rest.")
	} else if !o.Seen.Audit {
		out = append(out, "No audit events: what was refused or repeated only the observer reports; nothing reports who cancels and who drains.")
	}
	return out
}

// movesChart is how many migrations ended in each step of time, by what caused them, with those that failed above.
type movesChart struct {
	Bars   []moveBar
	Ticks  []tick
	Totals []moveTotal
	Most   int // migrations in the fullest step
	window
}

type moveBar struct{ X, W, Y, H, Class, Title string }

// moveTotal counts the migrations of one trigger.
type moveTotal struct {
	Trigger                trail.Trigger
	Class                  string
	Moved, Failed, Aborted int
}

// movesOf stacks the migrations of each step, moves below and failed attempts above.
func movesOf(o trail.Overview) movesChart {
	c := movesChart{window: window{From: o.From, To: o.At, Now: o.At}}
	c.Ticks = c.buildTicks()
	height := map[time.Time]int{}
	totals := map[trail.Trigger]*moveTotal{}
	for _, m := range o.Moves {
		height[m.At] += m.Count
		c.Most = max(c.Most, height[m.At])
		t := totals[m.Trigger]
		if t == nil {
			t = &moveTotal{Trigger: m.Trigger, Class: causeClass(m.Trigger)}
			totals[m.Trigger] = t
		}
		switch m.Outcome {
		case trail.OutcomeSucceeded:
			t.Moved += m.Count
		case trail.OutcomeAborted:
			t.Aborted += m.Count
		default:
			t.Failed += m.Count
		}
	}
	moved := slices.Clone(o.Moves)
	slices.SortStableFunc(moved, func(a, b trail.MoveCount) int {
		return compareBools(a.Outcome != trail.OutcomeSucceeded, b.Outcome != trail.OutcomeSucceeded)
	})
	clear(height)
	for _, m := range moved {
		class, done := causeClass(m.Trigger), "moved"
		if m.Outcome != trail.OutcomeSucceeded {
			class, _ = styleOutcome(m.Outcome)
			done = m.Outcome.Label().Short
		}
		below := height[m.At]
		height[m.At] += m.Count
		x, share := c.positionOf(m.At), func(n int) string { return formatPercent(float64(n) / float64(c.Most) * 100) }
		c.Bars = append(c.Bars, moveBar{
			X: formatPercent(x), W: formatPercent(max(c.positionOf(m.At.Add(o.Step))-x, 0.4)), Y: share(c.Most - below - m.Count), H: share(m.Count), Class: class,
			Title: fmt.Sprintf("%s: %d %s, trigger %s", formatTime(m.At), m.Count, done, m.Trigger.Label()),
		})
	}
	for _, t := range totals {
		c.Totals = append(c.Totals, *t)
	}
	slices.SortFunc(c.Totals, func(a, b moveTotal) int { return b.Moved + b.Failed + b.Aborted - a.Moved - a.Failed - a.Aborted })
	return c
}
