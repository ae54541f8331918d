package kubetest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is a program that runs in the background and can be killed.
type Process struct {
	cmd  *exec.Cmd
	log  string // path of what it prints
	done chan struct{}
	err  error // once done
}

// StartProcess starts a program whose output goes to the end of a file. It is killed when the test ends, where it still runs.
func StartProcess(tb TB, log, program string, args ...string) *Process {
	tb.Helper()
	return StartCommand(tb, log, exec.Command(program, args...))
}

// StartCommand starts a command as StartProcess starts a program. The command is killed, too, when this process dies before it.
func StartCommand(tb TB, log string, cmd *exec.Cmd) *Process {
	tb.Helper()
	dieWithParent(cmd)
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	p := &Process{cmd: cmd, log: log, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("the end of what %s printed:\n%s", cmd.Path, p.outputTail())
		}
	})
	return p
}

// Kill ends the program as a crash does, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stopGrace is how long a program has to end: what a pod of ours has (terminationGracePeriodSeconds).
const stopGrace = 30 * time.Second

// Stop asks the program to end, and waits until it has. Where it takes longer than a pod may it prints its goroutines and is killed. The error is
// how it ended.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(os.Interrupt)
	select {
	case <-p.done:
		return p.err
	case <-time.After(stopGrace):
	}
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.Kill()
	}
	return fmt.Errorf("%s did not end within %s of being asked; its goroutines then:\n%s", p.cmd.Path, stopGrace, p.outputTail())
}

// Pause stops the program without ending it, until Resume.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused program go on.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// PID is the process's ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Running reports whether the program has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Output returns what the program printed so far.
func (p *Process) Output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (p *Process) outputTail() string {
	const most = 32 << 10
	text := p.Output()
	return text[max(0, len(text)-most):]
}
