package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Step is one thing that happens. It has exactly one verb.
type Step struct {
	Kubectl []string           `json:"kubectl"` // arguments of kubectl, in the namespace of the VMs
	Create  string             `json:"create"`  // a VM that is there later: it is created, and waited for until it runs
	Evict   string             `json:"evict"`   // a VM: its launcher pod is evicted once, as an operator would by the API
	Advice  *Advice            `json:"advice"`  // a command that evictrail or a runbook advises is run as it is printed
	Look    string             `json:"look"`    // a VM: every command of every runbook that only reads is run for it, and must succeed
	Apply   string             `json:"apply"`   // a runbook: the manifest in it is applied
	Migrate string             `json:"migrate"` // a VM: a migration of it is made, as virtctl migrate does
	Load    map[string]float64 `json:"load"`    // by node: what is on it beside the VMs, 1 is all of it
	Kill    string             `json:"kill"`    // a program: it ends as by a crash
	Start   string             `json:"start"`   // a program that was killed
	Silence string             `json:"silence"` // a node: its kubelet and its virt-handler do nothing any more, as when it lost its power or its network
	Revive  string             `json:"revive"`  // a node that was silenced
	Image   string             `json:"image"`   // of virt-launcher: virt-controller starts again with it, as in an upgrade of KubeVirt; what runs is outdated then
	Until   *Condition         `json:"until"`   // what must come, within Within
	Check   *Expect            `json:"check"`   // what evictrail must say by now, of what is expected in the end as well; facts are compared in the end alone
	Wait    Duration           `json:"wait"`

	KubeVirt   []string `json:"kubeVirt"`   // versions on which it is done; empty: all
	As         string   `json:"as"`         // of kubectl, evict, advice and apply: the user; empty: the administrator
	Background bool     `json:"background"` // of kubectl: it goes on beside the next steps, and is ended with the scenario
	Fails      bool     `json:"fails"`      // of kubectl and evict: it must be refused
	Within     Duration `json:"within"`     // of until; zero: defaultWithin
}

// Advice names a command in an answer, or in a runbook, where NAMESPACE, VM and NODE stand for those of the VM.
type Advice struct {
	VM       string `json:"vm"`
	Contains string `json:"contains"` // a part of the command
	Runbook  string `json:"runbook"`  // name of the runbook; empty: the answer to Question
	Question string `json:"question"` // why or why-not; empty: why-not
}

// defaultWithin bounds how long a step waits for a condition.
const defaultWithin = time.Minute

// Programs may be killed and started.
var Programs = []string{"evictrail", "evictrail-2", "kube-apiserver", "virt-controller", "virt-api", "descheduler", "postgres"}

// listVerbs returns the verbs that the step has.
func (s Step) listVerbs() (verbs []string) {
	for verb, is := range map[string]bool{
		"kubectl": len(s.Kubectl) > 0, "create": s.Create != "", "advice": s.Advice != nil, "apply": s.Apply != "", "look": s.Look != "", "evict": s.Evict != "", "migrate": s.Migrate != "", "load": len(s.Load) > 0,
		"kill": s.Kill != "", "start": s.Start != "", "silence": s.Silence != "", "revive": s.Revive != "", "image": s.Image != "", "until": s.Until != nil, "check": s.Check != nil, "wait": s.Wait > 0,
	} {
		if is {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// needsProgram reports whether the step runs a program: kubectl or virtctl.
func (s Step) needsProgram(program string) bool {
	if program == "virtctl" {
		return s.Advice != nil && strings.Contains(s.Advice.Contains, program)
	}
	return program == "kubectl" && (len(s.Kubectl) > 0 || s.Advice != nil || s.Look != "" || s.Apply != "")
}

// checkAgainst says what is wrong with a step of a scenario.
func (s Step) checkAgainst(of Scenario) error {
	verbs := s.listVerbs()
	if len(verbs) != 1 {
		return fmt.Errorf("has %d verbs, expected one of kubectl, create, advice, apply, look, evict, migrate, load, kill, start, silence, revive, image, until, check, wait", len(verbs))
	}
	for _, vm := range []string{s.Evict, s.Migrate, s.Look} {
		if vm != "" && !of.hasVM(vm) {
			return fmt.Errorf("%s: no vm named %q", verbs[0], vm)
		}
	}
	if s.Advice != nil && (!of.hasVM(s.Advice.VM) || s.Advice.Contains == "") {
		return fmt.Errorf("advice: expected a vm of the scenario and a part of the command, got %+v", *s.Advice)
	}
	if vm, has := of.findVM(s.Create); s.Create != "" && (!has || !vm.Later) {
		return fmt.Errorf("create: no vm named %q that is there later", s.Create)
	}
	for _, program := range []string{s.Kill, s.Start} {
		if program != "" && !slices.Contains(Programs, program) {
			return fmt.Errorf("%s: %q is not one of %q", verbs[0], program, Programs)
		}
	}
	for _, node := range slices.Concat(slices.Sorted(maps.Keys(s.Load)), nonEmpty(s.Silence, s.Revive)) {
		if !slices.Contains(of.Nodes, node) {
			return fmt.Errorf("%s: %q is not one of %q", verbs[0], node, of.Nodes)
		}
	}
	if s.Until != nil {
		return s.Until.checkAgainst(of)
	}
	if s.Check != nil {
		return s.Check.checkAgainst(of)
	}
	if s.Within > 0 {
		return errors.New("within goes with until alone")
	}
	return nil
}

// nonEmpty returns those of some texts that say something.
func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// String is the step in a line, for who watches.
func (s Step) String() string {
	by := ""
	if s.As != "" {
		by = " as " + s.As
	}
	switch {
	case len(s.Kubectl) > 0:
		return fmt.Sprintf("kubectl %s%s", strings.Join(s.Kubectl, " "), by)
	case s.Advice != nil:
		return fmt.Sprintf("do what %s advises for %s (%s)%s", cmp.Or(s.Advice.Runbook, "evictrail"), s.Advice.VM, s.Advice.Contains, by)
	case s.Apply != "":
		return "apply the manifest in the runbook " + s.Apply + by
	case s.Look != "":
		return "look at " + s.Look + " with every command of the runbooks that only reads"
	case s.Create != "":
		return "create " + s.Create
	case s.Evict != "":
		return "evict " + s.Evict + by
	case s.Migrate != "":
		return "migrate " + s.Migrate
	case len(s.Load) > 0:
		return fmt.Sprintf("load %v", s.Load)
	case s.Kill != "":
		return "kill " + s.Kill
	case s.Start != "":
		return "start " + s.Start
	case s.Silence != "":
		return "silence " + s.Silence
	case s.Revive != "":
		return "revive " + s.Revive
	case s.Image != "":
		return "start virt-controller with the launcher image " + s.Image
	case s.Until != nil:
		return "wait until " + s.Until.String()
	case s.Check != nil:
		return "check what evictrail says"
	}
	return "wait " + time.Duration(s.Wait).String()
}
