package sim

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// drain is somebody who empties a node with kubectl: it is cordoned, every pod is evicted again every 5 s until the
// answer is 201 or 404, or until the patience is at its end.
type drain struct {
	c       *cluster
	node    *node
	until   time.Time
	waiting int
	done    func() // when all pods are gone or patience is at its end
}

// kubectlEvery is how often kubectl drain asks again.
//
// Source: kubernetes staging/src/k8s.io/kubectl/pkg/drain/drain.go, evictPods.
const kubectlEvery = 5 * time.Second

// startDrain begins a drain.
func (c *cluster) startDrain(n *node, patience time.Duration, done func()) {
	d := &drain{c: c, node: n, until: c.clock.now.Add(patience), done: done}
	c.setCordoned(n, true, func() { c.clock.scheduleAfter(30*time.Millisecond, d.evictAllPods) })
}

func (d *drain) evictAllPods() {
	for _, p := range d.c.podsOn(d.node) {
		d.waiting++
		d.c.clock.scheduleAfter(d.c.dice.pickDuration(0, 10*time.Millisecond), func() { d.requestEviction(p) })
	}
	if d.waiting == 0 {
		d.done()
	}
}

func (d *drain) requestEviction(p *pod) {
	answer := d.c.evictPod(p, admin)
	switch {
	case answer == trail.AnswerAllowed, answer == trail.AnswerNotFound, !d.c.clock.now.Before(d.until):
		if d.waiting--; d.waiting == 0 {
			d.done()
		}
	default:
		d.c.clock.scheduleAfter(kubectlEvery+d.c.dice.pickDuration(0, 400*time.Millisecond), func() { d.requestEviction(p) })
	}
}

// setCordoned makes a node unschedulable, or schedulable again. Uncordoning changes nothing for the VMIs that are marked.
func (c *cluster) setCordoned(n *node, on bool, then func()) {
	c.runAfterActs(n.meta.Name, func() {
		n.cordoned = on
		c.recordAuditEvent(trail.ActionChangeNode, "", n.meta.Name, admin, 200, "")
		c.nodeChanged(n)
		then()
	})
}
