package forecast

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

const (
	// begins is how long after the request for it a guest's first migration asks for a slot, on average.
	begins = time.Second
	// asksAgain is how often KubeVirt looks again whether a migration that waits may start.
	//
	// Source: kubevirt pkg/virt-controller/watch/migration/migration.go, which puts it back into its queue for 5 s.
	asksAgain = 5 * time.Second
	// longest is when a run is given up: a guest that fails again and again for so long stays.
	longest = 7 * 24 * time.Hour
)

// run is one play of a drain.
type run struct {
	node    *Node
	x       *expectation
	guests  []*mover
	running int // from the node
	others  int // from other nodes
	waiting []*mover
	events  events
	left    int
}

// mover is a guest in a run.
type mover struct {
	expect guestExpectation
	failed int
	asked  time.Duration // since when it waits for a slot
	leftAt time.Duration
}

// play plays the drain once, from a moment on, and returns when each guest left, counted from then; zero where it had not
// when the run was given up.
func (n *Node) play(x *expectation, guests []*Guest) []time.Duration {
	r := &run{node: n, x: x, left: len(guests)}
	for _, since := range n.Others {
		r.others++
		rest, _ := x.drawRest(x.expectGuest(name{}), n.At.Sub(since))
		r.after(0, rest, func(time.Duration) { r.others-- })
	}
	for _, g := range guests {
		m := &mover{expect: x.expectGuest(name{g.Namespace, g.VMI}), failed: g.Failed}
		r.guests = append(r.guests, m)
		switch {
		case !g.MovingSince.IsZero():
			rest, failed := x.drawRest(m.expect, n.At.Sub(g.MovingSince))
			r.hold(m, 0, rest, failed)
		case g.RetryAt.After(n.At):
			r.after(0, g.RetryAt.Sub(n.At), r.queue(m))
		case g.Marked:
			r.waiting = append(r.waiting, m)
		default:
			r.after(0, drawWait(x.dice, begins), r.queue(m))
		}
	}
	x.dice.Shuffle(len(r.waiting), func(i, j int) { r.waiting[i], r.waiting[j] = r.waiting[j], r.waiting[i] })
	r.start(0)
	for r.left > 0 && len(r.events) > 0 {
		e := heap.Pop(&r.events).(event)
		if e.at > longest {
			break
		}
		e.do(e.at)
		r.start(e.at)
	}
	out := make([]time.Duration, len(r.guests))
	for i, m := range r.guests {
		out[i] = m.leftAt
	}
	return out
}

// queue returns what has a guest wait for a slot.
func (r *run) queue(m *mover) func(time.Duration) {
	return func(now time.Duration) {
		m.asked = now
		r.waiting = append(r.waiting, m)
	}
}

// start lets those that wait have the slots that are free, in their order. One that had to wait asks again after some
// seconds; where several wait, the first of them to ask again has the slot.
func (r *run) start(at time.Duration) {
	for len(r.waiting) > 0 && r.hasSlot() {
		m := r.waiting[0]
		r.waiting = r.waiting[1:]
		took, failed := r.x.drawAttempt(m.expect)
		lag := time.Duration(0)
		if at > m.asked {
			lag = drawWait(r.x.dice, asksAgain/time.Duration(len(r.waiting)+2))
		}
		r.hold(m, at, lag+took, failed)
	}
}

// hasSlot reports whether KubeVirt's limits let another migration leave the node.
func (r *run) hasSlot() bool {
	return r.running < r.node.PerNode && r.running+r.others < r.node.PerCluster
}

// hold has an attempt under way until it ends.
func (r *run) hold(m *mover, at, took time.Duration, failed bool) {
	r.running++
	r.after(at, took, func(now time.Duration) {
		r.running--
		if !failed {
			m.leftAt = max(now, 1)
			r.left--
			return
		}
		m.failed++
		r.after(now, r.x.drawPause(m.failed), r.queue(m))
	})
}

func drawWait(dice *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(2 * dice.Float64() * float64(mean))
}

func (r *run) after(at, wait time.Duration, do func(now time.Duration)) {
	heap.Push(&r.events, event{at + wait, do})
}

// event is something that happens in a run.
type event struct {
	at time.Duration
	do func(now time.Duration)
}

// events are those to come, the next one first.
type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
