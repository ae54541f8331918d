-- Acknowledgements: people who say that they know the problem of a VM or a node. They are no derived rows: no fact has them,
-- and nothing that is derived depends on them. Columns that the view has are described there (../views/acknowledgements.sql).
CREATE TABLE evictrail.acknowledgements (
    acknowledgement_id uuid        NOT NULL PRIMARY KEY DEFAULT gen_random_uuid(),
    cluster            text        NOT NULL,
    subject            text        NOT NULL, -- vmi:NAMESPACE/NAME or node:NAME
    namespace          text,
    vmi                text,
    node               text,
    author             text        NOT NULL,
    note               text,
    ticket             text,
    created_at         timestamptz NOT NULL DEFAULT now(),
    expires_at         timestamptz NOT NULL,
    ended_at           timestamptz, -- when it was withdrawn, or another one replaced it; NULL: not before it expires
    ended_by           text,
    changed_at         timestamptz NOT NULL DEFAULT now(),
    CHECK (expires_at > created_at),
    CHECK ((ended_at IS NULL) = (ended_by IS NULL)),
    CHECK ((namespace IS NULL) = (vmi IS NULL)),
    CHECK ((vmi IS NULL) <> (node IS NULL))
);
CREATE INDEX acknowledgements_by_subject ON evictrail.acknowledgements (cluster, subject, created_at);
COMMENT ON INDEX evictrail.acknowledgements_by_subject IS 'The acknowledgement of a VM or a node that holds: views loops and evacuations, pages.';
CREATE INDEX acknowledgements_by_time ON evictrail.acknowledgements (created_at);
COMMENT ON INDEX evictrail.acknowledgements_by_time IS 'Newest acknowledgements: view acknowledgements.';
