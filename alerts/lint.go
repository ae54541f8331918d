package alerts

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/evictrail/evictrail/metrics"
)

// summaryLimit is how long the subject of a mail may be.
const summaryLimit = 90

// pages are the alerts that may be critical, with nothing to add: people who are woken for less stop listening.
var pages = []string{DualRetryLoop, postCopyLost, guestsLostWidespread, "EvictrailSpoolNearlyFull", EvictrailAbsent}

// Lint checks the rules of the house, as far as they can be seen without evaluating anything. It returns one line for each
// offence, in the order of the rules.
func Lint(groups []Group) error {
	var wrong []error
	seen, critical := map[string]bool{}, []string{}
	for _, g := range groups {
		for _, r := range g.Rules {
			id := r.Record + r.Alert + "/" + r.Labels[labelSeverity]
			if seen[id] {
				wrong = append(wrong, fmt.Errorf("%s: is there twice", id))
			}
			seen[id] = true
			if r.Labels[labelSeverity] == Critical {
				critical = append(critical, r.Alert)
			}
			for _, problem := range r.lint() {
				wrong = append(wrong, fmt.Errorf("%s: %s", id, problem))
			}
		}
	}
	slices.Sort(critical)
	if want := slices.Sorted(slices.Values(pages)); !slices.Equal(critical, want) {
		wrong = append(wrong, fmt.Errorf("critical alerts %v: expected %v", critical, want))
	}
	return errors.Join(wrong...)
}

var (
	recordName   = regexp.MustCompile(`^evictrail:[a-z_]+:[a-z0-9_]+$`)
	alertName    = regexp.MustCompile(`^Evictrail[A-Z][A-Za-z]+$`)
	ruleDuration = regexp.MustCompile(`^([1-9][0-9]*[mh])?$`)
	action       = regexp.MustCompile(`{{[^}]*}}`)
	webAddress   = regexp.MustCompile(`^https?://`)
	ofSeries     = regexp.MustCompile(`\$labels\.([a-z_]+)`)
)

// lint returns what is wrong with one rule, in words.
func (r Rule) lint() []string {
	if r.Record != "" {
		if !recordName.MatchString(r.Record) || r.Alert != "" || r.For != "" || r.KeepFiringFor != "" || len(r.Labels)+len(r.Annotations) > 0 {
			return []string{"a recording rule has a name evictrail:what:how and an expression, nothing else"}
		}
		return nil
	}
	var wrong []string
	require := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	require(alertName.MatchString(r.Alert), "its name must begin with Evictrail")
	require(slices.Contains([]string{Critical, Warning, Info}, r.Labels[labelSeverity]), "severity %q is none", r.Labels[labelSeverity])
	require(r.Labels[labelComponent] != "", "it has no component")
	require(ruleDuration.MatchString(r.For) && ruleDuration.MatchString(r.KeepFiringFor), "durations are whole minutes or hours, and left out where 0")
	require(r.For != "" || r.KeepFiringFor != "", "it fires at once, so it needs a keep_firing_for: who comes later must see it")
	return append(wrong, r.lintTexts()...)
}

func (r Rule) lintTexts() []string {
	var wrong []string
	require := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	summary, description := r.Annotations[annotationSummary], r.Annotations[annotationDescription]
	shown := action.ReplaceAllString(summary, "12345678")
	require(len(shown) > 0 && len(shown) < summaryLimit, "its summary has %d characters: expected fewer than %d", len(shown), summaryLimit)
	require(!strings.ContainsAny(summary, "\n") && !strings.HasSuffix(summary, "."), "its summary must be one line without a period")
	require(strings.Contains(description, "{{"), "its description has no number and no name")
	require(strings.HasSuffix(description, "."), "its description must be sentences")
	require(strings.HasSuffix(r.Annotations[annotationRunbook], "/"+r.Alert+".md"), "it has no page")

	namespaced := strings.Contains(summary+description, "$labels."+metrics.LabelNamespace+" ")
	require((r.Labels[metrics.LabelNamespace] != "") != namespaced, "its namespace must be that of its VM or else evictrail's")
	return append(wrong, r.lintLinks(summary+description)...)
}

// lintLinks returns what is wrong with the links to a dashboard and to a page, each where there is one.
func (r Rule) lintLinks(texts string) []string {
	var wrong []string
	require := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	dashboard, withDashboard := r.Annotations[annotationDashboard]
	page, withPage := r.Annotations[annotationPage]
	require(!withDashboard || webAddress.MatchString(dashboard), "its dashboard has no address: a path leads nowhere in a message")
	require(!withPage || webAddress.MatchString(page), "its page has no address: a path leads nowhere in a message")
	require(!withDashboard || strings.Contains(dashboard, "/d/evictrail-") && strings.HasSuffix(dashboard, "from=now-6h&to=now"), "it points to no dashboard")
	for _, use := range ofSeries.FindAllStringSubmatch(texts, -1) {
		if label := use[1]; slices.Contains([]string{metrics.LabelNode, metrics.LabelNamespace, metrics.LabelVMI}, label) {
			require(!withDashboard || hasVariable(dashboard, label), "its dashboard gets no %s", label)
		}
		if label := use[1]; label == metrics.LabelVMI {
			require(!withPage || strings.Contains(page, "/vms/"+theVM), "its page is not that of its VM")
		}
	}
	return wrong
}

// hasVariable reports whether a link fills in the variable.
func hasVariable(link, label string) bool {
	return strings.Contains(link, fmt.Sprintf("var-%[1]s={{ $labels.%[1]s }}&", label))
}
