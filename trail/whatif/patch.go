package whatif

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Patch is how a part of a policy is set, with what exists today.
type Patch struct {
	Of   string // what is changed
	Text string // a command or a part of a file, to paste
	Note string // what to know about it; empty: nothing
}

// Possible reports whether what the policy asks for can be set today. Giving up is not implemented by any release of KubeVirt.
func (p Policy) Possible() bool { return !p.TryOnce && p.GiveUpAfter == 0 }

// Obstacles says what of the policy has no setting, a sentence each; none where all of it has one.
func (p Policy) Obstacles() []string {
	var out []string
	if p.TryOnce {
		out = append(out, "No release of KubeVirt tries an eviction only once: "+wordTryOnce+" is a proposal, and cannot be set today.")
	}
	if p.GiveUpAfter > 0 {
		out = append(out, fmt.Sprintf("No release of KubeVirt gives up an evacuation: %s=%d is a proposal, and cannot be set today.", wordGiveUp, p.GiveUpAfter))
	}
	if p.KeepMark {
		out = append(out, "KubeVirt keeps the in-progress mark since v1.6.1, and has no setting for it: update KubeVirt.")
	}
	if p.Cooldown != nil && p.Cooldown.Off {
		out = append(out, "The operator's profile KubeVirtRelieveAndMigrate always has a cooldown. In a policy of your own, take KubevirtMigrationAware out of filter and preEvictionFilter.")
	}
	return out
}

// Patches returns how to set what the policy states. Rules are those that were in force, nil where they are not known: a base above the cap in
// force needs another cap.
//
// Source: cluster-kube-descheduler-operator pkg/apis/descheduler/v1 (profileCustomizations, evictionLimits), kubevirt-descheduler-plugins
// (arguments of KubevirtMigrationAware), descheduler pkg/api/v1alpha2, kubevirt spec.configuration.migrations.
func (p Policy) Patches(rules *Rules) []Patch {
	cooldown := p.cooldownToSet(rules)
	if cooldown == nil && p.NodeLimit == 0 && p.TotalLimit == 0 {
		return nil
	}
	out := []Patch{
		{Of: "With the Kube Descheduler Operator (OpenShift)", Text: p.operatorCommand(cooldown), Note: "Needs the profile KubeVirtRelieveAndMigrate in spec.profiles."},
		{Of: "With a DeschedulerPolicy (policy.yaml in the ConfigMap of the descheduler)", Text: p.policyFile(cooldown), Note: "Merge it into the profile that evicts VMs; KubevirtMigrationAware has to be enabled there for filter and preEvictionFilter."},
	}
	if cooldown == nil {
		out[1].Note = "These stand at the top of the policy."
	}
	if p.NodeLimit > 0 || p.TotalLimit > 0 {
		out = append(out, Patch{Of: "In KubeVirt, where migrations should have the same limits", Text: p.kubeVirtCommand(),
			Note: "Limits all migrations, those of drains and users, too: others wait. It was not replayed. Where the HyperConverged operator manages KubeVirt, set spec.liveMigrationConfig of HyperConverged instead."})
	}
	return out
}

// cooldownToSet returns the settings of the cooldown to state, nil where there are none.
func (p Policy) cooldownToSet(rules *Rules) *Cooldown {
	if p.Cooldown == nil || p.Cooldown.Off {
		return nil
	}
	c := *p.Cooldown
	most := trail.Span(trail.DefaultMaxCooldown)
	if rules != nil && rules.Cooldown != nil && rules.Cooldown.Cap > 0 {
		most = rules.Cooldown.Cap
	}
	if c.Cap == 0 && c.Base > most {
		c.Cap = c.Base
	}
	if c == (Cooldown{}) { // on, with what is the default
		c = Cooldown{Base: trail.Span(trail.DefaultCooldown), Cap: trail.Span(trail.DefaultMaxCooldown), Window: trail.Span(trail.DefaultCooldownWindow)}
	}
	return &c
}

// operatorCommand sets the policy in the KubeDescheduler. The operator allows one, with this name in this namespace.
func (p Policy) operatorCommand(c *Cooldown) string {
	spec := map[string]any{}
	if c != nil {
		custom := map[string]string{}
		for _, s := range []struct {
			name  string
			value trail.Span
		}{{"devMigrationCooldown", c.Base}, {"devMaxMigrationCooldown", c.Cap}, {"devMigrationHistoryWindow", c.Window}} {
			if s.value > 0 {
				custom[s.name] = time.Duration(s.value).String()
			}
		}
		spec["profileCustomizations"] = custom
	}
	if limits := p.namedLimits("node", "total"); limits != nil {
		spec["evictionLimits"] = limits
	}
	return patchCommand("kubedescheduler cluster -n openshift-kube-descheduler-operator", map[string]any{"spec": spec})
}

// kubeVirtCommand sets the limits in the KubeVirt CR.
func (p Policy) kubeVirtCommand() string {
	limits := p.namedLimits("parallelOutboundMigrationsPerNode", "parallelMigrationsPerCluster")
	return patchCommand("kubevirt kubevirt -n kubevirt", map[string]any{"spec": map[string]any{"configuration": map[string]any{"migrations": limits}}})
}

// namedLimits returns the limits that the policy states under the names of an API; nil where it states none.
func (p Policy) namedLimits(node, total string) map[string]int {
	var out map[string]int
	for name, n := range map[string]int{node: p.NodeLimit, total: p.TotalLimit} {
		if n > 0 {
			if out == nil {
				out = map[string]int{}
			}
			out[name] = n
		}
	}
	return out
}

// patchCommand returns the command that merges a patch into an object.
func patchCommand(object string, patch map[string]any) string {
	raw, _ := json.Marshal(patch) // of names and numbers: it cannot fail
	return "kubectl patch " + object + " --type=merge -p '" + string(raw) + "'"
}

// policyFile is what of a DeschedulerPolicy says the same.
func (p Policy) policyFile(c *Cooldown) string {
	lines := []string{"apiVersion: descheduler/v1alpha2", "kind: DeschedulerPolicy"}
	add := func(set bool, format string, args ...any) {
		if set {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	add(p.NodeLimit > 0, "maxNoOfPodsToEvictPerNode: %d", p.NodeLimit)
	add(p.TotalLimit > 0, "maxNoOfPodsToEvictTotal: %d", p.TotalLimit)
	if c != nil {
		lines = append(lines, "profiles:", "- name: YOUR-PROFILE", "  pluginConfig:", "  - name: KubevirtMigrationAware", "    args:")
		add(c.Base > 0, "      migrationCooldown: %s", time.Duration(c.Base))
		add(c.Cap > 0, "      maxMigrationCooldown: %s", time.Duration(c.Cap))
		add(c.Window > 0, "      migrationHistoryWindow: %s", time.Duration(c.Window))
	}
	return strings.Join(lines, "\n")
}
