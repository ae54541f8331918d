-- Placements: which node a guest was on, from when to when; derived rows (00_schemas.sql). Columns that the view has
-- are described there (../views/placements.sql).
CREATE TABLE evictrail.placements (
    cluster               text        NOT NULL,
    subject               text        NOT NULL,
    placement_id          uuid        NOT NULL,
    namespace             text        NOT NULL,
    vmi                   text        NOT NULL,
    vmi_uid               text        NOT NULL,
    node                  text        NOT NULL,
    from_at               timestamptz NOT NULL,
    to_at                 timestamptz,
    arrived_by            text        NOT NULL,
    left_by               text,
    ended_by              text        CHECK (ended_by IN (
        'evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'post_copy', 'hand_over', 'stopped', 'deleted', 'failed'
    )),
    ended_requester       text,
    ended_requester_class text,
    ended_detail          text,
    strategy              text,
    not_migratable        text, -- why it cannot be migrated; NULL: it can
    not_migratable_since  timestamptz,
    opted_out             boolean, -- of the descheduler
    terminating_since     timestamptz,
    outdated_since        timestamptz, -- since when its virt-launcher is; NULL: it is not
    seen_late             boolean     NOT NULL,
    open_until            timestamptz NOT NULL DEFAULT 'infinity',
    changed_at            timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, placement_id),
    CHECK ((to_at IS NULL) = (left_by IS NULL))
);
CREATE INDEX placements_by_node ON evictrail.placements (cluster, node, from_at, open_until);
COMMENT ON INDEX evictrail.placements_by_node IS 'Which guests a node had, in the order of time, and since a time: view placements, derive the node.';
CREATE INDEX placements_open ON evictrail.placements (cluster, node)
    WHERE to_at IS NULL;
COMMENT ON INDEX evictrail.placements_open IS 'The state of a cluster: how many guests a node has.';
CREATE INDEX placements_by_change ON evictrail.placements (changed_at);
COMMENT ON INDEX evictrail.placements_by_change IS 'What came or changed since a time: view placements.';
CREATE INDEX placements_by_vmi ON evictrail.placements (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.placements_by_vmi IS 'Where one VM ran, or those of one namespace: view placements.';
CREATE INDEX placements_by_time ON evictrail.placements (from_at);
COMMENT ON INDEX evictrail.placements_by_time IS 'Newest placements: view placements.';
CREATE INDEX placements_by_uid ON evictrail.placements (vmi_uid);
COMMENT ON INDEX evictrail.placements_by_uid IS 'Search: a VM by the UID of its VMI.';
CREATE INDEX placements_short ON evictrail.placements (cluster, to_at) INCLUDE (namespace, vmi, node)
    WHERE to_at - from_at < interval '6 hours' AND arrived_by NOT IN ('start', 'unknown') AND left_by NOT IN ('end', 'unknown');
COMMENT ON INDEX evictrail.placements_short IS 'Guests that were soon moved on: dashboards, which of them came back.';
CREATE INDEX placements_lost ON evictrail.placements (cluster, to_at)
    WHERE ended_by IN ('evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'post_copy', 'hand_over', 'failed');
COMMENT ON INDEX evictrail.placements_lost IS 'Guests that were lost of late: the pages of a fleet and of a cluster.';
CREATE INDEX placements_ended ON evictrail.placements (cluster, to_at)
    WHERE left_by = 'end';
COMMENT ON INDEX evictrail.placements_ended IS 'Guests that ended, in the order of time: view downtimes.';
CREATE INDEX placements_outdated ON evictrail.placements (cluster, outdated_since)
    WHERE outdated_since IS NOT NULL;
COMMENT ON INDEX evictrail.placements_outdated IS 'Guests in outdated virt-launchers: view upgrade_waves.';
