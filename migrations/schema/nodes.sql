-- What became of nodes: drains with what they wait for, and outages; derived rows (00_schemas.sql). Columns:
-- ../views/drains.sql, drain_blockers.sql, node_outages.sql.
CREATE TABLE evictrail.drains (
    cluster         text        NOT NULL,
    subject         text        NOT NULL,
    drain_id        uuid        NOT NULL,
    node            text        NOT NULL,
    started_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    outcome         text        CHECK (outcome IN ('emptied', 'abandoned', 'node_gone')),
    requester       text,
    requester_class text        NOT NULL,
    impersonator    text,
    last_asked_at   timestamptz,
    vmis_total      integer     NOT NULL CHECK (vmis_total >= 0),
    vmis_left       integer     NOT NULL CHECK (vmis_left >= 0),
    open_until      timestamptz NOT NULL DEFAULT 'infinity',
    changed_at      timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, drain_id),
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX drains_by_time ON evictrail.drains (started_at);
COMMENT ON INDEX evictrail.drains_by_time IS 'Newest drains: view drains.';
CREATE INDEX drains_open ON evictrail.drains (cluster)
    WHERE ended_at IS NULL;
COMMENT ON INDEX evictrail.drains_open IS 'The state of a cluster: drains that go on.';
CREATE INDEX drains_by_change ON evictrail.drains (changed_at);
COMMENT ON INDEX evictrail.drains_by_change IS 'What came or changed since a time: view drains.';

-- Only of the last drain of each node: they are so few that the key is all the index.
CREATE TABLE evictrail.drain_blockers (
    cluster       text        NOT NULL,
    subject       text        NOT NULL,
    drain_id      uuid        NOT NULL,
    node          text        NOT NULL,
    namespace     text        NOT NULL,
    vmi           text        NOT NULL,
    vmi_uid       text        NOT NULL,
    blocker       text        NOT NULL CHECK (blocker IN ('not_migratable', 'failing', 'queued', 'migrating', 'external', 'opted_out', 'pdb', 'node_not_ready')),
    reason        text        NOT NULL,
    next          text        NOT NULL,
    waiting_since timestamptz NOT NULL,
    last_asked_at timestamptz,
    open_until    timestamptz NOT NULL DEFAULT 'infinity',
    changed_at    timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, vmi_uid)
);

CREATE TABLE evictrail.outages (
    cluster    text        NOT NULL,
    subject    text        NOT NULL,
    outage_id  uuid        NOT NULL,
    node       text        NOT NULL,
    began_at   timestamptz NOT NULL,
    ended_at   timestamptz,
    ended_by   text        CHECK (ended_by IN ('recovered', 'node_gone')),
    cause      text        NOT NULL CHECK (cause IN ('silent', 'reported')),
    message    text,
    open_until timestamptz NOT NULL DEFAULT 'infinity',
    changed_at timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, outage_id),
    CHECK ((ended_at IS NULL) = (ended_by IS NULL))
);
CREATE INDEX outages_by_time ON evictrail.outages (began_at);
COMMENT ON INDEX evictrail.outages_by_time IS 'Newest outages: view node_outages.';
CREATE INDEX outages_by_change ON evictrail.outages (changed_at);
COMMENT ON INDEX evictrail.outages_by_change IS 'What came or changed since a time: view node_outages.';
CREATE INDEX outages_open ON evictrail.outages (cluster)
    WHERE ended_at IS NULL;
COMMENT ON INDEX evictrail.outages_open IS 'Which nodes are not ready: what keeps a VM from moving.';
