package store

import "github.com/evictrail/evictrail/trail"

// drainRow is one row of evictrail.drains.
type drainRow struct {
	owned
	trail.Drain
}

// blockerRow is one row of evictrail.drain_blockers.
type blockerRow struct {
	owned
	trail.DrainBlocker
}
