package collector

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// The plugins of the descheduler whose arguments are read.
const (
	pluginCooldown    = "KubevirtMigrationAware"
	pluginUtilization = "LowNodeUtilization"
)

// policyVersion is the version of the policies that are read; a descheduler of the last years takes no other.
const policyVersion = "descheduler/v1alpha2"

// slimPolicy is what is read of a descheduler's policy. The case of its keys does not matter: the operator writes
// preevictionfilter where the documentation has preEvictionFilter.
//
// Source: sigs.k8s.io/descheduler pkg/api/v1alpha2/types.go.
type slimPolicy struct {
	APIVersion      string        `json:"apiVersion"`
	Kind            string        `json:"kind"`
	MaxTotal        *uint32       `json:"maxNoOfPodsToEvictTotal"`
	MaxPerNode      *uint32       `json:"maxNoOfPodsToEvictPerNode"`
	MaxPerNamespace *uint32       `json:"maxNoOfPodsToEvictPerNamespace"`
	Profiles        []slimProfile `json:"profiles"`
}

type slimProfile struct {
	Name         string `json:"name"`
	PluginConfig []struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"pluginConfig"`
	Plugins struct {
		Filter            slimPlugins `json:"filter"`
		PreEvictionFilter slimPlugins `json:"preEvictionFilter"`
		Balance           slimPlugins `json:"balance"`
	} `json:"plugins"`
}

type slimPlugins struct {
	Enabled []string `json:"enabled"`
}

// slimCooldown is what is read of the arguments of KubevirtMigrationAware.
type slimCooldown struct {
	Base   metav1.Duration `json:"migrationCooldown"`
	Max    metav1.Duration `json:"maxMigrationCooldown"`
	Window metav1.Duration `json:"migrationHistoryWindow"`
}

// slimUtilization is what is read of the arguments of LowNodeUtilization.
type slimUtilization struct {
	EvictionLimits struct {
		Node *uint32 `json:"node"`
	} `json:"evictionLimits"`
}

// keepPolicy returns what a recording keeps of the text of a policy: what is read of it.
func keepPolicy(text []byte) (any, error) {
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	s := shapeOf(reflect.TypeFor[slimPolicy]())
	args := s.fields["profiles"].items.fields["pluginConfig"].items.fields["args"]
	args.addType(reflect.TypeFor[slimCooldown]())
	args.addType(reflect.TypeFor[slimUtilization]())
	return s.pruneJSON(raw)
}

// ReadPolicy reads the settings that decide evictions of VMs from the text of a descheduler's policy. Its errors are
// those for which the descheduler itself would refuse the policy, as far as these settings go.
func ReadPolicy(text []byte) (*trail.DeschedulerSettings, error) {
	var p slimPolicy
	if err := yaml.Unmarshal(text, &p); err != nil {
		return nil, err
	}
	if p.APIVersion != policyVersion || p.Kind != "DeschedulerPolicy" {
		return nil, fmt.Errorf("apiVersion %q, kind %q: expected %s, DeschedulerPolicy", p.APIVersion, p.Kind, policyVersion)
	}
	s := &trail.DeschedulerSettings{
		LimitTotal: widenLimit(p.MaxTotal), LimitPerNode: widenLimit(p.MaxPerNode), LimitPerNamespace: widenLimit(p.MaxPerNamespace),
	}
	for _, profile := range p.Profiles {
		if err := profile.readSettings(s); err != nil {
			return nil, fmt.Errorf("profile %s: %w", profile.Name, err)
		}
	}
	return s, nil
}

// readSettings takes over the settings of one profile. The cooldown is that of the first profile that has one.
func (p *slimProfile) readSettings(s *trail.DeschedulerSettings) error {
	enabled := slices.Concat(p.Plugins.Filter.Enabled, p.Plugins.PreEvictionFilter.Enabled)
	if s.Cooldown == nil && slices.Contains(enabled, pluginCooldown) {
		c, err := readCooldown(p.findArgs(pluginCooldown))
		if err != nil {
			return fmt.Errorf("%s: %w", pluginCooldown, err)
		}
		s.Cooldown = c
	}
	if slices.Contains(p.Plugins.Balance.Enabled, pluginUtilization) {
		var args slimUtilization
		if err := json.Unmarshal(p.findArgs(pluginUtilization), &args); err != nil {
			return fmt.Errorf("%s: %w", pluginUtilization, err)
		}
		s.LimitPerNode = pickLowerLimit(s.LimitPerNode, widenLimit(args.EvictionLimits.Node))
	}
	return nil
}

// findArgs returns the arguments of a plugin; null where the profile has none for it.
func (p *slimProfile) findArgs(plugin string) json.RawMessage {
	for _, c := range p.PluginConfig {
		if c.Name == plugin && len(c.Args) > 0 {
			return c.Args
		}
	}
	return json.RawMessage("null")
}

func readCooldown(raw json.RawMessage) (*trail.CooldownSettings, error) {
	var args slimCooldown
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, err
	}
	c := trail.CooldownSettings{Base: args.Base.Duration, Max: args.Max.Duration, Window: args.Window.Duration}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	return &c, nil
}

func widenLimit(n *uint32) *int64 {
	if n == nil {
		return nil
	}
	wide := int64(*n)
	return &wide
}

// pickLowerLimit returns the smaller of two limits, of which either may be missing.
func pickLowerLimit(a, b *int64) *int64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	least := min(*a, *b)
	return &least
}

// policyUID names the policy that is not read from the cluster, wherever it comes from.
const policyUID = "descheduler-policy"

// Policy observes the text of a descheduler's policy. One that cannot be read is observed without settings. The model
// is trail.DeschedulerSettings.Model.
func Policy(text []byte, model string) Observation {
	return newPolicyObservation(tracker.Meta{UID: policyUID, Name: policyUID}, text, model)
}

// StatedPolicy observes settings of the descheduler that somebody stated.
func StatedPolicy(settings trail.DeschedulerSettings) Observation {
	return func(s tracker.Seen) tracker.Observation {
		return tracker.PolicyObservation{Seen: s, Meta: tracker.Meta{UID: policyUID, Name: policyUID}, Settings: &settings}
	}
}

func newPolicyObservation(m tracker.Meta, text []byte, model string) Observation {
	o := tracker.PolicyObservation{Meta: m, Text: trail.ClipText(string(text), maxPolicy)}
	settings, err := ReadPolicy(text)
	if err != nil {
		o.Problem = clipError(err).Error()
	} else {
		settings.Model = model
		o.Settings = settings
	}
	return func(s tracker.Seen) tracker.Observation { o.Seen = s; return o }
}

// policyKey is the key of the ConfigMap under which the policy lies.
//
// Source: openshift/cluster-kube-descheduler-operator pkg/operator/target_config_reconciler.go, and the Helm chart of
// kubernetes-sigs/descheduler.
const policyKey = "policy.yaml"

// PolicyMap names the ConfigMap with the descheduler's policy.
type PolicyMap struct {
	Namespace string
	Name      string
	Model     string // trail.DeschedulerSettings.Model
}

// toWatched returns the ConfigMap as a resource to watch.
func (p *PolicyMap) toWatched() watched {
	return watched{name: "configmaps", version: "v1", kind: trail.ObjectPolicy, slim: func() slim { return &slimPolicyMap{model: p.Model} }, namespace: p.Namespace, object: p.Name}
}

// slimPolicyMap is what is read of that ConfigMap.
type slimPolicyMap struct {
	slimHead
	model string            // PolicyMap.Model
	Data  map[string]string `json:"data" text:"-"` // at most 1 MiB, as Kubernetes bounds it: the policy is read before it is clipped
}

func (v *slimPolicyMap) decodeObservation(m tracker.Meta) (Observation, error) {
	text, found := v.Data[policyKey]
	if !found {
		return nil, errors.New("ConfigMap without the key " + policyKey)
	}
	return newPolicyObservation(m, []byte(text), v.model), nil
}

// noPolicy says that the ConfigMap with the policy does not exist.
const noPolicy = "not found, waiting for it"

// logPolicyProblem logs what is wrong with the descheduler's policy, empty where nothing is, once until that changes: the
// owner's.
func (c *Collector) logPolicyProblem(problem string) {
	if problem != "" && problem != c.problem {
		c.Log.Warn("settings of the descheduler are not known", "resource", "descheduler policy", "err", problem)
	}
	c.problem = problem
}
