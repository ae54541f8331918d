package forecast

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// runs is how often a drain is played: the ends of the band then differ by some percent from one seed to another.
const runs = 500

// The band: so much of the runs ended before its ends.
const (
	lowShare  = 0.1
	midShare  = 0.5
	highShare = 0.9
)

// Node is a node with what a forecast rests on.
type Node struct {
	Cluster, Name string
	At            time.Time // the forecast is as of then
	DrainingSince time.Time // since when it is being drained; zero where it is not
	Guests        []Guest
	PerNode       int         // migrations that may leave one node at once
	PerCluster    int         // that may be under way in the cluster
	Others        []time.Time // since when migrations of other nodes are under way
	History       []Attempt
}

// Band is how long something takes, in three figures. All are zero where it cannot be estimated.
type Band struct {
	Low  trail.Span `json:"low_seconds"`  // one in ten takes less
	Mid  trail.Span `json:"mid_seconds"`  // half take less
	High trail.Span `json:"high_seconds"` // one in ten takes more
}

// IsZero reports whether nothing is estimated.
func (b Band) IsZero() bool { return b == Band{} }

// Drain says how a drain of a node would go, or goes on.
type Drain struct {
	Node          string    `json:"node"`
	At            time.Time `json:"at"`
	DrainingSince time.Time `json:"draining_since,omitzero"` // zero where it is not being drained
	Moving        int       `json:"moves"`                   // guests that move
	ShuttingDown  int       `json:"shuts_down"`              // that are shut down
	Staying       int       `json:"stays"`                   // that do not leave as things are
	Band          Band      `json:"left,omitzero"`           // from At until the last guest that moves has left; zero where it cannot be estimated
	PerNode       int       `json:"parallel_per_node"`
	PerCluster    int       `json:"parallel_per_cluster"`
	Raised        *Raised   `json:"raised,omitempty"` // what a higher limit would do; nil where it would not be much sooner
	Others        int       `json:"others"`           // migrations of other nodes that are under way
	Succeeded     int       `json:"succeeded"`        // attempts in the history that the estimate rests on
	Failed        int       `json:"failed"`
	NeverMoved    int       `json:"never_moved"`       // guests that move, of which no move is known: they are taken to be like others
	Guests        []Leaving `json:"guests"`            // those that stay first, then in the order in which they are expected to leave, the last first
	Limited       bool      `json:"limited,omitempty"` // guests of other namespaces than those listed may be there

	Recorder    *trail.RecorderNote `json:"recorder,omitempty"`     // nil: not asked for
	NotObserved []trail.Gap         `json:"not_observed,omitempty"` // gaps since the drain began, at least of the last hour; the newest first
}

// Raised says how long a drain takes with another limit, as long as migrations that run side by side do not slow each other
// down.
type Raised struct {
	PerNode int  `json:"parallel_per_node"`
	Band    Band `json:"left"`
}

// worthRaising is which share of the time a higher limit must save to be named.
const worthRaising = 0.2

// Leaving says how one guest leaves the node.
type Leaving struct {
	Namespace string            `json:"namespace"`
	VMI       string            `json:"vmi"`
	VMIUID    string            `json:"vmi_uid"`
	Effect    trail.DrainEffect `json:"effect"`
	Because   string            `json:"because,omitempty"` // why it does not move
	Band      Band              `json:"left,omitzero"`     // from At until it has left
	Decides   float64           `json:"decides,omitempty"` // share of runs in which it was the last to leave, from 0 to 1
	Moves     int               `json:"moved"`             // its moves in the history
	Failures  int               `json:"failed"`            // its failed attempts in the history
}

// Forecast plays the drain and says how it goes.
func (n Node) Forecast() Drain {
	d := Drain{
		Node: n.Name, At: n.At, DrainingSince: n.DrainingSince, PerNode: n.PerNode, PerCluster: n.PerCluster, Others: len(n.Others),
		Guests: []Leaving{},
	}
	m := fitModel(n.History)
	d.Succeeded, d.Failed = m.succeeded, m.failed
	var moving []*Guest
	var leaving []*Leaving
	all := make([]Leaving, len(n.Guests))
	for i := range n.Guests {
		g, of := &n.Guests[i], &all[i]
		*of = Leaving{Namespace: g.Namespace, VMI: g.VMI, VMIUID: g.VMIUID}
		if p := m.vms[name{g.Namespace, g.VMI}]; p != nil {
			of.Moves, of.Failures = p.succeeded, p.failed
		}
		if of.Effect, of.Because = g.effect(); of.Effect == trail.DrainMoves {
			moving, leaving = append(moving, g), append(leaving, of)
		}
	}
	if m.known() && len(moving) > 0 {
		d.Band = n.estimate(m, moving, leaving)
		d.Raised = n.raiseLimit(m, moving, d.Band)
	}
	for _, of := range all {
		d.addGuest(of)
	}
	sortLeaving(d.Guests)
	return d
}

// SeenBy returns the forecast with only those guests whose namespace may be seen; the band is that of all.
func (d Drain) SeenBy(scope trail.Scope) Drain {
	if !scope.Limited() {
		return d
	}
	all := d.Guests
	d.Limited = true
	d.Guests, d.Moving, d.ShuttingDown, d.Staying, d.NeverMoved = []Leaving{}, 0, 0, 0, 0
	for _, g := range all {
		if scope.Sees(g.Namespace) {
			d.addGuest(g)
		}
	}
	return d
}

// addGuest counts and lists a guest.
func (d *Drain) addGuest(g Leaving) {
	d.Guests = append(d.Guests, g)
	switch g.Effect {
	case trail.DrainMoves:
		d.Moving++
		if g.Moves == 0 {
			d.NeverMoved++
		}
	case trail.DrainShutsDown:
		d.ShuttingDown++
	case trail.DrainStays:
		d.Staying++
	}
}

// raiseLimit returns how long the drain takes with twice the limit of a node; nil where that is not much sooner.
func (n Node) raiseLimit(m *model, moving []*Guest, band Band) *Raised {
	if len(moving) <= n.PerNode {
		return nil
	}
	n.PerNode *= 2
	raised := &Raised{n.PerNode, n.estimate(m, moving, make([]*Leaving, len(moving)))}
	if float64(raised.Band.Mid) > (1-worthRaising)*float64(band.Mid) {
		return nil
	}
	return raised
}

// estimate plays the drain, fills in how each guest leaves that is not nil, and returns how long all take.
func (n *Node) estimate(m *model, moving []*Guest, leaving []*Leaving) Band {
	dice := rand.New(rand.NewPCG(n.seed(), 1)) // the same question has the same answer
	took, each := make([]time.Duration, runs), make([][]time.Duration, len(moving))
	for i := range runs {
		left := n.play(m.expect(dice), moving)
		last, who := time.Duration(0), 0
		for k, at := range left {
			if at == 0 {
				at = longest
			}
			each[k] = append(each[k], at)
			if at > last {
				last, who = at, k
			}
		}
		took[i] = last
		if leaving[who] != nil {
			leaving[who].Decides += 1.0 / runs
		}
	}
	for k, of := range leaving {
		if of != nil {
			of.Band = newBand(each[k])
		}
	}
	return newBand(took)
}

// seed makes the same question have the same answer.
func (n *Node) seed() uint64 {
	h := fnv.New64a()
	for _, text := range []string{n.Cluster, n.Name, n.At.UTC().Format(time.RFC3339)} {
		_, _ = h.Write([]byte(text + "\x00"))
	}
	return h.Sum64()
}

// newBand returns the band of what runs took, which it sorts.
func newBand(took []time.Duration) Band {
	slices.Sort(took)
	at := func(share float64) trail.Span {
		return trail.Span(took[int(share*float64(len(took)))].Round(time.Second))
	}
	return Band{at(lowShare), at(midShare), at(highShare)}
}

// sortLeaving sorts guests: those that stay first, then those that are shut down, then those that move, the last to leave
// first.
func sortLeaving(all []Leaving) {
	slices.SortStableFunc(all, func(a, b Leaving) int {
		return cmp.Or(slices.Index(trail.DrainEffects(), a.Effect)-slices.Index(trail.DrainEffects(), b.Effect), cmp.Compare(b.Decides, a.Decides), cmp.Compare(b.Band.Mid, a.Band.Mid),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.VMI, b.VMI))
	})
}
