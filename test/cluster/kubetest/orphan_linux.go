package kubetest

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the command when the thread that started it ends. Go keeps its threads until the process ends,
// unless a goroutine that is locked to one returns: start nothing from such a goroutine.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
