package store

import "github.com/evictrail/evictrail/trail"

// decisionRow is one row of evictrail.cooldown_decisions.
type decisionRow struct {
	owned
	trail.Decision
}
