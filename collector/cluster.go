package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// ClusterUID asks a cluster for its identity: the UID of the namespace kube-system, which lives as long as the cluster.
func ClusterUID(ctx context.Context, config *rest.Config) (string, error) {
	client, err := newClient(config, nil)
	if err != nil {
		return "", err
	}
	return clusterUID(ctx, client)
}

func clusterUID(ctx context.Context, client rest.Interface) (string, error) {
	body, err := client.Get().AbsPath("/api/v1/namespaces/kube-system").Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("get namespace kube-system: %w", stripVarying(err))
	}
	defer func() { _ = body.Close() }()
	var namespace struct {
		Metadata metadata `json:"metadata"`
	}
	if err := json.NewDecoder(body).Decode(&namespace); err != nil {
		return "", fmt.Errorf("get namespace kube-system: %w", err)
	}
	if err := namespace.Metadata.checkRequired(); err != nil {
		return "", fmt.Errorf("get namespace kube-system: %w", err)
	}
	return namespace.Metadata.UID, nil
}

// clockReader reads the API server's clock off its answers, and reports how far it is ahead of ours. The header has a resolution of
// 1 s: it is off by half of that at most, and by the way of the answer.
type clockReader struct {
	next http.RoundTripper
	skew func(time.Duration)
}

// RoundTrip implements http.RoundTripper.
func (c *clockReader) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err == nil {
		if theirs, bad := http.ParseTime(answer.Header.Get("Date")); bad == nil {
			c.skew(time.Until(theirs.Add(time.Second / 2)))
		}
	}
	return answer, err
}
