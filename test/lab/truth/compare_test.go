package truth

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)

// timeAfter returns a moment of the history of the tests.
func timeAfter(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// newHistory returns a history in which db-1 is evicted from n1, fails to move once, and moves to n2.
func newHistory() History {
	return History{
		Requests: []Request{{timeAfter(0), "shop", "virt-launcher-db-1-x", "admin", 429}, {timeAfter(5), "shop", "virt-launcher-db-1-x", "admin", 429}},
		Marks:    []Mark{{VMI: "shop/db-1", Node: "n1", From: timeAfter(0), Until: timeAfter(60)}},
		Migrations: []Migration{
			{UID: "m1", VMI: "shop/db-1", Source: "n1", Target: "n2", Phase: "Failed", Failure: "it broke", Phases: map[string]time.Time{"Pending": timeAfter(1), "Scheduling": timeAfter(2), "Failed": timeAfter(10)}},
			{UID: "m2", VMI: "shop/db-1", Source: "n1", Target: "n2", Phase: "Succeeded", Update: true, Phases: map[string]time.Time{"Pending": timeAfter(11), "Scheduling": timeAfter(35), "Succeeded": timeAfter(60)}},
		},
		Stays:    []Stay{{VMI: "shop/db-1", UID: "u1", Node: "n1", From: timeAfter(-100), Until: timeAfter(60)}, {VMI: "shop/db-1", UID: "u1", Node: "n2", From: timeAfter(60)}},
		Backoffs: []Backoff{{VMI: "shop/db-1", From: timeAfter(10), Until: timeAfter(30)}},
		Waves:    []Wave{{To: "v1.9.0", VMs: 2, Moved: 2}},
	}
}

// TestCompare wants nothing to differ where evictrail recorded what happened, and each difference to be named.
func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(h *History)
		want   []string
	}{
		{"nothing differs", func(*History) {}, nil},
		{"a second later", func(h *History) { h.Marks[0].Until = timeAfter(61) }, nil},
		{"a request is missing", func(h *History) { h.Requests = h.Requests[1:] }, []string{
			"eviction request for shop/virt-launcher-db-1-x by admin: seen 09:00:00.000, recorded 09:00:05.000",
			"eviction request for shop/virt-launcher-db-1-x by admin: seen 2 times, recorded 1 times",
		}},
		{"another answer", func(h *History) { h.Requests[1].Code = 200 }, []string{
			"eviction request for shop/virt-launcher-db-1-x by admin at 09:00:05.000: answered 429, recorded 200",
		}},
		{"a mark that does not end", func(h *History) { h.Marks[0].Until = time.Time{} }, []string{"end of the mark shop/db-1 on n1: seen 09:01:00.000, recorded never"}},
		{"a mark that nobody set", func(h *History) { h.Marks = append(h.Marks, Mark{VMI: "shop/db-2", Node: "n1", From: timeAfter(0)}) }, []string{
			"mark shop/db-2 on n1: seen 0 times, recorded 1 times",
		}},
		{"a phase is missing", func(h *History) { delete(h.Migrations[0].Phases, "Scheduling") }, []string{
			"migration shop/db-1 m1: Scheduling: seen 09:00:02.000, recorded never",
		}},
		{"another failure, another node", func(h *History) { h.Migrations[0].Failure, h.Migrations[0].Target = "other", "n3" }, []string{
			`migration shop/db-1 m1: failure "it broke", recorded "other"`, `migration shop/db-1 m1: target node "n2", recorded "n3"`,
		}},
		{"an update is not known as one", func(h *History) { h.Migrations[1].Update = false }, []string{
			"migration shop/db-1 m2: KubeVirt made it to update the VMI, not recorded",
		}},
		{"a move is missing", func(h *History) { h.Stays = h.Stays[:1] }, []string{"stay shop/db-1 u1: seen 2 times, recorded 1 times"}},
		{"it went elsewhere", func(h *History) { h.Stays[1].Node = "n3" }, []string{"stay shop/db-1 u1 from 09:01:00.000: on n2, recorded n3"}},
		{"a backoff too long", func(h *History) { h.Backoffs[0].Until = timeAfter(50) }, []string{
			"backoff of shop/db-1 after 09:00:10.000: until 09:00:50.000, KubeVirt tried again at 09:00:35.000",
		}},
		{"one VM is not counted", func(h *History) { h.Waves = []Wave{{To: "v1.9.0", VMs: 2, Moved: 1}} }, []string{
			"upgrade wave to v1.9.0: seen {From: To:v1.9.0 VMs:2 Left:0 Staying:0 Moved:2 ShutDown:0 Failed:0 MovedAgain:0 MostAtOnce:0 ParallelLimit:0}, " +
				"recorded {From: To:v1.9.0 VMs:2 Left:0 Staying:0 Moved:1 ShutDown:0 Failed:0 MovedAgain:0 MostAtOnce:0 ParallelLimit:0}",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			recorded := newHistory()
			for i := range recorded.Migrations {
				recorded.Migrations[i].Phases = maps.Clone(recorded.Migrations[i].Phases)
			}
			c.change(&recorded)
			report := Compare(newHistory(), recorded)
			require.Equal(t, c.want, report.Differences)
			require.Equal(t, 2+1+2+6+2+1+1, report.Compared)
		})
	}
}
