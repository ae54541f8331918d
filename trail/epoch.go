package trail

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Epoch numbers the histories that were recorded under one name of a cluster. A new one begins when resourceVersions no longer continue those that were
// recorded: etcd was restored from a backup, or the cluster was rebuilt. Most clusters stay in epoch 0 for ever.
type Epoch uint64

// versionDigits is how many digits the largest resourceVersion has.
const versionDigits = 20

// Version returns a resourceVersion as facts of the epoch bear it: behind the number of the epoch, filled up with zeros to 20 digits. So every version of an
// epoch is higher than all of the epochs before, in whatever compares versions, and what comes again at the same resourceVersion has another identity. In
// epoch 0 it is the API server's own.
func (e Epoch) Version(resourceVersion string) string {
	if e == 0 || !isNumber(resourceVersion) || len(resourceVersion) > versionDigits {
		return resourceVersion
	}
	return strconv.FormatUint(uint64(e), 10) + strings.Repeat("0", versionDigits-len(resourceVersion)) + resourceVersion
}

// SplitVersion returns the epoch of a fact's version, and the API server's resourceVersion.
func SplitVersion(version string) (Epoch, string) {
	n := len(version) - versionDigits
	if n <= 0 || !isNumber(version) {
		return 0, version
	}
	e, err := strconv.ParseUint(version[:n], 10, 64)
	if err != nil {
		return 0, version
	}
	rest := strings.TrimLeft(version[n:], "0")
	if rest == "" {
		rest = "0"
	}
	return Epoch(e), rest
}

// EpochOf returns the epoch of a fact's version.
func EpochOf(version string) Epoch {
	e, _ := SplitVersion(version)
	return e
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// NewerVersion reports whether resource version a is later than b. Both are numbers on every Kubernetes API server
// (comparable by promise since 1.35), written in decimal: the longer one is the larger one. Others count as newer when they differ.
func NewerVersion(a, b string) bool {
	if !isNumber(a) || !isNumber(b) {
		return a != b
	}
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return len(a) > len(b) || len(a) == len(b) && a > b
}

// Identity is which cluster is recorded under a name, and in which epoch.
type Identity struct {
	UID   string `json:"uid,omitempty"` // of its namespace kube-system; empty where that is not known
	Epoch Epoch  `json:"epoch,omitempty"`
}

// Break says why what is seen from now on does not continue what was recorded. It becomes a gap.
type Break struct {
	Cause  Reason    `json:"cause"` // ReasonClusterRestored, ReasonClusterRebuilt or ReasonDatabaseRewound
	Key    string    `json:"key"`   // what tells this gap from others: the same for all replicas that notice the same break
	From   time.Time `json:"from"`  // when what was seen was last known to be recorded
	Detail string    `json:"detail"`
}

// BreakCauses lists the causes of breaks.
func BreakCauses() []Reason {
	return []Reason{ReasonClusterRestored, ReasonClusterRebuilt, ReasonDatabaseRewound}
}

// IsBreak reports whether a gap is one in what was recorded, and not only in what a source could see: that another replica watched meanwhile does not fill it.
func (r Reason) IsBreak() bool {
	return r == ReasonClusterRestored || r == ReasonClusterRebuilt || r == ReasonDatabaseRewound
}

// Begin has the Tracker record in an epoch. What it remembers of epochs before is compared by its content: see observeList and take.
func (t *Tracker) Begin(epoch Epoch) { t.epoch = epoch }

// Epoch returns the epoch in which the Tracker records.
func (t *Tracker) Epoch() Epoch { return t.epoch }

// Latest is an object, and at which resourceVersion it was recorded.
type Latest struct{ Version, UID, Namespace, Name string }

// Recent are the objects of one kind that changed last and are there, the latest first. They are few: in a cluster that went back those that changed after its
// backup are older or gone, and one that is older proves it.
type Recent []Latest

// mostRecent is how many objects are remembered as changed last.
const mostRecent = 8

// With returns the objects with one more, or with its later version.
func (r Recent) With(l Latest) Recent {
	if len(r) == mostRecent && NewerVersion(r[mostRecent-1].Version, l.Version) {
		return r // most objects of a long list
	}
	out := r.Without(l.UID)
	i, _ := slices.BinarySearchFunc(out, l, func(x, l Latest) int {
		if NewerVersion(x.Version, l.Version) {
			return -1
		}
		return 1
	})
	out = slices.Insert(out, i, l)
	return out[:min(len(out), mostRecent)]
}

// Without returns the objects without the one of a UID.
func (r Recent) Without(uid string) Recent {
	i := slices.IndexFunc(r, func(l Latest) bool { return l.UID == uid })
	if i < 0 {
		return slices.Clone(r)
	}
	return slices.Concat(r[:i], r[i+1:])
}

// Recent returns, of the objects of each kind that are there, those that were recorded at the highest resourceVersions in this epoch.
func (t *Tracker) Recent() map[ObjectKind]Recent {
	recent := map[ObjectKind]Recent{}
	for key, o := range t.objects {
		epoch, version := SplitVersion(o.rv)
		if epoch == t.epoch && version != "" {
			recent[key.kind] = recent[key.kind].With(Latest{version, key.uid, o.namespace, o.name})
		}
	}
	return recent
}

// noteOlder notes that a list showed an object at a lower version than was recorded.
func (t *Tracker) noteOlder(kind ObjectKind, recorded string) {
	if old, known := t.older[kind]; !known || NewerVersion(recorded, old) {
		t.older[kind] = recorded
	}
}

// WentBack reports whether a list, whose objects were observed just before, proves that the cluster has gone back: it shows an object at a lower
// resourceVersion than was recorded, though it is not older itself. It returns that version.
func (t *Tracker) WentBack(l ListObservation) (recorded string, proven bool) {
	recorded, known := t.older[l.Kind]
	delete(t.older, l.Kind)
	if !known || NewerVersion(recorded, t.epoch.Version(l.ResourceVersion)) {
		return "", false
	}
	_, recorded = SplitVersion(recorded)
	return recorded, true
}
