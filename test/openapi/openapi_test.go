package openapi_test

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// named are the parameters of paths that mean something on the recordings.
var named = strings.NewReplacer("{namespace}", "demo", "{name}", "nbr-1", "{node}", "worker-1")

// documentPath is the document's own, which is read before anything else.
const documentPath = "/api/v1/openapi.yaml"

// TestEachRouteAnswersAsDocumented walks through the document and asks each GET route: as it is, with the example of each
// parameter, and for what it must refuse.
func TestEachRouteAnswersAsDocumented(t *testing.T) {
	t.Parallel()
	s := startService(t, openStore(t, playRecordings(t)))
	for path, item := range s.model.Paths.PathItems.FromOldest() {
		if item.Get == nil || path == documentPath {
			continue
		}
		t.Run(item.Get.OperationId, func(t *testing.T) {
			base := url.Values{}
			ofOne := slices.Contains([]string{"advise", "backtestAlerts"}, item.Get.OperationId)
			if strings.Contains(path, "{") || ofOne { // about one cluster
				base.Set("cluster", map[bool]string{true: "b-dual-retry-loop-v1.8", false: "k-blocked-slot"}[strings.Contains(path, "{node}")])
			}
			for _, p := range item.Get.Parameters {
				if p.In == "query" && *orFalse(p.Required) {
					base.Set(p.Name, p.Example.Value)
				}
			}
			target := named.Replace(path)
			require.Equal(t, http.StatusOK, s.getValidated(t, addQuery(target, base)).status)
			for _, p := range item.Get.Parameters {
				if p.In == "query" && p.Example != nil {
					one := cloneValues(base)
					one.Set(p.Name, p.Example.Value)
					got := s.getValidated(t, addQuery(target, one))
					require.Contains(t, []int{http.StatusOK, http.StatusNotFound}, got.status, got.body)
				}
			}
			if strings.HasPrefix(path, "/api/") && item.Get.Parameters != nil {
				s.checkRefusals(t, target, base, item)
			}
		})
	}
}

func hasParameter(o *v3.Operation, name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p *v3.Parameter) bool { return p.Name == name })
}

func orFalse(b *bool) *bool {
	if b == nil {
		return new(bool)
	}
	return b
}

func addQuery(target string, values url.Values) string { return target + "?" + values.Encode() }

func cloneValues(values url.Values) url.Values {
	out := url.Values{}
	for name := range values {
		out[name] = values[name]
	}
	return out
}

// checkRefusals asks a route for what it must refuse, and again for what it has answered.
func (s service) checkRefusals(t *testing.T, target string, base url.Values, item *v3.PathItem) {
	t.Helper()
	o, allowed := item.Get, "GET, HEAD"
	if item.Post != nil {
		allowed += ", POST"
	}
	unknown := cloneValues(base)
	unknown.Set("colour", "red")
	require.Equal(t, http.StatusBadRequest, s.sendInvalid(t, http.MethodGet, addQuery(target, unknown)).status)
	got := s.sendInvalid(t, http.MethodDelete, addQuery(target, base))
	require.Equal(t, http.StatusMethodNotAllowed, got.status)
	require.Equal(t, allowed, got.header.Get("Allow"))
	if o.Responses.Codes.GetOrZero("406") != nil {
		require.Equal(t, http.StatusNotAcceptable, s.getValidated(t, addQuery(target, base), "Accept", "text/html").status)
	}
	if o.Responses.Codes.GetOrZero("304") == nil {
		return
	}
	fixed := cloneValues(base)
	if slices.ContainsFunc(o.Parameters, func(p *v3.Parameter) bool { return p.Name == "at" }) {
		fixed.Set("at", "2026-11-21T01:10:00Z")
	}
	first := s.getValidated(t, addQuery(target, fixed))
	again := s.getValidated(t, addQuery(target, fixed), "If-None-Match", first.header.Get("ETag"))
	asOfNow := []string{"/now", "/recorders", "/clusters"} // what remains gets less, and how it stands is said as of now
	if !slices.ContainsFunc(asOfNow, func(end string) bool { return strings.HasSuffix(target, end) }) {
		require.Equal(t, first.body, cmp.Or(again.body, first.body))
		require.Equal(t, http.StatusNotModified, again.status)
		require.Empty(t, again.body)
	}
}

func TestProblemsAreAsDocumented(t *testing.T) {
	t.Parallel()
	url := playRecordings(t)
	s := startService(t, openStore(t, url))
	require.Equal(t, http.StatusConflict, s.getValidated(t, "/api/v1/nodes/worker-1/why-not").status)
	require.Equal(t, http.StatusNotFound, s.getValidated(t, "/api/v1/vms/demo/nobody/why").status)
	require.Equal(t, http.StatusBadRequest, s.getValidated(t, "/api/v1/requests?since=2026-01-01&until=2026-11-22").status)

	gone := openStore(t, storetest.NewURL(t))
	away := startService(t, gone)
	gone.Close()
	for _, target := range []string{"/api/v1/requests", "/api/v1/vms/demo/nbr-1/why", "/api/v1/names?kind=vm"} {
		got := away.getValidated(t, target)
		require.Equal(t, http.StatusServiceUnavailable, got.status)
		require.Equal(t, "5", got.header.Get("Retry-After"))
		require.NotContains(t, got.body, "pool")
	}
}

// emptyLists have no rows once the recordings are over: they are seen whole, their drains are done, no node fell silent, nobody
// acknowledged anything, and KubeVirt was not upgraded.
var emptyLists = []string{"/api/v1/gaps", "/api/v1/drains/blockers", "/api/v1/outages", "/api/v1/acknowledgements", "/api/v1/upgrade-waves"}

// TestPagesHoldEachRowOnce goes through all rows of each list by pages, as JSON and as CSV, and compares with the list as one.
func TestPagesHoldEachRowOnce(t *testing.T) {
	t.Parallel()
	s := startService(t, openStore(t, playRecordings(t)))
	for path, item := range s.model.Paths.PathItems.FromOldest() {
		if item.Get == nil || item.Get.Tags[0] != "lists" || !hasParameter(item.Get, "page") { // what has no pages says how it stands now
			continue
		}
		t.Run(item.Get.OperationId, func(t *testing.T) {
			var whole []json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(s.getValidated(t, path+"?limit=10000").body), &whole))
			require.Equal(t, slices.Contains(emptyLists, path), len(whole) == 0)
			rows := []json.RawMessage{}
			for _, body := range s.followPages(t, path+"?limit=13") {
				var page []json.RawMessage
				require.NoError(t, json.Unmarshal([]byte(body), &page))
				rows = append(rows, page...)
			}
			require.Equal(t, whole, rows)

			table, err := csv.NewReader(strings.NewReader(s.getValidated(t, path+"?limit=10000&format=csv").body)).ReadAll()
			require.NoError(t, err)
			require.Len(t, table, 1+len(whole))
			records := table[:1]
			for _, body := range s.followPages(t, path+"?limit=13&format=csv") {
				page, err := csv.NewReader(strings.NewReader(body)).ReadAll()
				require.NoError(t, err)
				require.Equal(t, table[0], page[0])
				records = append(records, page[1:]...)
			}
			require.Equal(t, table, records)
		})
	}
}

// followPages follows the header Link from page to page, and returns their bodies.
func (s service) followPages(t *testing.T, target string) []string {
	t.Helper()
	var bodies []string
	here, err := url.Parse(target)
	require.NoError(t, err)
	for {
		got := s.getValidated(t, here.String())
		require.Equal(t, http.StatusOK, got.status, got.body)
		bodies = append(bodies, got.body)
		link := got.header.Get("Link")
		if link == "" {
			return bodies
		}
		next, found := strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
		require.True(t, found, link)
		here, err = here.Parse(next)
		require.NoError(t, err)
	}
}

// TestWhatIfAnswersAsDocumented asks what would have been different, in every way, and what must be refused.
func TestWhatIfAnswersAsDocumented(t *testing.T) {
	t.Parallel()
	s := startService(t, openStore(t, playRecordings(t)))
	for body, status := range map[string]int{
		`{"cluster": "b-dual-retry-loop-v1.8"}`: http.StatusOK,
		`{"cluster": "g-churn-cooldown", "policies": ["cooldown=off", "base=2m cap=10m window=1h"], "sweep": "base=30s..5m/30s", "sweep_with": "keep-mark"}`: http.StatusOK,
		`{"cluster": "k-blocked-slot", "node": "worker-1", "namespace": "demo", "since": "2026-11-20", "policies": ["node-limit=1 try-once"]}`:               http.StatusOK,
		`{"cluster": "nowhere"}`: http.StatusNotFound,
		`{}`:                     http.StatusConflict,
		`{"since": "200d"}`:      http.StatusBadRequest,
	} {
		request := func() *http.Request {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/v1/whatif", strings.NewReader(body))
			require.NoError(t, err)
			r.Header.Set("Content-Type", "application/json")
			return r
		}
		valid, problems := s.validator.ValidateHttpRequest(request())
		require.True(t, valid, "%s: %v", body, problems)
		require.Equal(t, status, s.sendAndValidate(t, request(), request()).status, body)
	}
}
