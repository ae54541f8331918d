package tracker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestBlocksSayWhatGrewSinceWhen follows one counter over a scrape that shows nothing new, a restart of ours, and one of
// the descheduler.
func TestBlocksSayWhatGrewSinceWhen(t *testing.T) {
	t.Parallel()
	first, second := day.Add(-time.Hour), day.Add(210*time.Second)
	scrape := func(at time.Duration, start time.Time, count float64) ScrapeObservation {
		return ScrapeObservation{
			Seen: Seen{At: day.Add(at)}, Target: "d", StartedAt: start, Version: "v1", Plugin: true,
			Blocks: []BlockCount{{Reason: "cooldown", Node: "n1", Namespace: "shop", Count: count}},
		}
	}
	tr, facts := New("test"), []trail.Fact(nil)
	observe := func(o ScrapeObservation) { facts = append(facts, tr.Observe(o)...) }
	observe(scrape(0, first, 4))
	observe(scrape(30*time.Second, first, 4))
	observe(scrape(60*time.Second, first, 6))
	tr = newResumedTracker(facts)
	observe(scrape(180*time.Second, first, 7))
	observe(scrape(240*time.Second, second, 2))
	require.Equal(t, &trail.DeschedulerDetail{Target: "d", Version: "v1", Plugin: true}, facts[0].Detail)
	require.Equal(t, first, facts[0].OccurredAt)
	var got []trail.BlocksDetail
	for _, f := range facts {
		if d, ok := f.Detail.(*trail.BlocksDetail); ok {
			require.Equal(t, trail.Subject{Kind: trail.SubjectNode, Name: "n1"}, f.Subject)
			require.Equal(t, "shop", f.Namespace)
			got = append(got, *d)
		}
	}
	require.Equal(t, []trail.BlocksDetail{
		{Target: "d", Reason: "cooldown", Increase: 4, Count: 4, Since: first},
		{Target: "d", Reason: "cooldown", Increase: 2, Count: 6, Since: day.Add(30 * time.Second)},
		{Target: "d", Reason: "cooldown", Increase: 1, Count: 7, Since: day.Add(60 * time.Second)}, // the last scrape that a fact names
		{Target: "d", Reason: "cooldown", Increase: 2, Count: 2, Since: second},
	}, got)
}
