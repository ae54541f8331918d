package truth

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Outline returns a line for each fact of a history, without times and generated names: two runs of one scenario have the same. Facts of a kind are in the
// order in which they happened to a VM.
func Outline(h History) []string {
	var o outline
	for _, q := range h.Requests {
		o.addFact("request", q.Namespace+"/"+vmOf(q.Pod), q.At, "by %s, answered %d", q.User, q.Code)
	}
	for _, m := range h.Marks {
		o.addFact("mark", m.VMI, m.From, "on %s, over: %t", m.Node, !isOpen(m.Until))
	}
	for _, m := range h.Migrations {
		phases := slices.Sorted(maps.Keys(m.Phases))
		o.addFact("migration", m.VMI, m.Phases["Pending"], "from %s to %s: %s %s", m.Source, m.Target, strings.Join(phases, " "), strings.TrimSpace(m.Failure))
	}
	for _, s := range h.Stays {
		o.addFact("stay", s.VMI, s.From, "on %s, over: %t", s.Node, !isOpen(s.Until))
	}
	for _, b := range h.Backoffs {
		o.addFact("backoff", b.VMI, b.From, "of %s", b.Until.Sub(b.From).Round(time.Second))
	}
	slices.SortStableFunc(o, func(a, b fact) int { return cmp.Or(cmp.Compare(a.of, b.of), a.at.Compare(b.at)) })
	lines := make([]string, len(o))
	for i, f := range o {
		lines[i] = f.of + " " + f.text
	}
	return lines
}

// outline is the facts of an Outline that is being made.
type outline []fact

type fact struct {
	of   string // kind and VM
	at   time.Time
	text string
}

func (o *outline) addFact(kind, vmi string, at time.Time, format string, args ...any) {
	*o = append(*o, fact{kind + " of " + vmi, at, fmt.Sprintf(format, args...)})
}

// vmOf returns the name of the VM whose launcher a pod is: virt-launcher-db-1-x7k2p is one of db-1.
func vmOf(pod string) string {
	name := strings.TrimPrefix(pod, "virt-launcher-")
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		return name[:i]
	}
	return name
}
