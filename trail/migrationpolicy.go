package trail

import "time"

// MigrationPolicySettings are the settings of a MigrationPolicy. Nil and empty mean that it leaves the setting to the KubeVirt CR.
//
// Source: kubevirt staging/src/kubevirt.io/api/migrations/v1alpha1/types.go, MigrationPolicySpec.
type MigrationPolicySettings struct {
	Name                    string            `json:"name"`
	CreatedAt               time.Time         `json:"created_at,omitzero"` // the API server's clock, 1 s resolution
	Namespaces              map[string]string `json:"namespace_selector,omitempty"`
	VMIs                    map[string]string `json:"vmi_selector,omitempty"`
	AllowAutoConverge       *bool             `json:"allow_auto_converge,omitempty"`
	AllowPostCopy           *bool             `json:"allow_post_copy,omitempty"`
	AllowWorkloadDisruption *bool             `json:"allow_workload_disruption,omitempty"`
	Bandwidth               string            `json:"bandwidth_per_migration,omitempty"`    // bytes per second, as Kubernetes writes quantities
	CompletionTimeoutPerGiB *int64            `json:"completion_timeout_per_gib,omitempty"` // seconds
}
