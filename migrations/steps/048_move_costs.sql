-- Migrations have what they copied, and on which terms (../schema/migrations.sql). Rows that are there get it when their VM is
-- derived the next time. The view migrations has the columns at its end; the view weekly_move_costs is new.
ALTER TABLE evictrail.migrations
    ADD COLUMN network text,
    ADD COLUMN allow_auto_converge boolean,
    ADD COLUMN allow_post_copy boolean,
    ADD COLUMN post_copy_at timestamptz,
    ADD COLUMN convergence text,
    ADD COLUMN guest_memory bigint,
    ADD COLUMN data_processed bigint,
    ADD COLUMN data_remaining bigint,
    ADD COLUMN dirty_memory_rate bigint,
    ADD COLUMN memory_transfer_rate bigint,
    ADD COLUMN guest_pause double precision,
    ADD COLUMN transfer_lack text;
ALTER TABLE evictrail.migrations
    ADD CONSTRAINT migrations_convergence_check
        CHECK (convergence IN ('converged', 'post_copy', 'paused', 'not_converged'));
ALTER TABLE evictrail.migrations
    ADD CONSTRAINT migrations_transfer_lack_check
        CHECK (transfer_lack IN ('no_series', 'no_sample', 'not_a_number', 'refused', 'unanswered'));
