package trail

import (
	"slices"
	"strings"
)

// Scope is what a caller may see: everything; of one cluster all; or of one cluster what is about the VMs of some namespaces. Who has a
// right in one cluster has none in another by that. The zero Scope sees nothing.
type Scope struct {
	everything bool
	cluster    string
	all        bool     // of the cluster
	namespaces []string // of the cluster, sorted; else
}

// Everything sees all clusters: for who reads the database itself, and where nobody is asked who they are.
func Everything() Scope { return Scope{everything: true} }

// Within sees all of one cluster.
func Within(cluster string) Scope { return Scope{cluster: cluster, all: true} }

// Only sees what is about the VMs of some namespaces of one cluster.
func Only(cluster string, namespaces ...string) Scope {
	namespaces = slices.Clone(namespaces)
	slices.Sort(namespaces)
	return Scope{cluster: cluster, namespaces: slices.Compact(namespaces)}
}

// Limited reports whether some VMs of a cluster that is seen may not be.
func (s Scope) Limited() bool { return !s.everything && !s.all }

// Empty reports whether nothing at all is seen.
func (s Scope) Empty() bool { return s.Limited() && len(s.namespaces) == 0 }

// Namespaces returns those that a limited Scope sees, sorted; never nil.
func (s Scope) Namespaces() []string { return append([]string{}, s.namespaces...) }

// Sees reports whether VMs of a namespace are seen.
func (s Scope) Sees(namespace string) bool {
	if !s.Limited() {
		return true
	}
	_, found := slices.BinarySearch(s.namespaces, namespace)
	return found
}

// seesVM reports whether a VM that is named namespace/name is seen.
func (s Scope) seesVM(name string) bool {
	namespace, _, named := strings.Cut(name, "/")
	return named && s.Sees(namespace)
}

// Cluster returns the cluster to look into for one that is asked for, empty for all of them; false where none may be.
func (s Scope) Cluster(asked string) (string, bool) {
	switch {
	case s.everything:
		return asked, true
	case s.cluster == "" || asked != "" && asked != s.cluster:
		return "", false
	}
	return s.cluster, true
}
