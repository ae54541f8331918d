-- What went wrong of late is found by cluster and time, for the page of a fleet and for the front page of a cluster: guests that were lost, and evacuations that
-- ended without a move. Both are rare, so the indexes are small.
CREATE INDEX placements_lost ON evictrail.placements (cluster, to_at)
    WHERE ended_by IN ('evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'post_copy', 'hand_over', 'failed');
COMMENT ON INDEX evictrail.placements_lost IS 'Guests that were lost of late: the pages of a fleet and of a cluster.';
CREATE INDEX evacuations_unmoved ON evictrail.evacuations (cluster, ended_at)
    WHERE outcome IN ('cancelled', 'vmi_gone');
COMMENT ON INDEX evictrail.evacuations_unmoved IS 'Evacuations that ended without a move of late: the pages of a fleet and of a cluster.';
-- The moves over time are counted from this index alone, also for those who may see only some namespaces.
DROP INDEX evictrail.migrations_by_end;
CREATE INDEX migrations_by_end ON evictrail.migrations (cluster, finished_at) INCLUDE (namespace, trigger, outcome)
    WHERE finished_at IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_by_end IS 'The state of a cluster: what moved and failed in the last hours. The moves over time of the front page.';
