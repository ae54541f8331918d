package browser_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
)

// anybody is a cluster that knows every token.
type anybody struct{}

func (anybody) Authenticate(_ context.Context, token string, _ []string) (api.User, bool, error) {
	return api.User{Name: token}, true, nil
}
func (anybody) MaySeeVMs(context.Context, api.User, string) (bool, error) { return true, nil }
func (anybody) MayScrape(context.Context, api.User) (bool, error)         { return true, nil }
func (anybody) MayAcknowledge(context.Context, api.User, trail.Subject) (bool, error) {
	return true, nil
}

// emptyPages knows of no cluster.
type emptyPages struct{ web.Reader }

func (emptyPages) Fleet(context.Context, bool) ([]trail.FleetLine, error) { return nil, nil }

func (emptyPages) Summaries(context.Context) ([]trail.ClusterSummary, error) { return nil, nil }

func (emptyPages) Recorders(context.Context, string, time.Time, time.Time) ([]trail.RecorderStatus, error) {
	return nil, nil
}

// TestSigningInLeadsNowhereElse signs in through links as somebody who collects tokens would send them: after the genuine sign-in the browser
// is still on this host.
func TestSigningInLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	var lured atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { lured.Add(1) }))
	t.Cleanup(elsewhere.Close)
	foreign := strings.TrimPrefix(elsewhere.URL, "http://")
	ours := httptest.NewServer(api.Server{
		Gate:   &api.Gate{Reviewer: anybody{}, Cluster: func() string { return "prod" }},
		Site:   &web.Site{Readers: web.ForAll(emptyPages{})},
		Stream: &api.Stream{Done: t.Context().Done(), Changes: func(context.Context, trail.Scope, trail.Query, time.Duration) ([]time.Time, error) { return nil, nil }},
	}.Handler())
	t.Cleanup(ours.Close)
	here, err := url.Parse(ours.URL)
	require.NoError(t, err)
	for _, back := range []string{
		"/%09/" + foreign, "/%09%09//" + foreign, "/%0A/" + foreign, "/%0D/" + foreign, "%09//" + foreign, "//" + foreign, "/%5C" + foreign,
		"%5C%5C" + foreign, "/.//" + foreign, "/%2509/" + foreign, "/%252f%252f" + foreign, "http://" + foreign, "/%20/" + foreign,
	} {
		t.Run(back, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, ours.URL, desk)
			b.openPage("/signin?back=" + back)
			evaluateJS[bool](b, `document.querySelector("#token").focus() ?? true`)
			b.pressKeys("genuine")
			b.awaitPageChange(func() { b.pressKeys("\r") })
			require.Equal(t, here.Host, b.currentURL().Host)
			require.Equal(t, "/", b.currentURL().Path)
			require.Zero(t, lured.Load())
		})
	}
}
