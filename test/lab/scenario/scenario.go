package scenario

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/test/lab/nodesim"
)

// Scenario is what happens in the lab, and what must come of it.
type Scenario struct {
	Name         string            `json:"-"`
	About        string            `json:"about"`    // in a sentence or two
	Long         bool              `json:"long"`     // it takes over ten minutes: it is played where it is named
	KubeVirt     []string          `json:"kubeVirt"` // versions on which it can be played; empty: all
	Nodes        []string          `json:"nodes"`
	VMs          []VM              `json:"vms"`
	Users        map[string]string `json:"users"` // ClusterRole that a user has in the namespace of the VMs, by name; who is not named may do everything
	Parallel     Parallel          `json:"parallel"`
	FeatureGates []string          `json:"featureGates"` // of KubeVirt
	Descheduler  *Descheduler      `json:"descheduler"`  // nil: there is none
	Replicas     int               `json:"replicas"`     // of evictrail; zero: one
	Flags        []string          `json:"flags"`        // more flags of "evictrail run"
	Steps        []Step            `json:"steps"`
	Undisturbed  bool              `json:"undisturbed"` // it is played once more without its kills: evictrail must have recorded the same
	Expect       Expect            `json:"expect"`
}

// RunsOn reports whether the scenario can be played on a version of KubeVirt.
func (s Scenario) RunsOn(version string) bool {
	return len(s.KubeVirt) == 0 || slices.Contains(s.KubeVirt, version)
}

// NeedsPrometheus reports whether the scenario expects something of alerts.
func (s Scenario) NeedsPrometheus() bool {
	return s.Expect.ofAlerts() || slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Check != nil && step.Check.ofAlerts() })
}

// For returns the scenario with the steps of a version of KubeVirt.
func (s Scenario) For(version string) Scenario {
	s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), func(step Step) bool { return len(step.KubeVirt) > 0 && !slices.Contains(step.KubeVirt, version) })
	return s
}

// WithoutKills returns the scenario with nothing killed, and so nothing started again.
func (s Scenario) WithoutKills() Scenario {
	s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), func(step Step) bool { return step.Kill != "" || step.Start != "" })
	s.Expect.Gaps = false
	return s
}

// Runs reports whether a step runs a program: kubectl or virtctl.
func (s Scenario) Runs(program string) bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.needsProgram(program) })
}

// Parallel bounds how many migrations KubeVirt runs at once; zero: KubeVirt's defaults.
type Parallel struct {
	Cluster int `json:"cluster"`
	Node    int `json:"node"` // outbound
}

// Descheduler says how the descheduler is set.
type Descheduler struct {
	Every   Duration `json:"every"`   // between two cycles
	PerNode int      `json:"perNode"` // evictions at once; zero: no limit
	GateOff bool     `json:"gateOff"` // without the feature gate EvictionsInBackground
}

// VM is one VM of a scenario.
type VM struct {
	Name          string      `json:"name"`
	Node          string      `json:"node"`          // where it starts
	Later         bool        `json:"later"`         // it is not there at the beginning: a step creates it
	Strategy      string      `json:"strategy"`      // evictionStrategy; empty: LiveMigrate
	NotMigratable string      `json:"notMigratable"` // reason of LiveMigratable=False; empty: it can migrate
	Load          float64     `json:"load"`          // that it adds to its node, 1 is all of a node
	Migrations    []Migration `json:"migrations"`    // in order; the last goes on for ever; empty: all succeed
}

// Migration says how one migration goes; see nodesim.Migration.
type Migration struct {
	Outcome     nodesim.Outcome `json:"outcome"`
	After       Duration        `json:"after"`
	Reason      string          `json:"reason"`
	Prepare     Duration        `json:"prepare"`
	IgnoreAbort bool            `json:"ignoreAbort"`
}

// Script returns how the simulated nodes treat the VM.
func (v VM) Script() nodesim.Script {
	s := nodesim.Script{Load: v.Load, NotMigratable: v.NotMigratable}
	for _, m := range v.Migrations {
		s.Migrations = append(s.Migrations, nodesim.Migration{
			Outcome: m.Outcome, After: time.Duration(m.After), Reason: m.Reason, Prepare: time.Duration(m.Prepare), IgnoreAbort: m.IgnoreAbort,
		})
	}
	return s
}

// Expect is what evictrail must say after the steps, or at a step that checks, beside the facts that are compared in every scenario.
type Expect struct {
	Loops  []Loop              `json:"loops"`  // all that there are
	Alerts []string            `json:"alerts"` // names of alerts whose expression must be true in the Prometheus that scrapes evictrail
	Quiet  bool                `json:"quiet"`  // whether no alert may have been pending or firing at any time since Prometheus started
	Why    map[string][]string `json:"why"`    // texts that the answer to why must contain, by VM
	Not    map[string][]string `json:"not"`    // texts that the answer to why must not contain, by VM
	WhyNot map[string][]string `json:"whyNot"` // texts that the answer to why-not must contain, by VM or node
	Gaps   bool                `json:"gaps"`   // whether there must be gaps: evictrail could not see all; what it has is compared all the same
}

// ofAlerts reports whether something is expected of alerts.
func (e Expect) ofAlerts() bool { return len(e.Alerts) > 0 || e.Quiet }

// checkAgainst says what is wrong with what a scenario expects.
func (e Expect) checkAgainst(of Scenario) error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, loop := range e.Loops {
		if loop.VM != "" && !of.hasVM(loop.VM) {
			problem("expect: loop of %q: no such vm", loop.VM)
		}
	}
	for _, texts := range []map[string][]string{e.Why, e.Not, e.WhyNot} {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			if !of.hasVM(name) && !slices.Contains(of.Nodes, name) {
				problem("expect: an answer about %q: no such vm or node", name)
			}
		}
	}
	if e.Quiet && len(e.Alerts) > 0 {
		problem("expect: quiet, and alerts %q: one of them", e.Alerts)
	}
	return errors.Join(problems...)
}

// Loop is a loop that must have been found.
type Loop struct {
	Kind string `json:"kind"`
	VM   string `json:"vm"`   // empty: any, or none
	Node string `json:"node"` // empty: any
	Open bool   `json:"open"` // whether it is open at the end
}

//go:embed scenarios/*.yaml
var files embed.FS

// Names returns the names of all scenarios, sorted.
func Names() []string {
	entries, err := files.ReadDir("scenarios")
	if err != nil {
		panic("read the embedded scenarios: " + err.Error())
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	return names
}

// Load reads a scenario. The error says what is wrong with it, or which scenarios there are.
func Load(name string) (Scenario, error) {
	raw, err := files.ReadFile(path.Join("scenarios", name+".yaml"))
	if err != nil {
		return Scenario{}, fmt.Errorf("no scenario named %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	s, err := parseScenario(raw)
	if err != nil {
		return Scenario{}, fmt.Errorf("scenario %s: %w", name, err)
	}
	s.Name = name
	return s, nil
}

// parseScenario reads a scenario and checks what it names.
func parseScenario(raw []byte) (s Scenario, err error) {
	if err := yaml.UnmarshalStrict(raw, &s); err != nil {
		return s, err
	}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if s.About == "" {
		problem("about: missing")
	}
	if len(s.Nodes) == 0 || len(s.VMs) == 0 || len(s.Steps) == 0 {
		problem("nodes, vms and steps: at least one of each is needed")
	}
	for _, vm := range s.VMs {
		if !slices.Contains(s.Nodes, vm.Node) {
			problem("vm %s: node %q is not one of %s", vm.Name, vm.Node, strings.Join(s.Nodes, ", "))
		}
		for _, m := range vm.Migrations {
			if !slices.Contains(outcomes, m.Outcome) {
				problem("vm %s: outcome %q is not one of %q", vm.Name, m.Outcome, outcomes)
			}
		}
	}
	for i, step := range s.Steps {
		if err := step.checkAgainst(s); err != nil {
			problem("step %d: %w", i+1, err)
		}
	}
	return s, errors.Join(append(problems, s.Expect.checkAgainst(s))...)
}

var outcomes = []nodesim.Outcome{
	nodesim.OutcomeSucceed, nodesim.OutcomeFail, nodesim.OutcomeStall, nodesim.OutcomeStallPrepare, nodesim.OutcomeNeverReady, nodesim.OutcomeCrash, nodesim.OutcomeLose,
}

// findVM returns the VM of that name.
func (s Scenario) findVM(name string) (VM, bool) {
	i := slices.IndexFunc(s.VMs, func(v VM) bool { return v.Name == name })
	if i < 0 {
		return VM{}, false
	}
	return s.VMs[i], true
}

// hasVM reports whether there is a VM of that name.
func (s Scenario) hasVM(vm string) bool {
	_, has := s.findVM(vm)
	return has
}

// Settings returns spec.configuration.migrations of KubeVirt.
func (p Parallel) Settings() map[string]any {
	settings := map[string]any{}
	if p.Cluster > 0 {
		settings["parallelMigrationsPerCluster"] = int64(p.Cluster)
	}
	if p.Node > 0 {
		settings["parallelOutboundMigrationsPerNode"] = int64(p.Node)
	}
	return settings
}
