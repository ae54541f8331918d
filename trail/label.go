package trail

// Label is how people read a value of a closed set.
type Label struct {
	Value string // as SQL, JSON and metrics have it
	Short string // one to four words for tables, legends and within sentences; lower case but for names
	Text  string // one sentence: what it means
}

// String returns the short label.
func (l Label) String() string { return l.Short }

// LabelSet is a closed set of values with their labels: no two of them are alike.
type LabelSet struct {
	Name    string   // what the values say, such as "loop kind"
	Columns []string // the columns of evictrail_v1 that hold them, as view.column
	Labels  []Label  // in the order in which they are documented
}

// Label returns the label of a value; that of one that is not in the set, which a newer KubeVirt or evictrail may have, is the value.
func (s LabelSet) Label(value string) Label {
	for _, l := range s.Labels {
		if l.Value == value {
			return l
		}
	}
	return Label{Value: value, Short: value}
}

// FindLabelSet returns the set of the values that a column of evictrail_v1 holds, as view.column; false where the column holds no closed set.
func FindLabelSet(column string) (LabelSet, bool) {
	for _, s := range LabelSets() {
		for _, of := range s.Columns {
			if of == column {
				return s, true
			}
		}
	}
	return LabelSet{}, false
}

// labels are the labels of a closed set of values, in the order in which they are documented.
type labels[T ~string] []labelled[T]

// labelled is a value with its label.
type labelled[T ~string] struct {
	value       T
	short, text string
}

func (v labelled[T]) label() Label { return Label{string(v.value), v.short, v.text} }

// values lists the values.
func (l labels[T]) values() []T {
	out := make([]T, len(l))
	for i, v := range l {
		out[i] = v.value
	}
	return out
}

// of returns the label of a value, as LabelSet.Label does.
func (l labels[T]) of(value T) Label {
	for _, v := range l {
		if v.value == value {
			return v.label()
		}
	}
	return Label{Value: string(value), Short: string(value)}
}

// newSet returns the labels as a set that some columns hold.
func (l labels[T]) newSet(name string, columns ...string) LabelSet {
	s := LabelSet{Name: name, Columns: columns}
	for _, v := range l {
		s.Labels = append(s.Labels, v.label())
	}
	return s
}
