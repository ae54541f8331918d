package tracker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestPolicyThatComesBack reads policies from a file, over restarts: each change is a fact, the first policy again too.
func TestPolicyThatComesBack(t *testing.T) {
	t.Parallel()
	var facts []trail.Fact
	var counts []int
	for i, text := range []string{"a", "a", "b", "b", "a", "a"} {
		o := PolicyObservation{Seen: Seen{At: day.Add(time.Duration(i) * time.Minute)}, Meta: Meta{UID: "file"}, Text: text}
		facts = append(facts, newResumedTracker(facts).Observe(o)...)
		counts = append(counts, len(facts))
	}
	require.Equal(t, []int{1, 1, 2, 2, 3, 3}, counts)
	require.NotEqual(t, facts[0].ID, facts[2].ID)
}
