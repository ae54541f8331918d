package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// finding is a Reader that finds so many VMs.
type finding struct {
	Reader
	total int
}

func (finding) Summaries(context.Context) ([]trail.ClusterSummary, error) { return nil, nil }

func (finding) Recorders(context.Context, string, time.Time, time.Time) ([]trail.RecorderStatus, error) {
	return nil, nil
}

func (f finding) Find(context.Context, string, string) (found []trail.Found, total int, err error) {
	for i := range min(f.total, trail.MostFound) {
		found = append(found, trail.Found{Cluster: "c", Kind: trail.FoundVM, Namespace: "shop", Name: fmt.Sprint("vm-3", i)})
	}
	return found, f.total, nil
}

func TestSearchSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	for total, want := range map[int]string{3: "", 50: "", 738: "Showing 50 of 738.", 1000: "Showing 50 of at least 1000."} {
		t.Run(fmt.Sprint(total), func(t *testing.T) {
			t.Parallel()
			router := mux.NewRouter()
			(&Site{Readers: ForAll(finding{total: total})}).Route(router)
			answer := httptest.NewRecorder()
			router.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/search?q=vm-3", nil))
			require.Equal(t, http.StatusOK, answer.Code)
			require.Contains(t, answer.Body.String(), "/vms/shop/vm-30?cluster=c")
			if want == "" {
				require.NotContains(t, answer.Body.String(), "Showing")
			} else {
				require.Contains(t, answer.Body.String(), want)
			}
		})
	}
}
