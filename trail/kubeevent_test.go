package trail

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eventAbout makes a Kubernetes Event about a VMIM.
func eventAbout(namespace, migration string, i int, message string) KubeEventObservation {
	return KubeEventObservation{
		Seen:  Seen{At: day.Add(time.Duration(i) * time.Second)},
		Meta:  Meta{UID: fmt.Sprintf("%s-%d", namespace, i), Namespace: namespace, Name: fmt.Sprint("e", i), ResourceVersion: fmt.Sprint(100 + i)},
		About: Involved{Kind: string(ObjectMigration), Namespace: namespace, Name: migration, UID: "uid-" + migration}, Reason: "FailedMigration",
		Message: message, Count: 1,
	}
}

func migrationSeen(namespace, name string) MigrationObservation {
	return MigrationObservation{Seen: Seen{At: day}, Meta: Meta{UID: "uid-" + name, Namespace: namespace, Name: name, ResourceVersion: "7"}, VMI: "db"}
}

// subjectsOf counts the facts of Kubernetes Events by their subject.
func subjectsOf(facts []Fact) map[Subject]int {
	n := map[Subject]int{}
	for _, f := range facts {
		if f.Kind == KindKubernetesEvent {
			n[f.Subject]++
		}
	}
	return n
}

// TestFloodOfWaitingEvents has one namespace flood the Events that wait for a VMIM: memory is bounded, each that gives way is recorded, once, and those of another
// namespace find their VMIM.
func TestFloodOfWaitingEvents(t *testing.T) {
	t.Parallel()
	const flood = 5000
	tracker := NewTracker("c1")
	require.Empty(t, tracker.Observe(eventAbout("bank", "m", 0, "x")))
	var facts []Fact
	for i := range flood {
		facts = append(facts, tracker.Observe(eventAbout("shop", "never", i, strings.Repeat("x", 1000)))...)
		require.LessOrEqual(t, tracker.waiting.bytes, waitingLimit)
	}
	held := len(tracker.waiting.events) - 1
	require.Greater(t, held, 1000)
	require.Equal(t, map[Subject]int{{SubjectUnknown, "shop/never"}: flood - held}, subjectsOf(facts), "what gives way is recorded")
	require.EqualValues(t, flood-held, tracker.DisplacedEvents())
	require.Equal(t, map[Subject]int{VMISubject("bank", "db"): 1}, subjectsOf(tracker.Observe(migrationSeen("bank", "m"))))
	require.Equal(t, map[Subject]int{VMISubject("shop", "db"): held}, subjectsOf(tracker.Observe(migrationSeen("shop", "never"))))
	require.Empty(t, tracker.waiting.events)
	require.Zero(t, tracker.waiting.bytes)
	require.Empty(t, tracker.waiting.of)
}

// TestWaitingEventIsListedAgainAndDeleted has a list return an Event that waits, and then the Event end before its VMIM was seen: it is recorded once.
func TestWaitingEventIsListedAgainAndDeleted(t *testing.T) {
	t.Parallel()
	tracker := NewTracker("c1")
	e := eventAbout("shop", "m", 1, "x")
	require.Empty(t, tracker.Observe(e))
	require.Empty(t, tracker.Observe(e))
	require.Len(t, tracker.waiting.events, 1)
	e.Gone, e.ResourceVersion = true, "200"
	require.Equal(t, map[Subject]int{{SubjectUnknown, "shop/m"}: 1}, subjectsOf(tracker.Observe(e)))
	require.Empty(t, tracker.waiting.events)
	require.Empty(t, tracker.objects)
}
