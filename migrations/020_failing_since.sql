-- +goose Up
-- Since when an evacuation fails.
ALTER TABLE evictrail.evacuations ADD COLUMN first_failed_at timestamptz;
CREATE OR REPLACE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at, changed_at,
    make_interval(secs => objective_seconds) AS objective,
    objective_met,
    first_failed_at
FROM evictrail.evacuations;
COMMENT ON COLUMN evictrail_v1.evacuations.first_failed_at IS 'When the first of its attempts failed. NULL where none has.';
UPDATE evictrail.evacuations AS e
SET first_failed_at = (
    SELECT min(m.finished_at)
    FROM evictrail.migrations AS m
    WHERE m.cluster = e.cluster AND m.subject = e.subject AND m.evacuation_id = e.evacuation_id AND m.outcome = 'failed'
)
WHERE e.failed_attempts > 0;

-- +goose Down
DROP VIEW evictrail_v1.evacuations;
ALTER TABLE evictrail.evacuations DROP COLUMN first_failed_at;
CREATE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at, changed_at,
    make_interval(secs => objective_seconds) AS objective,
    objective_met
FROM evictrail.evacuations;
