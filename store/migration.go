package store

import "github.com/evictrail/evictrail/trail"

// migrationRow is one row of evictrail.migrations.
type migrationRow struct {
	owned
	trail.Migration
}

// Migrations is the view of migrations.
var Migrations = View{
	Name: "migrations", at: "created_at", key: "migration_uid", where: vmFilters,
	Brief: []string{"cluster", "namespace", "vmi", "migration", "trigger", "attempt", "source_node", "target_node", "created_at", "phase", "outcome", "failure_class", "failure_reason", "duration"},
}
