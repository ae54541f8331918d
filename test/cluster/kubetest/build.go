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

// programs are the main packages of the module test/kube, by the name of their program.
var programs = map[string]string{
	"etcd":           "go.etcd.io/etcd/server/v3",
	"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
	"kubectl":        "k8s.io/kubernetes/cmd/kubectl",
}

// Program builds a program of the control plane from source where it is not there yet, and gives its path: etcd,
// kube-apiserver or kubectl. Those in the folder that EVICTRAIL_KUBE_BIN names, where it is set, are taken as they are.
func Program(name string) (string, error) {
	build, known := builds[name]
	if !known {
		return "", fmt.Errorf("program %q: expected etcd, kube-apiserver or kubectl", name)
	}
	if dir := os.Getenv("EVICTRAIL_KUBE_BIN"); dir != "" {
		return filepath.Join(dir, name), nil
	}
	return build()
}

var builds = func() map[string]func() (string, error) {
	all := map[string]func() (string, error){}
	for name, pkg := range programs {
		all[name] = sync.OnceValues(func() (string, error) { return build("test/kube", name, pkg) })
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
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, pkg)
	cmd.Dir, cmd.Stderr = filepath.Join(Root(), module), os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	return path, nil
}
