package trail

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Tone says how something that happened is to be taken.
type Tone int

// The tones.
const (
	ToneNeutral Tone = iota
	ToneGood
	ToneOdd // it did not go as it should, and harmed nothing that is known
	ToneBad
)

// Happening is something that happened in a cluster and is over: one thing, or several of the same sort.
type Happening struct {
	From, At time.Time // of the first and the last of them
	Count    int
	What     string // what it is, such as "Migration failed"
	Tone     Tone
	VMs      []IncidentSubject // the first ones, at most happeningVMs; none where it is about no VM
	More     int               // VMs that are not among these
	Nodes    []string          // where, or from where to where; at most two
	Sources  int               // from how many nodes, where Nodes does not name them
	Who      string            // who asked; empty where nobody asks for such
	Text     string            // how it went
	Then     []string          // what followed, each in a few words
	LoopID   *FactID           // of a loop
	Listed   bool              // it is of migrations, which a list has
}

// happeningVMs is how many VMs a happening names.
const happeningVMs = 5

// groupedWithin is how far apart migrations of one sort may have ended that are one happening.
const groupedWithin = 10 * time.Minute

// Lately returns what happened in the cluster since From, the newest first, and which nodes are not ready since when.
func (o *Overview) Lately() []Happening {
	out := o.groupMigrations()
	for _, l := range o.Closed {
		h := Happening{From: l.OpenedAt, At: l.ClosedAt, Count: 1, What: "Loop closed: " + l.Name(), Tone: ToneOdd, Text: l.Summary, LoopID: &l.ID}
		if l.ClosedBy == LoopBecameDualRetry {
			h.What = UpperFirst(l.Name()) + ", which became a dual retry loop"
		}
		h.addVM(l.Namespace, l.VMI)
		h.addNode(l.Node)
		out = append(out, h)
	}
	for _, d := range o.DrainsEnded {
		out = append(out, o.describeDrain(d))
	}
	for _, g := range o.Lost {
		out = append(out, g.newHappening())
	}
	for _, e := range o.Unmoved {
		if !o.isLost(e.Evacuation) { // else that is a line of its own
			out = append(out, e.newHappening())
		}
	}
	for _, x := range o.Outages {
		h := Happening{From: x.BeganAt, At: x.EndedAt, Count: 1, What: "Node was not ready", Tone: ToneBad}
		h.Text = fmt.Sprintf("%s, for %s; then %s", x.Cause.Label(), Age(x.EndedAt.Sub(x.BeganAt)), x.EndedBy.Label())
		if x.EndedBy == "" {
			h.At, h.What, h.Text = x.BeganAt, "Node became not ready", fmt.Sprintf("%s, and still is", x.Cause.Label())
		}
		h.addNode(x.Node)
		out = append(out, h)
	}
	for i := 1; i < len(o.Settings); i++ {
		if what, text := describeSettingsChange(o.Settings[i-1], o.Settings[i]); text != "" {
			out = append(out, Happening{From: o.Settings[i].From, At: o.Settings[i].From, Count: 1, What: what, Text: text})
		}
	}
	slices.SortStableFunc(out, func(a, b Happening) int { return b.At.Compare(a.At) })
	return out
}

func (h *Happening) addVM(namespace, name string) {
	of := ofVM(namespace, name)
	switch {
	case name == "" || slices.Contains(h.VMs, of):
	case len(h.VMs) < happeningVMs:
		h.VMs = append(h.VMs, of)
	default:
		h.More++
	}
}

func (h *Happening) addNode(names ...string) {
	for _, n := range names {
		if n != "" && !slices.Contains(h.Nodes, n) && len(h.Nodes) < 2 {
			h.Nodes = append(h.Nodes, n)
		}
	}
}

// migrationSort is what migrations have in common that are one happening.
type migrationSort struct {
	trigger     Trigger
	who, source string
	outcome     Outcome
	vm          IncidentSubject // of those that failed
	uid         string          // of one that is shown alone
}

func (m Migration) sortOf() migrationSort {
	s := migrationSort{trigger: m.Trigger, who: m.whoAsked(), outcome: m.Outcome}
	switch {
	case m.Outcome != OutcomeSucceeded:
		s.vm = ofVM(m.Namespace, m.VMI)
	case m.Need == NotNeeded || m.Benefit == Harmed:
		s.uid = m.UID
	case m.Trigger == TriggerDrain || m.Trigger == TriggerDrainTaint || m.Trigger == TriggerDescheduler:
		s.source = m.SourceNode
	}
	return s
}

// whoAsked names who asked for the migration; KubeVirt itself for what it makes of its own accord.
func (m Migration) whoAsked() string {
	class := m.RequesterClass
	if m.Requester == "" {
		switch m.Trigger {
		case TriggerWorkloadUpdate, TriggerHotplug, TriggerStorage:
			class = RequesterKubeVirt
		case TriggerDescheduler:
			class = RequesterDescheduler
		case TriggerDrain, TriggerDrainTaint, TriggerEviction, TriggerNamedNode, TriggerUser, TriggerController, TriggerDecentralized, TriggerUnknown:
		}
	}
	return FormatShortRequester(m.Requester, m.Impersonator, class)
}

// groupMigrations makes happenings of the recent migrations: those of one sort that ended soon after each other are one.
func (o *Overview) groupMigrations() []Happening {
	var out []Happening
	var members [][]Migration
	last := map[migrationSort]int{}
	for _, m := range o.Recent {
		s := m.sortOf()
		i, known := last[s]
		if !known || out[i].From.Sub(m.FinishedAt) > groupedWithin {
			i = len(out)
			last[s] = i
			out, members = append(out, Happening{At: m.FinishedAt, Who: s.who, Listed: true}), append(members, nil)
		}
		out[i].From, out[i].Count = m.FinishedAt, out[i].Count+1
		members[i] = append(members[i], m)
	}
	for i := range out {
		out[i].fillMigrations(members[i], o)
	}
	return out
}

// fillMigrations says what migrations of one sort are, the newest first.
func (h *Happening) fillMigrations(of []Migration, o *Overview) {
	m := of[0]
	seen := map[IncidentSubject]bool{}
	targets, sources := map[string]bool{}, map[string]bool{}
	for _, x := range of {
		if vm := ofVM(x.Namespace, x.VMI); !seen[vm] {
			seen[vm] = true
			h.addVM(x.Namespace, x.VMI)
		}
		sources[x.SourceNode], targets[x.TargetNode] = true, true
	}
	if len(sources) == 1 {
		h.addNode(m.SourceNode)
	} else {
		h.Sources = len(sources)
	}
	if len(targets) == 1 && m.Outcome == OutcomeSucceeded {
		h.addNode(m.TargetNode)
	}
	trigger := m.Trigger.Label().Short
	switch m.Outcome {
	case OutcomeSucceeded:
		h.What, h.Tone = "Moved", ToneGood
		h.Text = trigger + ", " + describeTimes(of)
		switch {
		case m.Benefit == Harmed:
			h.What, h.Tone, h.Text = "Moved, and overloaded its target", ToneBad, trigger+": "+m.BenefitBecause
			if m.Need == NotNeeded {
				h.What = "Moved without need, and overloaded its target"
				h.Text = trigger + ": " + strings.Join(nonEmpty([]string{m.NeedBecause, m.BenefitBecause}), "; ")
			}
		case m.Need == NotNeeded:
			h.What, h.Tone, h.Text = "Moved without need", ToneOdd, trigger+": "+m.NeedBecause
		case m.NeedBecause != "" && m.Need == Needed && h.Count == 1:
			h.Text += "; needed: " + m.NeedBecause
		}
	case OutcomeAborted:
		h.What, h.Tone, h.Text = "Migration aborted", ToneOdd, trigger
		if m.AbortedBy != "" {
			h.Text += "; aborted by " + FormatShortRequester(m.AbortedBy, m.AbortImpersonator, RequesterOther)
		} else {
			h.Text += ": " + describeCauses(of)
		}
	case OutcomeFailed, OutcomeMigrated, OutcomeCancelled, OutcomeVMIGone:
		h.What, h.Tone, h.Text = "Migration failed", ToneBad, trigger+": "+describeCauses(of)
	}
	switch {
	case h.Count == 1:
	case len(seen) == h.Count:
		h.What += fmt.Sprintf(": %d VMs", h.Count)
	default:
		h.What += fmt.Sprintf(", %d times", h.Count)
	}
	if m.Outcome == OutcomeSucceeded && (m.Need == NotNeeded || m.Benefit == Harmed) {
		h.Then = o.describeAftermath(m)
	}
}

// describeTimes says how long migrations took.
func describeTimes(of []Migration) string {
	var least, most time.Duration
	for i, m := range of {
		took := m.FinishedAt.Sub(m.CreatedAt)
		if most = max(most, took); i == 0 || took < least {
			least = took
		}
	}
	if Age(least) == Age(most) {
		return "took " + Age(most)
	}
	return "took " + Age(least) + " to " + Age(most)
}

// describeCauses says why migrations ended as they did: each cause with how often, the newest first.
func describeCauses(of []Migration) string {
	count := map[string]int{}
	var causes []string
	for _, m := range of {
		why := m.whyShort()
		if count[why]++; count[why] == 1 {
			causes = append(causes, why)
		}
	}
	if len(of) > 1 {
		for i, c := range causes {
			causes[i] = fmt.Sprintf("%d × %s", count[c], c)
		}
	}
	if more := len(causes) - changesNamed; more > 0 {
		causes = append(causes[:changesNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(causes, "; ")
}

// aftermathShown is how many things are named that followed a move.
const aftermathShown = 4

// describeAftermath names what followed a move soon: what left the node that it came to, and what became of its VM.
func (o *Overview) describeAftermath(m Migration) []string {
	var out []string
	within := func(at time.Time) bool { return at.After(m.FinishedAt) && at.Sub(m.FinishedAt) <= causesWithin }
	for _, x := range slices.Backward(o.Recent) {
		after := Age(x.CreatedAt.Sub(m.FinishedAt)) + " later"
		if !within(x.CreatedAt) || x.SourceNode != m.TargetNode || x.TargetNode == "" {
			continue
		}
		how := "left"
		if x.Outcome != OutcomeSucceeded {
			how = "failed to leave"
		}
		out = append(out, fmt.Sprintf("%s/%s %s %s %s (%s)", x.Namespace, x.VMI, how, m.TargetNode, after, x.Trigger.Label()))
		if how == "left" && x.VMI == m.VMI && x.Namespace == m.Namespace {
			break // what comes later is none of this move's
		}
	}
	for _, g := range o.Lost {
		if within(g.ToAt) && (g.Node == m.TargetNode || g.VMI == m.VMI && g.Namespace == m.Namespace) {
			out = append(out, fmt.Sprintf("%s/%s was lost on %s %s later (%s)", g.Namespace, g.VMI, g.Node, Age(g.ToAt.Sub(m.FinishedAt)), g.EndedBy.Label()))
		}
	}
	if more := len(out) - aftermathShown; more > 0 {
		out = append(out[:aftermathShown], fmt.Sprintf("and %d more", more))
	}
	return out
}

func (o *Overview) describeDrain(d Drain) Happening {
	h := Happening{From: d.StartedAt, At: d.EndedAt, Count: 1, What: "Drain: " + d.Outcome.Label().Short, Tone: ToneGood, Who: FormatShortRequester(d.Requester, d.Impersonator, d.RequesterClass)}
	h.Text = fmt.Sprintf("%d of %s gone", d.VMIsTotal-d.VMIsLeft, FormatCount(d.VMIsTotal, "VM"))
	if lost := o.countLost(d); lost > 0 {
		h.Tone, h.Text = ToneOdd, h.Text+fmt.Sprintf(", %d of them shut down or lost", lost)
	}
	if moved := o.countMoved(d); moved > 0 {
		h.Text += fmt.Sprintf(", %d moved", moved)
	}
	h.Text += ", after " + Age(d.EndedAt.Sub(d.StartedAt))
	if d.VMIsLeft > 0 {
		h.Tone = ToneOdd
	}
	h.addNode(d.Node)
	return h
}

// countLost counts the guests that were lost on the node of a drain while it went on.
func (o *Overview) countLost(d Drain) int {
	n := 0
	for _, g := range o.Lost {
		if g.Node == d.Node && !g.ToAt.Before(d.StartedAt) && !g.ToAt.After(d.EndedAt) {
			n++
		}
	}
	return n
}

// countMoved counts the VMs that migrations took off the node of a drain while it went on.
func (o *Overview) countMoved(d Drain) int {
	moved := map[IncidentSubject]bool{}
	for _, m := range o.Recent {
		if m.Outcome == OutcomeSucceeded && m.SourceNode == d.Node && !m.FinishedAt.Before(d.StartedAt) && !m.FinishedAt.After(d.EndedAt) {
			moved[ofVM(m.Namespace, m.VMI)] = true
		}
	}
	return len(moved)
}

// isLost reports whether the guest of an evacuation that ended without a move was lost.
func (o *Overview) isLost(e Evacuation) bool {
	return slices.ContainsFunc(o.Lost, func(g LostGuest) bool { return g.VMIUID == e.VMIUID && e.Outcome == OutcomeVMIGone })
}

func (e Unmoved) newHappening() Happening {
	h := Happening{From: e.MarkedAt, At: e.EndedAt, Count: 1, What: "Evacuation without a move: " + e.Outcome.Label().Short, Tone: ToneOdd}
	h.Who = FormatShortRequester(e.Requester, e.Impersonator, e.RequesterClass)
	h.Text = "after " + Age(e.EndedAt.Sub(e.MarkedAt))
	if e.Strategy == StrategyExternal && e.Attempts == 0 {
		h.Text += "; its eviction strategy External leaves the move to its owner"
	} else {
		h.Text += " and " + FormatCount(e.Attempts, "attempt")
	}
	if e.StartedOn != "" {
		h.Text += "; " + describeStart(e.StartedOn, e.StartedAt.Sub(e.EndedAt))
	}
	if e.CancelledBy != "" {
		h.Text += "; cancelled by " + FormatShortRequester(e.CancelledBy, e.CancelImpersonator, RequesterOther)
	}
	h.addVM(e.Namespace, e.VMI)
	h.addNode(e.Node)
	return h
}

func (g LostGuest) newHappening() Happening {
	h := Happening{From: g.ToAt, At: g.ToAt, Count: 1, What: "Guest lost: " + g.EndedBy.Label().Short, Tone: ToneBad, Who: g.whoAsked()}
	h.Text = g.describeLoss() + "; " + g.describeRestart()
	h.addVM(g.Namespace, g.VMI)
	h.addNode(g.Node)
	return h
}

// whoAsked names who began what ended the guest; empty where nobody did, or where unknown.
func (g LostGuest) whoAsked() string {
	if g.EndedRequesterClass == "" && g.EndedRequester == "" {
		return ""
	}
	return FormatShortRequester(g.EndedRequester, "", g.EndedRequesterClass)
}

// describeLoss says what was done to the guest, and why KubeVirt did not move it.
func (g LostGuest) describeLoss() string {
	switch g.EndedBy {
	case EndingPostCopy:
		return "the transfer broke when the guest already ran on its target, and the memory of the VM is lost"
	case EndingFailed, EndingHandOver:
		return "the memory of the VM is lost"
	case EndingTaint, EndingPodGC:
		return "its pod was deleted, not moved"
	case EndingEvicted:
		return "the VM was shut down, not moved, " + whyAllowed(g.Strategy)
	default:
		return "the VM was shut down, not moved"
	}
}

func (g LostGuest) describeRestart() string {
	if g.StartedAt.IsZero() {
		return "it has not started again"
	}
	return describeStart(g.StartedOn, g.StartedAt.Sub(g.ToAt))
}

// describeStart says where a VM started again, and how long after its guest had ended.
func describeStart(node string, after time.Duration) string {
	if after < time.Second {
		return fmt.Sprintf("it started again on %s, at once", node)
	}
	return fmt.Sprintf("it started again on %s, %s later", node, Age(after))
}

// mayRunTwice reports whether the VM started elsewhere although nothing showed that its first guest had stopped: only its pod was deleted.
func (g LostGuest) mayRunTwice() bool {
	return g.mayRunOn() && g.StartedOn != "" && g.StartedOn != g.Node
}

// SelectSettingsUntil returns the settings that came into force up to a time.
func SelectSettingsUntil(history []SettingsInForce, at time.Time) []SettingsInForce {
	n := len(history)
	for n > 0 && history[n-1].From.After(at) {
		n--
	}
	return history[:n]
}

// SelectSettingsSince returns the settings that were in force at a time and since then; none where they have not changed since.
func SelectSettingsSince(history []SettingsInForce, from time.Time) []SettingsInForce {
	first := 0
	for i, s := range history {
		if !s.From.After(from) {
			first = i
		}
	}
	if len(history)-first < 2 {
		return nil
	}
	return history[first:]
}

// changesNamed is how many changed settings, or causes, are named.
const changesNamed = 4

// describeSettingsChange says what changed from some settings to others; text is empty where nothing did.
func describeSettingsChange(before, after SettingsInForce) (what, text string) {
	what = "Settings changed"
	var changes []string
	if b, a := before.KubeVirt, after.KubeVirt; b != nil && a != nil && b.Version != a.Version && b.Version != "" && a.Version != "" {
		what = "KubeVirt upgraded"
	}
	for _, part := range []struct {
		name          string
		before, after any
	}{{"KubeVirt", before.KubeVirt, after.KubeVirt}, {"descheduler", before.Descheduler, after.Descheduler}} {
		changes = append(changes, compareSettings(part.name, part.before, part.after)...)
	}
	if !reflect.DeepEqual(before.MigrationPolicies, after.MigrationPolicies) {
		changes = append(changes, fmt.Sprintf("MigrationPolicies: %d -> %d", len(before.MigrationPolicies), len(after.MigrationPolicies)))
	}
	if more := len(changes) - changesNamed; more > 0 {
		changes = append(changes[:changesNamed], fmt.Sprintf("%d more", more))
	}
	return what, strings.Join(changes, "; ")
}

// compareSettings names the fields that differ, in the order of their names.
func compareSettings(name string, before, after any) []string {
	b, a := settingFields(before), settingFields(after)
	fields := map[string]bool{}
	for k := range b {
		fields[k] = true
	}
	for k := range a {
		fields[k] = true
	}
	var out []string
	for k := range fields {
		if string(b[k]) != string(a[k]) {
			out = append(out, fmt.Sprintf("%s %s: %s -> %s", name, strings.ReplaceAll(k, "_", " "), formatSetting(b[k]), formatSetting(a[k])))
		}
	}
	slices.Sort(out)
	return out
}

func settingFields(of any) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	raw, err := json.Marshal(of)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic("settings as JSON: " + err.Error()) // plain strings, numbers and lists: cannot fail
	}
	return out
}

// settingKept bounds the text of a setting.
const settingKept = 80

func formatSetting(raw json.RawMessage) string {
	text := strings.Trim(string(raw), `"`)
	switch {
	case text == "":
		return "not set"
	case len(text) > settingKept:
		return strings.ToValidUTF8(text[:settingKept], "") + "..."
	}
	return text
}
