package embedded

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// predecessorGrace is how long a server whose parent died may take to end by itself: it has been signalled.
const predecessorGrace = 10 * time.Second

// processAttributes make the kernel interrupt a child when the thread that forked it ends.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
}

// isServer reports whether the process is a postmaster on the data directory. Postmasters work in their data
// directory; where that is not for us to see (root without CAP_SYS_PTRACE), their command line names it. A zombie has
// neither.
func isServer(pid int, dataDir string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	args := bytes.Split(line, []byte{0})
	if filepath.Base(string(args[0])) != "postgres" {
		return false
	}
	cwd := fmt.Sprintf("/proc/%d/cwd", pid)
	if _, err := os.Stat(cwd); err == nil {
		return sameFile(cwd, dataDir)
	}
	for _, arg := range args[1:] {
		if sameFile(string(arg), dataDir) {
			return true
		}
	}
	return false
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
