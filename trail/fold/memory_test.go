package fold

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// memory is a database in memory: facts as they were recorded, and rows as they were written.
type memory struct {
	facts   map[trail.Subject][]trail.Fact
	known   map[trail.FactID]bool
	version map[trail.Subject]int64
	rows    map[trail.Subject]map[string]map[string]any // by table and key
	due     map[trail.Subject]time.Time
	reads   int
	rules   trail.Thresholds
}

func newMemory(rules trail.Thresholds) *memory {
	return &memory{
		facts: map[trail.Subject][]trail.Fact{}, known: map[trail.FactID]bool{}, version: map[trail.Subject]int64{},
		due: map[trail.Subject]time.Time{}, rows: map[trail.Subject]map[string]map[string]any{}, rules: rules,
	}
}

// recordFacts adds facts, as a store does: it knows no meaning. It returns the subjects that are dirty then.
func (m *memory) recordFacts(facts []trail.Fact) []Dirty {
	var dirty []Dirty
	at := map[trail.Subject]int{}
	for _, f := range facts {
		if m.known[f.ID] {
			continue
		}
		m.known[f.ID] = true
		m.facts[f.Subject] = append(m.facts[f.Subject], f)
		i, is := at[f.Subject]
		if !is {
			m.version[f.Subject]++
			i = len(dirty)
			at[f.Subject], dirty = i, append(dirty, Dirty{Subject: f.Subject, Since: f.OccurredAt, Version: m.version[f.Subject], First: m.version[f.Subject]})
		}
		d := &dirty[i]
		d.Facts, d.Since = append(d.Facts, f), minTime(d.Since, f.OccurredAt)
	}
	return dirty
}

// applyChanges applies changes.
func (m *memory) applyChanges(c *Changes) {
	for s, at := range c.Due {
		m.due[s] = at
	}
	for table, rows := range c.Rows {
		for key, value := range rows {
			of := m.rows[key.Subject]
			switch {
			case value == nil:
				delete(of[table], key.Key)
				continue
			case of == nil:
				of = map[string]map[string]any{}
				m.rows[key.Subject] = of
			}
			if of[table] == nil {
				of[table] = map[string]any{}
			}
			of[table][key.Key] = value
		}
	}
}

// readRows returns the rows of a subject that had not ended before a time.
func (m *memory) readRows(s trail.Subject, from time.Time) trail.Derived {
	var d trail.Derived
	of := m.rows[s]
	readTable(of, &requestTable, &d, from)
	readTable(of, &evacuationTable, &d, from)
	readTable(of, &migrationTable, &d, from)
	readTable(of, &placementTable, &d, from)
	readTable(of, &decisionTable, &d, from)
	readTable(of, &loopTable, &d, from)
	readTable(of, &drainTable, &d, from)
	readTable(of, &blockerTable, &d, from)
	readTable(of, &consequenceTable, &d, from)
	readTable(of, &outageTable, &d, from)
	readTable(of, &gapTable, &d, from)
	var lines []Line
	for _, row := range of[lineTable.name] {
		if l := row.(*Line); !trail.EndedBefore(l.Line, from) {
			lines = append(lines, *l)
		}
	}
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Tie, b.Tie)) })
	for _, l := range lines {
		d.Timeline = append(d.Timeline, l.Line)
	}
	return d
}

func readTable[R trail.Row](of map[string]map[string]any, t *table[R], d *trail.Derived, from time.Time) {
	for _, row := range of[t.name] {
		r := *row.(*R)
		if !trail.EndedBefore(r, from) {
			*t.rows(d) = append(*t.rows(d), r)
		}
	}
	slices.SortFunc(*t.rows(d), func(a, b R) int {
		return cmp.Or(t.begun(&a).Compare(t.begun(&b)), strings.Compare(t.key(&a), t.key(&b)))
	})
}

// addDeferred adds subjects that were left to a later Fold to those that are dirty.
func (m *memory) addDeferred(dirty []Dirty, deferred map[trail.Subject]time.Time) []Dirty {
	out := slices.Clone(dirty)
	for _, s := range sortSubjects(deferred) {
		i := slices.IndexFunc(out, func(d Dirty) bool { return d.Subject == s })
		switch since := deferred[s]; {
		case i < 0:
			out = append(out, Dirty{Subject: s, Since: since, Version: m.version[s]})
		case since.Before(out[i].Since) || out[i].Due:
			out[i] = Dirty{Subject: s, Since: minTime(since, out[i].Since), Version: m.version[s]}
		}
	}
	return out
}

// forEachSpan calls do with when each row of what has one goes on.
func forEachSpan(d trail.Derived, do func(begun, until time.Time)) {
	spansOf(&requestTable, d, do)
	spansOf(&evacuationTable, d, do)
	spansOf(&migrationTable, d, do)
	spansOf(&decisionTable, d, do)
	spansOf(&loopTable, d, do)
	spansOf(&drainTable, d, do)
	spansOf(&gapTable, d, do)
}

func spansOf[R trail.Row](t *table[R], d trail.Derived, do func(begun, until time.Time)) {
	rows := *t.rows(&d)
	for i := range rows {
		do(t.begun(&rows[i]), rows[i].OpenUntil())
	}
}

// Windows returns of VMs what is open since some time before, of other subjects everything.
func (m *memory) Windows(_ context.Context, wants []Want, lookback time.Duration) ([]*Window, error) {
	m.reads++
	var out []*Window
	for _, want := range wants {
		w := &Window{Subject: want.Subject, Version: m.version[want.Subject], Due: m.due[want.Subject], Frozen: map[trail.Bounce]int{}}
		want.Since = minDueTime(want.Since, w.Due)
		all := m.facts[want.Subject]
		if want.Subject.Kind != trail.SubjectVMI || want.Since.IsZero() {
			w.Facts, w.Rows = slices.Clone(all), m.readRows(want.Subject, time.Time{})
			out = append(out, w)
			continue
		}
		rows := m.readRows(want.Subject, time.Time{})
		since := want.Since.Add(-time.Hour)
		w.Since, w.RowsFrom = want.Since, since
		forEachSpan(rows, func(begun, until time.Time) {
			if (until.IsZero() || !until.Before(since)) && begun.Before(w.RowsFrom) {
				w.RowsFrom = begun
			}
		})
		w.RowsFrom = w.RowsFrom.Add(-time.Second)
		read := w.RowsFrom.Add(-lookback)
		first := read
		forEachSpan(rows, func(begun, until time.Time) {
			if (until.IsZero() || !until.Before(read)) && begun.Before(first) {
				first = begun
			}
		})
		first = first.Add(-lookback)
		w.FactsFrom = first
		gone, ended := map[string]bool{}, map[string]bool{}
		for i := range all {
			switch f := &all[i]; {
			case !f.OccurredAt.Before(first):
			case f.What == trail.WhatGone:
				gone[f.Object.UID] = true
			case f.Reason == trail.ReasonPodEnded:
				ended[f.Object.UID] = true
			}
		}
		for i := range all {
			f := &all[i]
			if !f.OccurredAt.Before(first) || !gone[f.Object.UID] && (!ended[f.Object.UID] || f.Reason == trail.ReasonPodEnded) {
				w.Facts = append(w.Facts, *f)
			}
		}
		w.Rows = m.readRows(want.Subject, w.RowsFrom)
		for _, l := range rows.Loops {
			if trail.EndedBefore(l, w.RowsFrom) && l.ClosedBy != trail.LoopRefuted {
				w.Frozen[trail.BounceOf(l)]++
			}
		}
		out = append(out, w)
	}
	return out, nil
}

func (m *memory) Asked(_ context.Context, about Asked) ([]trail.Fact, error) {
	m.reads++
	var out []trail.Fact
	for _, want := range about.Pods {
		for _, f := range m.facts[want.Subject] {
			if !f.OccurredAt.Before(want.Since) {
				out = append(out, f)
			}
		}
	}
	for _, l := range about.Migrations {
		for _, f := range m.facts[trail.Subject{Kind: trail.SubjectNamespace, Name: l.Namespace}] {
			from, to := l.Created.Add(-AskedSlack), l.Deleted.Add(AskedSlack)
			if f.OccurredAt.Before(from) || f.OccurredAt.After(to) {
				continue
			}
			if f.Migration == l.Name || f.Migration == "" && !f.OccurredAt.After(from.Add(2*time.Minute)) {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

func (m *memory) Affected(_ context.Context, of Impact) (Affected, error) {
	m.reads++
	vms, nodes, requesters, owners, owned := map[trail.Subject]bool{}, map[trail.Subject]bool{}, map[trail.Subject]bool{}, map[trail.Subject]bool{}, map[trail.Subject]bool{}
	for s, facts := range m.facts {
		if s.Kind == trail.SubjectNode && of.AllNodes {
			nodes[s] = true
		}
		if s.Kind != trail.SubjectVMI {
			continue
		}
		for i := range facts {
			f := &facts[i]
			here := of.Everywhere || slices.Contains(of.Nodes, f.Node)
			marks := f.Kind == trail.KindEvacuationMarked || f.Kind == trail.KindMigrationSeen || f.Kind == trail.KindMigrationCompleted
			lost := f.Kind == trail.KindLauncherPod && f.Reason == trail.ReasonDisrupted && slices.Contains(of.Nodes, f.Node)
			if !f.OccurredAt.Before(of.Since) && (here && marks || lost) {
				vms[s] = true
			}
			if d, ok := f.Detail.(*trail.PodDetail); ok {
				if pod := (trail.Subject{Kind: trail.SubjectPod, Name: f.Namespace + "/" + d.Pod}); slices.Contains(of.Pods, pod) {
					owners[s], owned[pod] = true, true
				}
			}
			for _, l := range of.Migrations {
				near := l.Name == "" && f.OccurredAt.Sub(l.Created).Abs() <= time.Minute
				if f.Kind == trail.KindMigrationSeen && f.Namespace == l.Namespace && (f.Migration == l.Name || near) {
					owners[s] = true
				}
			}
		}
		for _, mig := range m.readRows(s, time.Time{}).Migrations {
			if slices.Contains(of.Readiness, mig.TargetNode) && (mig.FinishedAt.IsZero() || !mig.FinishedAt.Before(of.Since)) {
				vms[s] = true
			}
		}
	}
	for s := range m.rows {
		if isNode(s) && of.AllNodes {
			nodes[s] = true
		}
		if of.Settings != nil && slices.ContainsFunc(m.readRows(s, time.Time{}).Requests, func(r trail.EvictionRequest) bool { return !r.RequestedAt.Before(*of.Settings) }) {
			requesters[s] = true
		}
	}
	if of.AllNodes {
		nodes[trail.ClusterSubject] = true
	}
	return Affected{VMs: sortSubjects(vms), Nodes: sortSubjects(nodes), Requesters: sortSubjects(requesters), Owners: sortSubjects(owners), Owned: sortSubjects(owned)}, nil
}

func sortSubjects[V any](of map[trail.Subject]V) []trail.Subject {
	var out []trail.Subject
	for s := range of {
		out = append(out, s)
	}
	slices.SortFunc(out, compareSubjects)
	return out
}

func (m *memory) Migrations(_ context.Context, since time.Time, see func(trail.Subject, *trail.Migration)) error {
	m.reads++
	for s := range m.rows {
		rows := m.readRows(s, since).Migrations
		for i := range rows {
			see(s, &rows[i])
		}
	}
	return nil
}

func (m *memory) NodeRows(_ context.Context, wants []NodeWant) ([]*NodeRows, error) {
	m.reads++
	var out []*NodeRows
	for _, want := range wants {
		n := &NodeRows{Subject: want.Subject, Since: want.Since}
		want.Since = minDueTime(want.Since, m.due[want.Subject])
		var inputs trail.Rows
		for s := range m.rows {
			if s.Kind == trail.SubjectVMI || s.Kind == trail.SubjectPod {
				inputs.Add(m.readRows(s, time.Time{}).Around()[want.Subject])
			}
		}
		n.Rows = m.readRows(want.Subject, time.Time{})
		if !want.Since.IsZero() {
			n.From = quietBefore(want.Since.Add(-time.Hour), n.Rows, inputs.Evacuations)
			n.Rows = m.readRows(want.Subject, n.From)
		}
		n.Inputs = inputs
		out = append(out, n)
	}
	return out, nil
}

// quietBefore returns the last time up to a moment at which no evacuation, drain or loop of a node was open.
func quietBefore(at time.Time, rows trail.Derived, evacuations []*trail.Evacuation) time.Time {
	for {
		first := at
		open := func(begun, until time.Time) {
			if begun, until = begun.Add(-time.Second), until.Add(time.Second); begun.Before(first) && (until.Before(begun) || !until.Before(at)) {
				first = begun
			}
		}
		for _, e := range evacuations {
			open(e.MarkedAt, e.OpenUntil())
		}
		for _, l := range rows.Loops {
			open(l.OpenedAt, l.OpenUntil())
		}
		for _, d := range rows.Drains {
			open(d.StartedAt, d.OpenUntil())
		}
		if first.Equal(at) {
			return at
		}
		at = first
	}
}
