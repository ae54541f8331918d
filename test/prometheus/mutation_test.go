package prometheus_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/alerts"
)

var allMutants = flag.Bool("mutants.all", false, "try every mutant of the alerts")

// mutant is one rule spoiled, with the rules that it builds on.
type mutant struct {
	name  string
	of    string // the name of the rule
	group string
	rules []alerts.Group
}

// TestCasesNoticeEveryMutant spoils one rule at a time and wants a case to fail: the expression never holds, the time that it
// must hold is gone or doubled, the alert does not stay, a number is another, a comparison lets the bound in or keeps it out.
// Of the rest of the rules a mutant has those that are recorded; its cases are those of its group that name it.
//
// Which mutants there are depends on the rules and cases alone, and all of them take minutes of two processors: a run tries one in four,
// others each time, unless -mutants.all wants all of them, as who changes a rule or a case does.
func TestCasesNoticeEveryMutant(t *testing.T) {
	t.Parallel()
	promtool, all, ctx := buildPromtool(t), generateMutants(t), t.Context()
	if !*allMutants {
		seed := uint64(time.Now().UnixNano())
		t.Logf("one mutant in four, seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		all = slices.DeleteFunc(all, func(mutant) bool { return r.IntN(4) > 0 })
	}
	every, newer := listCaseFiles(t)
	files := slices.Concat(every, newer)
	var killed atomic.Int64
	survivors := make([]string, len(all))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, m := range all {
		dir := t.TempDir()
		group.Go(func() error {
			survived, err := m.survivesCases(ctx, promtool, dir, files)
			if survived {
				survivors[i] = m.name
			} else {
				killed.Add(1)
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	t.Logf("%d mutants, %d killed", len(all), killed.Load())
	survivors = slices.DeleteFunc(survivors, func(name string) bool { return name == "" })
	require.Empty(t, survivors, "no case notices:\n%s", strings.Join(survivors, "\n"))
}

// generateMutants returns all there are, in the order of the rules.
func generateMutants(t *testing.T) []mutant {
	t.Helper()
	var all []mutant
	for g, group := range alerts.Groups(alerts.DefaultOptions()) {
		for r, rule := range group.Rules {
			add := func(what string, spoil func(*alerts.Rule)) {
				groups := alerts.Groups(alerts.DefaultOptions())
				spoil(&groups[g].Rules[r])
				kept := groups[:1]
				if g > 0 {
					kept = append(kept, alerts.Group{Name: group.Name, Rules: groups[g].Rules[r : r+1]})
				}
				m := mutant{of: rule.Record + rule.Alert, group: strings.TrimPrefix(group.Name, "evictrail."), rules: kept}
				m.name = fmt.Sprintf("%s %s: %s", m.of, rule.Labels["severity"], what)
				all = append(all, m)
			}
			add("never", func(r *alerts.Rule) { r.Expr = "(" + r.Expr + ") and on () (vector(1) == 0)" })
			if rule.For != "" {
				add("for dropped", func(r *alerts.Rule) { r.For = "" })
				add("for doubled", func(r *alerts.Rule) { r.For = doubleDuration(t, r.For) })
			}
			if rule.KeepFiringFor != "" {
				add("keep_firing_for dropped", func(r *alerts.Rule) { r.KeepFiringFor = "" })
			}
			for _, expr := range mutateExpression(t, rule.Expr) {
				add(expr.what, func(r *alerts.Rule) { r.Expr = expr.text })
			}
		}
	}
	return all
}

// doubleDuration returns a duration of whole minutes or hours twice.
func doubleDuration(t *testing.T, duration string) string {
	t.Helper()
	var n int
	var unit string
	_, err := fmt.Sscanf(duration, "%d%s", &n, &unit)
	require.NoError(t, err)
	return fmt.Sprintf("%d%s", 2*n, unit)
}

// expression is one that was changed in one place.
type expression struct{ what, text string }

// mutateExpression returns an expression with each of its numbers changed, upwards and downwards, and with each of its comparisons
// with a number made strict or not strict.
func mutateExpression(t *testing.T, text string) []expression {
	t.Helper()
	var out []expression
	tree := func() parser.Expr {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		require.NoError(t, err)
		return expr
	}
	numbers, comparisons := findMutationSites(tree())
	for i, n := range numbers {
		for _, value := range varyNumber(n.Val) {
			expr := tree()
			again, _ := findMutationSites(expr)
			again[i].Val = value
			out = append(out, expression{fmt.Sprintf("%v, number %d, is %v", n.Val, i+1, value), expr.String()})
		}
	}
	for i, c := range comparisons {
		expr := tree()
		_, again := findMutationSites(expr)
		again[i].Op = otherBound[c.Op]
		out = append(out, expression{fmt.Sprintf("%s is %s", c, otherBound[c.Op]), expr.String()})
	}
	return out
}

var otherBound = map[parser.ItemType]parser.ItemType{
	parser.GTR: parser.GTE, parser.GTE: parser.GTR, parser.LSS: parser.LTE, parser.LTE: parser.LSS,
}

// findMutationSites returns the numbers of an expression, and its comparisons with whole numbers, which a series can hit. Times, shares
// and rates hardly ever do.
func findMutationSites(expr parser.Expr) (numbers []*parser.NumberLiteral, comparisons []*parser.BinaryExpr) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.NumberLiteral:
			if !math.IsInf(n.Val, 0) {
				numbers = append(numbers, n)
			}
		case *parser.BinaryExpr:
			number, is := n.RHS.(*parser.NumberLiteral)
			if _, has := otherBound[n.Op]; has && is && number.Val == float64(int(number.Val)) && number.Val < 10 {
				comparisons = append(comparisons, n)
			}
		}
		return nil
	})
	return numbers, comparisons
}

// varyNumber returns the next whole numbers of a small one, and half as much more or less of a large or broken one.
func varyNumber(n float64) []float64 {
	if n == float64(int(n)) && n < 10 {
		return []float64{n - 1, n + 1}
	}
	return []float64{n / 1.5, n * 1.5}
}

// survivesCases runs the mutant's cases, out of the files, in an empty directory.
func (m mutant) survivesCases(ctx context.Context, promtool, dir string, files []string) (bool, error) {
	text, err := alerts.RulesFile(m.rules)
	if err != nil {
		return false, err
	}
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(text), 0o600); err != nil {
		return false, err
	}
	own, err := m.writeCases(dir, files)
	if err != nil {
		return false, err
	}
	out, err := exec.CommandContext(ctx, promtool, append([]string{"test", "rules"}, own...)...).CombinedOutput()
	if err == nil {
		return true, nil
	}
	// A case that failed says what was expected and what came. Anything else is a mutant that is no rule.
	if text := string(out); !strings.Contains(text, "exp") || !strings.Contains(text, "got:") {
		return false, fmt.Errorf("%s: %s", m.name, text)
	}
	return false, nil
}

// writeCases writes the cases that name the mutant's rule into the directory, for the rules there, and returns the files.
func (m mutant) writeCases(dir string, all []string) ([]string, error) {
	var files []string
	for _, file := range all {
		name := filepath.Base(file)
		if noun, _, _ := strings.Cut(strings.TrimSuffix(name, ".yaml"), "-"); noun != m.group {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var content map[string]any
		if err := yaml.Unmarshal(text, &content); err != nil {
			return nil, err
		}
		content["rule_files"] = []string{"rules.yaml"}
		content["tests"] = slices.DeleteFunc(content["tests"].([]any), func(test any) bool {
			text, err := yaml.Marshal(test)
			return err == nil && !strings.Contains(string(text), m.of)
		})
		if text, err = yaml.Marshal(content); err != nil {
			return nil, err
		}
		files = append(files, filepath.Join(dir, "cases-"+name))
		if err := os.WriteFile(files[len(files)-1], text, 0o600); err != nil {
			return nil, err
		}
	}
	return files, nil
}
