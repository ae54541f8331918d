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
