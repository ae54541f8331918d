package truth

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// newVMI returns a VMI as its object shows it.
func newVMI(name, phase string, outdated bool, migratable string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	if outdated {
		labels[outdatedLabel] = ""
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": name, "uid": name, "labels": labels},
		"status": map[string]any{
			"phase": phase, "nodeName": "n1", "conditions": []any{map[string]any{"type": "LiveMigratable", "status": migratable}},
		},
	}}
}

// TestWave shows a Witness an upgrade, and counts what became of the VMs.
func TestWave(t *testing.T) {
	t.Parallel()
	w := newWitness()
	require.Nil(t, w.History().Waves, "nothing is outdated")
	for _, version := range []string{"v1.8.4", "v1.8.4", "v1.9.0"} {
		w.noteKubeVirt(&unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"configuration": map[string]any{"migrations": map[string]any{"parallelMigrationsPerCluster": int64(2)}}},
			"status": map[string]any{"observedKubeVirtVersion": version},
		}}, false)
	}
	for _, name := range []string{"moves", "restarts", "waits", "stays"} {
		w.noteVMI(newVMI(name, "Running", false, "True"), false)
		w.noteVMI(newVMI(name, "Running", true, "True"), false)
	}
	w.noteVMI(newVMI("moves", "Running", false, "True"), false)
	w.noteVMI(newVMI("moves", "Succeeded", false, "True"), true) // that it ends later is another matter
	w.noteVMI(newVMI("restarts", "Succeeded", true, "False"), false)
	w.noteVMI(newVMI("restarts", "Succeeded", true, "False"), true)
	w.noteVMI(newVMI("stays", "Running", true, "False"), false)
	w.noteVMI(newVMI("other", "Running", false, "True"), false)

	update := func(uid, vm, end string, from, to int) Migration {
		return Migration{UID: uid, VMI: vm, Phase: end, Update: true, Phases: map[string]time.Time{"Scheduling": timeAfter(from), end: timeAfter(to)}}
	}
	byHand := update("m4", "shop/moves", "Succeeded", 0, 50)
	byHand.Update = false
	for _, m := range []Migration{
		update("m1", "shop/moves", "Failed", 0, 10), update("m2", "shop/moves", "Succeeded", 10, 20), update("m3", "shop/waits", "Failed", 5, 15), byHand,
	} {
		w.migrations[m.UID] = &m
	}
	require.Equal(t, []Wave{{
		From: "v1.8.4", To: "v1.9.0", VMs: 4, Left: 2, Staying: 1, Moved: 1, ShutDown: 1, Failed: 2, MovedAgain: 1, MostAtOnce: 2, ParallelLimit: 2,
	}}, w.History().Waves)
}
