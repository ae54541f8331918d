package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// heldReader answers lists when it is released, with rows of so many bytes.
type heldReader struct {
	Reader

	answer chan struct{} // closed: at once
	size   int

	mu     sync.Mutex
	asking int
}

func (r *heldReader) Recorders(context.Context, string, time.Time, time.Time) ([]trail.RecorderStatus, error) {
	return nil, nil
}

func (r *heldReader) ListJSON(ctx context.Context, _ trail.View, _ trail.Query) (trail.Page[json.RawMessage], error) {
	r.mu.Lock()
	r.asking++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asking--
	}()
	select {
	case <-r.answer:
	case <-ctx.Done():
		return trail.Page[json.RawMessage]{}, ctx.Err()
	}
	row := json.RawMessage(`"` + strings.Repeat("x", r.size) + `"`)
	return trail.Page[json.RawMessage]{Rows: []json.RawMessage{row}}, nil
}

func (r *heldReader) countAsking() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asking
}

// askFrom asks for a list from an address, into a writer.
func askFrom(t *testing.T, h http.Handler, address string, w http.ResponseWriter) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/events", http.NoBody)
	r.RemoteAddr = address + ":1"
	h.ServeHTTP(w, r)
}

// shedCauses counts what a server refuses, by cause.
type shedCauses struct {
	mu sync.Mutex
	of map[string]int
}

func (s *shedCauses) countCause(cause, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.of[cause]++
}

// TestOneCallerLeavesRoomForOthers has one caller ask 150 times at once: two questions are asked, fourteen wait, the rest is refused, and who comes
// then is asked before all that wait. With more callers than places there is a bound for all.
func TestOneCallerLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, shed := &heldReader{answer: make(chan struct{})}, shedCauses{}
		h := Server{Readers: ForAll(r), Shed: shed.countCause}.Handler()
		codes := make(chan int, 1000)
		from := func(address string) {
			w := httptest.NewRecorder()
			askFrom(t, h, address, w)
			if w.Code == http.StatusTooManyRequests {
				require.Equal(t, "1", w.Header().Get("Retry-After"))
				require.Contains(t, w.Body.String(), "too many questions of yours at once: at most 16, and 200 a second")
			}
			codes <- w.Code
		}
		for range 150 {
			go from("10.0.0.1")
		}
		synctest.Wait()
		require.Equal(t, shareAsking, r.countAsking())
		require.Len(t, codes, 150-shareAtOnce)
		for range 150 - shareAtOnce {
			require.Equal(t, http.StatusTooManyRequests, <-codes)
		}
		require.Equal(t, 150-shareAtOnce, shed.of[ShedShare])

		go from("10.0.0.2")
		synctest.Wait()
		require.Equal(t, readAtOnce, r.countAsking(), "another has the last place at once")
		for i := range 3 * shareAtOnce {
			go from(fmt.Sprintf("10.0.1.%d", i))
		}
		synctest.Wait()
		require.Equal(t, readAtOnce, r.countAsking())
		require.Equal(t, 1, shed.of[ShedCrowded], "64 wait, of 65")
		require.Equal(t, http.StatusServiceUnavailable, <-codes)
		close(r.answer)
		for range readQueue {
			require.Equal(t, http.StatusOK, <-codes)
		}
	})
}

// TestFewCallersDoNotFillTheQueue has four callers take all places: another one is asked all the same, and the last question of one of the four is refused. Where
// each has one question there is no room for one more.
func TestFewCallersDoNotFillTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, shed := &heldReader{answer: make(chan struct{})}, shedCauses{}
		h := Server{Readers: ForAll(r), Shed: shed.countCause}.Handler()
		codes := make(chan string, 1000)
		from := func(address string) {
			w := httptest.NewRecorder()
			askFrom(t, h, address, w)
			codes <- fmt.Sprint(address, " ", w.Code)
		}
		for i := range readQueue {
			go from(fmt.Sprintf("10.0.0.%d", i%4))
			synctest.Wait()
		}
		require.Empty(t, codes)
		go from("10.0.0.9")
		synctest.Wait()
		require.Len(t, codes, 1)
		require.Regexp(t, `10\.0\.0\.[0-3] 503`, <-codes)
		for i := range readQueue {
			go from(fmt.Sprintf("10.0.1.%d", i))
			synctest.Wait()
		}
		for len(codes) > 0 {
			require.Regexp(t, `10\.0\..* 503`, <-codes)
		}
		close(r.answer)
		synctest.Wait()
		require.Len(t, codes, readQueue)
		answered := map[string]bool{}
		for range readQueue {
			answered[<-codes] = true
		}
		require.Contains(t, answered, "10.0.0.9 200")
		require.Greater(t, len(answered), readQueue/2, "many callers are answered, each once")
	})
}

// TestCallersTakeTurns has five callers wait with twelve questions each: one who comes then is asked as soon as a place is free, and the others in turns.
func TestCallersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &heldReader{answer: make(chan struct{})}
		h := Server{Readers: ForAll(r)}.Handler()
		answered := make(chan string, 100)
		from := func(address string) {
			askFrom(t, h, address, httptest.NewRecorder())
			answered <- address
		}
		for range 12 {
			for i := range 5 {
				go from(fmt.Sprintf("10.0.0.%d", i))
				synctest.Wait()
			}
		}
		go from("10.0.0.9")
		synctest.Wait()
		var order []string
		for !slices.Contains(order, "10.0.0.9") {
			r.answer <- struct{}{} // to who was asked first
			order = append(order, <-answered)
			synctest.Wait()
		}
		require.LessOrEqual(t, len(order), 6, "three that were asked when it came, two who never had a turn, and it: %v", order)
		close(r.answer)
		synctest.Wait()
	})
}

// TestAQuestionThatIsGivenUpLeavesItsPlace has callers go, time out and panic in each state, and then asks again.
func TestAQuestionThatIsGivenUpLeavesItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &heldReader{answer: make(chan struct{})}
		c := newCrowd()
		s := &reads{readers: ForAll(r), crowd: c}
		h := attachCaller(s.newHandler(listRows(trail.ViewEvents)))
		for range shareAtOnce {
			go askFrom(t, h, "10.0.0.1", httptest.NewRecorder())
		}
		time.Sleep(readTimeout)
		synctest.Wait()
		boom := attachCaller(s.newHandler(func(context.Context, Reader, *http.Request) (reply, error) { panic("boom") }))
		require.PanicsWithValue(t, "boom", func() { askFrom(t, boom, "10.0.0.1", httptest.NewRecorder()) })
		close(r.answer)
		w := httptest.NewRecorder()
		askFrom(t, h, "10.0.0.1", w)
		require.Equal(t, http.StatusOK, w.Code)
		of := c.callers["host 10.0.0.1/32"]
		require.Equal(t, [5]int{}, [5]int{c.inside, c.asking, c.sending, of.inside, of.asking})
		require.Empty(t, c.waiting)
	})
}

// TestQuestionsOfOneCallerArePaced asks one after the other: no more than so many in a second are answered, and none is refused.
func TestQuestionsOfOneCallerArePaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &heldReader{answer: make(chan struct{})}
		close(r.answer)
		h := Server{Readers: ForAll(r)}.Handler()
		began := time.Now()
		for range shareBurst + 10*shareRate {
			w := httptest.NewRecorder()
			askFrom(t, h, "10.0.0.1", w)
			require.Equal(t, http.StatusOK, w.Code)
		}
		require.InDelta(t, 10*time.Second, time.Since(began), float64(100*time.Millisecond))
		before := time.Now()
		askFrom(t, h, "10.0.0.2", httptest.NewRecorder())
		require.Equal(t, before, time.Now(), "another does not wait for that")
	})
}

// stalled is a connection whose reader has stopped reading.
type stalled struct {
	*httptest.ResponseRecorder

	goOn chan struct{}
}

func (s stalled) Write(p []byte) (int, error) {
	<-s.goOn
	return s.ResponseRecorder.Write(p)
}

// TestAnswersThatAreNotReadAreBounded has callers who do not read ask for large answers, and one who does for small and large ones.
func TestAnswersThatAreNotReadAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size = 8 << 20
		r, shed := &heldReader{answer: make(chan struct{}), size: size}, shedCauses{}
		close(r.answer)
		h := Server{Readers: ForAll(r), Shed: shed.countCause}.Handler()
		goOn := make(chan struct{})
		var done sync.WaitGroup
		for i := range 10 {
			for range 4 {
				done.Go(func() { askFrom(t, h, fmt.Sprintf("10.0.0.%d", i), stalled{httptest.NewRecorder(), goOn}) })
				synctest.Wait()
			}
		}
		large := func() int {
			w := httptest.NewRecorder()
			askFrom(t, h, "10.0.1.1", w)
			return w.Code
		}
		require.Equal(t, http.StatusServiceUnavailable, large())
		require.Equal(t, 40-sendBytes/(size+5)+1, shed.of[ShedBytes], "no more than 64 MiB are being sent, and of one caller no more than 24 MiB")
		r.size = 100
		require.Equal(t, http.StatusOK, large(), "a small answer is sent")
		close(goOn)
		done.Wait()
		r.size = size
		require.Equal(t, http.StatusOK, large())
	})
}

// TestReplaysOfOneCallerAreBounded asks for what takes long: two wait or are asked of one caller, and those of another come next.
func TestReplaysOfOneCallerAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		one, other := "one", "other"
		as := func(name *string) context.Context { return context.WithValue(t.Context(), callerKey{}, name) }
		first, err := c.awaitLongTurn(as(&one))
		require.NoError(t, err)
		order := make(chan string, 3)
		for _, name := range []*string{&one, &other} {
			go func() {
				left, err := c.awaitLongTurn(as(name))
				if err != nil {
					order <- err.Error()
					return
				}
				order <- *name
				sent, _ := left(0)
				sent()
			}()
			synctest.Wait()
		}
		_, err = c.awaitLongTurn(as(&one))
		require.ErrorIs(t, err, holdMost[holdLong].refusal)
		sent, err := first(0)
		require.NoError(t, err)
		sent()
		require.Equal(t, []string{"one", "other"}, []string{<-order, <-order})
	})
}
