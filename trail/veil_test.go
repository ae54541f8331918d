package trail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestScopes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		scope          Scope
		limited, empty bool
		sees           map[string]bool
		clusters       map[string]string // that are looked into for one that is asked; missing: none is
	}{
		{"nothing", Scope{}, true, true, map[string]bool{"": false, "shop": false}, nil},
		{"everything", Everything(), false, false, map[string]bool{"shop": true}, map[string]string{"": "", "a": "a", "b": "b"}},
		{"a cluster", Within("a"), false, false, map[string]bool{"shop": true}, map[string]string{"": "a", "a": "a"}},
		{"no cluster", Within(""), false, false, nil, nil},
		{"namespaces", Only("a", "shop", "bank", "shop"), true, false, map[string]bool{"shop": true, "bank": true, "sho": false, "": false}, map[string]string{"": "a", "a": "a"}},
		{"no namespace", Only("a"), true, true, map[string]bool{"": false, "shop": false}, map[string]string{"": "a", "a": "a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.limited, c.scope.Limited())
			require.Equal(t, c.empty, c.scope.Empty())
			require.NotNil(t, c.scope.Namespaces())
			for namespace, want := range c.sees {
				require.Equal(t, want, c.scope.Sees(namespace), namespace)
			}
			for _, asked := range []string{"", "a", "b"} {
				want, within := c.clusters[asked]
				got, ok := c.scope.Cluster(asked)
				require.Equal(t, within, ok, asked)
				require.Equal(t, want, got, asked)
			}
		})
	}
}

func TestNamesBecomeNumbers(t *testing.T) {
	t.Parallel()
	mine := Only("c", "shop")
	for said, redacted := range map[string]string{
		"KubeVirt failed twice to move bank/db-1 away.":                       "KubeVirt failed twice to move a VM of another namespace away.",
		"It evicts 3 other VMs of the node: shop/a, bank/db.x-1, lab/z.":      "It evicts 3 other VMs of the node: shop/a, 2 VMs of other namespaces.",
		"It evicts 2 other VMs of the node: bank/b, lab/z and asked again.":   "It evicts 2 other VMs of the node: 2 VMs of other namespaces and asked again.",
		"They hold all 2 slots of worker-1 (shop/a, shop/b-2): nothing moves": "They hold all 2 slots of worker-1 (shop/a, shop/b-2): nothing moves",
		"(shopping/a)": "(a VM of another namespace)",
		"shop/a.":      "shop/a.",
		"bank/b.":      "a VM of another namespace.",
		"From 2026-11-21 00:30:00Z on, lastly: data_plane, libvirt_error": "From 2026-11-21 00:30:00Z on, lastly: data_plane, libvirt_error",
	} {
		require.Equal(t, redacted, mine.redactNames(said))
	}
}

// TestLoopsOfOthers shows loops to who may see one of the VMs in them, or none.
func TestLoopsOfOthers(t *testing.T) {
	t.Parallel()
	id, at := FactID{1}, time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	dual := Loop{
		ID: FactID{2}, Kind: LoopDualRetry, Namespace: "bank", VMI: "db", VMIUID: "u-1", Node: "worker-1", Summary: "bank/db fails, others go: shop/a, lab/b.", Advice: "cancel bank/db",
		Counts: map[string]int{"other_vms": 2}, Evidence: []Exhibit{{&id, at, "bank/db", "failed: texts of bank"}, {&id, at, "shop/a", "asked"}, {&id, at, "lab/b", "asked"}},
	}
	seen, shown := Only("c", "shop").Loop(dual)
	require.True(t, shown)
	require.Equal(t, Loop{
		ID: FactID{2}, Kind: LoopDualRetry, Node: "worker-1", Summary: "a VM of another namespace fails, others go: shop/a, a VM of another namespace.",
		Advice: "What holds this up is a VM of another namespace: ask those who run the cluster, who see which.", Counts: dual.Counts,
		Evidence: []Exhibit{{nil, at, "", "about a VM of another namespace"}, {&id, at, "shop/a", "asked"}, {nil, at, "", "about a VM of another namespace"}},
	}, seen)
	owner, shown := Only("c", "bank").Loop(dual)
	require.True(t, shown)
	require.Equal(t, "cancel bank/db", owner.Advice)
	require.Equal(t, "db", owner.VMI)
	require.Equal(t, "failed: texts of bank", owner.Evidence[0].Text)
	_, shown = Only("c", "elsewhere").Loop(dual)
	require.False(t, shown)
	_, shown = Scope{}.Loop(dual)
	require.False(t, shown)
	whole, shown := Within("c").Loop(dual)
	require.True(t, shown)
	require.Equal(t, dual, whole)
	require.Equal(t, "bank/db", dual.Evidence[0].VMI, "what was given stays as it was")

	pinned := Loop{Kind: LoopBudgetPinned, Node: "worker-1", Summary: "slots (shop/a, bank/db)", Advice: "cancel shop/a", Evidence: []Exhibit{{&id, at, "shop/a", "marked"}, {&id, at, "bank/db", "marked"}}}
	first, shown := Only("c", "shop").Loop(pinned)
	require.True(t, shown)
	require.Equal(t, "cancel shop/a", first.Advice, "who has held a slot longest can end it")
	second, shown := Only("c", "bank").Loop(pinned)
	require.True(t, shown)
	require.NotContains(t, second.Advice, "shop")
	require.Equal(t, "slots (bank/db, a VM of another namespace)", second.Summary)
}
