package manifests_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/deploy"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// service resolves one Service to a server of this test.
type service struct {
	t   *testing.T
	url string
}

func (s service) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	require.Equal(s.t, "evictrail/evictrail", namespace+"/"+name)
	require.EqualValues(s.t, 9443, port)
	return url.Parse(s.url)
}

// newObserverPlugin makes the API server's admission plugin with the observer's configuration, where the Service is at that URL.
func newObserverPlugin(t *testing.T, o deploy.Options, at string) admission.Interface {
	t.Helper()
	plugin, err := validating.NewValidatingAdmissionWebhook(nil)
	require.NoError(t, err)
	client, factory := newFakeCluster(t, decodeManifest(t, renderManifest(t, deploy.Observer, o)))
	plugin.SetServiceResolver(service{t, at})
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(factory)
	require.NoError(t, plugin.ValidateInitialization())
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	require.True(t, plugin.WaitForReady())
	return plugin
}

// pathSecret is what evictrail knows the API server by.
const pathSecret = "0123456789abcdef0123"

// admissionEndpoint is POST /admission; it sends what it sees to a channel.
func admissionEndpoint() (http.Handler, <-chan tracker.RequestObservation) {
	seen := make(chan tracker.RequestObservation, 1)
	return api.Server{Admission: &api.Admission{Access: api.Access{Tokens: func() ([]string, error) { return []string{pathSecret}, nil }}, Review: func(raw []byte) ([]byte, func(), error) {
		review, err := collector.ReadReview(raw)
		if err != nil {
			return nil, nil, err
		}
		return review.Answer(), func() {
			if review.Request != nil {
				seen <- review.Request(tracker.Seen{})
			}
		}, nil
	}}}.Handler(), seen
}

const (
	launcher   = "virt-launcher-db-1-x7k2p"
	failedOpen = "failed-open.validating.webhook.admission.k8s.io/round_0_index_0"
)

var words = map[string]string{"requested-by": "sigs.k8s.io/descheduler", "reason": "triggered by Balance/LowNodeUtilization: "}

func TestObserverPromises(t *testing.T) {
	t.Parallel()
	objects := decodeManifest(t, renderManifest(t, deploy.Observer, deploy.DefaultOptions()))
	require.Len(t, objects, 1)
	config := objects[0].(*admissionv1.ValidatingWebhookConfiguration)
	require.Equal(t, "evictrail-eviction-observer", config.Name)
	require.Len(t, config.Webhooks, 1)
	hook := config.Webhooks[0]
	require.Equal(t, "eviction-observer.evictrail.io", hook.Name)
	require.Equal(t, admissionv1.Ignore, *hook.FailurePolicy)
	require.EqualValues(t, 1, *hook.TimeoutSeconds)
	require.Equal(t, admissionv1.SideEffectClassNone, *hook.SideEffects)
	require.Equal(t, admissionv1.Equivalent, *hook.MatchPolicy)
	require.Equal(t, []string{"v1"}, hook.AdmissionReviewVersions)
	require.Equal(t, []admissionv1.OperationType{admissionv1.Create}, hook.Rules[0].Operations)
	require.Equal(t, admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}, Scope: new(admissionv1.NamespacedScope)}, hook.Rules[0].Rule)
	require.Equal(t, "/admission", *hook.ClientConfig.Service.Path)
}

func TestObserverSeesEvictions(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	handler, seen := admissionEndpoint()
	server := ca.serveHTTPS(t, "evictrail.evictrail.svc", handler)
	o := deploy.DefaultOptions()
	o.CA, o.Secret = ca.pem, pathSecret
	plugin := newObserverPlugin(t, o, server.URL)

	annotations := admitRequest(t, plugin, newEviction(launcher, words, false))
	saw := receiveValue(t, seen)
	require.Equal(t, tracker.RequestObservation{
		Source: trail.SourceAdmission, ID: saw.ID, Action: trail.ActionEvict, Namespace: "shop", Name: launcher,
		Detail: trail.RequestDetail{User: "alice", RequestedBy: words["requested-by"], StatedReason: words["reason"]},
	}, saw)
	const prefix = "eviction-observer.evictrail.io/"
	require.Equal(t, map[string]string{
		prefix + "evictrail-review": saw.ID, prefix + "requested-by": words["requested-by"], prefix + "reason": words["reason"],
	}, annotations, "what joins the audit event to the review")

	admitRequest(t, plugin, newEviction(launcher, nil, true))
	require.True(t, receiveValue(t, seen).Detail.DryRun)
}

func TestObserverByURL(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	handler, seen := admissionEndpoint()
	o := deploy.DefaultOptions()
	o.ObserverURL, o.CA, o.Secret = ca.serveHTTPS(t, "127.0.0.1", handler).URL, ca.pem, pathSecret
	admitRequest(t, newObserverPlugin(t, o, ""), newEviction(launcher, nil, false))
	require.Equal(t, launcher, receiveValue(t, seen).Name)
}

func TestObserverIsAskedAboutNothingElse(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server := ca.serveHTTPS(t, "evictrail.evictrail.svc", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the observer was asked")
	}))
	o := deploy.DefaultOptions()
	o.CA, o.Secret = ca.pem, pathSecret
	plugin := newObserverPlugin(t, o, server.URL)
	for name, request := range map[string]admission.Attributes{
		"eviction of another pod":     newEviction("web-1", words, false),
		"eviction of a hotplug pod":   newEviction("hp-volume-x7k2p", words, false),
		"creation of a virt-launcher": podCreation(launcher),
	} {
		require.Empty(t, admitRequest(t, plugin, request), name)
	}
}

// TestObserverIsNeverInTheWay lets the observer fail in every way but a refusal, which evictrail never answers.
func TestObserverIsNeverInTheWay(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then a server sees that its client has left
		<-r.Context().Done()
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		change  func(o *deploy.Options)
		away    bool
	}{
		{name: "it is away", handler: hang, away: true},
		{name: "it hangs", handler: hang},
		{name: "it is not run with --eviction-observer", handler: http.NotFound},
		{name: "it answers an error", handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		{name: "it answers nonsense", handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("no JSON")) }},
		{name: "it answers about another request", handler: func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": map[string]any{"uid": "another", "allowed": true}})
		}},
		{name: "its CA was not filled in", handler: hang, change: func(o *deploy.Options) { o.CA = nil }},
		{name: "its certificate is of another CA", handler: hang, change: func(o *deploy.Options) { o.CA = newAuthority(t).pem }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := ca.serveHTTPS(t, "evictrail.evictrail.svc", tt.handler)
			o := deploy.DefaultOptions()
			o.CA, o.Secret = ca.pem, pathSecret
			if tt.change != nil {
				tt.change(&o)
			}
			plugin := newObserverPlugin(t, o, server.URL)
			if tt.away {
				server.Close()
			}
			started := time.Now()
			annotations := admitRequest(t, plugin, newEviction(launcher, words, false))
			require.Less(t, time.Since(started), 5*time.Second, "a second, and what a slow machine adds")
			require.Equal(t, map[string]string{failedOpen: "eviction-observer.evictrail.io"}, annotations, "the audit event says that it was passed over")
		})
	}
}
