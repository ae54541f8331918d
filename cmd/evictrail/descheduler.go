package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/trail"
)

// deschedulerFlags say what is known of the descheduler, and where its metrics are read.
type deschedulerFlags struct {
	policy    string
	configMap string
	cooldown  trail.CooldownSettings
	stated    bool // some of the cooldown's settings were given
	model     string

	metrics remoteFlags
	every   time.Duration
}

// models are what --descheduler-model takes; the first is the default.
var models = []string{"auto", "4.22", "4.21", "none"}

// The flags that state the cooldown by hand.
const (
	flagCooldown    = "migration-cooldown"
	flagMaxCooldown = "max-migration-cooldown"
	flagWindow      = "migration-history-window"
)

func (f *deschedulerFlags) addFlags(cmd *cobra.Command) {
	f.addSources(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&f.cooldown.Base, flagCooldown, 0, "where its policy cannot be read: the descheduler's migrationCooldown, the `duration` for which a VM rests after a migration (default 15m)")
	flags.DurationVar(&f.cooldown.Max, flagMaxCooldown, 0, "likewise maxMigrationCooldown, the `duration` for which it rests at most (default 6h)")
	flags.DurationVar(&f.cooldown.Window, flagWindow, 0, "likewise migrationHistoryWindow, the `duration` for which its migrations count (default 48h)")
	flags.StringVar(&f.model, "descheduler-model", models[0], "`release` whose cooldown the descheduler keeps: "+strings.Join(models, ", "))
}

// addSources adds the flags that say where its policy and its metrics are read.
func (f *deschedulerFlags) addSources(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.model = models[0]
	flags.StringVar(&f.policy, "descheduler-policy", "", "`file` with the descheduler's policy: says that one is at work, and its settings")
	flags.StringVar(&f.configMap, "descheduler-configmap", "", "watch the ConfigMap `namespace/name` with the descheduler's policy; on OpenShift openshift-kube-descheduler-operator/descheduler")
	f.metrics = remoteFlags{where: "the metrics are", example: "https://descheduler.example:10258/metrics"}
	f.metrics.addFlags(cmd, "descheduler-metrics", "read the descheduler's metrics at this `URL`: how often it held back evictions, and when it was started")
	flags.Lookup("descheduler-metrics-insecure").Usage = "do not check its certificate: the descheduler makes its own"
	flags.DurationVar(&f.every, "descheduler-metrics-interval", collector.ScrapeInterval, "`duration` between two reads")
}

func (f *deschedulerFlags) checkFlags(cmd *cobra.Command) error {
	f.stated = slices.ContainsFunc([]string{flagCooldown, flagMaxCooldown, flagWindow}, cmd.Flags().Changed)
	sources := 0
	for _, given := range []bool{f.policy != "", f.configMap != "", f.stated} {
		if given {
			sources++
		}
	}
	_, _, named := cutName(f.configMap)
	switch {
	case sources > 1:
		return usageErrorf("the descheduler's settings come from one place: give --descheduler-policy, --descheduler-configmap, or --%s and its like", flagCooldown)
	case f.configMap != "" && !named:
		return usageErrorf("descheduler-configmap %q: expected NAMESPACE/NAME", f.configMap)
	case !slices.Contains(models, f.model):
		return usageErrorf("descheduler-model %q: expected one of %s", f.model, strings.Join(models, ", "))
	case f.model != models[0] && sources == 0:
		return usageErrorf("descheduler-model: say where its settings are with --descheduler-policy or --descheduler-configmap, or state them with --%s", flagCooldown)
	}
	if err := f.cooldown.Validate(); err != nil {
		return usageErrorf("%s, %s, %s: %v", flagCooldown, flagMaxCooldown, flagWindow, err)
	}
	return f.checkMetrics(cmd)
}

func (f *deschedulerFlags) checkMetrics(cmd *cobra.Command) error {
	if err := f.metrics.checkFlags(cmd, "interval"); err != nil || !f.metrics.isSet() {
		return err
	}
	if f.every < time.Second {
		return usageErrorf("descheduler-metrics-interval %s: expected at least 1s", f.every)
	}
	return nil
}

// readObservations returns what is known of the descheduler without asking the cluster.
func (f *deschedulerFlags) readObservations() ([]collector.Observation, error) {
	switch {
	case f.policy != "":
		text, err := os.ReadFile(f.policy)
		if err != nil {
			return nil, fmt.Errorf("read descheduler policy: %w", err)
		}
		return []collector.Observation{collector.Policy(text, f.statedModel())}, nil
	case f.stated:
		cooldown := f.cooldown.WithDefaults()
		return []collector.Observation{collector.StatedPolicy(trail.DeschedulerSettings{Cooldown: &cooldown, Model: f.statedModel()})}, nil
	}
	return nil, nil
}

// statedModel returns the model as trail.DeschedulerSettings has it.
func (f *deschedulerFlags) statedModel() string {
	if f.model == models[0] {
		return ""
	}
	return f.model
}

// policyMap names the ConfigMap to watch, nil where there is none.
func (f *deschedulerFlags) policyMap() *collector.PolicyMap {
	if f.configMap == "" {
		return nil
	}
	namespace, name, _ := cutName(f.configMap)
	return &collector.PolicyMap{Namespace: namespace, Name: name, Model: f.statedModel()}
}

// newScrapeTarget returns the metrics to read, nil where there are none.
func (f *deschedulerFlags) newScrapeTarget() *collector.ScrapeTarget {
	if !f.metrics.isSet() {
		return nil
	}
	return &collector.ScrapeTarget{Server: f.metrics.server, Interval: f.every}
}
