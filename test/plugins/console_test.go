package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/answers"
	"github.com/evictrail/evictrail/trail"
)

// users are those of a cluster: the token of each, made for the API server, and the namespaces whose VMs it may get.
type users map[string][]string

// everywhere is the namespace of users who may get all VMs.
const everywhere = ""

// Authenticate implements api.Reviewer. No token was made for evictrail.
func (u users) Authenticate(_ context.Context, token string, audiences []string) (api.User, bool, error) {
	_, known := u[token]
	return api.User{Name: token}, known && len(audiences) == 0, nil
}

// MaySeeVMs implements api.Reviewer.
func (u users) MaySeeVMs(_ context.Context, user api.User, namespace string) (bool, error) {
	return slices.Contains(u[user.Name], namespace), nil
}

// MayScrape implements api.Reviewer.
func (u users) MayScrape(context.Context, api.User) (bool, error) { return false, nil }

// MayAcknowledge implements api.Reviewer.
func (u users) MayAcknowledge(context.Context, api.User, trail.Subject) (bool, error) {
	return false, nil
}

// openStore opens the database of the demo until the test ends.
func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), incident.database, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// startGated serves a database to users of the cluster of movedVM as run --auth=kubernetes does, with --auth-api-tokens as tokens.
func startGated(t *testing.T, s *store.Store, tokens api.ServerTokens) string {
	t.Helper()
	gate := &api.Gate{
		Reviewer: users{"admin": {everywhere}, "developer": {"demo"}, "stranger": nil}, Audiences: []string{"evictrail"}, ServerTokens: tokens,
		Cluster: func() string { return movedCluster }, Namespaces: s.Namespaces, Failed: func(err error) { t.Error(err) },
	}
	server := httptest.NewServer(api.Server{Gate: gate, Readers: func(ctx context.Context, of trail.Scope, answer func(context.Context, api.Reader) error) error {
		return answer(ctx, answers.Reader{Reader: s.SeenBy(of)})
	}}.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// TestConsoleShowsWhatTheCommandLineSays loads the plugin by the console's own loader, and compares its tab with evictrail why.
func TestConsoleShowsWhatTheCommandLineSays(t *testing.T) {
	t.Parallel()
	c := &console{evictrail: startGated(t, openStore(t), api.ServerTokensAll), dress: lightDress, settings: `{"publicURL": "https://evictrail.example"}`}
	host := c.start(t)
	for _, user := range []string{"admin", "developer"} {
		c.signIn(user)
		b := openTab(t, host, "")
		for _, kind := range []string{"VirtualMachine", "VirtualMachineInstance"} {
			b.openPage(url.Values{"namespace": {"demo"}, "name": {"vm-d"}, "kind": {kind}})
			b.awaitOutcome("answered")
			require.Equal(t, "evictrail", evaluateJS[string](b, `document.querySelector("nav a").textContent`))
		}
		b.requireAnswer(t, movedVM, movedCluster)
		require.Equal(t, "https://evictrail.example/vms/demo/vm-d", b.linkTarget())
		b.checkAccessibility("console-answered-" + user)
		b.openPage(url.Values{"namespace": {"demo"}, "name": {"vm-d"}, "kind": {"VirtualMachineInstanceMigration"}})
		b.awaitCondition(`document.querySelector("#no-tabs") !== null`)
	}
}

// TestConsoleWithoutAnAnswer has a VM that is not known, refused users and an evictrail that is away said plainly.
func TestConsoleWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	c := &console{evictrail: startGated(t, s, api.ServerTokensAll), dress: lightDress}
	b := openTab(t, c.start(t), refusal)

	c.signIn("developer")
	b.openVM("demo/nobody", "unknown")
	require.Contains(t, b.panelText(), "Nothing is recorded about demo/nobody.")
	require.Empty(t, b.linkTarget())
	b.checkAccessibility("console-unknown")

	c.signIn("stranger")
	b.pressButton("Ask again")
	b.awaitOutcome("refused")
	require.Contains(t, b.panelText(), "evictrail does not show you this VM (403).It says: “")

	c.signIn("nobody")
	b.openVM(movedVM, "refused")
	require.Contains(t, b.panelText(), "evictrail does not know who asks (401).It says: “the cluster does not know this token")

	// A token that the console sends is one for the API server: without --auth-api-tokens=all nobody is known.
	strict := &console{evictrail: startGated(t, s, api.ServerTokensMetrics), dress: lightDress}
	strict.signIn("admin")
	b = openTab(t, strict.start(t), refusal)
	b.openVM(movedVM, "refused")
	require.Contains(t, b.panelText(), "evictrail accepts it if it runs with --auth-api-tokens=all.")
	b.checkAccessibility("console-refused")

	away := &console{evictrail: nowhere, dress: lightDress}
	b = openTab(t, away.start(t), refusal)
	b.openVM(movedVM, "unreachable")
	require.Contains(t, b.panelText(), "evictrail cannot be reached (502).Check that evictrail runs")
	b.checkAccessibility("console-unreachable")
}

// marred answers from a database of which a part was not observed, until it is down.
type marred struct {
	answers.Reader
	down *atomic.Bool
}

// Why implements api.Reader.
func (m marred) Why(ctx context.Context, q trail.Question) (trail.Answer, error) {
	if m.down.Load() {
		return trail.Answer{}, errors.New("connection refused")
	}
	answer, err := m.Reader.Why(ctx, q)
	answer.Recorder = &trail.RecorderNote{State: trail.RecorderDegraded, Why: []string{"The watch of nodes is lost."}}
	answer.NotObserved = listGaps()
	return answer, err
}

// listGaps returns a gap of each cause.
func listGaps() (gaps []trail.Gap) {
	for _, k := range trail.Kinds() {
		for _, reason := range k.Reasons {
			if k.Kind == trail.KindGapOpened {
				gaps = append(gaps, trail.Gap{Source: "nodes", OpenedAt: time.Date(2026, 11, 21, 0, 40, len(gaps), 0, time.UTC), Cause: reason.Reason})
			}
		}
	}
	return gaps
}

// TestPanelSaysWhatIsMissing looks at an answer that may be incomplete, and then at an evictrail that cannot answer.
func TestPanelSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	down := &atomic.Bool{}
	evictrail := startHost(t, api.Server{Readers: api.ForAll(marred{answers.Reader{Reader: s.Reader}, down})}.Handler())
	c := &console{evictrail: evictrail, dress: lightDress, settings: `{"cluster": "` + movedCluster + `", "publicURL": "javascript:alert(1)"}`}
	b := openTab(t, c.start(t), refusal)
	b.openVM(movedVM, "answered")
	text := b.panelText()
	require.Contains(t, text, "What this rests onThe watch of nodes is lost. What is shown may be incomplete.")
	for _, gap := range listGaps() {
		require.Contains(t, text, fmt.Sprintf("Not observed: nodes from %s until now (%s).", trail.FormatClock(gap.OpenedAt), gap.Label().Short))
	}
	require.Empty(t, b.linkTarget(), "only addresses of the web become links")
	b.checkAccessibility("console-marred")

	down.Store(true)
	b.pressButton("Ask again")
	b.awaitOutcome("failed")
	require.Contains(t, b.panelText(), "evictrail cannot answer now (503).It says: “the database cannot answer now")
}
