package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/api"
)

// backtestFlags are those of "evictrail alerts backtest".
type backtestFlags struct {
	from         readerFlags
	cluster      string
	since, until string
	step         string
	rules        []string
	thresholds   []string
	holds        []string
	output       string
	target       float64
}

// usualBacktest is the period that is replayed where none is named: the command has time for more than the API.
const usualBacktest = "30d"

func newAlertsBacktest() *cobra.Command {
	var f backtestFlags
	cmd := &cobra.Command{
		Use:   "backtest",
		Short: "Say how often alerts would have fired, with their thresholds and with others",
		Args:  asUsage(cobra.NoArgs),
		Long: `Replay the recorded history of a cluster into the metrics that alerts read, and evaluate the alerts
over it with Prometheus' own engine: how often each would have fired, for how long in all, and beside how many of these
firings evictrail recorded something wrong (a loop, a guest that the platform ended, a node that was not ready,
a missed objective) about the same VM, node or cluster. Each alert is tried as it is, with half and twice each
of its thresholds, and with half and twice its "for"; --threshold and --for try others in their place.

A threshold is a number to which an expression compares. --threshold 2100=3600 puts 3600 in place of 2100;
--threshold 3600 does where the alert has only one. Where both flags are given all combinations are tried.
Recording rules stay as they are.

Alerts about evictrail itself, and those that compare clusters, are listed as not in history, with what is
missing: of them it says nothing. What is known of a moment is what is known of it today (docs/backtest.md).

It only reads. A database takes minutes for some months of a large cluster, with progress on standard error; its user
needs the role evictrail_reader. An evictrail that serves (--server) answers what it can within half a minute, of at
most ` + fmt.Sprint(backtest.MostDays) + ` days. Exit status 3 when nothing was recorded in the period.`,
		Example: `  evictrail alerts backtest --since 30d
  evictrail alerts backtest --rule EvictrailEvacuationStuck --threshold 2100=3600,2100=1200
  evictrail alerts backtest --rule EvictrailDualRetryLoop --for 0s,5m,15m -o json | jq '.rules[].variants'
  evictrail alerts backtest --rule EvictrailVMPingPong --since 7d --server https://evictrail.example`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.addFlags(cmd)
	return cmd
}

func (f *backtestFlags) addFlags(cmd *cobra.Command) {
	usual := alerts.DefaultOptions()
	flags := cmd.Flags()
	flags.StringVar(&f.cluster, "cluster", "", "the `cluster`, where several are recorded")
	flags.StringVar(&f.since, "since", usualBacktest, "from when on: a `time` (2026-11-21) or an age (7d, 24h)")
	flags.StringVar(&f.until, "until", "", "until when: a `time` or an age; by default now, or when the cluster was "+
		"last seen")
	flags.StringSliceVar(&f.rules, "rule", nil,
		"only `alerts` of these names, separated by commas; by default all")
	flags.StringSliceVar(&f.thresholds, "threshold", nil,
		"other `thresholds` of the alert of --rule: 3600, or 2100=3600 where it has several")
	flags.StringSliceVar(&f.holds, "for", nil, "other `durations` for which the expression has to hold: 0s,10m,1h")
	flags.StringVar(&f.step, "step", model.Duration(backtest.UsualStep).String(),
		"`duration` between two samples, and two evaluations: what your Prometheus has as its interval")
	flags.Float64Var(&f.target, "evacuation-target", usual.EvacuationTarget,
		"share of evacuations, in `percent`, that are to keep to their objective, as of 'generate alerts'")
	flags.StringVarP(&f.output, "output", "o", "table", "`format`: table or json")
	f.from.addFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("rule", cobra.FixedCompletions(alerts.ListNames(alerts.Groups(usual)),
		cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"},
		cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("step", cobra.FixedCompletions([]string{"15s", "30s", "1m"},
		cobra.ShellCompDirectiveNoFileComp))
	completeNames(cmd, &f.from, &f.cluster)
}

// parseFlags reads what the flags ask.
func (f *backtestFlags) parseFlags(now time.Time) (q backtest.Question, err error) {
	if !slices.Contains([]string{"table", "json"}, f.output) {
		return q, usageErrorf("output %q: expected table or json", f.output)
	}
	if f.target == 0 { // which stands for the usual one elsewhere
		return q, usageErrorf("evacuation-target 0: expected %v to %v", alerts.LowestTarget, alerts.HighestTarget)
	}
	q = backtest.Question{Cluster: f.cluster, EvacuationTarget: f.target}
	if q.Since, err = parseTime("since", f.since, now); err != nil {
		return q, err
	}
	if q.Until, err = parseTime("until", f.until, now); err != nil {
		return q, err
	}
	if err = f.parseAlerts(&q); err == nil {
		err = q.Validate()
	}
	if err != nil {
		return q, usageErrorf("%w", err)
	}
	return q, nil
}

// parseAlerts reads which alerts are to be tried, and with which numbers.
func (f *backtestFlags) parseAlerts(q *backtest.Question) (err error) {
	if len(f.rules) > 0 {
		if q.Rules, err = backtest.ParseRules(strings.Join(f.rules, ",")); err != nil {
			return err
		}
	}
	if len(f.thresholds) > 0 {
		if q.Thresholds, err = backtest.ParseThresholds(strings.Join(f.thresholds, ",")); err != nil {
			return err
		}
	}
	if len(f.holds) > 0 {
		if q.For, err = backtest.ParseFor(strings.Join(f.holds, ",")); err != nil {
			return err
		}
	}
	q.Step, err = backtest.ParseStep(f.step)
	return err
}

func (f *backtestFlags) run(cmd *cobra.Command) error {
	q, err := f.parseFlags(nowUTC())
	if err != nil {
		return err
	}
	s, err := f.from.openSource(cmd.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	say := printNowAndThen(cmd.ErrOrStderr())
	q.Progress = func(done, total int) {
		say(func() string { return fmt.Sprintf("%d %% replayed", 100*done/total) })
	}
	a, err := answerOne(cmd.Context(), s, func(ctx context.Context, r reader) (backtest.Answer, error) {
		a, err := r.Backtest(ctx, q)
		return a, inCluster(ctx, r, f.cluster, err)
	})
	if err != nil {
		return err
	}
	if f.output == "json" {
		return api.WriteJSON(cmd.OutOrStdout(), a)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), renderBacktest(&a, len(q.Rules) > 0))
	return err
}
