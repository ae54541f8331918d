-- +goose Up
-- What is open now, for the gauges: each index is as large as what is open, not as what was recorded.
CREATE INDEX evacuations_open ON evictrail.evacuations (cluster) WHERE ended_at IS NULL;
COMMENT ON INDEX evictrail.evacuations_open IS 'The state of a cluster: open evacuations.';
CREATE INDEX migrations_open ON evictrail.migrations (cluster) WHERE finished_at IS NULL;
COMMENT ON INDEX evictrail.migrations_open IS 'The state of a cluster: migrations that are not over.';
CREATE INDEX migrations_by_end ON evictrail.migrations (cluster, finished_at) WHERE finished_at IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_by_end IS 'The state of a cluster: what moved and failed in the last hours.';
CREATE INDEX placements_open ON evictrail.placements (cluster, node) WHERE to_at IS NULL;
COMMENT ON INDEX evictrail.placements_open IS 'The state of a cluster: how many guests a node has.';
CREATE INDEX loops_open ON evictrail.loops (cluster) WHERE closed_at IS NULL;
COMMENT ON INDEX evictrail.loops_open IS 'The state of a cluster: open loops.';
CREATE INDEX drains_open ON evictrail.drains (cluster) WHERE ended_at IS NULL;
COMMENT ON INDEX evictrail.drains_open IS 'The state of a cluster: drains that go on.';

-- +goose Down
DROP INDEX evictrail.evacuations_open, evictrail.migrations_open, evictrail.migrations_by_end, evictrail.placements_open, evictrail.loops_open, evictrail.drains_open;
