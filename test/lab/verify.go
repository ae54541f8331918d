package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/test/lab/recorder"
	"github.com/evictrail/evictrail/test/lab/scenario"
	"github.com/evictrail/evictrail/test/lab/truth"
)

// settle bounds how long evictrail may take until its rows are those of the components: audit events come in batches, and nodes are derived after VMs.
const settle = 30 * time.Second

// verdict is what came of a scenario.
type verdict struct {
	compared    int           // facts
	differences []string      // between the components and evictrail, and from what the scenario expects
	recorded    truth.History // by evictrail
}

// verifyScenario compares what evictrail recorded with the components and with what the scenario expects.
func verifyScenario(ctx context.Context, s scenario.Scenario, on *stage) (v verdict, err error) {
	err = awaitAgreement(ctx, func() (differences []string, err error) {
		v, err = verifyNow(ctx, s, on)
		return v.differences, err
	})
	return v, err
}

// Check implements scenario.Stage.
func (s *stage) Check(ctx context.Context, want scenario.Expect) error {
	var left []string
	err := awaitAgreement(ctx, func() (differences []string, err error) {
		left, err = verifyExpected(ctx, want, s)
		return left, err
	})
	if err == nil && len(left) > 0 {
		err = errors.New(strings.Join(left, "\n"))
	}
	return err
}

// awaitAgreement looks for differences until there are none, at most for settle.
func awaitAgreement(ctx context.Context, look func() (differences []string, err error)) error {
	for deadline := time.Now().Add(settle); ; {
		differences, err := look()
		if err != nil || len(differences) == 0 || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func verifyNow(ctx context.Context, s scenario.Scenario, on *stage) (v verdict, err error) {
	seen, err := on.History()
	if err != nil {
		return v, err
	}
	recorded, err := truth.Load(ctx, on.recorder.DatabaseURL(), recorder.Cluster)
	if err != nil {
		return v, err
	}
	report := truth.Compare(seen, recorded)
	v = verdict{compared: report.Compared, differences: report.Differences, recorded: recorded}
	differences, err := verifyExpected(ctx, s.Expect, on)
	v.differences = append(v.differences, differences...)
	return v, err
}

// verifyExpected returns in what evictrail differs from what is expected.
func verifyExpected(ctx context.Context, want scenario.Expect, on *stage) (all []string, err error) {
	for _, check := range []func(context.Context, scenario.Expect, *stage) ([]string, error){verifyLoops, verifyAnswers, verifyGaps, verifyAlerts, verifyQuiet} {
		differences, err := check(ctx, want, on)
		if err != nil {
			return all, err
		}
		all = append(all, differences...)
	}
	return all, nil
}

// loop is a loop that evictrail has found.
type loop struct {
	Kind string
	VMI  string
	Node string
	Open bool
}

const loopsQuery = `
SELECT kind, coalesce(namespace || '/' || vmi, '') AS vmi, coalesce(node, '') AS node, closed_at IS NULL AS open
FROM evictrail_v1.loops
WHERE cluster = @cluster
  AND closed_by IS DISTINCT FROM 'refuted'
ORDER BY 1, 2, 3, 4`

func loadLoops(ctx context.Context, databaseURL, cluster string) ([]loop, error) {
	return truth.Rows[loop](ctx, databaseURL, cluster, loopsQuery)
}

// verifyLoops wants each expected loop, and no other.
func verifyLoops(ctx context.Context, want scenario.Expect, on *stage) ([]string, error) {
	found, err := loadLoops(ctx, on.recorder.DatabaseURL(), recorder.Cluster)
	return compareLoops(want.Loops, found), err
}

// compareLoops says which loops are missing, and which are too many.
func compareLoops(want []scenario.Loop, found []loop) (differences []string) {
	differs := func(kind, vm, node string, open bool, how string) {
		differences = append(differences, fmt.Sprintf("loop %s of %q on %q, open %t: %s", kind, vm, node, open, how))
	}
	for _, l := range want {
		i := slices.IndexFunc(found, func(f loop) bool {
			return f.Kind == l.Kind && (l.VM == "" || f.VMI == namespace+"/"+l.VM) && (l.Node == "" || f.Node == l.Node) && f.Open == l.Open
		})
		if i < 0 {
			differs(l.Kind, l.VM, l.Node, l.Open, "not found")
			continue
		}
		found = slices.Delete(found, i, i+1)
	}
	for _, f := range found {
		differs(f.Kind, f.VMI, f.Node, f.Open, "found, and not expected")
	}
	return differences
}

// verifyAnswers asks why each VM moved, and why it, or a node's VMs, do not.
func verifyAnswers(ctx context.Context, want scenario.Expect, on *stage) (differences []string, err error) {
	for _, check := range []struct {
		question string
		texts    map[string][]string
		must     bool
	}{{"why", want.Why, true}, {"why", want.Not, false}, {"why-not", want.WhyNot, true}} {
		for name, all := range check.texts {
			answer, err := on.askRecorder(ctx, check.question, name)
			if err != nil {
				return nil, err
			}
			flat := strings.Join(strings.Fields(answer), " ")
			for _, text := range all {
				if strings.Contains(flat, text) != check.must {
					differences = append(differences, fmt.Sprintf("%s %s: contains %q: %t, expected %t: %s", check.question, name, text, !check.must, check.must, flat))
				}
			}
		}
	}
	return differences, nil
}

// askRecorder returns evictrail's answer to a question about a VM or a node.
func (s *stage) askRecorder(ctx context.Context, question, name string) (string, error) {
	about := []string{question, namespace + "/" + name}
	if slices.Contains(s.nodes, name) {
		about = []string{question, "node", name}
	}
	answer, err := s.recorder.Ask(ctx, about...)
	if err != nil {
		err = fmt.Errorf("evictrail %s: %w: %s", strings.Join(about, " "), err, answer)
	}
	return answer, err
}

const gapsQuery = `
SELECT source || ' ' || cause AS gap
FROM evictrail_v1.gaps
WHERE cluster = @cluster`

// verifyGaps wants gaps where the scenario takes evictrail's sight, and none elsewhere.
func verifyGaps(ctx context.Context, want scenario.Expect, on *stage) ([]string, error) {
	gaps, err := truth.Rows[struct{ Gap string }](ctx, on.recorder.DatabaseURL(), recorder.Cluster, gapsQuery)
	if err != nil || (len(gaps) > 0) == want.Gaps {
		return nil, err
	}
	return []string{fmt.Sprintf("gaps: %v, expected %t", gaps, want.Gaps)}, nil
}

// verifyAlerts wants the expression of each expected alert to be true in Prometheus. Others may be: what is wrong in a scenario may be so in many ways.
func verifyAlerts(ctx context.Context, want scenario.Expect, on *stage) (differences []string, err error) {
	if len(want.Alerts) == 0 {
		return nil, nil
	}
	active, err := on.alerts.Alerts(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range active {
		names = append(names, a.Name())
	}
	for _, name := range want.Alerts {
		if !slices.Contains(names, name) {
			differences = append(differences, fmt.Sprintf("alert %s: not active, only %q are", name, names))
		}
	}
	return differences, nil
}

// verifyQuiet wants that no alert was ever pending or firing.
func verifyQuiet(ctx context.Context, want scenario.Expect, on *stage) (differences []string, err error) {
	if !want.Quiet {
		return nil, nil
	}
	past, err := on.alerts.PastAlerts(ctx)
	for _, a := range past {
		differences = append(differences, fmt.Sprintf("alert %s: was %s, %s by %s", a.Name(), a.State(), a.Lasted, a.Labels))
	}
	return differences, err
}
