package store

import "github.com/evictrail/evictrail/trail"

// placementRow is one row of evictrail.placements.
type placementRow struct {
	owned
	trail.Placement
}
