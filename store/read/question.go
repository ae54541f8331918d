package read

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

const clustersOfQuery = `
SELECT cluster
FROM evictrail.subjects
WHERE subject = @subject
  AND (@cluster = '' OR cluster = @cluster)
ORDER BY cluster`

// clustersOf names the clusters in which a VM or a node is known; with a cluster given, that one or none.
func (s *Reader) clustersOf(ctx context.Context, cluster string, of trail.Subject) ([]string, error) {
	rows, err := s.db.Query(ctx, clustersOfQuery, pgx.StrictNamedArgs{"cluster": cluster, "subject": pg.CleanText(of.String())})
	if err != nil {
		return nil, pg.Explain("look for "+of.Name, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, pg.Explain("look for "+of.Name, err)
}

// Ask looks up what was known of a VM or a node at the time of a question. Errors: trail.ErrNotFound where it is not known,
// *trail.AmbiguousError where it is in several clusters.
func (s *Reader) Ask(ctx context.Context, q trail.Question) (*trail.Cluster, error) {
	q, err := s.settleQuestion(ctx, q)
	if err != nil {
		return nil, err
	}
	c, err := s.loadHistory(ctx, q)
	if err != nil {
		return nil, err
	}
	return c.SeenBy(s.scope), nil
}

// settleQuestion fills in the cluster and the moment of a question where it names none. Errors are those of Ask.
func (s *Reader) settleQuestion(ctx context.Context, q trail.Question) (trail.Question, error) {
	cluster, err := s.ClusterOf(ctx, q.Cluster, q.Of)
	if err != nil {
		return q, err
	}
	q.Cluster = cluster
	if q.At.IsZero() {
		q.At, err = s.LastSeen(ctx, cluster, s.asOf())
	}
	return q, err
}

// ClusterOf finds the one cluster in which a VM or a node is known; with a cluster given, that one. Errors are those of Ask.
func (s *Reader) ClusterOf(ctx context.Context, cluster string, of trail.Subject) (string, error) {
	cluster, within := s.scope.Cluster(cluster)
	if !within {
		return "", trail.NewNotFoundError(of)
	}
	if seen, err := s.canSee(ctx, cluster, of); err != nil || !seen {
		return "", cmp.Or(err, trail.NewNotFoundError(of))
	}
	clusters, err := s.clustersOf(ctx, cluster, of)
	switch {
	case err != nil:
		return "", err
	case len(clusters) > 1:
		return "", &trail.AmbiguousError{Name: of.Name, Clusters: clusters}
	case len(clusters) == 0:
		return "", trail.NewNotFoundError(of)
	}
	return clusters[0], nil
}

// StillWatched is how long ago a cluster may have been seen last for it to count as watched now.
const StillWatched = time.Minute

// LastSeen returns the moment up to which a cluster is known: now while it is watched.
func (s *Reader) LastSeen(ctx context.Context, cluster string, now time.Time) (time.Time, error) {
	alive, err := s.LastAlive(ctx, cluster)
	now = s.clampNow(now, alive)
	if err == nil && (alive.IsZero() || now.Sub(alive) < StillWatched) {
		return now, nil
	}
	return alive, err
}

// Why answers why a VM moved, or why VMs left a node. Errors are those of Ask.
func (s *Reader) Why(ctx context.Context, q trail.Question) (trail.Answer, error) {
	c, err := s.Ask(ctx, q)
	if err != nil {
		return trail.Answer{}, err
	}
	var a trail.Answer
	if q.Of.Kind == trail.SubjectNode {
		a = c.WhyNode(q.Of.Name)
	} else {
		a = c.Why(q.Of.VM())
	}
	from := a.Since
	if from.IsZero() {
		from = a.AsOf.Add(-lookback)
	}
	a.Recorder, a.NotObserved, err = s.recordingOf(ctx, c.Name, q.At.IsZero(), from, a.AsOf)
	return a, err
}

// lookback is the period before the moment of an answer in which gaps are named, where what it shows began when nobody knows, or keeps a VM from
// moving since less.
const lookback = time.Hour

// WhyNot answers what keeps a VM, or the VMs of a node, from moving. Errors are those of Ask.
func (s *Reader) WhyNot(ctx context.Context, q trail.Question) (trail.NotAnswer, error) {
	c, err := s.Ask(ctx, q)
	if err != nil {
		return trail.NotAnswer{}, err
	}
	var a trail.NotAnswer
	if q.Of.Kind == trail.SubjectNode {
		a = c.WhyNotNode(q.Of.Name)
	} else {
		a = c.WhyNot(q.Of.VM())
	}
	a.Recorder, a.NotObserved, err = s.recordingOf(ctx, c.Name, q.At.IsZero(), pg.EarlierTime(a.Since, a.AsOf.Add(-lookback)), a.AsOf)
	return a, err
}
