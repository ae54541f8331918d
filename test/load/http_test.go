package load_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/answers"
	"github.com/evictrail/evictrail/trail"
)

// newHandler is what `evictrail run` serves of a database.
func newHandler(tb testing.TB, s *store.Store) http.Handler {
	tb.Helper()
	reader := answers.Reader{Reader: s.Reader}
	return api.Server{Readers: api.ForAll(reader), Failed: func(err error) { tb.Error(err) }, Site: &web.Site{
		Readers: web.ForAll(reader), Failed: func(path string, err error) { tb.Errorf("%s: %v", path, err) },
	}}.Handler()
}

// TestHTTP has a load tool ask every route at a steady rate for a while, one route after the other, each time about something else, and then
// the same again, which the database has read by then. It prints how long the answers took and how the slowest statements were planned. No
// answer may be an error.
func TestHTTP(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	s, _ := openDatabase(t)
	server := httptest.NewServer(newHandler(t, s))
	defer server.Close()
	of, before := loadSample(t, s), logSize(t)
	w := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	defer func() { _ = w.Flush() }()
	_, _ = io.WriteString(w, "route\trequests\tp50\tp95\tmost\tagain p50\tp95\tmost\terrors\t\n")
	asked, failed := regexp.MustCompile(*only), []string(nil)
	var allFirst, allAgain vegeta.Metrics
	row := func(name string, first, again vegeta.Metrics) {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t\n", name, first.Requests, formatMilliseconds(first.Latencies.P50), formatMilliseconds(first.Latencies.P95), formatMilliseconds(first.Latencies.Max),
			formatMilliseconds(again.Latencies.P50), formatMilliseconds(again.Latencies.P95), formatMilliseconds(again.Latencies.Max), int(first.Requests+again.Requests)-first.StatusCodes["200"]-again.StatusCodes["200"])
	}
	for _, r := range slices.DeleteFunc(buildTargets(of), func(r target) bool { return !asked.MatchString(r.template) }) {
		var targets []vegeta.Target
		for range 500 {
			targets = append(targets, vegeta.Target{Method: http.MethodGet, URL: server.URL + r.fillTemplate(), Header: http.Header{"Accept": {r.accept}}})
		}
		first, again := runAttack(r.template, targets, &allFirst), runAttack(r.template, targets, &allAgain)
		row(r.template, first, again)
		for _, err := range slices.Concat(first.Errors, again.Errors) {
			failed = append(failed, r.template+": "+err)
		}
	}
	allFirst.Close()
	allAgain.Close()
	row("all of them", allFirst, allAgain)
	_ = w.Flush()
	writePlans(t, t.Output(), before)
	require.Empty(t, failed)
}

// runAttack asks targets at the rate for as long as is asked for, the first of them first. It adds the answers to those of all routes.
func runAttack(name string, targets []vegeta.Target, all *vegeta.Metrics) vegeta.Metrics {
	var m vegeta.Metrics
	for m.Requests == 0 { // a busy machine may let all of a short time pass
		for result := range vegeta.NewAttacker().Attack(vegeta.NewStaticTargeter(targets...), vegeta.Rate{Freq: *rate, Per: time.Second}, *lasts, name) {
			m.Add(result)
			all.Add(result)
		}
	}
	m.Close()
	return m
}

// target is a route, or a way to ask it, as a template of URLs.
type target struct {
	template string
	accept   string
	of       sample
}

// fillTemplate fills in the template.
func (r target) fillTemplate() string {
	vm := pickOne(r.of, r.of.vms)
	namespace, name := vm.VM()
	m, loop := pickOne(r.of, r.of.migrations), ""
	if len(r.of.loops) > 0 {
		loop = pickOne(r.of, r.of.loops)
	}
	fill := []string{
		"{cluster}", large, "{namespace}", pickOne(r.of, r.of.namespaces), "{vm}", vm.Name, "{vm namespace}", namespace, "{vm name}", name,
		"{vm then}", pickOne(r.of, r.of.vms[:min(len(r.of.vms), drawnVMs)]).Name, "{node}", pickOne(r.of, r.of.nodes).Name, "{migration}", m.Name, "{uid}", m.UID, "{loop}", loop,
		"{a day before}", escapeTime(r.of.seen.Add(-24 * time.Hour)), "{a week before}", escapeTime(r.of.seen.Add(-7 * 24 * time.Hour)), "{an hour before}", escapeTime(r.of.seen.Add(-time.Hour)),
		"{lately}", escapeTime(time.Now().Add(-time.Minute)),
	}
	for i, of := range []string{"{second page}", "{tenth page}"} {
		if keys := r.of.pages[strings.TrimPrefix(strings.Split(r.template, "?")[0], "/api/v1/")]; len(keys) > 8*i {
			text, _ := keys[8*i].MarshalText()
			fill = append(fill, of, string(text))
		}
	}
	return strings.NewReplacer(fill...).Replace(r.template)
}

func escapeTime(t time.Time) string { return url.QueryEscape(t.Format(time.RFC3339)) }

// buildTargets returns the routes, each with what is typically asked of it.
func buildTargets(of sample) []target {
	const asJSON, asCSV, asPage = "application/json", "text/csv", "text/html"
	var all []target
	for _, v := range trail.Views() {
		route := "/api/v1/" + v.Noun
		ways := []string{"", "?cluster={cluster}&since={a day before}&until={an hour before}"}
		if v.Changed != "" {
			ways = append(ways, "?changes-since={lately}")
		}
		if v.End != "" {
			ways = append(ways, "?open=true")
		}
		if v.HasVM() {
			ways = append(ways, "?vm={vm}", "?cluster={cluster}&vm={vm}", "?namespace={namespace}")
		}
		if v.HasNode() {
			ways = append(ways, "?node={node}", "?cluster={cluster}&node={node}")
		}
		for i, of := range [][]trail.Key{of.pages[v.Noun], of.pages[v.Noun][min(8, len(of.pages[v.Noun])):]} {
			if len(of) > 0 {
				ways = append(ways, "?cluster={cluster}&page="+[]string{"{second page}", "{tenth page}"}[i])
			}
		}
		for _, way := range ways {
			all = append(all, target{route + way, asJSON, of})
		}
		all = append(all, target{route + "?limit=1000&format=csv", asCSV, of})
	}
	for _, template := range []string{
		"/api/v1/vms/{vm}/why?cluster={cluster}", "/api/v1/vms/{vm}/why-not?cluster={cluster}", "/api/v1/nodes/{node}/why-not?cluster={cluster}",
		"/api/v1/vms/{vm then}/why?cluster={cluster}&at={an hour before}", "/api/v1/nodes/{node}/why-not?cluster={cluster}&at={an hour before}",
		"/api/v1/names?kind=vm&prefix={vm namespace}/", "/api/v1/names?kind=namespace", "/api/v1/names?kind=node&prefix=worker-1", "/api/v1/openapi.yaml",
	} {
		all = append(all, target{template, asJSON, of})
	}
	for _, template := range []string{
		"/docs", "/", "/?cluster={cluster}", "/?cluster={cluster}&span=7d", "/vms/{vm}?cluster={cluster}", "/nodes/{node}?cluster={cluster}",
		"/vms/{vm then}?cluster={cluster}&at={an hour before}", "/?cluster={cluster}&at={a day before}", "/?cluster={cluster}&at={a week before}",
		"/migrations?cluster={cluster}&ended-since={a day before}&outcome=failed", "/migrations?cluster={cluster}&ended-since={a week before}&ended-until={a day before}&outcome=failed",
		"/facts?cluster={cluster}&vm={vm}&from={a day before}", "/search?q={vm name}", "/search?cluster={cluster}&q={migration}", "/search?q={uid}",
	} {
		all = append(all, target{template, asPage, of})
	}
	if len(of.loops) > 0 {
		all = append(all, target{"/loops/{loop}?cluster={cluster}", asPage, of})
	}
	return all
}
