package main

import (
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// startProcess runs the service as a process of its own until it listens. What it writes goes to log.
func startProcess(t *testing.T, args []string) (s runningService, process *exec.Cmd, log *lockedBuilder) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	log = &lockedBuilder{}
	process = exec.CommandContext(t.Context(), self, args...)
	process.Env, process.Stderr = append(os.Environ(), asCommand+"=1"), log
	require.NoError(t, process.Start())
	require.Eventually(t, func() bool { return address.MatchString(log.String()) }, 2*time.Minute, 5*time.Millisecond, log)
	return runningService{base: "http://" + address.FindStringSubmatch(log.String())[1], client: http.DefaultClient}, process, log
}

// TestRunStoppedWithoutItsDatabase stops evictrail with SIGTERM while its database is away and facts wait for it: what was seen and what was acknowledged
// to an API server is stored by the next one. No list says again what an audit event said, so what is lost stays lost.
func TestRunStoppedWithoutItsDatabase(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	const name = "c-node-drain"
	kubeconfig, further := clusterAt(t, name, countHalfLines)
	url := storetest.NewURL(t)
	args := []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", t.TempDir()}
	s, process, log := startProcess(t, args)
	require.Eventually(t, func() bool { return s.getBody(t, "/readyz") == "ok\n" && len(queryRecordedEvents(t, url)) > 0 }, 2*time.Minute, 20*time.Millisecond, log)
	before := len(queryRecordedEvents(t, url))
	allow := forbidConnections(t, url)
	further(countAllLines)
	code, body := s.postBody(t, "/audit", auditLog(t, name))
	require.Equal(t, http.StatusOK, code, body)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "database does not take facts") }, 2*time.Minute, 20*time.Millisecond, log)
	s.awaitSteadySpool(t)
	asked := time.Now()
	require.NoError(t, process.Process.Signal(syscall.SIGTERM))
	require.NoError(t, process.Wait(), log)
	require.Less(t, time.Since(asked), 20*time.Second, "it ends without its database")

	calmConfig, calmFurther := clusterAt(t, name, countHalfLines)
	calmURL := storetest.NewURL(t)
	calm := startRun(t, []string{"run", "--kubeconfig", calmConfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", calmURL}, nil)
	calmFurther(countAllLines)
	code, body = calm.postBody(t, "/audit", auditLog(t, name))
	require.Equal(t, http.StatusOK, code, body)

	allow()
	again := startRun(t, args, nil)
	stores := func() bool { // the undisturbed one, too, sees the last of it a little later
		stored := queryRecordedEvents(t, calmURL)
		return len(stored)-before > 60 && reflect.DeepEqual(stored, queryRecordedEvents(t, url))
	}
	for until := time.Now().Add(2 * time.Minute); !stores() && time.Now().Before(until); {
		time.Sleep(200 * time.Millisecond)
	}
	require.Greater(t, len(queryRecordedEvents(t, calmURL))-before, 60)
	require.Equal(t, queryRecordedEvents(t, calmURL), queryRecordedEvents(t, url), "facts are missing: %s", log)
	require.Equal(t, exitFound, calm.stop())
	require.Equal(t, exitFound, again.stop())
	require.Equal(t, queryRecordedEvents(t, calmURL), queryRecordedEvents(t, url), "each once")
}

var spooledFacts = regexp.MustCompile(`\nevictrail_spool_facts [1-9].*\n`)

// awaitSteadySpool waits until no facts have come to the spool for a while: all that happened was seen.
func (s runningService) awaitSteadySpool(t *testing.T) {
	t.Helper()
	last, times := "", 0
	require.Eventually(t, func() bool {
		spooled := spooledFacts.FindString(s.getBody(t, "/metrics"))
		if spooled == "" || spooled != last {
			last, times = spooled, 0
		}
		times++
		return times > 10
	}, 2*time.Minute, 300*time.Millisecond, "facts keep coming, or none is in the spool")
}
