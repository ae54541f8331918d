-- Until here the schema was what 38 files had made of it one after the other. Some of what they left behind is
-- nobody's.
DROP FUNCTION evictrail.fill_open_until();

-- What was not compared with the rows that were there, as each of them satisfies it.
ALTER TABLE evictrail.eviction_requests VALIDATE CONSTRAINT eviction_requests_requester_class_check;
ALTER TABLE evictrail.migrations VALIDATE CONSTRAINT migrations_requester_class_check;
ALTER TABLE evictrail.migrations VALIDATE CONSTRAINT migrations_wait_reason_check;
ALTER TABLE evictrail.cooldown_decisions VALIDATE CONSTRAINT cooldown_decisions_layer_check;
ALTER TABLE evictrail.drain_blockers VALIDATE CONSTRAINT drain_blockers_blocker_check;

-- Columns are described where their tables are defined.
COMMENT ON TABLE evictrail.recorders IS NULL;
COMMENT ON COLUMN evictrail.clusters.last_event_at IS NULL;
COMMENT ON COLUMN evictrail.clusters.replayed IS NULL;
COMMENT ON COLUMN evictrail.leaders.program IS NULL;
COMMENT ON COLUMN evictrail.leaders.program_term IS NULL;
COMMENT ON COLUMN evictrail.migrations.phase_since IS NULL;
COMMENT ON COLUMN evictrail.timeline.tie IS NULL;
COMMENT ON FUNCTION evictrail.oldest_schema() IS NULL;

-- Indexes that no query needs, or of which one does the work of two (docs/adr/0038). Tables come in the order in which the
-- leader writes them, so that it and this wait for each other.
DROP INDEX evictrail.eviction_requests_repeated, evictrail.eviction_requests_by_node;
CREATE INDEX eviction_requests_by_node ON evictrail.eviction_requests (cluster, node, requested_at);
COMMENT ON INDEX evictrail.eviction_requests_by_node IS 'What was asked of a node, in the order of time: view eviction_requests, derive the node.';
DROP INDEX evictrail.evacuations_by_node;
CREATE INDEX evacuations_by_node ON evictrail.evacuations (cluster, node, marked_at, open_until);
COMMENT ON INDEX evictrail.evacuations_by_node IS 'The evacuations of a node, in the order of time, and since a time: view evacuations, derive the node.';
DROP INDEX evictrail.migrations_waiting, evictrail.migrations_by_target, evictrail.migrations_to_node, evictrail.migrations_by_source;
CREATE INDEX migrations_by_source ON evictrail.migrations (cluster, source_node, target_node, open_until);
COMMENT ON INDEX evictrail.migrations_by_source IS 'What left a node since a time: derive the node; from one node to another: dashboards.';
CREATE INDEX migrations_to_node ON evictrail.migrations (cluster, target_node, open_until)
    WHERE target_node IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_to_node IS 'What went to a node since a time: whose target pods are on a node that becomes ready or not, which moves may have caused others from it.';
DROP INDEX evictrail.placements_by_node;
CREATE INDEX placements_by_node ON evictrail.placements (cluster, node, from_at, open_until);
COMMENT ON INDEX evictrail.placements_by_node IS 'Which guests a node had, in the order of time, and since a time: view placements, derive the node.';
DROP INDEX evictrail.cooldown_decisions_by_node;
CREATE INDEX cooldown_decisions_by_node ON evictrail.cooldown_decisions (cluster, node, decided_at, open_until);
COMMENT ON INDEX evictrail.cooldown_decisions_by_node IS 'The decisions about the guests of a node, in the order of time, and since a time: views cooldown_decisions and events, derive the node.';
DROP INDEX evictrail.drain_blockers_by_time, evictrail.drain_blockers_by_change;
