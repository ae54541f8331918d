CREATE OR REPLACE VIEW evictrail_v1.gaps AS
SELECT
    cluster,
    gap_id,
    source,
    opened_at,
    closed_at,
    cause,
    detail,
    changed_at
FROM evictrail.gaps;

COMMENT ON VIEW evictrail_v1.gaps IS 'Gaps: intervals in which a source could not be seen. What happened in them was rebuilt where an object still showed it, and is flagged seen_late.';
COMMENT ON COLUMN evictrail_v1.gaps.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.gaps.gap_id IS 'Identity of the gap.';
COMMENT ON COLUMN evictrail_v1.gaps.source IS 'The watch''s resource, or evictrail when it was not running.';
COMMENT ON COLUMN evictrail_v1.gaps.opened_at IS 'When the source was last seen whole.';
COMMENT ON COLUMN evictrail_v1.gaps.closed_at IS 'When it was whole again. NULL while it is not.';
COMMENT ON COLUMN evictrail_v1.gaps.cause IS 'expired (410 Gone), relisted (the watch broke), not_running.';
COMMENT ON COLUMN evictrail_v1.gaps.detail IS 'What is known of the break.';
COMMENT ON COLUMN evictrail_v1.gaps.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
