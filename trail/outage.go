package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// OutageCause says how it is known that a node is not ready.
type OutageCause string

// The causes of outages.
const (
	OutageSilent   OutageCause = "silent"   // its kubelet does not answer: Ready is Unknown, or the taint unreachable is there
	OutageReported OutageCause = "reported" // its kubelet reports that it is not ready: Ready is False, or the taint not-ready is there
)

// OutageEnd says how an outage ended; empty while it goes on.
type OutageEnd string

// The ends of outages.
const (
	OutageRecovered OutageEnd = "recovered" // the node is ready again
	OutageNodeGone  OutageEnd = "node_gone" // the node was deleted
)

// Outage is a time in which a node was not ready. A live migration needs the virt-handler of both its nodes: where the kubelet is silent no VM leaves the
// node, and no migration to it gets on. A kubelet that reports that it is not ready starts no pod, while what runs there, virt-handler too, may run on.
// Kubernetes deletes the pods of the node after their toleration, five minutes if nobody set another; they stay Terminating until the kubelet answers or the node is fenced.
//
// Source: kubernetes pkg/controller/nodelifecycle and pkg/controller/tainteviction; kubevirt pkg/virt-controller/watch/node/node.go.
type Outage struct {
	ID      FactID      `json:"outage_id"` // of the fact that showed it first
	Node    string      `json:"node"`
	BeganAt time.Time   `json:"began_at"`
	EndedAt time.Time   `json:"ended_at,omitzero"`
	EndedBy OutageEnd   `json:"ended_by,omitempty"`
	Cause   OutageCause `json:"cause"`             // the last one, as a kubelet may report before it falls silent
	Message string      `json:"message,omitempty"` // what Kubernetes says of it: reason and message of the condition
}

// The taints that the node lifecycle controller sets on a node that is not ready, with the effect NoSchedule and then NoExecute.
var outageTaints = map[string]OutageCause{
	taintUnreachable:               OutageSilent,
	"node.kubernetes.io/not-ready": OutageReported,
}

// outageCause returns what a fact says of the readiness of its node: the cause of an outage, empty where it speaks of its end. It is false where the
// fact speaks of something else.
func outageCause(f *Fact) (cause OutageCause, says bool) {
	switch f.Kind {
	case KindNodeNotReady:
		if f.Reason == ReasonKubeletSilent {
			return OutageSilent, true
		}
		return OutageReported, true
	case KindNodeReady:
		return "", true
	case KindNodeTainted, KindNodeUntainted:
		key, _, _ := strings.Cut(strings.TrimPrefix(f.What, WhatTaint), ":")
		if cause, says = outageTaints[key]; f.Kind == KindNodeUntainted {
			cause = ""
		}
		return cause, says
	default:
		return "", false
	}
}

// OfOutage reports whether a fact says that its node is not ready, or that it is no more.
func (f *Fact) OfOutage() bool {
	_, says := outageCause(f)
	return says || f.Kind == KindNodeGone
}

// outagesOf finds the outages of a node in its facts, which come in the order of their times. One lasts while the node is not ready or, where its condition
// was not seen, bears a taint that says so.
func outagesOf(facts []Fact) []Outage {
	var out []Outage
	signs := map[string]bool{} // by what they are about
	end := func(f *Fact, by OutageEnd) {
		if n := len(out); n > 0 && out[n-1].EndedAt.IsZero() {
			out[n-1].EndedAt, out[n-1].EndedBy = f.OccurredAt, by
		}
	}
	for i := range facts {
		f := &facts[i]
		if f.Kind == KindNodeGone {
			clear(signs)
			end(f, OutageNodeGone)
			continue
		}
		cause, says := outageCause(f)
		switch {
		case !says:
		case f.Kind == KindNodeReady: // the taints go some seconds later
			clear(signs)
			end(f, OutageRecovered)
		case cause == "":
			if delete(signs, f.What); len(signs) == 0 {
				end(f, OutageRecovered)
			}
		default:
			if len(signs) == 0 {
				out = append(out, Outage{ID: f.ID, Node: f.Node, BeganAt: f.OccurredAt})
			}
			signs[f.What] = true
			o := &out[len(out)-1]
			if d, ok := f.Detail.(*ConditionDetail); ok { // which says more than a taint
				o.Cause, o.Message = cause, conditionText(d)
			}
			o.Cause = cmp.Or(o.Cause, cause)
		}
	}
	return out
}

// conditionText returns the reason and the message of a condition.
func conditionText(d *ConditionDetail) string {
	return strings.Join(nonEmpty([]string{d.Reason, d.Message}), ": ")
}

// findOutages returns the outages of a node, in their order.
func (e *Env) findOutages(node string) []Outage { return outagesOf(e.nodes[node]) }

// outageAt returns the outage that lasts at a time; nil where none does.
func outageAt(outages []Outage, at time.Time) *Outage {
	for i := range outages {
		if o := &outages[i]; (interval{o.BeganAt, o.EndedAt}).containsTime(at) {
			return o
		}
	}
	return nil
}

// findOpenOutage returns the outage of a node that goes on; nil where the node is ready, or nothing is known of it.
func (c *Cluster) findOpenOutage(node string) *Outage {
	if node == "" {
		return nil
	}
	return outageAt(c.Node(node).Outages, c.Now)
}

// describeState says that the node is not ready, since when and why, after its name: "is not ready since 10:02 (3m ago): its kubelet does not answer".
func (o *Outage) describeState(now time.Time) string {
	return fmt.Sprintf("is not ready since %s (%s ago): %s", FormatClock(o.BeganAt), formatSpan(now.Sub(o.BeganAt)), o.describeCause())
}

// describePeriod says the same without a moment from which it is looked at: rows are shown for long.
func (o *Outage) describePeriod() string {
	if o.EndedAt.IsZero() {
		return fmt.Sprintf("%s is not ready since %s: %s", o.Node, FormatClock(o.BeganAt), o.describeCause())
	}
	return fmt.Sprintf("%s was not ready from %s to %s", o.Node, FormatClock(o.BeganAt), FormatClock(o.EndedAt))
}

// blocksMigration reports whether nothing leaves the node: its kubelet is silent, and so is its virt-handler.
func (o *Outage) blocksMigration() bool { return o.Cause == OutageSilent }

// describeCause says what is wrong with a node that is not ready.
func (o *Outage) describeCause() string {
	switch {
	case o.Cause == OutageSilent:
		return "its kubelet does not answer"
	case o.Message == "":
		return "its kubelet says so"
	}
	return "its kubelet reports " + strings.TrimSuffix(o.Message, ".")
}

// adviceOutage says what to do about a node that is not ready, and about the VMs on it.
//
// Source: kubernetes pkg/controller/podgc/gc_controller.go, gcTerminating; kubevirt pkg/virt-controller/watch/node/node.go,
// checkVirtLauncherPodsAndUpdateVMIStatus.
func adviceOutage(node string) string {
	return fmt.Sprintf("Bring %s back: look at its machine, its network and its kubelet. What it says of itself:\n", node) +
		fmt.Sprintf("  kubectl describe node %s\n", node) +
		"If it stays down, switch it off first (fence it): while it may still run, its VMs must not be started a second time. " +
		"Then let Kubernetes delete its pods:\n" +
		fmt.Sprintf("  kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute\n", node) +
		"KubeVirt then marks its VMIs as failed, and VMs that are to run start on other nodes. " +
		"They reboot: a live migration needs the virt-handler of the node that it leaves."
}

// silentBefore bounds how long a kubelet is silent before Kubernetes says so: --node-monitor-grace-period, 50 s if nobody set another.
const silentBefore = time.Minute

// strandedAttempt returns the last attempt of an evacuation that had a target pod, where it is over and the kubelet of the pod's node is silent: the pod stays
// there, and KubeVirt makes no next attempt while a second pod of the VM is alive. Nil where there is none, or no evacuation.
//
// Source: kubevirt pkg/virt-controller/watch/drain/evacuation/evacuation.go, filterRunningNonMigratingVMIs; tried in test/lab.
func (c *Cluster) strandedAttempt(d *Derived, e *Evacuation) *Migration {
	if e == nil {
		return nil
	}
	for _, m := range slices.Backward(d.attemptsOf(e.ID)) {
		if m.TargetNode == "" {
			continue
		}
		o := c.findOpenOutage(m.TargetNode)
		if o == nil || !o.blocksMigration() || m.FinishedAt.IsZero() || m.FinishedAt.Before(o.BeganAt.Add(-silentBefore)) {
			return nil
		}
		return &m
	}
	return nil
}

// describeStranded says why KubeVirt makes no next attempt after a stranded one.
func (c *Cluster) describeStranded(m *Migration) string {
	return fmt.Sprintf("the target pod of %s is left on %s, which %s; KubeVirt makes no other before it is gone",
		m.formatLabel(), m.TargetNode, c.findOpenOutage(m.TargetNode).describeState(c.Now))
}

// adviceStalled says what to do about a migration whose target pod is on a node that is not ready. A kubelet that answers ends the pod when the migration is
// deleted, a silent one leaves it Terminating. In post-copy the guest may run there already: then the node is all that can be helped.
//
// Source: tried in test/lab.
func adviceStalled(m *Migration, o *Outage) string {
	deletion := fmt.Sprintf("delete the migration:\n  kubectl delete vmim -n %s %s\n", m.Namespace, m.Name)
	switch lead := fmt.Sprintf("The VM still runs on %s. To free the slot of its migration, ", m.SourceNode); {
	case m.Mode == modePostCopy:
		return adviceOutage(m.TargetNode)
	case o != nil && o.blocksMigration():
		return lead + deletion + adviceStranded(m)
	default:
		return lead + "and have the next attempt go to another node, " + deletion + adviceOutage(m.TargetNode)
	}
}

// adviceStranded says how the target pod of a migration is removed that is left on a node whose kubelet is silent.
func adviceStranded(m *Migration) string {
	return fmt.Sprintf("The target pod of %s stays Terminating on %s, and KubeVirt makes no other before it is gone. ", m.Name, m.TargetNode) +
		"To have the next attempt go to another node, remove it; the guest does not run in it:\n" +
		fmt.Sprintf("  kubectl delete pod -n %s -l kubevirt.io/migrationJobUID=%s --force --grace-period=0\n", m.Namespace, m.UID) + adviceOutage(m.TargetNode)
}
