-- +goose Up
-- Kinds of facts of which there are few, or none at all, are found without going through all others.
CREATE INDEX events_by_rule ON evictrail.events (cluster, occurred_at) WHERE kind = 'config_seen';
COMMENT ON INDEX evictrail.events_by_rule IS 'When the rules in force changed: annotations of dashboards, by view events.';
DROP INDEX evictrail.events_by_load;
CREATE INDEX events_by_load ON evictrail.events (occurred_at) WHERE kind = 'node_load';
COMMENT ON INDEX evictrail.events_by_load IS 'The load of nodes in a time, and the newest of any cluster: view node_context.';

-- +goose Down
DROP INDEX evictrail.events_by_load;
CREATE INDEX events_by_load ON evictrail.events (cluster, occurred_at) WHERE kind = 'node_load';
COMMENT ON INDEX evictrail.events_by_load IS 'The load of nodes in a time: view node_context.';
DROP INDEX evictrail.events_by_rule;
