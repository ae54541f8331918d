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

// drain begins a drain.
func (c *cluster) drain(n *node, patience time.Duration, done func()) {
	d := &drain{c: c, node: n, until: c.clock.now.Add(patience), done: done}
	c.cordon(n, true, func() { c.clock.after(30*time.Millisecond, d.begin) })
}

func (d *drain) begin() {
	for _, p := range d.c.podsOn(d.node) {
		d.waiting++
		d.c.clock.after(d.c.dice.between(0, 10*time.Millisecond), func() { d.ask(p) })
	}
	if d.waiting == 0 {
		d.done()
	}
}

func (d *drain) ask(p *pod) {
	answer := d.c.evict(p, admin)
	switch {
	case answer == trail.AnswerAllowed, answer == trail.AnswerNotFound, !d.c.clock.now.Before(d.until):
		if d.waiting--; d.waiting == 0 {
			d.done()
		}
	default:
		d.c.clock.after(kubectlEvery+d.c.dice.between(0, 400*time.Millisecond), func() { d.ask(p) })
	}
}

// cordon makes a node unschedulable, or schedulable again. Uncordoning changes nothing for the VMIs that are marked.
func (c *cluster) cordon(n *node, on bool, then func()) {
	c.clear(n.meta.Name, func() {
		n.cordoned = on
		c.audit(trail.ActionChangeNode, "", n.meta.Name, admin, 200, "")
		c.nodeChanged(n)
		then()
	})
}
