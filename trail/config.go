package trail

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

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
	MigrationNetwork        string   `json:"migration_network,omitempty"`       // a NetworkAttachmentDefinition; empty: the pod network
	BatchEvictionSize       *int64   `json:"batch_eviction_size,omitempty"`     // VMs that the workload updater evicts at once
	BatchEvictionInterval   *Span    `json:"batch_eviction_interval,omitempty"` // between two batches of these
}

// DefaultDrainTaintKey is KubeVirt's drain taint where the CR names no other.
const DefaultDrainTaintKey = "kubevirt.io/drain"

// DeschedulerSettings are the settings of the descheduler that decide evictions of VMs.
//
// Source: descheduler policy v1alpha2 (sigs.k8s.io/descheduler pkg/api/v1alpha2), and the arguments of
// KubevirtMigrationAware (kubevirt-descheduler-plugins) and LowNodeUtilization.
type DeschedulerSettings struct {
	Cooldown          *CooldownSettings `json:"cooldown,omitempty"`            // nil: KubevirtMigrationAware is not enabled
	LimitTotal        *int64            `json:"limit_total,omitempty"`         // maxNoOfPodsToEvictTotal, evictions in one cycle; nil: none
	LimitPerNode      *int64            `json:"limit_per_node,omitempty"`      // the smallest that is in force; nil: none
	LimitPerNamespace *int64            `json:"limit_per_namespace,omitempty"` // maxNoOfPodsToEvictPerNamespace; nil: none
	Model             string            `json:"model,omitempty"`               // the behaviour to assume, as it was stated: a release, or none; empty: what the version says
}

// CooldownSettings are the arguments of KubevirtMigrationAware. They are stored as numbers of seconds.
type CooldownSettings struct {
	Base   time.Duration // migrationCooldown
	Max    time.Duration // maxMigrationCooldown
	Window time.Duration // migrationHistoryWindow
}

// The cooldown where the policy sets none: KubevirtMigrationAware's own.
//
// Source: kubevirt-descheduler-plugins plugins/kubevirtmigrationaware/defaults.go.
const (
	DefaultCooldown       = 15 * time.Minute
	DefaultMaxCooldown    = 6 * time.Hour
	DefaultCooldownWindow = 48 * time.Hour
)

// WithDefaults returns the settings in force: zero means the default, as it does to the plugin.
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

// ConfigDetail is the rules in force: those of KubeVirt, of a MigrationPolicy, or else of the descheduler.
type ConfigDetail struct {
	MigrationPolicy *MigrationPolicySettings `json:"migration_policy,omitempty"`
	KubeVirt        *KubeVirtSettings        `json:"kubevirt,omitempty"`
	Policy          string                   `json:"descheduler_policy,omitempty"`  // as it was read; empty where the settings were stated by hand
	Descheduler     *DeschedulerSettings     `json:"descheduler,omitempty"`         // nil where the policy could not be read
	Problem         string                   `json:"descheduler_problem,omitempty"` // why it could not be read
}

func (*ConfigDetail) isDetail() {}

// configAt is the settings history that Env keeps.
type configAt struct {
	at        time.Time
	namespace string // of the object that holds them; empty where there is none
	detail    ConfigDetail
}
