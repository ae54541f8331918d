package store

import "github.com/evictrail/evictrail/trail"

// consequenceRow is one row of evictrail.consequences.
type consequenceRow struct {
	owned
	trail.Consequence
}
