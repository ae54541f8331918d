package trail_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// closedTypes says which set has the values of each type of this package that is a string. Those of facts' reasons are one set per kind.
var closedTypes = map[string]string{
	"RequesterClass": "requester class", "RequestAnswer": "answer to an eviction request", "Effect": "effect of an eviction request",
	"Confidence": "confidence", "Trigger": "trigger", "Outcome": "outcome", "WaitReason": "reason for which a migration waits",
	"FailureClass": "failure class", "FailureReason": "failure reason", "Need": "need of an attempt", "Benefit": "benefit of a move", "Convergence": "end of a transfer",
	"Likelihood": "likelihood of a consequence", "Ending": "end of a guest", "Layer": "layer that holds a VM back", "Verdict": "verdict of a decision",
	"LoopKind": "loop kind", "LoopPath": "path of a dual retry loop", "LoopEnd": "end of a loop", "DrainOutcome": "outcome of a drain", "WaveOutcome": "outcome of an upgrade wave", "NoticeKind": "kind of a notice", "Delivery": "delivery of a notice", "DrainEffect": "effect of a drain on a VM",
	"Blocker": "blocker of a drain", "OutageCause": "cause of a node outage", "OutageEnd": "end of a node outage", "ObstacleKind": "obstacle to a move",
	"LoadMoment": "moment of a load sample", "LoadSample": "sample around a moment", "LoadLack": "reason for which a measurement is not known",
	"LoadOrigin": "origin of load", "RecorderState": "state of the recorder", "StandbyCause": "cause for which a standby does not answer", "Clock": "clock of a fact", "FoundKind": "kind of a search result",
	"VMState": "state of a VM that runs", "Outlook": "outlook of an evacuation",
	"Kind": "kind of a fact", "RequestSource": "source of an eviction request",
}

// closedPrefixes says the same of constants that have no type of their own, by how their names begin.
var closedPrefixes = map[string]string{
	"Phase": "phase of a migration", "MarkedBy": "beginning of an evacuation", "Decided": "reason of a decision", "OriginDerived": "origin of a decision",
	"OriginObserved": "origin of a decision", "Arrived": "arrival and departure of a guest", "LeftEnd": "arrival and departure of a guest",
	"count": "count of a loop", "Annotated": "life of the annotation eviction-in-progress", "sourceBoth": "source of an eviction request",
}

// unlabelled are types whose values people read as they are: names of Kubernetes, calls of its API, and prefixes of keys.
var unlabelled = []string{"ObjectKind", "SubjectKind", "NameKind", "NodeOrder", "Action"}

// TestLabelsAreComplete holds that every value of every closed set has a label, and that no label is for a value that does not exist: the constants in the source of
// this package are the values.
func TestLabelsAreComplete(t *testing.T) {
	t.Parallel()
	want, reasons := map[string][]string{}, map[string]bool{}
	for _, c := range readConstants(t) {
		set, ok := closedTypes[c.of]
		if c.of == "" {
			for prefix, name := range closedPrefixes {
				if strings.HasPrefix(c.name, prefix) {
					set, ok = name, true
				}
			}
		}
		switch {
		case c.of == "Reason":
			reasons[c.value] = true
		case ok && c.name != "AnyRequester":
			want[set] = append(want[set], c.value)
		default:
			require.True(t, ok || c.of == "" || slices.Contains(unlabelled, c.of), "%s of type %s has no label: add its set to labels.go and its type to this test", c.name, c.of)
		}
	}
	for _, a := range trail.Answers() {
		reasons[string(a)] = true
	}
	want["source of facts"] = knownSources()
	labelledReasons := map[string]bool{}
	for _, s := range trail.LabelSets() {
		if strings.HasPrefix(s.Name, "reason of ") && s.Name != "reason of a decision" || s.Name == "cause of a gap" {
			for _, l := range s.Labels {
				labelledReasons[l.Value] = true
			}
			continue
		}
		require.ElementsMatch(t, want[s.Name], valuesOf(s), s.Name)
		delete(want, s.Name)
	}
	require.Empty(t, want, "sets without labels")
	for _, a := range trail.Answers() {
		labelledReasons[string(a)] = true
	}
	require.Equal(t, reasons, labelledReasons)
}

// TestLabelsAreWords holds that labels can stand in a table and in a sentence, and that those of a set differ.
func TestLabelsAreWords(t *testing.T) {
	t.Parallel()
	camelCase := regexp.MustCompile(`\p{Ll}\p{Lu}`)
	names := strings.NewReplacer("KubeVirt", "", "NoExecute", "", "EvictionRequest", "")
	for _, s := range trail.LabelSets() {
		shorts, values := map[string]bool{}, map[string]bool{}
		require.NotEmpty(t, s.Labels, s.Name)
		for _, l := range s.Labels {
			about := fmt.Sprintf("%s: %s", s.Name, l.Value)
			require.NotEmpty(t, l.Value, s.Name)
			require.False(t, values[l.Value] || shorts[strings.ToLower(l.Short)], "%s: %q is there twice", about, l.Short)
			values[l.Value], shorts[strings.ToLower(l.Short)] = true, true
			words := len(strings.Fields(l.Short))
			require.True(t, words >= 1 && words <= 4 && utf8.RuneCountInString(l.Short) <= 30, "%s: %q", about, l.Short)
			require.NotContains(t, l.Short, "_", about)
			require.NotRegexp(t, camelCase, names.Replace(l.Short), about)
			require.Regexp(t, `^\S.*[^.]\.$`, l.Text, about)
			require.Equal(t, l, s.Label(l.Value))
		}
		require.Equal(t, trail.Label{Value: "of_tomorrow", Short: "of_tomorrow"}, s.Label("of_tomorrow"))
	}
}

// TestLabelsAreOfColumns holds that each column with a closed set names it, and that its values are those that the database allows.
func TestLabelsAreOfColumns(t *testing.T) {
	t.Parallel()
	allowed := readChecks(t)
	seen := map[string]string{}
	for _, s := range trail.LabelSets() {
		for _, c := range s.Columns {
			require.Empty(t, seen[c], "%s is of two sets", c)
			seen[c] = s.Name
			for _, v := range allowed[c] {
				require.Contains(t, valuesOf(s), v, "%s allows it", c)
			}
			if len(s.Columns) == 1 && allowed[c] != nil {
				require.ElementsMatch(t, allowed[c], valuesOf(s), c)
			}
		}
	}
	for c := range allowed {
		require.NotEmpty(t, seen[c], "%s has a CHECK with its values and no labels", c)
	}
}

// TestReasonsHaveLabels holds that a reason is called as its kind has it.
func TestReasonsHaveLabels(t *testing.T) {
	t.Parallel()
	require.Equal(t, "disrupted", trail.KindLauncherPod.LabelReason(trail.ReasonDisrupted).Short)
	require.Equal(t, "by a migration", trail.KindVMIPlaced.LabelReason(trail.ReasonMigrated).Short)
	require.Equal(t, "guest moved", trail.KindEvacuationUnmarked.LabelReason(trail.ReasonMigrated).Short)
	require.Equal(t, "watch broke", trail.Gap{Cause: trail.ReasonRelisted}.Label().Short)
	require.Equal(t, "expired", trail.KindCooldownDecided.LabelReason(trail.DecidedExpired).Short, "kinds that are derived have no reasons of their own")
	set, ok := trail.FindLabelSet("loops.kind")
	require.True(t, ok)
	require.Equal(t, "loop kind", set.Name)
	_, ok = trail.FindLabelSet("loops.summary")
	require.False(t, ok)
}

// constant is a constant of this package whose value is a text.
type constant struct{ name, of, value string }

func readConstants(t *testing.T) []constant {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var out []constant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			block, ok := d.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			for _, spec := range block.Specs {
				v := spec.(*ast.ValueSpec)
				of, _ := v.Type.(*ast.Ident)
				for i, name := range v.Names[:min(len(v.Names), len(v.Values))] { // none where it repeats the one above
					if literal, ok := v.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
						value, err := strconv.Unquote(literal.Value)
						require.NoError(t, err)
						c := constant{name: name.Name, value: value}
						if of != nil {
							c.of = of.Name
						}
						out = append(out, c)
					}
				}
			}
		}
	}
	require.Greater(t, len(out), 200)
	return append(out, constant{"sourceBoth", "", "admission+audit"}) // which is made of two
}

// knownSources are the sources that facts and gaps name.
func knownSources() []string {
	all := map[string]bool{
		trail.SourceSelf: true, string(trail.SourceAudit): true, string(trail.SourceAdmission): true, string(trail.OriginPrometheus): true, string(trail.OriginDescheduler): true,
	}
	for _, k := range []trail.ObjectKind{
		trail.ObjectVMI, trail.ObjectMigration, trail.ObjectPod, trail.ObjectNode, trail.ObjectKubeVirt, trail.ObjectKubeEvent, trail.ObjectPolicy,
		trail.ObjectMigrationPolicy, trail.ObjectEvictionRequest, trail.ObjectEviction, trail.ObjectDescheduler,
	} {
		all[k.Source()] = true
	}
	var out []string
	for s := range all {
		out = append(out, s)
	}
	return out
}

func valuesOf(s trail.LabelSet) []string {
	var out []string
	for _, l := range s.Labels {
		out = append(out, l.Value)
	}
	return out
}

// readChecks returns the values that the tables allow, by view and column.
func readChecks(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../migrations/schema/*.sql")
	require.NoError(t, err)
	views := map[string]bool{}
	for _, v := range trail.Views() {
		views[v.Name] = true
	}
	table, check, value := regexp.MustCompile(`(?s)CREATE TABLE evictrail\.(\w+) \((.*?)\n\);`), regexp.MustCompile(`CHECK \((\w+) IN \(([^)]*)\)`), regexp.MustCompile(`'([^']*)'`)
	out := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, made := range table.FindAllStringSubmatch(string(text), -1) {
			if made[1] == "events" || !views[made[1]] {
				continue
			}
			for _, c := range check.FindAllStringSubmatch(made[2], -1) {
				for _, v := range value.FindAllStringSubmatch(c[2], -1) {
					out[made[1]+"."+c[1]] = append(out[made[1]+"."+c[1]], v[1])
				}
			}
		}
	}
	require.Greater(t, len(out), 15)
	return out
}

//go:generate go test . -run ^TestGlossary$ -update

const (
	glossary      = "../docs/glossary.md"
	glossaryBegin = "<!-- labels: begin, written by make generate -->\n"
	glossaryEnd   = "<!-- labels: end -->\n"
)

// TestGlossary compares the labels in docs/glossary.md with the sets.
func TestGlossary(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(glossary)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(raw), glossaryBegin)
	require.True(t, found, "docs/glossary.md has no marker %q", glossaryBegin)
	written, after, found := strings.Cut(rest, glossaryEnd)
	require.True(t, found, "docs/glossary.md has no marker %q", glossaryEnd)
	text := renderGlossary()
	if *update {
		require.NoError(t, os.WriteFile(glossary, []byte(before+glossaryBegin+text+glossaryEnd+after), 0o644))
		return
	}
	require.Equal(t, text, written, "run make generate")
}

func renderGlossary() string {
	var out strings.Builder
	out.WriteString(`
## Values and their labels

Pages, tables and dashboards show the label of a value. SQL, ` + "`-o json`, `-o csv`" + `, the API and the labels of metrics have the value.
A line in bold begins a set, and names the columns of [SQL views](sql.md) that have its values.

| Value | Label | Meaning |
|---|---|---|
`)
	for _, s := range trail.LabelSets() {
		_, _ = fmt.Fprintf(&out, "| **%s**", strings.ToUpper(s.Name[:1])+s.Name[1:])
		if len(s.Columns) > 0 {
			_, _ = fmt.Fprintf(&out, " | | `%s`", strings.Join(s.Columns, "`, `"))
		} else {
			out.WriteString(" | |")
		}
		out.WriteString(" |\n")
		for _, l := range s.Labels {
			_, _ = fmt.Fprintf(&out, "| `%s` | %s | %s |\n", l.Value, l.Short, l.Text)
		}
	}
	return out.String()
}
