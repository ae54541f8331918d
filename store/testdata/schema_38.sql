-- Schema 38, the last that schema migrations made one after the other, as pg_dump has it, without the comments on views and the body of fill_open_until.
CREATE SCHEMA evictrail;
COMMENT ON SCHEMA evictrail IS 'Internal tables of evictrail. Read the views of schema evictrail_v1 instead.';
CREATE SCHEMA evictrail_v1;
COMMENT ON SCHEMA evictrail_v1 IS 'The views of evictrail, version 1: columns are only added. All times are timestamptz, all durations interval.';
CREATE FUNCTION evictrail.begin_drop(boundary timestamp with time zone, caller name) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    SET lock_timeout TO '200ms'
    AS $$
BEGIN
    IF boundary <> date_trunc('month', boundary, 'UTC') OR boundary > now() - interval '7 days' THEN
        RAISE EXCEPTION 'drop facts before %: expected the beginning of a month, in UTC, a week ago or longer', boundary USING ERRCODE = '22023';
    END IF;
    LOCK TABLE ONLY evictrail.events IN ACCESS EXCLUSIVE MODE;
    DROP TABLE IF EXISTS evictrail.events_next;
    CREATE TABLE evictrail.events_next (LIKE evictrail.events INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES);
    EXECUTE format('ALTER TABLE evictrail.events_next ADD CONSTRAINT before_the_rest CHECK (occurred_at < %L)', boundary);
    EXECUTE format('GRANT SELECT, INSERT ON evictrail.events_next TO %I', caller);
    UPDATE evictrail.retention SET dropping = boundary, complete = false, done_cluster = '', done_subject = '';
END
$$;
CREATE FUNCTION evictrail.count_grown() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    SET default_statistics_target TO '10'
    AS $$
DECLARE
    grown regclass;
BEGIN
    FOR grown IN
        SELECT c.oid
        FROM pg_catalog.pg_class AS c
        WHERE c.relnamespace = 'evictrail'::regnamespace
          AND c.relkind = 'r'
          AND pg_relation_size(c.oid) >= 4 * greatest(c.relpages, 2) * current_setting('block_size')::bigint
    LOOP
        EXECUTE format('ANALYZE (SKIP_LOCKED) %s', grown);
    END LOOP;
END
$$;
CREATE FUNCTION evictrail.ensure_month(month timestamp with time zone) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $$
DECLARE
    first timestamp := date_trunc('month', month AT TIME ZONE 'UTC');
BEGIN
    EXECUTE format(
        'CREATE TABLE IF NOT EXISTS evictrail.events_%s PARTITION OF evictrail.events FOR VALUES FROM (%L) TO (%L)',
        to_char(first, 'YYYY_MM'), first AT TIME ZONE 'UTC', (first + interval '1 month') AT TIME ZONE 'UTC');
END
$$;
CREATE FUNCTION evictrail.erase_requesters(before timestamp with time zone, most integer) RETURNS TABLE(cluster text, subject text, occurred_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $_$
#variable_conflict use_column
DECLARE
    key   text;
    erase text := 'UPDATE evictrail.%I AS e
        SET detail = (e.detail - ''source_ip'') || jsonb_strip_nulls(jsonb_build_object(
            ''user'', CASE WHEN o.person IS NOT NULL THEN o.instead END,
            ''impersonator'', CASE WHEN o.impersonator IS NOT NULL THEN o.instead_of_impersonator END,
            ''user_agent'', evictrail.without(e.detail ->> ''user_agent'', o.person, o.instead, o.impersonator, o.instead_of_impersonator),
            ''message'', evictrail.without(e.detail ->> ''message'', o.person, o.instead, o.impersonator, o.instead_of_impersonator),
            ''stated_reason'', evictrail.without(e.detail ->> ''stated_reason'', o.person, o.instead, o.impersonator, o.instead_of_impersonator),
            ''requested_by'', evictrail.without(e.detail ->> ''requested_by'', o.person, o.instead, o.impersonator, o.instead_of_impersonator)
        ))
        FROM (
            SELECT cluster, subject, occurred_at, id,
                evictrail.person(detail ->> ''user'') AS person, evictrail.instead_of(detail ->> ''user'', $3) AS instead,
                evictrail.person(detail ->> ''impersonator'') AS impersonator, evictrail.instead_of(detail ->> ''impersonator'', $3) AS instead_of_impersonator
            FROM evictrail.%I
            WHERE occurred_at < $1
              AND kind IN (''eviction_requested'', ''action_requested'')
              AND (
                evictrail.person(detail ->> ''user'') IS NOT NULL
                OR evictrail.person(detail ->> ''impersonator'') IS NOT NULL
                OR detail ? ''source_ip''
              )
            LIMIT $2
        ) AS o
        WHERE (e.cluster, e.subject, e.occurred_at, e.id) = (o.cluster, o.subject, o.occurred_at, o.id)
        RETURNING e.cluster, e.subject, e.occurred_at';
BEGIN
    IF before > now() - interval '1 day' THEN
        RAISE EXCEPTION 'erase names before %: expected a time a day ago or longer', before USING ERRCODE = '22023';
    END IF;
    UPDATE evictrail.retention
    SET name_key = gen_random_uuid()::text || gen_random_uuid()::text, name_month = date_trunc('month', before, 'UTC')
    WHERE name_month IS DISTINCT FROM date_trunc('month', before, 'UTC');
    SELECT name_key INTO key FROM evictrail.retention;
    RETURN QUERY EXECUTE format(erase, 'events', 'events') USING before, most, key;
    IF to_regclass('evictrail.events_next') IS NOT NULL THEN
        RETURN QUERY EXECUTE format(erase, 'events_next', 'events_next') USING before, most, key;
    END IF;
END
$_$;
CREATE FUNCTION evictrail.fill_open_until() RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION evictrail.finish_drop() RETURNS SETOF name
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    SET lock_timeout TO '200ms'
    AS $_$
DECLARE
    boundary timestamptz;
    part     name;
BEGIN
    ANALYZE evictrail.events_next;
    LOCK TABLE ONLY evictrail.events IN ACCESS EXCLUSIVE MODE;
    SELECT dropping INTO boundary FROM evictrail.retention WHERE complete;
    IF boundary IS NULL OR EXISTS (SELECT FROM evictrail.subjects WHERE dirty_since < boundary) THEN
        RETURN;
    END IF;
    FOR part IN
        SELECT c.relname
        FROM pg_catalog.pg_inherits AS i
        JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'evictrail.events'::regclass
          AND (c.relname = 'events_kept' OR c.relname ~ '^events_\d{4}_\d{2}$' AND to_date(right(c.relname, 7), 'YYYY_MM')::timestamp AT TIME ZONE 'UTC' < boundary)
        ORDER BY c.relname
    LOOP
        EXECUTE format('DROP TABLE evictrail.%I', part);
        IF part <> 'events_kept' THEN
            RETURN NEXT part;
        END IF;
    END LOOP;
    DELETE FROM evictrail.events_default WHERE occurred_at < boundary; -- what is kept of them is in events_next, too
    ALTER TABLE evictrail.events_next RENAME TO events_kept;
    EXECUTE format('ALTER TABLE evictrail.events ATTACH PARTITION evictrail.events_kept FOR VALUES FROM (MINVALUE) TO (%L)', boundary);
    UPDATE evictrail.retention SET facts_from = boundary, dropping = NULL, complete = false, done_cluster = '', done_subject = '';
END
$_$;
CREATE FUNCTION evictrail.instead_of(name text, key text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT '(erased ' || left(encode(sha256(convert_to(key || name, 'UTF8')), 'hex'), 8) || ')'
$$;
CREATE FUNCTION evictrail.oldest_schema() RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $$SELECT 38::bigint$$;
COMMENT ON FUNCTION evictrail.oldest_schema() IS 'The oldest schema whose programs may work on this one. A schema migration that they would not get along with replaces it.';
CREATE FUNCTION evictrail.person(name text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE WHEN name NOT LIKE 'system:%' AND name NOT LIKE '(erased %' AND name <> '' THEN
        '(?<![[:alnum:]_-])' || regexp_replace(name, '([^[:alnum:]_@:/ -])', '\\\1', 'g') || '(?![[:alnum:]_-])'
    END
$$;
CREATE FUNCTION evictrail.without(said text, one text, instead_of_one text, other text, instead_of_other text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT coalesce(regexp_replace(t, other, instead_of_other, 'g'), t)
    FROM (SELECT coalesce(regexp_replace(said, one, instead_of_one, 'g'), said) AS t) AS x
$$;
CREATE TABLE evictrail.acknowledged (
    cluster text NOT NULL,
    replica text NOT NULL,
    seq bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT acknowledged_seq_check CHECK ((seq > 0))
);
CREATE TABLE evictrail.aspects (
    cluster text NOT NULL,
    object_kind text NOT NULL,
    object_uid text NOT NULL,
    what text NOT NULL,
    value text NOT NULL,
    object_version text NOT NULL,
    subject text NOT NULL,
    namespace text,
    vmi text,
    vmi_uid text,
    node text,
    migration text,
    pod text,
    fact_id uuid
);
CREATE TABLE evictrail.clusters (
    cluster text NOT NULL,
    alive_at timestamp with time zone NOT NULL,
    thresholds jsonb,
    last_event_at timestamp with time zone,
    replayed boolean DEFAULT false NOT NULL,
    uid text,
    epoch bigint DEFAULT 0 NOT NULL,
    CONSTRAINT clusters_epoch_check CHECK ((epoch >= 0))
);
COMMENT ON COLUMN evictrail.clusters.last_event_at IS 'When the newest event was seen. NULL where there is none.';
COMMENT ON COLUMN evictrail.clusters.replayed IS 'It was played from a recording.';
CREATE TABLE evictrail.consequences (
    cluster text NOT NULL,
    subject text NOT NULL,
    consequence_id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    namespace text NOT NULL,
    vmi text NOT NULL,
    vmi_uid text,
    node text NOT NULL,
    migration_uid text NOT NULL,
    cause_uid text NOT NULL,
    cause_need text NOT NULL,
    likelihood text NOT NULL,
    because text NOT NULL,
    changed_at timestamp with time zone DEFAULT now(),
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT consequences_cause_need_check CHECK ((cause_need = ANY (ARRAY['needed'::text, 'not_needed'::text, 'unknown'::text]))),
    CONSTRAINT consequences_likelihood_check CHECK ((likelihood = ANY (ARRAY['likely'::text, 'possible'::text])))
);
CREATE TABLE evictrail.cooldown_decisions (
    cluster text NOT NULL,
    subject text NOT NULL,
    decision_id uuid NOT NULL,
    namespace text NOT NULL,
    vmi text,
    vmi_uid text,
    node text,
    decided_at timestamp with time zone NOT NULL,
    layer text NOT NULL,
    verdict text NOT NULL,
    reason text NOT NULL,
    base_seconds double precision,
    count integer,
    effective_seconds double precision,
    until timestamp with time zone,
    cap_seconds double precision,
    window_seconds double precision,
    capped boolean NOT NULL,
    model text NOT NULL,
    origin text NOT NULL,
    inputs jsonb NOT NULL,
    event_id uuid,
    changed_at timestamp with time zone DEFAULT now(),
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT cooldown_decisions_base_seconds_check CHECK ((base_seconds >= (0)::double precision)),
    CONSTRAINT cooldown_decisions_cap_seconds_check CHECK ((cap_seconds >= (0)::double precision)),
    CONSTRAINT cooldown_decisions_check CHECK (((verdict <> 'holds'::text) OR (until IS NOT NULL))),
    CONSTRAINT cooldown_decisions_count_check CHECK ((count >= 0)),
    CONSTRAINT cooldown_decisions_effective_seconds_check CHECK ((effective_seconds >= (0)::double precision)),
    CONSTRAINT cooldown_decisions_origin_check CHECK ((origin = ANY (ARRAY['derived'::text, 'observed'::text]))),
    CONSTRAINT cooldown_decisions_reason_check CHECK ((reason = ANY (ARRAY['migration_completed'::text, 'computed_anew'::text, 'migration_failed'::text, 'migration_in_progress'::text, 'cooldown'::text, 'expired'::text, 'over'::text, 'observed_block'::text]))),
    CONSTRAINT cooldown_decisions_verdict_check CHECK ((verdict = ANY (ARRAY['holds'::text, 'blocked'::text, 'released'::text]))),
    CONSTRAINT cooldown_decisions_window_seconds_check CHECK ((window_seconds >= (0)::double precision))
);
CREATE TABLE evictrail.derive_failures (
    cluster text NOT NULL,
    subject text NOT NULL,
    reason text NOT NULL,
    failures integer NOT NULL,
    since timestamp with time zone NOT NULL,
    retry_at timestamp with time zone NOT NULL,
    CONSTRAINT derive_failures_failures_check CHECK ((failures > 0))
);
CREATE TABLE evictrail.drain_blockers (
    cluster text NOT NULL,
    subject text NOT NULL,
    drain_id uuid NOT NULL,
    node text NOT NULL,
    namespace text NOT NULL,
    vmi text NOT NULL,
    vmi_uid text NOT NULL,
    blocker text NOT NULL,
    reason text NOT NULL,
    next text NOT NULL,
    waiting_since timestamp with time zone NOT NULL,
    changed_at timestamp with time zone DEFAULT now(),
    last_asked_at timestamp with time zone,
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL
);
CREATE TABLE evictrail.drains (
    cluster text NOT NULL,
    subject text NOT NULL,
    drain_id uuid NOT NULL,
    node text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    requester text,
    requester_class text NOT NULL,
    vmis_total integer NOT NULL,
    vmis_left integer NOT NULL,
    outcome text,
    last_asked_at timestamp with time zone,
    changed_at timestamp with time zone DEFAULT now(),
    impersonator text,
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT drains_check CHECK (((ended_at IS NULL) = (outcome IS NULL))),
    CONSTRAINT drains_outcome_check CHECK ((outcome = ANY (ARRAY['emptied'::text, 'abandoned'::text, 'node_gone'::text]))),
    CONSTRAINT drains_vmis_left_check CHECK ((vmis_left >= 0)),
    CONSTRAINT drains_vmis_total_check CHECK ((vmis_total >= 0))
);
CREATE TABLE evictrail.evacuations (
    cluster text NOT NULL,
    subject text NOT NULL,
    evacuation_id uuid NOT NULL,
    namespace text NOT NULL,
    vmi text NOT NULL,
    vmi_uid text NOT NULL,
    node text NOT NULL,
    strategy text,
    marked_at timestamp with time zone NOT NULL,
    marked_by text NOT NULL,
    trigger text NOT NULL,
    requester_class text NOT NULL,
    confidence text NOT NULL,
    evidence text NOT NULL,
    ended_at timestamp with time zone,
    outcome text,
    attempts integer NOT NULL,
    failed_attempts integer NOT NULL,
    last_failure_class text,
    last_failure_reason text,
    fulfilled_by text,
    seen_late boolean NOT NULL,
    requester text,
    cancelled_by text,
    next_retry_at timestamp with time zone,
    in_progress text,
    in_progress_lost_at timestamp with time zone,
    changed_at timestamp with time zone DEFAULT now(),
    objective_seconds double precision,
    objective_met boolean,
    first_failed_at timestamp with time zone,
    impersonator text,
    cancel_impersonator text,
    policy text,
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT evacuations_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT evacuations_check CHECK (((failed_attempts >= 0) AND (failed_attempts <= attempts))),
    CONSTRAINT evacuations_check1 CHECK (((ended_at IS NULL) = (outcome IS NULL))),
    CONSTRAINT evacuations_confidence_check CHECK ((confidence = ANY (ARRAY['observed'::text, 'asserted'::text, 'inferred'::text, 'unknown'::text]))),
    CONSTRAINT evacuations_marked_by_check CHECK ((marked_by = ANY (ARRAY['mark'::text, 'taint'::text, 'migration'::text]))),
    CONSTRAINT evacuations_objective_seconds_check CHECK ((objective_seconds > (0)::double precision)),
    CONSTRAINT evacuations_outcome_check CHECK ((outcome = ANY (ARRAY['migrated'::text, 'cancelled'::text, 'vmi_gone'::text])))
);
CREATE TABLE evictrail.events (
    cluster text NOT NULL,
    subject text NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    reason text NOT NULL,
    clock text NOT NULL,
    observed_at timestamp with time zone NOT NULL,
    stored_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_late boolean NOT NULL,
    namespace text,
    vmi text,
    vmi_uid text,
    node text,
    migration text,
    migration_uid text,
    object_kind text NOT NULL,
    object_uid text NOT NULL,
    object_version text NOT NULL,
    what text NOT NULL,
    value text NOT NULL,
    evidence text NOT NULL,
    detail jsonb,
    CONSTRAINT events_clock_check CHECK ((clock = ANY (ARRAY['apiserver'::text, 'virt_controller'::text, 'source_node'::text, 'emitter'::text, 'observer'::text]))),
    CONSTRAINT events_cluster_check CHECK ((cluster <> ''::text)),
    CONSTRAINT events_kind_check CHECK ((kind <> ''::text)),
    CONSTRAINT events_reason_check CHECK ((reason <> ''::text)),
    CONSTRAINT events_subject_check CHECK ((subject ~~ '%:%'::text))
)
PARTITION BY RANGE (occurred_at);
CREATE TABLE evictrail.events_default PARTITION OF evictrail.events DEFAULT;
CREATE TABLE evictrail.eviction_requests (
    cluster text NOT NULL,
    subject text NOT NULL,
    request_id uuid NOT NULL,
    namespace text NOT NULL,
    vmi text,
    vmi_uid text,
    node text,
    pod text,
    requested_at timestamp with time zone NOT NULL,
    answered_at timestamp with time zone,
    requester text,
    requester_class text NOT NULL,
    user_agent text,
    stated_reason text,
    source text NOT NULL,
    confidence text NOT NULL,
    dry_run boolean NOT NULL,
    answer text NOT NULL,
    answer_code integer,
    answer_text text,
    effect text,
    evacuation_id uuid,
    repeat_of uuid,
    repeats integer NOT NULL,
    last_repeat_at timestamp with time zone,
    evidence text NOT NULL,
    seen_late boolean NOT NULL,
    event_id uuid,
    salient boolean,
    changed_at timestamp with time zone DEFAULT now(),
    impersonator text,
    source_ip text,
    policy text,
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT eviction_requests_answer_check CHECK ((answer = ANY (ARRAY['marked'::text, 'already_marked'::text, 'not_migratable'::text, 'target_pod'::text, 'pdb'::text, 'allowed'::text, 'not_found'::text, 'error'::text, 'unknown'::text]))),
    CONSTRAINT eviction_requests_check CHECK (((repeat_of IS NULL) OR (repeats = 0))),
    CONSTRAINT eviction_requests_confidence_check CHECK ((confidence = ANY (ARRAY['observed'::text, 'asserted'::text, 'inferred'::text]))),
    CONSTRAINT eviction_requests_effect_check CHECK ((effect = ANY (ARRAY['evacuation'::text, 'shutdown'::text, 'none'::text]))),
    CONSTRAINT eviction_requests_repeats_check CHECK ((repeats >= 0)),
    CONSTRAINT eviction_requests_source_check CHECK ((source = ANY (ARRAY['admission'::text, 'audit'::text, 'admission+audit'::text, 'mark'::text])))
);
CREATE TABLE evictrail.gaps (
    cluster text NOT NULL,
    subject text NOT NULL,
    gap_id uuid NOT NULL,
    source text NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    closed_at timestamp with time zone,
    cause text NOT NULL,
    detail text,
    changed_at timestamp with time zone DEFAULT now(),
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL
);
CREATE TABLE evictrail.leaders (
    cluster text NOT NULL,
    term bigint NOT NULL,
    holder text NOT NULL,
    since timestamp with time zone NOT NULL,
    program text,
    program_term bigint,
    CONSTRAINT leaders_term_check CHECK ((term > 0))
);
COMMENT ON COLUMN evictrail.leaders.program IS 'Version of the program that derives, or that derived last of those that say so. NULL: from before schema 17.';
COMMENT ON COLUMN evictrail.leaders.program_term IS 'Term in which that was said: where it is not the latest, a program that does not say so has derived since.';
CREATE TABLE evictrail.loops (
    cluster text NOT NULL,
    subject text NOT NULL,
    loop_id uuid NOT NULL,
    kind text NOT NULL,
    path text,
    namespace text,
    vmi text,
    vmi_uid text,
    node text,
    opened_at timestamp with time zone NOT NULL,
    closed_at timestamp with time zone,
    closed_by text,
    summary text NOT NULL,
    advice text NOT NULL,
    counts jsonb NOT NULL,
    evidence jsonb NOT NULL,
    changed_at timestamp with time zone DEFAULT now(),
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT loops_check CHECK (((closed_at IS NULL) = (closed_by IS NULL))),
    CONSTRAINT loops_check1 CHECK (((kind = 'dual_retry'::text) = (path IS NOT NULL))),
    CONSTRAINT loops_closed_by_check CHECK ((closed_by = ANY (ARRAY['migrated'::text, 'cancelled'::text, 'vmi_gone'::text, 'quiet'::text, 'became_dual_retry'::text, 'refuted'::text]))),
    CONSTRAINT loops_kind_check CHECK ((kind = ANY (ARRAY['dual_retry'::text, 'endless_retry'::text, 'ping_pong'::text, 'churn'::text, 'shutdown_churn'::text, 'budget_pinned'::text, 'priority_inversion'::text, 'unanswered_external'::text]))),
    CONSTRAINT loops_path_check CHECK ((path = ANY (ARRAY['annotation_lost'::text, 'free_slot'::text, 'request_forgotten'::text, 'gate_off'::text, 'unclassified'::text])))
);
CREATE TABLE evictrail.migrations (
    cluster text NOT NULL,
    subject text NOT NULL,
    migration_uid text NOT NULL,
    migration text NOT NULL,
    namespace text NOT NULL,
    vmi text NOT NULL,
    vmi_uid text,
    trigger text NOT NULL,
    trigger_confidence text NOT NULL,
    trigger_evidence text NOT NULL,
    evacuation_id uuid,
    attempt integer,
    priority text,
    source_node text,
    target_node text,
    created_at timestamp with time zone NOT NULL,
    pending_at timestamp with time zone,
    scheduling_at timestamp with time zone,
    scheduled_at timestamp with time zone,
    preparing_target_at timestamp with time zone,
    target_ready_at timestamp with time zone,
    running_at timestamp with time zone,
    finished_at timestamp with time zone,
    phase text,
    outcome text,
    failure_class text,
    failure_reason text,
    failure_text text,
    failure_evidence text,
    mode text,
    policy text,
    seen_late boolean NOT NULL,
    requester text,
    aborted_by text,
    wait_reason text,
    wait_detail text,
    end_event uuid,
    end_seen_at timestamp with time zone,
    changed_at timestamp with time zone DEFAULT now(),
    phase_since timestamp with time zone,
    need text,
    need_because text,
    source_last_over_at timestamp with time zone,
    benefit text,
    benefit_because text,
    benefit_final boolean,
    requester_class text,
    impersonator text,
    source_ip text,
    abort_impersonator text,
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT migrations_attempt_check CHECK ((attempt > 0)),
    CONSTRAINT migrations_benefit_check CHECK ((benefit = ANY (ARRAY['helped'::text, 'no_effect'::text, 'harmed'::text, 'unknown'::text]))),
    CONSTRAINT migrations_check CHECK (((evacuation_id IS NULL) = (attempt IS NULL))),
    CONSTRAINT migrations_failure_class_check CHECK ((failure_class = ANY (ARRAY['scheduling'::text, 'control_plane'::text, 'data_plane'::text, 'post_copy'::text, 'aborted'::text, 'guest_lost'::text, 'unknown'::text]))),
    CONSTRAINT migrations_need_check CHECK ((need = ANY (ARRAY['needed'::text, 'not_needed'::text, 'unknown'::text]))),
    CONSTRAINT migrations_outcome_check CHECK ((outcome = ANY (ARRAY['succeeded'::text, 'failed'::text, 'aborted'::text]))),
    CONSTRAINT migrations_trigger_confidence_check CHECK ((trigger_confidence = ANY (ARRAY['observed'::text, 'asserted'::text, 'inferred'::text, 'unknown'::text])))
);
COMMENT ON COLUMN evictrail.migrations.phase_since IS 'Since when it is in its phase; NULL: it has none.';
CREATE TABLE evictrail.outages (
    cluster text NOT NULL,
    subject text NOT NULL,
    outage_id uuid NOT NULL,
    node text NOT NULL,
    began_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    ended_by text,
    cause text NOT NULL,
    message text,
    changed_at timestamp with time zone DEFAULT now(),
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT outages_cause_check CHECK ((cause = ANY (ARRAY['silent'::text, 'reported'::text]))),
    CONSTRAINT outages_check CHECK (((ended_at IS NULL) = (ended_by IS NULL))),
    CONSTRAINT outages_ended_by_check CHECK ((ended_by = ANY (ARRAY['recovered'::text, 'node_gone'::text])))
);
CREATE TABLE evictrail.placements (
    cluster text NOT NULL,
    subject text NOT NULL,
    placement_id uuid NOT NULL,
    namespace text NOT NULL,
    vmi text NOT NULL,
    vmi_uid text NOT NULL,
    node text NOT NULL,
    from_at timestamp with time zone NOT NULL,
    to_at timestamp with time zone,
    arrived_by text NOT NULL,
    left_by text,
    seen_late boolean NOT NULL,
    ended_by text,
    strategy text,
    not_migratable text,
    not_migratable_since timestamp with time zone,
    opted_out boolean,
    changed_at timestamp with time zone DEFAULT now(),
    ended_requester text,
    ended_requester_class text,
    ended_detail text,
    terminating_since timestamp with time zone,
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT placements_check CHECK (((to_at IS NULL) = (left_by IS NULL))),
    CONSTRAINT placements_ended_by_check CHECK ((ended_by = ANY (ARRAY['evicted'::text, 'taint_manager'::text, 'preempted'::text, 'node_pressure'::text, 'pod_gc'::text, 'post_copy'::text, 'hand_over'::text, 'stopped'::text, 'deleted'::text, 'failed'::text])))
);
CREATE TABLE evictrail.recorders (
    cluster text NOT NULL,
    replica text NOT NULL,
    alive_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    state text NOT NULL,
    since timestamp with time zone NOT NULL,
    why text[] NOT NULL,
    unseen text[] NOT NULL,
    leads boolean NOT NULL,
    leader_known boolean NOT NULL,
    leader_since timestamp with time zone NOT NULL,
    leader_problem text NOT NULL,
    derived_at timestamp with time zone,
    failure text NOT NULL,
    CONSTRAINT recorders_state_check CHECK ((state = ANY (ARRAY['recording'::text, 'degraded'::text, 'derivation_behind'::text, 'no_leader'::text, 'database_read_only'::text, 'not_recording'::text])))
);
COMMENT ON TABLE evictrail.recorders IS 'What each replica says of its own recording, and when.';
CREATE TABLE evictrail.retention (
    only_row boolean DEFAULT true NOT NULL,
    facts_from timestamp with time zone,
    dropping timestamp with time zone,
    complete boolean DEFAULT false NOT NULL,
    done_cluster text DEFAULT ''::text NOT NULL,
    done_subject text DEFAULT ''::text NOT NULL,
    name_key text,
    name_month timestamp with time zone,
    CONSTRAINT retention_only_row_check CHECK (only_row)
);
CREATE TABLE evictrail.subjects (
    cluster text NOT NULL,
    subject text NOT NULL,
    derived_at timestamp with time zone NOT NULL,
    next_at timestamp with time zone,
    version bigint DEFAULT 0 NOT NULL,
    dirty_since timestamp with time zone
);
CREATE TABLE evictrail.timeline (
    cluster text NOT NULL,
    subject text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    reason text NOT NULL,
    namespace text,
    vmi text,
    vmi_uid text,
    node text,
    sentence text NOT NULL,
    seen_late boolean NOT NULL,
    changed_at timestamp with time zone DEFAULT now(),
    tie integer,
    open_until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL
);
COMMENT ON COLUMN evictrail.timeline.tie IS 'How many lines of the same subject and moment come before this one; NULL: unknown, from before schema 12.';
CREATE TABLE evictrail.watching (
    cluster text NOT NULL,
    replica text NOT NULL,
    source text NOT NULL,
    since timestamp with time zone NOT NULL,
    upto timestamp with time zone NOT NULL
);
CREATE VIEW evictrail_v1.clusters AS
 SELECT clusters.cluster,
    NULLIF(clusters.alive_at, to_timestamp((0)::double precision)) AS last_seen_at
   FROM evictrail.clusters;
CREATE VIEW evictrail_v1.consequences AS
 SELECT c.cluster,
    c.namespace,
    c.vmi,
    c.vmi_uid,
    c.node,
    c.consequence_id,
    c.at,
    c.migration_uid,
    c.cause_uid,
    c.cause_need,
    c.likelihood,
    c.because,
    r.cause_uid AS needless_uid,
    r.likelihood AS needless_likelihood,
    r.steps,
    c.changed_at
   FROM (evictrail.consequences c
     LEFT JOIN LATERAL ( WITH RECURSIVE up AS (
                 SELECT c.cause_uid,
                    c.cause_need,
                    c.likelihood,
                    1 AS steps
                UNION ALL
                 SELECT n.cause_uid,
                    n.cause_need,
                    GREATEST(up_1.likelihood, n.likelihood) AS "greatest",
                    (up_1.steps + 1)
                   FROM (up up_1
                     JOIN evictrail.consequences n ON (((n.cluster = c.cluster) AND (n.migration_uid = up_1.cause_uid))))
                  WHERE ((up_1.steps < 5) AND (up_1.cause_need <> 'not_needed'::text))
                )
         SELECT up.cause_uid,
            up.likelihood,
            up.steps
           FROM up
          WHERE (up.cause_need = 'not_needed'::text)
          ORDER BY up.likelihood, up.steps, up.cause_uid
         LIMIT 1) r ON (true));
CREATE VIEW evictrail_v1.cooldown_decisions AS
 SELECT cooldown_decisions.cluster,
    cooldown_decisions.namespace,
    cooldown_decisions.vmi,
    cooldown_decisions.vmi_uid,
    cooldown_decisions.node,
    cooldown_decisions.decision_id,
    cooldown_decisions.decided_at,
    cooldown_decisions.layer,
    cooldown_decisions.verdict,
    cooldown_decisions.reason,
    make_interval(secs => cooldown_decisions.base_seconds) AS base,
    cooldown_decisions.count,
    make_interval(secs => cooldown_decisions.effective_seconds) AS effective,
    cooldown_decisions.until,
    make_interval(secs => cooldown_decisions.cap_seconds) AS cap,
    make_interval(secs => cooldown_decisions.window_seconds) AS history_window,
    cooldown_decisions.capped,
    cooldown_decisions.model,
    cooldown_decisions.origin,
    cooldown_decisions.inputs,
    cooldown_decisions.event_id,
    cooldown_decisions.changed_at
   FROM evictrail.cooldown_decisions;
CREATE VIEW evictrail_v1.cooldowns_now AS
 SELECT c.cluster,
    d.namespace,
    d.vmi,
    d.vmi_uid,
    d.node,
    (array_agg(d.layer ORDER BY d.until DESC))[1] AS layer,
    (array_agg(make_interval(secs => d.effective_seconds) ORDER BY d.until DESC))[1] AS effective,
    max(d.until) AS until,
    (max(d.until) - c.alive_at) AS remaining,
    max(d.until) FILTER (WHERE (d.layer = 'descheduler_cooldown'::text)) AS descheduler_cooldown_until,
    max(d.until) FILTER (WHERE (d.layer = 'kubevirt_backoff'::text)) AS kubevirt_backoff_until
   FROM (evictrail.clusters c
     CROSS JOIN LATERAL ( SELECT h.cluster,
            h.subject,
            h.decision_id,
            h.namespace,
            h.vmi,
            h.vmi_uid,
            h.node,
            h.decided_at,
            h.layer,
            h.verdict,
            h.reason,
            h.base_seconds,
            h.count,
            h.effective_seconds,
            h.until,
            h.cap_seconds,
            h.window_seconds,
            h.capped,
            h.model,
            h.origin,
            h.inputs,
            h.event_id,
            h.changed_at
           FROM evictrail.cooldown_decisions h
          WHERE ((h.cluster = c.cluster) AND (h.verdict = 'holds'::text) AND (h.until > c.alive_at))
         OFFSET 0) d)
  WHERE ((d.decided_at <= c.alive_at) AND (NOT (EXISTS ( SELECT
           FROM evictrail.cooldown_decisions later
          WHERE ((later.cluster = d.cluster) AND (later.subject = d.subject) AND (later.layer = d.layer) AND (later.vmi_uid = d.vmi_uid) AND (((later.verdict = 'holds'::text) AND (later.decided_at > d.decided_at)) OR ((later.verdict = 'released'::text) AND (later.decided_at >= d.decided_at))))
         OFFSET 0))))
  GROUP BY c.cluster, d.namespace, d.vmi, d.vmi_uid, d.node, c.alive_at;
CREATE VIEW evictrail_v1.drain_blockers AS
 SELECT drain_blockers.cluster,
    drain_blockers.namespace,
    drain_blockers.vmi,
    drain_blockers.vmi_uid,
    drain_blockers.node,
    drain_blockers.drain_id,
    drain_blockers.blocker,
    drain_blockers.reason,
    drain_blockers.next,
    drain_blockers.waiting_since,
    drain_blockers.changed_at,
    drain_blockers.last_asked_at
   FROM evictrail.drain_blockers;
CREATE VIEW evictrail_v1.drains AS
 SELECT drains.cluster,
    drains.node,
    drains.drain_id,
    drains.started_at,
    drains.ended_at,
    drains.requester,
    drains.requester_class,
    drains.vmis_total,
    drains.vmis_left,
    drains.outcome,
    drains.last_asked_at,
    drains.changed_at,
    drains.impersonator
   FROM evictrail.drains;
CREATE VIEW evictrail_v1.evacuations AS
 SELECT e.cluster,
    e.namespace,
    e.vmi,
    e.vmi_uid,
    e.node,
    e.evacuation_id,
    e.strategy,
    e.marked_at,
    e.marked_by,
    e.trigger,
    e.requester_class,
    e.confidence,
    e.evidence,
    e.ended_at,
    e.outcome,
    e.attempts,
    e.failed_attempts,
    e.last_failure_class,
    e.last_failure_reason,
    e.fulfilled_by,
    e.seen_late,
    e.requester,
    e.cancelled_by,
    e.next_retry_at,
    e.in_progress,
    e.in_progress_lost_at,
    e.changed_at,
    make_interval(secs => e.objective_seconds) AS objective,
    e.objective_met,
    e.first_failed_at,
    e.impersonator,
    e.cancel_impersonator,
    e.policy,
    ( SELECT (c.alive_at - e.next_retry_at)
           FROM evictrail.clusters c
          WHERE ((c.cluster = e.cluster) AND (e.ended_at IS NULL) AND (e.next_retry_at < c.alive_at))) AS overdue
   FROM evictrail.evacuations e;
CREATE VIEW evictrail_v1.events AS
 SELECT events.cluster,
    events.namespace,
    events.vmi,
    events.vmi_uid,
    events.node,
    events.id AS event_id,
    events.occurred_at AS at,
    events.clock,
    events.observed_at,
    events.stored_at,
    events.kind,
    events.reason,
    events.migration,
    events.migration_uid,
    events.object_kind,
    events.object_uid,
    events.object_version,
    events.what,
    events.value,
    events.evidence,
    events.detail,
    events.seen_late,
    events.stored_at AS changed_at
   FROM evictrail.events
UNION ALL
 SELECT d.cluster,
    d.namespace,
    d.vmi,
    d.vmi_uid,
    d.node,
    d.decision_id AS event_id,
    d.decided_at AS at,
    NULL::text AS clock,
    NULL::timestamp with time zone AS observed_at,
    NULL::timestamp with time zone AS stored_at,
    'cooldown_decided'::text AS kind,
    d.reason,
    (d.inputs ->> 'migration'::text) AS migration,
    (d.inputs ->> 'migration_uid'::text) AS migration_uid,
    'Decision'::text AS object_kind,
    (d.decision_id)::text AS object_uid,
    ''::text AS object_version,
    d.layer AS what,
    d.verdict AS value,
    d.model AS evidence,
    (((to_jsonb(d.*) - 'cluster'::text) - 'subject'::text) - 'changed_at'::text) AS detail,
    false AS seen_late,
    d.changed_at
   FROM evictrail.cooldown_decisions d;
CREATE VIEW evictrail_v1.eviction_requests AS
 SELECT eviction_requests.cluster,
    eviction_requests.namespace,
    eviction_requests.vmi,
    eviction_requests.vmi_uid,
    eviction_requests.node,
    eviction_requests.request_id,
    eviction_requests.requested_at,
    eviction_requests.answered_at,
    eviction_requests.pod,
    eviction_requests.requester,
    eviction_requests.requester_class,
    eviction_requests.user_agent,
    eviction_requests.stated_reason,
    eviction_requests.source,
    eviction_requests.confidence,
    eviction_requests.dry_run,
    eviction_requests.answer,
    eviction_requests.answer_code,
    eviction_requests.answer_text,
    eviction_requests.effect,
    eviction_requests.evacuation_id,
    eviction_requests.repeat_of,
    eviction_requests.repeats,
    eviction_requests.last_repeat_at,
    eviction_requests.evidence,
    eviction_requests.seen_late,
    eviction_requests.event_id,
    eviction_requests.changed_at,
    eviction_requests.impersonator,
    eviction_requests.source_ip,
    eviction_requests.policy
   FROM evictrail.eviction_requests;
CREATE VIEW evictrail_v1.gaps AS
 SELECT gaps.cluster,
    gaps.gap_id,
    gaps.source,
    gaps.opened_at,
    gaps.closed_at,
    gaps.cause,
    gaps.detail,
    gaps.changed_at
   FROM evictrail.gaps;
CREATE VIEW evictrail_v1.loops AS
 SELECT loops.cluster,
    loops.namespace,
    loops.vmi,
    loops.vmi_uid,
    loops.node,
    loops.loop_id,
    loops.kind,
    loops.path,
    loops.opened_at,
    loops.closed_at,
    loops.closed_by,
    loops.summary,
    loops.advice,
    loops.counts,
    loops.evidence,
    loops.changed_at
   FROM evictrail.loops;
CREATE VIEW evictrail_v1.migration_phases AS
 SELECT e.cluster,
    e.namespace,
    e.vmi,
    m.vmi_uid,
    m.source_node AS node,
    e.migration,
    e.migration_uid,
    e.value AS phase,
    e.occurred_at AS at,
    e.observed_at,
    e.seen_late
   FROM (evictrail.events e
     LEFT JOIN evictrail.migrations m ON (((m.cluster = e.cluster) AND (m.subject = e.subject) AND (m.migration_uid = e.migration_uid))))
  WHERE (e.kind = 'migration_phase'::text);
CREATE VIEW evictrail_v1.migrations AS
 SELECT migrations.cluster,
    migrations.namespace,
    migrations.vmi,
    migrations.vmi_uid,
    migrations.source_node AS node,
    migrations.migration,
    migrations.migration_uid,
    migrations.trigger,
    migrations.trigger_confidence,
    migrations.trigger_evidence,
    migrations.evacuation_id,
    migrations.attempt,
    migrations.priority,
    migrations.source_node,
    migrations.target_node,
    migrations.created_at,
    migrations.pending_at,
    migrations.scheduling_at,
    migrations.scheduled_at,
    migrations.preparing_target_at,
    migrations.target_ready_at,
    migrations.running_at,
    migrations.finished_at,
    migrations.phase,
    GREATEST((migrations.scheduling_at - migrations.created_at), '00:00:00'::interval) AS queue_wait,
    GREATEST((migrations.finished_at - migrations.created_at), '00:00:00'::interval) AS duration,
    migrations.outcome,
    migrations.failure_class,
    migrations.failure_reason,
    migrations.failure_text,
    migrations.failure_evidence,
    migrations.mode,
    migrations.policy,
    migrations.seen_late,
    migrations.requester,
    migrations.aborted_by,
    migrations.wait_reason,
    migrations.wait_detail,
    migrations.changed_at,
    migrations.need,
    migrations.need_because,
    migrations.source_last_over_at,
    migrations.benefit,
    migrations.benefit_because,
    migrations.benefit_final,
    COALESCE(migrations.requester_class, 'unknown'::text) AS requester_class,
    migrations.impersonator,
    migrations.source_ip,
    migrations.abort_impersonator
   FROM evictrail.migrations;
CREATE VIEW evictrail_v1.node_context AS
 SELECT f.cluster,
    f.namespace,
    f.vmi,
    f.vmi_uid,
    r.node,
    (((f.id)::text || '/'::text) || lpad((n.ordinal)::text, 4, '0'::text)) AS context_id,
    f.occurred_at AS at,
    (f.detail ->> 'moment'::text) AS moment,
    make_interval(secs => ((f.detail ->> 'after_seconds'::text))::double precision) AS after_end,
    r.metric,
    r.value,
    r.threshold,
    (f.detail ->> 'origin'::text) AS origin,
    r.sample,
    r.at AS sampled_at,
    r.lack AS reason,
        CASE r.node
            WHEN m.source_node THEN 'source'::text
            WHEN m.target_node THEN 'target'::text
            ELSE NULL::text
        END AS side,
    f.migration,
    f.migration_uid,
    m.evacuation_id,
    m.attempt,
    f.id AS event_id,
    f.stored_at AS changed_at
   FROM (((evictrail.events f
     CROSS JOIN LATERAL jsonb_array_elements((f.detail -> 'readings'::text)) WITH ORDINALITY n(reading, ordinal))
     CROSS JOIN LATERAL jsonb_to_record(n.reading) r(node text, metric text, sample text, at timestamp with time zone, value double precision, threshold double precision, lack text))
     LEFT JOIN evictrail.migrations m ON (((m.cluster = f.cluster) AND (m.subject = f.subject) AND (m.migration_uid = f.migration_uid))))
  WHERE (f.kind = 'node_load'::text);
CREATE VIEW evictrail_v1.node_outages AS
 SELECT outages.cluster,
    outages.node,
    outages.outage_id,
    outages.began_at,
    outages.ended_at,
    outages.ended_by,
    outages.cause,
    outages.message,
    outages.changed_at
   FROM evictrail.outages;
CREATE VIEW evictrail_v1.placements AS
 SELECT p.cluster,
    p.namespace,
    p.vmi,
    p.vmi_uid,
    p.node,
    p.placement_id,
    p.from_at,
    p.to_at,
    p.arrived_by,
    p.left_by,
    p.seen_late,
    p.ended_by,
    p.strategy,
    p.not_migratable,
    p.not_migratable_since,
    p.opted_out,
    p.changed_at,
    p.ended_requester,
    p.ended_requester_class,
    p.ended_detail,
        CASE
            WHEN (p.ended_by = ANY (ARRAY['evicted'::text, 'taint_manager'::text, 'preempted'::text, 'node_pressure'::text, 'pod_gc'::text, 'post_copy'::text, 'hand_over'::text])) THEN true
            WHEN (p.ended_by = ANY (ARRAY['stopped'::text, 'deleted'::text])) THEN false
            ELSE NULL::boolean
        END AS memory_lost,
        CASE
            WHEN (p.ended_by = ANY (ARRAY['evicted'::text, 'taint_manager'::text, 'preempted'::text, 'node_pressure'::text, 'pod_gc'::text, 'post_copy'::text, 'hand_over'::text])) THEN ( SELECT min(b.from_at) AS min
               FROM evictrail.placements b
              WHERE ((b.cluster = p.cluster) AND (b.namespace = p.namespace) AND (b.vmi = p.vmi) AND (b.vmi_uid <> p.vmi_uid) AND (b.from_at >= date_trunc('second'::text, p.to_at))))
            ELSE NULL::timestamp with time zone
        END AS back_at,
    p.terminating_since
   FROM evictrail.placements p;
CREATE VIEW evictrail_v1.timeline AS
 SELECT timeline.cluster,
    timeline.namespace,
    timeline.vmi,
    timeline.vmi_uid,
    timeline.node,
    timeline.at,
    timeline.kind,
    timeline.reason,
    timeline.sentence,
    timeline.event_id,
    timeline.seen_late,
    timeline.changed_at
   FROM evictrail.timeline;
CREATE TABLE public.evictrail_schema (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.evictrail_schema ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY ( SEQUENCE NAME public.evictrail_schema_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY evictrail.acknowledged ADD CONSTRAINT acknowledged_pkey PRIMARY KEY (cluster, replica);
ALTER TABLE ONLY evictrail.aspects ADD CONSTRAINT aspects_pkey PRIMARY KEY (cluster, object_kind, object_uid, what);
ALTER TABLE ONLY evictrail.clusters ADD CONSTRAINT clusters_pkey PRIMARY KEY (cluster);
ALTER TABLE ONLY evictrail.consequences ADD CONSTRAINT consequences_pkey PRIMARY KEY (cluster, subject, consequence_id);
ALTER TABLE evictrail.cooldown_decisions ADD CONSTRAINT cooldown_decisions_layer_check CHECK ((layer = ANY (ARRAY['descheduler_cooldown'::text, 'kubevirt_backoff'::text]))) NOT VALID;
ALTER TABLE ONLY evictrail.cooldown_decisions ADD CONSTRAINT cooldown_decisions_pkey PRIMARY KEY (cluster, subject, decision_id);
ALTER TABLE ONLY evictrail.derive_failures ADD CONSTRAINT derive_failures_pkey PRIMARY KEY (cluster, subject);
ALTER TABLE evictrail.drain_blockers ADD CONSTRAINT drain_blockers_blocker_check CHECK ((blocker = ANY (ARRAY['not_migratable'::text, 'failing'::text, 'queued'::text, 'migrating'::text, 'external'::text, 'opted_out'::text, 'pdb'::text, 'node_not_ready'::text]))) NOT VALID;
ALTER TABLE ONLY evictrail.drain_blockers ADD CONSTRAINT drain_blockers_pkey PRIMARY KEY (cluster, subject, vmi_uid);
ALTER TABLE ONLY evictrail.drains ADD CONSTRAINT drains_pkey PRIMARY KEY (cluster, subject, drain_id);
ALTER TABLE ONLY evictrail.evacuations ADD CONSTRAINT evacuations_pkey PRIMARY KEY (cluster, subject, evacuation_id);
ALTER TABLE evictrail.events ADD CONSTRAINT events_pkey PRIMARY KEY (cluster, subject, occurred_at, id);
ALTER TABLE ONLY evictrail.eviction_requests ADD CONSTRAINT eviction_requests_pkey PRIMARY KEY (cluster, subject, request_id);
ALTER TABLE evictrail.eviction_requests ADD CONSTRAINT eviction_requests_requester_class_check CHECK ((requester_class = ANY (ARRAY['descheduler'::text, 'kubectl'::text, 'cluster_autoscaler'::text, 'karpenter'::text, 'machine_config'::text, 'cluster_api'::text, 'node_maintenance'::text, 'kured'::text, 'kubevirt'::text, 'forklift'::text, 'harvester'::text, 'console'::text, 'argo_cd'::text, 'flux'::text, 'service_account'::text, 'other'::text, 'unknown'::text]))) NOT VALID;
ALTER TABLE ONLY evictrail.gaps ADD CONSTRAINT gaps_pkey PRIMARY KEY (cluster, subject, gap_id);
ALTER TABLE ONLY evictrail.leaders ADD CONSTRAINT leaders_pkey PRIMARY KEY (cluster);
ALTER TABLE ONLY evictrail.loops ADD CONSTRAINT loops_pkey PRIMARY KEY (cluster, subject, loop_id);
ALTER TABLE ONLY evictrail.migrations ADD CONSTRAINT migrations_pkey PRIMARY KEY (cluster, subject, migration_uid);
ALTER TABLE evictrail.migrations ADD CONSTRAINT migrations_requester_class_check CHECK ((requester_class = ANY (ARRAY['descheduler'::text, 'kubectl'::text, 'cluster_autoscaler'::text, 'karpenter'::text, 'machine_config'::text, 'cluster_api'::text, 'node_maintenance'::text, 'kured'::text, 'kubevirt'::text, 'forklift'::text, 'harvester'::text, 'console'::text, 'argo_cd'::text, 'flux'::text, 'service_account'::text, 'other'::text, 'unknown'::text]))) NOT VALID;
ALTER TABLE evictrail.migrations ADD CONSTRAINT migrations_wait_reason_check CHECK ((wait_reason = ANY (ARRAY['deleting'::text, 'quota'::text, 'backup'::text, 'utility_volumes'::text, 'backoff'::text, 'leftover_pods'::text, 'cluster_limit'::text, 'node_limit'::text, 'queued'::text, 'target_node_not_ready'::text]))) NOT VALID;
ALTER TABLE ONLY evictrail.outages ADD CONSTRAINT outages_pkey PRIMARY KEY (cluster, subject, outage_id);
ALTER TABLE ONLY evictrail.placements ADD CONSTRAINT placements_pkey PRIMARY KEY (cluster, subject, placement_id);
ALTER TABLE ONLY evictrail.recorders ADD CONSTRAINT recorders_pkey PRIMARY KEY (cluster, replica);
ALTER TABLE ONLY evictrail.retention ADD CONSTRAINT retention_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY evictrail.subjects ADD CONSTRAINT subjects_pkey PRIMARY KEY (cluster, subject);
ALTER TABLE ONLY evictrail.timeline ADD CONSTRAINT timeline_pkey PRIMARY KEY (cluster, subject, event_id);
ALTER TABLE ONLY evictrail.watching ADD CONSTRAINT watching_pkey PRIMARY KEY (cluster, replica, source);
ALTER TABLE ONLY public.evictrail_schema ADD CONSTRAINT evictrail_schema_pkey PRIMARY KEY (id);
CREATE INDEX consequences_by_change ON evictrail.consequences USING btree (changed_at);
COMMENT ON INDEX evictrail.consequences_by_change IS 'What came or changed since a time: view consequences.';
CREATE INDEX consequences_by_migration ON evictrail.consequences USING btree (cluster, migration_uid);
COMMENT ON INDEX evictrail.consequences_by_migration IS 'What caused a move, and what caused that: view consequences.';
CREATE INDEX consequences_by_time ON evictrail.consequences USING btree (at);
COMMENT ON INDEX evictrail.consequences_by_time IS 'Newest consequences: view consequences.';
CREATE INDEX cooldown_decisions_blocked ON evictrail.cooldown_decisions USING btree (cluster, decided_at) WHERE (verdict = 'blocked'::text);
COMMENT ON INDEX evictrail.cooldown_decisions_blocked IS 'What met a cooldown: dashboards.';
CREATE INDEX cooldown_decisions_by_change ON evictrail.cooldown_decisions USING btree (changed_at);
COMMENT ON INDEX evictrail.cooldown_decisions_by_change IS 'What came or changed since a time: view cooldown_decisions.';
CREATE INDEX cooldown_decisions_by_namespace ON evictrail.cooldown_decisions USING btree (cluster, namespace, decided_at);
COMMENT ON INDEX evictrail.cooldown_decisions_by_namespace IS 'The decisions about the VMs of one namespace: views cooldown_decisions and events.';
CREATE INDEX cooldown_decisions_by_node ON evictrail.cooldown_decisions USING btree (cluster, node, decided_at);
COMMENT ON INDEX evictrail.cooldown_decisions_by_node IS 'Derive a node: which VMs a counter of the descheduler can be about. The decisions about the guests of one node: views cooldown_decisions and events.';
CREATE INDEX cooldown_decisions_by_time ON evictrail.cooldown_decisions USING btree (decided_at);
COMMENT ON INDEX evictrail.cooldown_decisions_by_time IS 'Newest decisions: view cooldown_decisions.';
CREATE INDEX cooldown_decisions_by_vmi ON evictrail.cooldown_decisions USING btree (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.cooldown_decisions_by_vmi IS 'The decisions about one VM, or in one namespace: view cooldown_decisions.';
CREATE INDEX cooldown_decisions_holding ON evictrail.cooldown_decisions USING btree (cluster, until) WHERE (verdict = 'holds'::text);
COMMENT ON INDEX evictrail.cooldown_decisions_holding IS 'What holds now: view cooldowns_now.';
CREATE INDEX cooldown_decisions_of_descheduler ON evictrail.cooldown_decisions USING btree (cluster, decided_at) WHERE ((layer = 'descheduler_cooldown'::text) AND (verdict = ANY (ARRAY['holds'::text, 'released'::text])));
COMMENT ON INDEX evictrail.cooldown_decisions_of_descheduler IS 'The cooldowns of the descheduler: dashboards.';
CREATE INDEX cooldown_decisions_with_finding ON evictrail.cooldown_decisions USING btree (cluster, decided_at) WHERE (inputs ? 'finding'::text);
COMMENT ON INDEX evictrail.cooldown_decisions_with_finding IS 'Where the descheduler does not know what really happened: dashboards.';
CREATE INDEX drain_blockers_by_change ON evictrail.drain_blockers USING btree (changed_at);
COMMENT ON INDEX evictrail.drain_blockers_by_change IS 'What came or changed since a time: view drain_blockers.';
CREATE INDEX drain_blockers_by_time ON evictrail.drain_blockers USING btree (waiting_since);
COMMENT ON INDEX evictrail.drain_blockers_by_time IS 'What drains wait for: view drain_blockers.';
CREATE INDEX drains_by_change ON evictrail.drains USING btree (changed_at);
COMMENT ON INDEX evictrail.drains_by_change IS 'What came or changed since a time: view drains.';
CREATE INDEX drains_by_time ON evictrail.drains USING btree (started_at);
COMMENT ON INDEX evictrail.drains_by_time IS 'Newest drains: view drains.';
CREATE INDEX drains_open ON evictrail.drains USING btree (cluster) WHERE (ended_at IS NULL);
COMMENT ON INDEX evictrail.drains_open IS 'The state of a cluster: drains that go on.';
CREATE INDEX evacuations_by_change ON evictrail.evacuations USING btree (changed_at);
COMMENT ON INDEX evictrail.evacuations_by_change IS 'What came or changed since a time: view evacuations.';
CREATE INDEX evacuations_by_node ON evictrail.evacuations USING btree (cluster, node);
COMMENT ON INDEX evictrail.evacuations_by_node IS 'Derive a node: its evacuations.';
CREATE INDEX evacuations_by_time ON evictrail.evacuations USING btree (marked_at);
COMMENT ON INDEX evictrail.evacuations_by_time IS 'Newest evacuations: view evacuations.';
CREATE INDEX evacuations_by_vmi ON evictrail.evacuations USING btree (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.evacuations_by_vmi IS 'The evacuations of one VM, or in one namespace: view evacuations.';
CREATE INDEX evacuations_failing ON evictrail.evacuations USING btree (cluster, marked_at) INCLUDE (node, first_failed_at, ended_at) WHERE (first_failed_at IS NOT NULL);
COMMENT ON INDEX evictrail.evacuations_failing IS 'From which nodes evacuations failed, and when: dashboards.';
CREATE INDEX evacuations_of_descheduler ON evictrail.evacuations USING btree (cluster, marked_at) INCLUDE (node, ended_at) WHERE (trigger = 'descheduler'::text);
COMMENT ON INDEX evictrail.evacuations_of_descheduler IS 'From which nodes the descheduler evicted, and when: dashboards.';
CREATE INDEX evacuations_open ON evictrail.evacuations USING btree (cluster) WHERE (ended_at IS NULL);
COMMENT ON INDEX evictrail.evacuations_open IS 'The state of a cluster: open evacuations.';
CREATE INDEX evacuations_stuck ON evictrail.evacuations USING btree (cluster, marked_at) WHERE ((ended_at IS NULL) OR ((ended_at - marked_at) > '00:05:00'::interval));
COMMENT ON INDEX evictrail.evacuations_stuck IS 'Derive the cluster: evacuations that may hold slots for long.';
CREATE INDEX events_about_nodes ON evictrail.events USING btree (cluster, subject, occurred_at) WHERE ((subject ~~ 'node:%'::text) AND (kind <> 'action_requested'::text));
COMMENT ON INDEX evictrail.events_about_nodes IS 'What became of a node, without what was asked of it: derive the node and its VMs.';
CREATE INDEX events_by_annotation ON evictrail.events USING btree (cluster, namespace, vmi, occurred_at) WHERE (kind = ANY (ARRAY['annotation_set'::text, 'annotation_cleared'::text]));
COMMENT ON INDEX evictrail.events_by_annotation IS 'When the annotations of one VM came and went: dashboards, by view events.';
CREATE INDEX events_by_change ON evictrail.events USING btree (stored_at);
COMMENT ON INDEX evictrail.events_by_change IS 'What was stored since a time: view events.';
CREATE INDEX events_by_evacuated_node ON evictrail.events USING btree (cluster, node, occurred_at) WHERE (kind = ANY (ARRAY['evacuation_marked'::text, 'migration_seen'::text, 'migration_completed'::text]));
COMMENT ON INDEX evictrail.events_by_evacuated_node IS 'Which VMs a fact about a node, the rules or the descheduler concerns: derive again.';
CREATE INDEX events_by_launcher ON evictrail.events USING btree (cluster, namespace, ((detail ->> 'pod'::text))) WHERE (kind = 'launcher_pod'::text);
COMMENT ON INDEX evictrail.events_by_launcher IS 'Whose pod a request is about: derive that VM again.';
CREATE INDEX events_by_load ON evictrail.events USING btree (occurred_at) WHERE (kind = 'node_load'::text);
COMMENT ON INDEX evictrail.events_by_load IS 'The load of nodes in a time, and the newest of any cluster: view node_context.';
CREATE INDEX events_by_migration_name ON evictrail.events USING btree (cluster, namespace, migration) WHERE (kind = 'migration_seen'::text);
COMMENT ON INDEX evictrail.events_by_migration_name IS 'Which migration a request names: derive its VM again.';
CREATE INDEX events_by_namespace ON evictrail.events USING btree (cluster, namespace, occurred_at);
COMMENT ON INDEX evictrail.events_by_namespace IS 'The facts of one namespace: view events. Which migrations a request in their namespace made: derive their VMs again.';
CREATE INDEX events_by_node ON evictrail.events USING btree (cluster, node, occurred_at) WHERE (node IS NOT NULL);
COMMENT ON INDEX evictrail.events_by_node IS 'The facts about one node: view events.';
CREATE INDEX events_by_rule ON evictrail.events USING btree (cluster, occurred_at) WHERE (kind = 'config_seen'::text);
COMMENT ON INDEX evictrail.events_by_rule IS 'When the rules in force changed: annotations of dashboards, by view events.';
CREATE INDEX events_by_tainted_node ON evictrail.events USING btree (cluster, node, occurred_at) WHERE ((kind = 'launcher_pod'::text) AND (reason = 'disrupted'::text));
COMMENT ON INDEX evictrail.events_by_tainted_node IS 'Which VMs a taint of a node may have shut down: derive again.';
CREATE INDEX events_by_time ON evictrail.events USING btree (occurred_at);
COMMENT ON INDEX evictrail.events_by_time IS 'Newest facts and windows of time: view events.';
CREATE INDEX events_by_vmi ON evictrail.events USING btree (cluster, namespace, vmi, occurred_at);
COMMENT ON INDEX evictrail.events_by_vmi IS 'The facts of one VM: views events and migration_phases.';
CREATE INDEX eviction_requests_by_change ON evictrail.eviction_requests USING btree (changed_at);
COMMENT ON INDEX evictrail.eviction_requests_by_change IS 'What came or changed since a time: view eviction_requests.';
CREATE INDEX eviction_requests_by_evacuation ON evictrail.eviction_requests USING btree (cluster, evacuation_id) WHERE (effect = 'evacuation'::text);
COMMENT ON INDEX evictrail.eviction_requests_by_evacuation IS 'Which request brought an evacuation about: dashboards.';
CREATE INDEX eviction_requests_by_node ON evictrail.eviction_requests USING btree (cluster, node);
COMMENT ON INDEX evictrail.eviction_requests_by_node IS 'Derive a node: what was asked of it.';
CREATE INDEX eviction_requests_by_source ON evictrail.eviction_requests USING btree (cluster, source);
COMMENT ON INDEX evictrail.eviction_requests_by_source IS 'Which sources of requests a cluster has.';
CREATE INDEX eviction_requests_by_time ON evictrail.eviction_requests USING btree (requested_at);
COMMENT ON INDEX evictrail.eviction_requests_by_time IS 'Newest requests: view eviction_requests.';
CREATE INDEX eviction_requests_by_vmi ON evictrail.eviction_requests USING btree (cluster, namespace, vmi, requested_at);
COMMENT ON INDEX evictrail.eviction_requests_by_vmi IS 'The requests about one VM, the last one before a moment, or in one namespace: view eviction_requests.';
CREATE INDEX eviction_requests_repeated ON evictrail.eviction_requests USING btree (cluster, subject, last_repeat_at) WHERE (last_repeat_at IS NOT NULL);
COMMENT ON INDEX evictrail.eviction_requests_repeated IS 'Whether a request is repeated since facts were dropped: derive again.';
CREATE INDEX gaps_by_change ON evictrail.gaps USING btree (changed_at);
COMMENT ON INDEX evictrail.gaps_by_change IS 'What came or changed since a time: view gaps.';
CREATE INDEX gaps_by_time ON evictrail.gaps USING btree (opened_at);
COMMENT ON INDEX evictrail.gaps_by_time IS 'Newest gaps: view gaps.';
CREATE INDEX loops_by_change ON evictrail.loops USING btree (changed_at);
COMMENT ON INDEX evictrail.loops_by_change IS 'What came or changed since a time: view loops.';
CREATE INDEX loops_by_time ON evictrail.loops USING btree (opened_at);
COMMENT ON INDEX evictrail.loops_by_time IS 'Newest loops: view loops.';
CREATE INDEX loops_dual_retry ON evictrail.loops USING btree (cluster, opened_at) INCLUDE (node, closed_at, closed_by) WHERE (kind = 'dual_retry'::text);
COMMENT ON INDEX evictrail.loops_dual_retry IS 'At which nodes retry loops were open, and when: dashboards.';
CREATE INDEX loops_open ON evictrail.loops USING btree (cluster) WHERE (closed_at IS NULL);
COMMENT ON INDEX evictrail.loops_open IS 'The state of a cluster: open loops.';
CREATE INDEX migrations_by_change ON evictrail.migrations USING btree (changed_at);
COMMENT ON INDEX evictrail.migrations_by_change IS 'What came or changed since a time: view migrations.';
CREATE INDEX migrations_by_end ON evictrail.migrations USING btree (cluster, finished_at) INCLUDE (trigger, outcome) WHERE (finished_at IS NOT NULL);
COMMENT ON INDEX evictrail.migrations_by_end IS 'The state of a cluster: what moved and failed in the last hours. The moves over time of the front page.';
CREATE INDEX migrations_by_name ON evictrail.migrations USING btree (migration COLLATE "C");
COMMENT ON INDEX evictrail.migrations_by_name IS 'Search: migrations by the beginning of their names.';
CREATE INDEX migrations_by_slot ON evictrail.migrations USING btree (cluster, scheduling_at) WHERE (scheduling_at IS NOT NULL);
COMMENT ON INDEX evictrail.migrations_by_slot IS 'Who held the slots while a migration waited.';
CREATE INDEX migrations_by_source ON evictrail.migrations USING btree (cluster, source_node, target_node);
COMMENT ON INDEX evictrail.migrations_by_source IS 'Derive a node: the migrations that leave it; dashboards: those from one node to another.';
CREATE INDEX migrations_by_target ON evictrail.migrations USING btree (cluster, target_node) WHERE ((need = 'not_needed'::text) OR (benefit = 'harmed'::text));
COMMENT ON INDEX evictrail.migrations_by_target IS 'Derive a node: which moves to it may have caused others from it.';
CREATE INDEX migrations_by_time ON evictrail.migrations USING btree (created_at);
COMMENT ON INDEX evictrail.migrations_by_time IS 'Newest migrations: view migrations.';
CREATE INDEX migrations_by_uid ON evictrail.migrations USING btree (migration_uid);
COMMENT ON INDEX evictrail.migrations_by_uid IS 'Search: a migration by its UID.';
CREATE INDEX migrations_by_vmi ON evictrail.migrations USING btree (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.migrations_by_vmi IS 'The migrations of one VM, or in one namespace: view migrations.';
CREATE INDEX migrations_held_long ON evictrail.migrations USING btree (cluster, scheduling_at) WHERE ((scheduling_at IS NOT NULL) AND ((finished_at IS NULL) OR ((finished_at - scheduling_at) > '01:00:00'::interval)));
COMMENT ON INDEX evictrail.migrations_held_long IS 'Who held the slots while a migration waited, and took them long before.';
CREATE INDEX migrations_judged ON evictrail.migrations USING btree (cluster, finished_at) INCLUDE (namespace, source_node, benefit) WHERE (benefit IS NOT NULL);
COMMENT ON INDEX evictrail.migrations_judged IS 'Whether moves helped: dashboards.';
CREATE INDEX migrations_lost ON evictrail.migrations USING btree (cluster, created_at) WHERE (failure_class = ANY (ARRAY['post_copy'::text, 'guest_lost'::text]));
COMMENT ON INDEX evictrail.migrations_lost IS 'Guests that were lost in migration: dashboards.';
CREATE INDEX migrations_of_sampled ON evictrail.migrations USING btree (cluster, created_at) INCLUDE (namespace, trigger, source_node, requester, evacuation_id, vmi_uid) WHERE ((hashtext(vmi_uid) & 63) = 0);
COMMENT ON INDEX evictrail.migrations_of_sampled IS 'The migrations of one in 64 guests: dashboards that count guests, over long ranges.';
CREATE INDEX migrations_open ON evictrail.migrations USING btree (cluster) WHERE (finished_at IS NULL);
COMMENT ON INDEX evictrail.migrations_open IS 'The state of a cluster: migrations that are not over.';
CREATE INDEX migrations_sampled ON evictrail.migrations USING btree (cluster, created_at) INCLUDE (namespace, trigger, outcome, failure_class, failure_reason, source_node, target_node, requester, evacuation_id, vmi, vmi_uid, scheduling_at, scheduled_at, target_ready_at, running_at, finished_at) WHERE ((hashtext(migration_uid) & 31) = 0);
COMMENT ON INDEX evictrail.migrations_sampled IS 'One in 32 migrations: dashboards, over long ranges.';
CREATE INDEX migrations_to_node ON evictrail.migrations USING btree (cluster, target_node, created_at) WHERE (target_node IS NOT NULL);
COMMENT ON INDEX evictrail.migrations_to_node IS 'Whose target pods are on a node that becomes ready or not.';
CREATE INDEX migrations_waiting ON evictrail.migrations USING btree (cluster, created_at) WHERE (wait_reason IS NOT NULL);
COMMENT ON INDEX evictrail.migrations_waiting IS 'Which migrations waited while slots were taken or freed: derive their VMs again.';
CREATE INDEX outages_by_change ON evictrail.outages USING btree (changed_at);
COMMENT ON INDEX evictrail.outages_by_change IS 'What came or changed since a time: view node_outages.';
CREATE INDEX outages_by_time ON evictrail.outages USING btree (began_at);
COMMENT ON INDEX evictrail.outages_by_time IS 'Newest outages: view node_outages.';
CREATE INDEX outages_open ON evictrail.outages USING btree (cluster) WHERE (ended_at IS NULL);
COMMENT ON INDEX evictrail.outages_open IS 'Which nodes are not ready: what keeps a VM from moving.';
CREATE INDEX placements_by_change ON evictrail.placements USING btree (changed_at);
COMMENT ON INDEX evictrail.placements_by_change IS 'What came or changed since a time: view placements.';
CREATE INDEX placements_by_node ON evictrail.placements USING btree (cluster, node, from_at);
COMMENT ON INDEX evictrail.placements_by_node IS 'Which guests a node had: view placements.';
CREATE INDEX placements_by_time ON evictrail.placements USING btree (from_at);
COMMENT ON INDEX evictrail.placements_by_time IS 'Newest placements: view placements.';
CREATE INDEX placements_by_uid ON evictrail.placements USING btree (vmi_uid);
COMMENT ON INDEX evictrail.placements_by_uid IS 'Search: a VM by the UID of its VMI.';
CREATE INDEX placements_by_vmi ON evictrail.placements USING btree (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.placements_by_vmi IS 'Where one VM ran, or those of one namespace: view placements.';
CREATE INDEX placements_open ON evictrail.placements USING btree (cluster, node) WHERE (to_at IS NULL);
COMMENT ON INDEX evictrail.placements_open IS 'The state of a cluster: how many guests a node has.';
CREATE INDEX placements_short ON evictrail.placements USING btree (cluster, to_at) INCLUDE (namespace, vmi, node) WHERE (((to_at - from_at) < '06:00:00'::interval) AND (arrived_by <> ALL (ARRAY['start'::text, 'unknown'::text])) AND (left_by <> ALL (ARRAY['end'::text, 'unknown'::text])));
COMMENT ON INDEX evictrail.placements_short IS 'Guests that were soon moved on: dashboards, which of them came back.';
CREATE INDEX subjects_dirty ON evictrail.subjects USING btree (cluster, dirty_since) WHERE (dirty_since IS NOT NULL);
COMMENT ON INDEX evictrail.subjects_dirty IS 'What is still to be derived.';
CREATE INDEX subjects_due ON evictrail.subjects USING btree (cluster, next_at) WHERE (next_at IS NOT NULL);
COMMENT ON INDEX evictrail.subjects_due IS 'What time alone changes: derive again.';
CREATE INDEX subjects_named ON evictrail.subjects USING btree (cluster, subject) WHERE ((subject ~~ 'vmi:%'::text) OR (subject ~~ 'node:%'::text));
COMMENT ON INDEX evictrail.subjects_named IS 'Search, and names to complete: VMs and nodes, without the many more pods.';
CREATE INDEX timeline_by_change ON evictrail.timeline USING btree (changed_at);
COMMENT ON INDEX evictrail.timeline_by_change IS 'What came or changed since a time: view timeline.';
CREATE INDEX timeline_by_namespace ON evictrail.timeline USING btree (cluster, namespace, at);
COMMENT ON INDEX evictrail.timeline_by_namespace IS 'The story of one namespace: view timeline.';
CREATE INDEX timeline_by_node ON evictrail.timeline USING btree (cluster, node, at);
COMMENT ON INDEX evictrail.timeline_by_node IS 'The story of one node: view timeline.';
CREATE INDEX timeline_by_time ON evictrail.timeline USING btree (at);
COMMENT ON INDEX evictrail.timeline_by_time IS 'Newest lines: view timeline.';
CREATE INDEX timeline_by_vmi ON evictrail.timeline USING btree (cluster, namespace, vmi, at);
COMMENT ON INDEX evictrail.timeline_by_vmi IS 'The story of one VM: view timeline.';
REVOKE ALL ON FUNCTION evictrail.begin_drop(boundary timestamp with time zone, caller name) FROM PUBLIC;
REVOKE ALL ON FUNCTION evictrail.count_grown() FROM PUBLIC;
REVOKE ALL ON FUNCTION evictrail.ensure_month(month timestamp with time zone) FROM PUBLIC;
REVOKE ALL ON FUNCTION evictrail.erase_requesters(before timestamp with time zone, most integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION evictrail.finish_drop() FROM PUBLIC;
INSERT INTO public.evictrail_schema (version_id, is_applied) VALUES (0, true), (38, true);
