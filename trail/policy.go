package trail

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// SettingsInForce are the settings that decided evictions and migrations in a time, and the fingerprint by which requests and evacuations name
// them.
type SettingsInForce struct {
	Cluster           string                    `json:"cluster"`
	Policy            string                    `json:"policy"`         // the fingerprint; empty where no settings were seen
	From              time.Time                 `json:"from,omitzero"`  // inclusive; zero for the first that are known: they count as in force before, too
	Until             time.Time                 `json:"until,omitzero"` // exclusive; zero while they are in force
	KubeVirt          *KubeVirtSettings         `json:"kubevirt,omitempty"`
	Descheduler       *DeschedulerSettings      `json:"descheduler,omitempty"`
	MigrationPolicies []MigrationPolicySettings `json:"migration_policies,omitempty"` // in the order of their names
	Semantics         string                    `json:"semantics"`
}

// Matches reports whether the settings have a fingerprint: the whole of it, or one of its parts such as "1a2b3c" or "kubevirt 1a2b3c".
func (s SettingsInForce) Matches(fingerprint string) bool {
	for part := range strings.SplitSeq(s.Policy, ", ") {
		if part == fingerprint || strings.HasSuffix(part, " "+fingerprint) {
			return true
		}
	}
	return s.Policy == fingerprint
}

// fingerprintLength is how many hexadecimal digits of a hash name settings: two of a hundred differ in all but 3 of 10,000 cases.
const fingerprintLength = 6

// fingerprintOf returns a short name of settings, equal for equal settings.
func fingerprintOf(settings any) string {
	text, err := json.Marshal(settings)
	if err != nil {
		panic("marshal settings: " + err.Error()) // plain strings, numbers, lists and maps of strings: cannot fail
	}
	return hashID(string(text)).String()[:fingerprintLength]
}

// computeFingerprint names the settings, not the text from which they were read. The order of feature gates and the like does not matter.
func (s KubeVirtSettings) computeFingerprint() string {
	for _, list := range []*[]string{&s.FeatureGates, &s.DisabledFeatureGates, &s.WorkloadUpdateMethods} {
		*list = slices.Sorted(slices.Values(*list))
	}
	return fingerprintOf(s)
}

// fingerprintOfPolicies names MigrationPolicies by their settings and selectors, in any order. What they are called does not matter.
func fingerprintOfPolicies(policies []MigrationPolicySettings) string {
	parts := make([]string, len(policies))
	for i, p := range policies {
		p.Name, p.CreatedAt = "", time.Time{}
		parts[i] = fingerprintOf(p)
	}
	slices.Sort(parts)
	return fingerprintOf(parts)
}

// inForce is the settings that decide evictions and migrations from a time on, until those of the next one.
type inForce struct {
	from        time.Time // zero for the first
	kubevirt    *KubeVirtSettings
	descheduler *DeschedulerSettings
	policies    map[string]MigrationPolicySettings // by the UIDs of their objects; not changed once it is here

	parts struct{ kubevirt, descheduler, policies string } // of the fingerprint
}

// formatFingerprint returns the text that names the settings, such as "kubevirt 1a2b3c, descheduler 4d5e6f, migration policies 7a8b9c"; what was not
// seen is left out.
func (s *inForce) formatFingerprint() string {
	var out []string
	add := func(name, part string) {
		if part != "" {
			out = append(out, name+" "+part)
		}
	}
	add("kubevirt", s.parts.kubevirt)
	add("descheduler", s.parts.descheduler)
	add("migration policies", s.parts.policies)
	return strings.Join(out, ", ")
}

// setKubeVirt takes over settings of KubeVirt; nil changes nothing.
func (s *inForce) setKubeVirt(settings *KubeVirtSettings) {
	if settings != nil {
		s.kubevirt, s.parts.kubevirt = settings, settings.computeFingerprint()
	}
}

// setDescheduler takes over settings of the descheduler; nil, of a policy that cannot be read, changes nothing: the descheduler refuses it, too.
func (s *inForce) setDescheduler(settings *DeschedulerSettings) {
	if settings != nil {
		s.descheduler, s.parts.descheduler = settings, fingerprintOf(settings)
	}
}

// setPolicy takes over a MigrationPolicy, or that it is gone: nil.
func (s *inForce) setPolicy(uid string, settings *MigrationPolicySettings) {
	s.policies, s.parts.policies = maps.Clone(s.policies), ""
	if settings == nil {
		delete(s.policies, uid)
	} else {
		if s.policies == nil {
			s.policies = map[string]MigrationPolicySettings{}
		}
		s.policies[uid] = *settings
	}
	if len(s.policies) > 0 {
		s.parts.policies = fingerprintOfPolicies(slices.Collect(maps.Values(s.policies)))
	}
}

// policyAt is the history of a MigrationPolicy that Env keeps: nil settings are its end.
type policyAt struct {
	at       time.Time
	uid      string
	settings *MigrationPolicySettings
}

// addMigrationPolicy takes in a fact about a MigrationPolicy. One that is seen for the first time has been there since its creation.
func (e *Env) addMigrationPolicy(f Fact) {
	d, ok := f.Detail.(*ConfigDetail)
	switch {
	case f.What == WhatGone:
		e.migrationPolicies = append(e.migrationPolicies, policyAt{at: f.OccurredAt, uid: f.Object.UID})
	case ok && d.MigrationPolicy != nil:
		at := f.OccurredAt
		known := slices.ContainsFunc(e.migrationPolicies, func(p policyAt) bool { return p.uid == f.Object.UID })
		if created := d.MigrationPolicy.CreatedAt; !known && !created.IsZero() && created.Before(at) {
			at = created
		}
		e.migrationPolicies = append(e.migrationPolicies, policyAt{at, f.Object.UID, d.MigrationPolicy})
	}
}

// migrationPolicyName returns what the MigrationPolicy is called that a fact says to be gone.
func (e *Env) migrationPolicyName(gone Fact) string {
	name := ""
	for _, p := range e.migrationPolicies {
		if p.uid == gone.Object.UID && p.settings != nil && !p.at.After(gone.OccurredAt) {
			name = p.settings.Name
		}
	}
	return cmp.Or(name, "of UID "+gone.Object.UID)
}

// followSettings puts together which settings were in force when, of the history of each sort. As for Env.settings and Env.policy, the first
// of KubeVirt and of the descheduler count as in force before they were seen; a MigrationPolicy does from its creation on.
func (e *Env) followSettings() []inForce {
	type change struct {
		at    time.Time
		apply func(*inForce)
	}
	var changes []change
	first := inForce{}
	for _, c := range e.kubevirt {
		if first.kubevirt == nil {
			first.setKubeVirt(c.detail.KubeVirt)
		}
		changes = append(changes, change{c.at, func(s *inForce) { s.setKubeVirt(c.detail.KubeVirt) }})
	}
	for _, c := range e.policies {
		if first.descheduler == nil {
			first.setDescheduler(c.detail.Descheduler)
		}
		changes = append(changes, change{c.at, func(s *inForce) { s.setDescheduler(c.detail.Descheduler) }})
	}
	for _, p := range e.migrationPolicies {
		changes = append(changes, change{p.at, func(s *inForce) { s.setPolicy(p.uid, p.settings) }})
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	out := []inForce{first}
	for _, c := range changes {
		next := out[len(out)-1]
		c.apply(&next)
		if last := &out[len(out)-1]; next.parts == last.parts || last.from.Equal(c.at) { // the same in all but names, or it lasted no time
			*last = next
			continue
		}
		next.from = c.at
		out = append(out, next)
	}
	return out
}

// SettingsSince returns from when on a fact of settings changes which are in force, among the facts of its subject that are known; zero: from ever
// on, as the first of KubeVirt and of the descheduler do.
func SettingsSince(f Fact, known []Fact) time.Time {
	d, ok := f.Detail.(*ConfigDetail)
	switch {
	case !ok:
		return f.OccurredAt
	case d.MigrationPolicy != nil:
		return minNonZeroTime(f.OccurredAt, d.MigrationPolicy.CreatedAt)
	}
	for i := range known {
		other, ok := known[i].Detail.(*ConfigDetail)
		if ok && known[i].OccurredAt.Before(f.OccurredAt) && (other.KubeVirt != nil || other.Descheduler != nil) {
			return f.OccurredAt
		}
	}
	return time.Time{}
}

// inForceAt returns the settings in force at a time.
func (e *Env) inForceAt(at time.Time) *inForce {
	i, found := slices.BinarySearchFunc(e.inForce, at, func(s inForce, at time.Time) int { return s.from.Compare(at) })
	if !found {
		i--
	}
	return &e.inForce[max(i, 0)]
}

// policyName returns the fingerprint of the settings in force at a time; empty where none were seen.
func (e *Env) policyName(at time.Time) string { return e.inForceAt(at).formatFingerprint() }

// Settings returns the settings that were in force one after the other, the oldest first; none where none were seen.
func (e *Env) Settings(cluster string) []SettingsInForce {
	var out []SettingsInForce
	for i := range e.inForce {
		s := &e.inForce[i]
		if s.formatFingerprint() == "" {
			continue
		}
		until := time.Time{}
		if i+1 < len(e.inForce) {
			until = e.inForce[i+1].from
		}
		out = append(out, SettingsInForce{
			Cluster: cluster, Policy: s.formatFingerprint(), From: s.from, Until: until, KubeVirt: s.kubevirt, Descheduler: s.descheduler,
			MigrationPolicies: slices.SortedFunc(maps.Values(s.policies), func(a, b MigrationPolicySettings) int { return cmp.Compare(a.Name, b.Name) }),
			Semantics:         e.describeSemantics(s, until),
		})
	}
	return out
}

// describeSemantics says which rules follow from settings that were in force until a time, zero: that are in force.
func (e *Env) describeSemantics(s *inForce, until time.Time) string {
	process := (*DeschedulerDetail)(nil)
	if len(e.starts) > 0 {
		if until.IsZero() {
			until = maxTime(s.from, e.starts[len(e.starts)-1].OccurredAt)
		}
		_, process = e.findDeschedulerProcess(until)
	}
	return DescribeSemantics(s.kubevirt, s.descheduler, process)
}

// semanticsAt says which rules follow from the settings in force at a time.
func (e *Env) semanticsAt(at time.Time) string { return e.describeSemantics(e.inForceAt(at), at) }

// SettingsQuery asks for settings.
type SettingsQuery struct {
	Cluster     string    // empty: of all clusters
	Fingerprint string    // those that match it, whenever they were in force; empty: those in force at a time
	At          time.Time // without a fingerprint; zero: now
}

// Select returns those that are asked for of the settings of a cluster, the oldest first.
func (q SettingsQuery) Select(history []SettingsInForce) []SettingsInForce {
	var out []SettingsInForce
	for _, s := range history {
		switch {
		case q.Fingerprint != "":
			if s.Matches(q.Fingerprint) {
				out = append(out, s)
			}
		case q.At.IsZero() || !s.From.After(q.At):
			out = []SettingsInForce{s} // the last of them is in force
		}
	}
	return out
}

// policiesOf says which MigrationPolicies KubeVirt applied to migrations; empty where it applied none, or does not say.
func policiesOf(migrations []Migration) string {
	var names []string
	applied := map[string]int{}
	for _, m := range migrations {
		if m.Policy == "" {
			continue
		}
		if applied[m.Policy] == 0 {
			names = append(names, m.Policy)
		}
		applied[m.Policy]++
	}
	if len(names) == 0 {
		return ""
	}
	if len(migrations) > 1 {
		for i, name := range names {
			names[i] = fmt.Sprintf("%s (%d of %s)", name, applied[name], FormatCount(len(migrations), "migration"))
		}
	}
	return "MigrationPolicy applied: " + strings.Join(names, ", ") + "."
}
