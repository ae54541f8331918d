package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/api"
)

// Reviewer asks one API server. It is safe for concurrent use.
type Reviewer struct{ client rest.Interface }

var _ api.Reviewer = (*Reviewer)(nil)

// New makes a Reviewer; nothing is asked yet.
func New(config *rest.Config) (*Reviewer, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // refusals are Status objects
	c := rest.CopyConfig(config)
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.GroupVersion = &schema.GroupVersion{Version: "v1"}
	c.QPS = -1 // the gate bounds how often is asked
	client, err := rest.UnversionedRESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make Kubernetes client: %w", err)
	}
	return &Reviewer{client}, nil
}

// The objects that are sent and come back, as far as they are used here.
//
// Source: k8s.io/api authentication/v1 and authorization/v1.
type (
	typeMeta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	tokenReview struct {
		typeMeta
		Spec struct {
			Token string `json:"token"`
		} `json:"spec"`
		Status struct {
			Authenticated bool   `json:"authenticated"`
			Error         string `json:"error"`
			User          struct {
				Username string              `json:"username"`
				UID      string              `json:"uid"`
				Groups   []string            `json:"groups"`
				Extra    map[string][]string `json:"extra"`
			} `json:"user"`
		} `json:"status,omitzero"`
	}
	accessReview struct {
		typeMeta
		Spec   accessSpec `json:"spec"`
		Status struct {
			Allowed         bool   `json:"allowed"`
			Denied          bool   `json:"denied"`
			EvaluationError string `json:"evaluationError"`
		} `json:"status,omitzero"`
	}
	accessSpec struct {
		Resource    *resource           `json:"resourceAttributes,omitempty"`
		NonResource *nonResource        `json:"nonResourceAttributes,omitempty"`
		User        string              `json:"user"`
		Groups      []string            `json:"groups,omitempty"`
		Extra       map[string][]string `json:"extra,omitempty"`
		UID         string              `json:"uid,omitempty"`
	}
	resource struct {
		Namespace string `json:"namespace,omitempty"` // empty: all of them
		Verb      string `json:"verb"`
		Group     string `json:"group"`
		Version   string `json:"version"`
		Resource  string `json:"resource"`
	}
	nonResource struct {
		Path string `json:"path"`
		Verb string `json:"verb"`
	}
)

// Authenticate implements api.Reviewer.
func (r *Reviewer) Authenticate(ctx context.Context, token string) (api.User, bool, error) {
	review := tokenReview{typeMeta: typeMeta{"authentication.k8s.io/v1", "TokenReview"}}
	review.Spec.Token = token
	var answer tokenReview
	if err := r.create(ctx, "/apis/authentication.k8s.io/v1/tokenreviews", review, &answer); err != nil {
		return api.User{}, false, fmt.Errorf("create tokenreview: %w", err)
	}
	user := answer.Status.User
	if !answer.Status.Authenticated || user.Username == "" {
		return api.User{}, false, nil // also with an error: authenticators tell in it why a token is not theirs
	}
	return api.User{Name: user.Username, UID: user.UID, Groups: user.Groups, Extra: user.Extra}, true, nil
}

// MaySeeVMs implements api.Reviewer.
func (r *Reviewer) MaySeeVMs(ctx context.Context, user api.User, namespace string) (bool, error) {
	return r.may(ctx, user, accessSpec{Resource: &resource{Namespace: namespace, Verb: "get", Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}})
}

// MayScrape implements api.Reviewer.
func (r *Reviewer) MayScrape(ctx context.Context, user api.User) (bool, error) {
	return r.may(ctx, user, accessSpec{NonResource: &nonResource{Path: "/metrics", Verb: "get"}})
}

func (r *Reviewer) may(ctx context.Context, user api.User, spec accessSpec) (bool, error) {
	spec.User, spec.UID, spec.Groups, spec.Extra = user.Name, user.UID, user.Groups, user.Extra
	review := accessReview{typeMeta: typeMeta{"authorization.k8s.io/v1", "SubjectAccessReview"}, Spec: spec}
	var answer accessReview
	if err := r.create(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review, &answer); err != nil {
		return false, fmt.Errorf("create subjectaccessreview: %w", err)
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}

// create sends an object and reads what became of it.
func (r *Reviewer) create(ctx context.Context, path string, object, into any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return errors.New("the object cannot be written") // without its text: it holds a token
	}
	answer := r.client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(body).Do(ctx)
	if err := answer.Error(); err != nil { // Raw's own would be without the API server's words
		return err
	}
	raw, err := answer.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
