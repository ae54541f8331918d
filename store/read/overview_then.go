package read

// What was open at a moment of the past, from the rows as they are now: what has come since is taken back where later rows say when it came. What an answer says in
// words stays as it is now. Of what lasted longer than 31 days only what is still open is found.
const (
	loopsThenQuery = `
SELECT to_jsonb(t) || '{"closed_at": null, "closed_by": null}'
FROM evictrail.loops AS t
WHERE cluster = @cluster
  AND opened_at <= @at
  AND (closed_at IS NULL OR opened_at > @at::timestamptz - interval '31 days' AND closed_at > @at AND closed_by <> 'refuted')
  AND (@everyone OR ` + loopSeen + `)
ORDER BY opened_at
LIMIT 100`
	// Each with its attempts up to then.
	evacuationsThen = `
SELECT to_jsonb(e) || jsonb_build_object(
    'ended_at', NULL, 'outcome', NULL, 'cancelled_by', NULL, 'fulfilled_by', NULL, 'next_retry_at', NULL,
    'outlook', NULL, 'outlook_because', NULL, 'outlook_change', NULL,
    'attempts', m.attempts, 'failed_attempts', m.failed, 'last_failure_class', m.class, 'last_failure_reason', m.reason
  )
FROM evictrail.evacuations AS e
CROSS JOIN LATERAL (
  SELECT
    count(*) AS attempts,
    count(*) FILTER (WHERE ended) AS failed,
    (array_agg(failure_class ORDER BY finished_at DESC) FILTER (WHERE ended))[1] AS class,
    (array_agg(failure_reason ORDER BY finished_at DESC) FILTER (WHERE ended))[1] AS reason
  FROM (
    SELECT finished_at, failure_class, failure_reason, outcome = 'failed' AND finished_at <= @at AS ended
    FROM evictrail.migrations
    WHERE cluster = e.cluster
      AND subject = e.subject
      AND evacuation_id = e.evacuation_id
      AND created_at <= @at
  ) AS a
) AS m
WHERE e.cluster = @cluster
  AND e.marked_at <= @until
  AND (e.ended_at IS NULL OR e.marked_at > @at::timestamptz - interval '31 days' AND e.ended_at > @at)
  AND (@everyone OR e.namespace = ANY(@seen))
  AND `
	stuckThenQuery   = evacuationsThen + "m.failed > 0\nORDER BY e.marked_at\nLIMIT 100"
	waitingThenQuery = evacuationsThen + "m.attempts = 0\nORDER BY e.marked_at\nLIMIT 100"
	drainsThenQuery  = `
SELECT to_jsonb(drains) || jsonb_build_object('ended_at', NULL, 'outcome', NULL, 'vmis_left', (
    SELECT count(*)
    FROM evictrail.placements AS p
    WHERE p.cluster = drains.cluster
      AND p.node = drains.node
      AND p.from_at <= @at
      AND p.open_until >= @at
      AND (p.to_at IS NULL OR p.to_at > @at)
  ))
FROM evictrail.drains
WHERE cluster = @cluster
  AND started_at <= @at
  AND (ended_at IS NULL OR started_at > @at::timestamptz - interval '31 days' AND ended_at > @at)
  AND (@everyone OR ` + drainSeen + `)
ORDER BY started_at
LIMIT 50`
)
