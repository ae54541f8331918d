package standby

import (
	"fmt"
	"math"
	"time"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// noted is what is known of both servers. The zero value knows nothing.
type noted struct {
	history history
	// reachable reports whether the primary answered and takes writes.
	reachable bool
	standby   replayed
	asOf      time.Time // up to when the standby has what was written; zero: not known
	// awaited is up to where the standby must have replayed before it answers again: what a caller wrote lies before. 0: nothing
	// is awaited; unknownPosition: where the primary was then is not known yet.
	awaited int64
}

// unknownPosition lies behind all positions.
const unknownPosition = math.MaxInt64

// note takes over what both servers said at a time. Inserted is up to where the primary wrote, also what it has not handed on.
func (n *noted) note(at time.Time, primary *written, inserted int64, standby replayed) {
	n.reachable, n.standby = primary != nil, standby
	if primary != nil {
		n.history.add(*primary)
		if n.awaited == unknownPosition {
			n.awaited = inserted
		}
	}
	if standby.err != nil {
		return
	}
	if n.awaited <= standby.lsn {
		n.awaited = 0
	}
	n.asOf = n.history.coveredBy(standby.lsn)
	if committed := standby.committed; (n.asOf.IsZero() || !n.reachable) && committed.After(n.asOf) && !committed.After(at) {
		n.asOf = committed
	}
}

// chooseServer decides which server answers at a time, and why where that is not as it should be. A standby that is too far
// behind answers where the primary does not: what it has is better than nothing, and each answer says how old it is.
func (n *noted) chooseServer(at time.Time, most time.Duration) trail.StandbySigns {
	s := trail.StandbySigns{AsOf: n.asOf}
	lag := at.Sub(n.asOf)
	if !n.asOf.IsZero() {
		s.LagSeconds = lag.Seconds()
	}
	switch {
	case n.standby.err != nil:
		s.Cause, s.Why = trail.StandbyAway, "the standby is away: "+pg.Brief(n.standby.err)
	case !n.standby.recovering:
		s.Cause = trail.StandbyPrimary
		s.Why = "--database-read-url leads to a server that takes writes: it is no standby, or was promoted"
	case n.asOf.IsZero():
		s.Cause, s.Why = trail.StandbyLags, "it is not known how far the standby is behind"
	case lag <= most:
		s.Used = true
	case !n.reachable:
		s.Used, s.Cause, s.Why = true, trail.StandbyLags, "the primary does not answer"
	default:
		s.Cause = trail.StandbyLags
		s.Why = fmt.Sprintf("the standby is %s behind, more than the %s of --database-read-max-lag: %s",
			lag.Round(time.Second), most, n.standby.describeStall())
	}
	return s
}

// describeStall says what a standby that is behind does not do.
func (r replayed) describeStall() string {
	if r.received > r.lsn {
		return "it does not replay what it receives (was replay paused, or does a query there hold it up?)"
	}
	return "it does not receive what is written"
}
