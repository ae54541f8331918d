CREATE OR REPLACE VIEW evictrail_v1.cooldown_decisions AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    decision_id,
    decided_at,
    layer,
    verdict,
    reason,
    make_interval(secs => base_seconds) AS base,
    count,
    make_interval(secs => effective_seconds) AS effective,
    until,
    make_interval(secs => cap_seconds) AS cap,
    make_interval(secs => window_seconds) AS history_window,
    capped,
    model,
    origin,
    inputs,
    event_id,
    changed_at
FROM evictrail.cooldown_decisions;

COMMENT ON VIEW evictrail_v1.cooldown_decisions IS 'Cooldown decisions: when something began to hold a VM back, what met it, and when it was over, each with its inputs.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.vmi IS 'Name of the VirtualMachineInstance. NULL for observed ones: the counter names no VM, inputs has the candidates.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.node IS 'Node of the guest at that time.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.decision_id IS 'Identity of the decision; it stays the same when the row is derived again.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.decided_at IS 'When it was decided: the end of the migration, the failure, the act that met it, the time at which it was over, or of the scrape.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.layer IS 'Who holds the VM back: descheduler_cooldown, kubevirt_backoff.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.verdict IS 'holds (it begins), blocked (an act met it: it was stopped, or should have been), released (it is over).';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.reason IS 'migration_completed, migration_failed (it begins); computed_anew (the descheduler was started, or its policy changed, while it held); migration_in_progress, cooldown (an act met one); expired, over (what it held back ended before); observed_block (a counter of the descheduler rose).';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.base IS 'Shortest wait. NULL where the decision has none.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.count IS 'Completions in the memory of the descheduler, failed attempts that KubeVirt still sees, or observed blocks. NULL where the decision has none.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.effective IS 'How long it holds. NULL where the decision has none.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.until IS 'Until when. NULL where the decision has none.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.cap IS 'The most that it may be. NULL where there is no limit.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.history_window IS 'In which completions count. NULL for a backoff.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.capped IS 'True where it would be longer without the limit.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.model IS 'Whose rules were followed: >=4.22 or 4.21 (the descheduler), kubevirt.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.origin IS 'derived (by our model) or observed (by a counter of the descheduler).';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.inputs IS 'What else it was computed from: completions, failed migrations, what the true history would give, candidates.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.event_id IS 'The fact that it follows from. NULL where several do.';
COMMENT ON COLUMN evictrail_v1.cooldown_decisions.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
