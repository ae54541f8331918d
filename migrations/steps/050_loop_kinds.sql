-- Loops of one VM no matter who asks, and of two nodes that exchange VMs to and fro (../schema/loops.sql).
ALTER TABLE evictrail.loops
    DROP CONSTRAINT loops_kind_check,
    ADD CONSTRAINT loops_kind_check CHECK (kind IN (
        'dual_retry', 'endless_retry', 'ping_pong', 'churn', 'oscillation', 'frequent_moves', 'repeated_failures',
        'shutdown_churn', 'budget_pinned', 'priority_inversion', 'unanswered_external'
    ));
