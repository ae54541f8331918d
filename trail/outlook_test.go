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
		p := newProspect(nil, text)
		is := p.readRefusals(text, start).forecast(OutlookNotUntil)
		if proof, found := p.findProof(); found {
			is = proof.forecast(OutlookNever)
		}
		require.Equal(t, want.outlook, is.outlook, text)
		require.Equal(t, want.change, is.change, text)
		p.e.FailedAttempts = 0 // the scheduler may still see it otherwise
		_, found := p.findProof()
		require.False(t, found, text)
	}
}

// start is when the scheduler first says something.
var start = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// newProspect returns an evacuation from worker-1 with an attempt an hour, of whose target pods the scheduler said something; empty: it found a node.
func newProspect(nodes []Fact, texts ...string) *prospect {
	p := &prospect{e: &evacuation{Evacuation: Evacuation{Node: "worker-1", FailedAttempts: 1}}, env: NewEnv(nodes)}
	for i, text := range texts {
		f := Fact{Kind: KindLauncherPod, Reason: ReasonUnschedulable, OccurredAt: start.Add(time.Duration(i) * time.Hour), Detail: &PodDetail{Message: text}}
		if text == "" {
			f.Reason, f.Node, f.Detail = ReasonScheduled, "worker-2", &PodDetail{}
		}
		p.attempts = append(p.attempts, &migration{pods: []Fact{f}})
	}
	return p
}

// TestNeverStaysProven says what later words of the scheduler hide, and what they disprove.
func TestNeverStaysProven(t *testing.T) {
	t.Parallel()
	const (
		own      = "1 node(s) didn't match pod anti-affinity rules"
		selector = "0/3 nodes are available: " + own + ", 2 node(s) didn't match Pod's node affinity/selector."
		volumes  = "0/3 nodes are available: " + own + ", 2 node(s) had volume node affinity conflict."
	)
	for _, c := range []struct {
		name  string
		texts []string
		want  bool
	}{
		{"it is the last that it said", []string{selector}, true},
		{"another node is cordoned by now", []string{selector, "0/3 nodes are available: " + own + ", 1 node(s) were unschedulable, 1 node(s) didn't match Pod's node affinity/selector."}, true},
		{"a node is full by now, which the scheduler asks before volumes", []string{volumes, "0/3 nodes are available: " + own + ", 1 Insufficient memory, 1 node(s) had volume node affinity conflict."}, true},
		{"a node has the label by now, and is full", []string{selector, "0/3 nodes are available: " + own + ", 1 Insufficient memory, 1 node(s) didn't match Pod's node affinity/selector."}, false},
		{"its own node is full", []string{selector, "0/3 nodes are available: 1 Insufficient memory, 2 node(s) didn't match Pod's node affinity/selector."}, true},
		{"that was two attempts ago", []string{selector, "0/3 nodes are available: " + own + ", 1 Insufficient memory, 1 node(s) didn't match Pod's node affinity/selector.", "0/3 nodes are available: " + own + ", 2 node(s) were unschedulable."}, false},
		{"there is another node by now", []string{selector, "0/4 nodes are available: " + own + ", 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector."}, false},
		{"it found a node since", []string{selector, "", "0/3 nodes are available: " + own + ", 2 node(s) were unschedulable."}, false},
	} {
		_, is := newProspect(nil, c.texts...).findProof()
		require.Equal(t, c.want, is, c.name)
	}
}

// TestForecastSchedulingInADrain holds that the cordon of the node that the VM is to leave is no node that could be uncordoned for it.
func TestForecastSchedulingInADrain(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	cordon := Fact{Kind: KindNodeCordoned, Subject: Subject{Kind: SubjectNode, Name: "worker-1"}, Node: "worker-1", What: WhatCordon, OccurredAt: at}
	uncordon := cordon
	uncordon.Kind, uncordon.OccurredAt = KindNodeUncordoned, at.Add(time.Hour)
	for _, c := range []struct {
		text  string
		after time.Duration
		want  Outlook
	}{
		{"0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector.", time.Minute, OutlookNever},
		{"0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector.", 2 * time.Hour, OutlookNotUntil}, // another node is
		{"0/3 nodes are available: 2 node(s) were unschedulable, 1 node(s) didn't match Pod's node affinity/selector.", time.Minute, OutlookNotUntil},
		{"0/3 nodes are available: 1 node(s) were unschedulable, 1 node(s) didn't match pod anti-affinity rules, 1 node(s) didn't match Pod's node affinity/selector.", time.Minute, OutlookNotUntil}, // another VM keeps it away
	} {
		p := newProspect([]Fact{cordon, uncordon}, c.text)
		p.attempts[0].pods[0].OccurredAt = at.Add(c.after)
		_, never := p.findProof()
		require.Equal(t, c.want == OutlookNever, never, c)
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
