-- +goose Up
-- When each derived row came or last changed, by the database's clock, so that programs can ask for what is new. Rows that are there
-- get the time of this schema migration. A program that does not know of the column writes NULL into it; the next one to derive
-- such a row writes it anew.
ALTER TABLE evictrail.eviction_requests ADD COLUMN changed_at timestamptz DEFAULT now();
ALTER TABLE evictrail.evacuations ADD COLUMN changed_at timestamptz DEFAULT now();
ALTER TABLE evictrail.migrations ADD COLUMN changed_at timestamptz DEFAULT now();
ALTER TABLE evictrail.placements ADD COLUMN changed_at timestamptz DEFAULT now();
ALTER TABLE evictrail.cooldown_decisions ADD COLUMN changed_at timestamptz DEFAULT now();
ALTER TABLE evictrail.loops ADD COLUMN changed_at timestamptz DEFAULT now();
ALTER TABLE evictrail.drains ADD COLUMN changed_at timestamptz DEFAULT now();
ALTER TABLE evictrail.drain_blockers ADD COLUMN changed_at timestamptz DEFAULT now();
ALTER TABLE evictrail.gaps ADD COLUMN changed_at timestamptz DEFAULT now();
ALTER TABLE evictrail.timeline ADD COLUMN changed_at timestamptz DEFAULT now();

CREATE INDEX eviction_requests_by_change ON evictrail.eviction_requests (changed_at);
COMMENT ON INDEX evictrail.eviction_requests_by_change IS 'What came or changed since a time: view eviction_requests.';
CREATE INDEX evacuations_by_change ON evictrail.evacuations (changed_at);
COMMENT ON INDEX evictrail.evacuations_by_change IS 'What came or changed since a time: view evacuations.';
CREATE INDEX migrations_by_change ON evictrail.migrations (changed_at);
COMMENT ON INDEX evictrail.migrations_by_change IS 'What came or changed since a time: view migrations.';
CREATE INDEX placements_by_change ON evictrail.placements (changed_at);
COMMENT ON INDEX evictrail.placements_by_change IS 'What came or changed since a time: view placements.';
CREATE INDEX cooldown_decisions_by_change ON evictrail.cooldown_decisions (changed_at);
COMMENT ON INDEX evictrail.cooldown_decisions_by_change IS 'What came or changed since a time: view cooldown_decisions.';
CREATE INDEX loops_by_change ON evictrail.loops (changed_at);
COMMENT ON INDEX evictrail.loops_by_change IS 'What came or changed since a time: view loops.';
CREATE INDEX drains_by_change ON evictrail.drains (changed_at);
COMMENT ON INDEX evictrail.drains_by_change IS 'What came or changed since a time: view drains.';
CREATE INDEX drain_blockers_by_change ON evictrail.drain_blockers (changed_at);
COMMENT ON INDEX evictrail.drain_blockers_by_change IS 'What came or changed since a time: view drain_blockers.';
CREATE INDEX gaps_by_change ON evictrail.gaps (changed_at);
COMMENT ON INDEX evictrail.gaps_by_change IS 'What came or changed since a time: view gaps.';
CREATE INDEX timeline_by_change ON evictrail.timeline (changed_at);
COMMENT ON INDEX evictrail.timeline_by_change IS 'What came or changed since a time: view timeline.';

CREATE OR REPLACE VIEW evictrail_v1.eviction_requests AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, request_id, requested_at, answered_at, pod, requester, requester_class, user_agent, stated_reason, source,
    confidence, dry_run, answer, answer_code, answer_text, effect, evacuation_id, repeat_of, repeats, last_repeat_at, evidence, seen_late, event_id,
    changed_at
FROM evictrail.eviction_requests;
CREATE OR REPLACE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at,
    changed_at
FROM evictrail.evacuations;
CREATE OR REPLACE VIEW evictrail_v1.migrations AS
SELECT
    cluster, namespace, vmi, vmi_uid, source_node AS node, migration, migration_uid, trigger, trigger_confidence, trigger_evidence, evacuation_id,
    attempt, priority, source_node, target_node, created_at, pending_at, scheduling_at, scheduled_at, preparing_target_at, target_ready_at,
    running_at, finished_at, phase, greatest(scheduling_at - created_at, interval '0') AS queue_wait,
    greatest(finished_at - created_at, interval '0') AS duration, outcome, failure_class, failure_reason, failure_text, failure_evidence, mode,
    policy, seen_late, requester, aborted_by, wait_reason, wait_detail,
    changed_at
FROM evictrail.migrations;
CREATE OR REPLACE VIEW evictrail_v1.placements AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, placement_id, from_at, to_at, arrived_by, left_by, seen_late, ended_by, strategy, not_migratable,
    not_migratable_since, opted_out,
    changed_at
FROM evictrail.placements;
CREATE OR REPLACE VIEW evictrail_v1.cooldown_decisions AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, decision_id, decided_at, layer, verdict, reason, make_interval(secs => base_seconds) AS base, count,
    make_interval(secs => effective_seconds) AS effective, until, make_interval(secs => cap_seconds) AS cap,
    make_interval(secs => window_seconds) AS history_window, capped, model, origin, inputs, event_id,
    changed_at
FROM evictrail.cooldown_decisions;
CREATE OR REPLACE VIEW evictrail_v1.loops AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, loop_id, kind, path, opened_at, closed_at, closed_by, summary, advice, counts, evidence,
    changed_at
FROM evictrail.loops;
CREATE OR REPLACE VIEW evictrail_v1.drains AS
SELECT
    cluster, node, drain_id, started_at, ended_at, requester, requester_class, vmis_total, vmis_left, outcome, last_asked_at,
    changed_at
FROM evictrail.drains;
CREATE OR REPLACE VIEW evictrail_v1.drain_blockers AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, drain_id, blocker, reason, next, waiting_since,
    changed_at
FROM evictrail.drain_blockers;
CREATE OR REPLACE VIEW evictrail_v1.gaps AS
SELECT
    cluster, gap_id, source, opened_at, closed_at, cause, detail,
    changed_at
FROM evictrail.gaps;
CREATE OR REPLACE VIEW evictrail_v1.timeline AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, at, kind, reason, sentence, event_id, seen_late,
    changed_at
FROM evictrail.timeline;
COMMENT ON COLUMN evictrail_v1.eviction_requests.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.evacuations.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.migrations.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.placements.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.loops.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.drains.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.gaps.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.timeline.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';

CREATE OR REPLACE VIEW evictrail_v1.events AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, id AS event_id, occurred_at AS at, clock, observed_at, stored_at, kind, reason, migration, migration_uid,
    object_kind, object_uid, object_version, what, value, evidence, detail, seen_late,
    stored_at AS changed_at
FROM evictrail.events
UNION ALL
SELECT
    cluster, namespace, vmi, vmi_uid, node, decision_id, decided_at, NULL, NULL, NULL, 'cooldown_decided', reason, inputs ->> 'migration',
    inputs ->> 'migration_uid', 'Decision', decision_id::text, '', layer, verdict, model, to_jsonb(d) - 'cluster' - 'subject' - 'changed_at', false,
    changed_at
FROM evictrail.cooldown_decisions AS d;
COMMENT ON COLUMN evictrail_v1.events.changed_at IS 'When a fact was stored, or a decision came or last changed; see evacuations.changed_at.';

CREATE INDEX events_by_change ON evictrail.events (stored_at);
COMMENT ON INDEX evictrail.events_by_change IS 'What was stored since a time: view events.';

-- Lists by VM, node and time, each as readers of the views ask for them.
CREATE INDEX eviction_requests_by_vmi ON evictrail.eviction_requests (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.eviction_requests_by_vmi IS 'The requests about one VM, or in one namespace: view eviction_requests.';
CREATE INDEX evacuations_by_vmi ON evictrail.evacuations (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.evacuations_by_vmi IS 'The evacuations of one VM, or in one namespace: view evacuations.';
CREATE INDEX migrations_by_vmi ON evictrail.migrations (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.migrations_by_vmi IS 'The migrations of one VM, or in one namespace: view migrations.';
CREATE INDEX placements_by_vmi ON evictrail.placements (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.placements_by_vmi IS 'Where one VM ran, or those of one namespace: view placements.';
CREATE INDEX placements_by_time ON evictrail.placements (from_at);
COMMENT ON INDEX evictrail.placements_by_time IS 'Newest placements: view placements.';
CREATE INDEX cooldown_decisions_by_vmi ON evictrail.cooldown_decisions (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.cooldown_decisions_by_vmi IS 'The decisions about one VM, or in one namespace: view cooldown_decisions.';
DROP INDEX evictrail.cooldown_decisions_by_node;
CREATE INDEX cooldown_decisions_by_node ON evictrail.cooldown_decisions (cluster, node, decided_at);
COMMENT ON INDEX evictrail.cooldown_decisions_by_node IS 'Derive a node: which VMs a counter of the descheduler can be about. The decisions about the guests of one node: views cooldown_decisions and events.';
CREATE INDEX timeline_by_node ON evictrail.timeline (cluster, node, at);
COMMENT ON INDEX evictrail.timeline_by_node IS 'The story of one node: view timeline.';
CREATE INDEX events_by_node ON evictrail.events (cluster, node, occurred_at) WHERE node IS NOT NULL;
COMMENT ON INDEX evictrail.events_by_node IS 'The facts about one node: view events.';
CREATE INDEX migrations_held_long ON evictrail.migrations (cluster, scheduling_at)
    WHERE scheduling_at IS NOT NULL AND (finished_at IS NULL OR finished_at - scheduling_at > interval '1 hour');
COMMENT ON INDEX evictrail.migrations_held_long IS 'Who held the slots while a migration waited, and took them long before.';
CREATE INDEX eviction_requests_by_source ON evictrail.eviction_requests (cluster, source);
COMMENT ON INDEX evictrail.eviction_requests_by_source IS 'Which sources of requests a cluster has.';

-- What holds VMs back now, as before, but found through cooldown_decisions_holding: OFFSET 0 has Postgres look up each cluster's few rows
-- by themselves, where it guessed that a third of all decisions hold still.
CREATE OR REPLACE VIEW evictrail_v1.cooldowns_now AS
SELECT
    c.cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    (array_agg(layer ORDER BY until DESC))[1] AS layer,
    (array_agg(make_interval(secs => effective_seconds) ORDER BY until DESC))[1] AS effective,
    max(until) AS until,
    max(until) - alive_at AS remaining,
    max(until) FILTER (WHERE layer = 'descheduler_cooldown') AS descheduler_cooldown_until,
    max(until) FILTER (WHERE layer = 'node_damping') AS node_damping_until,
    max(until) FILTER (WHERE layer = 'kubevirt_backoff') AS kubevirt_backoff_until
FROM evictrail.clusters AS c
CROSS JOIN LATERAL (
    SELECT *
    FROM evictrail.cooldown_decisions AS h
    WHERE h.cluster = c.cluster
      AND h.verdict = 'holds'
      AND h.until > c.alive_at
    OFFSET 0
) AS d
WHERE d.decided_at <= c.alive_at
  AND NOT EXISTS (
    SELECT FROM evictrail.cooldown_decisions AS later
    WHERE later.cluster = d.cluster
      AND later.subject = d.subject
      AND later.layer = d.layer
      AND later.vmi_uid = d.vmi_uid
      AND (later.verdict = 'holds' AND later.decided_at > d.decided_at OR later.verdict = 'released' AND later.decided_at >= d.decided_at)
    OFFSET 0
  )
GROUP BY c.cluster, namespace, vmi, vmi_uid, node, alive_at;

-- Search.
CREATE INDEX subjects_named ON evictrail.subjects (cluster, subject) WHERE subject LIKE 'vmi:%' OR subject LIKE 'node:%';
COMMENT ON INDEX evictrail.subjects_named IS 'Search, and names to complete: VMs and nodes, without the many more pods.';
CREATE INDEX migrations_by_name ON evictrail.migrations (migration COLLATE "C");
COMMENT ON INDEX evictrail.migrations_by_name IS 'Search: migrations by the beginning of their names.';
CREATE INDEX migrations_by_uid ON evictrail.migrations (migration_uid);
COMMENT ON INDEX evictrail.migrations_by_uid IS 'Search: a migration by its UID.';
CREATE INDEX placements_by_uid ON evictrail.placements (vmi_uid);
COMMENT ON INDEX evictrail.placements_by_uid IS 'Search: a VM by the UID of its VMI.';

-- Every cluster is named there, one of which only an audit log was imported as well.
INSERT INTO evictrail.clusters (cluster, alive_at)
SELECT DISTINCT cluster, to_timestamp(0)
FROM evictrail.subjects
ON CONFLICT DO NOTHING;

CREATE VIEW evictrail_v1.clusters AS
SELECT
    cluster,
    nullif(alive_at, to_timestamp(0)) AS last_seen_at
FROM evictrail.clusters;
COMMENT ON VIEW evictrail_v1.clusters IS 'Clusters: those that are recorded, and up to when.';
COMMENT ON COLUMN evictrail_v1.clusters.cluster IS 'Name of the cluster: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.clusters.last_seen_at IS 'Up to when what happened there is stored. NULL where nothing was seen yet.';

-- +goose Down
DROP VIEW evictrail_v1.clusters;
DROP INDEX evictrail.events_by_change, evictrail.migrations_by_name, evictrail.migrations_by_uid, evictrail.placements_by_uid,
    evictrail.eviction_requests_by_vmi, evictrail.evacuations_by_vmi, evictrail.migrations_by_vmi, evictrail.placements_by_vmi,
    evictrail.placements_by_time, evictrail.cooldown_decisions_by_vmi, evictrail.timeline_by_node, evictrail.events_by_node,
    evictrail.eviction_requests_by_source, evictrail.migrations_held_long, evictrail.subjects_named, evictrail.cooldown_decisions_by_node;
CREATE INDEX cooldown_decisions_by_node ON evictrail.cooldown_decisions (cluster, node);
COMMENT ON INDEX evictrail.cooldown_decisions_by_node IS 'Derive a node: which VMs a counter of the descheduler can be about.';
CREATE OR REPLACE VIEW evictrail_v1.cooldowns_now AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    (array_agg(layer ORDER BY until DESC))[1] AS layer,
    (array_agg(make_interval(secs => effective_seconds) ORDER BY until DESC))[1] AS effective,
    max(until) AS until,
    max(until) - alive_at AS remaining,
    max(until) FILTER (WHERE layer = 'descheduler_cooldown') AS descheduler_cooldown_until,
    max(until) FILTER (WHERE layer = 'node_damping') AS node_damping_until,
    max(until) FILTER (WHERE layer = 'kubevirt_backoff') AS kubevirt_backoff_until
FROM evictrail.cooldown_decisions AS d
JOIN evictrail.clusters AS c USING (cluster)
WHERE d.verdict = 'holds'
  AND d.until > c.alive_at
  AND d.decided_at <= c.alive_at
  AND NOT EXISTS (
    SELECT FROM evictrail.cooldown_decisions AS later
    WHERE later.cluster = d.cluster
      AND later.subject = d.subject
      AND later.layer = d.layer
      AND later.vmi_uid = d.vmi_uid
      AND (later.verdict = 'holds' AND later.decided_at > d.decided_at OR later.verdict = 'released' AND later.decided_at >= d.decided_at)
  )
GROUP BY cluster, namespace, vmi, vmi_uid, node, alive_at;
DROP VIEW evictrail_v1.events;
DROP VIEW evictrail_v1.eviction_requests;
DROP VIEW evictrail_v1.evacuations;
DROP VIEW evictrail_v1.migrations;
DROP VIEW evictrail_v1.placements;
DROP VIEW evictrail_v1.cooldown_decisions;
DROP VIEW evictrail_v1.loops;
DROP VIEW evictrail_v1.drains;
DROP VIEW evictrail_v1.drain_blockers;
DROP VIEW evictrail_v1.gaps;
DROP VIEW evictrail_v1.timeline;
ALTER TABLE evictrail.eviction_requests DROP COLUMN changed_at;
ALTER TABLE evictrail.evacuations DROP COLUMN changed_at;
ALTER TABLE evictrail.migrations DROP COLUMN changed_at;
ALTER TABLE evictrail.placements DROP COLUMN changed_at;
ALTER TABLE evictrail.cooldown_decisions DROP COLUMN changed_at;
ALTER TABLE evictrail.loops DROP COLUMN changed_at;
ALTER TABLE evictrail.drains DROP COLUMN changed_at;
ALTER TABLE evictrail.drain_blockers DROP COLUMN changed_at;
ALTER TABLE evictrail.gaps DROP COLUMN changed_at;
ALTER TABLE evictrail.timeline DROP COLUMN changed_at;
CREATE VIEW evictrail_v1.eviction_requests AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, request_id, requested_at, answered_at, pod, requester, requester_class, user_agent, stated_reason, source,
    confidence, dry_run, answer, answer_code, answer_text, effect, evacuation_id, repeat_of, repeats, last_repeat_at, evidence, seen_late, event_id
FROM evictrail.eviction_requests;
CREATE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at
FROM evictrail.evacuations;
CREATE VIEW evictrail_v1.migrations AS
SELECT
    cluster, namespace, vmi, vmi_uid, source_node AS node, migration, migration_uid, trigger, trigger_confidence, trigger_evidence, evacuation_id,
    attempt, priority, source_node, target_node, created_at, pending_at, scheduling_at, scheduled_at, preparing_target_at, target_ready_at,
    running_at, finished_at, phase, greatest(scheduling_at - created_at, interval '0') AS queue_wait,
    greatest(finished_at - created_at, interval '0') AS duration, outcome, failure_class, failure_reason, failure_text, failure_evidence, mode,
    policy, seen_late, requester, aborted_by, wait_reason, wait_detail
FROM evictrail.migrations;
CREATE VIEW evictrail_v1.placements AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, placement_id, from_at, to_at, arrived_by, left_by, seen_late, ended_by, strategy, not_migratable,
    not_migratable_since, opted_out
FROM evictrail.placements;
CREATE VIEW evictrail_v1.cooldown_decisions AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, decision_id, decided_at, layer, verdict, reason, make_interval(secs => base_seconds) AS base, count,
    make_interval(secs => effective_seconds) AS effective, until, make_interval(secs => cap_seconds) AS cap,
    make_interval(secs => window_seconds) AS history_window, capped, model, origin, inputs, event_id
FROM evictrail.cooldown_decisions;
CREATE VIEW evictrail_v1.loops AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, loop_id, kind, path, opened_at, closed_at, closed_by, summary, advice, counts, evidence
FROM evictrail.loops;
CREATE VIEW evictrail_v1.drains AS
SELECT
    cluster, node, drain_id, started_at, ended_at, requester, requester_class, vmis_total, vmis_left, outcome, last_asked_at
FROM evictrail.drains;
CREATE VIEW evictrail_v1.drain_blockers AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, drain_id, blocker, reason, next, waiting_since
FROM evictrail.drain_blockers;
CREATE VIEW evictrail_v1.gaps AS
SELECT
    cluster, gap_id, source, opened_at, closed_at, cause, detail
FROM evictrail.gaps;
CREATE VIEW evictrail_v1.timeline AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, at, kind, reason, sentence, event_id, seen_late
FROM evictrail.timeline;
CREATE VIEW evictrail_v1.events AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, id AS event_id, occurred_at AS at, clock, observed_at, stored_at, kind, reason, migration, migration_uid,
    object_kind, object_uid, object_version, what, value, evidence, detail, seen_late
FROM evictrail.events
UNION ALL
SELECT
    cluster, namespace, vmi, vmi_uid, node, decision_id, decided_at, NULL, NULL, NULL, 'cooldown_decided', reason, inputs ->> 'migration',
    inputs ->> 'migration_uid', 'Decision', decision_id::text, '', layer, verdict, model, to_jsonb(d) - 'cluster' - 'subject', false
FROM evictrail.cooldown_decisions AS d;
