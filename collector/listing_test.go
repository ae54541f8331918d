package collector

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

const endOfList = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"200","annotations":{"k8s.io/initial-events-end":"true"}}}}`

// lister answers requests for VMIs by a function of a test's, in turn, and others as an api.
type lister struct {
	*api
	list func(w http.ResponseWriter, r *http.Request)
}

func (l *lister) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, vmis) {
		l.api.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	l.list(w, r)
}

// writeLines answers with lines, at once.
func writeLines(w http.ResponseWriter, lines ...string) {
	_, _ = fmt.Fprintln(w, strings.Join(lines, "\n"))
	_ = http.NewResponseController(w).Flush()
}

// TestPagesAreTakenOneByOne lists VMIs from a server that knows no other way: it returns the second page when what the first one says is stored.
func TestPagesAreTakenOneByOne(t *testing.T) {
	t.Parallel()
	var r *running
	started := make(chan struct{})
	a := &lister{api: newAPI()}
	a.older = true
	a.list = func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		switch {
		case q.Has("watch"):
			a.api.ServeHTTP(w, req)
		case q.Get("limit") == "" || q.Get("resourceVersion") != "":
			t.Errorf("not in pages: %s", req.URL)
		case q.Get("continue") == "":
			writeLines(w, `{"metadata":{"resourceVersion":"100","continue":"more"},"items":[`+vmiJSON("a", "2", "")+`,`+vmiJSON("b", "3", "")+`]}`)
		default:
			<-started
			r.requireEventually(t, "the first page is stored", func() bool { return r.sink.countKinds()[trail.KindVMIPlaced] == 2 })
			writeLines(w, `{"metadata":{"resourceVersion":"100"},"items":[`+vmiJSON("c", "4", "")+`]}`)
		}
	}
	r = startOn(t, a, a.api, &sink{}, nil)
	close(started)
	require.NoError(t, r.Taken(t.Context(), vmis, "100"))
	require.NoError(t, r.Flush(t.Context()))
	require.Equal(t, map[trail.Kind]int{trail.KindVMIPlaced: 3}, r.sink.countKinds())
	require.Contains(t, r.log.String(), `"watch synced" resource=virtualmachineinstances.kubevirt.io count=3`)
}

// TestAListBreaksOff has lists end before they are whole: what they said is kept, and what they did not say is not taken for gone. When one is
// whole what vanished is noticed, once, and the time since the watch before is a gap.
func TestAListBreaksOff(t *testing.T) {
	t.Parallel()
	const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`
	var mu sync.Mutex
	attempts := []func(w http.ResponseWriter){
		func(w http.ResponseWriter) {
			writeLines(w, formatNotification("ADDED", vmiJSON("a", "2", "")), expired)
		},
		func(w http.ResponseWriter) {
			writeLines(w, formatNotification("ADDED", vmiJSON("a", "2", "")), formatNotification("ADDED", vmiJSON("b", "3", "")), formatNotification("ADDED", vmiJSON("c", "4", "")),
				formatNotification("DELETED", vmiJSON("c", "5", "")), endOfList, formatNotification("MODIFIED", vmiJSON("b", "201", "")),
				expired)
		},
		func(w http.ResponseWriter) {
			writeLines(w, formatNotification("ADDED", vmiJSON("d", "202", "")), expired)
		},
	}
	whole := make(chan struct{})
	a := &lister{api: newAPI()}
	a.list = func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if len(attempts) > 0 {
			attempts[0](w)
			attempts = attempts[1:]
			return
		}
		select {
		case <-whole:
		case <-req.Context().Done():
			return
		}
		writeLines(w, formatNotification("ADDED", vmiJSON("d", "202", "")), strings.Replace(endOfList, "200", "300", 1))
		<-req.Context().Done()
	}
	r := startOn(t, a, a.api, &sink{}, nil)
	r.requireEventually(t, "the list that broke off is stored", func() bool { return r.sink.countKinds()[trail.KindVMIPlaced] == 4 })
	require.NoError(t, r.Flush(t.Context()))
	require.Equal(t, 1, r.sink.countKinds()[trail.KindVMIEnded], "c went while it was listed, a and b may be there")
	require.Zero(t, r.sink.countKinds()[trail.KindGapClosed])
	require.NotContains(t, mapSince(r.listWatchedSources(r.Clock())), vmis)
	close(whole)
	require.NoError(t, r.Taken(t.Context(), vmis, "300"))
	require.NoError(t, r.Flush(t.Context()))
	require.Equal(t, map[trail.Kind]int{trail.KindVMIPlaced: 4, trail.KindVMIEnded: 3, trail.KindGapOpened: 1, trail.KindGapClosed: 1}, r.sink.countKinds())
	var ended []string
	for _, f := range r.sink.facts {
		if f.Kind == trail.KindVMIEnded {
			ended = append(ended, f.VMI)
		}
		if f.Kind == trail.KindGapClosed {
			require.Equal(t, trail.ReasonExpired, f.Reason)
		}
	}
	require.ElementsMatch(t, []string{"a", "b", "c"}, ended)
}
