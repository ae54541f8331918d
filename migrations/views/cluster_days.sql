CREATE OR REPLACE VIEW evictrail_v1.cluster_days AS
SELECT
    cluster,
    day,
    kubevirt,
    rules,
    moved,
    failed,
    aborted,
    failed_scheduling,
    failed_control_plane,
    failed_data_plane,
    failed_post_copy,
    failed_guest_lost,
    failed_unknown,
    needed,
    not_needed,
    helped,
    harmed,
    objectives_met,
    objectives_missed,
    loops,
    dual_retry_loops,
    gaps,
    counted_at
FROM evictrail.cluster_days;

COMMENT ON VIEW evictrail_v1.cluster_days IS 'What happened in a cluster on a day, counted. Today and yesterday are counted every ten minutes, the last 35 days once a day, all once a month.';
COMMENT ON COLUMN evictrail_v1.cluster_days.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.cluster_days.day IS 'The day, in UTC. A day without a row was not counted: evictrail did not record then, or rows of it were dropped.';
COMMENT ON COLUMN evictrail_v1.cluster_days.kubevirt IS 'Version of KubeVirt at its end. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.cluster_days.rules IS 'Which rules follow from the versions and settings at its end, as a line for people. NULL where they are not known.';
COMMENT ON COLUMN evictrail_v1.cluster_days.moved IS 'Migrations that ended on that day and succeeded.';
COMMENT ON COLUMN evictrail_v1.cluster_days.failed IS 'Migrations that ended on that day and failed.';
COMMENT ON COLUMN evictrail_v1.cluster_days.aborted IS 'Migrations that ended on that day and were aborted.';
COMMENT ON COLUMN evictrail_v1.cluster_days.failed_scheduling IS 'Of the failed ones: no target pod could be scheduled.';
COMMENT ON COLUMN evictrail_v1.cluster_days.failed_control_plane IS 'Of the failed ones: KubeVirt ended it before data moved.';
COMMENT ON COLUMN evictrail_v1.cluster_days.failed_data_plane IS 'Of the failed ones: moving the data failed.';
COMMENT ON COLUMN evictrail_v1.cluster_days.failed_post_copy IS 'Of the failed ones: after the switch to post-copy.';
COMMENT ON COLUMN evictrail_v1.cluster_days.failed_guest_lost IS 'Of the failed ones: the guest ended while it moved.';
COMMENT ON COLUMN evictrail_v1.cluster_days.failed_unknown IS 'Of the failed ones: the class is not known.';
COMMENT ON COLUMN evictrail_v1.cluster_days.needed IS 'Migrations that ended on that day of which it is known that their source was over its threshold.';
COMMENT ON COLUMN evictrail_v1.cluster_days.not_needed IS 'Migrations that ended on that day of which it is known that it was not.';
COMMENT ON COLUMN evictrail_v1.cluster_days.helped IS 'Migrations that ended on that day and relieved their source.';
COMMENT ON COLUMN evictrail_v1.cluster_days.harmed IS 'Migrations that ended on that day and overloaded their target.';
COMMENT ON COLUMN evictrail_v1.cluster_days.objectives_met IS 'Evacuations that began on that day and met their objective.';
COMMENT ON COLUMN evictrail_v1.cluster_days.objectives_missed IS 'Evacuations that began on that day and missed it. Without objectives both are 0.';
COMMENT ON COLUMN evictrail_v1.cluster_days.loops IS 'Loops that were opened on that day and not refuted.';
COMMENT ON COLUMN evictrail_v1.cluster_days.dual_retry_loops IS 'Of the loops: dual retry.';
COMMENT ON COLUMN evictrail_v1.cluster_days.gaps IS 'Gaps in the record that touch that day: with any, the other counts may be too low.';
COMMENT ON COLUMN evictrail_v1.cluster_days.counted_at IS 'When it was counted, by the clock of the recorder.';
