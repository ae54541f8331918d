package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Program is a main package and the module that pins its version.
type Program struct {
	Name   string   // of the executable
	Module string   // folder of the module, relative to the repository
	Source string   // an import path, or files relative to Module
	Flags  string   // of the linker, apart from -s -w
	Tags   string   // of the compiler, with commas
	Extra  []string // files relative to Module that it is made of, apart from go.mod and go.sum
}

// kubeModule is the module of Kubernetes, etcd and the descheduler.
const kubeModule = "test/kube"

// kubernetesVersion is the version in test/kube/go.mod, as releases are stamped with it: without it an API server calls itself
// v0.0.0, which is older than anything that helm looks for.
const kubernetesVersion = "-X k8s.io/component-base/version.gitVersion=v1.37.2 " +
	"-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

// ControlPlane returns the programs of a control plane.
func ControlPlane() []Program {
	return []Program{Etcd(), APIServer(), kubernetesProgram("kube-controller-manager"), kubernetesProgram("kube-scheduler")}
}

// Etcd returns etcd.
func Etcd() Program {
	return Program{Name: "etcd", Module: kubeModule, Source: "go.etcd.io/etcd/server/v3"}
}

// APIServer returns kube-apiserver.
func APIServer() Program { return kubernetesProgram("kube-apiserver") }

// Kubectl returns kubectl.
func Kubectl() Program { return kubernetesProgram("kubectl") }

func kubernetesProgram(name string) Program {
	return Program{Name: name, Module: kubeModule, Source: "k8s.io/kubernetes/cmd/" + name, Flags: kubernetesVersion}
}

// deschedulerFlags have the descheduler call itself by its version, and look for the authority of Prometheus in its working folder:
// outside of a pod, the path that it has otherwise needs root.
const deschedulerFlags = "-X sigs.k8s.io/descheduler/pkg/version.version=v0.36.0 " +
	"-X sigs.k8s.io/descheduler/pkg/descheduler/client.K8sPodCAFilePath=ca.crt"

// Descheduler returns the descheduler. It is built with the client libraries of the Kubernetes beside it, which are one minor
// version newer than those of its own go.mod: nothing has to be compiled twice.
func Descheduler() Program {
	return Program{Name: "descheduler", Module: kubeModule, Source: "sigs.k8s.io/descheduler/cmd/descheduler", Flags: deschedulerFlags}
}

// Helm returns helm.
func Helm() Program {
	return Program{Name: "helm", Module: "test/helm", Source: "helm.sh/helm/v4/cmd/helm"}
}

// packagingModule is the module of what packs a release and looks at it.
const packagingModule = "test/packaging"

// Nfpm returns nfpm, which makes packages of Debian and Red Hat.
func Nfpm() Program {
	return Program{Name: "nfpm", Module: packagingModule, Source: "github.com/goreleaser/nfpm/v2/cmd/nfpm"}
}

// Krew returns krew, which installs plugins of kubectl.
func Krew() Program {
	return Program{Name: "krew", Module: packagingModule, Source: "sigs.k8s.io/krew/cmd/krew"}
}

// KrewValidator returns what checks the manifests of krew's index.
func KrewValidator() Program {
	return Program{Name: "validate-krew-manifest", Module: packagingModule, Source: "sigs.k8s.io/krew/cmd/validate-krew-manifest"}
}

// Actionlint returns actionlint, which checks the workflows of GitHub.
func Actionlint() Program {
	return Program{Name: "actionlint", Module: packagingModule, Source: "github.com/rhysd/actionlint/cmd/actionlint"}
}

// KubeStateMetrics returns kube-state-metrics.
func KubeStateMetrics() Program {
	return Program{Name: "kube-state-metrics", Module: "test/peers", Source: "k8s.io/kube-state-metrics/v2"}
}

// PersesChecker returns what checks dashboards as Perses does.
func PersesChecker() Program {
	return Program{Name: "perses", Module: persesModule, Source: ".", Extra: []string{"main.go", "plugins.go", "schemas.go"}}
}

const persesModule = "test/perses"

// PersesModules returns the folders of the Go modules in which Perses and its plugins have their schemas, by the last part of their names.
func PersesModules() (map[string]string, error) {
	args := []string{"mod", "download", "-json", "github.com/perses/perses"}
	for _, plugin := range []string{"markdown", "prometheus", "statchart", "table", "timeserieschart"} {
		args = append(args, "github.com/perses/plugins/"+plugin)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = filepath.Join(Root(), persesModule), append(os.Environ(), "GOWORK=off")
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("download modules of Perses: %w", err)
	}
	dirs := map[string]string{}
	for modules := json.NewDecoder(bytes.NewReader(text)); modules.More(); {
		var m struct{ Path, Dir string }
		if err := modules.Decode(&m); err != nil {
			return nil, fmt.Errorf("download modules of Perses: %w", err)
		}
		dirs[path.Base(m.Path)] = m.Dir
	}
	return dirs, nil
}

// Prometheus returns prometheus, and Promtool promtool of the same version, without the clouds' service discovery and what needs a C compiler.
func Prometheus() Program { return prometheusProgram("prometheus") }

// Promtool returns promtool.
func Promtool() Program { return prometheusProgram("promtool") }

func prometheusProgram(name string) Program {
	return Program{Name: name, Module: "test/promtool", Source: "github.com/prometheus/prometheus/cmd/" + name, Tags: "remove_all_sd,netgo"}
}

// Virtctl returns the virtctl that scenarios use on every version of KubeVirt.
func Virtctl() Program {
	return Program{Name: "virtctl", Module: "test/lab/virtctl", Source: "kubevirt.io/kubevirt/cmd/virtctl"}
}

// kubeVirtModules is the folder of the modules of KubeVirt, each named after its version.
const kubeVirtModules = "test/lab/kubevirt"

// KubeVirtVersions returns the versions of KubeVirt that there are modules of, oldest first: v1.6.0.
func KubeVirtVersions() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(Root(), kubeVirtModules))
	if err != nil {
		return nil, fmt.Errorf("list versions of KubeVirt: %w", err)
	}
	var versions []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "v") {
			versions = append(versions, e.Name())
		}
	}
	return versions, nil
}

// KubeVirt returns the programs of a version of KubeVirt: virt-api, virt-controller and kubevirt-manifests, which prints what
// virt-operator would install.
func KubeVirt(version string) ([]Program, error) {
	versions, err := KubeVirtVersions()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(versions, version) {
		return nil, fmt.Errorf("version %q of KubeVirt: expected one of %s", version, strings.Join(versions, ", "))
	}
	module := kubeVirtModules + "/" + version
	return []Program{
		{Name: "kubevirt-manifests", Module: module, Source: "../manifests.go", Extra: []string{"../manifests.go"}},
		{Name: "virt-controller", Module: module, Source: "kubevirt.io/kubevirt/cmd/virt-controller"},
		{Name: "virt-api", Module: module, Source: "kubevirt.io/kubevirt/cmd/virt-api"},
	}, nil
}
