package trail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestForecastScheduling reads the words of the scheduler: never only where each node but the guest's own is refused for how it is configured.
func TestForecastScheduling(t *testing.T) {
	t.Parallel()
	const (
		own      = "1 node(s) didn't match pod anti-affinity rules"
		control  = "3 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }"
		selector = "2 node(s) didn't match Pod's node affinity/selector"
	)
	for text, want := range map[string]struct {
		outlook Outlook
		change  string
	}{
		"0/6 nodes are available: " + own + ", " + selector + ", " + control + ". preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling.": {
			OutlookNever, "label a node as the VM's node selector or CPU model asks, or loosen the selector"},
		"0/4 nodes are available: " + own + ", " + control + ".":                                                                                  {OutlookNever, "add a node: there is no other that takes VMs"},
		"0/5 nodes are available: " + own + ", 2 node(s) had volume node affinity conflict, 2 node(s) didn't match Pod's node affinity/selector.": {OutlookNever, "put its volumes where other nodes reach them"},
		"0/4 nodes are available: 1 Insufficient memory, " + own + ", " + selector + ".":                                                          {OutlookNotUntil, "free memory on a node, or add one"},
		"0/3 nodes are available: " + own + ", 2 Insufficient devices.kubevirt.io/kvm.":                                                           {OutlookNotUntil, "bring KubeVirt's device plugins on the nodes back"},
		"0/3 nodes are available: " + own + ", 2 node(s) were unschedulable.":                                                                     {OutlookNotUntil, "uncordon a node"},
		"0/3 nodes are available: " + own + ", 2 node(s) had untolerated taint {team: blue}.":                                                     {OutlookNotUntil, "remove the taint from a node, or let the VM tolerate it"},
		"0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.":                                                                {OutlookNotUntil, "make room or add a node where the VM may run"}, // other VMs keep it away
		"0/3 nodes are available: " + own + ", 2 node(s) are haunted.":                                                                            {OutlookNotUntil, "see what the scheduler names"},
		"0/9 nodes are available: " + own + ", " + selector + ".":                                                                                 {OutlookNotUntil, "label a node as the VM's node selector or CPU model asks, or loosen the selector"}, // six are not named
		"0/5 nodes are available": {OutlookNotUntil, "make room or add a node where the VM may run"},
	} {
		p := &prospect{e: &evacuation{Evacuation: Evacuation{FailedAttempts: 1}}}
		is := p.forecastScheduling(text)
		require.Equal(t, want.outlook, is.outlook, text)
		require.Equal(t, want.change, is.change, text)
		p.e.FailedAttempts = 0 // the scheduler may still see it otherwise
		require.Equal(t, OutlookNotUntil, p.forecastScheduling(text).outlook, text)
	}
}

// TestForecastNotMigratable holds that a reason of the condition LiveMigratable that is not known is no never.
func TestForecastNotMigratable(t *testing.T) {
	t.Parallel()
	require.Equal(t, OutlookNever, forecastNotMigratable("HostDeviceNotLiveMigratable VMI uses a host device").outlook)
	require.Equal(t, OutlookNotUntil, forecastNotMigratable("HotplugNotLiveMigratable").outlook)
	require.Equal(t, OutlookNotUntil, forecastNotMigratable("Levitating").outlook)
	for reason := range notMigratableRules {
		require.Contains(t, notMigratable, reason)
	}
}

// TestMarkWithoutAttempt asks at which time a mark for which KubeVirt makes no migration is worth a word, and what is said by then.
func TestMarkWithoutAttempt(t *testing.T) {
	t.Parallel()
	marked := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		version string
		after   time.Duration
		want    Outlook
	}{
		{"v1.9.0", unattemptedAfter - 1, ""},
		{"v1.9.0", unattemptedAfter, OutlookNotUntil},
		{"v1.6.0", unattemptedAfter, OutlookTransient}, // it may wait for a slot
		{"v1.6.0", unattemptedLong, OutlookNotUntil},
	} {
		env := NewEnv([]Fact{{Kind: KindConfigSeen, Subject: Subject{Kind: SubjectConfig, Name: "KubeVirt"}, OccurredAt: marked, Detail: &ConfigDetail{KubeVirt: &KubeVirtSettings{Version: c.version}}}})
		l := &life{uid: "v", evacuations: []*evacuation{{Evacuation: Evacuation{MarkedAt: marked, Node: "n1"}}}}
		now := &moment{now: marked.Add(c.after)}
		l.evaluateOutlooks(nil, nil, env, now)
		require.Equal(t, c.want, l.evacuations[0].Outlook, c)
		require.Equal(t, c.want == "" || c.want == OutlookTransient, !now.next.IsZero(), c)
	}
}
