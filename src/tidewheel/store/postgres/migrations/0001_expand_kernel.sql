-- The kernel: jobs, their lanes and history, workers, gates, limits and duties.

-- The one clock. Tests replace its body to tell the time; everything else must ask it.
-- It is inlined, so `run_at <= tidewheel.now()` is an index condition.
CREATE FUNCTION tidewheel.now() RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN statement_timestamp();

CREATE TABLE tidewheel.meta (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    epoch     bigint NOT NULL DEFAULT 1,
    -- Rises when a lane appears or a gate moves, so that claimers know when to read the lanes anew.
    lanes     bigint NOT NULL DEFAULT 0,
    census_at timestamptz NOT NULL DEFAULT '0001-01-01 00:00+00',
    -- By which servers sign the addresses that they hand out: 244 random bits.
    signing_key bytea NOT NULL DEFAULT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8'))
);
INSERT INTO tidewheel.meta DEFAULT VALUES;

CREATE TABLE tidewheel.tenant (
    id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name   text NOT NULL UNIQUE,
    weight float8 NOT NULL DEFAULT 1 CHECK (weight > 0),
    max_queued  integer CHECK (max_queued >= 0),
    max_payload integer CHECK (max_payload > 0),
    keep_logs   interval
);

-- An interned (tenant, queue, kind, needs, keyed, retried, overdue): the unit of order, fairness and gating. Lanes are few and stay.
CREATE TABLE tidewheel.lane (
    id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant integer NOT NULL REFERENCES tidewheel.tenant,
    queue  text NOT NULL,
    kind   text NOT NULL,
    needs  text NOT NULL,
    keyed  boolean NOT NULL,
    -- Whether its jobs have failed before; such a lane appears with the first failure.
    retried boolean NOT NULL DEFAULT false,
    -- Whether its jobs waited long for a limit before they were let go; it appears when a job like these must wait.
    overdue boolean NOT NULL DEFAULT false,
    gate   text NOT NULL DEFAULT 'open' CHECK (gate IN ('open', 'hold', 'drop', 'slow')),
    -- One low-water mark for each priority, as a sweep published them: a hint where a new claimer may begin.
    floors timestamptz[] NOT NULL DEFAULT '{0001-01-01 00:00+00,0001-01-01 00:00+00,0001-01-01 00:00+00}',
    UNIQUE (tenant, queue, kind, needs, keyed, retried, overdue)
);
CREATE INDEX lane_queue ON tidewheel.lane (queue);

-- The lane for retries, or for first attempts, that is like another in all else; NULL asks for what it is. Nobody in it
-- is overdue. That one itself if there is none.
CREATE FUNCTION tidewheel.lane_like(lane integer, retried boolean) RETURNS integer
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce((
        SELECT other.id
          FROM tidewheel.lane AS own
          JOIN tidewheel.lane AS other USING (tenant, queue, kind, needs, keyed)
         WHERE own.id = lane_like.lane AND other.retried = coalesce(lane_like.retried, own.retried)
           AND NOT other.overdue), lane_like.lane);

-- The lane of the overdue that is like another in all else, if there is one.
CREATE FUNCTION tidewheel.lane_of_overdue(lane integer) RETURNS integer
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (
        SELECT other.id
          FROM tidewheel.lane AS own
          JOIN tidewheel.lane AS other USING (tenant, queue, kind, needs, keyed, retried)
         WHERE own.id = lane_of_overdue.lane AND other.overdue);

-- When the lanes of a scope (the queues, kinds and labels of like workers) are to be swept next, by whichever of these
-- workers comes first.
CREATE TABLE tidewheel.sweep (
    scope   text PRIMARY KEY,
    next_at timestamptz NOT NULL,
    pause   interval NOT NULL
) WITH (fillfactor = 50);

-- Active jobs only; the end of a job moves it to job_history.
CREATE TABLE tidewheel.job (
    id              uuid PRIMARY KEY,
    schedule_id     uuid,
    worker          uuid,
    run_at          timestamptz NOT NULL,
    due_at          timestamptz NOT NULL,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    start_by        timestamptz,
    started_at      timestamptz,
    ended_at        timestamptz,
    cancel_at       timestamptz,
    token           bigint NOT NULL DEFAULT 0,
    lane            integer NOT NULL,
    tenant          integer NOT NULL,
    priority        smallint NOT NULL CHECK (priority BETWEEN 0 AND 2),
    failures        integer NOT NULL DEFAULT 0,
    losses          integer NOT NULL DEFAULT 0,
    state           text NOT NULL CHECK (state IN ('blocked', 'queued', 'limited', 'running')),
    args            json NOT NULL,
    labels          json,
    options         json,
    limit_keys      text[],
    waits_for       text CHECK ((waits_for IS NOT NULL) = (state = 'limited')),
    -- The run_at with which it waited for a limit before it was let go: its place if it must wait again.
    stood_at        timestamptz,
    unique_key      text,
    idempotency_key text,
    cancel_reason   text,
    -- How many parents it waits for; NULL as policy if it has none.
    waits           integer NOT NULL DEFAULT 0 CHECK (waits >= 0 AND (waits > 0) = (state = 'blocked')),
    on_parent_failure text CHECK (on_parent_failure IN ('skip', 'run', 'hold')),
    -- Whether others wait, or once waited, for it: its end must look for them.
    awaited         boolean NOT NULL DEFAULT false,
    -- Asked to stop because of a gate that holds: to be given back, and not cancelled.
    held            boolean NOT NULL DEFAULT false
) WITH (
    -- Rows live for seconds: vacuum by count, at full speed, and never shrink the file, which would take a lock that
    -- stops the claimers and would leave an empty table whose plans are wrong for a full one.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = -1,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.5,
    vacuum_truncate = off
);
CREATE INDEX job_due ON tidewheel.job (lane, priority, run_at, id) WHERE state = 'queued';
CREATE INDEX job_running ON tidewheel.job (worker) WHERE state = 'running';
CREATE INDEX job_cancelling ON tidewheel.job (worker) WHERE state = 'running' AND cancel_at IS NOT NULL;
CREATE INDEX job_limited ON tidewheel.job (tenant, waits_for, priority, run_at, id) WHERE state = 'limited';
-- The policy keeps the keel out, by which the planner would believe that most jobs are blocked.
CREATE INDEX job_blocked ON tidewheel.job (lane, priority, id) WHERE state = 'blocked' AND on_parent_failure IS NOT NULL;
CREATE INDEX job_tenant ON tidewheel.job (tenant, id);
CREATE INDEX job_start_by ON tidewheel.job (start_by) WHERE start_by IS NOT NULL AND state <> 'running';
CREATE UNIQUE INDEX job_unique ON tidewheel.job (tenant, unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX job_schedule ON tidewheel.job (schedule_id, due_at) WHERE schedule_id IS NOT NULL;
-- Who waits and is counted by a key, which then is the first of its keys.
CREATE INDEX job_capped ON tidewheel.job (tenant, (limit_keys[1]), run_at, id)
    WHERE limit_keys[1] LIKE 'cap:%' AND state <> 'running';

-- A keel: rows that nobody sees (there is no lane 0) and that never leave. The planner prices a scan by the pages and
-- rows that a table had when it was last vacuumed. Without them it would at times expect an empty table, and pass the
-- right index over for one that looks just as cheap; a plan made at such a moment is kept when there are a million rows.
INSERT INTO tidewheel.job (id, run_at, due_at, created_at, updated_at, lane, tenant, priority, state, waits, args)
SELECT lpad(to_hex(n), 32, '0')::uuid, 'epoch', 'epoch', 'epoch', 'epoch', 0, 0, 0, 'blocked', 1, to_json(repeat('-', 1480))
  FROM generate_series(1, 1280) AS n;
ANALYZE tidewheel.job;

-- Finished jobs, by outcome and day, so that retention is a DROP for each outcome.
CREATE TABLE tidewheel.job_history (
    LIKE tidewheel.job,
    finished_at     timestamptz NOT NULL,
    cause           text NOT NULL,
    -- Whether a run ended it, which then is its last attempt.
    ran             boolean NOT NULL,
    result          json,
    result_location text,
    error           json,
    usage           json,
    -- When all that the job was about was removed; only the fact that there was such a job is left.
    erased_at       timestamptz,
    -- Of the error, for the dead.
    fingerprint     text,
    CHECK (state IN ('succeeded', 'dead', 'cancelled', 'expired', 'dropped', 'skipped'))
) PARTITION BY LIST (state);
ALTER TABLE tidewheel.job_history DROP COLUMN waits_for, DROP COLUMN cancel_reason, DROP COLUMN waits, DROP COLUMN held,
    ALTER COLUMN awaited SET DEFAULT false;
-- Local indexes, not unique: the guarded delete from job is what keeps a job from ending twice.
CREATE INDEX job_history_id ON tidewheel.job_history (id);
CREATE INDEX job_history_tenant ON tidewheel.job_history (tenant, id);
CREATE TABLE tidewheel.job_history_succeeded PARTITION OF tidewheel.job_history
    FOR VALUES IN ('succeeded') PARTITION BY RANGE (finished_at);
CREATE TABLE tidewheel.job_history_other PARTITION OF tidewheel.job_history
    FOR VALUES IN ('dead', 'cancelled', 'expired', 'dropped', 'skipped') PARTITION BY RANGE (finished_at);

-- Dead letters by what they died of; the index has all that their groups show.
CREATE INDEX job_history_dead ON tidewheel.job_history_other (tenant, fingerprint, lane, finished_at, id) WHERE state = 'dead';

-- Who waits, or waited, for whom. Written with the child; `done` once the child need not wait for this parent any more.
-- Whoever sets it holds the lock of the child's row. No index knows of it, so that the row changes in place.
CREATE TABLE tidewheel.dependency (
    child  uuid NOT NULL,
    parent uuid NOT NULL,
    done   boolean NOT NULL,
    PRIMARY KEY (child, parent)
) WITH (fillfactor = 80, vacuum_truncate = off);
CREATE INDEX dependency_parent ON tidewheel.dependency (parent, child);
-- A keel for this table, too.
INSERT INTO tidewheel.dependency (child, parent, done)
SELECT lpad(to_hex(n), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid, true FROM generate_series(1, 5000) AS n;
ANALYZE tidewheel.dependency;

-- Finished jobs with more children than their own transactions could tell, and the last child that was told.
CREATE TABLE tidewheel.ended_parent (
    parent uuid PRIMARY KEY,
    state  text NOT NULL,
    beyond uuid NOT NULL
) WITH (fillfactor = 50);

-- Attempts that did not finish their job.
CREATE TABLE tidewheel.attempt (
    job_id     uuid NOT NULL,
    token      bigint NOT NULL,
    worker     uuid,
    started_at timestamptz,
    ended_at   timestamptz NOT NULL,
    cause      text NOT NULL,
    error      json,
    usage      json
) PARTITION BY RANGE (ended_at);
CREATE INDEX attempt_job ON tidewheel.attempt (job_id, token);

-- What runs say of themselves while they go on; apart from the jobs, whose rows must stay small and still.
CREATE TABLE tidewheel.run_note (
    job_id     uuid PRIMARY KEY,
    token      bigint NOT NULL,
    progress   float8,
    message    text NOT NULL,
    checkpoint json,
    paused     boolean,
    updated_at timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX run_note_age ON tidewheel.run_note (updated_at);

-- Lines that runs wrote, by the day on which they were stored: their own time is that of a foreign clock. A row is a
-- piece, lines `first` to `last` of one run as JSON. Commits come in another order than `stored_at`; by the transaction
-- that stored it whoever follows lines knows which pieces could not be seen before.
CREATE TABLE tidewheel.log (
    job_id    uuid NOT NULL,
    token     bigint NOT NULL,
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    stored_at timestamptz NOT NULL,
    lane      integer,
    lines     text NOT NULL,
    xid       xid8 NOT NULL DEFAULT pg_current_xact_id()
) PARTITION BY RANGE (stored_at);
-- Not unique: a line that comes again may fall into another day. Readers take the first.
CREATE INDEX log_job ON tidewheel.log (job_id, token, first, last);

-- Pieces whose words are not indexed yet, those of one append in a row. Whoever looks for lines of few lanes passes over
-- those of others; a lane that is not known is NULL.
CREATE TABLE tidewheel.log_fresh (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL,
    lines    integer NOT NULL,
    chars    integer NOT NULL,
    jobs     uuid[] NOT NULL,
    tokens   bigint[] NOT NULL,
    firsts   bigint[] NOT NULL,
    lanes    integer[] NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT tidewheel.now(),
    xid      xid8 NOT NULL DEFAULT pg_current_xact_id()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX log_fresh_xid ON tidewheel.log_fresh (xid);

-- Pieces that are searched together, about a thousand lines, with all their words.
CREATE TABLE tidewheel.log_segment (
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL,
    jobs     uuid[] NOT NULL,
    tokens   bigint[] NOT NULL,
    firsts   bigint[] NOT NULL,
    words    tsvector NOT NULL,
    xid      xid8 NOT NULL DEFAULT pg_current_xact_id()
) PARTITION BY RANGE (last_at);
CREATE INDEX log_segment_words ON tidewheel.log_segment USING gin (words);
CREATE INDEX log_segment_xid ON tidewheel.log_segment (xid);

-- Finished jobs are counted as they finish: each batch appends what it ended, and the census folds that into rollup.
CREATE TABLE tidewheel.tally (
    day   date NOT NULL,
    lane  integer NOT NULL,
    state text NOT NULL,
    jobs  bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE tidewheel.rollup (
    day   date NOT NULL,
    lane  integer NOT NULL,
    state text NOT NULL,
    jobs  bigint NOT NULL,
    PRIMARY KEY (day, lane, state)
);
CREATE TABLE tidewheel.census (
    lane     integer NOT NULL,
    state    text NOT NULL,
    priority smallint NOT NULL,
    jobs     bigint NOT NULL,
    PRIMARY KEY (lane, state, priority)
);

-- How late jobs began and how long they ran, noted by the batch that ended them; a duty folds that into statistic.
CREATE TABLE tidewheel.ended (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL,
    lane   integer NOT NULL,
    state  text NOT NULL,
    jobs   integer NOT NULL,
    delays interval[],
    runs   interval[]
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
-- By minute for two days, and by hour; the histograms are those of model/histogram.py.
CREATE TABLE tidewheel.statistic (
    at     timestamptz NOT NULL,
    lane   integer NOT NULL,
    state  text NOT NULL,
    hour   boolean NOT NULL,
    jobs   bigint NOT NULL,
    delays text NOT NULL,
    runs   text NOT NULL,
    PRIMARY KEY (hour, at, lane, state)
) WITH (fillfactor = 80);
-- How many jobs have ended since the beginning, as far as folded: it only rises, whatever is removed. Occurrences that
-- were missed are counted in a row of their own, without a queue.
CREATE TABLE tidewheel.finished (
    queue text NOT NULL,
    state text NOT NULL,
    jobs  bigint NOT NULL,
    PRIMARY KEY (queue, state)
) WITH (fillfactor = 50);

-- How fast jobs end, by what had finished at the last two censuses.
CREATE TABLE tidewheel.finish_rate (
    lane       integer PRIMARY KEY,
    finished   bigint NOT NULL,
    taken_at   timestamptz NOT NULL,
    per_second float8
) WITH (fillfactor = 50);

-- One row a worker, one lease a worker; runs are found by job.worker.
CREATE TABLE tidewheel.worker (
    id            uuid PRIMARY KEY,
    name          text NOT NULL,
    queues        text[] NOT NULL,
    kinds         text[],
    offer         json NOT NULL,
    tenant        text,
    ttl           interval NOT NULL,
    alive         boolean NOT NULL DEFAULT true,
    beat          bigint NOT NULL DEFAULT 0,
    registered_at timestamptz NOT NULL,
    beat_at       timestamptz NOT NULL,
    lease_until   timestamptz NOT NULL,
    ended_at      timestamptz,
    clock_ahead   interval,
    CHECK (alive = (ended_at IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Nodes that do chores, which duties each is ready for, and until when it counts as there.
CREATE TABLE tidewheel.keeper (
    id     uuid PRIMARY KEY,
    duties text[] NOT NULL,
    until  timestamptz NOT NULL
) WITH (fillfactor = 50);
-- A duty is its holder's for as long as that is there.
CREATE TABLE tidewheel.duty (
    name   text PRIMARY KEY,
    holder uuid,
    epoch  bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE tidewheel.gate (
    id         uuid PRIMARY KEY,
    mode       text NOT NULL CHECK (mode IN ('hold', 'drop', 'slow')),
    kind       text,
    queue      text,
    tenant     text,
    reason     text NOT NULL,
    author     text NOT NULL,
    created_at timestamptz NOT NULL,
    -- Of a slow one: jobs a second over the whole cluster, and from when on the next one may start.
    rate       float8 CHECK (rate > 0),
    ready_at   timestamptz NOT NULL,
    expires_at timestamptz,
    stop_running boolean NOT NULL,
    CHECK ((rate IS NOT NULL) = (mode = 'slow')),
    UNIQUE NULLS NOT DISTINCT (kind, queue, tenant),
    CHECK (num_nonnulls(kind, queue, tenant) > 0)
) WITH (fillfactor = 50);

-- At most so many jobs of a tenant wait in a queue. Whoever brings some holds the lock of the row.
CREATE TABLE tidewheel.queue_cap (
    tenant   integer NOT NULL REFERENCES tidewheel.tenant,
    queue    text NOT NULL,
    most     integer NOT NULL CHECK (most > 0),
    overflow text NOT NULL CHECK (overflow IN ('reject', 'drop_oldest', 'replace')),
    PRIMARY KEY (tenant, queue)
);

-- What holds for the keys `name` and `name=value`; their rows in limit_key are made when they are first used.
CREATE TABLE tidewheel.limit_rule (
    name    text PRIMARY KEY,
    most    integer CHECK (most > 0),
    starts  integer CHECK (starts > 0),
    seconds integer CHECK ((seconds IS NULL) = (starts IS NULL)),
    burst   integer CHECK ((burst IS NULL) = (starts IS NULL)),
    -- Set by an operator: what tasks declare does not change it.
    by_hand boolean NOT NULL,
    -- Of a cap on what waits, which has nothing else.
    waiting  integer CHECK (waiting > 0),
    overflow text NOT NULL CHECK (overflow IN ('reject', 'drop_oldest', 'replace')),
    CHECK (coalesce(most, starts, waiting) IS NOT NULL),
    CHECK (waiting IS NULL OR coalesce(most, starts) IS NULL)
);

-- At most `most` run at once; `starts` in so many `seconds` may start, out of a bucket of `burst` tokens.
CREATE TABLE tidewheel.limit_key (
    tenant    integer NOT NULL REFERENCES tidewheel.tenant,
    key       text NOT NULL,
    rule      text,
    most      integer CHECK (most > 0),
    running   integer NOT NULL DEFAULT 0 CHECK (running >= 0),
    starts    integer CHECK (starts > 0),
    seconds   integer CHECK ((seconds IS NULL) = (starts IS NULL)),
    burst     integer CHECK ((burst IS NULL) = (starts IS NULL)),
    -- How full the bucket was at `filled_at` (microseconds, as the other instants here); NULL for a new one, which is full.
    tokens    float8,
    filled_at bigint,
    -- When to see whether waiters may go because tokens came; NULL if nobody waits for that.
    look_at   bigint,
    -- How many started by their priority since one had its turn by age.
    passed    integer NOT NULL DEFAULT 0 CHECK (passed >= 0),
    PRIMARY KEY (tenant, key),
    CHECK (coalesce(most, starts) IS NOT NULL)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX limit_key_look ON tidewheel.limit_key (look_at) WHERE look_at IS NOT NULL;

-- `next_fire_at` is the first occurrence that is not recorded; NULL if there is none, and while it is paused.
CREATE TABLE tidewheel.schedule (
    id           uuid PRIMARY KEY,
    tenant       integer NOT NULL REFERENCES tidewheel.tenant,
    name         text NOT NULL,
    shard        smallint NOT NULL,
    definition   json NOT NULL,
    paused       boolean NOT NULL DEFAULT false,
    version      bigint NOT NULL DEFAULT 1,
    fired        bigint NOT NULL DEFAULT 0,
    next_fire_at timestamptz CHECK (next_fire_at IS NULL OR NOT paused),
    declared_by  text,
    orphaned_at  timestamptz,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    UNIQUE (tenant, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX schedule_next ON tidewheel.schedule (shard, next_fire_at) WHERE next_fire_at IS NOT NULL;
CREATE INDEX schedule_coming ON tidewheel.schedule (tenant, next_fire_at) WHERE next_fire_at IS NOT NULL;

-- Its key is what makes each occurrence happen once. `undecided` is the shard while its overlap is still to be decided.
CREATE TABLE tidewheel.occurrence (
    schedule_id uuid NOT NULL,
    fire_at     timestamptz NOT NULL,
    source      text NOT NULL CHECK (source IN ('planned', 'manual', 'backfill')),
    outcome     text NOT NULL CHECK (outcome IN ('made', 'missed', 'skipped')),
    reason      text NOT NULL DEFAULT '',
    job_id      uuid CHECK (outcome <> 'made' OR job_id IS NOT NULL),
    undecided   smallint CHECK (undecided IS NULL OR outcome = 'made'),
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (schedule_id, fire_at)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX occurrence_undecided ON tidewheel.occurrence (undecided, fire_at) WHERE undecided IS NOT NULL;
CREATE INDEX occurrence_age ON tidewheel.occurrence (recorded_at);

CREATE TABLE tidewheel.idempotency (
    tenant      integer NOT NULL,
    key         text NOT NULL,
    fingerprint bytea NOT NULL,
    job_id      uuid NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_created ON tidewheel.idempotency (created_at);

-- Keys of those who come by the network. Kept is a digest and not the key; a key that was revoked stays.
CREATE TABLE tidewheel.api_key (
    id           uuid PRIMARY KEY,
    prefix       text NOT NULL UNIQUE,
    digest       bytea NOT NULL,
    tenant       text,
    role         text NOT NULL CHECK (role IN ('admin', 'operator', 'submitter', 'viewer', 'worker')),
    name         text NOT NULL,
    created_at   timestamptz NOT NULL,
    created_by   text NOT NULL,
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    rate         float8,
    burst        integer
) WITH (fillfactor = 70);

-- Secrets that jobs may name, encrypted before they come here; the key is never here. See `store.sealing`.
CREATE TABLE tidewheel.secret (
    tenant     text NOT NULL,
    name       text NOT NULL,
    version    integer NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    key_id     text NOT NULL,
    sealed     bytea NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Who changed what. Entries are added, and removed when they are old; none is changed.
CREATE TABLE tidewheel.audit (
    id      uuid PRIMARY KEY,
    at      timestamptz NOT NULL,
    actor   text NOT NULL,
    role    text NOT NULL,
    key_id  uuid,
    tenant  text,
    action  text NOT NULL,
    subject text NOT NULL,
    detail  json
);
CREATE INDEX audit_tenant ON tidewheel.audit (tenant, id) WHERE tenant IS NOT NULL;

-- Makes the day partitions from one day on. They are made apart and then attached, which lets everyone else go on;
-- creating them in place would lock the parent against reads.
CREATE FUNCTION tidewheel.prepare_days(first date, days integer) RETURNS integer
    LANGUAGE plpgsql AS $$
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

-- Who has which file. The bytes are elsewhere, named by the digest, and shared by all tenants that have the same.
CREATE TABLE tidewheel.artifact (
    id         uuid PRIMARY KEY,
    tenant     text NOT NULL,
    digest     text NOT NULL,
    size       bigint NOT NULL,
    name       text NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    used_at    timestamptz NOT NULL,
    UNIQUE (tenant, digest)
);
CREATE INDEX artifact_tenant ON tidewheel.artifact (tenant, id);
CREATE INDEX artifact_used ON tidewheel.artifact (used_at);
CREATE INDEX artifact_digest ON tidewheel.artifact (digest);

-- Files whose bytes are being deleted.
CREATE TABLE tidewheel.artifact_grave (
    digest text PRIMARY KEY,
    dug_at timestamptz NOT NULL
);

-- Where messages go. The address and the secret are for the sender alone.
CREATE TABLE tidewheel.channel (
    id         uuid PRIMARY KEY,
    tenant     text,
    name       text NOT NULL,
    type       text NOT NULL CHECK (type IN ('webhook', 'service')),
    shown      text NOT NULL,
    address    text NOT NULL,
    secret     text,
    old_secret text,
    old_until  timestamptz,
    disabled   text,
    created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX channel_name ON tidewheel.channel (coalesce(tenant, ''), name);

-- `outcomes` are the events that must be noted for its sake; tenant and kind narrow what is noted, the rest is in the
-- definition.
CREATE TABLE tidewheel.subscription (
    id         uuid PRIMARY KEY,
    channel    uuid NOT NULL REFERENCES tidewheel.channel,
    tenant     text,
    kind       text,
    outcomes   text[] NOT NULL,
    definition json NOT NULL,
    created_at timestamptz NOT NULL,
    -- For one that wants to hear of late jobs: how far down the line of those that wait it was told, by (run_at, id).
    late_at    timestamptz,
    late_id    uuid CHECK ((late_id IS NULL) = (late_at IS NULL))
);
CREATE INDEX subscription_channel ON tidewheel.subscription (channel);

-- What happened and someone may want to hear of, noted in the transaction in which it happened.
CREATE TABLE tidewheel.outbox (
    id          bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL,
    event       text NOT NULL,
    lane        integer,
    tenant      text,
    job_id      uuid,
    token       bigint NOT NULL DEFAULT 0,
    schedule_id uuid,
    failures    integer NOT NULL DEFAULT 0,
    losses      integer NOT NULL DEFAULT 0,
    due_at      timestamptz,
    started_at  timestamptz,
    labels      json,
    error       json,
    detail      json
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- Messages, and how far each is; a key is sent once by a channel.
CREATE TABLE tidewheel.delivery (
    id         uuid PRIMARY KEY,
    channel    uuid NOT NULL REFERENCES tidewheel.channel,
    key        text NOT NULL,
    event      text NOT NULL,
    job_id     uuid,
    tenant     text,
    state      text NOT NULL CHECK (state IN ('pending', 'sent', 'failed')),
    tries      integer NOT NULL DEFAULT 0,
    answer     text NOT NULL DEFAULT '',
    attempts   jsonb NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL,
    begun_at   timestamptz NOT NULL,
    next_at    timestamptz NOT NULL,
    ended_at   timestamptz CHECK ((ended_at IS NULL) = (state = 'pending')),
    body       text NOT NULL,
    text       text NOT NULL,
    UNIQUE (channel, key)
) WITH (fillfactor = 70);
CREATE INDEX delivery_due ON tidewheel.delivery (next_at) WHERE state = 'pending';
CREATE INDEX delivery_ended ON tidewheel.delivery (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX delivery_line ON tidewheel.delivery (channel, next_at) WHERE state = 'pending';
CREATE INDEX delivery_job ON tidewheel.delivery (job_id) WHERE job_id IS NOT NULL;

-- Whether a subscription may want an event of a lane. A coarse look: whoever sends the messages looks closely.
CREATE FUNCTION tidewheel.is_wanted(outcome text, lane integer) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN EXISTS (
        SELECT FROM tidewheel.lane AS own
          JOIN tidewheel.tenant ON tenant.id = own.tenant
          JOIN tidewheel.subscription AS wish
            ON (wish.kind IS NULL OR wish.kind = own.kind) AND (wish.tenant IS NULL OR wish.tenant = tenant.name)
         WHERE own.id = is_wanted.lane AND is_wanted.outcome = ANY (wish.outcomes));

-- What is, or was, wrong. `firing` is the key while it is so, and NULL afterwards.
CREATE TABLE tidewheel.alert (
    id              uuid PRIMARY KEY,
    firing          text UNIQUE,
    rule            text NOT NULL,
    subject         text NOT NULL,
    tenant          text,
    told            text NOT NULL,
    since           timestamptz NOT NULL,
    resolved_at     timestamptz CHECK ((resolved_at IS NULL) = (firing IS NOT NULL)),
    acknowledged_by text,
    acknowledged_at timestamptz
);

-- Times in which rules are silent; no rules stands for all.
CREATE TABLE tidewheel.maintenance (
    id     uuid PRIMARY KEY,
    begins timestamptz NOT NULL,
    ends   timestamptz NOT NULL,
    rules  text[] NOT NULL,
    reason text NOT NULL,
    author text NOT NULL
);

-- The first thousand parents of a job.
CREATE FUNCTION tidewheel.parents_of(job uuid) RETURNS uuid[]
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ARRAY(SELECT parent FROM tidewheel.dependency WHERE child = job ORDER BY parent LIMIT 1000);

-- Whether all patterns are met by what people know a job by: its kind, name, description, labels and its error. Simple
-- enough to be put in the place where it is asked for. Only letters from A to Z are the same in both sizes.
CREATE FUNCTION tidewheel.has_words(patterns text[], kind text, options json, labels json, error json) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN lower(concat_ws(E'\n', kind, options ->> 'name', options ->> 'description', replace(labels::text, '":"', '='),
                           error ->> 'message') COLLATE "C") LIKE ALL (patterns);

-- What jobs are found by, in small letters: labels (`name=value`), names, descriptions, and messages of errors; and the
-- moments in which jobs with it were made. See model/job_phrases.py. Rows may be there twice.
CREATE FUNCTION tidewheel.phrase_id(tenant integer, phrase text) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN hashtextextended(phrase, tenant);

-- All that is three characters long in a text. In a loop: a query for each text costs three times as much.
CREATE FUNCTION tidewheel.parts_of(phrase text) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
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

CREATE TABLE tidewheel.phrase (
    period bigint NOT NULL,
    id     bigint NOT NULL,
    tenant integer NOT NULL,
    phrase text COLLATE "C" NOT NULL
);
CREATE INDEX phrase_period ON tidewheel.phrase (period, id);
CREATE INDEX phrase_parts ON tidewheel.phrase USING gin (tidewheel.parts_of(phrase)) WITH (gin_pending_list_limit = 512);
-- Without numbers of its parts every word looks rare, and nobody reads all phrases for one.
ALTER INDEX tidewheel.phrase_parts ALTER COLUMN 1 SET STATISTICS 0;
CREATE TABLE tidewheel.phrase_moment (
    phrase bigint NOT NULL,
    moment bigint NOT NULL
);
CREATE INDEX phrase_moment_place ON tidewheel.phrase_moment (phrase, moment);
-- Keels for these, too; they are of the time of the other keels.
INSERT INTO tidewheel.phrase (period, id, tenant, phrase) SELECT 0, n, 0, '' FROM generate_series(1, 5000) AS n;
INSERT INTO tidewheel.phrase_moment (phrase, moment) SELECT n, 0 FROM generate_series(1, 5000) AS n;
ANALYZE tidewheel.phrase, tidewheel.phrase_moment;

-- Jobs as readers see them; the columns are in the order of store/records.py, and the tenant's number follows for its index.
CREATE VIEW tidewheel.active_job AS
SELECT job.id, tenant.name AS tenant, lane.queue, lane.kind, lane.needs, job.state, job.priority, job.args, job.labels,
       job.options, job.limit_keys, job.unique_key, job.idempotency_key, job.schedule_id,
       CASE WHEN NOT job.held THEN job.cancel_at END AS cancel_at, lane.gate, job.waits_for, job.token, job.failures, job.losses, job.created_at, job.updated_at, job.due_at, job.run_at,
       job.start_by, job.started_at, job.ended_at, job.worker, NULL::timestamptz AS finished_at, NULL::json AS result,
       NULL::text AS result_location, NULL::json AS error, NULL::json AS usage, job.waits, job.on_parent_failure,
       CASE WHEN job.on_parent_failure IS NOT NULL THEN tidewheel.parents_of(job.id) END AS parents,
       NULL::timestamptz AS erased_at, job.tenant AS tenant_id
  FROM tidewheel.job
  JOIN tidewheel.lane ON lane.id = job.lane
  JOIN tidewheel.tenant ON tenant.id = job.tenant;

CREATE VIEW tidewheel.finished_job AS
SELECT job.id, tenant.name AS tenant, lane.queue, lane.kind, lane.needs, job.state, job.priority, job.args, job.labels,
       job.options, job.limit_keys, job.unique_key, job.idempotency_key, job.schedule_id, job.cancel_at, lane.gate,
       NULL::text AS waits_for, job.token, job.failures, job.losses, job.created_at, job.updated_at, job.due_at,
       job.run_at, job.start_by, job.started_at, job.ended_at, job.worker, job.finished_at, job.result,
       job.result_location, job.error, job.usage, 0 AS waits, job.on_parent_failure,
       CASE WHEN job.on_parent_failure IS NOT NULL THEN tidewheel.parents_of(job.id) END AS parents,
       job.erased_at, job.tenant AS tenant_id
  FROM tidewheel.job_history AS job
  JOIN tidewheel.lane ON lane.id = job.lane
  JOIN tidewheel.tenant ON tenant.id = job.tenant;
