package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// eventAbout makes a Kubernetes Event about a VMIM.
func eventAbout(namespace, migration string, i int, message string) KubeEventObservation {
	return KubeEventObservation{
		Seen:  Seen{At: day.Add(time.Duration(i) * time.Second)},
		Meta:  Meta{UID: fmt.Sprintf("%s-%d", namespace, i), Namespace: namespace, Name: fmt.Sprint("e", i), ResourceVersion: fmt.Sprint(100 + i)},
		About: Involved{Kind: string(trail.ObjectMigration), Namespace: namespace, Name: migration, UID: "uid-" + migration}, Reason: "FailedMigration",
		Message: message, Count: 1,
	}
}

func migrationSeen(namespace, name string) MigrationObservation {
	return MigrationObservation{Seen: Seen{At: day}, Meta: Meta{UID: "uid-" + name, Namespace: namespace, Name: name, ResourceVersion: "7"}, VMI: "db"}
}

// subjectsOf counts the facts of Kubernetes Events by their subject.
func subjectsOf(facts []trail.Fact) map[trail.Subject]int {
	n := map[trail.Subject]int{}
	for _, f := range facts {
		if f.Kind == trail.KindKubernetesEvent {
			n[f.Subject]++
		}
	}
	return n
}

// TestFloodOfWaitingEvents has one namespace flood the Events that wait for a VMIM: memory is bounded, each that is displaced is recorded, once, and those of another
// namespace find their VMIM.
func TestFloodOfWaitingEvents(t *testing.T) {
	t.Parallel()
	const flood = 5000
	tr := New("c1")
	require.Empty(t, tr.Observe(eventAbout("bank", "m", 0, "x")))
	var facts []trail.Fact
	for i := range flood {
		facts = append(facts, tr.Observe(eventAbout("shop", "never", i, strings.Repeat("x", 1000)))...)
		require.LessOrEqual(t, tr.waiting.bytes, waitingLimit)
	}
	held := len(tr.waiting.events) - 1
	require.Greater(t, held, 1000)
	require.Equal(t, map[trail.Subject]int{{Kind: trail.SubjectUnknown, Name: "shop/never"}: flood - held}, subjectsOf(facts), "what is displaced is recorded")
	require.EqualValues(t, flood-held, tr.DisplacedEvents())
	require.Equal(t, map[trail.Subject]int{trail.VMISubject("bank", "db"): 1}, subjectsOf(tr.Observe(migrationSeen("bank", "m"))))
	require.Equal(t, map[trail.Subject]int{trail.VMISubject("shop", "db"): held}, subjectsOf(tr.Observe(migrationSeen("shop", "never"))))
	require.Empty(t, tr.waiting.events)
	require.Zero(t, tr.waiting.bytes)
	require.Empty(t, tr.waiting.of)
}

// TestWaitingEventIsListedAgainAndDeleted has a list return an Event that waits, and then the Event end before its VMIM was seen: it is recorded once.
func TestWaitingEventIsListedAgainAndDeleted(t *testing.T) {
	t.Parallel()
	tr := New("c1")
	e := eventAbout("shop", "m", 1, "x")
	require.Empty(t, tr.Observe(e))
	require.Empty(t, tr.Observe(e))
	require.Len(t, tr.waiting.events, 1)
	e.Gone, e.ResourceVersion = true, "200"
	require.Equal(t, map[trail.Subject]int{{Kind: trail.SubjectUnknown, Name: "shop/m"}: 1}, subjectsOf(tr.Observe(e)))
	require.Empty(t, tr.waiting.events)
	require.Empty(t, tr.objects)
}
