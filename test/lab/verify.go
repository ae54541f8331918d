package main

import (
	"context"
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
	compared    int      // facts
	differences []string // between the components and evictrail, and from what the scenario expects
}

// verify compares what evictrail recorded with the components and with what the scenario expects. History returns what the components show now.
func verify(ctx context.Context, s scenario.Scenario, rec *recorder.Recorder, namespace string, history func() (truth.History, error)) (verdict, error) {
	for deadline := time.Now().Add(settle); ; {
		v, err := verifyNow(ctx, s, rec, namespace, history)
		if err != nil || len(v.differences) == 0 || time.Now().After(deadline) {
			return v, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}

func verifyNow(ctx context.Context, s scenario.Scenario, rec *recorder.Recorder, namespace string, history func() (truth.History, error)) (v verdict, err error) {
	seen, err := history()
	if err != nil {
		return v, err
	}
	recorded, err := truth.Load(ctx, rec.DatabaseURL(), recorder.Cluster)
	if err != nil {
		return v, err
	}
	report := truth.Compare(seen, recorded)
	v = verdict{compared: report.Compared, differences: report.Differences}
	for _, check := range []func(context.Context, scenario.Expect, *recorder.Recorder, string) ([]string, error){verifyLoops, verifyAnswers, verifyGaps} {
		differences, err := check(ctx, s.Expect, rec, namespace)
		if err != nil {
			return v, err
		}
		v.differences = append(v.differences, differences...)
	}
	return v, nil
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

// verifyLoops wants each expected loop, and no other.
func verifyLoops(ctx context.Context, want scenario.Expect, rec *recorder.Recorder, namespace string) (differences []string, err error) {
	found, err := truth.Rows[loop](ctx, rec.DatabaseURL(), recorder.Cluster, loopsQuery)
	if err != nil {
		return nil, err
	}
	for _, l := range want.Loops {
		i := slices.IndexFunc(found, func(f loop) bool {
			return f.Kind == l.Kind && f.VMI == namespace+"/"+l.VM && (l.Node == "" || f.Node == l.Node) && f.Open == l.Open
		})
		if i < 0 {
			differences = append(differences, fmt.Sprintf("loop %s of %s on %q, open %t: not found", l.Kind, l.VM, l.Node, l.Open))
			continue
		}
		found = slices.Delete(found, i, i+1)
	}
	for _, f := range found {
		differences = append(differences, fmt.Sprintf("loop %s of %s on %q, open %t: found, and not expected", f.Kind, f.VMI, f.Node, f.Open))
	}
	return differences, nil
}

// verifyAnswers asks why each VM moved.
func verifyAnswers(ctx context.Context, want scenario.Expect, rec *recorder.Recorder, namespace string) (differences []string, err error) {
	check := func(texts map[string][]string, must bool) error {
		for vm, all := range texts {
			answer, err := rec.Ask(ctx, "why", namespace+"/"+vm)
			if err != nil {
				return fmt.Errorf("evictrail why %s/%s: %w: %s", namespace, vm, err, answer)
			}
			flat := strings.Join(strings.Fields(answer), " ")
			for _, text := range all {
				if strings.Contains(flat, text) != must {
					differences = append(differences, fmt.Sprintf("why %s: contains %q: %t, expected %t: %s", vm, text, !must, must, flat))
				}
			}
		}
		return nil
	}
	if err := check(want.Why, true); err != nil {
		return nil, err
	}
	return differences, check(want.Not, false)
}

const gapsQuery = `
SELECT source || ' ' || cause AS gap
FROM evictrail_v1.gaps
WHERE cluster = @cluster`

// verifyGaps wants gaps where the scenario takes evictrail's sight, and none elsewhere.
func verifyGaps(ctx context.Context, want scenario.Expect, rec *recorder.Recorder, _ string) ([]string, error) {
	gaps, err := truth.Rows[struct{ Gap string }](ctx, rec.DatabaseURL(), recorder.Cluster, gapsQuery)
	if err != nil || (len(gaps) > 0) == want.Gaps {
		return nil, err
	}
	return []string{fmt.Sprintf("gaps: %v, expected %t", gaps, want.Gaps)}, nil
}
