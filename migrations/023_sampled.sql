-- +goose Up
-- Dashboards tell long ranges of large clusters by a sample: one in 32 migrations, and those of one in 64 guests (docs/adr/0029). Which they are
-- is said by a hash of the UID, so that it is the same ones whoever asks, and no column has to be written. All that the panels ask of them is in the index:
-- names, the longest of which are clipped to what fits.
CREATE INDEX migrations_sampled ON evictrail.migrations (cluster, created_at) INCLUDE (
    namespace, trigger, outcome, failure_class, failure_reason, source_node, target_node, requester, evacuation_id, vmi, vmi_uid,
    scheduling_at, scheduled_at, target_ready_at, running_at, finished_at
) WHERE hashtext(migration_uid) & 31 = 0;
COMMENT ON INDEX evictrail.migrations_sampled IS 'One in 32 migrations: dashboards, over long ranges.';
CREATE INDEX migrations_of_sampled ON evictrail.migrations (cluster, created_at) INCLUDE (namespace, trigger, source_node, requester, evacuation_id, vmi_uid)
WHERE hashtext(vmi_uid) & 63 = 0;
COMMENT ON INDEX evictrail.migrations_of_sampled IS 'The migrations of one in 64 guests: dashboards that count guests, over long ranges.';

DROP INDEX evictrail.migrations_by_source;
CREATE INDEX migrations_by_source ON evictrail.migrations (cluster, source_node, target_node);
COMMENT ON INDEX evictrail.migrations_by_source IS 'Derive a node: the migrations that leave it; dashboards: those from one node to another.';
CREATE INDEX migrations_lost ON evictrail.migrations (cluster, created_at) WHERE failure_class IN ('post_copy', 'guest_lost');
COMMENT ON INDEX evictrail.migrations_lost IS 'Guests that were lost in migration: dashboards.';
CREATE INDEX migrations_judged ON evictrail.migrations (cluster, finished_at) INCLUDE (namespace, source_node, benefit) WHERE benefit IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_judged IS 'Whether moves helped: dashboards.';
CREATE INDEX evacuations_of_descheduler ON evictrail.evacuations (cluster, marked_at) INCLUDE (node, ended_at) WHERE trigger = 'descheduler';
COMMENT ON INDEX evictrail.evacuations_of_descheduler IS 'From which nodes the descheduler evicted, and when: dashboards.';
CREATE INDEX evacuations_failing ON evictrail.evacuations (cluster, marked_at) INCLUDE (node, first_failed_at, ended_at) WHERE first_failed_at IS NOT NULL;
COMMENT ON INDEX evictrail.evacuations_failing IS 'From which nodes evacuations failed, and when: dashboards.';
CREATE INDEX loops_dual_retry ON evictrail.loops (cluster, opened_at) INCLUDE (node, closed_at, closed_by) WHERE kind = 'dual_retry';
COMMENT ON INDEX evictrail.loops_dual_retry IS 'At which nodes retry loops were open, and when: dashboards.';
CREATE INDEX placements_short ON evictrail.placements (cluster, to_at) INCLUDE (namespace, vmi, node)
WHERE to_at - from_at < interval '6 hours' AND arrived_by NOT IN ('start', 'unknown') AND left_by NOT IN ('end', 'unknown');
COMMENT ON INDEX evictrail.placements_short IS 'Guests that were soon moved on: dashboards, which of them came back.';
CREATE INDEX eviction_requests_by_evacuation ON evictrail.eviction_requests (cluster, evacuation_id) WHERE effect = 'evacuation';
COMMENT ON INDEX evictrail.eviction_requests_by_evacuation IS 'Which request brought an evacuation about: dashboards.';
CREATE INDEX cooldown_decisions_with_finding ON evictrail.cooldown_decisions (cluster, decided_at) WHERE inputs ? 'finding';
COMMENT ON INDEX evictrail.cooldown_decisions_with_finding IS 'Where the descheduler does not know what really happened: dashboards.';
CREATE INDEX cooldown_decisions_blocked ON evictrail.cooldown_decisions (cluster, decided_at) WHERE verdict = 'blocked';
COMMENT ON INDEX evictrail.cooldown_decisions_blocked IS 'What met a cooldown: dashboards.';
CREATE INDEX cooldown_decisions_of_descheduler ON evictrail.cooldown_decisions (cluster, decided_at)
WHERE layer = 'descheduler_cooldown' AND verdict IN ('holds', 'released');
COMMENT ON INDEX evictrail.cooldown_decisions_of_descheduler IS 'The cooldowns of the descheduler: dashboards.';

-- +goose Down
DROP INDEX evictrail.migrations_sampled, evictrail.migrations_of_sampled, evictrail.migrations_by_source, evictrail.migrations_lost, evictrail.migrations_judged,
    evictrail.evacuations_of_descheduler, evictrail.evacuations_failing, evictrail.loops_dual_retry,
    evictrail.placements_short, evictrail.eviction_requests_by_evacuation, evictrail.cooldown_decisions_with_finding, evictrail.cooldown_decisions_blocked,
    evictrail.cooldown_decisions_of_descheduler;
CREATE INDEX migrations_by_source ON evictrail.migrations (cluster, source_node);
COMMENT ON INDEX evictrail.migrations_by_source IS 'Derive a node: the migrations that leave it.';
