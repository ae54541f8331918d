package collector

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/client-go/rest"
)

// ClusterUID asks a cluster for its identity: the UID of the namespace kube-system, which lives as long as the cluster.
func ClusterUID(ctx context.Context, config *rest.Config) (string, error) {
	client, err := newClient(config)
	if err != nil {
		return "", err
	}
	body, err := client.Get().AbsPath("/api/v1/namespaces/kube-system").Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("get namespace kube-system: %w", err)
	}
	defer func() { _ = body.Close() }()
	var namespace struct {
		Metadata metadata `json:"metadata"`
	}
	if err := json.NewDecoder(body).Decode(&namespace); err != nil {
		return "", fmt.Errorf("get namespace kube-system: %w", err)
	}
	if err := namespace.Metadata.check(); err != nil {
		return "", fmt.Errorf("get namespace kube-system: %w", err)
	}
	return namespace.Metadata.UID, nil
}
