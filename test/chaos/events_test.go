package chaos_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// kubeEvents are Kubernetes Events that exist from the beginning. It serves them in lists, in pages and in watches, as an API server does, and makes each when
// it is asked for.
type kubeEvents struct {
	count int
	event func(i int) string // JSON
}

// ServeHTTP serves a list or a watch.
func (k *kubeEvents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	if query.Get("watch") != "true" {
		k.writeList(w, query.Get("limit"), query.Get("continue"))
		return
	}
	if query.Get("sendInitialEvents") == "true" {
		for i := range k.count {
			_, _ = io.WriteString(w, `{"type":"ADDED","object":`+k.event(i)+"}\n")
		}
		_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"Event","apiVersion":"v1","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", 2*listVersion)
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func (k *kubeEvents) writeList(w io.Writer, limit, page string) {
	from, _ := strconv.Atoi(page)
	until, next := k.count, ""
	if n, _ := strconv.Atoi(limit); n > 0 && from+n < k.count {
		until, next = from+n, strconv.Itoa(from+n)
	}
	_, _ = fmt.Fprintf(w, `{"kind":"EventList","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":%q},"items":[`, 2*listVersion, next)
	for i := from; i < until; i++ {
		_, _ = io.WriteString(w, strings.Repeat(",", min(i-from, 1))+k.event(i))
	}
	_, _ = io.WriteString(w, "]}")
}

// kubeEvent makes a Kubernetes Event of the namespace of the trace, with a reason that is kept of VMIs and of VMIMs.
func kubeEvent(i int, kind, name, uid, message string) string {
	return fmt.Sprintf(`{"metadata":{"name":"e-%d","namespace":%q,"uid":"event-%d","resourceVersion":"%d","creationTimestamp":%q},`+
		`"involvedObject":{"kind":%q,"namespace":%q,"name":%q,"uid":%q},"reason":"FailedMigration","message":%q,"type":"Warning","count":1,"lastTimestamp":%q}`,
		i, namespace, i, listVersion+i, formatTimestamp(time.Now()), kind, namespace, name, uid, message, formatTimestamp(time.Now()))
}

// TestEventsOfAMegabyte has Kubernetes Events of 1 MB each, about a VMIM that never was and about a VMI, in lists that stream and in pages, as anybody can
// create them who may create Events in one namespace. Within the memory of the chart evictrail gets ready, records migrations, and does so again.
func TestEventsOfAMegabyte(t *testing.T) {
	t.Parallel()
	message := strings.Repeat("A", 1_000_000)
	for _, tt := range []struct {
		name, kind, object, uid string
		count                   int
		streams                 bool
	}{
		{"a VMIM that never was, streamed", "VirtualMachineInstanceMigration", "m", "no-such-uid", 900, true},
		{"a VMI, in pages", "VirtualMachineInstance", "db-0", "uid-db-0", 600, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			database := storetest.NewURL(t)
			c := startCluster(t, newTrace(newSeededRand(t), 10, 60))
			c.events = &kubeEvents{tt.count, func(i int) string { return kubeEvent(i, tt.kind, tt.object, tt.uid, message) }}
			e := newEvictrail(t, c, database, "evictrail-0")
			e.args = append([]string{fmt.Sprintf("KUBE_FEATURE_WatchListClient=%v", tt.streams), e.program}, e.args...)
			e.program = "env"
			e.limitMemory()
			for _, transitions := range []int{30, len(c.truth)} { // and after a restart
				e.start()
				e.awaitReady()
				c.releaseTransitions(transitions)
				awaitStored(t, database, c.released)
				e.awaitReady()
				e.requireBelowMemoryLimit()
				t.Logf("%s: %d MiB at most", tt.name, e.peakMemory()>>20)
				require.NoError(t, e.Stop())
			}
			requireTruth(t, database, c.truth)
			stored := loadRows[struct{ Count, Longest int }](t, database,
				"SELECT count(*) AS count, coalesce(max(length(detail->>'message')), 0) AS longest FROM evictrail_v1.events WHERE kind = 'kubernetes_event'")[0]
			require.LessOrEqual(t, stored.Longest, 1<<10)
			if tt.kind == "VirtualMachineInstance" {
				require.Equal(t, tt.count, stored.Count)
			}
		})
	}
}
