package fold

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Source reads what a Cluster does not hold in memory, as of the last Changes that were written. All facts of a Batch are recorded
// before Fold is called, so a Source returns them, too. Its errors end the Fold.
type Source interface {
	// Windows returns one Window for each subject wanted, in any order; a subject that was never seen has an empty one. lookback is how far what
	// happens may depend on what had ended before.
	Windows(ctx context.Context, wants []Want, lookback time.Duration) ([]*Window, error)
	// Asked returns the recorded requests about pods since some time, and about migrations, in any order.
	Asked(ctx context.Context, about Asked) ([]trail.Fact, error)
	// Affected returns the subjects whose rows depend on what an Impact names.
	Affected(ctx context.Context, of Impact) (Affected, error)
	// NodeRows returns the rows that nodes, or the cluster as a whole, are derived from, and their own rows, in any order.
	NodeRows(ctx context.Context, wants []NodeWant) ([]*NodeRows, error)
	// Migrations calls see for each migration that was not finished at a time, with its VM. There may be hundreds of thousands: see does not keep them.
	Migrations(ctx context.Context, since time.Time, see func(vm trail.Subject, m *trail.Migration)) error
}

// Want asks for a subject, complete for changes since a time. The zero time wants its whole history.
type Want struct {
	Subject trail.Subject
	Since   time.Time
}

// NodeWant asks for what a node is derived from.
type NodeWant struct {
	Want
	Facts      []trail.Fact  // of the node: its counters say what happened since they were read before (trail.BlocksSince)
	SwingReach time.Duration // how far before its rows its swings matter (trail.Thresholds.SwingReach)
}

// Asked names the objects whose requests are wanted.
type Asked struct {
	Pods       []Want // of kind pod, each with since when
	Migrations []MigrationLife
}

// MigrationLife is the time in which a migration that a user may have created or deleted can have been asked for.
type MigrationLife struct {
	Namespace string
	Name      string
	Created   time.Time
	Deleted   time.Time // the last time at which its deletion was seen; Created where that was not seen
}

// Window is the open part of the history of one subject.
type Window struct {
	Subject   trail.Subject
	Version   int64                // of the subject when it was read: it counts how often facts were recorded
	Since     time.Time            // complete for changes since then; zero: the whole history
	FrozenTo  time.Time            // facts from before were dropped: rows that had ended by then stay as they are; zero: none were
	RowsFrom  time.Time            // rows that had ended before then are not in Rows, and are frozen; zero: all are there
	Due       time.Time            // when time alone changes its rows: it is complete for changes since then, too; zero: never
	Facts     []trail.Fact         // all since FactsFrom, and of the older ones those that say how it stood then
	FactsFrom time.Time            // some time before RowsFrom; zero: Facts are all
	Rows      trail.Derived        // as they are written
	Frozen    map[trail.Bounce]int // loops that are frozen, by kind

	viewed  *view                  // of Facts, as they were then
	asked   []trail.Fact           // of a VM: the requests about its pods and about its migrations
	knows   map[trail.Subject]bool // of a VM: pods whose requests are in asked, or are none
	left    map[trail.Subject]bool // of a VM: pods that had ended before FactsFrom, and are left out; nil where that was not looked for yet
	seen    map[string]bool        // of a VM: migrations, by UID, whose requests are in asked, or are none
	ties    ties                   // of the lines in Rows
	node    *inputs                // of a node and the cluster, once it was derived
	size    int                    // bytes of Facts and Rows, about
	read    int                    // size when it was loaded
	used    int64                  // number of the Fold that used it last
	derived int64                  // number of the Fold that changed its rows last
	folded  int64                  // Version up to which it is known what its facts affect; 0: not known
}

// NodeRows is what a node, or the cluster as a whole, is derived from, and what was derived.
type NodeRows struct {
	Subject  trail.Subject
	Since    time.Time     // complete for changes since then; zero: for all
	From     time.Time     // rows that had ended before then are frozen; zero: none are
	FrozenTo time.Time     // as of a Window
	Inputs   trail.Rows    // rows of VMs that are about the node and had not ended before From, or shortly before
	Rows     trail.Derived // the node's own
}

// Batch is what is to be folded.
type Batch struct {
	Now        time.Time // for which rows are derived, UTC
	FrozenTo   time.Time // facts from before were dropped; zero: none were
	Thresholds trail.Thresholds
	Dirty      []Dirty

	// Others is how many VMs that only depend on what is dirty are derived with it at the most, and Nodes how many nodes, the cluster as a whole among them. What is more is left
	// to a later Fold (Changes.Deferred): while many subjects wait, it would be derived again and again.
	Others int
	Nodes  int

	// LeftOut are subjects that are not derived in this Fold: that failed not long ago.
	LeftOut map[trail.Subject]bool
}

// Dirty is a subject that is to be derived again.
type Dirty struct {
	Subject trail.Subject
	Since   time.Time    // when its earliest new fact occurred, or when it is due; zero: everything is to be derived again
	Version int64        // of the subject when the last of Facts was recorded, or when the mark was read
	First   int64        // version when the first of Facts was recorded; 1: nothing was recorded of the subject before
	Facts   []trail.Fact // all that were recorded from First to Version; nil: the Source has them
	Due     bool         // nothing was recorded: time alone changes the rows, or they could not be derived before
}

// Changes is what a Fold brought. Tables are named as in the schema.
type Changes struct {
	Subject  trail.Subject               // of those of one subject
	Rows     map[string]map[RowKey]any   // rows that came or changed, by table: *trail.Evacuation and alike, a *Line in table timeline; nil: the row is no more
	Due      map[trail.Subject]time.Time // when time alone changes the rows of a subject that was derived; zero: never
	Clean    map[trail.Subject]int64     // subjects that were dirty, with the version that was folded: they are in Due, Deferred, Failed, or left out
	Deferred map[trail.Subject]time.Time // subjects that are dirty since a time and were left to a later Fold
	Failed   map[trail.Subject]error     // subjects that were left out, as they could not be derived
	News     trail.News
}

// setRow notes a row as it stands now; the last time counts, as a subject may be derived several times in a Fold.
func (c *Changes) setRow(table string, key RowKey, value any) {
	if c.Rows == nil {
		c.Rows = map[string]map[RowKey]any{}
	}
	if c.Rows[table] == nil {
		c.Rows[table] = map[RowKey]any{}
	}
	c.Rows[table][key] = value
}

// BySubject returns the rows of each subject as Changes of their own, in the order of the subjects, with when it is due.
func (c *Changes) BySubject() []*Changes {
	of := map[trail.Subject]*Changes{}
	its := func(s trail.Subject) *Changes {
		if of[s] == nil {
			of[s] = &Changes{Subject: s, Due: map[trail.Subject]time.Time{}}
		}
		return of[s]
	}
	for table, rows := range c.Rows {
		for key, value := range rows {
			its(key.Subject).setRow(table, key, value)
		}
	}
	for s, at := range c.Due {
		its(s).Due[s] = at
	}
	out := make([]*Changes, 0, len(of))
	for _, s := range slices.SortedFunc(maps.Keys(of), compareSubjects) {
		out = append(out, of[s])
	}
	return out
}

// RowKey distinguishes rows of one table.
type RowKey struct {
	Subject trail.Subject
	Key     string
}

// Line is a line of a timeline with its place among those of the same time, from 0.
type Line struct {
	trail.Line
	Tie int `json:"tie"`
}
