package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
)

// TestAdmissionAnswersFirst answers before what is done with the review.
func TestAdmissionAnswersFirst(t *testing.T) {
	t.Parallel()
	answered, handled := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(api.Server{Admission: &api.Admission{Access: api.Access{Open: true}, Review: func(raw []byte) ([]byte, func(), error) {
		if string(raw) != "review" {
			return nil, nil, errors.New("no review")
		}
		return []byte(`{"allowed":true}`), func() { <-answered; close(handled) }, nil
	}}}.Handler())
	t.Cleanup(server.Close)
	goOn := sync.OnceFunc(func() { close(answered) })
	t.Cleanup(goOn) // before the server is closed, which waits for its handlers
	post := func(body string) (int, string) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/admission", strings.NewReader(body))
		require.NoError(t, err)
		resp, err := server.Client().Do(r)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	code, body := post("review")
	require.Equal(t, http.StatusOK, code)
	require.JSONEq(t, `{"allowed":true}`, body)
	goOn() // only now may the rest go on: the answer was here before
	<-handled
	code, body = post("nonsense")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "no review")
	code, _ = post(strings.Repeat("x", 512<<10+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, code)
}

// TestAdmissionBoundsWhatItHolds refuses reviews while as many are being read as there is room for.
func TestAdmissionBoundsWhatItHolds(t *testing.T) {
	t.Parallel()
	const room = 64
	started, finish := make(chan struct{}), make(chan struct{})
	h := api.Server{Admission: &api.Admission{Access: api.Access{Open: true}, Review: func([]byte) ([]byte, func(), error) {
		started <- struct{}{}
		<-finish
		return []byte("{}"), func() {}, nil
	}}}.Handler()
	codes := make(chan int, room)
	for range room {
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/admission", strings.NewReader("x")))
			codes <- w.Code
		}()
		<-started
	}
	code, _, _ := sendPost(t, h, "/admission", "x")
	require.Equal(t, http.StatusServiceUnavailable, code)
	close(finish)
	for range room {
		require.Equal(t, http.StatusOK, <-codes)
	}
}

// TestSlowReviewsKeepNobodyOut opens more connections whose bodies never end than there are places: every review is answered during that time, and they are
// refused after a second.
func TestSlowReviewsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	const slow = 70
	server := httptest.NewServer(api.Server{Admission: &api.Admission{Access: api.Access{Open: true}, Review: func([]byte) ([]byte, func(), error) {
		return []byte("{}"), func() {}, nil
	}}}.Handler())
	t.Cleanup(server.Close)
	began := time.Now()
	var unfinished []net.Conn
	for range slow {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprint(conn, "POST /admission HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
		require.NoError(t, err)
		unfinished = append(unfinished, conn)
	}
	for range slow {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/admission", strings.NewReader("review"))
		require.NoError(t, err)
		resp, err := server.Client().Do(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	}
	for _, conn := range unfinished {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	}
	require.GreaterOrEqual(t, time.Since(began), time.Second)
}

// endless is a body of which a part has come and the rest does not, until it is let go.
type endless struct {
	start io.Reader
	read  chan<- struct{} // is sent to when the start was read
	gone  <-chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	if n, err := e.start.Read(p); err == nil {
		return n, nil
	}
	e.read <- struct{}{}
	<-e.gone
	return 0, io.ErrUnexpectedEOF
}

// TestReviewsThatArriveAreBounded refuses bodies of an address that has enough of them on their way, and of all where they hold too many bytes.
func TestReviewsThatArriveAreBounded(t *testing.T) {
	t.Parallel()
	const fromOne, body, bytes = 128, 512 << 10, 16 << 20
	h := func() http.Handler {
		return api.Server{Admission: &api.Admission{Access: api.Access{Open: true}, Review: func([]byte) ([]byte, func(), error) { return []byte("{}"), func() {}, nil }}}.Handler()
	}
	post := func(h http.Handler, address string, body io.Reader) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/admission", body)
		r.RemoteAddr = address + ":40000"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	arrive := func(h http.Handler, n, size int) (finish func()) {
		read, gone, codes := make(chan struct{}), make(chan struct{}), make(chan int, n)
		for range n {
			go func() {
				codes <- post(h, "192.0.2.1", &endless{strings.NewReader(strings.Repeat("x", size)), read, gone})
			}()
			<-read
		}
		return func() {
			close(gone)
			for range n {
				require.Equal(t, http.StatusBadRequest, <-codes)
			}
		}
	}
	many := h()
	finish := arrive(many, fromOne, 1)
	require.Equal(t, http.StatusServiceUnavailable, post(many, "192.0.2.1", strings.NewReader("x")))
	require.Equal(t, http.StatusOK, post(many, "192.0.2.2", strings.NewReader("x")), "another address has places of its own")
	finish()
	require.Equal(t, http.StatusOK, post(many, "192.0.2.1", strings.NewReader("x")))

	large := h()
	finish = arrive(large, bytes/body, body)
	require.Equal(t, http.StatusServiceUnavailable, post(large, "192.0.2.2", strings.NewReader("x")))
	finish()
	require.Equal(t, http.StatusOK, post(large, "192.0.2.2", strings.NewReader("x")))
}

// TestReviewsOfApiServersAlone answers who knows the path, or shows a certificate, and nobody else: what they send is not read.
func TestReviewsOfApiServersAlone(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef0123"
	var denied []string
	reviewed := 0
	h := api.Server{Admission: &api.Admission{
		Access: api.Access{Tokens: func() ([]string, error) { return []string{"the-one-before-this-one", secret}, nil }, Denied: func(cause string) { denied = append(denied, cause) }},
		Review: func([]byte) ([]byte, func(), error) { reviewed++; return []byte("{}"), func() {}, nil },
	}}.Handler()
	for _, path := range []string{"/admission", "/admission/", "/admission/wrong", "/admission/" + secret + "x", "/admission/" + secret + "/more"} {
		code, body, _ := sendPost(t, h, path, "review")
		require.Equal(t, http.StatusNotFound, code, path)
		require.NotContains(t, body, secret)
	}
	require.Zero(t, reviewed)
	require.Equal(t, []string{api.DeniedReview, api.DeniedReview, api.DeniedReview}, denied, "the others are paths that nothing is at")
	for _, path := range []string{"/admission/" + secret, "/admission/the-one-before-this-one"} {
		code, _, _ := sendPost(t, h, path, "review")
		require.Equal(t, http.StatusOK, code)
	}
	code, _, _ := sendPost(t, h, "/admission", "review", "Authorization", "Bearer "+secret)
	require.Equal(t, http.StatusNotFound, code, "API servers send no such header")
	require.Equal(t, 2, reviewed)
}
