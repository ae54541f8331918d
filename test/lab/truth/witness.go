package truth

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// The kinds that a Witness watches.
var (
	vmis       = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	migrations = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstancemigrations"}
	kubeVirts  = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}
)

// What KubeVirt writes on VMIs that are outdated, and on migrations by which it updates them.
const (
	outdatedLabel    = "kubevirt.io/outdatedLauncherImage"
	updateAnnotation = "kubevirt.io/workloadUpdateMigration"
)

// Witness notes what the objects of a cluster show. Its methods may be called at any time.
type Witness struct {
	mu         sync.Mutex
	marks      map[string][]*Mark // by UID of the VMI, in order
	stays      map[string][]*Stay // by UID of the VMI, in order
	migrations map[string]*Migration
	guests     map[string]*guest // that were outdated, by UID of the VMI
	kubeVirt   kubeVirt
}

func newWitness() *Witness {
	return &Witness{marks: map[string][]*Mark{}, stays: map[string][]*Stay{}, migrations: map[string]*Migration{}, guests: map[string]*guest{}}
}

// Watch begins to watch a cluster and returns once it has seen what is there. It watches until ctx ends.
func Watch(ctx context.Context, config *rest.Config) (*Witness, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	w := newWitness()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for kind, note := range map[schema.GroupVersionResource]func(o *unstructured.Unstructured, gone bool){
		vmis: w.noteVMI, migrations: w.noteMigration, kubeVirts: w.noteKubeVirt,
	} {
		_, err := factory.ForResource(kind).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { note(objectOf(o), false) },
			UpdateFunc: func(_, o any) { note(objectOf(o), false) },
			DeleteFunc: func(o any) { note(objectOf(o), true) },
		})
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Resource, err)
		}
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("watch %s: %w", kind.Resource, context.Cause(ctx))
		}
	}
	return w, nil
}

// objectOf returns the object of a notification, also of one whose end was missed.
func objectOf(o any) *unstructured.Unstructured {
	if missed, is := o.(cache.DeletedFinalStateUnknown); is {
		o = missed.Obj
	}
	found, _ := o.(*unstructured.Unstructured)
	return found
}

// textOf returns a field of an object; empty where it has none.
func textOf(o *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, fields...)
	return value
}

func nameOf(o *unstructured.Unstructured) string { return o.GetNamespace() + "/" + o.GetName() }

// noteVMI notes where a guest runs and whether it is marked.
func (w *Witness) noteVMI(o *unstructured.Unstructured, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, uid := time.Now().UTC().Truncate(time.Millisecond), string(o.GetUID())
	mark, node := textOf(o, "status", "evacuationNodeName"), ""
	switch textOf(o, "status", "phase") {
	case "Running", "Scheduled":
		node = textOf(o, "status", "nodeName")
	}
	if gone {
		mark, node = "", ""
	}
	w.noteGuest(o, node == "")
	if m := lastOf(w.marks[uid]); m != nil && m.Until.IsZero() && m.Node != mark {
		m.Until = now
	}
	if m := lastOf(w.marks[uid]); mark != "" && (m == nil || !m.Until.IsZero()) {
		w.marks[uid] = append(w.marks[uid], &Mark{VMI: nameOf(o), Node: mark, From: now})
	}
	if s := lastOf(w.stays[uid]); s != nil && s.Until.IsZero() && s.Node != node {
		s.Until = now
	}
	if s := lastOf(w.stays[uid]); node != "" && (s == nil || !s.Until.IsZero()) {
		w.stays[uid] = append(w.stays[uid], &Stay{VMI: nameOf(o), UID: uid, Node: node, From: now})
	}
}

// noteGuest notes whether a VMI is outdated. What was when it ended stays.
func (w *Witness) noteGuest(o *unstructured.Unstructured, ended bool) {
	_, outdated := o.GetLabels()[outdatedLabel]
	g := w.guests[string(o.GetUID())]
	switch {
	case g == nil && !outdated, g != nil && g.ended:
		return
	case g == nil:
		g = &guest{}
		w.guests[string(o.GetUID())] = g
	}
	g.ended, g.outdated = ended && outdated, outdated && !ended
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, _ := c.(map[string]any); condition["type"] == "LiveMigratable" {
			g.fixed = condition["status"] == "False"
		}
	}
}

// noteKubeVirt notes the version of KubeVirt, and how many migrations it runs at once.
func (w *Witness) noteKubeVirt(o *unstructured.Unstructured, _ bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if version := textOf(o, "status", "observedKubeVirtVersion"); version != "" && !slices.Contains(w.kubeVirt.versions, version) {
		w.kubeVirt.versions = append(w.kubeVirt.versions, version)
	}
	parallel, _, _ := unstructured.NestedInt64(o.Object, "spec", "configuration", "migrations", "parallelMigrationsPerCluster")
	w.kubeVirt.parallel = int(parallel)
}

// noteMigration notes how far a migration has come. Its phases stay when it is gone.
func (w *Witness) noteMigration(o *unstructured.Unstructured, _ bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := string(o.GetUID())
	m := w.migrations[uid]
	if m == nil {
		m = &Migration{UID: uid, VMI: o.GetNamespace() + "/" + textOf(o, "spec", "vmiName"), Phases: map[string]time.Time{}}
		w.migrations[uid] = m
	}
	m.Phase = textOf(o, "status", "phase")
	_, m.Update = o.GetAnnotations()[updateAnnotation]
	for field, to := range map[string]*string{"sourceNode": &m.Source, "targetNode": &m.Target, "failureReason": &m.Failure} {
		if value := textOf(o, "status", "migrationState", field); value != "" {
			*to = value
		}
	}
	transitions, _, _ := unstructured.NestedSlice(o.Object, "status", "phaseTransitionTimestamps")
	for _, t := range transitions {
		transition, _ := t.(map[string]any)
		phase, _ := transition["phase"].(string)
		stamp, _ := transition["phaseTransitionTimestamp"].(string)
		if at, err := time.Parse(time.RFC3339, stamp); err == nil && phase != "" {
			m.Phases[phase] = at.UTC()
		}
	}
}

// lastOf returns the last of a list; nil where that is empty.
func lastOf[T any](all []*T) *T {
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// History returns what was seen so far: marks, migrations, stays and the wave of an upgrade.
func (w *Witness) History() History {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := History{Marks: flattenByVMI(w.marks), Stays: flattenByVMI(w.stays)}
	for _, uid := range slices.Sorted(maps.Keys(w.migrations)) {
		m := *w.migrations[uid]
		m.Phases = maps.Clone(m.Phases)
		h.Migrations = append(h.Migrations, m)
	}
	h.Waves = countWave(w.guests, h.Migrations, w.kubeVirt)
	return h
}

// flattenByVMI returns copies of all that was noted of all VMIs.
func flattenByVMI[T any](by map[string][]*T) (out []T) {
	for _, key := range slices.Sorted(maps.Keys(by)) {
		for _, noted := range by[key] {
			out = append(out, *noted)
		}
	}
	return out
}
