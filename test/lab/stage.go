package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/lab/cluster"
	"github.com/evictrail/evictrail/test/lab/nodesim"
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
	kubectl  string // path of the program
}

// Namespace implements scenario.Stage.
func (s *stage) Namespace() string { return namespace }

// user returns who asks: the administrator, or a user with all rights and a name of their own.
func (s *stage) user(name string) *rest.Config {
	if name == "" {
		return s.Admin()
	}
	return s.User(name, "system:masters")
}

// Kubectl implements scenario.Stage.
func (s *stage) Kubectl(ctx context.Context, user string, args ...string) (string, error) {
	kubeconfig, err := s.Kubeconfig(s.user(user), namespace)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, s.kubectl, append([]string{"--kubeconfig", kubeconfig}, args...)...).CombinedOutput()
	return string(out), err
}

// Advice implements scenario.Stage. The command runs in a shell whose kubectl is that user's.
func (s *stage) Advice(ctx context.Context, user string, advice scenario.Advice) error {
	answer, err := s.recorder.Ask(ctx, "why-not", namespace+"/"+advice.VM)
	if err != nil {
		return fmt.Errorf("evictrail why-not %s/%s: %w: %s", namespace, advice.VM, err, answer)
	}
	commands := slices.DeleteFunc(strings.Split(answer, "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "  ") || !strings.Contains(line, advice.Contains)
	})
	if len(commands) != 1 {
		return fmt.Errorf("commands in the answer that contain %q: %d, expected one: %s", advice.Contains, len(commands), answer)
	}
	kubeconfig, err := s.Kubeconfig(s.user(user), namespace)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", commands[0])
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Dir(s.kubectl)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.TrimSpace(commands[0]), err, out)
	}
	return nil
}

// Evict implements scenario.Stage.
func (s *stage) Evict(ctx context.Context, user, vm string) error {
	pod, err := s.LauncherPod(ctx, namespace, vm)
	if err != nil {
		return err
	}
	answer, err := s.Cluster.Evict(ctx, s.user(user), namespace, pod, nil)
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

// Kill implements scenario.Stage.
func (s *stage) Kill(_ context.Context, program string) error {
	switch program {
	case "evictrail":
		s.recorder.Kill()
		return nil
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
	case "evictrail":
		return s.host.Do(s.recorder.Resume)
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

// furnish makes what a scenario begins with: VMs that run where they should.
func (s *stage) furnish(ctx context.Context, of scenario.Scenario) error {
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
func newStage(ctx context.Context, h *cluster.Host, kubeVirt string, of scenario.Scenario) (*stage, error) {
	s := &stage{host: h}
	return s, h.Do(func() error { return s.start(ctx, kubeVirt, of) })
}

func (s *stage) start(ctx context.Context, kubeVirt string, of scenario.Scenario) (err error) {
	if s.kubectl, err = kubetest.Program("kubectl"); err != nil {
		return err
	}
	nodes := make([]nodesim.Node, len(of.Nodes))
	for i, name := range of.Nodes {
		nodes[i].Name = name
	}
	s.recorder = recorder.Prepare(s.host, s.host.Dir+"/evictrail")
	s.Cluster, err = cluster.Start(s.host, cluster.Options{
		KubeVirt: kubeVirt, Nodes: nodes, Migrations: of.Parallel.Settings(),
		AuditPolicy: s.recorder.AuditPolicy(), AuditWebhook: s.recorder.AuditWebhook(), APIServer: []string{"--audit-webhook-batch-max-wait=1s"},
	})
	if err != nil {
		return err
	}
	if s.witness, err = truth.Watch(ctx, s.Admin()); err != nil {
		return err
	}
	flags, err := s.addDescheduler(ctx, of.Descheduler)
	if err != nil {
		return err
	}
	if err := s.startRecorder(flags...); err != nil {
		return err
	}
	if err := s.furnish(ctx, of); err != nil || of.Descheduler == nil {
		return err
	}
	return s.Start(ctx, "descheduler")
}

// addDescheduler prepares the descheduler of a scenario, where it has one, and returns the flags by which evictrail knows it.
func (s *stage) addDescheduler(ctx context.Context, d *scenario.Descheduler) (flags []string, err error) {
	if d == nil {
		return nil, nil
	}
	metrics, err := s.AddDescheduler(ctx, cluster.Descheduler{Every: time.Duration(d.Every), PerNode: d.PerNode})
	return []string{"--descheduler-metrics-url", metrics, "--descheduler-metrics-insecure", "--descheduler-metrics-interval", "10s", "--descheduler-policy", s.PolicyFile()}, err
}

// startRecorder starts evictrail with the rights that it ships with.
func (s *stage) startRecorder(flags ...string) error {
	manifests, err := loadRights()
	if err != nil {
		return err
	}
	s.API.Namespace(installed, nil)
	for _, manifest := range append(manifests, s.recorder.Observer()) {
		s.API.Apply(manifest)
	}
	kubeconfig := s.API.Kubeconfig(s.API.ServiceAccount(installed, account), installed)
	return s.recorder.Start(kubeconfig, flags...)
}
