package trail

import (
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
	Key    string    `json:"key"`   // what distinguishes this gap from others: the same for all replicas that notice the same break
	From   time.Time `json:"from"`  // when what was seen was last known to be recorded
	Detail string    `json:"detail"`
}

// BreakCauses lists the causes of breaks.
func BreakCauses() []Reason {
	return []Reason{ReasonClusterRestored, ReasonClusterRebuilt, ReasonDatabaseRewound}
}

// IsBreak reports whether a gap is one in what was recorded, and not only in what a source could see: that another replica watched during that time does not fill it.
func (r Reason) IsBreak() bool {
	return r == ReasonClusterRestored || r == ReasonClusterRebuilt || r == ReasonDatabaseRewound
}
