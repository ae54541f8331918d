-- Subqueries are run only where their columns are asked for.
CREATE OR REPLACE VIEW evictrail_v1.loops AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    loop_id,
    kind,
    path,
    opened_at,
    closed_at,
    closed_by,
    summary,
    advice,
    counts,
    evidence,
    changed_at,
    (
      SELECT k.author
      FROM evictrail.acknowledgements AS k
      WHERE k.cluster = l.cluster
        AND k.subject = coalesce('vmi:' || l.namespace || '/' || l.vmi, 'node:' || l.node)
        AND k.ended_at IS NULL
        AND k.expires_at > now()
        AND l.closed_at IS NULL
      ORDER BY k.created_at DESC
      LIMIT 1
    ) AS acknowledged_by,
    (
      SELECT k.expires_at
      FROM evictrail.acknowledgements AS k
      WHERE k.cluster = l.cluster
        AND k.subject = coalesce('vmi:' || l.namespace || '/' || l.vmi, 'node:' || l.node)
        AND k.ended_at IS NULL
        AND k.expires_at > now()
        AND l.closed_at IS NULL
      ORDER BY k.created_at DESC
      LIMIT 1
    ) AS acknowledged_until,
    (
      SELECT k.note
      FROM evictrail.acknowledgements AS k
      WHERE k.cluster = l.cluster
        AND k.subject = coalesce('vmi:' || l.namespace || '/' || l.vmi, 'node:' || l.node)
        AND k.ended_at IS NULL
        AND k.expires_at > now()
        AND l.closed_at IS NULL
      ORDER BY k.created_at DESC
      LIMIT 1
    ) AS acknowledgement_note,
    coalesce(nodes, CASE WHEN node IS NULL THEN '[]' ELSE jsonb_build_array(node) END) AS nodes
FROM evictrail.loops AS l;

COMMENT ON VIEW evictrail_v1.loops IS 'Loops: episodes of repetition that do not converge, with their evidence and what to do.';
COMMENT ON COLUMN evictrail_v1.loops.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.loops.namespace IS 'Namespace of the VMI. NULL where it is about slots or several VMs.';
COMMENT ON COLUMN evictrail_v1.loops.vmi IS 'The VM that is stuck or moved. NULL where it is about slots or several VMs, which evidence names.';
COMMENT ON COLUMN evictrail_v1.loops.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is about slots or several VMs.';
COMMENT ON COLUMN evictrail_v1.loops.node IS 'Node that it goes on at; of an oscillation the one whose name comes first, nodes has the others. NULL where it is about no one node.';
COMMENT ON COLUMN evictrail_v1.loops.loop_id IS 'Identity of the loop; it stays the same when the row is derived again.';
COMMENT ON COLUMN evictrail_v1.loops.kind IS 'dual_retry, endless_retry, ping_pong, churn, oscillation, frequent_moves, repeated_failures, shutdown_churn, budget_pinned, priority_inversion, unanswered_external.';
COMMENT ON COLUMN evictrail_v1.loops.path IS 'By which way a dual_retry comes about: annotation_lost, free_slot, request_forgotten, gate_off, unclassified. NULL for other kinds.';
COMMENT ON COLUMN evictrail_v1.loops.opened_at IS 'When its condition became true, not when that was noticed.';
COMMENT ON COLUMN evictrail_v1.loops.closed_at IS 'When it was over. NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.loops.closed_by IS 'migrated, cancelled, vmi_gone, quiet (nothing that belongs to it for a while), became_dual_retry, refuted (later facts show that it never was). NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.loops.summary IS 'What goes on, in a sentence.';
COMMENT ON COLUMN evictrail_v1.loops.advice IS 'What to do; indented lines can be pasted.';
COMMENT ON COLUMN evictrail_v1.loops.counts IS 'How often what happened.';
COMMENT ON COLUMN evictrail_v1.loops.evidence IS 'What it rests on, in the order of time: at, vmi, text and the event_id of the fact. Of many, the first and the last.';
COMMENT ON COLUMN evictrail_v1.loops.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.loops.acknowledged_by IS 'Who acknowledged the problem of its VM, or of its node where it is about no one VM; see acknowledgements. NULL where nobody has, it is over, or the acknowledgement has ended.';
COMMENT ON COLUMN evictrail_v1.loops.acknowledged_until IS 'Until when that acknowledgement holds. NULL where there is none.';
COMMENT ON COLUMN evictrail_v1.loops.acknowledgement_note IS 'What its author wrote. NULL where there is none.';
COMMENT ON COLUMN evictrail_v1.loops.nodes IS 'All nodes that it goes on at, as a list: of an oscillation node and those that VMs go to and come back from, of a ping-pong all that the VM was moved from and to.';
