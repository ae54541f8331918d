package store

import "github.com/evictrail/evictrail/trail"

// migrationRow is one row of evictrail.migrations.
type migrationRow struct {
	owned
	trail.Migration
}
