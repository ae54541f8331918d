package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// descheduler is the descheduler with LowNodeUtilization (reference: descheduler-signals §2).
type descheduler struct {
	c        *cluster
	interval time.Duration
	perNode  int
	total    int  // of all nodes; 0 means no limit
	gate     bool // EvictionsInBackground
	cache    map[string]*entry
	accepted func(*node) // tests may look on; nil otherwise
}

// entry is an eviction in background that the descheduler believes to be under way, by the UID of the pod.
type entry struct {
	pod     *pod
	assumed bool // from an answer; else from the pod's annotations
	at      time.Time
	seen    bool // the annotation was there: its removal ends the entry
}

// Times of the descheduler's cache of assumed evictions.
//
// Source: descheduler pkg/descheduler/evictions/evictions.go.
const (
	assumedFor = 10 * time.Minute
	sweepEvery = 10 * time.Minute
)

func newDescheduler(c *cluster) *descheduler {
	d := &descheduler{
		c: c, interval: c.dice.pickDuration(10*time.Second, 60*time.Second).Round(5 * time.Second), perNode: c.dice.pickInt(1, 5),
		gate: !c.dice.chance(0.15), cache: map[string]*entry{},
	}
	if c.dice.chance(0.5) {
		d.total = d.perNode + c.dice.pickInt(1, 5)
	}
	return d
}

// buildSettings are what a collector reads out of the policy: the limits, but not the gate, which is a flag of the process.
func (d *descheduler) buildSettings() *trail.DeschedulerSettings {
	perNode, total := int64(d.perNode), int64(d.total)
	s := &trail.DeschedulerSettings{LimitPerNode: &perNode}
	if total > 0 {
		s.LimitTotal = &total
	}
	return s
}

// renderPolicy returns the policy file that says so.
func (d *descheduler) renderPolicy() string {
	return fmt.Sprintf("apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nmaxNoOfPodsToEvictPerNode: %d\n", d.perNode)
}

// newCaller is how the descheduler's requests look in the audit log.
func (d *descheduler) newCaller() caller {
	return caller{
		user:  "system:serviceaccount:openshift-kube-descheduler-operator:openshift-descheduler-operand",
		agent: "descheduler/v0.0.0 (linux/amd64) kubernetes/$Format/descheduler",
		by:    "sigs.k8s.io/descheduler", reason: "triggered by KubeVirtRelieveAndMigrate/LowNodeUtilization: ",
	}
}

// startCycles starts cycles and sweeps.
func (d *descheduler) startCycles() {
	d.c.clock.scheduleAfter(d.c.dice.pickDuration(time.Second, d.interval), d.runCycle)
	d.c.clock.scheduleAfter(sweepEvery, d.sweepCache)
}

// runCycle relieves every node over the target. Its limits do not count what went before, but for what is in the cache.
func (d *descheduler) runCycle() {
	d.c.clock.scheduleAfter(d.interval, d.runCycle)
	for i, n := range d.c.nodes {
		if d.c.isHot(n) {
			d.c.clock.scheduleAfter(time.Duration(i)*130*time.Millisecond, func() {
				d.relieveNode(&visit{node: n, pods: d.listCandidates(n), load: n.load, heated: n.isHeated(d.c.clock.now)})
			})
		}
	}
}

// visit is what one cycle does on one node.
type visit struct {
	node    *node
	pods    []*pod // still to try
	load    float64
	heated  bool // a plot keeps it hot, whatever leaves
	taken   int  // that count against the node's limit in this cycle, ignored ones among them
	evicted int  // that really went at once
}

// listCandidates returns the launcher pods that run on a node, in any order: it differs between cycles.
func (d *descheduler) listCandidates(n *node) []*pod {
	pods := slices.DeleteFunc(d.c.podsOn(n), func(p *pod) bool { return p.vmi.vm.optedOut || p.phase != "Running" })
	d.c.dice.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	return pods
}

// relieveNode tries one pod after another until the node is balanced, a limit is reached or no pod is left.
func (d *descheduler) relieveNode(v *visit) {
	if len(v.pods) == 0 || !v.heated && v.load <= d.c.tooMuch() || v.heated && !v.node.isHeated(d.c.clock.now) || d.c.isOrderUnclear(v.node) {
		return
	}
	p := v.pods[0]
	v.pods = v.pods[1:]
	if p.hasEnded() || p.vmi.over || p.vmi.phase != "Running" {
		d.relieveNode(v)
		return
	}
	if d.tryEviction(v, p) {
		d.c.clock.scheduleAfter(d.c.dice.pickDuration(30*time.Millisecond, 70*time.Millisecond), func() { d.relieveNode(v) })
	}
}

// tryEviction asks for one eviction, and reports whether to go on with the node.
func (d *descheduler) tryEviction(v *visit, p *pod) bool {
	if d.gate {
		if _, requested := d.cache[p.meta.UID]; requested {
			return d.countEviction(v, p) // "Eviction in background already requested (ignoring)", and counted as an eviction
		}
		inNode, inAll := d.inFlight(v.node.meta.Name)
		if inNode+v.evicted+1 > d.perNode || d.total > 0 && inAll+v.evicted+1 > d.total {
			return false
		}
	}
	switch d.requestEviction(p) {
	case trail.AnswerAllowed:
		v.evicted++
		return d.countEviction(v, p)
	case trail.AnswerMarked, trail.AnswerAlreadyMarked:
		if !d.gate { // every 429 is a failed eviction: on to the next VM, whatever the limits say
			return true
		}
		d.assumeEvicted(p)
		if d.accepted != nil {
			d.accepted(v.node)
		}
		return d.countEviction(v, p)
	default:
		return true
	}
}

// countEviction counts a pod against the node's limit in this cycle, and its load as gone.
func (d *descheduler) countEviction(v *visit, p *pod) bool {
	v.taken++
	v.load -= p.vmi.vm.load
	return v.taken < d.perNode
}

// requestEviction sends the request, and lets the truth know of it.
func (d *descheduler) requestEviction(p *pod) trail.RequestAnswer {
	inherited := p.vmi.source != ""
	answer := d.c.evictPod(p, d.newCaller())
	if answer == trail.AnswerMarked || answer == trail.AnswerAlreadyMarked {
		d.c.recordAct(d.c.findNode(p.node), p.vmi, answer, inherited)
	}
	return answer
}

// assumeEvicted remembers an eviction that was taken on. The flag is never cleared by seeing the annotation.
func (d *descheduler) assumeEvicted(p *pod) {
	e := d.cache[p.meta.UID]
	if e == nil {
		e = &entry{pod: p}
		d.cache[p.meta.UID] = e
	}
	e.assumed, e.at, e.seen = true, d.c.clock.now, e.seen || p.annotated != ""
}

// handlePodUpdate is the descheduler's pod informer: an entry goes with the pod or with its annotation, and comes, never to
// expire, with any update of a pod that has the annotation.
func (d *descheduler) handlePodUpdate(p *pod) {
	if !d.gate {
		return
	}
	e := d.cache[p.meta.UID]
	switch {
	case p.hasEnded(), e != nil && e.seen && p.annotated == "":
		delete(d.cache, p.meta.UID)
	case e != nil:
		e.seen = e.seen || p.annotated != ""
	case p.annotated != "":
		d.cache[p.meta.UID] = &entry{pod: p, seen: true}
	}
}

// sweepCache forgets assumed evictions that are too old, also those that go on.
func (d *descheduler) sweepCache() {
	d.c.clock.scheduleAfter(sweepEvery, d.sweepCache)
	for uid, e := range d.cache {
		if e.assumed && d.c.clock.now.Sub(e.at) > assumedFor {
			delete(d.cache, uid)
		}
	}
}

// inFlight counts the evictions that the descheduler believes to be under way, on one node and on all.
func (d *descheduler) inFlight(node string) (onNode, all int) {
	for _, e := range d.cache {
		if e.pod.node == node {
			onNode++
		}
	}
	return onNode, len(d.cache)
}
