package prometheus_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/metrics"
)

// scraped are the labels that any series may have from its scrape.
var scraped = []string{"cluster", "instance", "job", "pod"}

// shapes knows the series that expressions may select: their type and their labels.
type shapes map[string]metrics.Metric

// knownShapes are those of evictrail, those of the descheduler, whose pods' namespace may be in exported_namespace, and up.
func knownShapes() shapes {
	known := shapes{
		"up": {Type: metrics.Gauge},
		metrics.DeschedulerBlocksTotal: {Type: metrics.Counter, Labels: []string{
			metrics.LabelReason, metrics.LabelNode, metrics.LabelNamespace, "exported_namespace"}},
	}
	for _, m := range metrics.Catalogue() {
		known[m.Name] = m
		if m.Type == metrics.Histogram {
			known[m.Name+"_count"] = metrics.Metric{Type: metrics.Counter, Labels: m.Labels}
			known[m.Name+"_bucket"] = metrics.Metric{Type: metrics.Counter, Labels: append(slices.Clone(m.Labels), "le")}
		}
	}
	return known
}

// TestExpressionsFitTheMetrics follows labels through every expression: what is matched, kept and joined by must be there, and
// what a text says of the series must be left at the end.
func TestExpressionsFitTheMetrics(t *testing.T) {
	t.Parallel()
	known := knownShapes()
	for _, group := range alerts.Groups(alerts.DefaultOptions()) {
		for _, rule := range group.Rules {
			name := rule.Record + rule.Alert
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
			require.NoError(t, err, name)
			left, err := known.exprLabels(expr)
			require.NoError(t, err, name)
			if name != alerts.LoopsInClusters {
				require.Contains(t, left, "cluster", "%s: clusters must be distinguished", name)
			}
			if rule.Record != "" {
				known[rule.Record] = metrics.Metric{Type: metrics.Gauge, Labels: left}
				continue
			}
			for _, text := range rule.Annotations {
				for _, use := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
					require.Contains(t, left, use[1], "%s: %s", name, text)
				}
			}
			for label := range rule.Labels {
				require.NotContains(t, left, label, "%s: would be overwritten", name)
			}
		}
	}
}

func TestExpressionsThatDoNotFitAreFound(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, expr, says string }{
		{"an unknown metric", `evictrail_nodes`, "evictrail_nodes is no metric"},
		{"an unknown label", `evictrail_node_vmis{vmi="a"}`, "evictrail_node_vmis has no label vmi"},
		{"a label that is not kept", `max by (vmi) (evictrail_node_vmis)`, "vmi is not there"},
		{"a join by what one side does not have", `max by (node) (evictrail_node_vmis) and on (node) max(up)`, "joined by node"},
		{"sides that never match", `max by (node) (evictrail_node_vmis) / sum(evictrail_leader)`, "have the labels"},
		{"a rate of a gauge", `rate(evictrail_node_vmis[5m])`, "rate of a gauge"},
		{"a slope of a counter", `deriv(evictrail_loops_total[5m])`, "deriv of a counter"},
		{"an aggregation that forgets what it drops", `sum without (node) (evictrail_node_vmis)`, "without"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(tt.expr)
			require.NoError(t, err)
			_, err = knownShapes().exprLabels(expr)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// exprLabels returns the labels that the series of an expression may have, or says what does not fit.
func (s shapes) exprLabels(expr parser.Expr) ([]string, error) {
	switch e := expr.(type) {
	case *parser.NumberLiteral, *parser.StringLiteral:
		return nil, nil
	case *parser.ParenExpr:
		return s.exprLabels(e.Expr)
	case *parser.UnaryExpr:
		return s.exprLabels(e.Expr)
	case *parser.MatrixSelector:
		return s.exprLabels(e.VectorSelector)
	case *parser.VectorSelector:
		return s.selectorLabels(e)
	case *parser.AggregateExpr:
		return s.aggregateLabels(e)
	case *parser.BinaryExpr:
		return s.binaryLabels(e)
	case *parser.Call:
		return s.callLabels(e)
	}
	return nil, fmt.Errorf("%s: a kind of expression that this test does not know", expr)
}

func (s shapes) selectorLabels(e *parser.VectorSelector) ([]string, error) {
	shape, known := s[e.Name]
	if !known {
		return nil, fmt.Errorf("%s is no metric", e.Name)
	}
	has := shape.Labels
	if !strings.Contains(e.Name, ":") { // what is recorded has the labels of its expression
		has = append(slices.Clone(scraped), has...)
	}
	for _, m := range e.LabelMatchers {
		if m.Name != "__name__" && !slices.Contains(has, m.Name) {
			return nil, fmt.Errorf("%s has no label %s", e.Name, m.Name)
		}
	}
	return has, nil
}

func (s shapes) aggregateLabels(e *parser.AggregateExpr) ([]string, error) {
	has, err := s.exprLabels(e.Expr)
	if err != nil {
		return nil, err
	}
	if e.Without {
		return nil, fmt.Errorf("%s: by says what is kept, without does not", e)
	}
	for _, label := range e.Grouping {
		if !slices.Contains(has, label) {
			return nil, fmt.Errorf("%s: %s is not there", e, label)
		}
	}
	return e.Grouping, nil
}

func (s shapes) binaryLabels(e *parser.BinaryExpr) ([]string, error) {
	left, err := s.exprLabels(e.LHS)
	if err != nil {
		return nil, err
	}
	right, err := s.exprLabels(e.RHS)
	if err != nil {
		return nil, err
	}
	switch {
	case e.VectorMatching == nil && e.LHS.Type() == parser.ValueTypeScalar:
		return right, nil
	case e.VectorMatching == nil:
		return left, nil
	case e.VectorMatching.On:
		for _, label := range e.VectorMatching.MatchingLabels {
			if !slices.Contains(left, label) || !slices.Contains(right, label) {
				return nil, fmt.Errorf("%s: joined by %s, which one side has not", e, label)
			}
		}
		if e.VectorMatching.Card == parser.CardOneToOne {
			return e.VectorMatching.MatchingLabels, nil
		}
	case !sameLabels(left, right):
		return nil, fmt.Errorf("%s: the sides have the labels %v and %v", e, left, right)
	}
	return left, nil
}

func sameLabels(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

func (s shapes) callLabels(e *parser.Call) ([]string, error) {
	var has []string
	for _, arg := range e.Args {
		of, err := s.exprLabels(arg)
		if err != nil {
			return nil, err
		}
		has = append(has, of...)
		matrix, is := arg.(*parser.MatrixSelector)
		if !is {
			continue
		}
		name := matrix.VectorSelector.(*parser.VectorSelector).Name
		switch gauge := s[name].Type == metrics.Gauge; {
		case gauge && (e.Func.Name == "rate" || e.Func.Name == "increase"):
			return nil, fmt.Errorf("%s: %s of a gauge", e, e.Func.Name)
		case !gauge && e.Func.Name != "rate" && e.Func.Name != "increase":
			return nil, fmt.Errorf("%s: %s of a counter", e, e.Func.Name)
		}
	}
	if e.Func.Name == "label_replace" {
		has = append(has, e.Args[1].(*parser.StringLiteral).Val)
	}
	return has, nil
}

// TestInhibitionsKeepBackWhatIsExplained asks Alertmanager's question of pairs of alerts, with matchers of the same language.
func TestInhibitionsKeepBackWhatIsExplained(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name            string
		firing, another string // alertname and severity, then labels
		keepsBack       bool
	}{
		{"the page keeps back the warnings of nodes", "EvictrailDualRetryLoop critical cluster=a", "EvictrailDualRetryLoop warning cluster=a node=n1", true},
		{"not those of another cluster", "EvictrailDualRetryLoop critical cluster=a", "EvictrailDualRetryLoop warning cluster=b node=n1", false},
		{"a loop explains the VM that is stuck", "EvictrailDualRetryLoop warning node=n1", "EvictrailEvacuationStuck warning node=n1 namespace=shop vmi=db-1", true},
		{"and the one that was lost", "EvictrailDualRetryLoop warning node=n1", "EvictrailEvacuationOrphaned warning node=n1 namespace=shop vmi=db-1", true},
		{"and the node's slots", "EvictrailDualRetryLoop warning node=n1", "EvictrailDeschedulerSlotsStuck warning node=n1 scope=node", true},
		{"not the slots in total", "EvictrailDualRetryLoop warning node=n1", "EvictrailDeschedulerSlotsStuck warning scope=total", false},
		{"nor does the page", "EvictrailDualRetryLoop critical", "EvictrailDeschedulerSlotsStuck warning scope=total", false},
		{"nor another node's", "EvictrailDualRetryLoop warning node=n1", "EvictrailEvacuationStuck warning node=n2 namespace=shop vmi=db-1", false},
		{"a VM that cannot migrate explains its drain", "EvictrailNonMigratableBlocksDrain warning node=n1 namespace=shop vmi=db-1", "EvictrailDrainStalled warning node=n1", true},
		{"not another drain", "EvictrailNonMigratableBlocksDrain warning node=n1 namespace=shop vmi=db-1", "EvictrailDrainStalled warning node=n2", false},
		{"nor the other way round", "EvictrailDrainStalled warning node=n1", "EvictrailNonMigratableBlocksDrain warning node=n1", false},
		{"a drain that stands still explains who is late", "EvictrailDrainStalled warning cluster=a node=n1", "EvictrailEvacuationObjectiveBurn warning cluster=a requester=node_maintenance", true},
		{"and so does a loop", "EvictrailDualRetryLoop warning node=n1", "EvictrailEvacuationObjectiveBurn info requester=kured", true},
		{"not in another cluster", "EvictrailDrainStalled warning cluster=a node=n1", "EvictrailEvacuationObjectiveBurn warning cluster=b requester=kured", false},
		{"a budget that burns leaves the ticket out", "EvictrailEvacuationObjectiveBurn warning requester=kured", "EvictrailEvacuationObjectiveBurn info requester=kured", true},
		{"nobody to hear", "EvictrailAbsent critical", "EvictrailStoreDown warning", true},
		{"does not silence itself", "EvictrailAbsent critical", "EvictrailAbsent critical", false},
		{"nor others' alerts", "EvictrailAbsent critical", "KubeVirtDown warning", false},
		{"no database explains late facts", "EvictrailStoreDown warning", "EvictrailFreshnessBudgetBurn warning", true},
		{"and a spool that grows", "EvictrailStoreDown warning", "EvictrailSpoolGrowing warning instance=i pod=p", true},
		{"but not the last call", "EvictrailStoreDown warning", "EvictrailSpoolNearlyFull critical instance=i pod=p", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			source, target := labelsOf(tt.firing), labelsOf(tt.another)
			got := slices.ContainsFunc(alerts.Inhibitions(), func(rule alerts.InhibitRule) bool {
				same := !slices.ContainsFunc(rule.Equal, func(label string) bool { return source[label] != target[label] })
				return same && matchesLabels(t, rule.SourceMatchers, source) && matchesLabels(t, rule.TargetMatchers, target)
			})
			require.Equal(t, tt.keepsBack, got)
		})
	}
}

// labelsOf reads an alert as the cases above write it.
func labelsOf(text string) map[string]string {
	words := strings.Fields(text)
	out := map[string]string{"alertname": words[0], "severity": words[1]}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		out[name] = value
	}
	return out
}

func matchesLabels(t *testing.T, matchers []string, of map[string]string) bool {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseMetricSelector("{" + strings.Join(matchers, ", ") + "}")
	require.NoError(t, err)
	return !slices.ContainsFunc(parsed, func(m *labels.Matcher) bool { return !m.Matches(of[m.Name]) })
}
