package trail

import "time"

// News is what storing facts brought: the facts that were new, and the derived rows that changed because of them or
// because time went by. Rows come in no order; one may come more than once, the last time as it stands.
type News struct {
	Facts       []Fact
	Requests    []RowChange[EvictionRequest]
	Evacuations []RowChange[Evacuation]
	Migrations  []RowChange[Migration]
	Placements  []RowChange[Placement]
	Decisions   []RowChange[Decision]
	Loops       []RowChange[Loop]

	Settled time.Time // facts among them from before it came too late to change the rows about their time; zero: none did
}

// RowChange is a derived row as it is from now on, and how it changed.
type RowChange[R any] struct {
	ID      string
	Change  Change
	Row     R      // as it stands; nothing where it is gone
	Was     string // how it had ended before; empty where it had not, or was not recorded
	Judged  bool   // it was final before what came of it: whether an evacuation kept to its objective, whether a move helped
	Instead string // the ID under which the same was recorded before; empty where it was not, or under this one
}

// Change is what became of a derived row.
type Change int

// The changes of a row.
const (
	ChangeNew   Change = iota // it was not there before
	ChangeOther               // it was there with other values
	ChangeGone                // it is there no more
)

// Began reports whether what the row is about was not recorded before.
func (t RowChange[R]) Began() bool { return t.Change == ChangeNew && t.Instead == "" }

// Ended reports whether the row has an end that it had not before.
func (t RowChange[R]) Ended(how string) bool {
	return t.Change != ChangeGone && t.Was == "" && how != ""
}

// Add takes in what came after.
func (n *News) Add(more News) {
	n.Facts = append(n.Facts, more.Facts...)
	n.Requests = append(n.Requests, more.Requests...)
	n.Evacuations = append(n.Evacuations, more.Evacuations...)
	n.Migrations = append(n.Migrations, more.Migrations...)
	n.Placements = append(n.Placements, more.Placements...)
	n.Decisions = append(n.Decisions, more.Decisions...)
	n.Loops = append(n.Loops, more.Loops...)
	n.Settled = maxTime(n.Settled, more.Settled)
}
