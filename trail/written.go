package trail

import (
	"encoding/json"
	"fmt"
	"time"
)

// writtenFact is a fact as it is written where it waits for the database. Its names are part of what files on disk hold: one is added,
// none is changed. The detail is written as it is, and read when its kind is known.
type writtenFact[D any] struct {
	ID            FactID     `json:"id"`
	Kind          Kind       `json:"kind"`
	Reason        Reason     `json:"reason,omitempty"`
	Subject       string     `json:"subject"`
	ObjectKind    ObjectKind `json:"object_kind"`
	ObjectUID     string     `json:"object_uid,omitempty"`
	ObjectVersion string     `json:"object_version,omitempty"`
	What          string     `json:"what,omitempty"`
	Value         string     `json:"value,omitempty"`
	OccurredAt    time.Time  `json:"occurred_at,omitzero"`
	Clock         Clock      `json:"clock,omitempty"`
	ObservedAt    time.Time  `json:"observed_at,omitzero"`
	Late          bool       `json:"late,omitempty"`
	Namespace     string     `json:"namespace,omitempty"`
	VMI           string     `json:"vmi,omitempty"`
	VMIUID        string     `json:"vmi_uid,omitempty"`
	Node          string     `json:"node,omitempty"`
	Migration     string     `json:"migration,omitempty"`
	MigrationUID  string     `json:"migration_uid,omitempty"`
	Evidence      string     `json:"evidence,omitempty"`
	Detail        D          `json:"detail,omitempty"`
}

// WriteFact returns a fact as text, without its cluster. What cannot be written is ErrRefused.
func WriteFact(f Fact) ([]byte, error) {
	text, err := json.Marshal(writtenFact[Detail]{
		ID: f.ID, Kind: f.Kind, Reason: f.Reason, Subject: f.Subject.String(),
		ObjectKind: f.Object.Kind, ObjectUID: f.Object.UID, ObjectVersion: f.Object.ResourceVersion,
		What: f.What, Value: f.Value, OccurredAt: f.OccurredAt, Clock: f.Clock, ObservedAt: f.ObservedAt, Late: f.Late,
		Namespace: f.Namespace, VMI: f.VMI, VMIUID: f.VMIUID, Node: f.Node, Migration: f.Migration, MigrationUID: f.MigrationUID,
		Evidence: f.Evidence, Detail: f.Detail,
	})
	if err != nil {
		return nil, fmt.Errorf("write %s %s: %w: %w", f.Kind, f.ID, ErrRefused, err)
	}
	return text, nil
}

// ReadFact reads what WriteFact wrote.
func ReadFact(cluster string, text []byte) (Fact, error) {
	var w writtenFact[json.RawMessage]
	if err := json.Unmarshal(text, &w); err != nil {
		return Fact{}, fmt.Errorf("read fact: %w", err)
	}
	subject, err := ParseSubject(w.Subject)
	if err != nil {
		return Fact{}, fmt.Errorf("read fact: %w", err)
	}
	detail, err := DecodeDetail(w.Kind, w.Detail, json.Unmarshal)
	if err != nil {
		return Fact{}, fmt.Errorf("read fact: %w", err)
	}
	f := Fact{
		ID: w.ID, Cluster: cluster, Kind: w.Kind, Reason: w.Reason, Subject: subject,
		Object: Object{Kind: w.ObjectKind, UID: w.ObjectUID, ResourceVersion: w.ObjectVersion},
		What:   w.What, Value: w.Value, OccurredAt: w.OccurredAt.UTC(), Clock: w.Clock, ObservedAt: w.ObservedAt.UTC(), Late: w.Late,
		Namespace: w.Namespace, VMI: w.VMI, VMIUID: w.VMIUID, Node: w.Node, Migration: w.Migration, MigrationUID: w.MigrationUID,
		Evidence: w.Evidence, Detail: detail,
	}
	f.CorrectTimes() // versions until 2026-11 wrote any time
	return f, nil
}
