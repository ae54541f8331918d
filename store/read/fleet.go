package read

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/trail"
)

// The bounds of what is read of the worst of clusters.
const (
	fleetRead   = 30 // clusters of which it is read: those with the most that is open
	fleetAtOnce = 4  // of them at once
)

// Fleet returns how it stands with each cluster. With worst they are sorted as trail.SortFleet does, and the worst of those where
// something is open is said; else they are in the order of their names.
func (s *Reader) Fleet(ctx context.Context, worst bool) ([]trail.FleetLine, error) {
	clusters, err := s.Summaries(ctx)
	if err != nil {
		return nil, err
	}
	recorders, err := s.Recorders(ctx, "", time.Time{}, time.Time{})
	if err != nil {
		return nil, err
	}
	overviews := make([]*trail.Overview, len(clusters))
	if worst {
		slices.SortStableFunc(clusters, func(a, b trail.ClusterSummary) int { return b.ReadWeight() - a.ReadWeight() })
		if err := s.readWorst(ctx, clusters, overviews); err != nil {
			return nil, err
		}
	}
	lines := make([]trail.FleetLine, len(clusters))
	for i, c := range clusters {
		var recorder *trail.RecorderStatus
		if at := slices.IndexFunc(recorders, func(r trail.RecorderStatus) bool { return r.Cluster == c.Name }); at >= 0 {
			recorder = &recorders[at]
		}
		lines[i] = trail.NewFleetLine(c, recorder, overviews[i])
	}
	if worst {
		trail.SortFleet(lines)
	}
	return lines, nil
}

// readWorst reads the overviews of the first clusters in which something needs reading.
func (s *Reader) readWorst(ctx context.Context, clusters []trail.ClusterSummary, overviews []*trail.Overview) error {
	var reading errgroup.Group
	reading.SetLimit(fleetAtOnce)
	for i, c := range clusters[:min(len(clusters), fleetRead)] {
		if c.ReadWeight() == 0 {
			continue
		}
		reading.Go(func() error {
			o, err := s.Overview(ctx, c.Name, time.Time{}, time.Hour, time.Hour)
			overviews[i] = &o
			return err
		})
	}
	return reading.Wait()
}
