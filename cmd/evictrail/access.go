package main

import (
	"log/slog"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/kube"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store/standby"
)

// How callers of the API, the page and the metrics are distinguished.
const (
	authNone       = "none"       // they are not
	authKubernetes = "kubernetes" // the cluster says who they are, and what they may see
)

// listAllowedHosts returns the names under which a service may be called that asks nobody who they are, and that only this machine can reach; none
// where that was said aloud, or callers are asked.
func (l *listenFlags) listAllowedHosts() []string {
	if l.auth != "" {
		return nil
	}
	return slices.Compact([]string{"localhost", "127.0.0.1", "::1", l.parseHost()})
}

// newGate makes the gate that callers pass; nil where nobody is asked who they are.
func (l *listenFlags) newGate(config *rest.Config, reads *standby.Servers, cluster func() string, m *metrics.Metrics, log *slog.Logger) (*api.Gate, error) {
	if l.auth != authKubernetes {
		return nil, nil
	}
	reviewer, err := kube.New(config)
	if err != nil {
		return nil, err
	}
	return &api.Gate{
		Reviewer: reviewer, Audiences: l.audiences, ServerTokens: api.ServerTokens(l.serverTokens), Cluster: cluster, Namespaces: callersOf{reads}.listNamespaces, Denied: m.Refused,
		Failed: func(err error) { log.Warn("caller not let in", "err", err) },
	}, nil
}
