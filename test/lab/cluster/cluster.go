package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/lab/nodesim"
)

// Cluster is a running cluster of the lab.
type Cluster struct {
	API     *kubetest.Cluster // etcd and kube-apiserver; call its methods within Host.Do
	Nodes   *nodesim.Simulator
	LoadURL string // where the load of the nodes is served: nodesim.LoadHandler

	options  Options
	host     *Host
	programs build.Paths

	mu         sync.Mutex
	components map[string]*Component
}

// readyIn bounds each wait of a start, on a machine that does other things as well.
const readyIn = 3 * time.Minute

// Start builds what is not built yet, and starts a cluster. It returns when KubeVirt is ready. What was started, also before an error,
// ends with the host.
func Start(h *Host, o Options) (*Cluster, error) {
	c := &Cluster{options: o, host: h, components: map[string]*Component{}}
	return c, c.start(h.ctx)
}

func (c *Cluster) start(ctx context.Context) error {
	programs, err := Programs(c.options.KubeVirt) // the descheduler is built when it is started
	if err != nil {
		return err
	}
	var installed manifests
	steps := []struct {
		what string
		do   func() error
	}{
		{"programs", func() (err error) {
			c.programs, err = build.Build(ctx, c.host.progress, programs...)
			return err
		}},
		{"manifests", func() (err error) {
			installed, err = loadManifests(ctx, c.programs["kubevirt-manifests"])
			return err
		}},
		{"etcd and kube-apiserver", func() error { return c.startCluster(installed.kinds) }},
		{"KubeVirt's objects", func() error { return c.installKubeVirt(ctx, installed) }},
		{"kube-controller-manager and kube-scheduler", c.startControlPlane},
		{"virt-api and virt-controller", func() error { return c.startKubeVirt(ctx, installed.hooks) }},
		{"nodes", func() error { return c.startNodes(ctx) }},
	}
	for _, step := range steps {
		began := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("start %s: %w", step.what, err)
		}
		c.host.Logf("%s: ready after %s", step.what, time.Since(began).Round(10*time.Millisecond))
	}
	return nil
}

// Build builds a program that the cluster itself does not need, and returns its path.
func (c *Cluster) Build(ctx context.Context, p build.Program) (string, error) {
	built, err := build.Build(ctx, c.host.progress, p)
	maps.Copy(c.programs, built)
	return built[p.Name], err
}

// Programs returns the programs that every cluster with that version of KubeVirt runs, for build.Build and build.Missing.
func Programs(kubeVirt string) ([]build.Program, error) {
	virt, err := build.KubeVirt(kubeVirt)
	if err != nil {
		return nil, err
	}
	return append(build.ControlPlane(), virt...), nil
}

// startCluster starts etcd and kube-apiserver, with the kinds of this version of KubeVirt.
func (c *Cluster) startCluster(kinds string) error {
	return c.host.Do(func() error {
		c.API = kubetest.Start(c.host, kubetest.Options{
			AuditPolicy: cmp.Or(c.options.AuditPolicy, DefaultAuditPolicy), AuditWebhook: c.options.AuditWebhook, Flags: c.options.APIServer, Kinds: kinds,
		})
		return nil
	})
}

// startNodes starts the simulated nodes, and serves their load.
func (c *Cluster) startNodes(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(c.host.Dir, "nodesim.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	c.host.Cleanup(func() { _ = log.Close() })
	pace := nodesim.DefaultPace()
	if c.options.Pace != nil {
		pace = *c.options.Pace
	}
	c.Nodes, err = nodesim.Start(ctx, nodesim.Options{
		Nodes: c.options.Nodes, Pace: pace, Log: slog.New(slog.NewTextHandler(log, nil)),
		Admin: c.Admin(), Handler: c.serviceAccount("kubevirt", "kubevirt-handler"),
		Kubelet: func(node string) *rest.Config { return c.User("system:node:"+node, "system:nodes") },
	})
	if err != nil {
		return err
	}
	c.host.Cleanup(c.Nodes.Wait)
	return c.serveLoad()
}
