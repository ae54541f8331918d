package kube_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/kube"
	"github.com/evictrail/evictrail/trail"
)

// TestAudiencesAreAskedForAndChecked has an API server answer in each way that the API of TokenReview allows.
func TestAudiencesAreAskedForAndChecked(t *testing.T) {
	t.Parallel()
	ours := []string{"evictrail", "evictrail-2"}
	for _, c := range []struct {
		name     string
		asked    []string
		answered authentication.TokenReviewStatus
		known    bool
	}{
		{"ours", ours, authentication.TokenReviewStatus{Authenticated: true, Audiences: []string{"evictrail-2"}}, true},
		{"ours and others", ours, authentication.TokenReviewStatus{Authenticated: true, Audiences: []string{"x", "evictrail"}}, true},
		{"of an authenticator that knows no audiences", ours, authentication.TokenReviewStatus{Authenticated: true}, false},
		{"of others", ours, authentication.TokenReviewStatus{Authenticated: true, Audiences: []string{"vault"}}, false},
		{"refused", ours, authentication.TokenReviewStatus{Audiences: []string{"evictrail"}, Error: "invalid bearer token"}, false},
		{"of the API server", nil, authentication.TokenReviewStatus{Authenticated: true, Audiences: []string{"https://kubernetes.default.svc"}}, true},
		{"of the API server, without a name", nil, authentication.TokenReviewStatus{Authenticated: true}, true},
		{"refused, of the API server", nil, authentication.TokenReviewStatus{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var review authentication.TokenReview
				if json.NewDecoder(r.Body).Decode(&review) != nil || review.Spec.Token != "secret" {
					t.Errorf("%s: expected a review of the token", r.URL)
				}
				if len(review.Spec.Audiences) != len(c.asked) {
					t.Errorf("asked for %v", review.Spec.Audiences)
				}
				review.Status = c.answered
				review.Status.User.Username = "jane"
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusCreated)
				_ = json.NewEncoder(w).Encode(review)
			}))
			t.Cleanup(server.Close)
			reviewer, err := kube.New(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			user, known, err := reviewer.Authenticate(t.Context(), "secret", c.asked)
			require.NoError(t, err)
			require.Equal(t, c.known, known)
			if c.known {
				require.Equal(t, "jane", user.Name)
			}
		})
	}
}

// TestWhoMayPatchMayAcknowledge compares what an API server is asked about a VM and about a node.
func TestWhoMayPatchMayAcknowledge(t *testing.T) {
	t.Parallel()
	var asked *authorization.ResourceAttributes
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorization.SubjectAccessReview
		if json.NewDecoder(r.Body).Decode(&review) != nil || review.Spec.User != "jane" {
			t.Errorf("%s: expected a review of the user", r.URL)
		}
		asked = review.Spec.ResourceAttributes
		review.Status.Allowed = asked.Resource == "nodes"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	reviewer, err := kube.New(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	may, err := reviewer.MayAcknowledge(t.Context(), api.User{Name: "jane"}, trail.VMISubject("shop", "db-1"))
	require.NoError(t, err)
	require.False(t, may)
	require.Equal(t, &authorization.ResourceAttributes{Verb: "patch", Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances", Namespace: "shop", Name: "db-1"}, asked)
	may, err = reviewer.MayAcknowledge(t.Context(), api.User{Name: "jane"}, trail.Subject{Kind: trail.SubjectNode, Name: "n1"})
	require.NoError(t, err)
	require.True(t, may)
	require.Equal(t, &authorization.ResourceAttributes{Verb: "patch", Version: "v1", Resource: "nodes", Name: "n1"}, asked)
}
