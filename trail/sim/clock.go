package sim

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"
)

// clock is the queue of the moments to come. Those of one time come in the order in which they were asked for.
type clock struct {
	now   time.Time // UTC
	asked int
	queue moments
}

// moment is one thing that is going to happen.
type moment struct {
	at    time.Time
	order int
	do    func()
}

// scheduleAfter asks for something to be done when the time has passed.
func (c *clock) scheduleAfter(d time.Duration, do func()) { c.scheduleAt(c.now.Add(d), do) }

// scheduleAt asks for something to be done at a time; one that is over means now.
func (c *clock) scheduleAt(when time.Time, do func()) {
	if when.Before(c.now) {
		when = c.now
	}
	c.asked++
	heap.Push(&c.queue, moment{when, c.asked, do})
}

// runUntil does what is due until a time, inclusive, and leaves the rest undone.
func (c *clock) runUntil(until time.Time) {
	for len(c.queue) > 0 && !c.queue[0].at.After(until) {
		m := heap.Pop(&c.queue).(moment)
		c.now = m.at
		m.do()
	}
	c.now = until
}

// moments is a heap, the earliest first.
type moments []moment

func (q moments) Len() int      { return len(q) }
func (q moments) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *moments) Push(x any)   { *q = append(*q, x.(moment)) }

func (q moments) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].order < q[j].order
	}
	return q[i].at.Before(q[j].at)
}

func (q *moments) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = moment{}
	*q = (*q)[:len(*q)-1]
	return last
}

// dice are the chance of one run.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 0x6576696374))} }

// chance is true in that share of the cases.
func (d dice) chance(share float64) bool { return d.Float64() < share }

// pickDuration returns a duration from lo, inclusive, to hi, exclusive.
func (d dice) pickDuration(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(d.Int64N(int64(hi-lo)))
}

// scatterDuration returns a duration around another; scatter is the standard deviation of its logarithm.
func (d dice) scatterDuration(around time.Duration, scatter float64) time.Duration {
	return time.Duration(float64(around) * math.Exp(scatter*d.NormFloat64()))
}

// pickInt returns a number from lo to hi, both inclusive.
func (d dice) pickInt(lo, hi int) int { return lo + d.IntN(hi-lo+1) }

// pickOne returns one of the choices.
func pickOne[T any](d dice, choices ...T) T { return choices[d.IntN(len(choices))] }

// letters that Kubernetes uses for generated names.
//
// Source: kubernetes staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go.
const letters = "bcdfghjklmnpqrstvwxz2456789"

// newSuffix returns the five letters that end a generated name.
func (d dice) newSuffix() string {
	var b [5]byte
	for i := range b {
		b[i] = letters[d.IntN(len(letters))]
	}
	return string(b[:])
}
