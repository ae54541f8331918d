package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outlook reports whether an open evacuation can succeed as things are.
type Outlook string

// The outlooks of an evacuation.
const (
	OutlookNever     Outlook = "never"     // not as the VM, its disks and the nodes are configured
	OutlookNotUntil  Outlook = "not_until" // not until something changes that need not change by itself
	OutlookTransient Outlook = "transient" // what is in the way passes by itself
)

// Outlooks lists the outlooks of an evacuation.
func Outlooks() []Outlook { return outlookLabels.values() }

const (
	unattemptedAfter = 2 * time.Minute  // from when on it is worth a word that KubeVirt has made no migration of a VM that it marked
	unattemptedLong  = 30 * time.Minute // from when on waiting for a slot does not explain it
	sameFailures     = 3                // failures in a row of one reason that do not pass by themselves
	mostSchedulerSay = 300              // bytes of the scheduler's words that are cited
)

// prognosis is an outlook with its ground, and the smallest change that would help; the zero prognosis is none.
type prognosis struct {
	outlook Outlook
	because string // a sentence without a stop, as are the changes
	change  string
}

// evaluateOutlooks sets the outlook of the evacuations of one life that are open. One that was just begun, or whose first attempt is under way, has none.
func (l *life) evaluateOutlooks(migrations []*migration, pods map[string]*launcher, env *Env, now *moment) {
	for _, e := range l.evacuations {
		if e.Outcome != "" || !l.deletedAt.IsZero() {
			continue
		}
		p := &prospect{e: e, life: l, pods: pods, env: env, now: now}
		for _, m := range migrations {
			switch {
			case m.evacuation == e:
				p.attempts = append(p.attempts, m)
			case m.VMIUID == l.uid && m.FinishedAt.IsZero():
				p.other = m
			}
		}
		is := p.evaluate()
		e.Outlook, e.OutlookBecause, e.OutlookChange = is.outlook, is.because, is.change
	}
}

// prospect is what an outlook follows from.
type prospect struct {
	e        *evacuation
	life     *life
	attempts []*migration // of the evacuation, in the order of their creation
	other    *migration   // a migration of the VM that is under way and no attempt; nil where there is none
	pods     map[string]*launcher
	env      *Env
	now      *moment
}

// evaluate looks for what forbids the move first, then for what the current attempt waits for, then for why the last one failed.
func (p *prospect) evaluate() prognosis {
	if p.e.Strategy == StrategyExternal {
		return prognosis{OutlookNotUntil, "its eviction strategy is External: KubeVirt makes no migration", "have the controller that owns the VM move it, or withdraw the eviction"}
	}
	if text := p.findNotMigratable(); text != "" {
		return forecastNotMigratable(text)
	}
	if o := p.findOutage(p.e.Node); o != nil {
		return prognosis{OutlookNotUntil, "its node " + o.Node + " is not ready, and a live migration needs the virt-handler there", "bring " + o.Node + " back, or fence it"}
	}
	if proof, is := p.findProof(); is {
		return proof.forecast(OutlookNever)
	}
	current := p.findCurrent()
	if current == nil {
		failure := p.forecastFailure()
		if failure.outlook != "" && failure.outlook != OutlookTransient {
			return failure
		}
		return cmp.Or(p.forecastUnattempted(), failure)
	}
	if is := p.forecastWait(current); is.outlook != "" {
		return is
	}
	if !current.SchedulingAt.IsZero() {
		if text, at := current.findSchedulerText(); text != "" {
			return p.readRefusals(text, at).forecast(OutlookNotUntil)
		}
	}
	return p.forecastFailure()
}

// findNotMigratable returns why KubeVirt cannot live-migrate the VM where it is; empty where it can.
func (p *prospect) findNotMigratable() string {
	for _, stay := range p.life.placements {
		if stay.ToAt.IsZero() {
			return stay.NotMigratable
		}
	}
	return ""
}

// findOutage returns the outage of a node that goes on and lets no migration get on; nil where there is none.
func (p *prospect) findOutage(node string) *Outage {
	outages := p.env.findOutages(node)
	for i := range outages {
		o := &outages[i]
		if o.blocksMigration() && p.now.hasReached(o.BeganAt) && (o.EndedAt.IsZero() || !p.now.hasReached(o.EndedAt)) {
			return o
		}
	}
	return nil
}

// findCurrent returns the attempt that is not over; nil where there is none.
func (p *prospect) findCurrent() *migration {
	for _, m := range slices.Backward(p.attempts) {
		if m.FinishedAt.IsZero() && m.Outcome == "" && m.gone == nil {
			return m
		}
	}
	return nil
}

// notMigratableRule says what becomes of a VM with one of KubeVirt's reasons why it cannot be live-migrated.
type notMigratableRule struct {
	outlook Outlook
	change  string
}

// notMigratableRules are those of the reasons whose change is known. The others can pass.
//
// Source: kubevirt pkg/virt-handler/vm.go; reference kubevirt-signals §5.4.
var notMigratableRules = map[string]notMigratableRule{
	"DisksNotLiveMigratable":                 {OutlookNever, "put its disks on shared (ReadWriteMany) volumes"},
	"InterfaceNotLiveMigratable":             {OutlookNever, "use a masquerade binding, or bridge only secondary networks"},
	"CPUModeLiveMigratable":                  {OutlookNever, "use a named CPU model instead of host-passthrough"},
	"HostDeviceNotLiveMigratable":            {OutlookNever, "remove the host device"},
	"SEVNotLiveMigratable":                   {OutlookNever, "do without SEV"},
	"TDXNotLiveMigratable":                   {OutlookNever, "do without TDX"},
	"SecureExecutionNotLiveMigratable":       {OutlookNever, "do without Secure Execution"},
	"NoTSCFrequencyNotLiveMigratable":        {OutlookNotUntil, "let its node expose the TSC frequency, or do without the features that need it"},
	"HypervPassthroughNotLiveMigratable":     {OutlookNever, "name the Hyper-V features instead of passing all of the host through"},
	"VirtIOFSNotLiveMigratable":              {OutlookNever, "do without virtiofs"},
	"PersistentReservationNotLiveMigratable": {OutlookNever, "do without SCSI persistent reservations"},
	"HotplugNotLiveMigratable":               {OutlookNotUntil, "detach the hotplugged volume"},
}

func forecastNotMigratable(text string) prognosis {
	reason, _, _ := strings.Cut(text, " ")
	rule, known := notMigratableRules[reason]
	if !known {
		rule = notMigratableRule{OutlookNotUntil, "remove what the condition LiveMigratable names"}
	}
	return prognosis{rule.outlook, "KubeVirt cannot live-migrate it: " + ClipText(text, mostSchedulerSay), rule.change + "; else only stopping the VM empties the node"}
}

// forecastWait returns the outlook of an attempt that waits, or whose target is on a node that is not ready; none where it does not wait.
func (p *prospect) forecastWait(m *migration) prognosis {
	if !m.SchedulingAt.IsZero() && !m.isStalled() {
		return prognosis{}
	}
	what := m.formatLabel() + " waits: " + ClipText(waitText(&m.Migration), mostSchedulerSay)
	switch m.WaitReason {
	case WaitQuota:
		return prognosis{OutlookNotUntil, what, "raise the ResourceQuota of namespace " + p.e.Namespace + ", or free some of it"}
	case WaitUtilityVolumes:
		return prognosis{OutlookNotUntil, what, "detach the utility volumes"}
	case WaitDeleting:
		return prognosis{OutlookNotUntil, what, "find out why its finalizer stays: virt-controller removes it"}
	case WaitLeftoverPods:
		return prognosis{OutlookNotUntil, what, "end the pod that is left over"}
	case WaitTargetNode:
		return prognosis{OutlookNotUntil, what, "bring " + m.TargetNode + " back, or delete the migration"}
	case WaitBackup:
		return prognosis{OutlookTransient, what, ""}
	case WaitClusterLimit, WaitNodeLimit, WaitQueued:
		return prognosis{OutlookTransient, m.formatLabel() + " waits for its turn", ""}
	case WaitBackoff:
		return p.forecastFailure()
	}
	return prognosis{}
}

// forecastUnattempted returns the outlook of an evacuation for which KubeVirt has made no migration although one was due: the precondition that is missing, as far as
// it is recorded. None where none was due for long, or one may have come unseen.
func (p *prospect) forecastUnattempted() prognosis {
	due := maxTime(p.e.MarkedAt, p.e.NextRetryAt)
	for _, m := range p.attempts {
		due = maxTime(due, m.FinishedAt)
	}
	if !p.now.hasReached(due.Add(unattemptedAfter)) || p.env.blindBetween(due, time.Time{}) {
		return prognosis{}
	}
	lead := "KubeVirt has marked it and made no migration since " + FormatClock(due)
	if len(p.attempts) > 0 {
		lead = "KubeVirt has made no migration since " + FormatClock(due)
	}
	settings := p.env.kubevirtSettingsAt(p.now.now)
	pod, terminating := p.findOtherPod()
	switch {
	case p.other != nil:
		return prognosis{OutlookTransient, lead + ": " + p.other.formatLabel() + " of the same VM is not over", ""}
	case terminating != "":
		return prognosis{OutlookNotUntil, lead + ": its pod " + terminating + " is being deleted", "wait until the VM has stopped"}
	case pod != "":
		return prognosis{OutlookNotUntil, lead + ": pod " + pod + " of the same VM is still there", "end the pod that is left over"}
	case settings.waitsBeforeCreation() && !p.now.hasReached(due.Add(unattemptedLong)):
		perCluster, perNode := settings.ParallelLimits()
		return prognosis{OutlookTransient, fmt.Sprintf("%s: this version makes one only when a slot is free, of %d in the cluster and %d for %s", lead, perCluster, perNode, p.e.Node), ""}
	}
	return prognosis{OutlookNotUntil, lead + ", and nothing that is recorded keeps it from doing so", "check that virt-controller runs and leads, and that migrations under way get on"}
}

// findOtherPod returns a pod of the VM beside the one that runs the guest, and the guest's own where that is being deleted; empty where there is none.
func (p *prospect) findOtherPod() (other, terminating string) {
	var others []string
	for _, pod := range p.pods {
		switch {
		case pod.vmiUID != p.life.uid || !pod.endedAt.IsZero():
		case pod.node != p.e.Node:
			others = append(others, pod.name)
		case !pod.terminating.IsZero():
			terminating = pod.name
		}
	}
	slices.Sort(others)
	return firstOf(others), terminating
}

// waitsBeforeCreation reports whether KubeVirt of these settings makes the migration of an evacuation only when a slot is free; later ones make it at once, and it waits.
// Where the version was not seen it is not claimed.
//
// Source: reference kubevirt-signals §2.3.
func (s KubeVirtSettings) waitsBeforeCreation() bool {
	major, minor, known := majorMinor(s.Version)
	return known && major == 1 && minor < 9 && (minor < 7 || !slices.Contains(s.FeatureGates, "MigrationPriorityQueue"))
}

// forecastFailure returns the outlook after the last failed attempt; none where none failed.
func (p *prospect) forecastFailure() prognosis {
	var last *migration
	same, counts := 0, true
	for _, m := range slices.Backward(p.attempts) {
		switch {
		case m.Outcome != OutcomeFailed:
		case last == nil:
			last, same = m, 1
		case counts && m.FailureClass == last.FailureClass && m.FailureReason == last.FailureReason:
			same++
		default:
			counts = false
		}
	}
	if last == nil {
		return prognosis{}
	}
	if last.FailureClass == FailureScheduling {
		if text, at := last.findSchedulerText(); text != "" {
			return p.readRefusals(text, at).forecast(OutlookNotUntil)
		}
	}
	why := "the last attempt failed: " + formatFailure(last.FailureClass, last.FailureReason)
	if same > 1 {
		why = fmt.Sprintf("the last %d attempts failed alike: %s", same, formatFailure(last.FailureClass, last.FailureReason))
	}
	rule := failureRules[last.FailureReason]
	switch {
	case rule.passes && same < sameFailures:
		return prognosis{OutlookTransient, why, rule.change}
	case rule.change != "":
		return prognosis{OutlookNotUntil, why, rule.change}
	}
	if same >= sameFailures || last.FailureClass == FailureScheduling {
		return prognosis{OutlookNotUntil, why, "fix the cause." + strings.TrimSuffix(cureText(last.FailureClass), ".")}
	}
	return prognosis{OutlookTransient, why, ""}
}

// failureRule says what becomes of a VM whose last attempt failed for a reason.
type failureRule struct {
	change string // without which the next attempt fails again, or is likely to
	passes bool   // the guest may write less by the next attempt
}

// failureRules are those of the reasons whose change is known.
var failureRules = map[FailureReason]failureRule{
	CauseNoCPUModel:     {"add a node with the CPU model that it runs on, or name a CPU model that more nodes have", false},
	CauseQuota:          {"raise the ResourceQuota, or free some of it", false},
	CausePodRefused:     {"allow the target pod in the namespace", false},
	CauseUtilityVolumes: {"detach the utility volumes", false},
	CauseVolumeTooSmall: {"make the destination volume as large as the source", false},
	CauseIncompatible:   {"use a CPU model and devices that the target nodes have, too", false},
	CauseNoProgress:     {"give the migration more bandwidth, or allow auto-converge or post-copy in a MigrationPolicy", true},
	CauseTooSlow:        {"give the migration more bandwidth or a longer completion timeout, or allow post-copy in a MigrationPolicy", true},
}

// DescribeOutlook says what is to be expected of an evacuation, why, and what would help, without a stop; empty where nothing is in its way.
func (e Evacuation) DescribeOutlook() string {
	if e.Outlook == "" {
		return ""
	}
	text := UpperFirst(e.Outlook.Label().Short) + ": " + e.OutlookBecause
	if e.OutlookChange != "" {
		text += ". Smallest change: " + e.OutlookChange
	}
	return text
}
