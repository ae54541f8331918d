package forecast

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// worthNaming is from which share of runs on a guest is named as one that decides.
const worthNaming = 0.2

// Text says in some sentences how the drain goes.
func (d Drain) Text() string {
	text := []string{d.describeGuests(), d.describeBand(), d.describeDeciding()}
	return strings.Join(slices.DeleteFunc(text, func(s string) bool { return s == "" }), " ")
}

// describeGuests says what becomes of the guests.
func (d Drain) describeGuests() string {
	var parts []string
	for _, of := range []struct {
		n    int
		what string
	}{{d.Moving, "moves %s"}, {d.ShuttingDown, "shuts down %s, whose memory is lost"}, {d.Staying, "leaves %s behind"}} {
		if of.n > 0 {
			parts = append(parts, fmt.Sprintf(of.what, trail.FormatCount(of.n, "VM")))
		}
	}
	begin := "A drain of " + d.Node
	if !d.DrainingSince.IsZero() {
		begin = "The drain of " + d.Node + ", which goes on since " + trail.FormatClock(d.DrainingSince) + ","
	}
	switch {
	case len(parts) == 0 && d.Limited:
		return begin + " does nothing to VMs that you may see: none of them runs there."
	case len(parts) == 0:
		return begin + " has nothing to do: no VM runs there."
	case d.Limited:
		begin = "Of the VMs that you may see, " + strings.ToLower(begin[:1]) + begin[1:]
	}
	last := len(parts) - 1
	if last == 0 {
		return begin + " " + parts[0] + "."
	}
	return begin + " " + strings.Join(parts[:last], ", ") + " and " + parts[last] + "."
}

// describeBand says how long it takes.
func (d Drain) describeBand() string {
	switch {
	case d.Moving == 0:
		return ""
	case d.Band.IsZero():
		return fmt.Sprintf("How long that takes cannot be said: %s seen here in %d days, and it takes %d to estimate from.",
			trail.FormatCount(d.Succeeded, "successful migration"), HistoryLength/(24*time.Hour), leastMoves)
	}
	which := "The VMs that move have"
	switch {
	case d.Moving == 1:
		which = "The one that moves has"
	case d.Staying+d.ShuttingDown == 0 && !d.Limited:
		which = "All have"
	}
	text := fmt.Sprintf("%s left after about %s; in four of five cases between %s and %s.", which, formatAge(d.Band.Mid), formatAge(d.Band.Low), formatAge(d.Band.High))
	text += fmt.Sprintf(" At most %d at a time leave one node, and %d move in the cluster.", d.PerNode, d.PerCluster)
	if d.Raised != nil {
		text += fmt.Sprintf(" With parallelOutboundMigrationsPerNode at %d it would be about %s, if migrations side by side do not slow each other down.",
			d.Raised.PerNode, formatAge(d.Raised.Band.Mid))
	}
	return text
}

// describeDeciding names the one or two guests that decide how long it takes.
func (d Drain) describeDeciding() string {
	var names []string
	for _, g := range d.Guests {
		if g.Decides >= worthNaming && len(names) < 2 && d.Moving > 1 {
			names = append(names, fmt.Sprintf("%s/%s (%.0f %%)", g.Namespace, g.VMI, 100*g.Decides))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "The last to leave is most likely " + strings.Join(names, " or ") + "."
}

// Rests says what the estimate rests on, and what it does not know; empty where nothing is estimated.
func (d Drain) Rests() string {
	if d.Band.IsZero() {
		return ""
	}
	text := fmt.Sprintf("It rests on %s and %s of this cluster in the last %d days.",
		trail.FormatCount(d.Succeeded, "successful migration"), trail.FormatCount(d.Failed, "failed one"), HistoryLength/(24*time.Hour))
	if d.NeverMoved > 0 {
		text += fmt.Sprintf(" Of %s no migration is known: they are taken to be like others.", trail.FormatCount(d.NeverMoved, "VM"))
	}
	if d.Others > 0 {
		text += fmt.Sprintf(" %s of other nodes are under way.", trail.FormatCount(d.Others, "migration"))
	}
	return text + " Not part of it: whether other nodes have room, and how long a VM takes to shut down."
}

// Cells returns after how long a guest has left, its band, and how often it was the last, for a table; nil where nothing is
// estimated.
func (g Leaving) Cells() []string {
	if g.Band.IsZero() {
		return nil
	}
	return []string{formatAge(g.Band.Mid), formatAge(g.Band.Low) + " to " + formatAge(g.Band.High), fmt.Sprintf("%.0f %%", 100*g.Decides)}
}

func formatAge(s trail.Span) string { return trail.Age(time.Duration(s)) }
