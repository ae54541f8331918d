package tables

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// How far back what is stored bears on what comes. Facts are read and kept by these; tests have shorter histories.
var (
	// Reach returns how far back facts matter to what is derived, by the rules and thresholds in force.
	Reach = trail.Reach
	// AroundSlack is how long before a change what it means for a node may begin: a drain with a cordon some minutes before it, what the descheduler does
	// because of a VM that came half an hour before. It is shorter than any Reach.
	AroundSlack = time.Hour
)
