package tracker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestFloodOfEventsOfOneNamespace has one namespace create Events without end: its share becomes facts, the rest a gap that names it, and Events of others
// are recorded as ever.
func TestFloodOfEventsOfOneNamespace(t *testing.T) {
	t.Parallel()
	const flood = 3 * eventsAtOnce
	tr := New("c1")
	about := func(namespace string, i int, at time.Time) KubeEventObservation {
		e := eventAbout(namespace, "db", i, "x")
		e.About.Kind, e.At = string(trail.ObjectVMI), at
		return e
	}
	recorded := 0
	for i := range flood {
		recorded += len(tr.Observe(about("shop", i, day)))
	}
	require.Equal(t, eventsAtOnce, recorded)
	require.EqualValues(t, flood-eventsAtOnce, tr.RefusedEvents())
	require.Less(t, len(tr.objects), eventsAtOnce+1, "what is refused is not remembered")
	require.Len(t, tr.Observe(about("bank", 1, day)), 1)

	require.Empty(t, tr.Observe(about("shop", 1, day)), "known: a list returned it again")
	require.EqualValues(t, flood-eventsAtOnce, tr.RefusedEvents())

	facts := tr.Observe(about("bank", 2, day.Add(refusalsReported)))
	require.Len(t, facts, 3, "the gap, and the Event")
	require.Equal(t, []trail.Gap{{
		ID: facts[0].ID, Source: "events", OpenedAt: day, ClosedAt: day, Cause: trail.ReasonOverflow,
		Detail: "20000 Kubernetes Events of namespace shop were not recorded: more than 10000 an hour",
	}}, trail.Derive(facts[0].Subject, facts[:2], trail.NewEnv(nil), day.Add(time.Hour)).Gaps)
	require.Len(t, tr.Observe(about("bank", 3, day.Add(2*refusalsReported))), 1, "recorded once")

	recorded = 0
	for i := range flood {
		recorded += len(tr.Observe(about("shop", flood+i, day.Add(time.Hour/2))))
	}
	require.InDelta(t, eventsAtOnce/2, recorded, 1, "half a share after half an hour")
}
