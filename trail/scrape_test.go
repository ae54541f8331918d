package trail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBlocksSayWhatGrewSinceWhen follows one counter over a scrape that tells nothing new, a restart of ours, and one of
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
	tracker, facts := NewTracker("test"), []Fact(nil)
	observe := func(o ScrapeObservation) { facts = append(facts, tracker.Observe(o)...) }
	observe(scrape(0, first, 4))
	observe(scrape(30*time.Second, first, 4))
	observe(scrape(60*time.Second, first, 6))
	tracker = resumed(facts)
	observe(scrape(180*time.Second, first, 7))
	observe(scrape(240*time.Second, second, 2))
	require.Equal(t, &DeschedulerDetail{Target: "d", Version: "v1", Plugin: true}, facts[0].Detail)
	require.Equal(t, first, facts[0].OccurredAt)
	var got []BlocksDetail
	for _, f := range facts {
		if d, ok := f.Detail.(*BlocksDetail); ok {
			require.Equal(t, Subject{SubjectNode, "n1"}, f.Subject)
			require.Equal(t, "shop", f.Namespace)
			got = append(got, *d)
		}
	}
	require.Equal(t, []BlocksDetail{
		{"d", "cooldown", 4, 4, first},
		{"d", "cooldown", 2, 6, day.Add(30 * time.Second)},
		{"d", "cooldown", 1, 7, day.Add(60 * time.Second)}, // the last scrape that a fact tells of
		{"d", "cooldown", 2, 2, second},
	}, got)
}
