package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/evictrail/evictrail/test/lab/truth"
)

// Stage is where a scenario runs.
type Stage interface {
	Namespace() string // of the VMs
	// Kubectl runs kubectl as a user, empty for the administrator, and returns what it prints.
	Kubectl(ctx context.Context, user string, args ...string) (string, error)
	// Create creates a VM and returns once it runs where it should.
	Create(ctx context.Context, vm VM) error
	// Advice runs the command that evictrail or a runbook advises for a VM and that contains a text, as a user.
	Advice(ctx context.Context, user string, advice Advice) error
	// Apply applies the manifest in a runbook, as a user.
	Apply(ctx context.Context, user, runbook string) error
	// Look runs every command of the runbooks that only reads, for a VM.
	Look(ctx context.Context, vm string) error
	// Evict asks once to evict the launcher pod of a VM. The error is that of the API server where it does not accept: a 429 that says that the eviction was
	// accepted is none.
	Evict(ctx context.Context, user, vm string) error
	// Migrate makes a VirtualMachineInstanceMigration.
	Migrate(ctx context.Context, vm string) error
	// Load sets what is on nodes beside the VMs.
	Load(byNode map[string]float64)
	Kill(ctx context.Context, program string) error
	Start(ctx context.Context, program string) error
	// SetNodeDown has the kubelet and the virt-handler of a node do nothing any more, or go on.
	SetNodeDown(node string, down bool) error
	// SetLauncherImage has virt-controller start again with another image of virt-launcher.
	SetLauncherImage(image string) error
	// Check compares what evictrail says with what it must say. The error names each difference that is left after a while, as evictrail follows the cluster.
	Check(ctx context.Context, want Expect) error
	// History is what the components have shown so far.
	History() (truth.History, error)
}

// look is how often a condition is looked at.
const look = 250 * time.Millisecond

// Run runs the steps of a scenario, and says in a line each how far it is. It ends with the first step that does not come out as stated.
func Run(ctx context.Context, s Scenario, on Stage, progress io.Writer) error {
	ctx, end := context.WithCancel(ctx) // what goes on in the background ends with the steps
	defer end()
	began := time.Now()
	for i, step := range s.Steps {
		_, _ = fmt.Fprintf(progress, "%8s  step %d of %d: %s\n", time.Since(began).Round(time.Second), i+1, len(s.Steps), step)
		if err := step.run(ctx, s, on); err != nil {
			return fmt.Errorf("scenario %s: step %d (%s): %w", s.Name, i+1, step, err)
		}
	}
	return nil
}

func (s Step) run(ctx context.Context, of Scenario, on Stage) error {
	switch {
	case len(s.Kubectl) > 0 && s.Background:
		go func() { _, _ = on.Kubectl(ctx, s.As, s.Kubectl...) }()
		return nil
	case len(s.Kubectl) > 0:
		out, err := on.Kubectl(ctx, s.As, s.Kubectl...)
		return s.checkRefusal(errorWith(err, out))
	case s.Advice != nil:
		return s.checkRefusal(on.Advice(ctx, s.As, *s.Advice))
	case s.Apply != "":
		return on.Apply(ctx, s.As, s.Apply)
	case s.Look != "":
		return on.Look(ctx, s.Look)
	case s.Create != "":
		vm, _ := of.findVM(s.Create)
		return on.Create(ctx, vm)
	case s.Evict != "":
		return s.checkRefusal(on.Evict(ctx, s.As, s.Evict))
	case s.Migrate != "":
		return on.Migrate(ctx, s.Migrate)
	case len(s.Load) > 0:
		on.Load(s.Load)
		return nil
	case s.Kill != "":
		return on.Kill(ctx, s.Kill)
	case s.Start != "":
		return on.Start(ctx, s.Start)
	case s.Silence != "":
		return on.SetNodeDown(s.Silence, true)
	case s.Revive != "":
		return on.SetNodeDown(s.Revive, false)
	case s.Image != "":
		return on.SetLauncherImage(s.Image)
	case s.Until != nil:
		return s.awaitCondition(ctx, on)
	case s.Check != nil:
		return on.Check(ctx, *s.Check)
	}
	return sleepContext(ctx, time.Duration(s.Wait))
}

// checkRefusal turns the error of a step that must be refused into none, and none into an error.
func (s Step) checkRefusal(err error) error {
	switch {
	case !s.Fails:
		return err
	case err == nil:
		return errors.New("was accepted, and must be refused")
	}
	return nil
}

// awaitCondition waits for a condition.
func (s Step) awaitCondition(ctx context.Context, on Stage) error {
	deadline := time.Now().Add(s.timeoutOrDefault())
	for {
		h, err := on.History()
		if err != nil {
			return err
		}
		if s.Until.matchesHistory(on.Namespace(), h) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("did not come within %s", s.timeoutOrDefault())
		}
		if err := sleepContext(ctx, look); err != nil {
			return err
		}
	}
}

func sleepContext(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errorWith adds what a program printed to its error.
func errorWith(err error, printed string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", err, strings.TrimSpace(printed))
}
