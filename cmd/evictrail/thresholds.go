package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/trail"
)

// thresholdFlags are what the cluster is judged by, where it is not as the design has it: when repetition is a loop, and how long an evacuation may take.
type thresholdFlags struct{ stated, objectives []string }

func (f *thresholdFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.stated, "loop-threshold", nil,
		"when repetition is a loop, as `NAME=VALUE`, once for each; by default "+trail.DefaultThresholds().String())
	cmd.Flags().StringArrayVar(&f.objectives, "evacuation-objective", nil,
		"within what time of its mark a guest is to be moved, by who asked, as `CLASS=DURATION`, once for each, "+string(trail.AnyRequester)+
			" for all that are not named, or "+trail.NoObjectives+"; by default "+trail.DefaultObjectives().String())
}

// thresholds gives those in force.
func (f *thresholdFlags) thresholds() (trail.Thresholds, error) {
	t := trail.DefaultThresholds()
	for _, pair := range f.stated {
		name, value, _ := strings.Cut(pair, "=")
		if err := t.Set(strings.TrimSpace(name), strings.TrimSpace(value)); err != nil {
			return t, usagef("loop-threshold: %v", err)
		}
	}
	if len(f.objectives) > 0 {
		var err error
		if t.Objectives, err = trail.ParseObjectives(f.objectives); err != nil {
			return t, usagef("evacuation-objective: %v", err)
		}
	}
	return t, nil
}
