package web

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// recorderPath serves the banner alone: open pages fetch it to follow the state.
const recorderPath = "/recorder"

// banner is what every page says about the recorder, at its top.
type banner struct {
	Class    string                 // good, warn, bad or past
	State    trail.RecorderState    // the worst
	Headline string                 // with the age of the newest event
	Standby  string                 // that what is shown is older than now, as a standby of the database has it; empty: it is not
	Recorder *trail.RecorderStatus  // of the cluster, where it is not fully recorded
	Troubled []trail.RecorderStatus // of several clusters: those that are not fully recorded
	Live     bool                   // something is recorded
	Certain  bool                   // an empty list may be read as "there is none"
}

// recorderClass returns how a state is drawn.
func recorderClass(s trail.RecorderStatus) string {
	switch {
	case s.Replayed:
		return "past"
	case s.Healthy():
		return "good"
	case s.State == trail.RecorderDegraded:
		return "warn"
	}
	return "bad"
}

// bannerOf returns the banner of a page about one cluster, or about all where cluster is empty; nil where no recorder is known.
func bannerOf(all []trail.RecorderStatus, cluster string) *banner {
	if cluster != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(s trail.RecorderStatus) bool { return s.Cluster != cluster })
	}
	worst, known := trail.Worst(all)
	if !known {
		return nil
	}
	b := &banner{Class: recorderClass(worst), State: worst.State, Headline: worst.Headline(), Certain: worst.Certain(), Live: slices.ContainsFunc(all, trail.RecorderStatus.Live)}
	b.Standby = trail.OldestStandby(all).Notice()
	if len(all) == 1 {
		if !b.Certain {
			b.Recorder = &worst
		}
		return b
	}
	for _, s := range all {
		if !s.Certain() {
			b.Troubled = append(b.Troubled, s)
		}
	}
	recorded := slices.DeleteFunc(slices.Clone(all), func(s trail.RecorderStatus) bool { return s.Replayed })
	switch {
	case len(b.Troubled) > 0:
		are := "are"
		if len(b.Troubled) == 1 {
			are = "is"
		}
		b.Headline = fmt.Sprintf("%d of %d clusters %s not fully recorded:", len(b.Troubled), len(all), are)
	case len(recorded) == 0:
		b.Headline = fmt.Sprintf("%d recordings, replayed", len(all))
	default:
		newest := slices.MaxFunc(recorded, func(a, b trail.RecorderStatus) int { return a.LastEventAt.Compare(b.LastEventAt) })
		b.Headline = fmt.Sprintf("Recording %d cluster%s; %s", len(recorded), pluralSuffix(len(recorded)), newest.LastEvent())
	}
	return b
}

// nameState has the page say how it stands with what it shows: the state of the recorders, and whose part is missing. What is missing is never certain.
func (v *visit) nameState() {
	v.Banner = bannerOf(v.recorders, v.Cluster)
	if v.site.Missing == nil {
		return
	}
	if v.Missing = v.site.Missing(v.Context()); len(v.Missing) > 0 && v.Banner != nil {
		v.Banner.Certain = false
		if v.Banner.Class == "good" {
			v.Banner.Class = "warn"
		}
	}
}

// recorderOf returns the state of the recorder of a cluster; nil where it is not known.
func (v *visit) recorderOf(cluster string) *trail.RecorderStatus {
	i := slices.IndexFunc(v.recorders, func(s trail.RecorderStatus) bool { return s.Cluster == cluster })
	if i < 0 {
		return nil
	}
	return &v.recorders[i]
}

// nameGaps has the page name the gaps of a cluster that overlap a window. One that reaches up to the present also has those that opened
// since the last observation.
func (v *visit) nameGaps(cluster string, w window, present bool) error {
	to := w.To
	if present && !to.Before(w.Now) {
		to = time.Time{}
	}
	all, err := v.reader.Recorders(v.Context(), cluster, w.From, to)
	for _, s := range all {
		if s.Cluster == cluster {
			v.Unobserved = trail.DescribeGaps(s.NotObserved)
		}
	}
	return err
}

// recorderPage shows the banner alone.
func recorderPage(v *visit) error {
	v.nameState()
	return v.executeTemplate("front", "recorder", http.StatusOK)
}
