package tracker_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestMessagesOfRespondersAreBounded has a responder count its attempts in its message: each text is recorded once,
// 20 at most, and the last of them says so, also where another tracker goes on from the facts. A heartbeat alone is
// no fact, and the messages of another responder are counted apart.
func TestMessagesOfRespondersAreBounded(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	tr, version := tracker.New("test"), 0
	observe := func(responders ...tracker.EvictionResponder) []trail.Fact {
		version++
		now := began.Add(time.Duration(version) * time.Minute)
		for i := range responders {
			responders[i].State, responders[i].HeartbeatAt = "Active", now
		}
		return tr.Observe(tracker.EvictionObservation{
			Seen: tracker.Seen{At: now}, Pod: "virt-launcher-db", PodUID: "p1", Responders: responders,
			Meta: tracker.Meta{UID: "e1", Namespace: "shop", Name: "pod-1-db", ResourceVersion: strconv.Itoa(version)},
		})
	}
	attempt := func(n int) tracker.EvictionResponder {
		return tracker.EvictionResponder{Name: trail.ImperativeEvictor, Message: fmt.Sprintf("attempts=%d", n)}
	}
	require.Len(t, observe(attempt(1)), 2, "a message, and the state")
	all := []trail.Fact{}
	for n := 2; n <= 40; n++ {
		facts := observe(attempt(n))
		require.Empty(t, observe(attempt(n)), "a heartbeat alone")
		require.Empty(t, observe(attempt(min(n, 5))), "the same text again")
		all = append(all, facts...)
		if n == 10 {
			state := tr.State()
			tr = tracker.New("test")
			for f := range state {
				tr.Resume(f)
			}
		}
	}
	require.Len(t, all, 19)
	for i, f := range all {
		require.Equal(t, trail.ReasonResponderReports, f.Reason)
		require.True(t, strings.HasPrefix(f.What, "message/"+trail.ImperativeEvictor+"/"), f.What)
		require.Equal(t, i == 18, f.Detail.(*trail.ResponderDetail).Last)
	}
	require.Len(t, observe(tracker.EvictionResponder{Name: "storage.io/flush", Message: "flushing"}), 2)
}
