package kube

import (
	"context"
	"fmt"
	"slices"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// Reviewer asks one API server. It is safe for concurrent use.
type Reviewer struct {
	tokens authenticationclient.TokenReviewInterface
	rights authorizationclient.SubjectAccessReviewInterface
}

var _ api.Reviewer = (*Reviewer)(nil)

// New makes a Reviewer; nothing is asked yet.
func New(config *rest.Config) (*Reviewer, error) {
	c := rest.CopyConfig(config)
	c.QPS = -1 // the gate bounds how often is asked
	c.ContentType = runtime.ContentTypeJSON
	tokens, err := authenticationclient.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("make Kubernetes client: %w", err)
	}
	rights, err := authorizationclient.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("make Kubernetes client: %w", err)
	}
	return &Reviewer{tokens.TokenReviews(), rights.SubjectAccessReviews()}, nil
}

// Authenticate implements api.Reviewer.
func (r *Reviewer) Authenticate(ctx context.Context, token string, audiences []string) (api.User, bool, error) {
	review := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token, Audiences: audiences}}
	answer, err := r.tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return api.User{}, false, fmt.Errorf("create tokenreview: %w", err)
	}
	if !forOneOf(audiences, answer.Status.Audiences) {
		return api.User{}, false, nil
	}
	user := answer.Status.User
	if !answer.Status.Authenticated || user.Username == "" {
		return api.User{}, false, nil // also with an error: authenticators say in it why a token is not theirs
	}
	extra := make(map[string][]string, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = values
	}
	return api.User{Name: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra}, true, nil
}

// forOneOf reports whether a token is for one of the audiences that were asked for. An authenticator that knows of no audiences names none:
// its token is one for the API server.
func forOneOf(asked, answered []string) bool {
	return len(asked) == 0 || slices.ContainsFunc(answered, func(audience string) bool { return slices.Contains(asked, audience) })
}

// MaySeeVMs implements api.Reviewer.
func (r *Reviewer) MaySeeVMs(ctx context.Context, user api.User, namespace string) (bool, error) {
	return r.may(ctx, user, authorization.SubjectAccessReviewSpec{ResourceAttributes: &authorization.ResourceAttributes{
		Namespace: namespace, Verb: "get", Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances",
	}})
}

// MayScrape implements api.Reviewer.
func (r *Reviewer) MayScrape(ctx context.Context, user api.User) (bool, error) {
	return r.may(ctx, user, authorization.SubjectAccessReviewSpec{NonResourceAttributes: &authorization.NonResourceAttributes{Path: "/metrics", Verb: "get"}})
}

// MayAcknowledge implements api.Reviewer.
func (r *Reviewer) MayAcknowledge(ctx context.Context, user api.User, of trail.Subject) (bool, error) {
	right := authorization.ResourceAttributes{Verb: "patch", Version: "v1", Resource: "nodes", Name: of.Name}
	if of.Kind != trail.SubjectNode {
		right.Group, right.Resource = "kubevirt.io", "virtualmachineinstances"
		right.Namespace, right.Name = of.VM()
	}
	return r.may(ctx, user, authorization.SubjectAccessReviewSpec{ResourceAttributes: &right})
}

func (r *Reviewer) may(ctx context.Context, user api.User, spec authorization.SubjectAccessReviewSpec) (bool, error) {
	spec.User, spec.UID, spec.Groups, spec.Extra = user.Name, user.UID, user.Groups, make(map[string]authorization.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		spec.Extra[key] = values
	}
	answer, err := r.rights.Create(ctx, &authorization.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("create subjectaccessreview: %w", err)
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}
