package trail

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// findSchedulerText returns what the scheduler last said of the target pod of a migration, and when; empty where it found a node, or said nothing.
func (m *migration) findSchedulerText() (text string, at time.Time) {
	if unschedulable, scheduled := m.targetScheduling(); !unschedulable || scheduled {
		return "", time.Time{}
	}
	for _, f := range m.pods {
		if d, ok := f.Detail.(*PodDetail); ok && f.Reason == ReasonUnschedulable && d.Message != "" {
			text, at = d.Message, f.OccurredAt
		}
	}
	return text, at
}

// schedulerCause is a cause for which the scheduler refuses nodes.
type schedulerCause struct {
	words      string // in lower case
	configured bool   // it does not pass while the VM and the nodes are configured as they are
	change     string // empty: it counts for nothing by itself
	schedulerOrder
}

// schedulerOrder says what a cause leaves open about the others, as the scheduler names the first one of a node.
type schedulerOrder struct {
	first   bool // it is looked at before selectors
	cordon  bool // with that, the node is cordoned
	volumes bool // it is looked at after room
}

// schedulerCauses are what the scheduler says of nodes, the first match counts. What is not among them can pass.
//
// Source: kubernetes pkg/scheduler/framework/plugins, the texts of ErrReason.
var schedulerCauses = []schedulerCause{
	{"untolerated taint {node-role.kubernetes.io/", true, "", schedulerOrder{first: true}},
	{"untolerated taint {node.kubernetes.io/unschedulable", false, "uncordon a node", schedulerOrder{first: true, cordon: true}},
	{"untolerated taint {node.kubernetes.io/", false, "bring the nodes back that are not ready or under pressure", schedulerOrder{first: true}},
	{"untolerated taint", false, "remove the taint from a node, or let the VM tolerate it", schedulerOrder{first: true}},
	{"were unschedulable", false, "uncordon a node", schedulerOrder{first: true, cordon: true}},
	{"didn't match pod's node affinity/selector", true, "label a node as the VM's node selector or CPU model asks, or loosen the selector", schedulerOrder{}},
	{"didn't match pod anti-affinity rules", false, "", schedulerOrder{}}, // its own node: the target pod may not be where the source is
	{"didn't satisfy existing pods anti-affinity rules", false, "move the pods that keep it away", schedulerOrder{}},
	{"volume node affinity conflict", true, "put its volumes where other nodes reach them", schedulerOrder{volumes: true}},
	{"insufficient devices.kubevirt.io", false, "bring KubeVirt's device plugins on the nodes back", schedulerOrder{}},
	{"insufficient memory", false, "free memory on a node, or add one", schedulerOrder{}},
	{"insufficient cpu", false, "free CPU on a node, or add one", schedulerOrder{}},
	{"insufficient ", false, "free what is short on a node, or add one", schedulerOrder{}},
	{"too many pods", false, "raise the pods per node, or add a node", schedulerOrder{}},
}

var (
	nodesOfAll   = regexp.MustCompile(`(?i)0/(\d+) nodes are available: `)
	nodesRefused = regexp.MustCompile(`(?:^|, )(\d+) `)
)

// refusal is for what cause how many nodes were refused.
type refusal struct {
	count int
	cause schedulerCause
}

// parseRefusals reads the scheduler's words, such as "0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable. preemption: ...". All is the number of
// nodes; 0 where the words have another form.
func parseRefusals(text string) (all int, out []refusal) {
	at := nodesOfAll.FindStringSubmatchIndex(text)
	if at == nil {
		return 0, nil
	}
	all, _ = strconv.Atoi(text[at[2]:at[3]])
	list := strings.ToLower(text[at[1]:])
	list, _, _ = strings.Cut(list, ". preemption:")
	list = strings.TrimSuffix(strings.TrimSpace(list), ".")
	starts := nodesRefused.FindAllStringSubmatchIndex(list, -1)
	for i, s := range starts {
		end := len(list)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		r := refusal{cause: schedulerCause{words: list[s[3]:end], change: "see what the scheduler names"}}
		r.count, _ = strconv.Atoi(list[s[2]:s[3]])
		for _, c := range schedulerCauses {
			if strings.Contains(list[s[3]:end], c.words) {
				r.cause = c
				break
			}
		}
		out = append(out, r)
	}
	return all, out
}

// refusals are what the scheduler said of the nodes for a target pod.
type refusals struct {
	text       string
	all, named int     // nodes there are, and nodes of which a cause is named
	own        int     // that are the one that the guest is on, or that other pods of the VM's kind are on
	fits       int     // others that would do but for room, and the like: the scheduler asks for that after selectors and before volumes
	volumes    int     // that do not reach the volumes
	passes     bool    // some cause can pass
	best       refusal // the smallest change would help against it
}

// readRefusals reads what the scheduler said at a time. The node that the guest is on is cordoned in a drain, and is then named for that.
func (p *prospect) readRefusals(text string, at time.Time) refusals {
	all, each := parseRefusals(text)
	said, _, _ := strings.Cut(text, " preemption:")
	out := refusals{text: ClipText(strings.TrimSuffix(said, "."), mostSchedulerSay), all: all}
	for _, r := range each {
		out.named += r.count
		if r.cause.cordon && r.count > 0 && p.env.isCordoned(p.e.Node, at) {
			out.own, r.count = out.own+1, r.count-1
		}
		switch {
		case r.count == 0:
		case r.cause.change == "" && !r.cause.configured:
			out.own += r.count
		case !r.cause.configured:
			if !r.cause.first {
				out.fits += r.count
			}
			if !out.passes || r.count > out.best.count { // what can pass is the smaller change
				out.best, out.passes = r, true
			}
		default:
			if r.cause.volumes {
				out.volumes += r.count
			}
			if r.cause.change != "" && !out.passes && r.count > out.best.count {
				out.best = r
			}
		}
	}
	switch {
	case out.own > 1: // other VMs keep it away, too
		out.passes = true
	case out.own == 0 && out.fits > 0: // the node that the guest is on is full itself
		out.fits--
	}
	return out
}

// proveNever reports whether each node is refused for how it or the VM is configured, but for the one that the guest is on.
func (r refusals) proveNever() bool { return r.all > 0 && r.named == r.all && !r.passes }

// forecast returns an outlook on the ground of the refusals.
func (r refusals) forecast(outlook Outlook) prognosis {
	is := prognosis{outlook, "the scheduler finds no node for its target pod: " + r.text, "make room or add a node where the VM may run"}
	switch {
	case r.best.cause.change != "":
		is.change = r.best.cause.change
	case r.all > 0 && r.own == 1 && r.named == r.all:
		is.change = "add a node: there is no other that takes VMs"
	}
	return is
}

// findProof returns the latest words of the scheduler by which no node may ever run the VM as things are configured. At least one attempt has failed: it has said
// so for as long as KubeVirt waits. What it said later may hide that, where a node was cordoned or full by then. It disproves that where it found a node, where
// there are more or fewer nodes, and where more nodes than have no way to the volumes lack nothing but room: the scheduler looks at that after selectors.
//
// Source: kubernetes pkg/scheduler/apis/config/v1/default_plugins.go, the order of the filters.
func (p *prospect) findProof() (proof refusals, found bool) {
	if p.e.FailedAttempts == 0 {
		return proof, false
	}
	nodes, fits := 0, 0
	for _, m := range slices.Backward(p.attempts) {
		if _, scheduled := m.targetScheduling(); scheduled {
			return proof, false
		}
		text, at := m.findSchedulerText()
		if text == "" {
			continue
		}
		r := p.readRefusals(text, at)
		switch {
		case nodes > 0 && r.all != nodes:
			return proof, false
		case r.proveNever():
			return r, fits <= r.volumes
		}
		nodes, fits = r.all, max(fits, r.fits)
	}
	return proof, false
}
