//go:build !loops

package sim

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// This file stands in for trail.DeriveAll until it is there, with the plain rule of rule_test.go for the detector. Once
// trail.DeriveAll is there this file goes, and with it the build constraint of detect_test.go.

// derive derives everything, and gives the loops that the detector finds.
func derive(facts []trail.Fact, now time.Time) (map[trail.Subject]trail.Derived, []found) {
	by := map[trail.Subject][]trail.Fact{}
	for _, f := range facts {
		by[f.Subject] = append(by[f.Subject], f)
	}
	env := trail.NewEnv(facts)
	rows := map[trail.Subject]trail.Derived{}
	for subject := range by {
		rows[subject] = trail.Derive(subject, by[subject], env)
	}
	return rows, rule{}.find(historyOf(rows), now)
}
