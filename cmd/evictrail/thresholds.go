package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/trail"
)

// thresholdFlags are what the cluster is judged by, where it is not as the design has it: when repetition is a loop, how long an evacuation may take, and who
// asks.
type thresholdFlags struct {
	stated, objectives []string
	requesters         string // a file
}

func (f *thresholdFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.stated, "loop-threshold", nil,
		"when repetition is a loop, as `NAME=VALUE`, once for each; by default "+trail.DefaultThresholds().String())
	cmd.Flags().StringArrayVar(&f.objectives, "evacuation-objective", nil,
		"within what time of its mark a guest is to be moved, by who asked, as `CLASS=DURATION`, once for each, "+string(trail.AnyRequester)+
			" for all that are not named; CLASS@NAMESPACE=DURATION for the VMs of a namespace, CLASS@pool/POOL=DURATION for those on the nodes of a pool; or "+trail.NoObjectives+"; by default "+trail.DefaultObjectives().String())
	cmd.Flags().StringVar(&f.requesters, "requesters", "",
		"`file` that says of what class the requests of your accounts are, one a line: "+
			"NAMESPACE:NAME = CLASS of a service account, user:NAME = CLASS of a user (docs/requesters.md)")
}

// parseThresholds returns those in force.
func (f *thresholdFlags) parseThresholds() (trail.Thresholds, error) {
	t := trail.DefaultThresholds()
	for _, pair := range f.stated {
		name, value, _ := strings.Cut(pair, "=")
		if err := t.Set(strings.TrimSpace(name), strings.TrimSpace(value)); err != nil {
			return t, usageErrorf("loop-threshold: %v", err)
		}
	}
	if len(f.objectives) > 0 {
		var err error
		if t.Objectives, err = trail.ParseObjectives(f.objectives); err != nil {
			return t, usageErrorf("evacuation-objective: %v", err)
		}
	}
	if f.requesters != "" {
		text, err := os.ReadFile(f.requesters)
		if err != nil {
			return t, fmt.Errorf("read requesters: %w", err)
		}
		if t.Accounts, err = trail.ParseAccounts(string(text)); err != nil {
			return t, usageErrorf("requesters: %s: %w", f.requesters, err)
		}
	}
	return t, nil
}
