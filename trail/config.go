package trail

import (
	"encoding/json"
	"time"
)

// KubeVirtObservation is what is read of the KubeVirt CR: the rules in force.
type KubeVirtObservation struct {
	Seen
	Meta
	Settings KubeVirtSettings
}

// KubeVirtSettings are the settings of KubeVirt that decide evacuations. Nil and empty mean that the CR does not say
// and KubeVirt's own default holds.
//
// Source: kubevirt pkg/virt-config/configuration.go, spec.configuration.migrations.
type KubeVirtSettings struct {
	Version                 string   `json:"version,omitempty"` // status.observedKubeVirtVersion
	EvictionStrategy        string   `json:"eviction_strategy,omitempty"`
	ParallelPerCluster      *int64   `json:"parallel_migrations_per_cluster,omitempty"`
	ParallelOutboundPerNode *int64   `json:"parallel_outbound_migrations_per_node,omitempty"`
	DrainTaintKey           string   `json:"node_drain_taint_key,omitempty"`
	ProgressTimeout         *int64   `json:"progress_timeout,omitempty"`           // seconds
	CompletionTimeoutPerGiB *int64   `json:"completion_timeout_per_gib,omitempty"` // seconds
	AllowPostCopy           *bool    `json:"allow_post_copy,omitempty"`
	FeatureGates            []string `json:"feature_gates,omitempty"`
	DisabledFeatureGates    []string `json:"disabled_feature_gates,omitempty"`
	WorkloadUpdateMethods   []string `json:"workload_update_methods,omitempty"`
}

// DefaultDrainTaintKey is KubeVirt's drain taint where the CR names no other.
const DefaultDrainTaintKey = "kubevirt.io/drain"

// DeschedulerSettings are the settings of the descheduler that decide evictions of VMs.
//
// Source: descheduler pkg/api/v1alpha2/types.go; KubevirtMigrationAware types.go (kubevirt-descheduler-plugins).
type DeschedulerSettings struct {
	Cooldown          *CooldownSettings `json:"cooldown,omitempty"`            // nil: KubevirtMigrationAware is not enabled
	LimitTotal        *int64            `json:"limit_total,omitempty"`         // evictions in a cycle and under way; nil: no limit
	LimitPerNode      *int64            `json:"limit_per_node,omitempty"`      // the same of one node
	LimitPerNamespace *int64            `json:"limit_per_namespace,omitempty"` // the same of one namespace
	Model             string            `json:"model,omitempty"`               // how its cooldown behaves: 4.22, 4.21, none; empty: as its version says
}

// CooldownSettings are the arguments of KubevirtMigrationAware that are in force, its defaults filled in.
type CooldownSettings struct {
	Base   time.Duration `json:"base"`   // migrationCooldown, nanoseconds
	Max    time.Duration `json:"max"`    // maxMigrationCooldown, nanoseconds
	Window time.Duration `json:"window"` // migrationHistoryWindow, nanoseconds
}

// PolicyObservation is the descheduler's policy. Its presence says that a descheduler is at work.
type PolicyObservation struct {
	Seen
	Meta
	Text     string               // the policy as it was read
	Settings *DeschedulerSettings // nil where the text is no policy that we can read
}

// whatSettings is the aspect under which the rules in force are recorded.
const whatSettings = "settings"

// ConfigDetail is the rules in force: KubeVirt's or the descheduler's.
type ConfigDetail struct {
	KubeVirt *KubeVirtSettings `json:"kubevirt,omitempty"`
	Policy   string            `json:"descheduler_policy,omitempty"`
	// Descheduler is what the policy says to us; nil where it was not read, as by an older evictrail.
	Descheduler *DeschedulerSettings `json:"descheduler,omitempty"`
}

func (*ConfigDetail) detail() {}

func (t *Tracker) observeKubeVirt(o KubeVirtObservation) []Fact {
	return t.config(ObjectKubeVirt, o.Meta, o.Seen, ReasonKubeVirtSettings, ConfigDetail{KubeVirt: &o.Settings}, "spec.configuration")
}

func (t *Tracker) observePolicy(o PolicyObservation) []Fact {
	return t.config(ObjectPolicy, o.Meta, o.Seen, ReasonDeschedulerPolicy, ConfigDetail{Policy: o.Text, Descheduler: o.Settings}, "policy.yaml")
}

func (t *Tracker) config(kind ObjectKind, m Meta, seen Seen, reason Reason, d ConfigDetail, evidence string) []Fact {
	r := t.take(kind, m, seen, Subject{SubjectConfig, string(kind)})
	if r == nil || seen.Gone {
		return nil
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic("marshal settings: " + err.Error()) // plain strings, numbers and lists: cannot fail
	}
	if r.became(whatSettings, digest(string(text))) {
		value, _ := r.object.get(whatSettings)
		r.change(KindConfigSeen, reason, whatSettings, value).from(evidence).with(&d)
	}
	return r.facts
}

// digest is a short name for a content, equal for equal contents.
func digest(text string) string { return hashID(text).String()[:13] }

// configAt is the settings history that Env keeps.
type configAt struct {
	at     time.Time
	detail ConfigDetail
}
