-- Migrations: one row per VirtualMachineInstanceMigration; derived rows (00_schemas.sql). Columns that the view has
-- are described there (../views/migrations.sql).
CREATE TABLE evictrail.migrations (
    cluster             text        NOT NULL,
    subject             text        NOT NULL,
    migration_uid       text        NOT NULL,
    migration           text        NOT NULL,
    namespace           text        NOT NULL,
    vmi                 text        NOT NULL,
    vmi_uid             text,
    trigger             text        NOT NULL,
    trigger_confidence  text        NOT NULL CHECK (trigger_confidence IN ('observed', 'asserted', 'inferred', 'unknown')),
    trigger_evidence    text        NOT NULL,
    requester           text,
    requester_class     text        CHECK (requester_class IN (
        'descheduler', 'kubectl', 'cluster_autoscaler', 'karpenter', 'machine_config', 'cluster_api', 'node_maintenance', 'kured', 'kubevirt',
        'forklift', 'harvester', 'console', 'argo_cd', 'flux', 'eviction_request', 'service_account', 'other', 'unknown'
    )),
    impersonator        text,
    source_ip           text,
    evacuation_id       uuid,
    attempt             integer     CHECK (attempt > 0), -- its number within the evacuation
    priority            text,
    source_node         text,
    target_node         text,
    created_at          timestamptz NOT NULL,
    pending_at          timestamptz,
    scheduling_at       timestamptz, -- it takes slots from then on
    scheduled_at        timestamptz,
    preparing_target_at timestamptz,
    target_ready_at     timestamptz,
    running_at          timestamptz,
    finished_at         timestamptz,
    phase               text, -- as KubeVirt spells it
    phase_since         timestamptz, -- NULL: it has no phase
    wait_reason         text        CHECK (wait_reason IN (
        'deleting', 'quota', 'backup', 'utility_volumes', 'backoff', 'leftover_pods', 'cluster_limit', 'node_limit', 'queued', 'target_node_not_ready'
    )),
    wait_detail         text,
    outcome             text        CHECK (outcome IN ('succeeded', 'failed', 'aborted')),
    failure_class       text        CHECK (failure_class IN ('scheduling', 'control_plane', 'data_plane', 'post_copy', 'aborted', 'guest_lost', 'unknown')),
    failure_reason      text,
    failure_text        text,
    failure_evidence    text,
    aborted_by          text,
    abort_impersonator  text,
    end_event           uuid, -- the fact of its end
    end_seen_at         timestamptz, -- when that was observed
    mode                text,
    policy              text,
    network             text,
    allow_auto_converge boolean,
    allow_post_copy     boolean,
    post_copy_at        timestamptz,
    convergence         text        CHECK (convergence IN ('converged', 'post_copy', 'paused', 'not_converged')),
    guest_memory        bigint, -- bytes
    data_processed      bigint, -- bytes
    data_remaining      bigint, -- bytes
    dirty_memory_rate   bigint, -- bytes a second
    memory_transfer_rate bigint, -- bytes a second
    guest_pause         double precision, -- seconds
    transfer_lack       text        CHECK (transfer_lack IN ('no_series', 'no_sample', 'not_a_number', 'refused', 'unanswered')),
    need                text        CHECK (need IN ('needed', 'not_needed', 'unknown')),
    need_because        text,
    source_last_over_at timestamptz,
    benefit             text        CHECK (benefit IN ('helped', 'no_effect', 'harmed', 'unknown')),
    benefit_because     text,
    benefit_final       boolean,
    seen_late           boolean     NOT NULL,
    open_until          timestamptz NOT NULL DEFAULT 'infinity',
    changed_at          timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, migration_uid),
    CHECK ((evacuation_id IS NULL) = (attempt IS NULL))
);
CREATE INDEX migrations_by_time ON evictrail.migrations (created_at);
COMMENT ON INDEX evictrail.migrations_by_time IS 'Newest migrations: view migrations.';
CREATE INDEX migrations_by_slot ON evictrail.migrations (cluster, scheduling_at)
    WHERE scheduling_at IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_by_slot IS 'Who held the slots while a migration waited.';
CREATE INDEX migrations_open ON evictrail.migrations (cluster)
    WHERE finished_at IS NULL;
COMMENT ON INDEX evictrail.migrations_open IS 'The state of a cluster: migrations that are not over.';
CREATE INDEX migrations_by_change ON evictrail.migrations (changed_at);
COMMENT ON INDEX evictrail.migrations_by_change IS 'What came or changed since a time: view migrations.';
CREATE INDEX migrations_by_vmi ON evictrail.migrations (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.migrations_by_vmi IS 'The migrations of one VM, or in one namespace: view migrations.';
CREATE INDEX migrations_held_long ON evictrail.migrations (cluster, scheduling_at)
    WHERE scheduling_at IS NOT NULL AND (finished_at IS NULL OR finished_at - scheduling_at > interval '1 hour');
COMMENT ON INDEX evictrail.migrations_held_long IS 'Who held the slots while a migration waited, and took them long before.';
CREATE INDEX migrations_by_name ON evictrail.migrations (migration COLLATE "C");
COMMENT ON INDEX evictrail.migrations_by_name IS 'Search: migrations by the beginning of their names.';
CREATE INDEX migrations_by_uid ON evictrail.migrations (migration_uid);
COMMENT ON INDEX evictrail.migrations_by_uid IS 'Search: a migration by its UID.';
CREATE INDEX migrations_sampled ON evictrail.migrations (cluster, created_at) INCLUDE (namespace, trigger, outcome, failure_class, failure_reason, source_node, target_node, requester, evacuation_id, vmi, vmi_uid, scheduling_at, scheduled_at, target_ready_at, running_at, finished_at)
    WHERE hashtext(migration_uid) & 31 = 0;
COMMENT ON INDEX evictrail.migrations_sampled IS 'One in 32 migrations: dashboards, over long ranges.';
CREATE INDEX migrations_of_sampled ON evictrail.migrations (cluster, created_at) INCLUDE (namespace, trigger, source_node, requester, evacuation_id, vmi_uid)
    WHERE hashtext(vmi_uid) & 63 = 0;
COMMENT ON INDEX evictrail.migrations_of_sampled IS 'The migrations of one in 64 guests: dashboards that count guests, over long ranges.';
CREATE INDEX migrations_by_source ON evictrail.migrations (cluster, source_node, target_node, open_until);
COMMENT ON INDEX evictrail.migrations_by_source IS 'What left a node since a time: derive the node; from one node to another: dashboards.';
CREATE INDEX migrations_lost ON evictrail.migrations (cluster, created_at)
    WHERE failure_class IN ('post_copy', 'guest_lost');
COMMENT ON INDEX evictrail.migrations_lost IS 'Guests that were lost in migration: dashboards.';
CREATE INDEX migrations_by_end ON evictrail.migrations (cluster, finished_at) INCLUDE (namespace, trigger, outcome)
    WHERE finished_at IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_by_end IS 'The state of a cluster: what moved and failed in the last hours. The moves over time of the front page.';
CREATE INDEX migrations_judged ON evictrail.migrations (cluster, finished_at) INCLUDE (namespace, source_node, benefit)
    WHERE benefit IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_judged IS 'Whether moves helped: dashboards.';
CREATE INDEX migrations_of_updates ON evictrail.migrations (cluster, created_at)
    WHERE trigger = 'workload_update' OR requester_class = 'kubevirt' AND evacuation_id IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_of_updates IS 'What KubeVirt did to bring VMs to its new version: view upgrade_waves.';
CREATE INDEX migrations_to_node ON evictrail.migrations (cluster, target_node, open_until)
    WHERE target_node IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_to_node IS 'What went to a node since a time: whose target pods are on a node that becomes ready or not, which moves may have caused others from it.';

-- Moves that an earlier move caused on the node that it came to; derived of the rows that touch the node. Columns:
-- ../views/consequences.sql.
CREATE TABLE evictrail.consequences (
    cluster        text        NOT NULL,
    subject        text        NOT NULL,
    consequence_id uuid        NOT NULL,
    at             timestamptz NOT NULL,
    namespace      text        NOT NULL,
    vmi            text        NOT NULL,
    vmi_uid        text,
    node           text        NOT NULL,
    migration_uid  text        NOT NULL,
    cause_uid      text        NOT NULL, -- of the earlier migration
    cause_need     text        NOT NULL CHECK (cause_need IN ('needed', 'not_needed', 'unknown')),
    likelihood     text        NOT NULL CHECK (likelihood IN ('likely', 'possible')),
    because        text        NOT NULL,
    open_until     timestamptz NOT NULL DEFAULT 'infinity',
    changed_at     timestamptz DEFAULT now(),
    PRIMARY KEY (cluster, subject, consequence_id)
);
CREATE INDEX consequences_by_time ON evictrail.consequences (at);
COMMENT ON INDEX evictrail.consequences_by_time IS 'Newest consequences: view consequences.';
CREATE INDEX consequences_by_change ON evictrail.consequences (changed_at);
COMMENT ON INDEX evictrail.consequences_by_change IS 'What came or changed since a time: view consequences.';
CREATE INDEX consequences_by_migration ON evictrail.consequences (cluster, migration_uid);
COMMENT ON INDEX evictrail.consequences_by_migration IS 'What caused a move, and what caused that: view consequences.';
