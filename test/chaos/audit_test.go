package chaos_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// auditEvent is an event of an audit log, and when it was logged.
type auditEvent struct {
	at   time.Time
	line string
}

// auditDay makes up the audit log of a day: polls of evictions, most of them refused as they are under way already, changes of nodes and of
// migrations, and what is none of ours.
func auditDay(r *rand.Rand, events int, day time.Time) []auditEvent {
	users := []string{"alice", "system:serviceaccount:kube-system:descheduler-sa", "system:serviceaccount:kube-system:drainer"}
	vms := max(10, events/100)
	out := make([]auditEvent, events)
	for i := range out {
		at := day.Add(time.Duration(int64(24*time.Hour) / int64(events) * int64(i)))
		vm := fmt.Sprintf("db-%d", r.IntN(vms))
		verb, object, code, message := "create", fmt.Sprintf(`"resource":"pods","namespace":%q,"name":%q,"subresource":"eviction"`, namespace, launcherPodName(vm)), 429, underWay(vm)
		switch r.IntN(10) {
		case 7:
			object, code, message = fmt.Sprintf(`"resource":"virtualmachineinstancemigrations","apiGroup":"kubevirt.io","namespace":%q,"name":"m-%d"`, namespace, i), 201, ""
		case 8:
			verb, object, code, message = "patch", fmt.Sprintf(`"resource":"nodes","name":%q`, nodeName(r.IntN(nodes))), 200, ""
		case 9:
			verb, object, code, message = "get", `"resource":"pods","namespace":"shop"`, 200, ""
		}
		id := fmt.Sprintf("%08x-7cc6-47d4-ad93-%012x", i, i)
		out[i] = auditEvent{at, auditLine(id, at, verb, users[r.IntN(len(users))], object, code, message)}
	}
	return out
}

// auditPoll makes up one poll of an eviction, whose audit ID nobody else has.
func auditPoll(r *rand.Rand, at time.Time) (id, line string) {
	vm := fmt.Sprintf("db-%d", r.IntN(vmsOfFlood))
	id = fmt.Sprintf("%08x-7cc6-47d4-ad93-%012x", r.Uint32(), r.Uint64N(1<<48))
	return id, auditLine(id, at, "create", "alice", fmt.Sprintf(`"resource":"pods","namespace":%q,"name":%q,"subresource":"eviction"`, namespace, launcherPodName(vm)), 429, underWay(vm))
}

func underWay(vm string) string {
	return fmt.Sprintf(`admission webhook denied the request: Evacuation in progress: Eviction triggered evacuation of VMI \"%s/%s\"`, namespace, vm)
}

func auditLine(id string, at time.Time, verb, user, object string, code int, message string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":%q,"stage":"ResponseComplete","requestURI":"/","verb":%q,`+
		`"user":{"username":%q},"objectRef":{%s},"responseStatus":{"metadata":{},"message":"%s","code":%d},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`,
		id, verb, user, object, message, code, at.Format(time.RFC3339Nano), at.Add(30*time.Millisecond).Format(time.RFC3339Nano))
}

// shuffleEvents repeats a share of events, and puts them in the order in which they come when each is up to so late.
func shuffleEvents(r *rand.Rand, events []auditEvent, share float64, late time.Duration) []auditEvent {
	type sent struct {
		auditEvent
		at time.Time
	}
	var all []sent
	for _, e := range events {
		for again := true; again; again = r.Float64() < share/(1+share) {
			all = append(all, sent{e, e.at.Add(time.Duration(r.Int64N(int64(late))))})
		}
	}
	slices.SortStableFunc(all, func(a, b sent) int { return a.at.Compare(b.at) })
	out := make([]auditEvent, len(all))
	for i, s := range all {
		out[i] = s.auditEvent
	}
	return out
}

// auditBatch is how many events an API server sends at once.
//
// Source: kube-apiserver --audit-webhook-batch-max-size.
const auditBatch = 400

// postAuditEvents sends events as an API server does, again while it is asked to come later. It returns how often that was.
func (e *evictrail) postAuditEvents(ctx context.Context, events []auditEvent) (later int, err error) {
	lines := make([]string, len(events))
	for i, x := range events {
		lines[i] = x.line
	}
	body := []byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[` + strings.Join(lines, ",") + `]}`)
	for ; ; later++ {
		code, after, text, err := e.sendAuditBody(ctx, body)
		switch {
		case err != nil:
			return later, err
		case code == http.StatusOK:
			return later, nil
		case code != http.StatusServiceUnavailable && code != http.StatusTooManyRequests, after == "":
			return later, fmt.Errorf("answered with %d, Retry-After %q: %s", code, after, text)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return later, ctx.Err()
		}
	}
}

// sendAuditBody posts a body once.
func (e *evictrail) sendAuditBody(ctx context.Context, body []byte) (code int, retryAfter, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+e.address+"/audit", bytes.NewReader(body))
	if err != nil {
		return 0, "", "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", "", err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header.Get("Retry-After"), string(raw), err
}

// TestT9AuditDisorder sends the audit events of a day in disorder, some again and again, and then the whole day once more: the rows are those of an import
// of the same day's log, in order.
//
// T9 of the chaos matrix (docs/chaos.md): an audit log in disorder, with repetitions.
func TestT9AuditDisorder(t *testing.T) {
	t.Parallel()
	r := newSeededRand(t)
	events := chooseCount(20_000, 1_000_000)
	day := auditDay(r, events, time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -2))
	tr := newTrace(r, max(10, events/100), 1)

	inOrder := storetest.NewURL(t)
	recordCluster(t, startCluster(t, tr), inOrder, nil)
	log := filepath.Join(t.TempDir(), "audit.log")
	file, err := os.Create(log)
	require.NoError(t, err)
	for _, x := range day {
		_, err = file.WriteString(x.line + "\n")
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
	began := time.Now()
	imported, err := exec.CommandContext(t.Context(), newEvictrail(t, startCluster(t, tr), inOrder, "import").program, "audit", "import", log, "--cluster", "c1", "--database-url", inOrder).CombinedOutput()
	require.NoError(t, err, string(imported))
	took := time.Since(began)

	mixed := storetest.NewURL(t)
	sent, later := 0, 0
	began = time.Now()
	var memory int64
	recordCluster(t, startCluster(t, tr), mixed, func(e *evictrail) {
		e.awaitReady()
		for _, again := range [][]auditEvent{shuffleEvents(r, day, 0.3, time.Minute), day} {
			for batch := range slices.Chunk(again, auditBatch) {
				n, err := e.postAuditEvents(t.Context(), batch)
				require.NoError(t, err)
				sent, later = sent+len(batch), later+n
			}
		}
		memory = e.peakMemory()
	})
	t.Logf("T9: %d events of a day imported in %s; %d sent in disorder and again in %s, %d times asked to come later, %d MiB at most",
		events, took.Round(time.Second), sent, time.Since(began).Round(time.Second), later, memory>>20)
	require.Greater(t, sent, 2*events+events/5)
	require.Less(t, memory, int64(limit))
	views := append([]string{"events"}, derivedViews...)
	want := loadHistory(t, inOrder, views...)
	require.Greater(t, len(want["events"]), events/2)
	requireSame(t, want, loadHistory(t, mixed, views...))
}
