package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/test/lab/nodesim"
	"github.com/evictrail/evictrail/test/lab/truth"
)

// TestScenariosAreWhole reads all that there are.
func TestScenariosAreWhole(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, Names())
	for _, name := range Names() {
		s, err := Load(name)
		require.NoError(t, err)
		require.Equal(t, name, s.Name)
	}
	_, err := Load("nope")
	require.ErrorContains(t, err, `no scenario named "nope"; there are: `)
	require.ErrorContains(t, err, "dual-retry-loop")
}

const whole = `
about: a test
nodes: [n1, n2]
vms:
  - {name: db-1, node: n1, load: 0.5, migrations: [{outcome: fail, after: 4s, reason: it broke}, {outcome: ""}]}
  - {name: web-1, node: n2, later: true}
steps:
  - {evict: db-1, as: alice}
  - {load: {n1: 0.2}}
  - {kubectl: [cordon, n1], as: bob, fails: true}
  - {create: web-1}
  - {advice: {vm: db-1, contains: cancel}, as: carol}
  - {apply: README}
  - {look: db-1}
  - {kill: evictrail}
  - {start: evictrail}
  - {image: "virt-launcher:next"}
  - {until: {vm: db-1, node: n2, marked: false, failed: 1}, within: 2s}
  - {check: {whyNot: {db-1: [stalled], n2: [not ready]}}}
  - {wait: 1ms}
`

func TestParse(t *testing.T) {
	t.Parallel()
	s, err := parseScenario([]byte(whole))
	require.NoError(t, err)
	require.Equal(t, nodesim.Script{Load: 0.5, Migrations: []nodesim.Migration{{Outcome: nodesim.OutcomeFail, After: 4 * time.Second, Reason: "it broke"}, {}}}, s.VMs[0].Script())
	for _, c := range []struct{ name, old, new, want string }{
		{"a field that there is not", "about: a test", "abuot: a test", "abuot"},
		{"a node that there is not", "node: n1, load", "node: n3, load", `vm db-1: node "n3" is not one of n1, n2`},
		{"an outcome that there is not", "outcome: fail", "outcome: fial", `outcome "fial"`},
		{"two verbs", "{wait: 1ms}", "{wait: 1ms, kill: evictrail}", "has 2 verbs"},
		{"a program that there is not", "kill: evictrail", "kill: evictrial", `"evictrial" is not one of`},
		{"a vm that is there already", "create: web-1", "create: db-1", `no vm named "db-1" that is there later`},
		{"advice for no vm", "vm: db-1, contains", "vm: db-2, contains", "expected a vm of the scenario"},
		{"a vm that there is not", "evict: db-1", "evict: db-2", `no vm named "db-2"`},
		{"a condition of nothing", "node: n2, marked: false, failed: 1", "node: \"\"", "one of node, stopped, marked"},
		{"no duration", "wait: 1ms", "wait: 1", "expected a text as 90s"},
		{"an answer about nothing", "n2: [not ready]", "n3: [not ready]", `an answer about "n3": no such vm or node`},
		{"silence of no node", "kill: evictrail", "silence: n3", `silence: "n3" is not one of`},
		{"load of no node", "load: {n1: 0.2}", "load: {n3: 0.2}", `"n3" is not one of`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, whole, c.old)
			_, err := parseScenario([]byte(strings.Replace(whole, c.old, c.new, 1)))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// fakeStage notes what is asked of it.
type fakeStage struct {
	did     []string
	refuses bool
	history truth.History
}

func (f *fakeStage) recordCall(parts ...string) { f.did = append(f.did, strings.Join(parts, " ")) }

func (f *fakeStage) Namespace() string { return "demo" }

func (f *fakeStage) Kubectl(_ context.Context, user string, args ...string) (string, error) {
	f.recordCall(append([]string{user}, args...)...)
	if f.refuses {
		return "forbidden", errors.New("exit status 1")
	}
	return "", nil
}

func (f *fakeStage) Create(_ context.Context, vm VM) error {
	f.recordCall("create", vm.Name, "on", vm.Node)
	return nil
}

func (f *fakeStage) Advice(_ context.Context, user string, advice Advice) error {
	f.recordCall(user, "does", advice.Contains, "for", advice.VM)
	return nil
}

func (f *fakeStage) Apply(_ context.Context, user, runbook string) error {
	f.recordCall(user, "applies", runbook)
	return nil
}

func (f *fakeStage) Look(_ context.Context, vm string) error {
	f.recordCall("look at", vm)
	return nil
}

func (f *fakeStage) Evict(_ context.Context, user, vm string) error {
	f.recordCall(user, "evict", vm)
	return nil
}

func (f *fakeStage) Migrate(context.Context, string) error { return nil }

func (f *fakeStage) Load(byNode map[string]float64) {
	f.recordCall("load", Step{Load: byNode}.String())
}

func (f *fakeStage) SetNodeDown(node string, down bool) error {
	f.recordCall("down", fmt.Sprint(node, " ", down))
	return nil
}

func (f *fakeStage) Kill(_ context.Context, program string) error {
	f.recordCall("kill", program)
	return nil
}

func (f *fakeStage) Start(_ context.Context, program string) error {
	f.recordCall("start", program)
	return nil
}

func (f *fakeStage) SetLauncherImage(image string) error {
	f.recordCall("image", image)
	return nil
}

func (f *fakeStage) Check(_ context.Context, want Expect) error {
	f.recordCall("check", fmt.Sprint(want.WhyNot))
	return nil
}

func (f *fakeStage) History() (truth.History, error) { return f.history, nil }

// TestParts wants the steps of a version, and the same scenario but for what is killed and started.
func TestParts(t *testing.T) {
	t.Parallel()
	s, err := parseScenario([]byte(whole))
	require.NoError(t, err)
	s.Steps[0].KubeVirt = []string{"v1.6.0"}
	require.Equal(t, s.Steps, s.For("v1.6.0").Steps)
	require.Equal(t, s.Steps[1:], s.For("v1.8.4").Steps)
	calm := s.WithoutKills()
	require.Len(t, calm.Steps, len(s.Steps)-2)
	for _, step := range calm.Steps {
		require.Empty(t, step.Kill+step.Start)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	s, err := parseScenario([]byte(whole))
	require.NoError(t, err)
	s.Name = "test"
	f := &fakeStage{refuses: true, history: truth.History{
		Stays:      []truth.Stay{{VMI: "demo/db-1", Node: "n1", Until: time.Now()}, {VMI: "demo/db-1", Node: "n2"}},
		Migrations: []truth.Migration{{VMI: "demo/db-1", Phase: "Failed"}},
	}}
	var progress strings.Builder
	require.NoError(t, Run(t.Context(), s, f, &progress))
	require.Equal(t, []string{"alice evict db-1", "load load map[n1:0.2]", "bob cordon n1", "create web-1 on n2", "carol does cancel for db-1", " applies README", "look at db-1", "kill evictrail", "start evictrail", "image virt-launcher:next", "check map[db-1:[stalled] n2:[not ready]]"}, f.did)
	require.Contains(t, progress.String(), "step 11 of 13: wait until db-1 runs on n2 and is not marked and has failed 1 times")

	f.refuses = false
	require.EqualError(t, Run(t.Context(), s, f, &progress), "scenario test: step 3 (kubectl cordon n1 as bob): was accepted, and must be refused")
	f.refuses, f.history = true, truth.History{}
	require.EqualError(t, Run(t.Context(), s, f, &progress),
		"scenario test: step 11 (wait until db-1 runs on n2 and is not marked and has failed 1 times): did not come within 2s")
}
