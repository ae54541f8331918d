-- +goose Up
-- What holds VMs back, what does not converge, and drains: derived of VMs, of nodes, and of the cluster as a whole.
CREATE TABLE evictrail.cooldown_decisions (
    cluster           text             NOT NULL,
    subject           text             NOT NULL,
    decision_id       uuid             NOT NULL,
    namespace         text             NOT NULL,
    vmi               text,
    vmi_uid           text,
    node              text,
    decided_at        timestamptz      NOT NULL,
    layer             text             NOT NULL CHECK (layer IN ('descheduler_cooldown', 'node_damping', 'kubevirt_backoff')),
    verdict           text             NOT NULL CHECK (verdict IN ('holds', 'blocked', 'released')),
    reason            text             NOT NULL CHECK (reason IN ('migration_completed', 'computed_anew', 'migration_failed', 'migration_in_progress', 'cooldown', 'expired', 'over', 'observed_block')),
    base_seconds      double precision CHECK (base_seconds >= 0),
    count             integer          CHECK (count >= 0),
    effective_seconds double precision CHECK (effective_seconds >= 0),
    until             timestamptz,
    cap_seconds       double precision CHECK (cap_seconds >= 0),
    window_seconds    double precision CHECK (window_seconds >= 0),
    capped            boolean          NOT NULL,
    model             text             NOT NULL,
    origin            text             NOT NULL CHECK (origin IN ('derived', 'observed')),
    inputs            jsonb            NOT NULL,
    event_id          uuid,
    PRIMARY KEY (cluster, subject, decision_id),
    CHECK (verdict <> 'holds' OR until IS NOT NULL)
);
CREATE INDEX cooldown_decisions_by_time ON evictrail.cooldown_decisions (decided_at);
COMMENT ON INDEX evictrail.cooldown_decisions_by_time IS 'Newest decisions: view cooldown_decisions.';
CREATE INDEX cooldown_decisions_holding ON evictrail.cooldown_decisions (cluster, until) WHERE verdict = 'holds';
COMMENT ON INDEX evictrail.cooldown_decisions_holding IS 'What holds now: view cooldowns_now.';
CREATE INDEX cooldown_decisions_by_node ON evictrail.cooldown_decisions (cluster, node);
COMMENT ON INDEX evictrail.cooldown_decisions_by_node IS 'Derive a node: which VMs a counter of the descheduler can be about.';

CREATE TABLE evictrail.loops (
    cluster   text        NOT NULL,
    subject   text        NOT NULL,
    loop_id   uuid        NOT NULL,
    kind      text        NOT NULL CHECK (kind IN ('dual_retry', 'endless_retry', 'ping_pong', 'churn', 'budget_pinned', 'priority_inversion', 'unanswered_external')),
    path      text        CHECK (path IN ('annotation_lost', 'free_slot', 'request_forgotten', 'gate_off', 'unclassified')),
    namespace text,
    vmi       text,
    vmi_uid   text,
    node      text,
    opened_at timestamptz NOT NULL,
    closed_at timestamptz,
    closed_by text        CHECK (closed_by IN ('migrated', 'cancelled', 'vmi_gone', 'quiet', 'became_dual_retry', 'refuted')),
    summary   text        NOT NULL,
    advice    text        NOT NULL,
    counts    jsonb       NOT NULL,
    evidence  jsonb       NOT NULL,
    PRIMARY KEY (cluster, subject, loop_id),
    CHECK ((closed_at IS NULL) = (closed_by IS NULL)),
    CHECK ((kind = 'dual_retry') = (path IS NOT NULL))
);
CREATE INDEX loops_by_time ON evictrail.loops (opened_at);
COMMENT ON INDEX evictrail.loops_by_time IS 'Newest loops: view loops.';

CREATE TABLE evictrail.drains (
    cluster         text        NOT NULL,
    subject         text        NOT NULL,
    drain_id        uuid        NOT NULL,
    node            text        NOT NULL,
    started_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    requester       text,
    requester_class text        NOT NULL,
    vmis_total      integer     NOT NULL CHECK (vmis_total >= 0),
    vmis_left       integer     NOT NULL CHECK (vmis_left >= 0),
    outcome         text        CHECK (outcome IN ('emptied', 'abandoned', 'node_gone')),
    last_asked_at   timestamptz,
    PRIMARY KEY (cluster, subject, drain_id),
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX drains_by_time ON evictrail.drains (started_at);
COMMENT ON INDEX evictrail.drains_by_time IS 'Newest drains: view drains.';

CREATE TABLE evictrail.drain_blockers (
    cluster       text        NOT NULL,
    subject       text        NOT NULL,
    drain_id      uuid        NOT NULL,
    node          text        NOT NULL,
    namespace     text        NOT NULL,
    vmi           text        NOT NULL,
    vmi_uid       text        NOT NULL,
    blocker       text        NOT NULL CHECK (blocker IN ('not_migratable', 'failing', 'queued', 'migrating', 'external', 'opted_out', 'pdb')),
    reason        text        NOT NULL,
    next          text        NOT NULL,
    waiting_since timestamptz NOT NULL,
    PRIMARY KEY (cluster, subject, vmi_uid)
);
CREATE INDEX drain_blockers_by_time ON evictrail.drain_blockers (waiting_since);
COMMENT ON INDEX evictrail.drain_blockers_by_time IS 'What drains wait for: view drain_blockers.';

ALTER TABLE evictrail.evacuations ADD COLUMN next_retry_at timestamptz, ADD COLUMN in_progress text, ADD COLUMN in_progress_lost_at timestamptz;
ALTER TABLE evictrail.migrations
    ADD COLUMN wait_reason text CHECK (wait_reason IN ('deleting', 'quota', 'backup', 'utility_volumes', 'backoff', 'leftover_pods', 'cluster_limit', 'node_limit', 'queued')),
    ADD COLUMN wait_detail text, ADD COLUMN end_event uuid, ADD COLUMN end_seen_at timestamptz;
ALTER TABLE evictrail.placements
    ADD COLUMN strategy text, ADD COLUMN not_migratable text, ADD COLUMN not_migratable_since timestamptz, ADD COLUMN opted_out boolean;
ALTER TABLE evictrail.eviction_requests ADD COLUMN event_id uuid, ADD COLUMN salient boolean;

CREATE INDEX evacuations_by_node ON evictrail.evacuations (cluster, node);
COMMENT ON INDEX evictrail.evacuations_by_node IS 'Derive a node: its evacuations.';
CREATE INDEX eviction_requests_by_node ON evictrail.eviction_requests (cluster, node);
COMMENT ON INDEX evictrail.eviction_requests_by_node IS 'Derive a node: what was asked of it.';
CREATE INDEX migrations_by_source ON evictrail.migrations (cluster, source_node);
COMMENT ON INDEX evictrail.migrations_by_source IS 'Derive a node: the migrations that leave it.';
CREATE INDEX migrations_by_slot ON evictrail.migrations (cluster, scheduling_at) WHERE scheduling_at IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_by_slot IS 'Who held the slots while a migration waited.';
CREATE INDEX migrations_waiting ON evictrail.migrations (cluster, created_at) WHERE wait_reason IN ('queued', 'cluster_limit', 'node_limit');
COMMENT ON INDEX evictrail.migrations_waiting IS 'Whom a slot that is taken or freed concerns: derive again.';
CREATE INDEX evacuations_stuck ON evictrail.evacuations (cluster, marked_at) WHERE ended_at IS NULL OR ended_at - marked_at > interval '5 minutes';
COMMENT ON INDEX evictrail.evacuations_stuck IS 'Derive the cluster: evacuations that may hold slots for long.';

-- What facts about nodes, rules and the descheduler put in another light: ends of migrations, too.
DROP INDEX evictrail.events_by_evacuated_node;
CREATE INDEX events_by_evacuated_node ON evictrail.events (cluster, node, occurred_at)
    WHERE kind IN ('evacuation_marked', 'migration_seen', 'migration_completed');
COMMENT ON INDEX evictrail.events_by_evacuated_node IS 'Which VMs a fact about a node, the rules or the descheduler concerns: derive again.';

-- When time alone changes what is derived of a subject, such as a cooldown that runs out.
ALTER TABLE evictrail.subjects ADD COLUMN next_at timestamptz;
CREATE INDEX subjects_due ON evictrail.subjects (cluster, next_at) WHERE next_at IS NOT NULL;
COMMENT ON INDEX evictrail.subjects_due IS 'What time alone changes: derive again.';

-- The thresholds of loops where they are not those of the design.
ALTER TABLE evictrail.clusters ADD COLUMN thresholds jsonb;

CREATE VIEW evictrail_v1.cooldown_decisions AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    decision_id,
    decided_at,
    layer,
    verdict,
    reason,
    make_interval(secs => base_seconds) AS base,
    count,
    make_interval(secs => effective_seconds) AS effective,
    until,
    make_interval(secs => cap_seconds) AS cap,
    make_interval(secs => window_seconds) AS history_window,
    capped,
    model,
    origin,
    inputs,
    event_id
FROM evictrail.cooldown_decisions;
COMMENT ON VIEW evictrail_v1.cooldown_decisions IS 'Cooldown decisions: when something began to hold a VM back, what met it, and when it was over, each with its inputs.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.vmi IS 'Name of the VirtualMachineInstance. NULL for observed ones: the counter names no VM, inputs has the candidates.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.node IS 'Node of the guest at that time.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.decision_id IS 'Identity of the decision; it stays the same when the row is derived again.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.decided_at IS 'When it was decided: the end of the migration, the failure, the act that met it, the time at which it was over, or of the scrape.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.layer IS 'Who holds the VM back: descheduler_cooldown, node_damping, kubevirt_backoff.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.verdict IS 'holds (it begins), blocked (an act met it: it was stopped, or should have been), released (it is over).';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.reason IS 'migration_completed, migration_failed (it begins); computed_anew (the descheduler was started, or its policy changed, while it held); migration_in_progress, cooldown (an act met one); expired, over (what it held back ended before); observed_block (a counter of the descheduler rose).';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.base IS 'Shortest wait. NULL where the decision has none.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.count IS 'Completions in the memory of the descheduler, failed attempts that KubeVirt still sees, or observed blocks. NULL where the decision has none.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.effective IS 'How long it holds. NULL where the decision has none.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.until IS 'Until when. NULL where the decision has none.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.cap IS 'The most that it may be. NULL where there is no limit.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.history_window IS 'In which completions count. NULL for a backoff.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.capped IS 'True where it would be longer without the limit.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.model IS 'Whose rules were followed: >=4.22 or 4.21 (the descheduler), kubevirt.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.origin IS 'derived (by our model) or observed (by a counter of the descheduler).';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.inputs IS 'What else it was computed from: completions, failed migrations, what the true history would give, candidates.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.event_id IS 'The fact that it follows from. NULL where several do.';

CREATE VIEW evictrail_v1.cooldowns_now AS
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
COMMENT ON VIEW evictrail_v1.cooldowns_now IS 'What holds VMs back now, one row per VM. Now is when evictrail last saw the cluster.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.node IS 'Node of the guest.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.layer IS 'The layer that holds it longest.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.effective IS 'How long that one holds in all.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.until IS 'Until when it is held back.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.remaining IS 'How long that still is.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.descheduler_cooldown_until IS 'The descheduler leaves it alone until then. NULL where it does not.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.node_damping_until IS 'The node is spared until then. NULL where it is not.';
COMMENT ON COLUMN evictrail_v1.cooldowns_now.kubevirt_backoff_until IS 'KubeVirt makes no next attempt before. NULL where none waits.';

CREATE VIEW evictrail_v1.loops AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    loop_id,
    kind,
    path,
    opened_at,
    closed_at,
    closed_by,
    summary,
    advice,
    counts,
    evidence
FROM evictrail.loops;
COMMENT ON VIEW evictrail_v1.loops IS 'Loops: episodes of repetition that do not converge, with their evidence and what to do.';
COMMENT ON COLUMN evictrail_v1.loops.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.loops.namespace IS 'Namespace of the VMI. NULL where it is about slots, not one VM.';
COMMENT ON COLUMN evictrail_v1.loops.vmi IS 'The VM that is stuck or moved. NULL where it is about slots, not one VM.';
COMMENT ON COLUMN evictrail_v1.loops.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is about slots, not one VM.';
COMMENT ON COLUMN evictrail_v1.loops.node IS 'Node that it goes on at. NULL where it is about no single node.';
COMMENT ON COLUMN evictrail_v1.loops.loop_id IS 'Identity of the loop; it stays the same when the row is derived again.';
COMMENT ON COLUMN evictrail_v1.loops.kind IS 'dual_retry, endless_retry, ping_pong, churn, budget_pinned, priority_inversion, unanswered_external.';
COMMENT ON COLUMN evictrail_v1.loops.path IS 'By which way a dual_retry comes about: annotation_lost, free_slot, request_forgotten, gate_off, unclassified. NULL for other kinds.';
COMMENT ON COLUMN evictrail_v1.loops.opened_at IS 'When its condition became true, not when that was noticed.';
COMMENT ON COLUMN evictrail_v1.loops.closed_at IS 'When it was over. NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.loops.closed_by IS 'migrated, cancelled, vmi_gone, quiet (nothing that belongs to it for a while), became_dual_retry, refuted (later facts show that it never was). NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.loops.summary IS 'What goes on, in a sentence.';
COMMENT ON COLUMN evictrail_v1.loops.advice IS 'What to do; indented lines can be pasted.';
COMMENT ON COLUMN evictrail_v1.loops.counts IS 'How often what happened.';
COMMENT ON COLUMN evictrail_v1.loops.evidence IS 'What it rests on, in the order of time: at, vmi, text and the event_id of the fact. Of many, the first and the last.';

CREATE VIEW evictrail_v1.drains AS
SELECT
    cluster,
    node,
    drain_id,
    started_at,
    ended_at,
    requester,
    requester_class,
    vmis_total,
    vmis_left,
    outcome,
    last_asked_at
FROM evictrail.drains;
COMMENT ON VIEW evictrail_v1.drains IS 'Drains: sessions in which a node is emptied, from its cordon or the first request to its end.';
COMMENT ON COLUMN evictrail_v1.drains.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.drains.node IS 'Node that is emptied.';
COMMENT ON COLUMN evictrail_v1.drains.drain_id IS 'Identity of the drain.';
COMMENT ON COLUMN evictrail_v1.drains.started_at IS 'When the node was cordoned for it, else the first request.';
COMMENT ON COLUMN evictrail_v1.drains.ended_at IS 'When it was over. NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.drains.requester IS 'User name of who asked first. NULL where nobody saw that.';
COMMENT ON COLUMN evictrail_v1.drains.requester_class IS 'What sort of program asked first; see eviction_requests.requester_class.';
COMMENT ON COLUMN evictrail_v1.drains.vmis_total IS 'Guests that were on the node since it began.';
COMMENT ON COLUMN evictrail_v1.drains.vmis_left IS 'Guests that are left, or were at its end.';
COMMENT ON COLUMN evictrail_v1.drains.outcome IS 'emptied (no guest is left), abandoned (the node takes pods again, or nobody asks any more), node_gone. NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.drains.last_asked_at IS 'When it was last asked for, repetitions by the minute.';

CREATE VIEW evictrail_v1.drain_blockers AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    drain_id,
    blocker,
    reason,
    next,
    waiting_since
FROM evictrail.drain_blockers;
COMMENT ON VIEW evictrail_v1.drain_blockers IS 'Drain blockers: each VM that the last drain of a node has left, or left behind, and why.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.vmi_uid IS 'UID of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.node IS 'Node that is emptied.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.drain_id IS 'The drain.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.blocker IS 'not_migratable, failing, queued, migrating, external, opted_out (its strategy does not ask to be moved), pdb.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.reason IS 'The cause in words.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.next IS 'What KubeVirt will do by itself.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.waiting_since IS 'Since when it blocks the drain.';

CREATE OR REPLACE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence,
    ended_at, outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by,
    next_retry_at,
    in_progress,
    in_progress_lost_at
FROM evictrail.evacuations;
COMMENT ON COLUMN evictrail_v1.evacuations.next_retry_at IS 'Before then KubeVirt makes no next attempt. NULL unless one waits for that.';
COMMENT ON COLUMN evictrail_v1.evacuations.in_progress IS 'Value of the annotation eviction-in-progress on the source pod: true, or kubevirt (up to v1.6.0). NULL where none was seen.';
COMMENT ON COLUMN evictrail_v1.evacuations.in_progress_lost_at IS 'When that annotation was taken off although the evacuation was open. NULL where it was not, or came back.';

CREATE OR REPLACE VIEW evictrail_v1.migrations AS
SELECT
    cluster, namespace, vmi, vmi_uid, source_node AS node, migration, migration_uid, trigger, trigger_confidence, trigger_evidence,
    evacuation_id, attempt, priority, source_node, target_node, created_at, pending_at, scheduling_at, scheduled_at, preparing_target_at,
    target_ready_at, running_at, finished_at, phase,
    greatest(scheduling_at - created_at, interval '0') AS queue_wait,
    greatest(finished_at - created_at, interval '0') AS duration,
    outcome, failure_class, failure_reason, failure_text, failure_evidence, mode, policy, seen_late, requester, aborted_by,
    wait_reason,
    wait_detail
FROM evictrail.migrations;
COMMENT ON COLUMN evictrail_v1.migrations.wait_reason IS 'Why it has no target pod yet or, once it has, for what it waited longest: deleting, quota, backup, utility_volumes, backoff, leftover_pods, cluster_limit, node_limit, queued. NULL where it did not wait for 3 s.';
COMMENT ON COLUMN evictrail_v1.migrations.wait_detail IS 'The wait in words: until when, or how full the limits were. NULL where it did not wait.';

CREATE OR REPLACE VIEW evictrail_v1.placements AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, placement_id, from_at, to_at, arrived_by, left_by, seen_late, ended_by,
    strategy,
    not_migratable,
    not_migratable_since,
    opted_out
FROM evictrail.placements;
COMMENT ON COLUMN evictrail_v1.placements.strategy IS 'The VMIs spec.evictionStrategy. NULL where it has none.';
COMMENT ON COLUMN evictrail_v1.placements.not_migratable IS 'Why it could not be live-migrated at the end of the stay, or cannot now. NULL where it can.';
COMMENT ON COLUMN evictrail_v1.placements.not_migratable_since IS 'Since when. NULL where it can be live-migrated.';
COMMENT ON COLUMN evictrail_v1.placements.opted_out IS 'True where its pod asks the descheduler to leave it alone (prefer-no-eviction).';

CREATE OR REPLACE VIEW evictrail_v1.eviction_requests AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, request_id, requested_at, answered_at, pod, requester, requester_class, user_agent, stated_reason,
    source, confidence, dry_run, answer, answer_code, answer_text, effect, evacuation_id, repeat_of, repeats, last_repeat_at, evidence, seen_late,
    event_id
FROM evictrail.eviction_requests;
COMMENT ON COLUMN evictrail_v1.eviction_requests.event_id IS 'The fact that tells of it, as in view events.';

CREATE OR REPLACE VIEW evictrail_v1.events AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, id AS event_id, occurred_at AS at, clock, observed_at, stored_at, kind, reason, migration, migration_uid,
    object_kind, object_uid, object_version, what, value, evidence, detail, seen_late
FROM evictrail.events
UNION ALL
SELECT
    cluster, namespace, vmi, vmi_uid, node, decision_id, decided_at, NULL, NULL, NULL, 'cooldown_decided', reason, inputs ->> 'migration',
    inputs ->> 'migration_uid', 'Decision', decision_id::text, '', layer, verdict, model, to_jsonb(d) - 'cluster' - 'subject', false
FROM evictrail.cooldown_decisions AS d;
COMMENT ON VIEW evictrail_v1.events IS 'Events: every fact, as it was recorded, and every cooldown decision, in one stream.';
COMMENT ON COLUMN evictrail_v1.events.event_id IS 'Identity of the fact, from its natural key; of a decision, its decision_id.';
COMMENT ON COLUMN evictrail_v1.events.clock IS 'Whose clock: apiserver, virt_controller, source_node, emitter, observer (ours). NULL for decisions.';
COMMENT ON COLUMN evictrail_v1.events.observed_at IS 'When evictrail saw it. NULL for decisions.';
COMMENT ON COLUMN evictrail_v1.events.stored_at IS 'When it was stored. NULL for decisions.';
COMMENT ON COLUMN evictrail_v1.events.kind IS 'What sort of fact it is; cooldown_decided for decisions.';

-- Everything is derived anew: nodes were not before, and rows of VMs lack what this brings.
UPDATE evictrail.subjects SET stale_since = to_timestamp(0);

-- +goose Down
DROP VIEW evictrail_v1.events, evictrail_v1.eviction_requests, evictrail_v1.placements, evictrail_v1.migrations, evictrail_v1.evacuations;
DROP VIEW evictrail_v1.drain_blockers, evictrail_v1.drains, evictrail_v1.loops, evictrail_v1.cooldowns_now, evictrail_v1.cooldown_decisions;
DROP TABLE evictrail.cooldown_decisions, evictrail.loops, evictrail.drains, evictrail.drain_blockers;
DROP INDEX evictrail.evacuations_by_node, evictrail.eviction_requests_by_node, evictrail.migrations_by_source, evictrail.migrations_by_slot,
    evictrail.migrations_waiting, evictrail.evacuations_stuck, evictrail.subjects_due;
DROP INDEX evictrail.events_by_evacuated_node;
CREATE INDEX events_by_evacuated_node ON evictrail.events (cluster, node, occurred_at) WHERE kind IN ('evacuation_marked', 'migration_seen');
ALTER TABLE evictrail.subjects DROP COLUMN next_at;
ALTER TABLE evictrail.clusters DROP COLUMN thresholds;
ALTER TABLE evictrail.evacuations DROP COLUMN next_retry_at, DROP COLUMN in_progress, DROP COLUMN in_progress_lost_at;
ALTER TABLE evictrail.migrations DROP COLUMN wait_reason, DROP COLUMN wait_detail, DROP COLUMN end_event, DROP COLUMN end_seen_at;
ALTER TABLE evictrail.placements DROP COLUMN strategy, DROP COLUMN not_migratable, DROP COLUMN not_migratable_since, DROP COLUMN opted_out;
ALTER TABLE evictrail.eviction_requests DROP COLUMN event_id, DROP COLUMN salient;
CREATE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence,
    ended_at, outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late,
    requester,
    cancelled_by
FROM evictrail.evacuations;
CREATE VIEW evictrail_v1.migrations AS
SELECT
    cluster, namespace, vmi, vmi_uid, source_node AS node, migration, migration_uid, trigger, trigger_confidence, trigger_evidence,
    evacuation_id, attempt, priority, source_node, target_node, created_at, pending_at, scheduling_at, scheduled_at, preparing_target_at,
    target_ready_at, running_at, finished_at, phase,
    greatest(scheduling_at - created_at, interval '0') AS queue_wait,
    greatest(finished_at - created_at, interval '0') AS duration,
    outcome, failure_class, failure_reason, failure_text, failure_evidence, mode, policy, seen_late,
    requester,
    aborted_by
FROM evictrail.migrations;
CREATE VIEW evictrail_v1.placements AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, placement_id, from_at, to_at, arrived_by, left_by, seen_late,
    ended_by
FROM evictrail.placements;
CREATE VIEW evictrail_v1.eviction_requests AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    request_id,
    requested_at,
    answered_at,
    pod,
    requester,
    requester_class,
    user_agent,
    stated_reason,
    source,
    confidence,
    dry_run,
    answer,
    answer_code,
    answer_text,
    effect,
    evacuation_id,
    repeat_of,
    repeats,
    last_repeat_at,
    evidence,
    seen_late
FROM evictrail.eviction_requests;
CREATE VIEW evictrail_v1.events AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    id AS event_id,
    occurred_at AS at,
    clock,
    observed_at,
    stored_at,
    kind,
    reason,
    migration,
    migration_uid,
    object_kind,
    object_uid,
    object_version,
    what,
    value,
    evidence,
    detail,
    seen_late
FROM evictrail.events;
