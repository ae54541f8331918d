-- Eviction requests, one row each, no matter which source reported it: derived rows (00_schemas.sql). Columns that the view has are
-- described there (../views/eviction_requests.sql).
CREATE TABLE evictrail.eviction_requests (
    cluster         text        NOT NULL,
    subject         text        NOT NULL,
    request_id      uuid        NOT NULL,
    namespace       text        NOT NULL,
    vmi             text,
    vmi_uid         text,
    node            text,
    pod             text,
    requested_at    timestamptz NOT NULL,
    answered_at     timestamptz,
    requester       text,
    requester_class text        NOT NULL CHECK (requester_class IN (
        'descheduler', 'kubectl', 'cluster_autoscaler', 'karpenter', 'machine_config', 'cluster_api', 'node_maintenance', 'kured', 'kubevirt',
        'forklift', 'harvester', 'console', 'argo_cd', 'flux', 'eviction_request', 'service_account', 'other', 'unknown'
    )),
    impersonator    text,
    source_ip       text,
    user_agent      text,
    stated_reason   text,
    source          text        NOT NULL CHECK (source IN ('admission', 'audit', 'admission+audit', 'mark')),
    confidence      text        NOT NULL CHECK (confidence IN ('observed', 'asserted', 'inferred')),
    dry_run         boolean     NOT NULL,
    answer          text        NOT NULL CHECK (answer IN ('marked', 'already_marked', 'not_migratable', 'target_pod', 'pdb', 'allowed', 'not_found', 'error', 'unknown')),
    answer_code     integer, -- of HTTP
    answer_text     text,
    effect          text        CHECK (effect IN ('evacuation', 'shutdown', 'none')),
    evacuation_id   uuid,
    repeat_of       uuid, -- the first of a run of requests that say the same
    repeats         integer     NOT NULL CHECK (repeats >= 0), -- how many of them followed; 0 but for the first
    last_repeat_at  timestamptz,
    policy          text,
    evidence        text        NOT NULL,
    seen_late       boolean     NOT NULL,
    event_id        uuid, -- the fact that reported it first
    salient         boolean, -- it matters to its node: each of the descheduler's, of the polls of others one a minute
    open_until      timestamptz NOT NULL DEFAULT 'infinity',
    changed_at      timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, request_id),
    CHECK (repeat_of IS NULL OR repeats = 0)
);
CREATE INDEX eviction_requests_by_time ON evictrail.eviction_requests (requested_at);
COMMENT ON INDEX evictrail.eviction_requests_by_time IS 'Newest requests: view eviction_requests.';
CREATE INDEX eviction_requests_by_change ON evictrail.eviction_requests (changed_at);
COMMENT ON INDEX evictrail.eviction_requests_by_change IS 'What came or changed since a time: view eviction_requests.';
CREATE INDEX eviction_requests_by_source ON evictrail.eviction_requests (cluster, source);
COMMENT ON INDEX evictrail.eviction_requests_by_source IS 'Which sources of requests a cluster has.';
CREATE INDEX eviction_requests_by_vmi ON evictrail.eviction_requests (cluster, namespace, vmi, requested_at);
COMMENT ON INDEX evictrail.eviction_requests_by_vmi IS 'The requests about one VM, the last one before a moment, or in one namespace: view eviction_requests.';
CREATE INDEX eviction_requests_by_evacuation ON evictrail.eviction_requests (cluster, evacuation_id)
    WHERE effect = 'evacuation';
COMMENT ON INDEX evictrail.eviction_requests_by_evacuation IS 'Which request brought an evacuation about: dashboards.';
CREATE INDEX eviction_requests_by_node ON evictrail.eviction_requests (cluster, node, requested_at);
COMMENT ON INDEX evictrail.eviction_requests_by_node IS 'What was asked of a node, in the order of time: view eviction_requests, derive the node.';
