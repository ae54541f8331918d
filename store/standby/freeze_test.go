package standby_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// stopProcesses stops a server and its processes until the test ends.
func stopProcesses(t *testing.T, server int, processes string) {
	t.Helper()
	all := []int{server}
	for _, text := range strings.Fields(processes) {
		pid, err := strconv.Atoi(text)
		require.NoError(t, err)
		all = append(all, pid)
	}
	for _, pid := range all {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			require.ErrorIs(t, err, syscall.ESRCH) // the one that was asked for them
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
}
