package tracker

import "github.com/evictrail/evictrail/trail"

// MigrationPolicyObservation is what is read of a MigrationPolicy: settings of KubeVirt for the migrations of some VMs.
type MigrationPolicyObservation struct {
	Seen
	Meta
	Settings trail.MigrationPolicySettings // its Name and CreatedAt are those of Meta
}

func (t *Tracker) observeMigrationPolicy(o MigrationPolicyObservation) []trail.Fact {
	o.Settings.Name, o.Settings.CreatedAt = o.Name, o.CreatedAt
	if o.Gone {
		r := t.openRecorder(trail.ObjectMigrationPolicy, o.Meta, o.Seen, trail.Subject{Kind: trail.SubjectConfig, Name: string(trail.ObjectMigrationPolicy)})
		if r == nil {
			return nil
		}
		r.recordMigrationPolicyGone()
		return r.facts
	}
	return t.recordConfig(trail.ObjectMigrationPolicy, o.Meta, o.Seen, trail.ReasonMigrationPolicy, trail.ConfigDetail{MigrationPolicy: &o.Settings}, "spec")
}

// recordMigrationPolicyGone records that a MigrationPolicy exists no more. Its earlier facts say which one that was.
func (r *recorder) recordMigrationPolicyGone() {
	if r.addAspect(trail.WhatGone, "true") {
		r.recordOnce(trail.KindConfigSeen, trail.ReasonMigrationPolicyDeleted, trail.WhatGone, "true").withEvidence("DELETED")
	}
}
