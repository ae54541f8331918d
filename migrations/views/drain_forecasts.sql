CREATE OR REPLACE VIEW evictrail_v1.drain_forecasts AS
SELECT
    f.cluster,
    f.node,
    f.drain_id,
    f.made_at,
    f.moves,
    f.shuts_down,
    f.stays,
    f.low,
    f.mid,
    f.high,
    d.started_at,
    d.ended_at,
    d.outcome,
    CASE WHEN d.outcome = 'emptied' THEN greatest(d.ended_at - f.made_at, interval '0') END AS took,
    CASE
        WHEN d.outcome IS DISTINCT FROM 'emptied' OR f.mid IS NULL THEN NULL
        WHEN d.ended_at - f.made_at < f.low THEN 'sooner'
        WHEN d.ended_at - f.made_at > f.high THEN 'later'
        ELSE 'within'
    END AS result
FROM evictrail.drain_forecasts AS f
JOIN evictrail.drains AS d ON d.cluster = f.cluster AND d.drain_id = f.drain_id;

COMMENT ON VIEW evictrail_v1.drain_forecasts IS 'Forecasts of drains, each made once, within a minute after the drain was seen, beside what became of the drain.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.node IS 'Node that is emptied.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.drain_id IS 'The drain; see drains.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.made_at IS 'When the forecast was made. It is about what was left then.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.moves IS 'VMs that were to move.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.shuts_down IS 'VMs that were to be shut down.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.stays IS 'VMs that were to stay.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.low IS 'From made_at until the last VM that moves has left: one in ten takes less. NULL where it could not be estimated.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.mid IS 'Half take less.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.high IS 'One in ten takes more.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.started_at IS 'When the drain began.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.ended_at IS 'When it was over. NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.outcome IS 'How it ended; see drains. NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.took IS 'From made_at until the node was empty. NULL where it was not emptied.';
COMMENT ON COLUMN evictrail_v1.drain_forecasts.result IS 'sooner (than low), within (the band), later (than high). NULL where the node was not emptied, or nothing was estimated.';
