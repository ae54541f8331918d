package sim

import (
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// Run is one simulated history: what was seen, and what was true.
type Run struct {
	Seed         uint64
	KubeVirt     string   // version
	Injected     bool     // loop plots were staged; else only what looks like a loop
	Plots        []string // what was staged
	Start, End   time.Time
	Observations []tracker.Observation // in the order of their times
	Loops        []Loop                // that really happened, in the order of their openings
	LoopsByMarks []Loop                // that would have happened if the descheduler's acts were only those whose marks say whose they are
	MarksShow    bool                  // marks say whose they are at all: KubeVirt >= 1.7, or the descheduler's policy was seen
}

// options are what makes one run different from another.
type options struct {
	nodes, vms   int
	hours        time.Duration
	loops        int     // plots that make loops
	misses       int     // plots that make what only looks like one
	natural      bool    // nodes also become hot by the load of their guests
	flaky        float64 // share of migrations that fail for no reason of a plot
	policySeen   bool
	auditDelay   time.Duration // of audit events, at most; at least 10 ms
	userEvery    time.Duration // between migrations by users; zero for none
	restartEvery time.Duration
	statusEvery  time.Duration // between updates that change nothing; zero for none
	namespaces   []string      // of which each VM picks one; nil for three
	transfer     time.Duration // how long the memory of a usual VM takes to copy; zero: about 6 s of all
	scatter      float64       // of the attempts of one VM around its own time, of the logarithm
	perNode      int           // parallelOutboundMigrationsPerNode; zero: KubeVirt's own
	perCluster   int           // parallelMigrationsPerCluster; zero: KubeVirt's own
	methods      []string      // spec.workloadUpdateStrategy.workloadUpdateMethods
	batch        int           // batchEvictionSize; zero: KubeVirt's own
}

// epoch is when the runs begin.
var epoch = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// New plays one run. With even seeds loops are injected, and nodes are hot and migrations fail by chance as well; with odd
// ones nothing happens but what a plot wants, so that there is no loop.
func New(seed uint64) Run { return NewAt(seed, epoch) }

// NewAt plays the same run as New, with another beginning: with other objects of the same names, whose versions grow with the time.
func NewAt(seed uint64, begin time.Time) Run {
	c := newCluster(seed)
	c.clock.now = c.clock.now.Add(begin.Sub(epoch))
	c.watch.uids += uint64(begin.Unix())
	c.watch.version += 100 * uint64(begin.Unix())
	return c.runToEnd(seed)
}

func newCluster(seed uint64) *cluster {
	d := newDice(seed)
	o := options{
		nodes: d.pickInt(3, 8), hours: d.pickDuration(2*time.Hour, 4*time.Hour), policySeen: d.chance(0.8),
		auditDelay: pickOne(d, 300*time.Millisecond, 2*time.Second, 30*time.Second),
		userEvery:  25 * time.Minute, restartEvery: 40 * time.Minute, statusEvery: 30 * time.Second,
	}
	o.vms = max(10, min(60, o.nodes*d.pickInt(3, 9)))
	o.misses = d.pickInt(1, 3)
	if seed%2 == 0 {
		o.natural, o.flaky, o.loops, o.misses = true, 0.03, d.pickInt(1, 2), 1
	}
	return assembleCluster(d, o, pickOne(d, v160, v160, v160, v164, v184, v184, v184queue, v190, v190, v190))
}

// assembleCluster makes a cluster that has not begun.
func assembleCluster(d dice, o options, r release) *cluster {
	c := &cluster{dice: d, options: o, release: r, all: newLedger(), marks: newLedger()}
	c.clock.now = epoch.Add(d.pickDuration(0, time.Second))
	c.watch.last = map[trail.ObjectKind]time.Time{}
	c.watch.version = uint64(d.pickInt(1000, 90000))
	c.descheduler = newDescheduler(c)
	return c
}

// runToEnd runs a cluster to its end.
func (c *cluster) runToEnd(seed uint64) Run {
	r := Run{Seed: seed, KubeVirt: c.release.version, Injected: c.options.loops > 0, Start: c.clock.now}
	c.createNodesAndVMs()
	free := slices.Clone(c.nodes[:len(c.nodes)-1]) // one node at least stays out of the plots
	c.dice.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	free = c.injectPlots(loopPlots, c.options.loops, free)
	c.injectPlots(nearMisses, c.options.misses, free)
	c.startBackgroundActivity()
	c.descheduler.startCycles()
	stop := c.clock.now.Add(c.options.hours)
	c.clock.runUntil(stop)
	r.Plots = c.plots
	r.Observations = c.watch.listObservations()
	r.End = stop.Add(time.Minute) // the last sights come after the last moment
	r.Loops, r.LoopsByMarks = c.all.finishLoops(r.End), c.marks.finishLoops(r.End)
	r.MarksShow = c.release.source || c.options.policySeen
	return r
}
