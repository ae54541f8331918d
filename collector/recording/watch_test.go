package recording

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serveMixed serves steps as serve does, those that begin with "pods:" as lines of pods.
func serveMixed(t *testing.T, options ServerOptions, steps ...string) *served {
	t.Helper()
	var all []string
	for _, step := range steps {
		rest, pods := strings.CutPrefix(step, "pods:")
		line := renderLines(rest)[0]
		if pods {
			line = strings.Replace(line, `"nodes"`, `"pods"`, 1)
		}
		all = append(all, line)
	}
	rec, err := Open(zipRecording(t, all...), "rec", nil)
	require.NoError(t, err)
	s := &served{Server: NewServer(rec, options)}
	h := httptest.NewServer(s.Server)
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

func TestListsAreOfTheirKindAndNeverWithoutItems(t *testing.T) {
	t.Parallel()
	s := serveMixed(t, ServerOptions{}, "SYNC a 5")
	for path, want := range map[string]string{
		"/api/v1/pods":                                          `"apiVersion":"v1","items":[],"kind":"PodList"`,
		"/api/v1/events":                                        `"apiVersion":"v1","items":[],"kind":"EventList"`,
		"/apis/kubevirt.io/v1/kubevirts":                        `"apiVersion":"kubevirt.io/v1","items":[],"kind":"KubeVirtList"`,
		"/apis/kubevirt.io/v1/virtualmachines":                  `"apiVersion":"kubevirt.io/v1","items":[],"kind":"VirtualMachineList"`,
		"/apis/kubevirt.io/v1/virtualmachineinstances":          `"apiVersion":"kubevirt.io/v1","items":[],"kind":"VirtualMachineInstanceList"`,
		"/apis/kubevirt.io/v1/virtualmachineinstancemigrations": `"apiVersion":"kubevirt.io/v1","items":[],"kind":"VirtualMachineInstanceMigrationList"`,
		"/apis/policy/v1/poddisruptionbudgets":                  `"apiVersion":"policy/v1","items":[],"kind":"PodDisruptionBudgetList"`,
	} {
		code, body := s.getPath(t, path)
		require.Equal(t, http.StatusOK, code, path)
		require.Contains(t, body, want, path)
	}
}

func TestRequestsWaitForTheFirstWholeList(t *testing.T) {
	t.Parallel()
	s := serveMixed(t, ServerOptions{}, "SYNC a 5", "pods:SYNC_EMPTY 5", "SYNC b 5")
	require.Equal(t, []Position{{"pods", "5"}}, s.releaseLines(2))
	leaving, leave := context.WithCancel(t.Context())
	left, answered := make(chan struct{}), make(chan string, 1)
	ask := func(ctx context.Context) string {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/nodes", nil))
		return w.Body.String()
	}
	go func() { ask(leaving); close(left) }()
	go func() { answered <- ask(t.Context()) }()
	code, _ := s.getPath(t, "/api/v1/pods")
	require.Equal(t, http.StatusOK, code)
	leave()
	<-left
	require.Empty(t, answered)
	s.releaseLines(1)
	require.Contains(t, <-answered, `"name":"b"`)
}

func TestARecordingMayBeginInTheMiddleOfAWatch(t *testing.T) {
	t.Parallel()
	s := serveMixed(t, ServerOptions{}, "MODIFIED a 9", "MODIFIED a 10")
	require.Equal(t, []Position{{"nodes", "9"}}, s.releaseLines(1))
	w := s.startWatch(t, "&sendInitialEvents=true")
	s.releaseLines(1)
	require.Equal(t, []string{"ADDED a 9", "BOOKMARK  9 initial-events-end", "MODIFIED a 10"}, w.readNotifications(3))
}

func TestVersionsAreNumbers(t *testing.T) {
	t.Parallel()
	s := serveMixed(t, ServerOptions{}, "SYNC a 5")
	for _, query := range []string{"?resourceVersion=x", "?watch=1&resourceVersion=x"} { // at once: nothing is released
		code, body := s.getPath(t, "/api/v1/nodes"+query)
		require.Equal(t, http.StatusBadRequest, code)
		require.Contains(t, body, `"reason":"BadRequest"`)
	}
}

func TestTheHighestVersionCountsWhereOneFalls(t *testing.T) {
	t.Parallel()
	s := serveMixed(t, ServerOptions{}, "SYNC a 5", "MODIFIED a 20", "ADDED b 9")
	s.releaseLines(1)
	w := s.startWatch(t, "&resourceVersion=5")
	s.releaseLines(2)
	require.Equal(t, []string{"MODIFIED a 20", "ADDED b 9"}, w.readNotifications(2))
	_, body := s.getPath(t, "/api/v1/nodes")
	require.Contains(t, body, `"metadata":{"resourceVersion":"20"}`)
}

func TestAWatchEndsInTime(t *testing.T) {
	t.Parallel()
	s := serveMixed(t, ServerOptions{}, "SYNC a 5")
	s.releaseLines(1)
	require.Equal(t, []string{"ADDED a 1", "end"}, s.startWatch(t, "&resourceVersion=0&timeoutSeconds=1").readNotifications(2))
}

func TestANewListWithoutABreakIsOne(t *testing.T) {
	t.Parallel()
	s := serveMixed(t, ServerOptions{}, "SYNC a 5", "SYNC_EMPTY 7")
	s.releaseLines(1)
	w := s.startWatch(t, "&resourceVersion=5")
	s.releaseLines(1)
	require.Equal(t, []string{"end"}, w.readNotifications(1))
	code, body := s.getPath(t, "/api/v1/nodes?watch=1&resourceVersion=5")
	require.Equal(t, http.StatusGone, code)
	require.Contains(t, body, "too old resource version: 5 (7)")
}

// Every other cut drops the connection. However often that happens, a client that resumes gets each notification once.
func TestNothingIsLostInCuts(t *testing.T) {
	t.Parallel()
	const every, last = 3, 31
	steps := []string{"SYNC a 1"}
	var want []string
	for v := 2; v <= last; v++ {
		steps = append(steps, fmt.Sprintf("MODIFIED a %d", v))
		want = append(want, steps[v-1])
	}
	s := serveMixed(t, ServerOptions{CutEvery: every}, steps...)
	s.releaseLines(1)
	var seen []string
	clean, dropped := 0, 0
	for len(seen) < len(want) {
		w := s.startWatch(t, fmt.Sprintf("&resourceVersion=%d", len(seen)+1))
		s.releaseLines(every)
		seen = append(seen, w.readNotifications(every)...)
		require.Equal(t, []string{"end"}, w.readNotifications(1))
		if w.body.Err() == nil {
			clean++
		} else {
			require.ErrorIs(t, w.body.Err(), io.ErrUnexpectedEOF)
			dropped++
		}
	}
	require.Equal(t, want, seen)
	require.Equal(t, []int{5, 5}, []int{clean, dropped})
}

// A watch may lag behind those of other resources. A list must not be of a version that the resource has yet to reach:
// its client would take the next notification for one it has.
func TestExpiryIsNotAheadOfTheNextLine(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"pods:MODIFIED a 12", "pods:SYNC_EMPTY 12", "pods:BOOKMARK - 12"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			s := serveMixed(t, ServerOptions{ExpireEvery: 3}, "pods:SYNC a 7", "SYNC_EMPTY 7", "ADDED n 20", next)
			require.Subset(t, s.releaseLines(3), []Position{{"nodes", "20"}, {"pods", "11"}})
			_, body := s.getPath(t, "/api/v1/pods")
			require.Contains(t, body, `"metadata":{"resourceVersion":"11"}`)
			require.Equal(t, []Position{{"pods", "12"}}, s.releaseLines(1))
		})
	}
}

func TestReleaseDoesNotWaitForAClientThatReadsNothing(t *testing.T) {
	t.Parallel()
	s := serveMixed(t, ServerOptions{ExpireEvery: 2}, "SYNC a 1", "MODIFIED a 2", "MODIFIED a 3")
	s.releaseLines(1)
	ctx, leave := context.WithCancel(t.Context())
	client := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{}), ctx.Done()}
	ended, released := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.ServeHTTP(client, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/nodes?watch=1&resourceVersion=1", nil))
	}()
	<-client.answered
	s.releaseLines(1)
	<-client.written // it is being sent that its version is expired
	go func() {
		defer close(released)
		s.releaseLines(1)
	}()
	select {
	case <-released:
	case <-time.After(20 * time.Second):
		t.Error("Release hangs")
	}
	leave()
	<-ended
}

// stuck is a connection whose client reads nothing after the answer's head.
type stuck struct {
	*httptest.ResponseRecorder
	answered, written chan struct{} // closed when it comes to that
	gone              <-chan struct{}
}

func (s *stuck) WriteHeader(code int) {
	s.ResponseRecorder.WriteHeader(code)
	close(s.answered)
}

func (s *stuck) Write([]byte) (int, error) {
	close(s.written)
	<-s.gone
	return 0, io.ErrClosedPipe
}
