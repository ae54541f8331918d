package build

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// Program is a main package and the module that pins its version.
type Program struct {
	Name   string   // of the executable
	Module string   // folder of the module, relative to the repository
	Source string   // an import path, or files relative to Module
	Flags  string   // of the linker, besides -s -w
	Extra  []string // files relative to Module that it is made of, besides go.mod and go.sum
}

// Kubernetes returns the programs of the control plane, etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and kubectl.
func Kubernetes() []Program {
	programs := []Program{{Name: "etcd", Module: "test/kube", Source: "go.etcd.io/etcd/server/v3"}}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
		programs = append(programs, Program{Name: name, Module: "test/kube", Source: "k8s.io/kubernetes/cmd/" + name, Flags: kubetest.KubernetesStamp})
	}
	return programs
}

// kubeVirtModules is the folder of the modules of KubeVirt, each named after its version.
const kubeVirtModules = "test/lab/kubevirt"

// KubeVirtVersions returns the versions of KubeVirt that there are modules of, oldest first: v1.6.0.
func KubeVirtVersions() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(kubetest.Root(), kubeVirtModules))
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

// deschedulerFlags have the descheduler call itself by its version, and look for the authority of Prometheus in its working folder:
// outside of a pod, the path that it has otherwise needs root.
const deschedulerFlags = "-X sigs.k8s.io/descheduler/pkg/version.version=v0.36.0 " +
	"-X sigs.k8s.io/descheduler/pkg/descheduler/client.K8sPodCAFilePath=ca.crt"

// Descheduler returns the descheduler.
func Descheduler() Program {
	return Program{Name: "descheduler", Module: "test/lab/descheduler", Source: "sigs.k8s.io/descheduler/cmd/descheduler", Flags: deschedulerFlags}
}

// Virtctl returns the virtctl that scenarios use on every version of KubeVirt.
func Virtctl() Program {
	return Program{Name: "virtctl", Module: "test/lab/virtctl", Source: "kubevirt.io/kubevirt/cmd/virtctl"}
}
