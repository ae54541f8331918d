package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// Component is a program of the cluster besides etcd and kube-apiserver, which kubetest has.
type Component struct {
	Name    string
	Log     string // path of what it prints, all runs of it
	host    *Host
	path    string
	args    []string
	process *kubetest.Process
}

// Component returns a component by name: kube-controller-manager, kube-scheduler, virt-api, virt-controller or descheduler.
func (c *Cluster) Component(name string) (*Component, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.components[name]
	if !ok {
		return nil, fmt.Errorf("component %q was not started", name)
	}
	return p, nil
}

// startComponent starts a program for the first time. Its working folder is its own.
func (c *Cluster) startComponent(name string, args ...string) (*Component, error) {
	p, err := c.addComponent(name, args...)
	if err != nil {
		return nil, err
	}
	return p, p.Start()
}

// addComponent makes a component known that is started later.
func (c *Cluster) addComponent(name string, args ...string) (*Component, error) {
	path, err := c.programs.Path(name)
	if err != nil {
		return nil, err
	}
	p := &Component{Name: name, Log: filepath.Join(c.host.Dir, name+".log"), host: c.host, path: path, args: args}
	c.mu.Lock()
	c.components[name] = p
	c.mu.Unlock()
	return p, nil
}

func (p *Component) dir() string { return filepath.Join(p.host.Dir, p.Name) }

// Start starts the component, after Kill once more and with the same flags. It does not wait until the component is ready.
func (p *Component) Start() error {
	if err := os.MkdirAll(p.dir(), 0o700); err != nil {
		return err
	}
	return p.host.Do(func() error {
		cmd := exec.Command(p.path, p.args...)
		cmd.Dir, cmd.Env = p.dir(), append(os.Environ(), "TMPDIR="+p.dir())
		p.process = kubetest.StartCommand(p.host, p.Log, cmd)
		return nil
	})
}

// Kill ends the component as a crash does.
func (p *Component) Kill() { p.process.Kill() }

// Pause stops the component without ending it, until Resume.
func (p *Component) Pause() error { return p.process.Pause() }

// Resume lets a paused component go on.
func (p *Component) Resume() error { return p.process.Resume() }

// PID is the ID of the component's process.
func (p *Component) PID() int { return p.process.PID() }

// Running reports whether the component has not ended.
func (p *Component) Running() bool { return p.process.Running() }

// Output returns what the component printed so far.
func (p *Component) Output() string { return p.process.Output() }
