package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// Component is a program of the cluster apart from etcd and kube-apiserver, which kubetest has. One that ends by itself is started again,
// as a kubelet would: virt-controller ends when it loses its lease. It is safe for concurrent use.
type Component struct {
	Name string
	Log  string // path of what it prints, all runs of it
	host *Host
	path string
	args []string

	mu      sync.Mutex
	process *kubetest.Process // the one that runs now, or ran last
	wanted  bool              // it was started and not killed
}

// restartAfter is how long a component that ended by itself is away.
const restartAfter = 2 * time.Second

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
func (c *Cluster) startComponent(name string, args ...string) error {
	p, err := c.addComponent(name, args...)
	if err != nil {
		return err
	}
	return p.Start()
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

func (p *Component) workDir() string { return filepath.Join(p.host.Dir, p.Name) }

// Start starts the component, after Kill once more and with the same flags. It does not wait until the component is ready.
func (p *Component) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil && p.process.Running() {
		return fmt.Errorf("start %s: it runs", p.Name)
	}
	if err := os.MkdirAll(p.workDir(), 0o700); err != nil {
		return err
	}
	err := p.host.Do(func() error {
		cmd := exec.Command(p.path, p.args...)
		cmd.Dir, cmd.Env = p.workDir(), append(os.Environ(), "TMPDIR="+p.workDir())
		p.process = kubetest.StartCommand(p.host, p.Log, cmd)
		return nil
	})
	if err != nil {
		return err
	}
	p.wanted = true
	go p.restartOnExit(p.process)
	return nil
}

// restartOnExit starts the component again where this run of it ends by itself.
func (p *Component) restartOnExit(process *kubetest.Process) {
	<-process.Ended()
	select {
	case <-p.host.Context().Done():
		return
	case <-time.After(restartAfter):
	}
	if p.currentProcess() != process || !p.isWanted() {
		return
	}
	p.host.Logf("%s ended by itself: starting it again", p.Name)
	if err := p.Start(); err != nil && p.host.Context().Err() == nil {
		p.host.Logf("%v", err)
	}
}

// Kill ends the component as a crash does. It stays away until Start.
func (p *Component) Kill() {
	p.mu.Lock()
	p.wanted = false
	p.mu.Unlock()
	p.currentProcess().Kill()
}

// setFlag sets a flag, such as --name=, to another value from the next start on.
func (p *Component) setFlag(flag, value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, arg := range p.args {
		if strings.HasPrefix(arg, flag) {
			p.args[i] = flag + value
		}
	}
}

// Pause stops the component without ending it, until Resume.
func (p *Component) Pause() error { return p.currentProcess().Pause() }

// Resume lets a paused component go on.
func (p *Component) Resume() error { return p.currentProcess().Resume() }

// PID is the ID of the component's process.
func (p *Component) PID() int { return p.currentProcess().PID() }

// Running reports whether the component has not ended.
func (p *Component) Running() bool { return p.currentProcess().Running() }

// Output returns what the component printed so far.
func (p *Component) Output() string { return p.currentProcess().Output() }

func (p *Component) currentProcess() *kubetest.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

func (p *Component) isWanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}
