package trail

import (
	"iter"
	"slices"
)

// Fresh returns those of some facts that add something to what is stored of their subjects, each once and in their order. Several
// replicas record the same cluster, each as it sees it:
//
//   - A fact that is stored already, by its ID, adds nothing.
//   - A change that can happen again bears the resourceVersion at which it was seen. A replica that listed saw it at a later one than a
//     replica that watched: between the two the object did not change in this respect, and it is one change.
//   - A counter of the descheduler grew only by what no other replica has recorded.
func Fresh(stored iter.Seq[Fact], seen []Fact) []Fact {
	k := known{ids: make(map[FactID]bool, len(seen)), aspects: make(map[aspectKey][]*Fact, len(seen))}
	for i := range seen {
		k.aspects[seen[i].newAspectKey()] = nil
	}
	for f := range stored {
		k.add(&f)
	}
	out, first := make([]Fact, len(seen)), len(seen)
	for i := range slices.Backward(seen) { // a change that was undone is compared with its undoing, not with what came later
		f := &out[first-1]
		*f = seen[i]
		if k.ids[f.ID] || k.isRecorded(f) {
			continue
		}
		first--
		if k.ids[f.ID] = true; f.Object.Kind != ObjectDescheduler {
			k.add(f)
		}
	}
	if first == len(seen) {
		return nil
	}
	return out[first:]
}

// known is what is stored, as far as it is compared.
type known struct {
	ids     map[FactID]bool
	aspects map[aspectKey][]*Fact // of objects about which there is something new
}

type aspectKey struct {
	kind      ObjectKind
	uid, what string
}

func (f *Fact) newAspectKey() aspectKey { return aspectKey{f.Object.Kind, f.Object.UID, f.What} }

// mayRepeat reports whether the same can be reported about an object again under another ID.
func (f *Fact) mayRepeat() bool {
	return f.Object.Kind == ObjectDescheduler ||
		f.ID == f.NaturalID(f.Object.ResourceVersion)
}

func (k known) add(f *Fact) {
	k.ids[f.ID] = true
	key := f.newAspectKey()
	if of, asked := k.aspects[key]; asked {
		k.aspects[key] = append(of, f)
	}
}

// isRecorded reports whether what a fact says was recorded under another ID. What was recorded of the growth of a counter is taken off it.
func (k known) isRecorded(f *Fact) bool {
	switch of := k.aspects[f.newAspectKey()]; {
	case len(of) == 0 || !f.mayRepeat(): // that takes a digest
		return false
	case f.Object.Kind == ObjectDescheduler:
		return isCountedByDescheduler(f, of)
	default:
		return f.isUnchanged(of)
	}
}

// isUnchanged reports whether a change is one that was recorded at another resourceVersion: one of the two was seen in a list, and
// nothing was recorded between them. What an earlier epoch recorded says nothing of this one.
func (f *Fact) isUnchanged(of []*Fact) bool {
	var before, after *Fact // the nearest
	epoch := EpochOf(f.Object.ResourceVersion)
	for i := range of {
		switch at := of[i].Object.ResourceVersion; {
		case EpochOf(at) != epoch:
		case NewerVersion(f.Object.ResourceVersion, at):
			if before == nil || NewerVersion(at, before.Object.ResourceVersion) {
				before = of[i]
			}
		case NewerVersion(at, f.Object.ResourceVersion):
			if after == nil || NewerVersion(after.Object.ResourceVersion, at) {
				after = of[i]
			}
		}
	}
	return f.Late && before != nil && before.Value == f.Value || after != nil && after.Late && after.Value == f.Value
}

// isCountedByDescheduler reports whether another replica recorded the same process, or has counted as much as a fact does; of what it counted
// less, the rest stays.
func isCountedByDescheduler(f *Fact, of []*Fact) bool {
	counter := ParseProcessCount(f.Value)
	counted := int64(-1)
	for _, o := range of {
		if c := ParseProcessCount(o.Value); SameProcess(counter.StartedAt, c.StartedAt) {
			counted = max(counted, c.Count)
		}
	}
	d, blocks := f.Detail.(*BlocksDetail)
	if !blocks || counted < 0 {
		return counted >= 0
	}
	rest := *d
	rest.Increase = min(d.Increase, counter.Count-counted)
	f.Detail = &rest
	return rest.Increase <= 0
}
