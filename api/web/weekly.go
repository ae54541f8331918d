package web

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/evictrail/evictrail/trail"
)

// weeklyPath is the page of what happened week by week.
const weeklyPath = "/weekly"

// besideWeekly leads to that page from others, which add their cluster.
var besideWeekly = choice{"Week by week", weeklyPath}

// weeklyBody is what the page shows of each cluster.
type weeklyBody struct {
	All     []weeklyOfCluster
	Several bool // clusters are named
	Spans   []choice
	Fields  []listField
	Hidden  []hidden
	Rests   string
	JSON    string // address at which the API answers the same
}

// weeklyOfCluster is what happened in one cluster.
type weeklyOfCluster struct {
	trail.Weekly
	Notes []string // what may be missing in it
	Pools bool     // pools of nodes are known
}

// weeklyPage shows what happened week by week, as the command does.
func weeklyPage(v *visit) error {
	v.Title = "Week by week"
	if v.leadToTidyAddress() {
		return nil
	}
	values := dropAppearance(v.URL.Query())
	q, err := v.site.ParseWeekly(values.Encode(), v.asked)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadQuestion, err)
	}
	if err := v.checkCluster(); err != nil {
		return err
	}
	all, err := v.fleet.Weekly(v.Context(), q)
	if err != nil {
		return err
	}
	b := weeklyBody{Several: len(all) > 1, Hidden: v.hiddenFields("weeks", "until"), JSON: "/api/v1/weekly"}
	if len(values) > 0 {
		b.JSON += "?" + values.Encode()
	}
	b.Fields = append(
		v.clusterField(),
		listField{Name: "namespace", Label: "Namespace", Value: q.Namespace},
		listField{
			Name:  "target",
			Label: "Objectives kept, in percent",
			Value: v.param("target"),
			Hint:  strconv.Itoa(trail.UsualTarget),
		},
	)
	chosen := q.Weeks
	if chosen == 0 {
		chosen = trail.UsualWeeks
	}
	for _, weeks := range []int{trail.UsualWeeks, 12, trail.MostWeeks} {
		span := choice{trail.FormatCount(weeks, "week"), v.linkWith("weeks", strconv.Itoa(weeks))}
		if weeks == chosen {
			span.Href = ""
		}
		b.Spans = append(b.Spans, span)
	}
	for _, w := range all {
		of := weeklyOfCluster{Weekly: w, Notes: trail.DescribeRecording(w.Recorder, w.NotObserved)}
		for _, o := range w.Objectives {
			of.Pools = of.Pools || o.Pool != ""
		}
		b.All, b.Rests = append(b.All, of), w.Rests()
	}
	v.AsOf, v.Content = v.asked, b
	return v.renderPage("weekly", http.StatusOK)
}
