-- +goose Up
-- What was told of one namespace, in the order of time, and what became of the moves of a week, without reading their rows.
CREATE INDEX timeline_by_namespace ON evictrail.timeline (cluster, namespace, at);
COMMENT ON INDEX evictrail.timeline_by_namespace IS 'The story of one namespace: view timeline.';
DROP INDEX evictrail.migrations_by_end;
CREATE INDEX migrations_by_end ON evictrail.migrations (cluster, finished_at) INCLUDE (trigger, outcome) WHERE finished_at IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_by_end IS 'The state of a cluster: what moved and failed in the last hours. The moves over time of the front page.';

-- +goose Down
DROP INDEX evictrail.timeline_by_namespace, evictrail.migrations_by_end;
CREATE INDEX migrations_by_end ON evictrail.migrations (cluster, finished_at) WHERE finished_at IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_by_end IS 'The state of a cluster: what moved and failed in the last hours.';
