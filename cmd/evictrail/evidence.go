package main

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store/evidence"
	"github.com/evictrail/evictrail/store/pg"
)

// evidenceFlags say where digests of days are kept outside of the database.
type evidenceFlags struct {
	anchor string
}

func (f *evidenceFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.anchor, "audit-anchor", "",
		"append the digest of the facts of each day to this `file`, outside of the reach of who can write to the database: "+
			"'evictrail verify' compares them (docs/evidence.md)")
}

// checkFlags refuses a file to which nothing can be appended.
func (f *evidenceFlags) checkFlags() error {
	if f.anchor == "" {
		return nil
	}
	if err := evidence.CheckAnchorFile(f.anchor); err != nil {
		return usageErrorf("audit-anchor: %w: name a file in a directory that is there, to which evictrail may write", err)
	}
	return nil
}

// When days are sealed: soon after midnight of the database, whose clock may be behind ours. Nothing waits for it.
const (
	sealFirst = time.Minute
	sealEvery = 10 * time.Minute
	sealAfter = 15 * time.Minute
)

// sealer seals the facts of each day once it is over, while this replica derives.
type sealer struct {
	db      *pg.DB
	cluster string
	anchor  string // file; empty: there is none
	trouble
}

// sealDays seals the days that have ended at a time, and anchors what is sealed. What is in the way is logged once.
func (s *sealer) sealDays(ctx context.Context, at time.Time) {
	links, err := evidence.Seal(ctx, s.db, s.cluster, at.Add(-sealAfter).UTC().Truncate(24*time.Hour))
	for _, l := range links {
		s.log.Info("facts of a day sealed", "cluster", l.Cluster, "day", l.Day.Format(time.DateOnly),
			"month", l.Month.Format("2006-01"), "count", l.Facts, "last_seq", l.Last, "digest", hex.EncodeToString(l.Digest))
	}
	if err == nil && s.anchor != "" {
		err = s.anchorLinks(ctx)
	}
	if s.isNew(ctx, metrics.OpSeal, err) {
		s.log.Warn("days are not sealed or not anchored, trying again in ten minutes", "err", err)
	}
}

// anchorLinks appends the links that the anchor file does not have: also those that another replica sealed.
func (s *sealer) anchorLinks(ctx context.Context) error {
	links, err := evidence.Links(ctx, s.db, s.cluster)
	if err != nil {
		return err
	}
	file, err := evidence.OpenAnchorFile(s.anchor)
	if err != nil {
		return err
	}
	if _, err := file.Append(links); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
