CREATE OR REPLACE VIEW evictrail_v1.acknowledgements AS
SELECT
    cluster,
    namespace,
    vmi,
    node,
    acknowledgement_id,
    author,
    note,
    ticket,
    created_at,
    expires_at,
    coalesce(ended_at, CASE WHEN expires_at <= now() THEN expires_at END) AS ended_at,
    ended_by,
    changed_at
FROM evictrail.acknowledgements;

COMMENT ON VIEW evictrail_v1.acknowledgements IS 'Acknowledgements: who said that they know the problem of a VM or a node, until when, and with which note and ticket.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.namespace IS 'Namespace of the VM. NULL where it is about a node.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.vmi IS 'Name of the VM whose problem is acknowledged. NULL where it is about a node.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.node IS 'Node whose problem is acknowledged. NULL where it is about a VM.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.acknowledgement_id IS 'Identity of the acknowledgement.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.author IS 'Who acknowledged: with --auth=kubernetes the user name of the caller, else what the author said.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.note IS 'What the author wrote. NULL where there is only a ticket.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.ticket IS 'Ticket, or its address. NULL where there is none.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.created_at IS 'When it was made, by the clock of the database.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.expires_at IS 'Until when it holds at most.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.ended_at IS 'When it was withdrawn or replaced by another, or expired. NULL while it holds.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.ended_by IS 'Who withdrew it, or replaced it. NULL where it holds or has expired.';
COMMENT ON COLUMN evictrail_v1.acknowledgements.changed_at IS 'When the row came or last changed, by the clock of the database; that it expires is no change.';
