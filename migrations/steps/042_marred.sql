-- What went wrong of late is found by cluster and time, for the page of a fleet and for the front page of a cluster: guests that were lost, and evacuations that
-- ended without a move. Both are rare, so the indexes are small.
CREATE INDEX placements_lost ON evictrail.placements (cluster, to_at)
    WHERE ended_by IN ('evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'post_copy', 'hand_over', 'failed');
COMMENT ON INDEX evictrail.placements_lost IS 'Guests that were lost of late: the pages of a fleet and of a cluster.';
CREATE INDEX evacuations_unmoved ON evictrail.evacuations (cluster, ended_at)
    WHERE outcome IN ('cancelled', 'vmi_gone');
COMMENT ON INDEX evictrail.evacuations_unmoved IS 'Evacuations that ended without a move of late: the pages of a fleet and of a cluster.';
