-- What holds VMs back, what met it, and when it was over; derived rows (00_schemas.sql). Columns that the view has are
-- described there (../views/cooldown_decisions.sql).
CREATE TABLE evictrail.cooldown_decisions (
    cluster           text        NOT NULL,
    subject           text        NOT NULL,
    decision_id       uuid        NOT NULL,
    namespace         text        NOT NULL,
    vmi               text,
    vmi_uid           text,
    node              text,
    decided_at        timestamptz NOT NULL,
    layer             text        NOT NULL CHECK (layer IN ('descheduler_cooldown', 'kubevirt_backoff')),
    verdict           text        NOT NULL CHECK (verdict IN ('holds', 'blocked', 'released')),
    reason            text        NOT NULL CHECK (reason IN (
        'migration_completed', 'computed_anew', 'migration_failed', 'migration_in_progress', 'cooldown', 'expired', 'over', 'observed_block'
    )),
    base_seconds      double precision CHECK (base_seconds >= 0),
    count             integer     CHECK (count >= 0), -- of the migrations that prolong it
    effective_seconds double precision CHECK (effective_seconds >= 0),
    until             timestamptz,
    cap_seconds       double precision CHECK (cap_seconds >= 0),
    window_seconds    double precision CHECK (window_seconds >= 0), -- in which migrations are counted
    capped            boolean     NOT NULL,
    model             text        NOT NULL, -- whose rules were followed
    origin            text        NOT NULL CHECK (origin IN ('derived', 'observed')),
    inputs            jsonb       NOT NULL,
    event_id          uuid,
    open_until        timestamptz NOT NULL DEFAULT 'infinity',
    changed_at        timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, decision_id),
    CHECK (verdict <> 'holds' OR until IS NOT NULL)
);
CREATE INDEX cooldown_decisions_by_time ON evictrail.cooldown_decisions (decided_at);
COMMENT ON INDEX evictrail.cooldown_decisions_by_time IS 'Newest decisions: view cooldown_decisions.';
CREATE INDEX cooldown_decisions_holding ON evictrail.cooldown_decisions (cluster, until)
    WHERE verdict = 'holds';
COMMENT ON INDEX evictrail.cooldown_decisions_holding IS 'What holds now: view cooldowns_now.';
CREATE INDEX cooldown_decisions_by_change ON evictrail.cooldown_decisions (changed_at);
COMMENT ON INDEX evictrail.cooldown_decisions_by_change IS 'What came or changed since a time: view cooldown_decisions.';
CREATE INDEX cooldown_decisions_by_vmi ON evictrail.cooldown_decisions (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.cooldown_decisions_by_vmi IS 'The decisions about one VM, or in one namespace: view cooldown_decisions.';
CREATE INDEX cooldown_decisions_by_node ON evictrail.cooldown_decisions (cluster, node, decided_at, open_until);
COMMENT ON INDEX evictrail.cooldown_decisions_by_node IS 'The decisions about the guests of a node, in the order of time, and since a time: views cooldown_decisions and events, derive the node.';
CREATE INDEX cooldown_decisions_by_namespace ON evictrail.cooldown_decisions (cluster, namespace, decided_at);
COMMENT ON INDEX evictrail.cooldown_decisions_by_namespace IS 'The decisions about the VMs of one namespace: views cooldown_decisions and events.';
CREATE INDEX cooldown_decisions_with_finding ON evictrail.cooldown_decisions (cluster, decided_at)
    WHERE inputs ? 'finding';
COMMENT ON INDEX evictrail.cooldown_decisions_with_finding IS 'Where the descheduler does not know what really happened: dashboards.';
CREATE INDEX cooldown_decisions_blocked ON evictrail.cooldown_decisions (cluster, decided_at)
    WHERE verdict = 'blocked';
COMMENT ON INDEX evictrail.cooldown_decisions_blocked IS 'What met a cooldown: dashboards.';
CREATE INDEX cooldown_decisions_of_descheduler ON evictrail.cooldown_decisions (cluster, decided_at)
    WHERE layer = 'descheduler_cooldown' AND verdict IN ('holds', 'released');
COMMENT ON INDEX evictrail.cooldown_decisions_of_descheduler IS 'The cooldowns of the descheduler: dashboards.';
