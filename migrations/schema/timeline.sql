-- The timeline: a sentence for each fact worth one; derived rows (00_schemas.sql). Columns that the view has are
-- described there (../views/timeline.sql).
CREATE TABLE evictrail.timeline (
    cluster    text        NOT NULL,
    subject    text        NOT NULL,
    event_id   uuid        NOT NULL,
    at         timestamptz NOT NULL,
    tie        integer, -- how many lines of the same subject and moment come before this one; NULL: unknown
    kind       text        NOT NULL,
    reason     text        NOT NULL,
    namespace  text,
    vmi        text,
    vmi_uid    text,
    node       text,
    sentence   text        NOT NULL,
    seen_late  boolean     NOT NULL,
    open_until timestamptz NOT NULL DEFAULT 'infinity',
    changed_at timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, event_id)
);
CREATE INDEX timeline_by_vmi ON evictrail.timeline (cluster, namespace, vmi, at);
COMMENT ON INDEX evictrail.timeline_by_vmi IS 'The story of one VM: view timeline.';
CREATE INDEX timeline_by_time ON evictrail.timeline (at);
COMMENT ON INDEX evictrail.timeline_by_time IS 'Newest lines: view timeline.';
CREATE INDEX timeline_by_change ON evictrail.timeline (changed_at);
COMMENT ON INDEX evictrail.timeline_by_change IS 'What came or changed since a time: view timeline.';
CREATE INDEX timeline_by_node ON evictrail.timeline (cluster, node, at);
COMMENT ON INDEX evictrail.timeline_by_node IS 'The story of one node: view timeline.';
CREATE INDEX timeline_by_namespace ON evictrail.timeline (cluster, namespace, at);
COMMENT ON INDEX evictrail.timeline_by_namespace IS 'The story of one namespace: view timeline.';
