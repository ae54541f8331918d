package trail

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
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

// PolicyObservation is the descheduler's policy, or settings of it that were stated by hand. Its presence says that a
// descheduler is at work. One that was not read from the cluster has no ResourceVersion.
type PolicyObservation struct {
	Seen
	Meta
	Text     string               // the policy as it was read; empty where the settings were stated by hand
	Settings *DeschedulerSettings // nil where the text could not be read as a policy
	Problem  string               // why Settings is nil; else empty
}

// DeschedulerSettings are the settings of the descheduler that decide evictions of VMs.
//
// Source: descheduler policy v1alpha2 (sigs.k8s.io/descheduler pkg/api/v1alpha2), and the arguments of
// KubevirtMigrationAware (kubevirt-descheduler-plugins) and LowNodeUtilization.
type DeschedulerSettings struct {
	Cooldown          *CooldownSettings `json:"cooldown,omitempty"`            // nil: KubevirtMigrationAware is not enabled
	LimitTotal        *int64            `json:"limit_total,omitempty"`         // maxNoOfPodsToEvictTotal, evictions in one cycle; nil: none
	LimitPerNode      *int64            `json:"limit_per_node,omitempty"`      // the smallest that is in force; nil: none
	LimitPerNamespace *int64            `json:"limit_per_namespace,omitempty"` // maxNoOfPodsToEvictPerNamespace; nil: none
	Model             string            `json:"model,omitempty"`               // the behaviour to assume, as it was stated: a release, or none; empty: what the version tells
}

// CooldownSettings are the arguments of KubevirtMigrationAware. They are stored as numbers of seconds.
type CooldownSettings struct {
	Base   time.Duration // migrationCooldown
	Max    time.Duration // maxMigrationCooldown
	Window time.Duration // migrationHistoryWindow
}

// The cooldown where the policy gives none: KubevirtMigrationAware's own.
//
// Source: kubevirt-descheduler-plugins plugins/kubevirtmigrationaware/defaults.go.
const (
	DefaultCooldown       = 15 * time.Minute
	DefaultMaxCooldown    = 6 * time.Hour
	DefaultCooldownWindow = 48 * time.Hour
)

// WithDefaults gives the settings in force: zero means the default, as it does to the plugin.
func (c CooldownSettings) WithDefaults() CooldownSettings {
	return CooldownSettings{
		Base: cmp.Or(c.Base, DefaultCooldown), Max: cmp.Or(c.Max, DefaultMaxCooldown), Window: cmp.Or(c.Window, DefaultCooldownWindow),
	}
}

// Validate says what makes the settings unusable, in the plugin's own words. Like the plugin it is to be asked before
// the defaults are set.
//
// Source: kubevirt-descheduler-plugins plugins/kubevirtmigrationaware/validation.go.
func (c CooldownSettings) Validate() error {
	switch {
	case c.Base < 0:
		return fmt.Errorf("migrationCooldown must be non-negative, got %v", c.Base)
	case c.Max < 0:
		return fmt.Errorf("maxMigrationCooldown must be non-negative, got %v", c.Max)
	case c.Max > 0 && c.Max < c.Base:
		return fmt.Errorf("maxMigrationCooldown (%v) must be >= migrationCooldown (%v)", c.Max, c.Base)
	case c.Window < 0:
		return fmt.Errorf("migrationHistoryWindow must be non-negative, got %v", c.Window)
	}
	return nil
}

// cooldownSeconds is how CooldownSettings are stored.
type cooldownSeconds struct {
	Base   Span `json:"base"`
	Max    Span `json:"max"`
	Window Span `json:"window"`
}

// MarshalJSON writes the durations as numbers of seconds.
func (c CooldownSettings) MarshalJSON() ([]byte, error) {
	return json.Marshal(cooldownSeconds{Span(c.Base), Span(c.Max), Span(c.Window)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *CooldownSettings) UnmarshalJSON(raw []byte) error {
	var s cooldownSeconds
	err := json.Unmarshal(raw, &s)
	*c = CooldownSettings{Base: time.Duration(s.Base), Max: time.Duration(s.Max), Window: time.Duration(s.Window)}
	return err
}

// whatSettings is the aspect under which the rules in force are recorded.
const whatSettings = "settings"

// ConfigDetail is the rules in force: those of KubeVirt, of a MigrationPolicy, or else of the descheduler.
type ConfigDetail struct {
	MigrationPolicy *MigrationPolicySettings `json:"migration_policy,omitempty"`
	KubeVirt        *KubeVirtSettings        `json:"kubevirt,omitempty"`
	Policy          string                   `json:"descheduler_policy,omitempty"`  // as it was read; empty where the settings were stated by hand
	Descheduler     *DeschedulerSettings     `json:"descheduler,omitempty"`         // nil where the policy could not be read
	Problem         string                   `json:"descheduler_problem,omitempty"` // why it could not be read
}

func (*ConfigDetail) detail() {}

func (t *Tracker) observeKubeVirt(o KubeVirtObservation) []Fact {
	return t.config(ObjectKubeVirt, o.Meta, o.Seen, ReasonKubeVirtSettings, ConfigDetail{KubeVirt: &o.Settings}, "spec.configuration")
}

// observePolicy records a policy. One without a resourceVersion gets the next number after its last change, so that a
// policy that comes back is a change too, and reading the same again is none.
func (t *Tracker) observePolicy(o PolicyObservation) []Fact {
	if o.ResourceVersion == "" {
		o.ResourceVersion = t.nextVersion(ObjectPolicy, o.UID)
	}
	d := ConfigDetail{Policy: o.Text, Descheduler: o.Settings, Problem: o.Problem}
	return t.config(ObjectPolicy, o.Meta, o.Seen, ReasonDeschedulerPolicy, d, "policy.yaml")
}

func (t *Tracker) nextVersion(kind ObjectKind, uid string) string {
	last := uint64(0)
	if o := t.objects[objectKey{kind, uid}]; o != nil {
		_, version := SplitVersion(o.rv)
		last, _ = strconv.ParseUint(version, 10, 64)
	}
	return strconv.FormatUint(last+1, 10)
}

func (t *Tracker) config(kind ObjectKind, m Meta, seen Seen, reason Reason, d ConfigDetail, evidence string) []Fact {
	r := t.take(kind, m, seen, Subject{Kind: SubjectConfig, Name: string(kind)})
	if r == nil || seen.Gone {
		return nil
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic("marshal settings: " + err.Error()) // plain strings, numbers and lists: cannot fail
	}
	if r.became(whatSettings, Digest(string(text))) {
		value, _ := r.object.get(whatSettings)
		r.change(KindConfigSeen, reason, whatSettings, value).from(evidence).with(&d)
	}
	return r.facts
}

// configAt is the settings history that Env keeps.
type configAt struct {
	at        time.Time
	namespace string // of the object that holds them; empty where there is none
	detail    ConfigDetail
}
