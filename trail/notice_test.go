package trail_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestNoticesOfRows compares what rows come to, with which words, and when that happened.
func TestNoticesOfRows(t *testing.T) {
	t.Parallel()
	type noticed struct {
		kind     trail.NoticeKind
		at       string
		sentence string
		discreet string // empty: the sentence
	}
	loop := "A loop, endless retry: " + trail.LoopEndlessRetry.Label().Text
	const id = `"00000000-0000-8000-8000-000000000001"`
	vm := `"cluster": "c1", "namespace": "shop", "vmi": "db-1", "vmi_uid": "u1", "node": "worker-1", "changed_at": "2026-11-28T10:00:09.5+00:00", `
	for name, c := range map[string]struct {
		view trail.View
		row  string
		want []noticed
	}{
		"a loop that goes on": {
			trail.ViewLoops, vm + `"loop_id": ` + id + `, "kind": "endless_retry", "opened_at": "2026-11-28T10:00:00+00:00", "closed_at": null, "closed_by": null, "summary": "db-1 fails again and again."`,
			[]noticed{{trail.NoticeLoopOpened, "10:00:00", "db-1 fails again and again.", loop}},
		},
		"a loop that is over": {
			trail.ViewLoops, vm + `"loop_id": ` + id + `, "kind": "endless_retry", "opened_at": "2026-11-28T10:00:00+00:00", "closed_at": "2026-11-28T11:00:00+00:00", "closed_by": "migrated", "summary": "db-1 failed again and again."`,
			[]noticed{{trail.NoticeLoopOpened, "10:00:00", "db-1 failed again and again.", loop}, {trail.NoticeLoopClosed, "11:00:00", "db-1 failed again and again. It is over: moved.", loop + " It is over: moved."}},
		},
		"a loop that never was": {
			trail.ViewLoops, vm + `"loop_id": ` + id + `, "kind": "endless_retry", "opened_at": "2026-11-28T10:00:00+00:00", "closed_at": "2026-11-28T11:00:00+00:00", "closed_by": "refuted", "summary": "s."`,
			[]noticed{{trail.NoticeLoopClosed, "11:00:00", "s. It is over: refuted.", loop + " It is over: refuted."}},
		},
		"an evacuation without trouble": {trail.ViewEvacuations, vm + `"evacuation_id": ` + id + `, "attempts": 1, "failed_attempts": 0, "first_failed_at": null, "ended_at": null`, nil},
		"a stuck evacuation": {
			trail.ViewEvacuations, vm + `"evacuation_id": ` + id + `, "attempts": 2, "failed_attempts": 2, "first_failed_at": "2026-11-28T10:00:00+00:00",
				"last_failure_class": "scheduling", "last_failure_reason": "", "ended_at": null`,
			[]noticed{{trail.NoticeEvacuationStuck, "10:00:00", "shop/db-1 is to leave worker-1, and 2 attempts failed, the last one by scheduling.", ""}},
		},
		"an evacuation that ended": {
			trail.ViewEvacuations, vm + `"evacuation_id": ` + id + `, "attempts": 1, "failed_attempts": 0, "first_failed_at": null, "ended_at": "2026-11-28T10:00:01.25+00:00", "outcome": "migrated"`,
			[]noticed{{trail.NoticeEvacuationEnded, "10:00:01.25", "The evacuation of shop/db-1 from worker-1 is over after 1 attempt: moved.", ""}},
		},
		"a drain": {
			trail.ViewDrains, `"cluster": "c1", "node": "worker-1", "drain_id": ` + id + `, "started_at": "2026-11-28T10:00:00+00:00", "requester": "alice", "vmis_total": 3, "vmis_left": 1,
				"ended_at": "2026-11-28T11:00:00+00:00", "outcome": "abandoned"`,
			[]noticed{{trail.NoticeDrainStarted, "10:00:00", "worker-1 is drained by alice: 3 VMs to leave it.", "worker-1 is drained: 3 VMs to leave it."}, {trail.NoticeDrainEnded, "11:00:00", "The drain of worker-1 is over: abandoned. 1 VM left, of 3.", ""}},
		},
		"a guest that was lost": {
			trail.ViewPlacements, vm + `"placement_id": ` + id + `, "to_at": "2026-11-28T10:00:00+00:00", "ended_by": "node_pressure"`,
			[]noticed{{trail.NoticeGuestLost, "10:00:00", "shop/db-1 went down on worker-1. The kubelet ended the pod: under pressure, for a critical pod, or as the node shut down.", ""}},
		},
		"a guest whose owner stopped it": {trail.ViewPlacements, vm + `"placement_id": ` + id + `, "to_at": "2026-11-28T10:00:00+00:00", "ended_by": "stopped"`, nil},
		"a guest that moved":             {trail.ViewPlacements, vm + `"placement_id": ` + id + `, "to_at": "2026-11-28T10:00:00+00:00", "ended_by": null`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := json.RawMessage("{" + c.row + "}")
			all, err := trail.NoticesOf(c.view, row)
			require.NoError(t, err)
			var got []noticed
			ids := map[trail.FactID]bool{}
			for _, n := range all {
				if n.Discreet == n.Sentence {
					n.Discreet = ""
				}
				got, ids[n.ID] = append(got, noticed{n.Kind, n.At.Format("15:04:05.999"), n.Sentence, n.Discreet}), true
				require.Equal(t, row, n.Row)
				require.Equal(t, "c1", n.Cluster)
				require.Equal(t, "worker-1", n.Node)
				require.Equal(t, "00000000-0000-8000-8000-000000000001", n.Key.String())
			}
			require.Equal(t, c.want, got)
			require.Len(t, ids, len(all), "each has an ID of its own")
		})
	}
	_, err := trail.NoticesOf(trail.ViewLoops, json.RawMessage(`{"opened_at": "yesterday"}`))
	require.ErrorContains(t, err, "read a row of loops: ")
}

// TestNoticesKeepTheirIDs holds that an ID is that of cluster, kind and row, whatever else the row says by then.
func TestNoticesKeepTheirIDs(t *testing.T) {
	t.Parallel()
	of := func(cluster, summary string) trail.Notice {
		row := `{"cluster": "` + cluster + `", "loop_id": "00000000-0000-8000-8000-000000000001", "opened_at": "2026-11-28T10:00:00Z", "summary": "` + summary + `"}`
		all, err := trail.NoticesOf(trail.ViewLoops, json.RawMessage(row))
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0]
	}
	require.Equal(t, of("c1", "a").ID, of("c1", "b").ID)
	require.NotEqual(t, of("c1", "a").ID, of("c2", "a").ID)
	require.Equal(t, time.UTC, of("c1", "a").At.Location())
}
