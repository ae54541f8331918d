-- +goose Up
-- What happened in one namespace, in the order of time: view events reads facts and decisions side by side, and was to look through
-- weeks of all of them for a namespace in which little happens.
CREATE INDEX events_by_namespace ON evictrail.events (cluster, namespace, occurred_at);
COMMENT ON INDEX evictrail.events_by_namespace IS 'The facts of one namespace: view events. Which migrations a request in their namespace made: derive their VMs again.';
DROP INDEX evictrail.events_by_new_migration;
CREATE INDEX cooldown_decisions_by_namespace ON evictrail.cooldown_decisions (cluster, namespace, decided_at);
COMMENT ON INDEX evictrail.cooldown_decisions_by_namespace IS 'The decisions about the VMs of one namespace: views cooldown_decisions and events.';

-- +goose Down
CREATE INDEX events_by_new_migration ON evictrail.events (cluster, namespace, occurred_at) WHERE kind = 'migration_seen';
COMMENT ON INDEX evictrail.events_by_new_migration IS 'Which migrations a request in their namespace made: derive their VMs again.';
DROP INDEX evictrail.events_by_namespace, evictrail.cooldown_decisions_by_namespace;
