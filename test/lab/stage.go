package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/lab/cluster"
	"github.com/evictrail/evictrail/test/lab/nodesim"
	"github.com/evictrail/evictrail/test/lab/prometheus"
	"github.com/evictrail/evictrail/test/lab/recorder"
	"github.com/evictrail/evictrail/test/lab/scenario"
	"github.com/evictrail/evictrail/test/lab/truth"
)

// namespace is that of all VMs.
const namespace = "demo"

// stage plays a scenario in the lab. It is a scenario.Stage.
type stage struct {
	*cluster.Cluster
	host     *cluster.Host
	recorder *recorder.Recorder
	witness  *truth.Witness
	alerts   *prometheus.Prometheus // nil: there is no program for it
	roles    map[string]string      // ClusterRole of a user, by name
	nodes    []string
	programs string // folder with kubectl and virtctl, where the scenario uses them

	recordDir string              // of the recording; empty: there is none
	recording *recorder.Recording // nil: there is none
}

// Namespace implements scenario.Stage.
func (s *stage) Namespace() string { return namespace }

// userConfig returns who asks: the administrator, a user with a role in the namespace, or one with all rights and a name of their own.
func (s *stage) userConfig(name string) *rest.Config {
	switch {
	case name == "":
		return s.Admin()
	case s.roles[name] != "":
		return s.User(name)
	}
	return s.User(name, "system:masters")
}

// runAs runs a command whose kubectl and virtctl are a user's.
func (s *stage) runAs(ctx context.Context, user, program string, args ...string) (string, error) {
	kubeconfig, err := s.Kubeconfig(s.userConfig(user), namespace)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+s.programs+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Kubectl implements scenario.Stage.
func (s *stage) Kubectl(ctx context.Context, user string, args ...string) (string, error) {
	return s.runAs(ctx, user, filepath.Join(s.programs, "kubectl"), args...)
}

// Evict implements scenario.Stage.
func (s *stage) Evict(ctx context.Context, user, vm string) error {
	pod, err := s.LauncherPod(ctx, namespace, vm)
	if err != nil {
		return err
	}
	answer, err := s.Cluster.Evict(ctx, s.userConfig(user), namespace, pod, nil)
	if err != nil || answer.Code < 300 || strings.Contains(answer.Message, "triggered evacuation of VMI") {
		return err
	}
	return fmt.Errorf("%d: %s", answer.Code, answer.Message)
}

// Migrate implements scenario.Stage.
func (s *stage) Migrate(ctx context.Context, vm string) error {
	_, err := s.API.Dynamic().Resource(cluster.Migrations).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
		"metadata": map[string]any{"generateName": "by-hand-", "namespace": namespace},
		"spec":     map[string]any{"vmiName": vm},
	}}, metav1.CreateOptions{})
	return err
}

// Load implements scenario.Stage.
func (s *stage) Load(byNode map[string]float64) {
	for node, load := range byNode {
		s.Nodes.SetNodeLoad(node, load)
	}
}

// SetNodeDown implements scenario.Stage.
func (s *stage) SetNodeDown(node string, down bool) error { return s.Nodes.SetNodeDown(node, down) }

// Kill implements scenario.Stage.
func (s *stage) Kill(_ context.Context, program string) error {
	switch program {
	case "evictrail", "evictrail-2":
		return s.recorder.Kill(program)
	case "postgres":
		return s.recorder.KillDatabase()
	case "kube-apiserver":
		s.API.KillServer()
		return nil
	}
	c, err := s.Component(program)
	if err == nil {
		c.Kill()
	}
	return err
}

// Start implements scenario.Stage.
func (s *stage) Start(_ context.Context, program string) error {
	switch program {
	case "evictrail", "evictrail-2":
		return s.host.Do(func() error { return s.recorder.Resume(program) })
	case "postgres":
		return s.recorder.StartDatabase()
	case "kube-apiserver":
		return s.host.Do(func() error { s.API.StartServer(); return nil })
	}
	c, err := s.Component(program)
	if err != nil {
		return err
	}
	return c.Start()
}

// History implements scenario.Stage.
func (s *stage) History() (truth.History, error) {
	h := s.witness.History()
	requests, err := truth.ReadAudit(s.AuditFile())
	h.Requests = requests
	return h, err
}

// createVMs makes what a scenario begins with: VMs that run where they should.
func (s *stage) createVMs(ctx context.Context, of scenario.Scenario) error {
	for _, vm := range of.VMs {
		if vm.Later {
			continue
		}
		if err := s.Create(ctx, vm); err != nil {
			return err
		}
	}
	return nil
}

// Create implements scenario.Stage.
func (s *stage) Create(ctx context.Context, vm scenario.VM) error {
	s.Nodes.SetScript(namespace, vm.Name, vm.Script())
	if err := s.CreateVM(ctx, cluster.VM{Namespace: namespace, Name: vm.Name, EvictionStrategy: vm.Strategy, Node: vm.Node}); err != nil {
		return err
	}
	return s.Await(ctx, vm.Name+" runs on "+vm.Node, func(ctx context.Context) (bool, error) {
		o, err := s.VMI(ctx, namespace, vm.Name)
		if err != nil {
			return false, nil //nolint:nilerr // it is not there yet
		}
		node, _, _ := unstructured.NestedString(o.Object, "status", "nodeName")
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		if phase == "Running" && node != vm.Node {
			return false, fmt.Errorf("it runs on %s", node)
		}
		return phase == "Running", nil
	})
}

// newStage starts a cluster for a scenario, and evictrail beside it.
func newStage(ctx context.Context, h *cluster.Host, o options, of scenario.Scenario) (*stage, error) {
	s := &stage{host: h, roles: of.Users, nodes: of.Nodes, programs: filepath.Join(h.Dir, "bin")}
	if o.record != "" {
		s.recordDir = filepath.Join(o.record, of.Name+"-"+o.kubeVirt)
	}
	return s, h.Do(func() error { return s.start(ctx, o.kubeVirt, of) })
}

func (s *stage) start(ctx context.Context, kubeVirt string, of scenario.Scenario) (err error) {
	nodes := make([]nodesim.Node, len(of.Nodes))
	for i, name := range of.Nodes {
		nodes[i].Name = name
	}
	s.recorder = recorder.Prepare(s.host, s.host.Dir+"/evictrail", max(of.Replicas, 1))
	s.Cluster, err = cluster.Start(s.host, cluster.Options{
		KubeVirt: kubeVirt, Nodes: nodes, Migrations: of.Parallel.Settings(), FeatureGates: of.FeatureGates,
		AuditPolicy: s.recorder.AuditPolicy(), AuditWebhook: s.recorder.AuditWebhook(), APIServer: []string{"--audit-webhook-batch-max-wait=1s"},
	})
	if err != nil {
		return err
	}
	if err := s.linkPrograms(ctx, of); err != nil {
		return err
	}
	if s.witness, err = truth.Watch(ctx, s.Admin()); err != nil {
		return err
	}
	flags, err := s.addDescheduler(ctx, of.Descheduler)
	if err != nil {
		return err
	}
	if err := s.startRecorder(flags, of.Flags); err != nil {
		return err
	}
	if err := s.startPrometheus(of); err != nil {
		return err
	}
	if err := s.bindRoles(ctx); err != nil {
		return err
	}
	if err := s.createVMs(ctx, of); err != nil || of.Descheduler == nil {
		return err
	}
	return s.Start(ctx, "descheduler")
}

// linkPrograms makes the folder from which commands take what the scenario runs of kubectl and virtctl.
func (s *stage) linkPrograms(ctx context.Context, of scenario.Scenario) error {
	if err := os.MkdirAll(s.programs, 0o700); err != nil {
		return err
	}
	for _, p := range userPrograms(of) {
		path, err := s.Build(ctx, p)
		if err != nil {
			return err
		}
		if err := os.Symlink(path, filepath.Join(s.programs, p.Name)); err != nil {
			return err
		}
	}
	return nil
}

// userPrograms returns what users run in a scenario.
func userPrograms(of scenario.Scenario) (programs []build.Program) {
	for _, p := range []build.Program{build.Kubectl(), build.Virtctl()} {
		if of.Runs(p.Name) {
			programs = append(programs, p)
		}
	}
	return programs
}

// startPrometheus starts Prometheus where there is one. A scenario that expects alerts needs it.
func (s *stage) startPrometheus(of scenario.Scenario) (err error) {
	s.alerts, err = prometheus.Start(s.host, filepath.Join(s.host.Dir, "prometheus"), s.recorder.CAFile(), s.recorder.Addresses()...)
	if errors.Is(err, prometheus.ErrNotFound) && !of.NeedsPrometheus() {
		s.host.Logf("Prometheus: LEFT OUT: %v", err)
		return nil
	}
	return err
}

// bindRoles returns users their roles in the namespace of the VMs.
func (s *stage) bindRoles(ctx context.Context) error {
	if err := s.host.Do(func() error { s.API.Namespace(namespace, nil); return nil }); err != nil {
		return err
	}
	for user, role := range s.roles {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lab:" + user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}
		if _, err := s.Client().RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("give %s the role %s: %w", user, role, err)
		}
	}
	return nil
}

// addDescheduler prepares the descheduler of a scenario, where it has one, and returns the flags by which evictrail knows it.
func (s *stage) addDescheduler(ctx context.Context, d *scenario.Descheduler) (flags []string, err error) {
	if d == nil {
		return nil, nil
	}
	metrics, err := s.AddDescheduler(ctx, cluster.Descheduler{Every: time.Duration(d.Every), PerNode: d.PerNode, Foreground: d.GateOff})
	return []string{"--descheduler-metrics-url", metrics, "--descheduler-metrics-insecure", "--descheduler-metrics-interval", "10s", "--descheduler-policy", s.PolicyFile()}, err
}

// startRecorder starts evictrail with the rights that it ships with, and a recording where one is asked for. Flags are of both, runFlags of "evictrail run".
func (s *stage) startRecorder(flags, runFlags []string) error {
	manifests, err := loadRights()
	if err != nil {
		return err
	}
	s.API.Namespace(installed, nil)
	for _, manifest := range append(manifests, s.recorder.Observer()) {
		s.API.Apply(manifest)
	}
	kubeconfig := s.API.Kubeconfig(s.API.ServiceAccount(installed, account), installed)
	if err := s.recorder.Start(kubeconfig, slices.Concat(flags, runFlags)...); err != nil || s.recordDir == "" {
		return err
	}
	s.recording, err = s.recorder.Record(s.recordDir, kubeconfig, s.AuditFile(), flags...)
	return err
}
