package store

import "github.com/evictrail/evictrail/trail"

// loopRow is one row of evictrail.loops.
type loopRow struct {
	owned
	trail.Loop
}
