-- +goose Up
-- Who held the slots tells why a migration waited, also of one that waited for something else for longer.
DROP INDEX evictrail.migrations_waiting;
CREATE INDEX migrations_waiting ON evictrail.migrations (cluster, created_at) WHERE wait_reason IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_waiting IS 'Which migrations waited while slots were taken or freed: derive their VMs again.';

-- +goose Down
DROP INDEX evictrail.migrations_waiting;
CREATE INDEX migrations_waiting ON evictrail.migrations (cluster, created_at) WHERE wait_reason IN ('queued', 'cluster_limit', 'node_limit');
