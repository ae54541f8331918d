package forecast

import (
	"fmt"

	"github.com/evictrail/evictrail/trail"
)

// Text says in some sentences whether the limits fit, and what to do.
func (l Limits) Text() string {
	if l.Busiest == nil {
		return l.DescribeTraffic()
	}
	return l.DescribeTraffic() + " " + l.DescribeAdvice()
}

// DescribeTraffic says in some sentences how many migrations came, and how far they filled the slots.
func (l Limits) DescribeTraffic() string {
	days := trail.Age(l.To.Sub(l.From))
	if l.Arrived == 0 {
		return fmt.Sprintf("No migration came in the last %s.", days)
	}
	text := fmt.Sprintf("In the last %s %s came", days, trail.FormatCount(l.Arrived, "migration"))
	if l.Unserved > 0 {
		text += fmt.Sprintf(", of which %d had no slot", l.Unserved)
	}
	if l.Busiest == nil {
		return text + "."
	}
	text += fmt.Sprintf(". One has its slot for %s on average, so that the limit of %d in the cluster lets %.0f an hour through.", formatAge(l.Held), l.PerCluster, l.PerHour)
	text += fmt.Sprintf(" Of the slots %s were taken, in the busiest hour, from %s on, %s.", formatShare(l.Used), trail.FormatClock(l.Busiest.At), formatShare(l.Busiest.Used))
	if l.Full > 0 {
		text += fmt.Sprintf(" For %s at least one waited for a slot.", formatAge(l.Full))
	} else {
		text += " None waited for a slot."
	}
	return text
}

// DescribeAdvice says what to do.
func (l Limits) DescribeAdvice() string {
	better := func(i int, what string) string {
		now, then := l.Options[0], l.Options[i]
		return fmt.Sprintf("Raise %s: the same migrations would have waited %s in all, not %s, with up to %d side by side (%d now), "+
			"as long as these do not slow each other down.", what, formatAge(then.Waited), formatAge(now.Waited), then.AtOnce, now.AtOnce)
	}
	node := fmt.Sprintf("parallelOutboundMigrationsPerNode to %d", raisedTimes*l.PerNode)
	cluster := fmt.Sprintf("parallelMigrationsPerCluster to %d", raisedTimes*l.PerCluster)
	switch l.Advice {
	case RaiseNodeLimit:
		return better(1, node)
	case RaiseClusterLimit:
		return better(2, cluster)
	case RaiseBothLimits:
		return better(3, node+" and "+cluster)
	case LimitsFit:
		return "The limits fit: with twice as many slots the same migrations would have ended hardly sooner."
	case LimitsUnknown:
	}
	return fmt.Sprintf("Too few to advise from: it takes %d that had a slot.", leastUses)
}

// HeldText returns for how long a migration has its slot, for a page.
func (l Limits) HeldText() string { return formatAge(l.Held) }

// UsedText returns which share of the cluster's slots was taken, for a page.
func (l Limits) UsedText() string { return formatShare(l.Used) }

// UsedText returns which share of the cluster's slots was taken in the hour, for a page.
func (h BusyHour) UsedText() string { return formatShare(h.Used) }

// WaitedText returns how long migrations would have waited, for a table.
func (o Option) WaitedText() string { return formatAge(o.Waited) }

// Rests says what the answer does not know.
func (l Limits) Rests() string {
	return "The limits are those in force now; settings of the time may have been others. Migrations that wait for something else, such as a quota or a backoff, count from " +
		"when that came. Not part of it: what more of them side by side do to network, processors and each other."
}

func formatShare(share float64) string { return fmt.Sprintf("%.*f %%", digitsOf(share), 100*share) }

// digitsOf returns how many digits a share of less than one in a hundred has after its point.
func digitsOf(share float64) int {
	if share > 0 && share < 0.01 {
		return 1
	}
	return 0
}
