package alerts

import (
	"strconv"
	"strings"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// InhibitRule is one inhibition rule as Alertmanager reads it: while an alert fires that matches the source, those that
// match the target and have the same values of the equal labels are not sent.
type InhibitRule struct {
	SourceMatchers []string `json:"source_matchers"`
	TargetMatchers []string `json:"target_matchers"`
	Equal          []string `json:"equal"`
}

const (
	labelAlert = "alertname"
	everyAlert = "Evictrail.+"
)

// Inhibitions returns the inhibition rules. Where one alert explains another, the explanation is sent.
func Inhibitions() []InhibitRule {
	sameAlert, sameNode, sameCluster := []string{labelAlert, labelCluster}, append([]string{labelCluster}, perNode...), []string{labelCluster}
	return []InhibitRule{
		{matchAlert(everyAlert, matchLabel(labelSeverity, Critical)), matchAlert(everyAlert, matchLabel(labelSeverity, Warning, Info)), sameAlert},
		{matchAlert(everyAlert, matchLabel(labelSeverity, Warning)), matchAlert(everyAlert, matchLabel(labelSeverity, Info)), sameAlert},
		// The one of several nodes names none, and would silence what is about no node.
		{matchAlert(DualRetryLoop, matchLabel(labelSeverity, Warning)), matchAlert(anyAlert(evacuationStuck, evacuationOrphaned, deschedulerSlots)), sameNode},
		{matchAlert(notMigratable), matchAlert(drainStalled), sameNode},
		{matchAlert(postCopyLost), matchAlert(guestLost, matchLabel(metrics.LabelCause, trail.EndingPostCopy)), sameCluster},
		{matchAlert(guestsLostWidespread), matchAlert(guestLost), sameCluster},
		// These name the node that waits, and what for.
		{matchAlert(anyAlert(DualRetryLoop, drainStalled)), matchAlert(objectiveBurn), sameCluster},
		{matchAlert(EvictrailAbsent), matchAlert(everyAlert, excludeLabel(labelAlert, EvictrailAbsent)), sameCluster},
		{matchAlert(storeDown), matchAlert(anyAlert(freshnessBurn, spoolGrowing)), sameCluster},
	}
}

// InhibitRules returns the inhibition rules as a snippet for Alertmanager's configuration.
func InhibitRules() (string, error) {
	return marshalYAML("For the configuration of Alertmanager.", map[string]any{"inhibit_rules": Inhibitions()})
}

// matchAlert returns matchers of alerts whose name fits the pattern.
func matchAlert(pattern string, more ...string) []string {
	op := "="
	if strings.ContainsAny(pattern, "|+") {
		op = "=~"
	}
	return append([]string{labelAlert + op + strconv.Quote(pattern)}, more...)
}

func anyAlert(names ...string) string { return strings.Join(names, "|") }
