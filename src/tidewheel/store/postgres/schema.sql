-- The schema after all migrations. Written by a tool: change a migration, not this file.

CREATE SCHEMA tidewheel;

CREATE FUNCTION tidewheel.has_words(patterns text[], kind text, options json, labels json, error json) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (lower((concat_ws('
'::text, kind, (options ->> 'name'::text), (options ->> 'description'::text), replace((labels)::text, '":"'::text, '='::text), (error ->> 'message'::text)) COLLATE "C")) ~~ ALL (patterns));

CREATE TABLE tidewheel.lane (
    id integer NOT NULL,
    tenant integer NOT NULL,
    queue text NOT NULL,
    kind text NOT NULL,
    needs text NOT NULL,
    keyed boolean NOT NULL,
    retried boolean DEFAULT false NOT NULL,
    overdue boolean DEFAULT false NOT NULL,
    gate text DEFAULT 'open'::text NOT NULL,
    floors timestamp with time zone[] DEFAULT '{"0001-01-01 00:00:00+00","0001-01-01 00:00:00+00","0001-01-01 00:00:00+00"}'::timestamp with time zone[] NOT NULL,
    CONSTRAINT lane_gate_check CHECK ((gate = ANY (ARRAY['open'::text, 'hold'::text, 'drop'::text, 'slow'::text])))
);

CREATE TABLE tidewheel.subscription (
    id uuid NOT NULL,
    channel uuid NOT NULL,
    tenant text,
    kind text,
    outcomes text[] NOT NULL,
    definition json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    late_at timestamp with time zone,
    late_id uuid,
    CONSTRAINT subscription_check CHECK (((late_id IS NULL) = (late_at IS NULL)))
);

CREATE TABLE tidewheel.tenant (
    id integer NOT NULL,
    name text NOT NULL,
    weight double precision DEFAULT 1 NOT NULL,
    max_queued integer,
    max_payload integer,
    keep_logs interval,
    CONSTRAINT tenant_max_payload_check CHECK ((max_payload > 0)),
    CONSTRAINT tenant_max_queued_check CHECK ((max_queued >= 0)),
    CONSTRAINT tenant_weight_check CHECK ((weight > (0)::double precision))
);

CREATE FUNCTION tidewheel.is_wanted(outcome text, lane integer) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (EXISTS (SELECT FROM ((tidewheel.lane own JOIN tidewheel.tenant ON ((tenant.id = own.tenant))) JOIN tidewheel.subscription wish ON ((((wish.kind IS NULL) OR (wish.kind = own.kind)) AND ((wish.tenant IS NULL) OR (wish.tenant = tenant.name))))) WHERE ((own.id = is_wanted.lane) AND (is_wanted.outcome = ANY (wish.outcomes)))));

CREATE FUNCTION tidewheel.lane_like(lane integer, retried boolean) RETURNS integer
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN COALESCE((SELECT other.id FROM (tidewheel.lane own JOIN tidewheel.lane other USING (tenant, queue, kind, needs, keyed)) WHERE ((own.id = lane_like.lane) AND (other.retried = COALESCE(lane_like.retried, own.retried)) AND (NOT other.overdue))), lane);

CREATE FUNCTION tidewheel.lane_of_overdue(lane integer) RETURNS integer
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT other.id FROM (tidewheel.lane own JOIN tidewheel.lane other USING (tenant, queue, kind, needs, keyed, retried)) WHERE ((own.id = lane_of_overdue.lane) AND other.overdue));

CREATE FUNCTION tidewheel.now() RETURNS timestamp with time zone
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN statement_timestamp();

CREATE TABLE tidewheel.dependency (
    child uuid NOT NULL,
    parent uuid NOT NULL,
    done boolean NOT NULL
)
WITH (fillfactor='80', vacuum_truncate=off);

CREATE FUNCTION tidewheel.parents_of(job uuid) RETURNS uuid[]
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ARRAY(SELECT dependency.parent FROM tidewheel.dependency WHERE (dependency.child = parents_of.job) ORDER BY dependency.parent LIMIT 1000);

CREATE FUNCTION tidewheel.parts_of(phrase text) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    parts text[] := '{}';
    last text := '';
    one text;
    n integer := -1;
BEGIN
    FOREACH one IN ARRAY string_to_array(phrase, NULL) LOOP
        IF n > 0 THEN
            parts[n] := last || one;
        END IF;
        n := n + 1;
        last := right(last, 1) || one;
    END LOOP;
    RETURN parts;
END $$;

CREATE FUNCTION tidewheel.phrase_id(tenant integer, phrase text) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN hashtextextended(phrase, (tenant)::bigint);

CREATE FUNCTION tidewheel.prepare_days(first date, days integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
    parent text;
    day date;
    made integer := 0;
    part text;
BEGIN
    PERFORM pg_advisory_xact_lock(8433, 2);
    FOREACH parent IN ARRAY ARRAY['job_history_succeeded', 'job_history_other', 'attempt', 'log', 'log_segment'] LOOP
        FOR day IN SELECT first + n FROM generate_series(0, days) AS n LOOP
            part := parent || to_char(day, '_YYYYMMDD');
            CONTINUE WHEN to_regclass('tidewheel.' || part) IS NOT NULL;
            EXECUTE format('CREATE TABLE tidewheel.%I (LIKE tidewheel.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part, parent);
            IF parent = 'log_segment' THEN
                -- Without numbers of its words every search looks selective, and none reads all of them one by one.
                EXECUTE format('ALTER TABLE tidewheel.%I ALTER words SET STATISTICS 0', part);
            END IF;
            EXECUTE format('ALTER TABLE tidewheel.%I ATTACH PARTITION tidewheel.%I FOR VALUES FROM (%L) TO (%L)',
                           parent, part, day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;

CREATE TABLE tidewheel.job (
    id uuid NOT NULL,
    schedule_id uuid,
    worker uuid,
    run_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    start_by timestamp with time zone,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    cancel_at timestamp with time zone,
    token bigint DEFAULT 0 NOT NULL,
    lane integer NOT NULL,
    tenant integer NOT NULL,
    priority smallint NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    losses integer DEFAULT 0 NOT NULL,
    state text NOT NULL,
    args json NOT NULL,
    labels json,
    options json,
    limit_keys text[],
    waits_for text,
    stood_at timestamp with time zone,
    unique_key text,
    idempotency_key text,
    cancel_reason text,
    waits integer DEFAULT 0 NOT NULL,
    on_parent_failure text,
    awaited boolean DEFAULT false NOT NULL,
    held boolean DEFAULT false NOT NULL,
    CONSTRAINT job_check CHECK (((waits_for IS NOT NULL) = (state = 'limited'::text))),
    CONSTRAINT job_check1 CHECK (((waits >= 0) AND ((waits > 0) = (state = 'blocked'::text)))),
    CONSTRAINT job_on_parent_failure_check CHECK ((on_parent_failure = ANY (ARRAY['skip'::text, 'run'::text, 'hold'::text]))),
    CONSTRAINT job_priority_check CHECK (((priority >= 0) AND (priority <= 2))),
    CONSTRAINT job_state_check CHECK ((state = ANY (ARRAY['blocked'::text, 'queued'::text, 'limited'::text, 'running'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_threshold='-1', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0.5', vacuum_truncate=off);

CREATE VIEW tidewheel.active_job AS
 SELECT job.id,
    tenant.name AS tenant,
    lane.queue,
    lane.kind,
    lane.needs,
    job.state,
    job.priority,
    job.args,
    job.labels,
    job.options,
    job.limit_keys,
    job.unique_key,
    job.idempotency_key,
    job.schedule_id,
        CASE
            WHEN (NOT job.held) THEN job.cancel_at
            ELSE NULL::timestamp with time zone
        END AS cancel_at,
    lane.gate,
    job.waits_for,
    job.token,
    job.failures,
    job.losses,
    job.created_at,
    job.updated_at,
    job.due_at,
    job.run_at,
    job.start_by,
    job.started_at,
    job.ended_at,
    job.worker,
    NULL::timestamp with time zone AS finished_at,
    NULL::json AS result,
    NULL::text AS result_location,
    NULL::json AS error,
    NULL::json AS usage,
    job.waits,
    job.on_parent_failure,
        CASE
            WHEN (job.on_parent_failure IS NOT NULL) THEN tidewheel.parents_of(job.id)
            ELSE NULL::uuid[]
        END AS parents,
    NULL::timestamp with time zone AS erased_at,
    job.tenant AS tenant_id
   FROM ((tidewheel.job
     JOIN tidewheel.lane ON ((lane.id = job.lane)))
     JOIN tidewheel.tenant ON ((tenant.id = job.tenant)));

CREATE TABLE tidewheel.alert (
    id uuid NOT NULL,
    firing text,
    rule text NOT NULL,
    subject text NOT NULL,
    tenant text,
    told text NOT NULL,
    since timestamp with time zone NOT NULL,
    resolved_at timestamp with time zone,
    acknowledged_by text,
    acknowledged_at timestamp with time zone,
    CONSTRAINT alert_check CHECK (((resolved_at IS NULL) = (firing IS NOT NULL)))
);

CREATE TABLE tidewheel.api_key (
    id uuid NOT NULL,
    prefix text NOT NULL,
    digest bytea NOT NULL,
    tenant text,
    role text NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    rate double precision,
    burst integer,
    CONSTRAINT api_key_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'operator'::text, 'submitter'::text, 'viewer'::text, 'worker'::text])))
)
WITH (fillfactor='70');

CREATE TABLE tidewheel.artifact (
    id uuid NOT NULL,
    tenant text NOT NULL,
    digest text NOT NULL,
    size bigint NOT NULL,
    name text NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone NOT NULL
);

CREATE TABLE tidewheel.artifact_grave (
    digest text NOT NULL,
    dug_at timestamp with time zone NOT NULL
);

CREATE TABLE tidewheel.attempt (
    job_id uuid NOT NULL,
    token bigint NOT NULL,
    worker uuid,
    started_at timestamp with time zone,
    ended_at timestamp with time zone NOT NULL,
    cause text NOT NULL,
    error json,
    usage json
)
PARTITION BY RANGE (ended_at);

CREATE TABLE tidewheel.audit (
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    actor text NOT NULL,
    role text NOT NULL,
    key_id uuid,
    tenant text,
    action text NOT NULL,
    subject text NOT NULL,
    detail json
);

CREATE TABLE tidewheel.census (
    lane integer NOT NULL,
    state text NOT NULL,
    priority smallint NOT NULL,
    jobs bigint NOT NULL
);

CREATE TABLE tidewheel.channel (
    id uuid NOT NULL,
    tenant text,
    name text NOT NULL,
    type text NOT NULL,
    shown text NOT NULL,
    address text NOT NULL,
    secret text,
    old_secret text,
    old_until timestamp with time zone,
    disabled text,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT channel_type_check CHECK ((type = ANY (ARRAY['webhook'::text, 'service'::text])))
);

CREATE TABLE tidewheel.delivery (
    id uuid NOT NULL,
    channel uuid NOT NULL,
    key text NOT NULL,
    event text NOT NULL,
    job_id uuid,
    tenant text,
    state text NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    answer text DEFAULT ''::text NOT NULL,
    attempts jsonb DEFAULT '[]'::jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    begun_at timestamp with time zone NOT NULL,
    next_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    body text NOT NULL,
    text text NOT NULL,
    CONSTRAINT delivery_check CHECK (((ended_at IS NULL) = (state = 'pending'::text))),
    CONSTRAINT delivery_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'sent'::text, 'failed'::text])))
)
WITH (fillfactor='70');

CREATE TABLE tidewheel.duty (
    name text NOT NULL,
    holder uuid,
    epoch bigint NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE tidewheel.ended (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    lane integer NOT NULL,
    state text NOT NULL,
    jobs integer NOT NULL,
    delays interval[],
    runs interval[]
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='0');

ALTER TABLE tidewheel.ended ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidewheel.ended_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE tidewheel.ended_parent (
    parent uuid NOT NULL,
    state text NOT NULL,
    beyond uuid NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE tidewheel.finish_rate (
    lane integer NOT NULL,
    finished bigint NOT NULL,
    taken_at timestamp with time zone NOT NULL,
    per_second double precision
)
WITH (fillfactor='50');

CREATE TABLE tidewheel.finished (
    queue text NOT NULL,
    state text NOT NULL,
    jobs bigint NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE tidewheel.job_history (
    id uuid CONSTRAINT job_id_not_null NOT NULL,
    schedule_id uuid,
    worker uuid,
    run_at timestamp with time zone CONSTRAINT job_run_at_not_null NOT NULL,
    due_at timestamp with time zone CONSTRAINT job_due_at_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_created_at_not_null NOT NULL,
    updated_at timestamp with time zone CONSTRAINT job_updated_at_not_null NOT NULL,
    start_by timestamp with time zone,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    cancel_at timestamp with time zone,
    token bigint CONSTRAINT job_token_not_null NOT NULL,
    lane integer CONSTRAINT job_lane_not_null NOT NULL,
    tenant integer CONSTRAINT job_tenant_not_null NOT NULL,
    priority smallint CONSTRAINT job_priority_not_null NOT NULL,
    failures integer CONSTRAINT job_failures_not_null NOT NULL,
    losses integer CONSTRAINT job_losses_not_null NOT NULL,
    state text CONSTRAINT job_state_not_null NOT NULL,
    args json CONSTRAINT job_args_not_null NOT NULL,
    labels json,
    options json,
    limit_keys text[],
    stood_at timestamp with time zone,
    unique_key text,
    idempotency_key text,
    on_parent_failure text,
    awaited boolean DEFAULT false CONSTRAINT job_awaited_not_null NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    cause text NOT NULL,
    ran boolean NOT NULL,
    result json,
    result_location text,
    error json,
    usage json,
    erased_at timestamp with time zone,
    fingerprint text,
    CONSTRAINT job_history_state_check CHECK ((state = ANY (ARRAY['succeeded'::text, 'dead'::text, 'cancelled'::text, 'expired'::text, 'dropped'::text, 'skipped'::text])))
)
PARTITION BY LIST (state);

CREATE VIEW tidewheel.finished_job AS
 SELECT job.id,
    tenant.name AS tenant,
    lane.queue,
    lane.kind,
    lane.needs,
    job.state,
    job.priority,
    job.args,
    job.labels,
    job.options,
    job.limit_keys,
    job.unique_key,
    job.idempotency_key,
    job.schedule_id,
    job.cancel_at,
    lane.gate,
    NULL::text AS waits_for,
    job.token,
    job.failures,
    job.losses,
    job.created_at,
    job.updated_at,
    job.due_at,
    job.run_at,
    job.start_by,
    job.started_at,
    job.ended_at,
    job.worker,
    job.finished_at,
    job.result,
    job.result_location,
    job.error,
    job.usage,
    0 AS waits,
    job.on_parent_failure,
        CASE
            WHEN (job.on_parent_failure IS NOT NULL) THEN tidewheel.parents_of(job.id)
            ELSE NULL::uuid[]
        END AS parents,
    job.erased_at,
    job.tenant AS tenant_id
   FROM ((tidewheel.job_history job
     JOIN tidewheel.lane ON ((lane.id = job.lane)))
     JOIN tidewheel.tenant ON ((tenant.id = job.tenant)));

CREATE TABLE tidewheel.gate (
    id uuid NOT NULL,
    mode text NOT NULL,
    kind text,
    queue text,
    tenant text,
    reason text NOT NULL,
    author text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    rate double precision,
    ready_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    stop_running boolean NOT NULL,
    CONSTRAINT gate_check CHECK (((rate IS NOT NULL) = (mode = 'slow'::text))),
    CONSTRAINT gate_check1 CHECK ((num_nonnulls(kind, queue, tenant) > 0)),
    CONSTRAINT gate_mode_check CHECK ((mode = ANY (ARRAY['hold'::text, 'drop'::text, 'slow'::text]))),
    CONSTRAINT gate_rate_check CHECK ((rate > (0)::double precision))
)
WITH (fillfactor='50');

CREATE TABLE tidewheel.idempotency (
    tenant integer NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    job_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE tidewheel.job_history_other (
    id uuid CONSTRAINT job_id_not_null NOT NULL,
    schedule_id uuid,
    worker uuid,
    run_at timestamp with time zone CONSTRAINT job_run_at_not_null NOT NULL,
    due_at timestamp with time zone CONSTRAINT job_due_at_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_created_at_not_null NOT NULL,
    updated_at timestamp with time zone CONSTRAINT job_updated_at_not_null NOT NULL,
    start_by timestamp with time zone,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    cancel_at timestamp with time zone,
    token bigint CONSTRAINT job_token_not_null NOT NULL,
    lane integer CONSTRAINT job_lane_not_null NOT NULL,
    tenant integer CONSTRAINT job_tenant_not_null NOT NULL,
    priority smallint CONSTRAINT job_priority_not_null NOT NULL,
    failures integer CONSTRAINT job_failures_not_null NOT NULL,
    losses integer CONSTRAINT job_losses_not_null NOT NULL,
    state text CONSTRAINT job_state_not_null NOT NULL,
    args json CONSTRAINT job_args_not_null NOT NULL,
    labels json,
    options json,
    limit_keys text[],
    stood_at timestamp with time zone,
    unique_key text,
    idempotency_key text,
    on_parent_failure text,
    awaited boolean DEFAULT false CONSTRAINT job_awaited_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT job_history_finished_at_not_null NOT NULL,
    cause text CONSTRAINT job_history_cause_not_null NOT NULL,
    ran boolean CONSTRAINT job_history_ran_not_null NOT NULL,
    result json,
    result_location text,
    error json,
    usage json,
    erased_at timestamp with time zone,
    fingerprint text,
    CONSTRAINT job_history_state_check CHECK ((state = ANY (ARRAY['succeeded'::text, 'dead'::text, 'cancelled'::text, 'expired'::text, 'dropped'::text, 'skipped'::text])))
)
PARTITION BY RANGE (finished_at);

CREATE TABLE tidewheel.job_history_succeeded (
    id uuid CONSTRAINT job_id_not_null NOT NULL,
    schedule_id uuid,
    worker uuid,
    run_at timestamp with time zone CONSTRAINT job_run_at_not_null NOT NULL,
    due_at timestamp with time zone CONSTRAINT job_due_at_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_created_at_not_null NOT NULL,
    updated_at timestamp with time zone CONSTRAINT job_updated_at_not_null NOT NULL,
    start_by timestamp with time zone,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    cancel_at timestamp with time zone,
    token bigint CONSTRAINT job_token_not_null NOT NULL,
    lane integer CONSTRAINT job_lane_not_null NOT NULL,
    tenant integer CONSTRAINT job_tenant_not_null NOT NULL,
    priority smallint CONSTRAINT job_priority_not_null NOT NULL,
    failures integer CONSTRAINT job_failures_not_null NOT NULL,
    losses integer CONSTRAINT job_losses_not_null NOT NULL,
    state text CONSTRAINT job_state_not_null NOT NULL,
    args json CONSTRAINT job_args_not_null NOT NULL,
    labels json,
    options json,
    limit_keys text[],
    stood_at timestamp with time zone,
    unique_key text,
    idempotency_key text,
    on_parent_failure text,
    awaited boolean DEFAULT false CONSTRAINT job_awaited_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT job_history_finished_at_not_null NOT NULL,
    cause text CONSTRAINT job_history_cause_not_null NOT NULL,
    ran boolean CONSTRAINT job_history_ran_not_null NOT NULL,
    result json,
    result_location text,
    error json,
    usage json,
    erased_at timestamp with time zone,
    fingerprint text,
    CONSTRAINT job_history_state_check CHECK ((state = ANY (ARRAY['succeeded'::text, 'dead'::text, 'cancelled'::text, 'expired'::text, 'dropped'::text, 'skipped'::text])))
)
PARTITION BY RANGE (finished_at);

CREATE TABLE tidewheel.keeper (
    id uuid NOT NULL,
    duties text[] NOT NULL,
    until timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE tidewheel.lane ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidewheel.lane_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE tidewheel.limit_key (
    tenant integer NOT NULL,
    key text NOT NULL,
    rule text,
    most integer,
    running integer DEFAULT 0 NOT NULL,
    starts integer,
    seconds integer,
    burst integer,
    tokens double precision,
    filled_at bigint,
    look_at bigint,
    passed integer DEFAULT 0 NOT NULL,
    CONSTRAINT limit_key_check CHECK (((seconds IS NULL) = (starts IS NULL))),
    CONSTRAINT limit_key_check1 CHECK (((burst IS NULL) = (starts IS NULL))),
    CONSTRAINT limit_key_check2 CHECK ((COALESCE(most, starts) IS NOT NULL)),
    CONSTRAINT limit_key_most_check CHECK ((most > 0)),
    CONSTRAINT limit_key_passed_check CHECK ((passed >= 0)),
    CONSTRAINT limit_key_running_check CHECK ((running >= 0)),
    CONSTRAINT limit_key_starts_check CHECK ((starts > 0))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE tidewheel.limit_rule (
    name text NOT NULL,
    most integer,
    starts integer,
    seconds integer,
    burst integer,
    by_hand boolean NOT NULL,
    waiting integer,
    overflow text NOT NULL,
    CONSTRAINT limit_rule_check CHECK (((seconds IS NULL) = (starts IS NULL))),
    CONSTRAINT limit_rule_check1 CHECK (((burst IS NULL) = (starts IS NULL))),
    CONSTRAINT limit_rule_check2 CHECK ((COALESCE(most, starts, waiting) IS NOT NULL)),
    CONSTRAINT limit_rule_check3 CHECK (((waiting IS NULL) OR (COALESCE(most, starts) IS NULL))),
    CONSTRAINT limit_rule_most_check CHECK ((most > 0)),
    CONSTRAINT limit_rule_overflow_check CHECK ((overflow = ANY (ARRAY['reject'::text, 'drop_oldest'::text, 'replace'::text]))),
    CONSTRAINT limit_rule_starts_check CHECK ((starts > 0)),
    CONSTRAINT limit_rule_waiting_check CHECK ((waiting > 0))
);

CREATE TABLE tidewheel.log (
    job_id uuid NOT NULL,
    token bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    stored_at timestamp with time zone NOT NULL,
    lane integer,
    lines text NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL
)
PARTITION BY RANGE (stored_at);

CREATE TABLE tidewheel.log_fresh (
    id bigint NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    lines integer NOT NULL,
    chars integer NOT NULL,
    jobs uuid[] NOT NULL,
    tokens bigint[] NOT NULL,
    firsts bigint[] NOT NULL,
    lanes integer[] NOT NULL,
    noted_at timestamp with time zone DEFAULT tidewheel.now() NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='0');

ALTER TABLE tidewheel.log_fresh ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidewheel.log_fresh_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE tidewheel.log_segment (
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    jobs uuid[] NOT NULL,
    tokens bigint[] NOT NULL,
    firsts bigint[] NOT NULL,
    words tsvector NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL
)
PARTITION BY RANGE (last_at);

CREATE TABLE tidewheel.maintenance (
    id uuid NOT NULL,
    begins timestamp with time zone NOT NULL,
    ends timestamp with time zone NOT NULL,
    rules text[] NOT NULL,
    reason text NOT NULL,
    author text NOT NULL
);

CREATE TABLE tidewheel.meta (
    one boolean DEFAULT true NOT NULL,
    epoch bigint DEFAULT 1 NOT NULL,
    lanes bigint DEFAULT 0 NOT NULL,
    census_at timestamp with time zone DEFAULT '0001-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    signing_key bytea DEFAULT sha256(convert_to(((gen_random_uuid())::text || (gen_random_uuid())::text), 'UTF8'::name)) NOT NULL,
    CONSTRAINT meta_one_check CHECK (one)
);

CREATE TABLE tidewheel.migration (
    number integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL
);

CREATE TABLE tidewheel.occurrence (
    schedule_id uuid NOT NULL,
    fire_at timestamp with time zone NOT NULL,
    source text NOT NULL,
    outcome text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    job_id uuid,
    undecided smallint,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT occurrence_check CHECK (((outcome <> 'made'::text) OR (job_id IS NOT NULL))),
    CONSTRAINT occurrence_check1 CHECK (((undecided IS NULL) OR (outcome = 'made'::text))),
    CONSTRAINT occurrence_outcome_check CHECK ((outcome = ANY (ARRAY['made'::text, 'missed'::text, 'skipped'::text]))),
    CONSTRAINT occurrence_source_check CHECK ((source = ANY (ARRAY['planned'::text, 'manual'::text, 'backfill'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000');

CREATE TABLE tidewheel.outbox (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    event text NOT NULL,
    lane integer,
    tenant text,
    job_id uuid,
    token bigint DEFAULT 0 NOT NULL,
    schedule_id uuid,
    failures integer DEFAULT 0 NOT NULL,
    losses integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    started_at timestamp with time zone,
    labels json,
    error json,
    detail json
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='0');

ALTER TABLE tidewheel.outbox ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME tidewheel.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE tidewheel.phrase (
    period bigint NOT NULL,
    id bigint NOT NULL,
    tenant integer NOT NULL,
    phrase text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE tidewheel.phrase_moment (
    phrase bigint NOT NULL,
    moment bigint NOT NULL
);

CREATE TABLE tidewheel.queue_cap (
    tenant integer NOT NULL,
    queue text NOT NULL,
    most integer NOT NULL,
    overflow text NOT NULL,
    CONSTRAINT queue_cap_most_check CHECK ((most > 0)),
    CONSTRAINT queue_cap_overflow_check CHECK ((overflow = ANY (ARRAY['reject'::text, 'drop_oldest'::text, 'replace'::text])))
);

CREATE TABLE tidewheel.rollup (
    day date NOT NULL,
    lane integer NOT NULL,
    state text NOT NULL,
    jobs bigint NOT NULL
);

CREATE TABLE tidewheel.run_note (
    job_id uuid NOT NULL,
    token bigint NOT NULL,
    progress double precision,
    message text NOT NULL,
    checkpoint json,
    paused boolean,
    updated_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000');

CREATE TABLE tidewheel.schedule (
    id uuid NOT NULL,
    tenant integer NOT NULL,
    name text NOT NULL,
    shard smallint NOT NULL,
    definition json NOT NULL,
    paused boolean DEFAULT false NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    fired bigint DEFAULT 0 NOT NULL,
    next_fire_at timestamp with time zone,
    declared_by text,
    orphaned_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT schedule_check CHECK (((next_fire_at IS NULL) OR (NOT paused)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000');

CREATE TABLE tidewheel.secret (
    tenant text NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    changed_by text NOT NULL,
    key_id text NOT NULL,
    sealed bytea NOT NULL
);

CREATE TABLE tidewheel.statistic (
    at timestamp with time zone NOT NULL,
    lane integer NOT NULL,
    state text NOT NULL,
    hour boolean NOT NULL,
    jobs bigint NOT NULL,
    delays text NOT NULL,
    runs text NOT NULL
)
WITH (fillfactor='80');

CREATE TABLE tidewheel.sweep (
    scope text NOT NULL,
    next_at timestamp with time zone NOT NULL,
    pause interval NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE tidewheel.tally (
    day date NOT NULL,
    lane integer NOT NULL,
    state text NOT NULL,
    jobs bigint NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='0');

ALTER TABLE tidewheel.tenant ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidewheel.tenant_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE tidewheel.worker (
    id uuid NOT NULL,
    name text NOT NULL,
    queues text[] NOT NULL,
    kinds text[],
    offer json NOT NULL,
    tenant text,
    ttl interval NOT NULL,
    alive boolean DEFAULT true NOT NULL,
    beat bigint DEFAULT 0 NOT NULL,
    registered_at timestamp with time zone NOT NULL,
    beat_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    clock_ahead interval,
    CONSTRAINT worker_check CHECK ((alive = (ended_at IS NULL)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

ALTER TABLE ONLY tidewheel.job_history ATTACH PARTITION tidewheel.job_history_other FOR VALUES IN ('dead', 'cancelled', 'expired', 'dropped', 'skipped');

ALTER TABLE ONLY tidewheel.job_history ATTACH PARTITION tidewheel.job_history_succeeded FOR VALUES IN ('succeeded');

ALTER TABLE ONLY tidewheel.alert
    ADD CONSTRAINT alert_firing_key UNIQUE (firing);

ALTER TABLE ONLY tidewheel.alert
    ADD CONSTRAINT alert_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.api_key
    ADD CONSTRAINT api_key_prefix_key UNIQUE (prefix);

ALTER TABLE ONLY tidewheel.artifact_grave
    ADD CONSTRAINT artifact_grave_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY tidewheel.artifact
    ADD CONSTRAINT artifact_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.artifact
    ADD CONSTRAINT artifact_tenant_digest_key UNIQUE (tenant, digest);

ALTER TABLE ONLY tidewheel.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.census
    ADD CONSTRAINT census_pkey PRIMARY KEY (lane, state, priority);

ALTER TABLE ONLY tidewheel.channel
    ADD CONSTRAINT channel_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.delivery
    ADD CONSTRAINT delivery_channel_key_key UNIQUE (channel, key);

ALTER TABLE ONLY tidewheel.delivery
    ADD CONSTRAINT delivery_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.dependency
    ADD CONSTRAINT dependency_pkey PRIMARY KEY (child, parent);

ALTER TABLE ONLY tidewheel.duty
    ADD CONSTRAINT duty_pkey PRIMARY KEY (name);

ALTER TABLE ONLY tidewheel.ended_parent
    ADD CONSTRAINT ended_parent_pkey PRIMARY KEY (parent);

ALTER TABLE ONLY tidewheel.ended
    ADD CONSTRAINT ended_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.finish_rate
    ADD CONSTRAINT finish_rate_pkey PRIMARY KEY (lane);

ALTER TABLE ONLY tidewheel.finished
    ADD CONSTRAINT finished_pkey PRIMARY KEY (queue, state);

ALTER TABLE ONLY tidewheel.gate
    ADD CONSTRAINT gate_kind_queue_tenant_key UNIQUE NULLS NOT DISTINCT (kind, queue, tenant);

ALTER TABLE ONLY tidewheel.gate
    ADD CONSTRAINT gate_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (tenant, key);

ALTER TABLE ONLY tidewheel.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.keeper
    ADD CONSTRAINT keeper_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.lane
    ADD CONSTRAINT lane_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.lane
    ADD CONSTRAINT lane_tenant_queue_kind_needs_keyed_retried_overdue_key UNIQUE (tenant, queue, kind, needs, keyed, retried, overdue);

ALTER TABLE ONLY tidewheel.limit_key
    ADD CONSTRAINT limit_key_pkey PRIMARY KEY (tenant, key);

ALTER TABLE ONLY tidewheel.limit_rule
    ADD CONSTRAINT limit_rule_pkey PRIMARY KEY (name);

ALTER TABLE ONLY tidewheel.log_fresh
    ADD CONSTRAINT log_fresh_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.maintenance
    ADD CONSTRAINT maintenance_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (one);

ALTER TABLE ONLY tidewheel.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (number);

ALTER TABLE ONLY tidewheel.occurrence
    ADD CONSTRAINT occurrence_pkey PRIMARY KEY (schedule_id, fire_at);

ALTER TABLE ONLY tidewheel.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.queue_cap
    ADD CONSTRAINT queue_cap_pkey PRIMARY KEY (tenant, queue);

ALTER TABLE ONLY tidewheel.rollup
    ADD CONSTRAINT rollup_pkey PRIMARY KEY (day, lane, state);

ALTER TABLE ONLY tidewheel.run_note
    ADD CONSTRAINT run_note_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY tidewheel.schedule
    ADD CONSTRAINT schedule_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.schedule
    ADD CONSTRAINT schedule_tenant_name_key UNIQUE (tenant, name);

ALTER TABLE ONLY tidewheel.secret
    ADD CONSTRAINT secret_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY tidewheel.statistic
    ADD CONSTRAINT statistic_pkey PRIMARY KEY (hour, at, lane, state);

ALTER TABLE ONLY tidewheel.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.sweep
    ADD CONSTRAINT sweep_pkey PRIMARY KEY (scope);

ALTER TABLE ONLY tidewheel.tenant
    ADD CONSTRAINT tenant_name_key UNIQUE (name);

ALTER TABLE ONLY tidewheel.tenant
    ADD CONSTRAINT tenant_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tidewheel.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (id);

CREATE INDEX artifact_digest ON tidewheel.artifact USING btree (digest);

CREATE INDEX artifact_tenant ON tidewheel.artifact USING btree (tenant, id);

CREATE INDEX artifact_used ON tidewheel.artifact USING btree (used_at);

CREATE INDEX attempt_job ON ONLY tidewheel.attempt USING btree (job_id, token);

CREATE INDEX audit_tenant ON tidewheel.audit USING btree (tenant, id) WHERE (tenant IS NOT NULL);

CREATE UNIQUE INDEX channel_name ON tidewheel.channel USING btree (COALESCE(tenant, ''::text), name);

CREATE INDEX delivery_due ON tidewheel.delivery USING btree (next_at) WHERE (state = 'pending'::text);

CREATE INDEX delivery_ended ON tidewheel.delivery USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX delivery_job ON tidewheel.delivery USING btree (job_id) WHERE (job_id IS NOT NULL);

CREATE INDEX delivery_line ON tidewheel.delivery USING btree (channel, next_at) WHERE (state = 'pending'::text);

CREATE INDEX dependency_parent ON tidewheel.dependency USING btree (parent, child);

CREATE INDEX idempotency_created ON tidewheel.idempotency USING btree (created_at);

CREATE INDEX job_blocked ON tidewheel.job USING btree (lane, priority, id) WHERE ((state = 'blocked'::text) AND (on_parent_failure IS NOT NULL));

CREATE INDEX job_cancelling ON tidewheel.job USING btree (worker) WHERE ((state = 'running'::text) AND (cancel_at IS NOT NULL));

CREATE INDEX job_capped ON tidewheel.job USING btree (tenant, (limit_keys[1]), run_at, id) WHERE ((limit_keys[1] ~~ 'cap:%'::text) AND (state <> 'running'::text));

CREATE INDEX job_due ON tidewheel.job USING btree (lane, priority, run_at, id) WHERE (state = 'queued'::text);

CREATE INDEX job_history_dead ON ONLY tidewheel.job_history_other USING btree (tenant, fingerprint, lane, finished_at, id) WHERE (state = 'dead'::text);

CREATE INDEX job_history_id ON ONLY tidewheel.job_history USING btree (id);

CREATE INDEX job_history_other_id_idx ON ONLY tidewheel.job_history_other USING btree (id);

CREATE INDEX job_history_tenant ON ONLY tidewheel.job_history USING btree (tenant, id);

CREATE INDEX job_history_other_tenant_id_idx ON ONLY tidewheel.job_history_other USING btree (tenant, id);

CREATE INDEX job_history_succeeded_id_idx ON ONLY tidewheel.job_history_succeeded USING btree (id);

CREATE INDEX job_history_succeeded_tenant_id_idx ON ONLY tidewheel.job_history_succeeded USING btree (tenant, id);

CREATE INDEX job_limited ON tidewheel.job USING btree (tenant, waits_for, priority, run_at, id) WHERE (state = 'limited'::text);

CREATE INDEX job_running ON tidewheel.job USING btree (worker) WHERE (state = 'running'::text);

CREATE INDEX job_schedule ON tidewheel.job USING btree (schedule_id, due_at) WHERE (schedule_id IS NOT NULL);

CREATE INDEX job_start_by ON tidewheel.job USING btree (start_by) WHERE ((start_by IS NOT NULL) AND (state <> 'running'::text));

CREATE INDEX job_tenant ON tidewheel.job USING btree (tenant, id);

CREATE UNIQUE INDEX job_unique ON tidewheel.job USING btree (tenant, unique_key) WHERE (unique_key IS NOT NULL);

CREATE INDEX lane_queue ON tidewheel.lane USING btree (queue);

CREATE INDEX limit_key_look ON tidewheel.limit_key USING btree (look_at) WHERE (look_at IS NOT NULL);

CREATE INDEX log_fresh_xid ON tidewheel.log_fresh USING btree (xid);

CREATE INDEX log_job ON ONLY tidewheel.log USING btree (job_id, token, first, last);

CREATE INDEX log_segment_words ON ONLY tidewheel.log_segment USING gin (words);

CREATE INDEX log_segment_xid ON ONLY tidewheel.log_segment USING btree (xid);

CREATE INDEX occurrence_age ON tidewheel.occurrence USING btree (recorded_at);

CREATE INDEX occurrence_undecided ON tidewheel.occurrence USING btree (undecided, fire_at) WHERE (undecided IS NOT NULL);

CREATE INDEX phrase_moment_place ON tidewheel.phrase_moment USING btree (phrase, moment);

CREATE INDEX phrase_parts ON tidewheel.phrase USING gin (tidewheel.parts_of(phrase)) WITH (gin_pending_list_limit='512');
ALTER INDEX tidewheel.phrase_parts ALTER COLUMN 1 SET STATISTICS 0;

CREATE INDEX phrase_period ON tidewheel.phrase USING btree (period, id);

CREATE INDEX run_note_age ON tidewheel.run_note USING btree (updated_at);

CREATE INDEX schedule_coming ON tidewheel.schedule USING btree (tenant, next_fire_at) WHERE (next_fire_at IS NOT NULL);

CREATE INDEX schedule_next ON tidewheel.schedule USING btree (shard, next_fire_at) WHERE (next_fire_at IS NOT NULL);

CREATE INDEX subscription_channel ON tidewheel.subscription USING btree (channel);

ALTER INDEX tidewheel.job_history_id ATTACH PARTITION tidewheel.job_history_other_id_idx;

ALTER INDEX tidewheel.job_history_tenant ATTACH PARTITION tidewheel.job_history_other_tenant_id_idx;

ALTER INDEX tidewheel.job_history_id ATTACH PARTITION tidewheel.job_history_succeeded_id_idx;

ALTER INDEX tidewheel.job_history_tenant ATTACH PARTITION tidewheel.job_history_succeeded_tenant_id_idx;

ALTER TABLE ONLY tidewheel.delivery
    ADD CONSTRAINT delivery_channel_fkey FOREIGN KEY (channel) REFERENCES tidewheel.channel(id);

ALTER TABLE ONLY tidewheel.lane
    ADD CONSTRAINT lane_tenant_fkey FOREIGN KEY (tenant) REFERENCES tidewheel.tenant(id);

ALTER TABLE ONLY tidewheel.limit_key
    ADD CONSTRAINT limit_key_tenant_fkey FOREIGN KEY (tenant) REFERENCES tidewheel.tenant(id);

ALTER TABLE ONLY tidewheel.queue_cap
    ADD CONSTRAINT queue_cap_tenant_fkey FOREIGN KEY (tenant) REFERENCES tidewheel.tenant(id);

ALTER TABLE ONLY tidewheel.schedule
    ADD CONSTRAINT schedule_tenant_fkey FOREIGN KEY (tenant) REFERENCES tidewheel.tenant(id);

ALTER TABLE ONLY tidewheel.subscription
    ADD CONSTRAINT subscription_channel_fkey FOREIGN KEY (channel) REFERENCES tidewheel.channel(id);
