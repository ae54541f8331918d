-- +goose Up
CREATE INDEX events_by_rule ON evictrail.events (cluster, occurred_at) WHERE kind = 'config_seen';
COMMENT ON INDEX evictrail.events_by_rule IS 'When the rules in force changed: annotations of dashboards, by view events.';

-- +goose Down
DROP INDEX evictrail.events_by_rule;
