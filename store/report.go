package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// Replicas that have been away for longer are forgotten once another one reports.
const reportQuery = `
WITH gone AS (
  DELETE FROM evictrail.recorders
  WHERE cluster = @cluster
    AND replica <> @replica
    AND alive_at < @alive_at::timestamptz - interval '1 day'
)
INSERT INTO evictrail.recorders (
    cluster, replica, alive_at, started_at, state, since, why, unseen,
    leads, leader_known, leader_since, leader_problem, derived_at, failure
)
VALUES (
    @cluster, @replica, @alive_at, @started_at, @state, @since, @why, @unseen,
    @leads, @leader_known, @leader_since, @leader_problem, @derived_at, @failure
)
ON CONFLICT (cluster, replica) DO UPDATE SET
    alive_at = excluded.alive_at, started_at = excluded.started_at, state = excluded.state, since = excluded.since, why = excluded.why,
    unseen = excluded.unseen, leads = excluded.leads, leader_known = excluded.leader_known, leader_since = excluded.leader_since,
    leader_problem = excluded.leader_problem, derived_at = excluded.derived_at, failure = excluded.failure`

// Report notes what this replica says of its own recording.
func (c *ClusterStore) Report(ctx context.Context, r trail.ReplicaReport) error {
	args := pgx.StrictNamedArgs{
		"cluster": c.cluster, "replica": c.replica, "alive_at": r.AliveAt, "started_at": r.StartedAt, "state": string(r.State), "since": r.Since,
		"why": cleanAll(r.Why), "unseen": cleanAll(r.Unseen), "leads": r.Leader.Leads, "leader_known": r.Leader.Known, "leader_since": r.Leader.Since,
		"leader_problem": pg.CleanText(r.Leader.Problem), "derived_at": pg.NullTime(r.Leader.DerivedAt), "failure": pg.CleanText(r.Leader.Failure),
	}
	_, err := c.store.DB.Exec(ctx, reportQuery, args)
	return pg.Explain("note how it stands with the recorder", err)
}

// cleanAll returns texts as Postgres can hold them; never nil.
func cleanAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = pg.CleanText(t)
	}
	return out
}
