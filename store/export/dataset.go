package export

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/evictrail/evictrail/trail"
)

// Dataset is a view that can be exported.
type Dataset struct {
	Name    string // of the view
	About   string
	At      string   // column of the time by whose day files are cut
	Order   []string // columns that order the rows of a file, beside At
	Ordered bool     // its rows are only added, in the order of seq
}

// Facts are what was recorded.
var Facts = Dataset{
	Name: "facts", About: "facts, in the order in which they were stored", At: "stored_at", Ordered: true,
}

// phases is a view that lists do not have.
var phases = Dataset{
	Name: "migration_phases", About: "phases that migrations reached", At: "at", Order: []string{"migration_uid", "phase"},
}

// momentary are views that show what is now: they have no past to export.
var momentary = []string{trail.ViewQueue.Name, trail.ViewHolds.Name, trail.ViewBlockers.Name}

// Datasets returns all of them, facts first.
func Datasets() []Dataset {
	all := []Dataset{Facts}
	for _, v := range trail.Views() {
		if !slices.Contains(momentary, v.Name) {
			about, _, _ := strings.Cut(v.About, ":")
			all = append(all, Dataset{Name: v.Name, About: about, At: v.At, Order: []string{v.Key}})
		}
	}
	return append(all, phases)
}

// FindDataset returns the dataset of a name. The error says which there are.
func FindDataset(name string) (Dataset, error) {
	all := Datasets()
	if i := slices.IndexFunc(all, func(d Dataset) bool { return d.Name == name }); i >= 0 {
		return all[i], nil
	}
	if slices.Contains(momentary, name) {
		return Dataset{}, fmt.Errorf("%q shows what is now, and has no past to export", name)
	}
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.Name
	}
	return Dataset{}, fmt.Errorf("%q: expected %s", name, strings.Join(names, ", "))
}

// columnsOf returns the columns of a dataset, in their order, but for that of the cluster where the folder says which
// it is.
func (d Dataset) columnsOf(all []trail.Column, withCluster bool) []trail.Column {
	var own []trail.Column
	for _, c := range all {
		if c.View == d.Name && (withCluster || c.Name != "cluster") {
			own = append(own, c)
		}
	}
	return own
}

// Format is how rows are written.
type Format string

// The formats.
const (
	JSONL   Format = "jsonl"   // a JSON object on each line, as the HTTP API has it
	Parquet Format = "parquet" // with the types of parquet.go
)

// Formats returns all of them.
func Formats() []string { return []string{string(JSONL), string(Parquet)} }

// ParseFormat reads the name of a format; empty: JSON lines.
func ParseFormat(name string) (Format, error) {
	f := cmp.Or(Format(name), JSONL)
	if f != JSONL && f != Parquet {
		return f, fmt.Errorf("%q: expected %s", name, strings.Join(Formats(), " or "))
	}
	return f, nil
}
