package chaos_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/evictrail/evictrail/collector/recording"
)

// trace is the life of a cluster, made up from a seed: VMs that are migrated again and again, by KubeVirt, which evacuates them, and by users.
// KubeVirt keeps five migrations of each that are over.
type trace struct {
	lines []recording.Line
	first int          // the first line after the lists
	truth []transition // in the order of their lines
	ends  []int        // the line of each
	moved []int        // lines that show that a guest runs elsewhere

	chance  *rand.Rand
	marks   bool
	nodes   int
	version int
	at      time.Time
	vms     []*vm
	under   []*migration // under way
}

// transition is a phase that a migration entered.
type transition struct {
	UID   string    `json:"migration_uid"`
	Phase string    `json:"phase"`
	At    time.Time `json:"at"` // to the second, as KubeVirt writes it
}

// vm is a VM, on one of the nodes.
type vm struct {
	name   string
	since  time.Time
	node   int
	leaves string // node that its mark names
	busy   bool
	over   []*migration
	last   *migration // that moved it
}

// migration is one of a VM.
type migration struct {
	vm      *vm
	name    string
	created time.Time
	leaves  string // node that KubeVirt evacuates; empty: a user asked
	target  int
	all     []string
	phases  []transition // that it has entered
}

const (
	nodes     = 5 // as a rule
	keeps     = 5 // migrations of a VM that are over; KubeVirt's finalizedMigrationGarbageCollectionBuffer
	atOnce    = 12
	namespace = "shop"
)

// The phases of a migration that succeeds, and of one that fails.
var (
	succeeding = []string{"Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded"}
	failing    = []string{"Pending", "Scheduling", "Scheduled", "PreparingTarget", "Failed"}
)

// newTrace makes up so many transitions of so many VMs, or a few more, about half a second apart. All of them are hours ago: what is derived
// of them does not depend on how long a test takes.
func newTrace(chance *rand.Rand, vms, transitions int) *trace {
	const apart = 500 * time.Millisecond
	return newTraceBy(&clock{at: time.Now().Add(-4*time.Hour - time.Duration(2*transitions)*apart), apart: apart}, chance, nodes, vms, transitions)
}

// clock is that of a cluster while a trace is made up.
type clock struct {
	at    time.Time
	apart time.Duration // about, two things that happen
	back  time.Duration // the clock is set back so far when half of all has happened
	marks bool          // VMIs bear KubeVirt's mark, which bears no time
}

// newTraceBy makes up a trace by a clock.
func newTraceBy(c *clock, chance *rand.Rand, nodes, vms, transitions int) *trace {
	tr := &trace{chance: chance, version: 1000, at: c.at.UTC(), marks: c.marks, nodes: nodes}
	for i := range vms {
		tr.vms = append(tr.vms, &vm{name: fmt.Sprintf("db-%d", i), since: tr.at, node: i % nodes})
	}
	tr.addInitialLists()
	tr.first = len(tr.lines)
	for back := c.back; len(tr.truth) < transitions || len(tr.under) > 0; {
		tr.at = tr.at.Add(time.Millisecond + time.Duration(tr.chance.Int64N(int64(2*c.apart))))
		if len(tr.truth) >= transitions/2 {
			tr.at, back = tr.at.Add(-back), 0
		}
		i := tr.chance.IntN(atOnce)
		switch {
		case i < len(tr.under):
			tr.advanceMigration(i)
		case len(tr.truth) < transitions:
			tr.startMigration()
		}
	}
	return tr
}

// addInitialLists is what the cluster has at first.
func (tr *trace) addInitialLists() {
	tr.addListedObject("kubevirts", map[string]any{
		"metadata": tr.newMetadata("kubevirt", "kubevirt", "kubevirt", nil), "status": map[string]any{"phase": "Deployed", "observedKubeVirtVersion": "v1.8.4"},
	})
	for i := range tr.nodes {
		tr.addListedObject("nodes", map[string]any{"metadata": tr.newMetadata("", nodeName(i), nodeName(i), nil)})
	}
	for _, v := range tr.vms {
		tr.addListedObject("virtualmachineinstances", tr.newVMIObject(v))
	}
	for _, v := range tr.vms {
		tr.addListedObject("pods", tr.newPodObject(v))
	}
	tr.lines = append(tr.lines, recording.Line{At: tr.at, Resource: "virtualmachineinstancemigrations", Kind: recording.KindSyncEmpty, ListResourceVersion: strconv.Itoa(listVersion)})
	tr.version = listVersion
}

// listVersion is that of the lists: beyond the versions of what is in them, and not beyond any that comes later.
const listVersion = 1_000_000

func (tr *trace) addListedObject(resource string, object map[string]any) {
	tr.addLine(resource, recording.KindSync, object)
	tr.lines[len(tr.lines)-1].ListResourceVersion = strconv.Itoa(listVersion)
}

// addLine adds what an API server sends of an object.
func (tr *trace) addLine(resource string, kind recording.Kind, object map[string]any) {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err) // texts, numbers and times only
	}
	m := object["metadata"].(map[string]any)
	tr.lines = append(tr.lines, recording.Line{
		At: tr.at, Resource: resource, Kind: kind, Object: raw, Key: fmt.Sprint(m["namespace"], "/", m["name"]), ResourceVersion: m["resourceVersion"].(string),
	})
}

func (tr *trace) newMetadata(namespace, name, uid string, more map[string]any) map[string]any {
	tr.version++
	m := map[string]any{"name": name, "uid": uid, "resourceVersion": strconv.Itoa(tr.version), "creationTimestamp": formatTimestamp(tr.at)}
	if namespace != "" {
		m["namespace"] = namespace
	}
	for k, v := range more {
		m[k] = v
	}
	return m
}

func nodeName(i int) string { return fmt.Sprintf("worker-%d", i+1) }

func formatTimestamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func (tr *trace) newVMIObject(v *vm) map[string]any {
	status := map[string]any{
		"phase": "Running", "nodeName": nodeName(v.node), "conditions": []any{map[string]any{"type": "LiveMigratable", "status": "True"}},
		"phaseTransitionTimestamps": []any{map[string]any{"phase": "Running", "phaseTransitionTimestamp": formatTimestamp(v.since)}},
	}
	if v.leaves != "" {
		status["evacuationNodeName"] = v.leaves
	}
	if v.last != nil {
		status["migrationState"] = v.last.stateObject()
	}
	return map[string]any{
		"metadata": tr.newMetadata(namespace, v.name, "uid-"+v.name, nil), "spec": map[string]any{"evictionStrategy": "LiveMigrate"}, "status": status,
	}
}

func (tr *trace) newPodObject(v *vm) map[string]any {
	name := launcherPodName(v.name)
	return map[string]any{
		"metadata": tr.newMetadata(namespace, name, "pod-"+v.name, map[string]any{
			"labels":          map[string]any{"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": "uid-" + v.name},
			"annotations":     map[string]any{"kubevirt.io/domain": v.name},
			"ownerReferences": []any{map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": v.name, "uid": "uid-" + v.name, "controller": true}},
		}),
		"spec": map[string]any{"nodeName": nodeName(v.node)}, "status": map[string]any{"phase": "Running"},
	}
}

// launcherPodName names the virt-launcher pod of a VM.
func launcherPodName(vm string) string { return "virt-launcher-" + vm + "-x7k2p" }

// startMigration begins a migration of the VM whose turn it is.
func (tr *trace) startMigration() {
	v := tr.vms[0]
	tr.vms = append(tr.vms[1:], v)
	if v.busy {
		return
	}
	v.busy = true
	m := &migration{
		vm: v, name: fmt.Sprintf("%s-m%d", v.name, tr.version), created: tr.at, target: (v.node + 1 + tr.chance.IntN(tr.nodes-1)) % tr.nodes, all: succeeding,
	}
	if tr.chance.IntN(2) == 0 {
		m.leaves = nodeName(v.node)
	}
	if tr.marks && m.leaves != v.leaves && v.leaves == "" {
		v.leaves = m.leaves
		tr.addLine("virtualmachineinstances", recording.KindModified, tr.newVMIObject(v))
	}
	if tr.chance.IntN(3) == 0 {
		m.all = failing
	}
	tr.under = append(tr.under, m)
	tr.enterNextPhase(m, recording.KindAdded)
}

// advanceMigration takes a migration to its next phase.
func (tr *trace) advanceMigration(i int) {
	m := tr.under[i]
	tr.enterNextPhase(m, recording.KindModified)
	if len(m.phases) < len(m.all) {
		return
	}
	tr.under = append(tr.under[:i], tr.under[i+1:]...)
	v := m.vm
	v.busy, v.last = false, m
	if last := m.phases[len(m.phases)-1]; last.Phase == "Succeeded" {
		v.node, v.leaves = m.target, ""
	}
	tr.addLine("virtualmachineinstances", recording.KindModified, tr.newVMIObject(v))
	if v.node == m.target {
		tr.moved = append(tr.moved, len(tr.lines)-1)
	}
	if v.over = append(v.over, m); len(v.over) > keeps {
		tr.addLine("virtualmachineinstancemigrations", recording.KindDeleted, tr.newMigrationObject(v.over[0]))
		v.over = v.over[1:]
	}
}

// enterNextPhase has a migration enter its next phase, and adds the line.
func (tr *trace) enterNextPhase(m *migration, kind recording.Kind) {
	m.phases = append(m.phases, transition{UID: "uid-" + m.name, Phase: m.all[len(m.phases)], At: tr.at.Truncate(time.Second)})
	tr.addLine("virtualmachineinstancemigrations", kind, tr.newMigrationObject(m))
	tr.truth = append(tr.truth, m.phases[len(m.phases)-1])
	tr.ends = append(tr.ends, len(tr.lines)-1)
}

func (tr *trace) newMigrationObject(m *migration) map[string]any {
	times := make([]any, len(m.phases))
	for i, p := range m.phases {
		times[i] = map[string]any{"phase": p.Phase, "phaseTransitionTimestamp": formatTimestamp(p.At)}
	}
	status := map[string]any{"phase": m.phases[len(m.phases)-1].Phase, "phaseTransitionTimestamps": times}
	if len(m.phases) >= len(failing) {
		status["migrationState"] = m.stateObject()
	}
	more := map[string]any{"labels": map[string]any{"kubevirt.io/vmi-name": m.vm.name}}
	if m.leaves != "" {
		more["annotations"] = map[string]any{"kubevirt.io/evacuationMigration": m.leaves}
	}
	meta := tr.newMetadata(namespace, m.name, "uid-"+m.name, more)
	meta["creationTimestamp"] = formatTimestamp(m.created)
	return map[string]any{"metadata": meta, "spec": map[string]any{"vmiName": m.vm.name}, "status": status}
}

// stateObject is the migrationState of a migration and, once it is over, of its VMI.
func (m *migration) stateObject() map[string]any {
	s := map[string]any{"migrationUid": "uid-" + m.name, "targetNode": nodeName(m.target), "startTimestamp": formatTimestamp(m.phases[3].At), "mode": "PreCopy"}
	last := m.phases[len(m.phases)-1]
	switch last.Phase {
	case "Succeeded":
		s["completed"], s["endTimestamp"] = true, formatTimestamp(last.At)
	case "Failed":
		s["failed"], s["completed"], s["endTimestamp"], s["failureReason"] = true, true, formatTimestamp(last.At), "Live migration stuck for 15 seconds and has been aborted"
	}
	return s
}
