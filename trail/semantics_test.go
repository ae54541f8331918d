package trail_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestSemantics says which rules hold for which versions, as what is derived follows them.
func TestSemantics(t *testing.T) {
	t.Parallel()
	cooldown := &trail.DeschedulerSettings{Cooldown: &trail.CooldownSettings{Base: time.Minute}}
	for _, c := range []struct {
		name        string
		kubevirt    *trail.KubeVirtSettings
		descheduler *trail.DeschedulerSettings
		process     *trail.DeschedulerDetail
		want        string
	}{
		{"nothing was seen", nil, nil, nil, "KubeVirt: version not seen. Descheduler: none seen; no cooldowns."},
		{"a version of no known form", &trail.KubeVirtSettings{Version: "devel"}, &trail.DeschedulerSettings{}, nil,
			`KubeVirt, version "devel": of no known form; its rules are taken to be those of the newest release. Descheduler: no cooldowns.`},
		{"an old KubeVirt", &trail.KubeVirtSettings{Version: "v1.3.0"}, cooldown, &trail.DeschedulerDetail{Version: "4.21", Plugin: true},
			"KubeVirt v1.3.0: eviction-in-progress is taken off when an attempt fails; no annotation names the descheduler; no backoff after failed workload updates. " +
				"Descheduler 4.21: cooldowns as of release 4.21: of migrations only those count that KubeVirt still keeps."},
		{"v1.6.1", &trail.KubeVirtSettings{Version: "v1.6.1"}, cooldown, &trail.DeschedulerDetail{Version: "4.22", Plugin: true},
			"KubeVirt v1.6.1: eviction-in-progress stays until the evacuation ends; no annotation names the descheduler; backoff after failed workload updates, too. " +
				"Descheduler 4.22: cooldowns as of release 4.22 or newer: migrations are remembered as long as its process runs."},
		{"v1.9.0, and no plugin", &trail.KubeVirtSettings{Version: "v1.9.0"}, cooldown, &trail.DeschedulerDetail{Version: "4.22"},
			"KubeVirt v1.9.0: eviction-in-progress stays until the evacuation ends; eviction-source names the descheduler; backoff after failed workload updates, too; " +
				"stuck, slow and aborted migrations fail with one text. Descheduler 4.22: no cooldowns."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, trail.DescribeSemantics(c.kubevirt, c.descheduler, c.process))
		})
	}
}

// TestAnswersSayWhatTheyRestOn asks of a VM whose KubeVirt was upgraded after it was marked: the answer speaks of the rules and the settings of
// then, and of when its story began; where nothing is said about the past, of now.
func TestAnswersSayWhatTheyRestOn(t *testing.T) {
	t.Parallel()
	h := newHistory()
	h.applyKubeVirt(0, trail.KubeVirtSettings{Version: "v1.6.0"})
	h.changeVM(time.Second, "db", nil)
	h.changeVM(time.Second, "web", nil)
	h.markVM(10*time.Minute, "db", "descheduler")
	h.applyKubeVirt(20*time.Minute, trail.KubeVirtSettings{Version: "v1.8.4"})
	c := h.deriveAt(30 * time.Minute)

	for _, rests := range []trail.Rests{c.Why("shop", "db").Rests, c.WhyNot("shop", "db").Rests, c.WhyNotNode("n1").Rests} {
		require.Equal(t, day.Add(10*time.Minute), rests.Since)
		require.Equal(t, c.VM("shop", "db").Evacuations[0].Policy, rests.Policy)
		require.Contains(t, rests.Semantics, "KubeVirt v1.6.0: ")
	}
	quiet := c.Why("shop", "web").Rests
	require.Equal(t, c.VM("shop", "web").Placements[0].FromAt, quiet.Since, "that nothing moved it is said of all the time for which it is there")
	now := c.WhyNot("shop", "web").Rests
	require.Zero(t, now.Since)
	require.Contains(t, now.Semantics, "KubeVirt v1.8.4: ")
	require.NotEqual(t, quiet.Policy, now.Policy)
}
