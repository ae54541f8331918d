package web

import (
	"net/http"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

// limitsPath is the page that reports whether KubeVirt's limits on parallel migrations fit.
const limitsPath = "/limits"

// besideLimits leads to that page from others, which add their cluster.
var besideLimits = choice{"Do the limits on parallel migrations fit?", limitsPath}

// limitsBody is what the page says of each cluster.
type limitsBody struct {
	Hidden  bool // to a visitor who sees some namespaces alone: all of them share the slots
	All     []limitsOfCluster
	Several bool   // clusters are named
	JSON    string // address at which the API answers the same
}

// limitsOfCluster is what is said of the limits of one cluster.
type limitsOfCluster struct {
	forecast.Limits
	Notes []string // what may be missing in it
}

// LimitsName says which limits an option is about, by its place.
func (l limitsOfCluster) LimitsName(i int) string {
	return []string{"in force", "twice per node", "twice in the cluster", "twice both"}[i]
}

// limitsPage reports whether limits fit, in the words of the command.
func limitsPage(v *visit) error {
	v.Title = "Limits"
	if v.leadToTidyAddress() {
		return nil
	}
	if err := v.checkCluster(); err != nil {
		return err
	}
	all, err := v.fleet.Limits(v.Context(), v.Cluster)
	if err != nil {
		return err
	}
	b := limitsBody{
		Hidden:  v.limited,
		Several: len(all) > 1,
		JSON:    buildHref("/api/v1/clusters/limits", "cluster", v.Cluster),
	}
	for _, l := range all {
		b.All = append(b.All, limitsOfCluster{l, trail.DescribeRecording(l.Recorder, l.NotObserved)})
	}
	v.AsOf, v.Content = v.asked, b
	return v.renderPage("limits", http.StatusOK)
}
