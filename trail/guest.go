package trail

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Guest is a VM that a node holds now, and how it stands with it.
type Guest struct {
	Obstacle                  // the first thing that keeps it there
	Since          time.Time  // when the guest came to the node, or began there
	MarkedAt       time.Time  // since when KubeVirt is to move it; zero where it is not
	FailedAttempts int        // of those that it made for that
	LastMove       *Migration // the last one that it made or was to make, nil where none is known
}

// worstFirst orders the guests of a node by their obstacles.
var worstFirst = []ObstacleKind{
	ObstacleFailing, ObstacleStalled, ObstacleNodeNotReady, ObstacleExternal, ObstacleNotMigratable, ObstacleGivenUp, ObstacleBackoff, ObstacleWaiting,
	ObstacleTerminating, ObstacleMigrating, ObstacleStrategy, ObstacleOptedOut, ObstacleSlots, ObstacleCooldown, ObstacleNobodyAsks, ObstacleGone,
}

// Guests returns the VMs that obstacles are about, the worst first: those that are to move and do not, by their failed attempts, then by what is in their way.
// The obstacles are those of WhyNotNode.
func (c *Cluster) Guests(obstacles []Obstacle) []Guest {
	var out []Guest
	for _, o := range obstacles {
		g, d := Guest{Obstacle: o}, c.VM(o.Namespace, o.VMI)
		if p := placementNow(d); p != nil {
			g.Since = p.FromAt
		}
		if e := openEvacuation(d); e != nil {
			g.MarkedAt, g.FailedAttempts = e.MarkedAt, e.FailedAttempts
		}
		if n := len(d.Migrations); n > 0 {
			g.LastMove = &d.Migrations[n-1]
		}
		out = append(out, g)
	}
	slices.SortStableFunc(out, func(a, b Guest) int {
		return cmp.Or(cmp.Compare(b.FailedAttempts, a.FailedAttempts), cmp.Compare(slices.Index(worstFirst, a.Kind), slices.Index(worstFirst, b.Kind)),
			strings.Compare(a.Namespace+"/"+a.VMI, b.Namespace+"/"+b.VMI))
	})
	return out
}

// NodeLoad returns the latest known load of a node that can be compared with a threshold, as it was recorded beside the migrations of the VMs that the answer is
// about; nil where none was. Of several metrics of one time the one that is furthest over its threshold.
func (c *Cluster) NodeLoad(node string) *Reading {
	var latest *Reading
	for _, facts := range c.facts {
		for _, f := range facts {
			d, is := f.Detail.(*LoadDetail)
			if !is {
				continue
			}
			for i := range d.Readings {
				r := &d.Readings[i]
				if r.Node != node || !r.isComparable() || r.At.IsZero() {
					continue
				}
				if latest == nil || cmp.Or(r.At.Compare(latest.At), cmp.Compare(*r.Value-*r.Threshold, *latest.Value-*latest.Threshold)) > 0 {
					latest = r
				}
			}
		}
	}
	return latest
}
