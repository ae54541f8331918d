package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

const comparePath = "/compare"

// compareBody is how clusters fared, side by side.
type compareBody struct {
	Rows        []compareRow
	Spans       []choice // of days
	Span        string   // that is shown
	KubeVirt    string   // beginning of the version that is asked for
	First, Last time.Time
	Gaps        bool // some days have gaps
	Hidden      bool // the visitor may see only some namespaces
}

// compareRow is one cluster with the address of its page.
type compareRow struct {
	trail.ClusterComparison
	Href, Failed, Needless, Missed string
	Often                          trail.FailureClass
	OftenCount                     int
}

// compareSpans are the numbers of days that are compared.
var compareSpans = []string{"7d", "30d", "90d", "365d"}

func comparePage(v *visit) error {
	span := cmp.Or(v.param("since"), compareSpans[1])
	since, err := trail.ParseTime(span, time.Now().UTC())
	if err != nil {
		return &Refusal{Status: http.StatusBadRequest, Text: "since " + err.Error()}
	}
	b := compareBody{Span: span, KubeVirt: v.param("kubevirt"), Hidden: v.limited}
	for _, s := range compareSpans {
		href := buildHref(comparePath, "since", s, "kubevirt", b.KubeVirt)
		if s == span {
			href = ""
		}
		b.Spans = append(b.Spans, choice{s, href})
	}
	all, err := v.fleet.Compare(v.Context(), trail.CompareQuery{Cluster: v.Cluster, KubeVirt: b.KubeVirt, Since: since})
	if err != nil {
		return err
	}
	b.First, b.Last = trail.ComparedDays(all)
	for _, c := range all {
		b.Gaps = b.Gaps || c.GapDays > 0
		row := compareRow{
			ClusterComparison: c, Href: buildHref("/", "cluster", c.Cluster),
			Failed: renderKnownShare(c.FailedShare()), Needless: renderKnownShare(c.NeedlessShare()), Missed: renderKnownShare(c.MissedShare()),
		}
		row.Often, row.OftenCount = c.MostFrequent()
		b.Rows = append(b.Rows, row)
	}
	v.Title, v.Content = "Clusters compared", b
	return v.renderPage("compare", http.StatusOK)
}

// renderKnownShare returns a share in percent; a dash where it is of nothing.
func renderKnownShare(share float64, known bool) string {
	if !known {
		return "–"
	}
	return formatShare(&share)
}

// checkCluster returns an error where the address names a cluster that is not recorded.
func (v *visit) checkCluster() error {
	known := func(c trail.ClusterSummary) bool { return c.Name == v.Cluster }
	if v.Cluster == "" || slices.ContainsFunc(v.Clusters, known) || v.recorderOf(v.Cluster) != nil {
		return nil
	}
	return fmt.Errorf("cluster %s: %w", v.Cluster, trail.ErrNotFound)
}
