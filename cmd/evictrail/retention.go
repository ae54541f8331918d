package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/retention"
)

// retentionFlags say how long what is recorded is kept.
type retentionFlags struct {
	facts, rows, requesters days
}

// How long what is recorded is kept by default.
const (
	keepFacts = days(90 * 24 * time.Hour)
	keepRows  = days(400 * 24 * time.Hour)
)

func (f *retentionFlags) addFlags(cmd *cobra.Command) {
	f.addKept(cmd)
	cmd.Flags().Var(&f.requesters, "keep-requesters", "erase the names of people who asked after so many `days`; 0 keeps them as long as the rest")
	_ = cmd.RegisterFlagCompletionFunc("keep-requesters", cobra.FixedCompletions([]string{"14d", "30d", "0"}, cobra.ShellCompDirectiveNoFileComp))
}

// addKept adds the flags that say how much there will be.
func (f *retentionFlags) addKept(cmd *cobra.Command) {
	f.facts, f.rows = keepFacts, keepRows
	flags := cmd.Flags()
	flags.Var(&f.facts, "keep-facts", "keep facts for so many `days` or longer: they are dropped by whole months; 0 keeps them for ever")
	flags.Var(&f.rows, "keep-rows", "keep what was derived of them (evacuations, migrations, loops, lines of timelines) for so many `days`; 0 keeps it for ever")
	for name, choices := range map[string][]string{"keep-facts": {"30d", "90d", "180d", "0"}, "keep-rows": {"180d", "400d", "0"}} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
	}
}

// newPolicy returns what the flags say.
func (f *retentionFlags) newPolicy() retention.Policy {
	return retention.Policy{Facts: time.Duration(f.facts), Rows: time.Duration(f.rows), Requesters: time.Duration(f.requesters)}
}

func (f *retentionFlags) checkFlags() error {
	if err := f.newPolicy().Validate(); err != nil {
		return usageErrorf("keep-facts %s, keep-rows %s, keep-requesters %s: %w", &f.facts, &f.rows, &f.requesters, err)
	}
	return nil
}

// days is a time as people give it: 90d, or what time.ParseDuration reads.
type days time.Duration

// Set reads a time.
func (d *days) Set(text string) error {
	if n, is := strings.CutSuffix(text, "d"); is {
		if v, err := strconv.ParseFloat(n, 64); err == nil && v >= 0 && v <= 36500 {
			*d = days(v * float64(24*time.Hour))
			return nil
		}
	} else if v, err := time.ParseDuration(text); err == nil && v >= 0 {
		*d = days(v)
		return nil
	}
	return errors.New("expected days, such as 90d, or 0")
}

// String writes it in days.
func (d *days) String() string {
	if *d == 0 {
		return "0"
	}
	return fmt.Sprintf("%gd", time.Duration(*d).Hours()/24)
}

// Type names what help shows.
func (d *days) Type() string { return "days" }

// When what is old is dropped: not at once, so that during an upgrade no replica of the version before derives any more, and then every hour.
const (
	retainFirst = 15 * time.Minute
	retainEvery = time.Hour
)

// keeper drops what was kept long enough, while this replica derives.
type keeper struct {
	store    *store.Store
	cluster  string
	retained func() *retention.Policy // how long what is recorded is kept
	metrics  *metrics.Metrics
	log      *slog.Logger

	said string // what was last said to be in the way
}

// dropExpired drops what is old at a time.
func (k *keeper) dropExpired(ctx context.Context, at time.Time) {
	var did retention.Retained
	policy := *k.retained()
	err := retention.SetPolicy(ctx, k.store.DB, k.cluster, policy)
	if err == nil {
		did, err = retention.Retain(ctx, k.store.DB, policy, at)
	}
	for _, p := range did.Dropped {
		k.log.Info("facts of a month dropped, as they were kept long enough", "partition", p.Name, "from", p.From, "until", p.To, "count", p.Facts, "bytes", p.Bytes)
	}
	if len(did.Dropped) > 0 {
		k.metrics.Dropped.WithLabelValues(metrics.DroppedFacts).Add(float64(max(did.Old-did.Kept, 0)))
		k.log.Info("facts kept on which what came after rests", "count", did.Kept, "of", did.Old, "before", did.Facts)
	}
	if did.Thinned > 0 {
		k.metrics.Dropped.WithLabelValues(metrics.DroppedFacts).Add(float64(did.Thinned))
		k.log.Info("facts of clusters dropped that are kept for a shorter time than others", "count", did.Thinned)
	}
	if n := did.RowCount(); n > 0 {
		k.metrics.Dropped.WithLabelValues(metrics.DroppedRows).Add(float64(n))
		k.log.Info("derived rows dropped, as they were kept long enough", "count", n)
	}
	if did.Requesters > 0 {
		k.metrics.Dropped.WithLabelValues(metrics.DroppedRequesters).Add(float64(did.Requesters))
		k.log.Info("names of people who asked erased", "count", did.Requesters)
	}
	switch said := did.Waits; {
	case ctx.Err() != nil:
		return
	case err != nil:
		k.metrics.StoreFailed(metrics.OpRetain, err)
		k.logProblemOnce(err.Error())
	case said != "":
		k.logProblemOnce(said)
	default:
		k.said = ""
		k.metrics.RetentionLast.WithLabelValues().Set(float64(at.Unix()))
	}
}

// logProblemOnce says once what is in the way.
func (k *keeper) logProblemOnce(why string) {
	if why != k.said {
		k.log.Warn("what is old is not dropped yet, trying again in an hour", "reason", why)
	}
	k.said = why
}
