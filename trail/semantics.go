package trail

import (
	"fmt"
	"strings"
	"time"
)

// Rests is what an answer rests on, beside facts.
type Rests struct {
	Since     time.Time `json:"since,omitzero"`   // when the first thing that it describes began
	Policy    string    `json:"policy,omitempty"` // SettingsInForce.Policy when that began
	Semantics string    `json:"semantics"`        // which rules follow from the versions that were seen then
}

// newRests returns what an answer rests on whose story began at a time; zero: it is about now alone.
func (c *Cluster) newRests(since time.Time) Rests {
	at := since
	if at.IsZero() {
		at = c.Now
	}
	return Rests{Since: since, Policy: c.env.policyName(at), Semantics: c.env.semanticsAt(at)}
}

// DescribeSemantics says in one line for people which rules evictrail follows, as they depend on the versions and settings that were seen: nil
// where they were not. The process is that of the descheduler, as its metrics show it.
func DescribeSemantics(kubevirt *KubeVirtSettings, descheduler *DeschedulerSettings, process *DeschedulerDetail) string {
	text := "KubeVirt: version not seen."
	if kubevirt != nil {
		text = kubevirt.describeSemantics()
	}
	return text + " " + deschedulerSemantics(descheduler, process)
}

// describeSemantics says which rules of KubeVirt hold in this version.
func (s KubeVirtSettings) describeSemantics() string {
	if _, _, known := majorMinor(s.Version); !known {
		return fmt.Sprintf("KubeVirt, version %q: of no known form; its rules are taken to be those of the newest release.", s.Version)
	}
	var rules []string
	if s.AnnotationMode() == AnnotatedByMark {
		rules = append(rules, "eviction-in-progress stays until the evacuation ends")
	} else {
		rules = append(rules, "eviction-in-progress is taken off when an attempt fails")
	}
	if marks, _ := s.marksSource(); marks {
		rules = append(rules, "eviction-source names the descheduler")
	} else {
		rules = append(rules, "no annotation names the descheduler")
	}
	if s.delaysUpdates() {
		rules = append(rules, "backoff after failed workload updates, too")
	} else {
		rules = append(rules, "no backoff after failed workload updates")
	}
	if s.MergesAborts() {
		rules = append(rules, "stuck, slow and aborted migrations fail with one text")
	}
	return "KubeVirt " + s.Version + ": " + strings.Join(rules, "; ") + "."
}

// deschedulerSemantics says how the descheduler holds VMs back after a migration.
func deschedulerSemantics(s *DeschedulerSettings, process *DeschedulerDetail) string {
	name := "Descheduler"
	if process != nil && process.Version != "" {
		name += " " + process.Version
	}
	switch model := cooldownModel(s, process); {
	case s == nil && process == nil:
		return "Descheduler: none seen; no cooldowns."
	case model == CooldownLive:
		return name + ": cooldowns as of release 4.22 or newer: migrations are remembered as long as its process runs."
	case model == CooldownReseeded:
		return name + ": cooldowns as of release 4.21: of migrations only those count that KubeVirt still keeps."
	default:
		return name + ": no cooldowns."
	}
}
