package ports

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// portOfOther is the variable by which TestLocks has its own binary lock a port, as a second process.
const portOfOther = "EVICTRAIL_TEST_LOCK_PORT"

// TestLocks wants a port to be given once, to one process.
func TestLocks(t *testing.T) {
	if text := os.Getenv(portOfOther); text != "" {
		port, err := strconv.Atoi(text)
		require.NoError(t, err)
		locked, err := lockPort(port)
		require.NoError(t, err)
		t.Logf("locked: %t", locked)
		return
	}
	t.Parallel()
	_, text, err := net.SplitHostPort(Free(t))
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	locked, err := lockPort(port)
	require.NoError(t, err)
	require.False(t, locked, "by this process")

	other := func(port string) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLocks$", "-test.v")
		cmd.Env = append(os.Environ(), portOfOther+"="+port)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	require.Contains(t, other(text), "locked: false")
	require.Contains(t, other("0"), "locked: true") // nobody is given port 0
}
