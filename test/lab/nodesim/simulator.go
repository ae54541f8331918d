package nodesim

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Options say what to simulate.
type Options struct {
	Nodes []Node
	Pace  Pace
	Log   *slog.Logger

	Admin   *rest.Config                   // who may watch pods and VMIs everywhere
	Handler *rest.Config                   // the ServiceAccount of virt-handler
	Kubelet func(node string) *rest.Config // system:node:<node>
}

// Simulator plays nodes until its context ends. It is safe for concurrent use.
type Simulator struct {
	log     *slog.Logger
	pace    Pace
	nodes   map[string]*node
	handler dynamic.Interface
	events  kubernetes.Interface // of virt-handler as well
	pods    cache.SharedIndexInformer
	vmis    cache.SharedIndexInformer
	queue   workqueue.TypedRateLimitingInterface[key]
	done    sync.WaitGroup

	mu         sync.Mutex
	scripts    map[string]Script         // by namespace/name of the VM
	loads      map[string]float64        // by node, apart from that of VMs
	migrations map[types.UID][]types.UID // by VMI: its migrations in the order of their target pods
	entered    map[key]mark
}

// key names a pod or a VMI.
type key struct {
	pod  bool
	name string // namespace/name
}

// mark is when an object entered its stage.
type mark struct {
	uid   types.UID
	stage string
	at    time.Time
}

const (
	indexCreatedBy = "created-by" // pods by the UID of their VMI
	workers        = 4
)

// Start makes the nodes known and plays them until the context ends.
func Start(ctx context.Context, o Options) (*Simulator, error) {
	s := &Simulator{
		log: o.Log, pace: o.Pace, nodes: map[string]*node{}, scripts: map[string]Script{}, loads: map[string]float64{},
		migrations: map[types.UID][]types.UID{}, entered: map[key]mark{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[key](20*time.Millisecond, 2*time.Second)),
	}
	if err := s.connectClients(o); err != nil {
		return nil, err
	}
	for _, n := range s.nodes {
		if err := n.registerNode(ctx, time.Now()); err != nil {
			return nil, err
		}
	}
	if err := s.startInformers(ctx, o.Admin); err != nil {
		return nil, err
	}
	for _, n := range s.nodes {
		s.done.Go(func() { s.keepNodeAlive(ctx, n) })
	}
	for range workers {
		s.done.Go(func() { s.processQueue(ctx) })
	}
	context.AfterFunc(ctx, s.queue.ShutDown)
	return s, nil
}

// Wait returns when all goroutines have ended, after the end of the context.
func (s *Simulator) Wait() { s.done.Wait() }

// SetScript says how a VM behaves from now on. A stage under way goes by the new Script at once.
func (s *Simulator) SetScript(namespace, vm string, script Script) {
	s.mu.Lock()
	s.scripts[namespace+"/"+vm] = script
	s.mu.Unlock()
	k := key{name: namespace + "/" + vm}
	s.queue.Add(k)
	if v := s.findVMI(k.name); v != nil {
		s.enqueuePods(v.UID)
	}
}

// SetNodeDown has a node's kubelet and virt-handler fall silent, or go on: they renew neither the lease nor the heartbeat, and change no pod and no VMI.
// kube-controller-manager marks the node after its grace period.
func (s *Simulator) SetNodeDown(name string, down bool) error {
	n, ok := s.nodes[name]
	if !ok {
		return fmt.Errorf("node %q: expected one of %v", name, slices.Sorted(maps.Keys(s.nodes)))
	}
	n.down.Store(down)
	return nil
}

func (s *Simulator) connectClients(o Options) (err error) {
	if s.handler, err = dynamic.NewForConfig(o.Handler); err != nil {
		return err
	}
	if s.events, err = kubernetes.NewForConfig(o.Handler); err != nil {
		return err
	}
	for _, n := range o.Nodes {
		client, err := kubernetes.NewForConfig(o.Kubelet(n.Name))
		if err != nil {
			return err
		}
		s.nodes[n.Name] = &node{Node: n, kubelet: client}
	}
	return nil
}

// startInformers starts the informers and returns once they know what there is.
func (s *Simulator) startInformers(ctx context.Context, admin *rest.Config) error {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	all, err := dynamic.NewForConfig(admin)
	if err != nil {
		return err
	}
	typed, untyped := informers.NewSharedInformerFactory(client, 0), dynamicinformer.NewDynamicSharedInformerFactory(all, 0)
	s.pods, s.vmis = typed.Core().V1().Pods().Informer(), untyped.ForResource(vmiResource).Informer()
	if err := s.pods.AddIndexers(cache.Indexers{indexCreatedBy: indexPod}); err != nil {
		return err
	}
	for _, i := range []struct {
		informer cache.SharedIndexInformer
		notice   func(any)
	}{{s.pods, s.noticePod}, {s.vmis, s.noticeVMI}} {
		_, err := i.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: i.notice, UpdateFunc: func(_, now any) { i.notice(now) }, DeleteFunc: i.notice,
		})
		if err != nil {
			return err
		}
	}
	for _, informer := range []cache.SharedIndexInformer{s.pods, s.vmis} {
		s.done.Go(func() { informer.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), s.pods.HasSynced, s.vmis.HasSynced) {
		return fmt.Errorf("list pods and vmis: %w", context.Cause(ctx))
	}
	return nil
}

func indexPod(o any) ([]string, error) {
	if p, ok := o.(*corev1.Pod); ok && p.Labels[labelCreatedBy] != "" {
		return []string{p.Labels[labelCreatedBy]}, nil
	}
	return nil, nil
}

func (s *Simulator) noticePod(o any) {
	if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
		s.queue.Add(key{pod: true, name: name})
	}
}

// noticeVMI enqueues the VMI and its pods, as what they do next may depend on it.
func (s *Simulator) noticeVMI(o any) {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return
	}
	s.queue.Add(key{name: name})
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		s.enqueuePods(u.GetUID())
	}
}

func (s *Simulator) enqueuePods(vmi types.UID) {
	pods, err := s.pods.GetIndexer().ByIndex(indexCreatedBy, string(vmi))
	if err != nil {
		s.log.Warn("pods not found", "vmi_uid", vmi, "err", err)
	}
	for _, p := range pods {
		s.noticePod(p)
	}
}

func (s *Simulator) processQueue(ctx context.Context) {
	for {
		k, ended := s.queue.Get()
		if ended {
			return
		}
		wait, err := s.advanceObject(ctx, k, time.Now())
		switch {
		case ctx.Err() != nil:
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			s.queue.AddRateLimited(k)
		case err != nil:
			s.log.Warn("change refused", "object", k.name, "err", err)
			s.queue.AddRateLimited(k)
		default:
			s.queue.Forget(k)
			if wait > 0 {
				s.queue.AddAfter(k, wait)
			}
		}
		s.queue.Done(k)
	}
}

// advanceObject makes the next change of an object where its time has come, and returns how long to wait where it has not.
func (s *Simulator) advanceObject(ctx context.Context, k key, now time.Time) (time.Duration, error) {
	if k.pod {
		return s.advancePod(ctx, k, now)
	}
	return s.advanceVMI(ctx, k, now)
}

func (s *Simulator) advancePod(ctx context.Context, k key, now time.Time) (time.Duration, error) {
	p := s.findPod(k.name)
	if p == nil {
		s.forgetObject(k)
		return 0, nil
	}
	v, m := s.ownerOf(p)
	stage := nextPodStage(p, v, m)
	if s.hasDownNode(p.Spec.NodeName) {
		return s.pace.LeaseStep, nil
	}
	wait := s.remainingDelay(k, p.UID, string(stage), stage.delay(p, s.pace, m), now)
	if stage == podIdle || wait != 0 {
		return max(wait, 0), nil
	}
	return 0, s.changePod(ctx, stage, p, now)
}

func (s *Simulator) advanceVMI(ctx context.Context, k key, now time.Time) (time.Duration, error) {
	v := s.findVMI(k.name)
	if v == nil {
		s.forgetObject(k)
		return 0, nil
	}
	script, m := s.scriptOf(v)
	stage := nextStage(v)
	if s.hasDownNode(v.handledBy()...) {
		return s.pace.LeaseStep, nil
	}
	// Two migrations in a row are in the same stage only with something in between, but a coalesced watch may leave that out.
	entered := string(stage)
	if v.Status.Migration != nil {
		entered += " " + string(v.Status.Migration.UID)
	}
	wait := s.remainingDelay(k, v.UID, entered, stage.delay(v, s.pace, m), now)
	if stage == stageIdle || wait != 0 {
		return max(wait, 0), nil
	}
	c := handleStage(stage, v, script, m, now)
	if err := s.changeVMI(ctx, v, c); err != nil {
		return 0, err
	}
	if c.event != nil {
		s.recordEvent(ctx, v, c.event, now)
	}
	return 0, nil
}

// hasDownNode reports whether one of some nodes is down.
func (s *Simulator) hasDownNode(nodes ...string) bool {
	return slices.ContainsFunc(nodes, func(name string) bool {
		n, ok := s.nodes[name]
		return ok && n.down.Load()
	})
}

// remainingDelay returns how long the object still stays in its stage: zero when the change is due, never when it is not ours to make.
func (s *Simulator) remainingDelay(k key, uid types.UID, stage string, delay time.Duration, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := s.entered[k]
	if !known || m.uid != uid || m.stage != stage {
		m = mark{uid, stage, now}
		s.entered[k] = m
	}
	if delay == never {
		return never
	}
	return max(m.at.Add(delay).Sub(now), 0)
}

func (s *Simulator) forgetObject(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entered, k)
}

// ownerOf returns the VMI of a launcher pod, nil where there is none, and what is said of the migration whose target the pod is.
func (s *Simulator) ownerOf(p *corev1.Pod) (*vmi, Migration) {
	owner := types.UID(p.Labels[labelCreatedBy])
	v := s.findVMI(p.Namespace + "/" + p.Annotations[annotationDomain])
	if !isLauncher(p) || v == nil || v.UID != owner {
		return nil, Migration{}
	}
	return v, s.migrationOf(v, types.UID(p.Labels[labelMigrationJob]))
}

func (s *Simulator) scriptOf(v *vmi) (Script, Migration) {
	var uid types.UID
	if v.Status.Migration != nil {
		uid = v.Status.Migration.UID
	}
	m := s.migrationOf(v, uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scripts[v.Namespace+"/"+v.Name], m
}

// migrationOf returns what the VM's Script says of one of its migrations, which is new where it was not asked for before.
func (s *Simulator) migrationOf(v *vmi, migration types.UID) Migration {
	if migration == "" {
		return Migration{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := slices.Index(s.migrations[v.UID], migration)
	if n < 0 {
		n = len(s.migrations[v.UID])
		s.migrations[v.UID] = append(s.migrations[v.UID], migration)
	}
	return s.scripts[v.Namespace+"/"+v.Name].migrationAt(n)
}

func (s *Simulator) findPod(name string) *corev1.Pod {
	o, exists, err := s.pods.GetIndexer().GetByKey(name)
	if p, ok := o.(*corev1.Pod); ok && exists && err == nil {
		return p
	}
	return nil
}

func (s *Simulator) findVMI(name string) *vmi {
	o, exists, err := s.vmis.GetIndexer().GetByKey(name)
	u, ok := o.(*unstructured.Unstructured)
	if !ok || !exists || err != nil {
		return nil
	}
	v, err := decodeVMI(u)
	if err != nil {
		s.log.Error("vmi not read", "err", err)
		return nil
	}
	return v
}

func (s *Simulator) listVMIs() ([]*vmi, error) {
	var vmis []*vmi
	err := cache.ListAll(s.vmis.GetStore(), labels.Everything(), func(o any) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			if v, err := decodeVMI(u); err == nil {
				vmis = append(vmis, v)
			}
		}
	})
	return vmis, err
}
