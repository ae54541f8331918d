package kubetest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// Root is the repository's folder.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../..")
}

// programs are main packages and the modules that have them, by the name of their program.
var programs = map[string]struct{ module, pkg string }{
	"etcd":           {"test/kube", "go.etcd.io/etcd/server/v3"},
	"kube-apiserver": {"test/kube", "k8s.io/kubernetes/cmd/kube-apiserver"},
	"kubectl":        {"test/kube", "k8s.io/kubernetes/cmd/kubectl"},
	"helm":           {"test/helm", "helm.sh/helm/v4/cmd/helm"},
}

// KubernetesStamp are flags of the linker that say which Kubernetes it is, as releases do: without it an API server calls itself v0.0.0, which is older than anything
// that helm looks for. It is the version in test/kube/go.mod.
const KubernetesStamp = "-X k8s.io/component-base/version.gitVersion=v1.37.0 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

// Program builds a program from source where it is not there yet, and gives its path: etcd, kube-apiserver, kubectl or helm.
// Those in the folder that EVICTRAIL_KUBE_BIN names, where it is set, are taken as they are.
func Program(name string) (string, error) {
	build, known := builds[name]
	if !known {
		return "", fmt.Errorf("program %q: expected etcd, kube-apiserver, kubectl or helm", name)
	}
	if dir := os.Getenv("EVICTRAIL_KUBE_BIN"); dir != "" {
		return filepath.Join(dir, name), nil
	}
	return build()
}

var builds = func() map[string]func() (string, error) {
	all := map[string]func() (string, error){}
	for name, from := range programs {
		all[name] = sync.OnceValues(func() (string, error) { return build(from.module, name, from.pkg) })
	}
	return all
}()

// Evictrail builds evictrail, and gives its path.
var Evictrail = sync.OnceValues(func() (string, error) { return build(".", "evictrail", "./cmd/evictrail") })

// build builds a program into bin/kube. Tests of several packages may do so at once: a lock makes the others wait, and find that
// there is nothing left to do.
func build(module, name, pkg string) (path string, err error) {
	dir := filepath.Join(Root(), "bin/kube")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	path = filepath.Join(dir, name)
	flags := "-s -w"
	if module == "test/kube" {
		flags += " " + KubernetesStamp
	}
	cmd := exec.Command("go", "build", "-ldflags", flags, "-o", path, pkg)
	cmd.Dir, cmd.Stderr = filepath.Join(Root(), module), os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	return path, nil
}
