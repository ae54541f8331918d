-- +goose NO TRANSACTION
-- +goose Up
-- Until when what a derived row is about was open: infinity while it goes on. The program writes it (trail.Row). Each table is locked for a moment alone, as a
-- program of before may be writing rows; it leaves the default, and so more is read of these rows than is needed.
ALTER TABLE evictrail.eviction_requests ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';
ALTER TABLE evictrail.evacuations ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';
ALTER TABLE evictrail.migrations ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';
ALTER TABLE evictrail.placements ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';
ALTER TABLE evictrail.cooldown_decisions ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';
ALTER TABLE evictrail.loops ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';
ALTER TABLE evictrail.drains ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';
ALTER TABLE evictrail.drain_blockers ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';
ALTER TABLE evictrail.consequences ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';
ALTER TABLE evictrail.outages ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';
ALTER TABLE evictrail.gaps ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';
ALTER TABLE evictrail.timeline ADD COLUMN IF NOT EXISTS open_until timestamptz NOT NULL DEFAULT 'infinity';

-- fill_open_until fills the column in rows that were written by programs of before: now, and when this program comes back after one of these dropped facts of
-- which such rows were derived, so that they cannot be derived again.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION evictrail.fill_open_until() RETURNS void LANGUAGE sql AS $$
UPDATE evictrail.eviction_requests SET open_until = greatest(requested_at, answered_at, last_repeat_at) WHERE open_until = 'infinity';
UPDATE evictrail.evacuations SET open_until = greatest(marked_at, ended_at) WHERE open_until = 'infinity' AND ended_at IS NOT NULL;
UPDATE evictrail.migrations SET open_until = greatest(created_at, finished_at) WHERE open_until = 'infinity' AND finished_at IS NOT NULL;
UPDATE evictrail.placements SET open_until = greatest(from_at, to_at) WHERE open_until = 'infinity' AND to_at IS NOT NULL;
UPDATE evictrail.cooldown_decisions SET open_until = greatest(decided_at, until) WHERE open_until = 'infinity';
UPDATE evictrail.loops SET open_until = greatest(opened_at, closed_at) WHERE open_until = 'infinity' AND closed_at IS NOT NULL;
UPDATE evictrail.drains SET open_until = greatest(started_at, ended_at) WHERE open_until = 'infinity' AND ended_at IS NOT NULL;
UPDATE evictrail.consequences SET open_until = at WHERE open_until = 'infinity';
UPDATE evictrail.outages SET open_until = greatest(began_at, ended_at) WHERE open_until = 'infinity' AND ended_at IS NOT NULL;
UPDATE evictrail.gaps SET open_until = greatest(opened_at, closed_at) WHERE open_until = 'infinity' AND closed_at IS NOT NULL;
UPDATE evictrail.timeline SET open_until = at WHERE open_until = 'infinity';
-- The line of the first repetition of a request counts them all.
UPDATE evictrail.timeline AS t
SET open_until = head.last_repeat_at
FROM evictrail.eviction_requests AS r
JOIN evictrail.eviction_requests AS head ON head.cluster = r.cluster AND head.subject = r.subject AND head.request_id = r.repeat_of
WHERE t.cluster = r.cluster
  AND t.subject = r.subject
  AND t.event_id = r.event_id
  AND t.kind = 'eviction_requested'
  AND t.open_until < head.last_repeat_at;
$$;
-- +goose StatementEnd
SELECT evictrail.fill_open_until();

-- +goose Down
DROP FUNCTION evictrail.fill_open_until();
ALTER TABLE evictrail.eviction_requests DROP COLUMN open_until;
ALTER TABLE evictrail.evacuations DROP COLUMN open_until;
ALTER TABLE evictrail.migrations DROP COLUMN open_until;
ALTER TABLE evictrail.placements DROP COLUMN open_until;
ALTER TABLE evictrail.cooldown_decisions DROP COLUMN open_until;
ALTER TABLE evictrail.loops DROP COLUMN open_until;
ALTER TABLE evictrail.drains DROP COLUMN open_until;
ALTER TABLE evictrail.drain_blockers DROP COLUMN open_until;
ALTER TABLE evictrail.consequences DROP COLUMN open_until;
ALTER TABLE evictrail.outages DROP COLUMN open_until;
ALTER TABLE evictrail.gaps DROP COLUMN open_until;
ALTER TABLE evictrail.timeline DROP COLUMN open_until;
