package forecast

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Attempt is a migration of the cluster that ended by itself.
type Attempt struct {
	Namespace, VMI string
	Took           time.Duration // from its target pod to its end
	Failed         bool
	Retried        time.Duration // from a failure to the creation of the next attempt; zero where none followed
}

// name identifies a VM, also after a restart.
type name struct{ namespace, vmi string }

const (
	// leastMoves is how many attempts must have succeeded in the cluster before anything is estimated from them.
	leastMoves = 5
	// usualScatter is the standard deviation of the logarithm of how long attempts of one VM take, where no VM was moved often
	// enough to know: one in three is more than a quarter off.
	usualScatter = 0.25
	// ownWeight is how many attempts of a VM weigh as much as the cluster's share of failures, in what is expected of that VM.
	ownWeight = 4
	// heartbeat is how often a node says that it is there.
	heartbeat = time.Minute
)

// model is what a history says about attempts. Times are logarithms of seconds.
type model struct {
	vms       map[name]*past
	moved     []*past // VMs that were moved, in the order of their names
	scatter   float64 // standard deviation of the times of one VM around its mean
	succeeded int
	failed    int
	failures  []time.Duration // how long failed attempts took
	retries   []time.Duration // from a failure to the creation of the next attempt
}

// past is what became of one VM.
type past struct {
	name              name
	times             []float64 // of attempts that succeeded
	mean              float64   // of these
	failed, succeeded int
}

// fitModel returns what a history says.
func fitModel(history []Attempt) *model {
	m := &model{vms: map[name]*past{}}
	for _, a := range history {
		n := name{a.Namespace, a.VMI}
		p := m.vms[n]
		if p == nil {
			p = &past{name: n}
			m.vms[n] = p
		}
		if a.Failed {
			p.failed++
			m.failed++
			m.failures = append(m.failures, a.Took)
			if a.Retried > 0 {
				m.retries = append(m.retries, a.Retried)
			}
			continue
		}
		p.succeeded++
		m.succeeded++
		p.times = append(p.times, math.Log(max(a.Took.Seconds(), 0.5)))
	}
	for _, p := range m.vms {
		if len(p.times) > 0 {
			m.moved = append(m.moved, p)
		}
	}
	slices.SortFunc(m.moved, func(a, b *past) int {
		return cmp.Or(cmp.Compare(a.name.namespace, b.name.namespace), cmp.Compare(a.name.vmi, b.name.vmi))
	})
	squares, freedom := 0.0, 0
	for _, p := range m.moved { // the sums are those of one order
		slices.Sort(p.times)
		for _, t := range p.times {
			p.mean += t / float64(len(p.times))
		}
		for _, t := range p.times {
			squares += (t - p.mean) * (t - p.mean)
		}
		freedom += len(p.times) - 1
	}
	// What is usual counts as ten attempts: a few that took the same time by chance do not make the band narrow.
	m.scatter = math.Sqrt((squares + 10*usualScatter*usualScatter) / float64(freedom+10))
	slices.Sort(m.failures)
	slices.Sort(m.retries)
	return m
}

// known reports whether there is enough to estimate from.
func (m *model) known() bool { return m.succeeded >= leastMoves }

// expectation is what one run expects of attempts: of each VM, and of those that were never moved.
type expectation struct {
	*model
	dice    *rand.Rand
	failing float64   // share of attempts of the cluster that fail
	weights []float64 // of the VMs that were moved, added up
}

// expect draws what one run expects. How far that is off from one run to the next is how little the history says.
func (m *model) expect(dice *rand.Rand) *expectation {
	x := &expectation{model: m, dice: dice, failing: drawShare(dice, float64(m.failed)+0.5, float64(m.succeeded)+0.5)}
	sum := 0.0
	for range m.moved {
		sum += dice.ExpFloat64()
		x.weights = append(x.weights, sum)
	}
	return x
}

// guestExpectation is what one run expects of attempts of one guest.
type guestExpectation struct {
	mean    float64 // of the logarithm of seconds
	failing float64
}

// expectGuest draws what is expected of a guest: what is known of itself, or that it is like another.
func (x *expectation) expectGuest(n name) guestExpectation {
	own := x.vms[n]
	if own == nil {
		own = &past{}
	}
	like := own
	if len(own.times) == 0 {
		at := x.dice.Float64() * x.weights[len(x.weights)-1]
		i, _ := slices.BinarySearch(x.weights, at)
		like = x.moved[min(i, len(x.moved)-1)]
	}
	return guestExpectation{
		mean:    like.mean + x.dice.NormFloat64()*x.scatter/math.Sqrt(float64(len(like.times))),
		failing: drawShare(x.dice, ownWeight*x.failing+float64(own.failed), ownWeight*(1-x.failing)+float64(own.succeeded)),
	}
}

// drawAttempt draws how long an attempt takes, and whether it fails.
func (x *expectation) drawAttempt(g guestExpectation) (took time.Duration, failed bool) {
	if x.dice.Float64() < g.failing {
		if len(x.failures) > 0 {
			return x.failures[x.dice.IntN(len(x.failures))], true
		}
		return x.drawMove(g) / 2, true
	}
	return x.drawMove(g), false
}

// drawMove draws how long an attempt takes that succeeds.
func (x *expectation) drawMove(g guestExpectation) time.Duration {
	return toDuration(math.Exp(g.mean + x.dice.NormFloat64()*x.scatter))
}

// drawPause draws how long it takes from the failure of an attempt until the next may begin: KubeVirt makes it when something
// happens to the VM or, at the latest, with the next heartbeat of its node, and starts it when its backoff is over.
func (x *expectation) drawPause(failed int) time.Duration {
	made := drawWait(x.dice, heartbeat/2)
	if len(x.retries) > 0 {
		made = x.retries[x.dice.IntN(len(x.retries))]
	}
	return max(made, trail.BackoffAfter(failed))
}

// drawRest draws how long an attempt goes on that is under way for so long.
func (x *expectation) drawRest(g guestExpectation, since time.Duration) (rest time.Duration, failed bool) {
	for range 50 {
		if took, failed := x.drawAttempt(g); took > since {
			return took - since, failed
		}
	}
	return time.Duration(x.dice.Float64() * float64(since)), false // longer than any: half as long again, on average
}

// drawShare draws a share from a beta distribution of so many for and against.
func drawShare(dice *rand.Rand, with, against float64) float64 {
	a, b := drawGamma(dice, with), drawGamma(dice, against)
	return a / (a + b)
}

// drawGamma draws from a gamma distribution of scale 1.
//
// Source: G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, 2000.
func drawGamma(dice *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return drawGamma(dice, shape+1) * math.Pow(1-dice.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := dice.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-dice.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

func toDuration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
