package collector

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// slimMigrationPolicy is what is read of a MigrationPolicy.
//
// Source: kubevirt staging/src/kubevirt.io/api/migrations/v1alpha1/types.go.
type slimMigrationPolicy struct {
	slimHead
	Spec struct {
		Selectors struct {
			NamespaceSelector              map[string]string `json:"namespaceSelector"`
			VirtualMachineInstanceSelector map[string]string `json:"virtualMachineInstanceSelector"`
		} `json:"selectors"`
		AllowAutoConverge       *bool              `json:"allowAutoConverge"`
		BandwidthPerMigration   *resource.Quantity `json:"bandwidthPerMigration"`
		CompletionTimeoutPerGiB *int64             `json:"completionTimeoutPerGiB"`
		AllowPostCopy           *bool              `json:"allowPostCopy"`
		AllowWorkloadDisruption *bool              `json:"allowWorkloadDisruption"`
	} `json:"spec"`
}

func (v *slimMigrationPolicy) decodeObservation(m tracker.Meta) (Observation, error) {
	o := tracker.MigrationPolicyObservation{Meta: m, Settings: trail.MigrationPolicySettings{
		Namespaces:              v.Spec.Selectors.NamespaceSelector,
		VMIs:                    v.Spec.Selectors.VirtualMachineInstanceSelector,
		AllowAutoConverge:       v.Spec.AllowAutoConverge,
		AllowPostCopy:           v.Spec.AllowPostCopy,
		AllowWorkloadDisruption: v.Spec.AllowWorkloadDisruption,
		CompletionTimeoutPerGiB: v.Spec.CompletionTimeoutPerGiB,
	}}
	if b := v.Spec.BandwidthPerMigration; b != nil {
		o.Settings.Bandwidth = b.String()
	}
	return func(s tracker.Seen) tracker.Observation { o.Seen = s; return o }, nil
}
