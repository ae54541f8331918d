package trail

// NameKind says what sort of names is asked for.
type NameKind string

// The kinds of names.
const (
	NameCluster   NameKind = "cluster"
	NameNamespace NameKind = "namespace" // of VMs
	NameVM        NameKind = "vm"        // namespace/name
	NameNode      NameKind = "node"
)

// NameKinds lists the kinds of names.
func NameKinds() []NameKind { return []NameKind{NameCluster, NameNamespace, NameVM, NameNode} }

// NameQuery asks which names are known: those that begin with a prefix, for people who are typing one.
type NameQuery struct {
	Kind    NameKind
	Cluster string // empty: of all clusters
	Prefix  string // empty: all
}

// MaxNames is how many names an answer has at most, the first in their order.
const MaxNames = 200
