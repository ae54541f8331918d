//go:build !linux

package embedded

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// predecessorGrace is zero: nothing has signalled a server whose parent died.
const predecessorGrace = 0

// processAttributes are empty: only Linux signals a child that its parent died.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{}
}

// isServer reports whether the process is a postmaster that we started on the data directory.
func isServer(pid int, dataDir string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres -D "+dataDir+" ")
}
