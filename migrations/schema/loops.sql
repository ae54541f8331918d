-- Loops: repetition that does not converge; derived rows (00_schemas.sql). Columns that the view has are described
-- there (../views/loops.sql).
CREATE TABLE evictrail.loops (
    cluster    text        NOT NULL,
    subject    text        NOT NULL,
    loop_id    uuid        NOT NULL,
    kind       text        NOT NULL CHECK (kind IN (
        'dual_retry', 'endless_retry', 'ping_pong', 'churn', 'oscillation', 'frequent_moves', 'repeated_failures',
        'shutdown_churn', 'budget_pinned', 'priority_inversion', 'unanswered_external'
    )),
    path       text        CHECK (path IN ('annotation_lost', 'free_slot', 'request_forgotten', 'gate_off', 'unclassified')),
    namespace  text,
    vmi        text,
    vmi_uid    text,
    node       text,
    opened_at  timestamptz NOT NULL,
    closed_at  timestamptz,
    closed_by  text        CHECK (closed_by IN ('migrated', 'cancelled', 'vmi_gone', 'quiet', 'became_dual_retry', 'refuted')),
    summary    text        NOT NULL,
    advice     text        NOT NULL,
    counts     jsonb       NOT NULL,
    evidence   jsonb       NOT NULL,
    open_until timestamptz NOT NULL DEFAULT 'infinity',
    changed_at timestamptz DEFAULT now(),
    nodes      jsonb,
    PRIMARY KEY (cluster, subject, loop_id),
    CHECK ((closed_at IS NULL) = (closed_by IS NULL)),
    CHECK ((kind = 'dual_retry') = (path IS NOT NULL))
);
CREATE INDEX loops_by_time ON evictrail.loops (opened_at);
COMMENT ON INDEX evictrail.loops_by_time IS 'Newest loops: view loops.';
CREATE INDEX loops_open ON evictrail.loops (cluster)
    WHERE closed_at IS NULL;
COMMENT ON INDEX evictrail.loops_open IS 'The state of a cluster: open loops.';
CREATE INDEX loops_by_change ON evictrail.loops (changed_at);
COMMENT ON INDEX evictrail.loops_by_change IS 'What came or changed since a time: view loops.';
CREATE INDEX loops_dual_retry ON evictrail.loops (cluster, opened_at) INCLUDE (node, closed_at, closed_by)
    WHERE kind = 'dual_retry';
COMMENT ON INDEX evictrail.loops_dual_retry IS 'At which nodes retry loops were open, and when: dashboards.';
