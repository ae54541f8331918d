package tracker

import "github.com/evictrail/evictrail/trail"

// LoadObservation is what an origin reported about one moment of a migration.
type LoadObservation struct {
	Seen
	Of       trail.Occasion
	Origin   trail.LoadOrigin
	Readings []trail.Reading
}

// Known reports whether any value is known.
func (o LoadObservation) Known() bool {
	for _, r := range o.Readings {
		if r.Value != nil {
			return true
		}
	}
	return false
}

// observeLoad returns the fact of what was read. The migration, the moment and the origin are its identity: who looks again adds nothing, also
// where Prometheus has other samples by then.
func (t *Tracker) observeLoad(o LoadObservation) []trail.Fact {
	r := t.newMeasurement(o.Seen, o.Of.MigrationUID, o.Of.Namespace, o.Of.VMI, o.Of.VMIUID)
	reason, evidence := trail.ReasonSampled, "descheduler_lownodeutilization_node_utilization_value"
	if !o.Known() {
		reason = trail.ReasonNotSampled
	}
	if o.Origin == trail.OriginPrometheus {
		evidence = "query_range"
	}
	f := r.recordOnce(trail.KindNodeLoad, reason, o.Of.What(), string(o.Origin)).withEvidence(evidence).withTime(clockTime{o.Of.At, trail.ClockEmitter}).
		withDetail(&trail.LoadDetail{Moment: o.Of.Moment, After: trail.Span(o.Of.After), Final: o.Of.Final, Origin: o.Origin, Readings: o.Readings})
	f.Migration, f.MigrationUID, f.Node = o.Of.Migration, o.Of.MigrationUID, o.Of.SourceNode
	return r.facts
}

// newMeasurement begins to record what an origin measured of a migration of a VM.
func (t *Tracker) newMeasurement(seen Seen, migrationUID, namespace, vmi, vmiUID string) recorder {
	return recorder{
		t: t, seen: seen, id: trail.Object{Kind: trail.ObjectNodeLoad, UID: migrationUID},
		object: &object{subject: trail.VMISubject(namespace, vmi), namespace: namespace, vmi: vmi, vmiUID: vmiUID},
	}
}
