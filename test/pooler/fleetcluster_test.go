package pooler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// fleetNodes is how many nodes a cluster has. Its VMs go from one to the next.
const fleetNodes = 20

// stepsOfMove is how many observations a move of a VM has.
const stepsOfMove = 4

// fleetCluster is a cluster that moves its VMs one after the other, with the one replica that records and derives it.
type fleetCluster struct {
	name    string
	db      *store.Store
	replica *store.ClusterStore
	tracker *tracker.Tracker
	version int64
	created time.Time // of each VM
	steps   int       // of moves, ever
	node    []int     // where each VM is
	moveAt  time.Time // when the migration under way was created
	moves   int       // that are over
	facts   int       // that were recorded since somebody counted
}

// openFleetCluster connects to the database, and records where the VMs of a cluster are.
func openFleetCluster(ctx context.Context, url, name string) (*fleetCluster, error) {
	db, err := store.Open(ctx, url, "")
	if err != nil {
		return nil, err
	}
	c := &fleetCluster{name: name, db: db, replica: db.For(name, "r"), tracker: tracker.New(name), created: time.Now().Truncate(time.Second), node: make([]int, *fleetVMs)}
	if err := c.replica.Lead(ctx, "this", trail.DefaultThresholds()); err != nil {
		db.Close()
		return nil, err
	}
	var facts []trail.Fact
	for vm := range c.node {
		c.node[vm] = vm % fleetNodes
		facts = append(facts, c.observeVM(vm, false)...)
	}
	if _, err = c.replica.Append(ctx, facts); err == nil {
		_, _, err = c.replica.CatchUp(ctx, nil)
	}
	return c, err
}

// writeSteps records the next steps of moves at a rate, those that are due at once, while another goroutine derives, as in a leader. It returns how long after each
// was due its rows were committed.
func (c *fleetCluster) writeSteps(ctx context.Context, rate float64, lasts time.Duration) ([]time.Duration, error) {
	n := max(stepsOfMove, int(lasts.Seconds()*rate)/stepsOfMove*stepsOfMove)
	began := time.Now().Add(time.Duration(rand.Float64() / rate * float64(time.Second))) // clusters do not march in step
	dueAt := func(i int) time.Time { return began.Add(time.Duration(float64(i) / rate * float64(time.Second))) }
	var recorded atomic.Int64
	var took []time.Duration
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		took, err = c.deriveSteps(ctx, n, dueAt, &recorded)
		return err
	})
	g.Go(func() error {
		for done := 0; done < n; recorded.Store(int64(done)) {
			var facts []trail.Fact
			for ; done < n && !time.Now().Before(dueAt(done)); done++ {
				facts = append(facts, c.observeNextStep()...)
			}
			if len(facts) == 0 {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			news, err := c.replica.Append(ctx, facts)
			if err == nil && len(news.Facts) != len(facts) {
				err = fmt.Errorf("%s: %d facts of %d are new", c.name, len(news.Facts), len(facts))
			}
			if err != nil {
				return err
			}
			c.facts += len(facts)
		}
		return nil
	})
	return took, g.Wait()
}

// deriveSteps derives until all of n steps are, and returns how long after each was due its rows were there.
func (c *fleetCluster) deriveSteps(ctx context.Context, n int, dueAt func(int) time.Time, recorded *atomic.Int64) ([]time.Duration, error) {
	took := make([]time.Duration, 0, n)
	for len(took) < n {
		upTo := int(recorded.Load())
		_, rest, err := c.replica.KeepUp(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		if rest > 0 { // nothing is left
			for i := len(took); i < upTo; i++ {
				took = append(took, time.Since(dueAt(i)))
			}
			if err := c.replica.Rest(ctx, rest); err != nil {
				return nil, err
			}
		}
	}
	return took, nil
}

// observeNextStep returns the facts of the next step: a VM is marked, a migration is made for it, moves data, and has moved it.
func (c *fleetCluster) observeNextStep() []trail.Fact {
	move, step := c.steps/stepsOfMove, c.steps%stepsOfMove
	vm := move % len(c.node)
	c.steps++
	switch step {
	case 0:
		return c.observeVM(vm, true)
	case 1:
		c.moveAt = time.Now().Truncate(time.Second)
		return c.observeMigration(vm, move, "Pending")
	case 2:
		return c.observeMigration(vm, move, "Running")
	default:
		facts := c.observeMigration(vm, move, "Succeeded")
		c.node[vm] = (c.node[vm] + 1) % fleetNodes
		c.moves++
		return append(facts, c.observeVM(vm, false)...)
	}
}

func (c *fleetCluster) observeVM(vm int, marked bool) []trail.Fact {
	o := tracker.VMIObservation{Meta: c.nextMeta(fmt.Sprint("vmi-", vm), fmt.Sprint("vm-", vm), c.created), Phase: "Running", Strategy: "LiveMigrate", Node: c.nameNode(vm)}
	o.At = time.Now()
	if marked {
		o.Mark = o.Node
	}
	return c.tracker.Observe(o)
}

func (c *fleetCluster) observeMigration(vm, move int, phase string) []trail.Fact {
	o := tracker.MigrationObservation{Meta: c.nextMeta(fmt.Sprint("vmim-", move), fmt.Sprint("kubevirt-evacuation-", move), c.moveAt), VMI: fmt.Sprint("vm-", vm), Phase: phase,
		Evacuation: true, EvacuationNode: c.nameNode(vm)}
	o.At = time.Now()
	o.PhaseTimes = []trail.PhaseTime{{Phase: phase, At: o.At.Truncate(time.Second)}}
	return c.tracker.Observe(o)
}

func (c *fleetCluster) nextMeta(uid, name string, created time.Time) tracker.Meta {
	c.version++
	return tracker.Meta{UID: c.name + "-" + uid, Namespace: "shop", Name: name, ResourceVersion: strconv.FormatInt(c.version, 10), CreatedAt: created}
}

func (c *fleetCluster) nameNode(vm int) string { return fmt.Sprint("worker-", c.node[vm]) }
