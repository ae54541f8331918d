package trail_test

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestAShutdownByThePlatformIsSaid asks about VMs whose guest the platform ended: why leads with it and names who began it, and whatever
// is in the way of a VM that runs again, or nothing, it is said that it has not the memory that it had.
func TestAShutdownByThePlatformIsSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		story, vm string
		why       string // how the paragraph begins
		whyNot    string
		later     string // how WhyNot begins a day later, when it need not be reported any more
	}{
		{
			"shut-down-by-taint", "db",
			"shop/db: At 2026-11-21 00:01:20Z: The VM was shut down, not moved: a taint (maintenance:NoExecute), set by alice (kubectl), took its pod virt-launcher-db-a off n1. " +
				"Its memory is lost; it was started again on n2 at 2026-11-21 00:01:35Z, after 15s. The guest runs on n2, for 5s now.",
			"shop/db on n2: It was restarted at 2026-11-21 00:01:35Z without its memory: at 2026-11-21 00:01:20Z a taint (maintenance:NoExecute), set by alice (kubectl), took its pod off n1. " +
				"Its eviction strategy None does not ask to be moved",
			"shop/db on n2: Its eviction strategy None",
		},
		{
			"shut-down-by-eviction", "a",
			`shop/a: At 2026-11-21 00:01:05Z: The VM was shut down, not moved: its pod virt-launcher-a-1 was evicted by the descheduler, saying "LowNodeUtilization"; KubeVirt let that pass, as its strategy is None. ` +
				"Its memory is lost, and it was not started again so far. At 2026-11-21 00:01:00Z the descheduler asked to evict it from n1",
			"shop/a: Its guest ended at 2026-11-21 00:01:05Z, and its memory is lost: its pod was evicted by the descheduler",
			"shop/a: The guest last ran on n1",
		},
		{
			"shut-down-by-eviction", "b",
			"shop/b: At 2026-11-21 00:02:05Z: The VM was shut down, not moved: its pod virt-launcher-b-1 was evicted by KubeVirt, which updates its VMs; KubeVirt let that pass, as its strategy is LiveMigrateIfPossible",
			"shop/b on n1: It was restarted at 2026-11-21 00:02:15Z without its memory: at 2026-11-21 00:02:05Z its pod was evicted by KubeVirt, which updates its VMs",
			"shop/b on n1: Free to move",
		},
		{
			"evicted-not-moved", "db",
			"shop/db: At 2026-11-21 00:01:03Z: The VM was shut down, not moved: its pod virt-launcher-db-a was evicted by admin (kubectl); KubeVirt let that pass, although its strategy is LiveMigrate: was its webhook away? Its memory",
			"shop/db on n2: It was restarted at 2026-11-21 00:01:05Z without its memory: at 2026-11-21 00:01:03Z its pod was evicted by admin (kubectl); " +
				"KubeVirt let that pass, although its strategy is LiveMigrate: was its webhook away? Free to move",
			"shop/db on n2: Free to move",
		},
		{
			"post-copy-of-an-update-loses-the-guest", "db",
			"shop/db: At 2026-11-21 00:00:31Z: The guest was lost: migration kubevirt-workload-update-x, asked for by KubeVirt, which updates its VMs, failed in post-copy mode, when the guest already ran on its target. " +
				"Its memory is lost; it was started again on n3 at 2026-11-21 00:00:45Z, after 14s. At 2026-11-21 00:00:11Z migration kubevirt-workload-update-x was created",
			"shop/db on n3: It was restarted at 2026-11-21 00:00:45Z without its memory: at 2026-11-21 00:00:31Z migration kubevirt-workload-update-x",
			"shop/db on n3: Free to move",
		},
		{
			"post-copy-loses-the-guest", "db",
			"shop/db: At 2026-11-21 00:00:31Z: The guest was lost: migration m-a, asked for by the descheduler, failed in post-copy mode, when the guest already ran on its target. " +
				"Its memory is lost, and it was not started again so far. At 2026-11-21 00:00:10Z KubeVirt accepted to move it away from n1, asked by the descheduler",
			"shop/db: Its guest ended at 2026-11-21 00:00:31Z, and its memory is lost: migration m-a",
			"shop/db: The guest last ran on n1",
		},
		{
			"stopped-by-its-owner", "a",
			"shop/a: Nothing was seen that would move it",
			"shop/a on n1: Its eviction strategy None does not ask",
			"shop/a on n1: Its eviction strategy None",
		},
	} {
		t.Run(c.story+" "+c.vm, func(t *testing.T) {
			t.Parallel()
			s := readStory(t, "testdata/"+c.story+".txtar")
			seen := trail.DeriveAll(s.observeFacts(), trail.DefaultThresholds(), s.now)
			require.Regexp(t, "^"+regexp.QuoteMeta(c.why), seen.Why("shop", c.vm).Paragraph)
			require.Regexp(t, "^"+regexp.QuoteMeta(c.whyNot), seen.WhyNot("shop", c.vm).Paragraph)
			dayOn := trail.DeriveAll(s.observeFacts(), trail.DefaultThresholds(), s.now.Add(trail.LostLately+time.Minute))
			require.Regexp(t, "^"+regexp.QuoteMeta(c.later), dayOn.WhyNot("shop", c.vm).Paragraph)
		})
	}
}

// TestAShutdownIsSaidBesideWhatCameLater asks why of a VM that was shut down and then moved: the move leads, and the shutdown is not forgotten.
func TestAShutdownIsSaidBesideWhatCameLater(t *testing.T) {
	t.Parallel()
	s := readStory(t, "testdata/evicted-not-moved.txtar")
	s.observations = append(s.observations,
		parseObservation(t, s.file, `{"t":"02:00","vmi":{"uid":"v2","name":"db","rv":40,"node":"n2","strategy":"LiveMigrate","created":"01:04","mark":"n2","source":"descheduler"}}`))
	seen := trail.DeriveAll(s.observeFacts(), trail.DefaultThresholds(), day.Add(3*time.Minute))
	require.Regexp(t, `^shop/db: At 2026-11-21 00:02:00Z KubeVirt accepted to move it away from n2.* It was restarted at 2026-11-21 00:01:05Z without its memory`,
		seen.Why("shop", "db").Paragraph)
}

func TestAShutdownLoopSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := readStory(t, "testdata/shutdown-churn.txtar")
	why := trail.DeriveAll(s.observeFacts(), trail.DefaultThresholds(), s.now).Why("shop", "db")
	require.Contains(t, why.Paragraph, "Shutdown loop, open since 2026-11-21 01:50:05Z: The descheduler shut shop/db down 3 times in 2h0m0s")
	for _, text := range []string{trail.AnnotationPreferNoEviction, `"evictionStrategy":"LiveMigrate"`} {
		require.Contains(t, why.Advice, text)
	}
	require.NotContains(t, trail.AdviceShutdown("shop", "db", "LiveMigrateIfPossible", trail.KubeVirtSettings{}), "evictionStrategy")
	require.Contains(t, trail.AdviceShutdown("shop", "db", "LiveMigrate", trail.KubeVirtSettings{}), "virt-api-validator")
}

// TestThresholdsOfAnOlderVersion derives a shutdown loop by thresholds that a version stored which did not know such loops.
func TestThresholdsOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	var stored map[string]any
	raw, err := json.Marshal(trail.DefaultThresholds())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &stored))
	delete(stored, "shutdowns")
	delete(stored, "down_within")
	stored["moves"], stored["objectives"] = 7, map[string]any{}
	raw, err = json.Marshal(stored)
	require.NoError(t, err)
	var read trail.Thresholds
	require.NoError(t, json.Unmarshal(raw, &read))
	want := trail.DefaultThresholds()
	want.Moves, want.Objectives = 7, trail.Objectives{}
	require.Equal(t, want.String(), read.String(), "what is absent has its default")
	require.Empty(t, read.Objectives, "what says that there are none does not")

	s := readStory(t, "testdata/shutdown-churn.txtar")
	require.NotEmpty(t, trail.DeriveAll(s.observeFacts(), read, s.now).VM("shop", "db").Loops)
	read.Shutdowns = 0
	require.Empty(t, trail.DeriveAll(s.observeFacts(), read, s.now).VM("shop", "db").Loops, "none are looked for")
	require.ErrorContains(t, json.Unmarshal([]byte(`{"moves":"many"}`), &read), "decode thresholds")
}
