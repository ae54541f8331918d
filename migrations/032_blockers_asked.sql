-- +goose Up
-- When a drain last asked for each VM that it waits for.
ALTER TABLE evictrail.drain_blockers ADD COLUMN last_asked_at timestamptz;
CREATE OR REPLACE VIEW evictrail_v1.drain_blockers AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, drain_id, blocker, reason, next, waiting_since,
    changed_at,
    last_asked_at
FROM evictrail.drain_blockers;
COMMENT ON COLUMN evictrail_v1.drain_blockers.last_asked_at IS 'When the drain last asked to evict it, repetitions by the minute. NULL where it never did.';

-- +goose Down
DROP VIEW evictrail_v1.drain_blockers;
ALTER TABLE evictrail.drain_blockers DROP COLUMN last_asked_at;
CREATE VIEW evictrail_v1.drain_blockers AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, drain_id, blocker, reason, next, waiting_since,
    changed_at
FROM evictrail.drain_blockers;
