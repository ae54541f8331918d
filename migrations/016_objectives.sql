-- +goose Up
-- Within what time an evacuation was to be done, and whether it was.
ALTER TABLE evictrail.evacuations ADD COLUMN objective_seconds double precision CHECK (objective_seconds > 0), ADD COLUMN objective_met boolean;
CREATE OR REPLACE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at, changed_at,
    make_interval(secs => objective_seconds) AS objective,
    objective_met
FROM evictrail.evacuations;
COMMENT ON COLUMN evictrail_v1.evacuations.objective IS 'Time from marked_at within which the guest is to be moved, by evictrail run --evacuation-objective. NULL where there is none for its requester_class.';
COMMENT ON COLUMN evictrail_v1.evacuations.objective_met IS 'True: the guest was moved in time. False: it had not been when the time was over. NULL: it still may be, it was cancelled or its VMI ended in time, or there is no objective.';

-- Those that have one by default are derived anew; the rest is where others are stated.
UPDATE evictrail.subjects AS s
SET stale_since = to_timestamp(0)
WHERE EXISTS (
    SELECT FROM evictrail.evacuations AS e
    WHERE e.cluster = s.cluster AND e.subject = s.subject AND e.requester_class = 'node_maintenance'
);

-- +goose Down
DROP VIEW evictrail_v1.evacuations;
ALTER TABLE evictrail.evacuations DROP COLUMN objective_seconds, DROP COLUMN objective_met;
CREATE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at, changed_at
FROM evictrail.evacuations;
