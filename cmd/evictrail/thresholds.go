package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/trail"
)

// thresholdFlags say when repetition is a loop, where it is not as the design has it.
type thresholdFlags struct{ stated []string }

func (f *thresholdFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.stated, "loop-threshold", nil,
		"when repetition is a loop, as `NAME=VALUE`, once for each; by default "+trail.DefaultThresholds().String())
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
	return t, nil
}
