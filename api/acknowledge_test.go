package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
)

// ackTestID is that of the one acknowledgement that fakeAcknowledger knows, of shop/db-1.
const ackTestID = "0b6b1f0e-93a1-4c8e-9a57-6f4d3f6f2a10"

// fakeAcknowledger notes what it is to write, in the scope of a caller.
type fakeAcknowledger struct {
	scope   trail.Scope
	written *[]string
}

func (f fakeAcknowledger) Acknowledgement(_ context.Context, id trail.FactID) (trail.Acknowledgement, error) {
	if id.String() != ackTestID || !f.scope.Sees("shop") {
		return trail.Acknowledgement{}, fmt.Errorf("acknowledgement: %w", trail.ErrNotFound)
	}
	return trail.Acknowledgement{ID: id, Cluster: "prod", Namespace: "shop", VMI: "db-1", Author: "anna"}, nil
}

func (f fakeAcknowledger) Acknowledge(_ context.Context, a trail.Acknowledgement) (trail.Acknowledgement, error) {
	if a.Node == "" && !f.scope.Sees(a.Namespace) {
		return a, fmt.Errorf("VM: %w", trail.ErrNotFound)
	}
	*f.written = append(*f.written, a.Sentence())
	return a, nil
}

func (f fakeAcknowledger) Withdraw(ctx context.Context, id trail.FactID, by string) (trail.Acknowledgement, error) {
	*f.written = append(*f.written, "withdrawn by "+by)
	return f.Acknowledgement(ctx, id)
}

// newAckServer is a guarded server that takes acknowledgements, and what was written.
func newAckServer() (api.Server, *[]string) {
	f := newFakeCluster()
	f.setRights("admin", "*", "patch vmi:shop/db-1", "patch node:n1")
	f.setRights("shopkeeper", "shop", "patch vmi:shop/db-1", "patch vmi:bank/db-1")
	f.setRights("viewer", "shop")
	s, _ := newGuardedServer(f, new([]trail.Scope))
	written := new([]string)
	s.Acknowledgers = func(scope trail.Scope) api.Acknowledger { return fakeAcknowledger{scope, written} }
	return s, written
}

// sendAs sends a request with a body, as who has a token or a cookie.
func sendAs(t *testing.T, h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestWhoMayAcknowledge has callers with several rights acknowledge and withdraw.
func TestWhoMayAcknowledge(t *testing.T) {
	t.Parallel()
	const vm, node = `{"namespace": "shop", "vm": "db-1", "note": "known", "author": "mallory", "expires_at": %q}`, `{"node": "n1", "ticket": "OPS-17", "expires_at": %q}`
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for _, c := range []struct {
		name, token, method, path, body string
		expires                         time.Time
		status                          int
		says, written                   string
	}{
		{"who may, a VM", "shopkeeper", http.MethodPost, "", vm, soon, http.StatusCreated, `"author":"shopkeeper"`, "shop/db-1 is acknowledged by shopkeeper until " + soon.Format("2006-01-02 15:04:05Z") + ": known."},
		{"who may, a node", "admin", http.MethodPost, "", node, soon, http.StatusCreated, `"node":"n1"`, "node n1 is acknowledged by admin until " + soon.Format("2006-01-02 15:04:05Z") + ". Ticket OPS-17"},
		{"who may not patch", "viewer", http.MethodPost, "", vm, soon, http.StatusForbidden, "viewer may not patch virtualmachineinstance db-1 (kubevirt.io) in namespace shop", ""},
		{"who may not patch nodes", "shopkeeper", http.MethodPost, "", node, soon, http.StatusForbidden, "may not patch node n1", ""},
		{"who does not see the namespace", "shopkeeper", http.MethodPost, "", strings.Replace(vm, "shop", "bank", 1), soon, http.StatusNotFound, "nothing found", ""},
		{"nobody", "", http.MethodPost, "", vm, soon, http.StatusUnauthorized, "say who you are", ""},
		{"too late", "shopkeeper", http.MethodPost, "", vm, time.Now().Add(-time.Minute), http.StatusBadRequest, "expected a time in the future", ""},
		{"too long", "shopkeeper", http.MethodPost, "", vm, time.Now().Add(31 * 24 * time.Hour), http.StatusBadRequest, "at most 30 days", ""},
		{"what is not known", "shopkeeper", http.MethodPost, "", `{"what": %q}`, soon, http.StatusBadRequest, "expected one JSON object", ""},
		{"withdrawn", "shopkeeper", http.MethodDelete, "/" + ackTestID + "?author=mallory", "", soon, http.StatusOK, ackTestID, "withdrawn by shopkeeper"},
		{"withdrawn by who may not patch", "viewer", http.MethodDelete, "/" + ackTestID, "", soon, http.StatusForbidden, "may not patch", ""},
		{"withdrawn without an ID", "shopkeeper", http.MethodDelete, "/x", "", soon, http.StatusBadRequest, "is a UUID", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, written := newAckServer()
			body := c.body
			if body != "" {
				body = fmt.Sprintf(body, c.expires.UTC().Format(time.RFC3339))
			}
			var header []string
			if c.token != "" {
				header = []string{"Authorization", "Bearer " + c.token}
			}
			w := sendAs(t, s.Handler(), c.method, api.AcknowledgementsPath+c.path, body, header...)
			require.Equal(t, c.status, w.Code, w.Body)
			require.Contains(t, w.Body.String(), c.says)
			if c.written == "" {
				require.Empty(t, *written)
				return
			}
			require.Equal(t, []string{c.written}, *written)
		})
	}
}

// TestAcknowledgementsNeedAuth: without --auth nothing is written; with --auth=none the author has to say who they are.
func TestAcknowledgementsNeedAuth(t *testing.T) {
	t.Parallel()
	const body = `{"node": "n1", "ticket": "OPS-17"}`
	closed := api.Server{Readers: api.ForAll(&fakeReader{}), Site: &web.Site{Readers: web.ForAll(nobodysPages{})}}.Handler()
	for method, path := range map[string]string{http.MethodPost: api.AcknowledgementsPath, http.MethodDelete: api.AcknowledgementsPath + "/" + ackTestID + "?author=anna"} {
		w := sendAs(t, closed, method, path, body)
		require.Equal(t, http.StatusForbidden, w.Code)
		require.Contains(t, problemIn(t, w).Detail, "start it with --auth=kubernetes")
	}
	require.Equal(t, http.StatusNotFound, sendAs(t, closed, http.MethodPost, "/acknowledgements", "").Code)

	var written []string
	open := api.Server{Readers: api.ForAll(&fakeReader{}), Acknowledgers: func(scope trail.Scope) api.Acknowledger { return fakeAcknowledger{scope, &written} }}.Handler()
	w := sendAs(t, open, http.MethodPost, api.AcknowledgementsPath, body)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, problemIn(t, w).Detail, "say who you are")
	w = sendAs(t, open, http.MethodPost, api.AcknowledgementsPath, strings.Replace(body, "{", `{"author": "anna", `, 1))
	require.Equal(t, http.StatusCreated, w.Code)
	var a trail.Acknowledgement
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &a))
	require.WithinDuration(t, time.Now().Add(8*time.Hour), a.ExpiresAt, time.Minute)
	require.Len(t, written, 1)
}

// TestVisitorsAcknowledge sends the forms of the pages as a browser does that has signed in: the cookie counts there, not at the API, and not from
// a page of another site.
func TestVisitorsAcknowledge(t *testing.T) {
	t.Parallel()
	s, written := newAckServer()
	h := s.Handler()
	form := url.Values{"namespace": {"shop"}, "vm": {"db-1"}, "note": {"known"}, "for": {"8h"}, "back": {"/vms/shop/db-1"}, "author": {"mallory"}}.Encode()
	as := func(user string, more ...string) []string {
		return append([]string{"Content-Type", "application/x-www-form-urlencoded", "Cookie", "__Host-evictrail=" + user}, more...)
	}
	w := sendAs(t, h, http.MethodPost, "/acknowledgements", form, as("shopkeeper", "Sec-Fetch-Site", "same-origin")...)
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.Equal(t, "/vms/shop/db-1", w.Header().Get("Location"))
	w = sendAs(t, h, http.MethodPost, "/acknowledgements/withdraw", "id="+ackTestID+"&back=//evil.example", as("shopkeeper")...)
	require.Equal(t, "/", w.Header().Get("Location"), w.Body)
	require.Len(t, *written, 2)
	require.Contains(t, (*written)[0], "by shopkeeper")
	require.Equal(t, "withdrawn by shopkeeper", (*written)[1])

	for _, c := range []struct {
		path, body string
		header     []string
		status     int
		says       string
	}{
		{"/acknowledgements", form, as("viewer"), http.StatusForbidden, "Viewer may not patch"},
		{"/acknowledgements", form, as("forged"), http.StatusUnauthorized, `name="back" value="/vms/shop/db-1"`},
		{"/acknowledgements", form, as("shopkeeper", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden, "another site"},
		{"/acknowledgements", strings.Replace(form, "note=known", "note=", 1), as("shopkeeper"), http.StatusBadRequest, "say what is known"},
		{"/acknowledgements", strings.Replace(form, "8h", "x", 1), as("shopkeeper"), http.StatusBadRequest, "expected a time such as 8h"},
		{api.AcknowledgementsPath, `{"namespace": "shop", "vm": "db-1", "note": "known"}`, as("shopkeeper"), http.StatusUnauthorized, "say who you are"},
	} {
		w := sendAs(t, h, http.MethodPost, c.path, c.body, c.header...)
		require.Equal(t, c.status, w.Code, w.Body)
		require.Contains(t, w.Body.String(), c.says)
	}
	require.Len(t, *written, 2)
}
