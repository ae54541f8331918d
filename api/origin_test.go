package api_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// TestOtherSitesCannotWrite sends what writes as a page of another site has a browser send it, as a page of ours does, and as a program.
func TestOtherSitesCannotWrite(t *testing.T) {
	t.Parallel()
	written, denied := 0, []string{}
	var scopes []trail.Scope
	s, _ := newGuardedServer(newFakeCluster(), &scopes)
	s.Denied = func(cause string) { denied = append(denied, cause) }
	s.Audit = &api.Audit{Access: api.Access{Open: true}, Take: func(_ context.Context, body io.Reader) (any, bool, error) {
		written++
		_, err := io.Copy(io.Discard, body)
		return struct{}{}, false, err
	}}
	s.Admission = &api.Admission{Access: api.Access{Open: true}, Review: func([]byte) ([]byte, func(), error) { return []byte("{}"), func() { written++ }, nil }}
	s.Readers = api.ForAll(&fakeReader{whatIf: func(context.Context, whatif.Question) (whatif.Answer, error) { return whatif.Answer{}, nil }})
	s.Acknowledgers = func(trail.Scope) api.Acknowledger { written++; return nil }
	s.Site = &web.Site{Readers: web.ForAll(nobodysPages{})}
	h := s.Handler()
	post := func(method, path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://evictrail.example"+path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "text/plain")
		r.Header.Set("Authorization", "Bearer admin")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	refused := 0
	for _, path := range []string{"/audit", "/admission", "/api/v1/whatif", "/api/v1/acknowledgements", "/acknowledgements", "/acknowledgements/withdraw", "/signin", "/signout", "/theme", "/nowhere"} {
		for _, header := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"},
		} {
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
				w := post(method, path, header...)
				require.Equal(t, http.StatusForbidden, w.Code, "%s %s %s", method, path, header)
				require.Contains(t, problemIn(t, w).Detail, "a page of another site")
				refused++
			}
		}
	}
	require.Len(t, denied, refused, "each is counted")
	require.Zero(t, written)
	for _, header := range [][]string{nil, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", "http://evictrail.example"}} {
		require.Equal(t, http.StatusOK, post(http.MethodPost, "/audit", header...).Code, header)
		require.Equal(t, http.StatusOK, post(http.MethodPost, "/admission", header...).Code, header)
	}
	require.Equal(t, 8, written)
	require.Equal(t, http.StatusOK, sendGet(t, h, "/livez", "Sec-Fetch-Site", "cross-site").Code, "reading is not writing: without a token it reads nothing")
}

// TestBrowsersComeOverHTTPSAgain asks over HTTPS and without, under the names of a service and of what many services share.
func TestBrowsersComeOverHTTPSAgain(t *testing.T) {
	t.Parallel()
	h := api.Server{Health: &api.Health{Status: func(context.Context) trail.RecorderStatus { return trail.RecorderStatus{} }, Metrics: http.NotFoundHandler()}}.Handler()
	for _, c := range []struct {
		host string
		tls  *tls.ConnectionState
		want string
	}{
		{"evictrail.example", &tls.ConnectionState{}, "max-age=31536000"},
		{"evictrail.example:8443", &tls.ConnectionState{}, "max-age=31536000"},
		{"evictrail.example", nil, ""},
		{"localhost:8443", &tls.ConnectionState{}, ""},
		{"127.0.0.1:8443", &tls.ConnectionState{}, ""},
		{"[::1]:8443", &tls.ConnectionState{}, ""},
	} {
		for path, status := range map[string]int{"/livez": http.StatusOK, "/nowhere": http.StatusNotFound} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
			r.Host, r.TLS = c.host, c.tls
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, status, w.Code)
			require.Equal(t, c.want, w.Header().Get("Strict-Transport-Security"), "%s%s", c.host, path)
		}
	}
}
