-- +goose Up
-- Who asked: more classes of programs, who acted as whom, and from where.
ALTER TABLE evictrail.eviction_requests ADD COLUMN impersonator text, ADD COLUMN source_ip text;
ALTER TABLE evictrail.evacuations ADD COLUMN impersonator text, ADD COLUMN cancel_impersonator text;
ALTER TABLE evictrail.migrations ADD COLUMN requester_class text, ADD COLUMN impersonator text, ADD COLUMN source_ip text, ADD COLUMN abort_impersonator text;
ALTER TABLE evictrail.drains ADD COLUMN impersonator text;
ALTER TABLE evictrail.eviction_requests DROP CONSTRAINT eviction_requests_requester_class_check;
ALTER TABLE evictrail.eviction_requests ADD CONSTRAINT eviction_requests_requester_class_check CHECK (requester_class IN (
    'descheduler', 'kubectl', 'cluster_autoscaler', 'karpenter', 'machine_config', 'cluster_api', 'node_maintenance', 'kured', 'kubevirt',
    'forklift', 'harvester', 'console', 'argo_cd', 'flux', 'service_account', 'other', 'unknown'
)) NOT VALID; -- the rows that are there have a class of those before
ALTER TABLE evictrail.migrations ADD CONSTRAINT migrations_requester_class_check CHECK (requester_class IN (
    'descheduler', 'kubectl', 'cluster_autoscaler', 'karpenter', 'machine_config', 'cluster_api', 'node_maintenance', 'kured', 'kubevirt',
    'forklift', 'harvester', 'console', 'argo_cd', 'flux', 'service_account', 'other', 'unknown'
)) NOT VALID;

CREATE OR REPLACE VIEW evictrail_v1.eviction_requests AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, request_id, requested_at, answered_at, pod, requester, requester_class, user_agent, stated_reason, source,
    confidence, dry_run, answer, answer_code, answer_text, effect, evacuation_id, repeat_of, repeats, last_repeat_at, evidence, seen_late, event_id,
    changed_at, impersonator, source_ip
FROM evictrail.eviction_requests;
COMMENT ON COLUMN evictrail_v1.eviction_requests.requester IS 'User name of who asked: of an impersonation, the user as whom was asked. NULL where nobody saw the request.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.requester_class IS 'What sort of program asked, by its account: descheduler, kubectl, cluster_autoscaler, karpenter, machine_config, cluster_api, node_maintenance, kured, kubevirt, forklift, harvester, console, argo_cd, flux, service_account (one that is not known), other (a user), unknown (nobody saw who).';
COMMENT ON COLUMN evictrail_v1.eviction_requests.impersonator IS 'User name of who really asked, where that was as another user. NULL where it was not, and where the audit log does not have the request.';
COMMENT ON COLUMN evictrail_v1.eviction_requests.source_ip IS 'The address from which was asked. Of several, separated by commas, the API server saw the last; those before it came in headers, which a client can write. NULL where the audit log does not have it.';

CREATE OR REPLACE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at, changed_at,
    make_interval(secs => objective_seconds) AS objective,
    objective_met,
    first_failed_at,
    impersonator,
    cancel_impersonator
FROM evictrail.evacuations;
COMMENT ON COLUMN evictrail_v1.evacuations.impersonator IS 'User name of who really asked, where that was as the requester. NULL where it was not.';
COMMENT ON COLUMN evictrail_v1.evacuations.cancel_impersonator IS 'User name of who really cancelled it, where that was as cancelled_by. NULL where it was not.';

CREATE OR REPLACE VIEW evictrail_v1.migrations AS
SELECT
    cluster, namespace, vmi, vmi_uid, source_node AS node, migration, migration_uid, trigger, trigger_confidence, trigger_evidence, evacuation_id,
    attempt, priority, source_node, target_node, created_at, pending_at, scheduling_at, scheduled_at, preparing_target_at, target_ready_at,
    running_at, finished_at, phase, greatest(scheduling_at - created_at, interval '0') AS queue_wait,
    greatest(finished_at - created_at, interval '0') AS duration, outcome, failure_class, failure_reason, failure_text, failure_evidence, mode,
    policy, seen_late, requester, aborted_by, wait_reason, wait_detail,
    changed_at, need, need_because, source_last_over_at, benefit, benefit_because, benefit_final,
    coalesce(requester_class, 'unknown') AS requester_class, impersonator, source_ip, abort_impersonator
FROM evictrail.migrations;
COMMENT ON COLUMN evictrail_v1.migrations.trigger IS 'Why it was made: descheduler, drain, drain_taint, eviction, workload_update, hotplug, storage, named_node, user, controller (a service account that is none of KubeVirt''s), decentralized, unknown.';
COMMENT ON COLUMN evictrail_v1.migrations.requester_class IS 'What sort of program asked for it: a class of eviction_requests.requester_class; unknown where nobody saw.';
COMMENT ON COLUMN evictrail_v1.migrations.impersonator IS 'User name of who really asked, where that was as the requester. NULL where it was not.';
COMMENT ON COLUMN evictrail_v1.migrations.source_ip IS 'The address from which was asked; see eviction_requests.source_ip.';
COMMENT ON COLUMN evictrail_v1.migrations.abort_impersonator IS 'User name of who really deleted it, where that was as aborted_by. NULL where it was not.';

CREATE OR REPLACE VIEW evictrail_v1.drains AS
SELECT
    cluster, node, drain_id, started_at, ended_at, requester, requester_class, vmis_total, vmis_left, outcome, last_asked_at,
    changed_at, impersonator
FROM evictrail.drains;
COMMENT ON COLUMN evictrail_v1.drains.impersonator IS 'User name of who really asked, where that was as the requester. NULL where it was not.';

-- A pattern that finds the name of a person as a whole in a text; NULL where it is none of a person's, or was erased.
-- +goose StatementBegin
CREATE FUNCTION evictrail.person(name text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN name NOT LIKE 'system:%' AND name NOT LIKE '(erased %' AND name <> '' THEN
        '(?<![[:alnum:]_-])' || regexp_replace(name, '([^[:alnum:]_@:/ -])', '\\\1', 'g') || '(?![[:alnum:]_-])'
    END
$$;
-- +goose StatementEnd

-- What stands in place of a name: it tells one person from another as long as the key is the same.
-- +goose StatementBegin
CREATE FUNCTION evictrail.instead_of(name text, key text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT '(erased ' || left(encode(sha256(convert_to(key || name, 'UTF8')), 'hex'), 8) || ')'
$$;
-- +goose StatementEnd

-- A text without the names of two people; one that is NULL is none.
-- +goose StatementBegin
CREATE FUNCTION evictrail.without(said text, one text, instead_of_one text, other text, instead_of_other text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(regexp_replace(t, other, instead_of_other, 'g'), t)
    FROM (SELECT coalesce(regexp_replace(said, one, instead_of_one, 'g'), said) AS t) AS x
$$;
-- +goose StatementEnd

-- Erases the names of people in the requests before a time, and the addresses from which was asked, some at a time; service accounts and others that
-- Kubernetes itself makes (system:) are no people. In the place of a name is what tells one person from another, for about a month: it is made with a key that
-- is forgotten then. It tells of which requests.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION evictrail.erase_requesters(before timestamptz, most integer) RETURNS TABLE (cluster text, subject text, occurred_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
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
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION evictrail.erase_requesters(before timestamptz, most integer) RETURNS TABLE (cluster text, subject text, occurred_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    key   text;
    erase text := 'UPDATE evictrail.%I AS e
        SET detail = e.detail || jsonb_strip_nulls(jsonb_build_object(
            ''user'', o.instead,
            ''user_agent'', regexp_replace(e.detail ->> ''user_agent'', o.name, o.instead, ''g''),
            ''message'', regexp_replace(e.detail ->> ''message'', o.name, o.instead, ''g''),
            ''stated_reason'', regexp_replace(e.detail ->> ''stated_reason'', o.name, o.instead, ''g''),
            ''requested_by'', regexp_replace(e.detail ->> ''requested_by'', o.name, o.instead, ''g'')
        ))
        FROM (
            SELECT cluster, subject, occurred_at, id,
                ''(?<![[:alnum:]_-])'' || regexp_replace(detail ->> ''user'', ''([^[:alnum:]_@:/ -])'', ''\\\1'', ''g'') || ''(?![[:alnum:]_-])'' AS name,
                ''(erased '' || left(encode(sha256(convert_to($3 || (detail ->> ''user''), ''UTF8'')), ''hex''), 8) || '')'' AS instead
            FROM evictrail.%I
            WHERE occurred_at < $1
              AND kind IN (''eviction_requested'', ''action_requested'')
              AND detail ->> ''user'' NOT LIKE ''system:%%''
              AND detail ->> ''user'' NOT LIKE ''(erased %%''
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
$$;
-- +goose StatementEnd

DROP FUNCTION evictrail.without(text, text, text, text, text), evictrail.instead_of(text, text), evictrail.person(text);
DROP VIEW evictrail_v1.drains, evictrail_v1.migrations, evictrail_v1.evacuations, evictrail_v1.eviction_requests;
ALTER TABLE evictrail.eviction_requests DROP CONSTRAINT eviction_requests_requester_class_check;
UPDATE evictrail.eviction_requests SET requester_class = 'other' WHERE requester_class IN ('forklift', 'harvester', 'console', 'argo_cd', 'flux', 'service_account');
ALTER TABLE evictrail.eviction_requests ADD CONSTRAINT eviction_requests_requester_class_check CHECK (requester_class IN (
    'descheduler', 'kubectl', 'cluster_autoscaler', 'karpenter', 'machine_config', 'cluster_api', 'node_maintenance', 'kured', 'kubevirt', 'other', 'unknown'
));
ALTER TABLE evictrail.drains DROP COLUMN impersonator;
ALTER TABLE evictrail.migrations DROP COLUMN requester_class, DROP COLUMN impersonator, DROP COLUMN source_ip, DROP COLUMN abort_impersonator;
ALTER TABLE evictrail.evacuations DROP COLUMN impersonator, DROP COLUMN cancel_impersonator;
ALTER TABLE evictrail.eviction_requests DROP COLUMN impersonator, DROP COLUMN source_ip;
CREATE VIEW evictrail_v1.eviction_requests AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, request_id, requested_at, answered_at, pod, requester, requester_class, user_agent, stated_reason, source,
    confidence, dry_run, answer, answer_code, answer_text, effect, evacuation_id, repeat_of, repeats, last_repeat_at, evidence, seen_late, event_id,
    changed_at
FROM evictrail.eviction_requests;
CREATE VIEW evictrail_v1.evacuations AS
SELECT
    cluster, namespace, vmi, vmi_uid, node, evacuation_id, strategy, marked_at, marked_by, trigger, requester_class, confidence, evidence, ended_at,
    outcome, attempts, failed_attempts, last_failure_class, last_failure_reason, fulfilled_by, seen_late, requester, cancelled_by, next_retry_at,
    in_progress, in_progress_lost_at, changed_at,
    make_interval(secs => objective_seconds) AS objective,
    objective_met,
    first_failed_at
FROM evictrail.evacuations;
CREATE VIEW evictrail_v1.migrations AS
SELECT
    cluster, namespace, vmi, vmi_uid, source_node AS node, migration, migration_uid, trigger, trigger_confidence, trigger_evidence, evacuation_id,
    attempt, priority, source_node, target_node, created_at, pending_at, scheduling_at, scheduled_at, preparing_target_at, target_ready_at,
    running_at, finished_at, phase, greatest(scheduling_at - created_at, interval '0') AS queue_wait,
    greatest(finished_at - created_at, interval '0') AS duration, outcome, failure_class, failure_reason, failure_text, failure_evidence, mode,
    policy, seen_late, requester, aborted_by, wait_reason, wait_detail,
    changed_at, need, need_because, source_last_over_at, benefit, benefit_because, benefit_final
FROM evictrail.migrations;
CREATE VIEW evictrail_v1.drains AS
SELECT
    cluster, node, drain_id, started_at, ended_at, requester, requester_class, vmis_total, vmis_left, outcome, last_asked_at,
    changed_at
FROM evictrail.drains;
