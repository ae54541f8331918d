package tracker

import "github.com/evictrail/evictrail/trail"

// TransferObservation is what an origin reported, after its end, about what a migration copied.
type TransferObservation struct {
	Seen
	Of     trail.TransferSpan
	Detail *trail.TransferDetail
}

// observeTransfer returns the fact of what was read. The migration and the origin are its identity: who looks again adds
// nothing.
func (t *Tracker) observeTransfer(o TransferObservation) []trail.Fact {
	r := t.newMeasurement(o.Seen, o.Of.MigrationUID, o.Of.Namespace, o.Of.VMI, o.Of.VMIUID)
	reason := trail.ReasonSampled
	if !o.Detail.Known() {
		reason = trail.ReasonNotSampled
	}
	f := r.recordOnce(trail.KindMigrationTransfer, reason, trail.WhatTransfer, string(o.Detail.Origin)).
		withEvidence("query_range").withTime(clockTime{o.Of.To, trail.ClockEmitter}).withDetail(o.Detail)
	f.Migration, f.MigrationUID, f.Node = o.Of.Migration, o.Of.MigrationUID, o.Of.SourceNode
	return r.facts
}
