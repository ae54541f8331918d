package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/store/storetest"
)

// TestHubKeepsTenantsApart has those who share a cluster ask about it by way of a hub, with the tokens of that cluster: each sees what its source shows
// them, and no more. The token is passed on, and so is that of the cookie of who has signed in; the cookie itself is not.
func TestHubKeepsTenantsApart(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	c := shareCluster(t)
	source := httptest.NewServer(c.handler)
	t.Cleanup(source.Close)
	through := *c
	through.users, through.handler = 40, newTestHub(t, 10*time.Second, "shared", source.URL)
	t.Run("see their own", func(t *testing.T) {
		t.Parallel()
		seeTheirOwn(t, &through)
	})
	t.Run("sign in", func(t *testing.T) {
		t.Parallel()
		signInAtHub(t, &through)
	})
	t.Run("who is refused by one source", func(t *testing.T) {
		t.Parallel()
		open := serveEvictrail(t, playedURL(t, drainCluster))
		both := *c
		both.handler = newTestHub(t, 10*time.Second, "shared", source.URL, "open", open.URL)
		c.rights.setNamespaces("nothing", "tenant-none")
		const refused = "Source shared shows you nothing: user-of-nothing may get virtualmachineinstances (kubevirt.io) in no namespace"
		for _, target := range []string{"/", "/evacuations", "/search?q=web", "/api/v1/evacuations", "/nodes/worker-2?cluster=" + drainCluster} {
			w := both.getAs(t, "nothing", target)
			require.Equal(t, http.StatusOK, w.Code, target)
			require.Contains(t, w.Header().Get(api.MissingHeader), refused, target)
			if !strings.HasPrefix(target, "/api") {
				require.Contains(t, w.Body.String(), "Source shared shows you nothing", target)
			}
		}
		w := both.getAs(t, "nothing", "/api/v1/vms/"+c.vms[0]+"/why?cluster=shared/shared")
		require.Equal(t, http.StatusForbidden, w.Code)
		require.Contains(t, w.Body.String(), "source shared, which is asked for cluster shared, shows you nothing: user-of-nothing may get")
	})
}

func signInAtHub(t *testing.T, c *sharedCluster) {
	t.Helper()
	namespace, _, _ := strings.Cut(c.vms[0], "/")
	c.rights.setNamespaces("visitor", namespace)
	send := func(method, target, body string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		return w
	}
	w := send(http.MethodGet, "/vms/"+c.vms[0]+"?cluster=shared", "")
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Contains(t, w.Body.String(), `action="/signin"`)
	require.Equal(t, http.StatusUnauthorized, send(http.MethodGet, "/", "").Code)
	require.Equal(t, http.StatusUnauthorized, send(http.MethodPost, "/signin", "token=wrong&back=/").Code)
	require.Equal(t, http.StatusForbidden, send(http.MethodPost, "/signin", "token=visitor&back=/", "Sec-Fetch-Site", "cross-site").Code)
	w = send(http.MethodPost, "/signin", "token=visitor&back=/", "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	cookie := strings.Split(w.Header().Get("Set-Cookie"), ";")[0]
	require.Equal(t, "__Host-evictrail=visitor", cookie)
	for _, target := range []string{"/", "/vms/" + c.vms[0], "/vms/" + c.vms[0] + "?cluster=shared", "/api/v1/evacuations"} {
		w := send(http.MethodGet, target, "", "Cookie", cookie)
		require.Equal(t, http.StatusOK, w.Code, target)
		for owner := range c.findNamespaces(w.Body.String()) {
			require.Equal(t, namespace, owner, target)
		}
	}
	w = send(http.MethodGet, "/vms/"+c.vms[0]+"?cluster=shared", "", "Cookie", cookie)
	for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"} {
		require.NotEmpty(t, w.Header().Get(name))
	}
	require.Empty(t, w.Header().Get("Set-Cookie"))
	require.Equal(t, http.StatusForbidden, send(http.MethodPost, "/acknowledgements", "cluster=shared", "Cookie", cookie, "Origin", "https://elsewhere.example").Code)
	require.Equal(t, http.StatusUnauthorized, send(http.MethodPost, "/api/v1/acknowledgements", `{"cluster": "shared"}`, "Cookie", cookie).Code, "of the API the cookie does not count")
}
