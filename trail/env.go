package trail

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Env is what surrounds a VMI when it is derived: the cordons and taints of nodes, the rules in force, the requests
// about its pods and about migrations in its namespace, each with its history. It is made of facts only and safe for
// concurrent reads.
type Env struct {
	nodes    map[string][]Fact
	asked    map[Subject][]Fact // requests, by pod and by namespace
	known    map[Subject]bool   // pods whose VMI is known
	kubevirt []configAt
	policies []configAt       // of the descheduler
	starts   []Fact           // of the descheduler's processes
	rows     map[Subject]Rows // of the VMs that touch a node

	migrationPolicies []policyAt
	inForce           []inForce // what these settings come to, the oldest first: at least one, the first from ever on

	thresholds Thresholds
	settled    Settled
	gaps       []Gap // in which marks could come and go unseen
}

// envSlack is how much later than a mark a cordon may show and still count as its cause: two watches have no common
// order, and kubectl drain cordons some 30 ms before it evicts.
const envSlack = time.Second

// NewEnv makes an Env of the facts of nodes and of the rules in force, in any order.
func NewEnv(facts []Fact) *Env {
	e := &Env{nodes: map[string][]Fact{}, asked: map[Subject][]Fact{}, known: map[Subject]bool{}, rows: map[Subject]Rows{}, thresholds: DefaultThresholds()}
	var gaps []Fact
	for _, f := range sortFactRefs(facts) {
		switch f.Subject.Kind {
		case SubjectNode:
			e.nodes[f.Subject.Name] = append(e.nodes[f.Subject.Name], *f)
		case SubjectConfig:
			e.addConfig(*f)
		case SubjectSource:
			gaps = append(gaps, *f)
		case SubjectPod, SubjectNamespace:
			e.asked[f.Subject] = append(e.asked[f.Subject], *f)
		case SubjectVMI:
			if d, ok := f.Detail.(*PodDetail); ok {
				e.known[Subject{SubjectPod, f.Namespace + "/" + d.Pod}] = true
			}
		case SubjectUnknown, SubjectCluster:
		}
	}
	e.gaps = deriveGaps(gaps)
	e.inForce = e.followSettings()
	return e
}

// Surround returns an Env with the rules in force, the thresholds and the gaps of e, and with the facts of nodes, by their names, and requests, by pod and by namespace.
// Both are in the order of their times (SortFacts), are kept, and are not changed.
func (e *Env) Surround(nodes map[string][]Fact, asked map[Subject][]Fact) *Env {
	out := *e
	out.nodes, out.asked, out.rows, out.settled = nodes, asked, map[Subject]Rows{}, Settled{}
	return &out
}

// newEnvForFacts makes an Env of some facts, with the rules in force by which requests are classed.
func (e *Env) newEnvForFacts(facts []Fact) *Env {
	own := NewEnv(facts)
	own.thresholds, own.kubevirt = e.thresholds, e.kubevirt
	return own
}

// Judge sets the thresholds of loops; without it they are those of DefaultThresholds.
func (e *Env) Judge(t Thresholds) { e.thresholds = t }

func (e *Env) addConfig(f Fact) {
	d, ok := f.Detail.(*ConfigDetail)
	switch {
	case f.Kind == KindDeschedulerStarted:
		e.starts = append(e.starts, f)
	case f.Object.Kind == ObjectMigrationPolicy:
		e.addMigrationPolicy(f)
	case !ok:
	case d.KubeVirt != nil:
		e.kubevirt = append(e.kubevirt, configAt{f.OccurredAt, f.Namespace, *d})
	default:
		e.policies = append(e.policies, configAt{f.OccurredAt, f.Namespace, *d})
	}
}

// RuleSubjects names the subjects whose facts are the rules in force: KubeVirt's settings, MigrationPolicies, and the policy of the descheduler
// with its processes.
func RuleSubjects() []Subject {
	return []Subject{
		{SubjectConfig, string(ObjectKubeVirt)}, {SubjectConfig, string(ObjectMigrationPolicy)}, {SubjectConfig, string(ObjectPolicy)},
	}
}

// The sources whose gaps hide marks.
var markSources = []Subject{{SubjectSource, "virtualmachineinstances"}, {SubjectSource, SourceSelf}}

// SettingSubjects names the subjects of which every Env has all facts: the rules in force, and the sources of marks.
func SettingSubjects() []Subject { return slices.Concat(RuleSubjects(), markSources) }

// findPodRequests returns the requests about a pod, in the order of their times.
func (e *Env) findPodRequests(pod Subject) []Fact { return e.asked[pod] }

// findMigrationRequests returns the requests about migrations in a namespace, in the order of their times, without those of KubeVirt's own: whose wish it carries
// out is another request.
func (e *Env) findMigrationRequests(namespace string) []Fact {
	asked := e.asked[Subject{SubjectNamespace, namespace}]
	own := map[string]bool{} // by sender, of whom there are few
	byKubeVirt := func(f Fact) bool {
		d, ok := f.Detail.(*RequestDetail)
		if !ok || d.Impersonator != "" {
			return false
		}
		is, known := own[d.User]
		if !known {
			class, _ := e.accountClass(d.User)
			is = class == RequesterKubeVirt
			own[d.User] = is
		}
		return is
	}
	if slices.ContainsFunc(asked, byKubeVirt) {
		return slices.DeleteFunc(slices.Clone(asked), byKubeVirt)
	}
	return asked
}

// EnvSubjects names the subjects whose facts make the Env of a VMI: the nodes that its facts name, its pods, the
// namespace of its migrations, the rules, and the sources of marks. The names are unique and sorted.
func EnvSubjects(of ...[]Fact) []Subject {
	seen := map[Subject]bool{}
	for _, s := range SettingSubjects() {
		seen[s] = true
	}
	for _, facts := range of {
		for i := range facts {
			f := &facts[i]
			if f.Subject.Kind != SubjectVMI {
				continue
			}
			if dependsOnNode(f) || namesTaintedNode(f) {
				seen[Subject{SubjectNode, f.Node}] = true
			}
			if d, ok := f.Detail.(*PodDetail); ok {
				seen[Subject{SubjectPod, f.Namespace + "/" + d.Pod}] = true
			}
			if namesAction(f) {
				seen[Subject{SubjectNamespace, f.Namespace}] = true
			}
		}
	}
	out := make([]Subject, 0, len(seen))
	for s := range seen {
		out = append(out, s)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].String() < out[j].String() })
	return out
}

// dependsOnNode reports whether the meaning of a fact of a VMI depends on the state of the node that it names: that a guest is to leave, or that the
// target pod of a migration is on.
func dependsOnNode(f *Fact) bool {
	return f.Node != "" && (f.Kind == KindEvacuationMarked || f.Kind == KindMigrationSeen || f.Kind == KindLauncherPod && f.MigrationUID != "")
}

// namesTaintedNode reports whether a fact is about a pod that a taint of its node took away: the node says which taint, and who set it.
func namesTaintedNode(f *Fact) bool {
	return f.Node != "" && f.Reason == ReasonDisrupted && disruptionEndings[f.Value] == EndingTaint
}

// namesAction returns the facts of a VMI behind which somebody's own request may stand: a migration that no controller
// made, or the deletion of one that was not over.
func namesAction(f *Fact) bool {
	switch f.Kind {
	case KindMigrationSeen:
		return f.Reason == ReasonPlain || f.Reason == ReasonNamedNode || f.Reason == ReasonDecentralized
	case KindMigrationDeletionAsked, KindMigrationGone:
		d, ok := f.Detail.(*EndDetail)
		return ok && !d.Final
	default:
		return false
	}
}

// hasGapAt reports whether a mark set at the time could have come and gone unseen.
func (e *Env) hasGapAt(at time.Time) bool {
	for _, g := range e.gaps {
		if !g.OpenedAt.After(at.Add(time.Second)) && (g.ClosedAt.IsZero() || !g.ClosedAt.Before(at)) {
			return true
		}
	}
	return false
}

// blindBetween reports whether a mark could have gone and come back unseen between two times; without an end, ever since.
func (e *Env) blindBetween(from, to time.Time) bool {
	for _, g := range e.gaps {
		if (to.IsZero() || g.OpenedAt.Before(to)) && (g.ClosedAt.IsZero() || g.ClosedAt.After(from)) {
			return true
		}
	}
	return false
}

// isCordoned reports whether the node was unschedulable at the time.
func (e *Env) isCordoned(node string, at time.Time) bool {
	return e.hadNodeState(KindNodeCordoned, node, at, func(f Fact) bool { return f.What == WhatCordon })
}

// drainTainted reports whether the node bore KubeVirt's drain taint at the time.
func (e *Env) drainTainted(node string, at time.Time) bool {
	return e.hadNodeState(KindNodeTainted, node, at, e.isDrainTaint)
}

// hadNodeState reports whether the last of the facts that is selects, up to the time, was of a kind. Before the first of them a
// node counts as it was found: a state that came from a list is older than its sight, and one that ends had begun. A node
// that was deleted takes its states with it.
func (e *Env) hadNodeState(kind Kind, node string, at time.Time, is func(Fact) bool) bool {
	var first, last *Fact
	for i := range e.nodes[node] {
		f := &e.nodes[node][i]
		if !is(*f) && f.Kind != KindNodeGone {
			continue
		}
		if first == nil && f.Kind != KindNodeGone {
			first = f
		}
		if !f.OccurredAt.After(at.Add(envSlack)) {
			last = f
		}
	}
	if last == nil && first != nil {
		return first.Kind != kind || first.Late
	}
	return last != nil && last.Kind == kind
}

// cordonedBy names who cordoned a node that was unschedulable at a time, after the word by; empty where unknown.
func (e *Env) cordonedBy(node string, at time.Time) string {
	text := ""
	for _, f := range e.nodes[node] {
		if f.Kind != KindNodeCordoned || f.OccurredAt.After(at.Add(envSlack)) {
			continue
		}
		text = ""
		if who := e.nodeChangedBy(f); who != nil {
			text = " by " + e.formatRequester(who)
		}
	}
	return text
}

// drainTaintedBy returns who set the drain taint that a node bore at a time; nil where unknown.
func (e *Env) drainTaintedBy(node string, at time.Time) *RequestDetail {
	var who *RequestDetail
	for _, f := range e.nodes[node] {
		if f.Kind == KindNodeTainted && e.isDrainTaint(f) && !f.OccurredAt.After(at.Add(envSlack)) {
			who = e.nodeChangedBy(f)
		}
	}
	return who
}

// untaintedAfter returns the time at which the drain taint was taken off the node or went with it, zero where neither was.
func (e *Env) untaintedAfter(node string, at time.Time) time.Time {
	for _, f := range e.nodes[node] {
		if (f.Kind == KindNodeUntainted && e.isDrainTaint(f) || f.Kind == KindNodeGone) && f.OccurredAt.After(at) {
			return f.OccurredAt
		}
	}
	return time.Time{}
}

// isDrainTaint returns the facts about the taint that the settings in force at their time call the drain taint.
func (e *Env) isDrainTaint(f Fact) bool {
	key := e.kubevirtSettingsAt(f.OccurredAt).DrainTaintKey
	if key == "" {
		key = DefaultDrainTaintKey
	}
	return f.What == WhatTaint+key+":"+EffectNoSchedule
}

// kubevirtSettingsAt returns KubeVirt's settings in force at the time: the latest seen before, else the first seen at all.
func (e *Env) kubevirtSettingsAt(at time.Time) KubeVirtSettings {
	var in *KubeVirtSettings
	for i := range e.kubevirt {
		if in == nil || !e.kubevirt[i].at.After(at) {
			in = e.kubevirt[i].detail.KubeVirt
		}
	}
	if in == nil {
		return KubeVirtSettings{}
	}
	return *in
}

// deschedulerSettingsAt returns the descheduler's settings in force at the time: the latest seen before, else the first seen at all. Nil
// where none were.
func (e *Env) deschedulerSettingsAt(at time.Time) *DeschedulerSettings {
	var in *DeschedulerSettings
	for i := range e.policies {
		if p := &e.policies[i]; p.detail.Descheduler != nil && (in == nil || !p.at.After(at)) {
			in = p.detail.Descheduler
		}
	}
	return in
}

// findDeschedulerProcess returns the process of the descheduler at a time: the last that was started before. Nil where none is known.
func (e *Env) findDeschedulerProcess(at time.Time) (start time.Time, process *DeschedulerDetail) {
	n := sort.Search(len(e.starts), func(i int) bool { return e.starts[i].OccurredAt.After(at) }) // they may be many: one per run of a CronJob
	for i := n - 1; i >= 0; i-- {
		if d, ok := e.starts[i].Detail.(*DeschedulerDetail); ok {
			return e.starts[i].OccurredAt, d
		}
	}
	return time.Time{}, nil
}

// deschedulerChanges returns the times at which the descheduler was started or its policy changed, in their order.
func (e *Env) deschedulerChanges() []time.Time {
	var out []time.Time
	for _, f := range e.starts {
		out = append(out, f.OccurredAt)
	}
	for _, p := range e.policies {
		out = append(out, p.at)
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// deschedulerKnown reports whether a descheduler is known to be at work in the cluster.
func (e *Env) deschedulerKnown() bool { return len(e.policies) > 0 || len(e.starts) > 0 }

// marksSource reports whether KubeVirt of this version is v1.7.0 or later: it writes the annotation eviction-source, lets evacuations be cancelled, and carries the
// descheduler's annotations from a VM to its pod.
// Known is false where the version was not seen.
func (s KubeVirtSettings) marksSource() (marks, known bool) {
	major, minor, ok := majorMinor(s.Version)
	return major > 1 || major == 1 && minor >= 7, ok
}

// majorMinor reads "v1.8.4" as 1, 8.
func majorMinor(version string) (major, minor int, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, errMajor := strconv.Atoi(parts[0])
	minor, errMinor := strconv.Atoi(parts[1])
	return major, minor, errMajor == nil && errMinor == nil
}
