package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// Right is a right in the cluster that is needed.
type Right struct {
	Verb, Group, Resource string
	Namespace, Name       string // empty: all
}

// On says what the right is on, as kubectl writes it.
func (r Right) On() string {
	text := r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	switch {
	case r.Namespace != "" && r.Name != "":
		return text + " " + r.Namespace + "/" + r.Name
	case r.Name != "":
		return text + " " + r.Name
	case r.Namespace != "":
		return text + " in " + r.Namespace
	}
	return text
}

// Rights lists the rights that a Collector needs: for each resource that it watches, and to read the identity of the cluster. The policy may be nil.
func Rights(policy *PolicyMap) []Right {
	rights := []Right{{Verb: "get", Resource: "namespaces", Name: "kube-system"}}
	for _, r := range watchedWith(policy) {
		for _, verb := range []string{"list", "watch"} {
			rights = append(rights, Right{Verb: verb, Group: r.group, Resource: r.name, Namespace: r.namespace, Name: r.object})
		}
	}
	return rights
}

// Probe asks a cluster single questions, and changes nothing. It is safe for concurrent use.
type Probe struct {
	client rest.Interface
	skew   atomic.Pointer[time.Duration]
}

// NewProbe makes a probe; it makes no request yet.
func NewProbe(config *rest.Config) (*Probe, error) {
	p := &Probe{}
	client, err := newClient(config, func(skew time.Duration) { p.skew.Store(&skew) })
	p.client = client
	return p, err
}

// Skew returns how far the API server's clock is ahead of ours, with a resolution of 1 s; not known before it has answered.
func (p *Probe) Skew() (skew time.Duration, known bool) {
	if s := p.skew.Load(); s != nil {
		return *s, true
	}
	return 0, false
}

// Version returns the version of Kubernetes.
func (p *Probe) Version(ctx context.Context) (string, error) {
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	err := p.getJSON(ctx, "/version", &v)
	return v.GitVersion, err
}

// Can reports whether we have a right.
func (p *Probe) Can(ctx context.Context, r Right) (bool, error) {
	type attributes struct {
		Namespace string `json:"namespace,omitempty"`
		Verb      string `json:"verb"`
		Group     string `json:"group,omitempty"`
		Resource  string `json:"resource"`
		Name      string `json:"name,omitempty"`
	}
	type review struct {
		metav1.TypeMeta `json:",inline"`
		Spec            struct {
			Attributes attributes `json:"resourceAttributes"`
		} `json:"spec"`
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	asked := review{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}}
	asked.Spec.Attributes = attributes{r.Namespace, r.Verb, r.Group, r.Resource, r.Name}
	body, err := json.Marshal(asked)
	if err != nil {
		return false, err
	}
	var answer review
	err = decodeResult(p.client.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx), &answer)
	return answer.Status.Allowed, err
}

// KubeVirts returns the settings of each KubeVirt CR; none where KubeVirt is not installed.
func (p *Probe) KubeVirts(ctx context.Context) ([]trail.KubeVirtSettings, error) {
	r, _ := findResource("kubevirts")
	body, err := p.client.Get().AbsPath(r.buildPath()).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s", r.explainError(err))
	}
	defer func() { _ = body.Close() }()
	var out []trail.KubeVirtSettings
	_, err = decodeList(body, func(raw []byte) {
		if o := r.decodeJSON(raw); o.err == nil {
			out = append(out, o.observe(tracker.Seen{}).(tracker.KubeVirtObservation).Settings)
		}
	})
	return out, err
}

// PolicyText returns the text of the descheduler's policy in a ConfigMap.
func (p *Probe) PolicyText(ctx context.Context, m *PolicyMap) ([]byte, error) {
	w := m.toWatched()
	body, err := p.client.Get().AbsPath(w.buildPath()).Param("fieldSelector", "metadata.name="+w.object).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s", w.explainError(err))
	}
	defer func() { _ = body.Close() }()
	var list struct {
		Items []slimPolicyMap `json:"items"`
	}
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("%s: not found", w)
	}
	text, found := list.Items[0].Data[policyKey]
	if !found {
		return nil, fmt.Errorf("%s: no key %s", w, policyKey)
	}
	return []byte(text), nil
}

// Webhook is one webhook of a ValidatingWebhookConfiguration.
type Webhook struct {
	Configuration string // its name
	Path          string // that is called, of a Service or of a URL; empty: /
}

// Webhooks returns the validating webhooks of a name.
func (p *Probe) Webhooks(ctx context.Context, name string) ([]Webhook, error) {
	var list struct {
		Items []struct {
			Metadata metadata `json:"metadata"`
			Webhooks []struct {
				Name         string `json:"name"`
				ClientConfig struct {
					URL     string `json:"url"`
					Service struct {
						Path string `json:"path"`
					} `json:"service"`
				} `json:"clientConfig"`
			} `json:"webhooks"`
		} `json:"items"`
	}
	if err := p.getJSON(ctx, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", &list); err != nil {
		return nil, err
	}
	var found []Webhook
	for _, c := range list.Items {
		for _, w := range c.Webhooks {
			if w.Name != name {
				continue
			}
			path := w.ClientConfig.Service.Path
			if u, err := url.Parse(w.ClientConfig.URL); err == nil && w.ClientConfig.URL != "" {
				path = u.Path
			}
			found = append(found, Webhook{c.Metadata.Name, path})
		}
	}
	return found, nil
}

func (p *Probe) getJSON(ctx context.Context, path string, into any) error {
	return decodeResult(p.client.Get().AbsPath(path).Do(ctx), into)
}

// decodeResult reads an answer. Its error has the API server's words, which that of Raw has not.
func decodeResult(answer rest.Result, into any) error {
	if err := answer.Error(); err != nil {
		return err
	}
	raw, err := answer.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// Metrics reads the metrics of a descheduler once.
func (t *ScrapeTarget) Metrics(ctx context.Context) (tracker.ScrapeObservation, error) {
	client, err := t.newClient()
	if err != nil {
		return tracker.ScrapeObservation{}, err
	}
	body, err := t.fetchMetrics(ctx, client)
	if err != nil {
		return tracker.ScrapeObservation{}, err
	}
	defer func() { _ = body.Close() }()
	o, _, err := decodeScrape(body)
	return o, err
}
