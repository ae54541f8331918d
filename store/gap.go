package store

import "github.com/evictrail/evictrail/trail"

// gapRow is one row of evictrail.gaps.
type gapRow struct {
	owned
	trail.Gap
}
