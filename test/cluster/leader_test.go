package cluster_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/ports"
)

// kills is how often the replica that derives is killed; for ten of them, and for what is left, one ends in order and one hangs.
var kills = flag.Int("cluster.kills", 2, "how often the replica that derives is killed under load")

// What is promised of the time until the other replica derives.
const (
	afterCrash = 20 * time.Second
	afterEnd   = 3 * time.Second
)

// replica is one of two evictrails that run at once.
type replica struct {
	s       *site
	name    string
	address string
	url     string
	process *kubetest.Process
	runs    int
}

func (r *replica) start() {
	r.s.t.Helper()
	program, err := build.Evictrail()
	require.NoError(r.s.t, err)
	r.runs++
	r.process = kubetest.StartProcess(r.s.t, filepath.Join(r.s.dir, fmt.Sprintf("%s-%d.log", r.name, r.runs)), program,
		"run", "--kubeconfig", r.s.kubeconfig, "--cluster", "c1", "--database-url", r.url, "--listen", r.address,
		"--tls-cert-file", r.s.cert, "--tls-key-file", r.s.key, "--audit-token-file", r.s.token,
		"--leader-elect", "--leader-lease", leaseName, "--replica", r.name, "--spool-dir", filepath.Join(r.s.dir, "spool-"+r.name))
}

// crash kills the replica. What it returns starts it again, as those of leave and hang do.
func (r *replica) crash() (again func()) {
	r.process.Kill()
	return r.start
}

// requestStop asks the replica to end. On a busy machine the database may not take in time what it still had to store: then it says so, and the
// other has stored that as well.
func (r *replica) requestStop() (again func()) {
	left := make(chan error, 1)
	go func() { left <- r.process.Stop() }()
	return func() {
		if err := <-left; err != nil {
			require.Contains(r.s.t, r.process.Output(), "stopped before everything was stored")
			r.s.t.Logf("%s could not store its rest: %v", r.name, err)
		}
		r.start()
	}
}

// hang has the replica stand still.
func (r *replica) hang() (again func()) {
	require.NoError(r.s.t, r.process.Pause())
	return func() { require.NoError(r.s.t, r.process.Resume()) }
}

// isLeader asks the replica whether it derives. One that does not answer does not.
func (r *replica) isLeader() bool {
	answer, err := r.s.client.Get("https://" + r.address + "/metrics")
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK && strings.Contains(string(text), "\nevictrail_leader 1\n")
}

// TestTwoReplicas runs two replicas while VMs are moved all the time. The one that derives is killed again and again, ends in order,
// or hangs until the other has taken over and then goes on: nothing is lost or doubled, and what is derived is what deriving all
// facts again returns.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteOptions{})
	s.Namespace(shop, nil)
	s.makeNodes("worker-1", "worker-2")
	url := storetest.NewURL(t)
	both := []*replica{{s: s, name: "evictrail-0", address: s.address, url: url}, {s: s, name: "evictrail-1", address: ports.Free(t), url: url}}
	for _, r := range both {
		r.start()
	}
	s.awaitReady()
	c := s.startCrowd(6, 100*time.Millisecond)

	var crashes, ends, hangs []time.Duration
	for n := range *kills {
		crashes = append(crashes, handOver(t, both, (*replica).crash))
		if n%10 == 0 {
			ends = append(ends, handOver(t, both, (*replica).requestStop))
			hangs = append(hangs, handOver(t, both, (*replica).hang))
			t.Logf("the other replica derived after %s", formatDistribution("a crash", crashes))
		}
	}
	truth := c.stopMovers()
	t.Logf("the other replica derived after %s", formatDistribution("a crash", crashes))
	t.Logf("the other replica derived after %s", formatDistribution("an end in order", ends))
	t.Logf("the other replica derived after %s", formatDistribution("a hang", hangs))
	if *kills >= 10 { // the long form has the machine to itself; beside other tests the times are in the log
		require.Less(t, slices.Max(crashes), afterCrash)
		require.Less(t, slices.Max(ends), afterEnd)
		require.Less(t, slices.Max(hangs), afterCrash)
	}

	awaitNoNewEvents(t, url)
	require.Zero(t, requireRecorded(t, url, truth), "what one replica did not see the other did")
	done := map[string]string{}
	for _, x := range truth {
		done[x.UID] = x.Phase
	}
	awaitDerived(t, url, done)
	for _, r := range both {
		require.NoError(t, r.process.Stop())
	}
	requireRederived(t, url)
}

// handOver does something to the replica that derives, and returns how long it took until the other did. Then both run again.
func handOver(t *testing.T, both []*replica, do func(leader *replica) (again func())) time.Duration {
	t.Helper()
	var leader, other *replica
	require.Eventually(t, func() bool {
		for i, r := range both {
			if r.isLeader() {
				leader, other = r, both[1-i]
			}
		}
		return leader != nil
	}, time.Minute, 50*time.Millisecond, "one replica derives")
	time.Sleep(rand.N(2 * time.Second)) // somewhere between two renewals
	began := time.Now()
	again := do(leader)
	require.Eventually(t, other.isLeader, 3*time.Minute, 20*time.Millisecond, "the other replica derives")
	took := time.Since(began)
	again()
	require.Eventually(t, func() bool { return leader.process.Running() && !leader.isLeader() && leader.isReady() }, 3*time.Minute, 50*time.Millisecond, "it follows")
	return took
}

// isReady asks the replica whether it sees everything.
func (r *replica) isReady() bool {
	answer, err := r.s.client.Get("https://" + r.address + "/readyz")
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode == http.StatusOK
}

// formatDistribution returns how times are spread.
func formatDistribution(after string, times []time.Duration) string {
	times = slices.Sorted(slices.Values(times))
	at := func(share float64) time.Duration {
		return times[int(share*float64(len(times)-1))].Round(10 * time.Millisecond)
	}
	return fmt.Sprintf("%s (%d): least %s, median %s, p90 %s, p99 %s, most %s", after, len(times), at(0), at(0.5), at(0.9), at(0.99), at(1))
}

// awaitDerived waits until every migration has its outcome.
func awaitDerived(t *testing.T, url string, last map[string]string) {
	t.Helper()
	outcomes := map[string]string{"Succeeded": "succeeded", "Failed": "failed"}
	awaitNoProblem(t, 500*time.Millisecond, func() string {
		derived := map[string]string{}
		for _, r := range loadRows[struct {
			UID     string  `json:"migration_uid"`
			Outcome *string `json:"outcome"`
		}](t, url, "SELECT migration_uid, outcome FROM evictrail_v1.migrations") {
			if r.Outcome != nil {
				derived[r.UID] = *r.Outcome
			}
		}
		for uid, phase := range last {
			if derived[uid] != outcomes[phase] {
				return fmt.Sprintf("%s: %q after %s", uid, derived[uid], phase)
			}
		}
		if len(derived) != len(last) {
			return fmt.Sprintf("%d of %d", len(derived), len(last))
		}
		return ""
	}, "every migration is derived")
}

// requireRederived derives everything again from the facts and wants the same rows. Nobody else may derive during that time.
func requireRederived(t *testing.T, url string) {
	t.Helper()
	views := []string{"evacuations", "migrations", "placements", "cooldown_decisions", "loops", "eviction_requests", "timeline"}
	all := func() map[string][]string {
		out := map[string][]string{}
		for _, view := range views {
			for _, r := range loadRows[map[string]any](t, url, "SELECT (to_jsonb(v) - 'changed_at') AS row FROM evictrail_v1."+view+" v") {
				out[view] = append(out[view], fmt.Sprint(r["row"]))
			}
			slices.Sort(out[view])
		}
		return out
	}
	before := all()
	require.NotEmpty(t, before["migrations"])
	db, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, before, all())
}
