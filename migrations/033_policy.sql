-- +goose Up
-- Which settings were in force when an eviction was requested, and when an evacuation began (docs/settings.md).
ALTER TABLE evictrail.eviction_requests ADD COLUMN policy text;
ALTER TABLE evictrail.evacuations ADD COLUMN policy text;
CREATE OR REPLACE VIEW evictrail_v1.eviction_requests AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, request_id, requested_at, answered_at, pod, requester, requester_class, user_agent, stated_reason, source,
    confidence, dry_run, answer, answer_code, answer_text, effect, evacuation_id, repeat_of, repeats, last_repeat_at, evidence, seen_late, event_id,
    changed_at, impersonator, source_ip,
    policy
FROM evictrail.eviction_requests;
CREATE OR REPLACE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at, changed_at,
    make_interval(secs => objective_seconds) AS objective,
    objective_met,
    first_failed_at,
    impersonator,
    cancel_impersonator,
    policy
FROM evictrail.evacuations;
COMMENT ON COLUMN evictrail_v1.eviction_requests.policy IS 'Fingerprint of the settings in force when it was requested, such as "kubevirt 1a2b3c, descheduler 4d5e6f"; evictrail settings shows what is behind it. NULL where no settings were seen.';
COMMENT ON COLUMN evictrail_v1.evacuations.policy IS 'Fingerprint of the settings in force when it began; see eviction_requests.policy. NULL where no settings were seen.';

-- What was derived before is derived again, to name them.
UPDATE evictrail.subjects AS s
SET stale_since = to_timestamp(0)
WHERE EXISTS (SELECT FROM evictrail.eviction_requests AS r WHERE r.cluster = s.cluster AND r.subject = s.subject)
   OR EXISTS (SELECT FROM evictrail.evacuations AS e WHERE e.cluster = s.cluster AND e.subject = s.subject);

-- +goose Down
DROP VIEW evictrail_v1.eviction_requests, evictrail_v1.evacuations;
ALTER TABLE evictrail.eviction_requests DROP COLUMN policy;
ALTER TABLE evictrail.evacuations DROP COLUMN policy;
CREATE VIEW evictrail_v1.eviction_requests AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, request_id, requested_at, answered_at, pod, requester, requester_class, user_agent, stated_reason, source,
    confidence, dry_run, answer, answer_code, answer_text, effect, evacuation_id, repeat_of, repeats, last_repeat_at, evidence, seen_late, event_id,
    changed_at, impersonator, source_ip
FROM evictrail.eviction_requests;
CREATE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at, changed_at,
    make_interval(secs => objective_seconds) AS objective,
    objective_met,
    first_failed_at,
    impersonator,
    cancel_impersonator
FROM evictrail.evacuations;
