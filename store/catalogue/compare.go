package catalogue

import (
	"cmp"
	"slices"
	"strings"
)

// Verdict is how an object that a database has is other than expected.
type Verdict string

// The verdicts.
const (
	Missing   Verdict = "missing"   // the database does not have it
	Extra     Verdict = "extra"     // it is not expected
	Different Verdict = "different" // its definition is another one
)

// Difference is an object that is other than expected.
type Difference struct {
	Verdict  Verdict `json:"verdict"`
	Kind     string  `json:"kind"`
	Name     string  `json:"name"`
	Expected string  `json:"expected,omitempty"` // its definition
	Found    string  `json:"found,omitempty"`    // that of the database
}

// identity is what objects are compared by.
type identity struct{ kind, name string }

// Compare returns how a schema is other than expected, ordered by kind and name. The parts of a table or a view that is
// missing, or extra, are left out: it stands for them.
func Compare(want, found Schema) []Difference {
	before, after := indexObjects(want), indexObjects(found)
	var all []Difference
	for id, o := range before {
		switch other, is := after[id]; {
		case !is:
			all = append(all, Difference{Missing, o.Kind, o.Name, o.Definition, ""})
		case o.Definition != other.Definition:
			all = append(all, Difference{Different, o.Kind, o.Name, o.Definition, other.Definition})
		}
	}
	for id, o := range after {
		if _, is := before[id]; !is {
			all = append(all, Difference{Extra, o.Kind, o.Name, "", o.Definition})
		}
	}
	var wholes []Difference
	for _, d := range all {
		if d.Verdict != Different && slices.Contains([]string{"table", "view"}, d.Kind) {
			wholes = append(wholes, d)
		}
	}
	all = slices.DeleteFunc(all, func(d Difference) bool {
		return slices.ContainsFunc(wholes, func(whole Difference) bool {
			return d.Verdict == whole.Verdict && strings.HasPrefix(d.Name, whole.Name+".")
		})
	})
	slices.SortFunc(all, func(a, b Difference) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return all
}

// indexObjects returns the objects that are to be there in each database.
func indexObjects(s Schema) map[identity]Object {
	index := map[identity]Object{}
	for _, o := range s {
		if !o.Varies {
			index[identity{o.Kind, o.Name}] = o
		}
	}
	return index
}

// FirstDifference returns the first line in which two definitions differ, as both have it.
func (d Difference) FirstDifference() (expected, found string) {
	want, got := strings.Split(d.Expected, "\n"), strings.Split(d.Found, "\n")
	for i := range max(len(want), len(got)) {
		expected, found = "", ""
		if i < len(want) {
			expected = strings.TrimSpace(want[i])
		}
		if i < len(got) {
			found = strings.TrimSpace(got[i])
		}
		if expected != found {
			return expected, found
		}
	}
	return "", ""
}
