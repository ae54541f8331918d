package collector

import (
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// slimKubeVirt is what is read of the KubeVirt CR.
type slimKubeVirt struct {
	slimHead
	Spec struct {
		Configuration struct {
			EvictionStrategy       string `json:"evictionStrategy"`
			DeveloperConfiguration struct {
				FeatureGates         []string `json:"featureGates"`
				DisabledFeatureGates []string `json:"disabledFeatureGates"`
			} `json:"developerConfiguration"`
			Migrations struct {
				ParallelMigrationsPerCluster      *int64 `json:"parallelMigrationsPerCluster"`
				ParallelOutboundMigrationsPerNode *int64 `json:"parallelOutboundMigrationsPerNode"`
				NodeDrainTaintKey                 string `json:"nodeDrainTaintKey"`
				ProgressTimeout                   *int64 `json:"progressTimeout"`
				CompletionTimeoutPerGiB           *int64 `json:"completionTimeoutPerGiB"`
				AllowPostCopy                     *bool  `json:"allowPostCopy"`
				Network                           string `json:"network"`
			} `json:"migrations"`
		} `json:"configuration"`
		WorkloadUpdateStrategy struct {
			WorkloadUpdateMethods []string `json:"workloadUpdateMethods"`
			BatchEvictionSize     *int64   `json:"batchEvictionSize"`
			BatchEvictionInterval string   `json:"batchEvictionInterval"`
		} `json:"workloadUpdateStrategy"`
	} `json:"spec"`
	Status struct {
		ObservedKubeVirtVersion string `json:"observedKubeVirtVersion"`
	} `json:"status"`
}

func (v *slimKubeVirt) decodeObservation(m tracker.Meta) (Observation, error) {
	c := v.Spec.Configuration
	o := tracker.KubeVirtObservation{Meta: m, Settings: trail.KubeVirtSettings{
		Version:                 v.Status.ObservedKubeVirtVersion,
		EvictionStrategy:        c.EvictionStrategy,
		ParallelPerCluster:      c.Migrations.ParallelMigrationsPerCluster,
		ParallelOutboundPerNode: c.Migrations.ParallelOutboundMigrationsPerNode,
		DrainTaintKey:           c.Migrations.NodeDrainTaintKey,
		ProgressTimeout:         c.Migrations.ProgressTimeout,
		CompletionTimeoutPerGiB: c.Migrations.CompletionTimeoutPerGiB,
		AllowPostCopy:           c.Migrations.AllowPostCopy,
		FeatureGates:            c.DeveloperConfiguration.FeatureGates,
		DisabledFeatureGates:    c.DeveloperConfiguration.DisabledFeatureGates,
		MigrationNetwork:        c.Migrations.Network,
		WorkloadUpdateMethods:   v.Spec.WorkloadUpdateStrategy.WorkloadUpdateMethods,
		BatchEvictionSize:       v.Spec.WorkloadUpdateStrategy.BatchEvictionSize,
	}}
	// KubeVirt cannot read an object with another text either: its own default holds.
	if interval, err := time.ParseDuration(v.Spec.WorkloadUpdateStrategy.BatchEvictionInterval); err == nil {
		o.Settings.BatchEvictionInterval = new(trail.Span(interval))
	}
	return func(s tracker.Seen) tracker.Observation { o.Seen = s; return o }, nil
}
