package storetest

import (
	"time"

	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// Reach is how far back facts matter where histories are short: as long as the longest of the thresholds Brief.
const Reach = 20 * time.Minute

// ShortHistories has what happened matter for minutes instead of days, in this process: simulated histories last hours, and then end
// long after facts that are kept of what was dropped begin. Call it from TestMain.
func ShortHistories() {
	tables.AroundSlack = 16 * time.Minute
	tables.Reach = func([]trail.Fact, trail.Thresholds) time.Duration { return Reach }
}
