-- The kernel: jobs, their lanes and history, workers, gates, limits and duties.
-- Instants are microseconds since 1970 in UTC, ids are the 16 bytes of a UUID, JSON is text.

CREATE TABLE meta (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    epoch     INTEGER NOT NULL DEFAULT 1,
    -- Rises when a lane appears or a gate moves, so that other processes know when to read the lanes again.
    lanes     INTEGER NOT NULL DEFAULT 0,
    census_at INTEGER NOT NULL DEFAULT 0,
    -- By which servers sign the addresses that they hand out.
    signing_key BLOB NOT NULL DEFAULT (randomblob(32))
) STRICT;
INSERT INTO meta (one) VALUES (1);

CREATE TABLE tenant (
    id     INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE,
    weight REAL NOT NULL DEFAULT 1 CHECK (weight > 0),
    max_queued  INTEGER CHECK (max_queued >= 0),
    max_payload INTEGER CHECK (max_payload > 0),
    keep_logs   INTEGER
) STRICT;

-- An interned (tenant, queue, kind, needs, keyed, retried, overdue): the unit of order, fairness and gating. Lanes are few and stay.
CREATE TABLE lane (
    id     INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenant,
    queue  TEXT NOT NULL,
    kind   TEXT NOT NULL,
    needs  TEXT NOT NULL,
    keyed  INTEGER NOT NULL CHECK (keyed IN (0, 1)),
    -- Whether its jobs have failed before; such a lane appears with the first failure.
    retried INTEGER NOT NULL DEFAULT 0 CHECK (retried IN (0, 1)),
    -- Whether its jobs waited long for a limit before they were let go; it appears when the first is.
    overdue INTEGER NOT NULL DEFAULT 0 CHECK (overdue IN (0, 1)),
    gate   TEXT NOT NULL DEFAULT 'open' CHECK (gate IN ('open', 'hold', 'drop', 'slow')),
    UNIQUE (tenant, queue, kind, needs, keyed, retried, overdue)
) STRICT;

-- Active jobs only; the end of a job moves it to job_history.
-- A table with rowids: measured against WITHOUT ROWID it is 5 % faster, and statements of one transaction can name
-- rows by a small number.
CREATE TABLE job (
    id              BLOB NOT NULL PRIMARY KEY,
    lane            INTEGER NOT NULL,
    tenant          INTEGER NOT NULL,
    priority        INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 2),
    state           TEXT NOT NULL CHECK (state IN ('blocked', 'queued', 'limited', 'running')),
    run_at          INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    start_by        INTEGER,
    token           INTEGER NOT NULL DEFAULT 0,
    failures        INTEGER NOT NULL DEFAULT 0,
    losses          INTEGER NOT NULL DEFAULT 0,
    worker          BLOB,
    cancel_at       INTEGER,
    cancel_reason   TEXT,
    -- Asked to stop because of a gate that holds: to be given back, and not cancelled.
    held            INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1)),
    waits_for       TEXT CHECK ((waits_for IS NOT NULL) = (state = 'limited')),
    limit_keys      TEXT,
    unique_key      TEXT,
    idempotency_key TEXT,
    schedule_id     BLOB,
    args            TEXT NOT NULL,
    labels          TEXT,
    options         TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    started_at      INTEGER,
    ended_at        INTEGER,
    -- How many parents it waits for; NULL as policy if it has none.
    waits           INTEGER NOT NULL DEFAULT 0 CHECK (waits >= 0 AND (waits > 0) = (state = 'blocked')),
    on_parent_failure TEXT CHECK (on_parent_failure IN ('skip', 'run', 'hold')),
    -- Whether others wait, or once waited, for it: its end must look for them.
    awaited         INTEGER NOT NULL DEFAULT 0 CHECK (awaited IN (0, 1))
) STRICT;
CREATE INDEX job_due ON job (lane, priority, run_at, id) WHERE state = 'queued';
CREATE INDEX job_running ON job (worker) WHERE state = 'running';
CREATE INDEX job_limited ON job (tenant, waits_for, priority, run_at, id) WHERE state = 'limited';
CREATE INDEX job_blocked ON job (lane, priority, id) WHERE state = 'blocked';
CREATE INDEX job_tenant ON job (tenant, id);
CREATE INDEX job_start_by ON job (start_by) WHERE start_by IS NOT NULL AND state <> 'running';
CREATE UNIQUE INDEX job_unique ON job (tenant, unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX job_schedule ON job (schedule_id, due_at) WHERE schedule_id IS NOT NULL;
-- Who waits and is counted by a key, which then is the first of its keys.
CREATE INDEX job_capped ON job (tenant, limit_keys ->> 0, run_at, id)
    WHERE limit_keys >= '["cap:' AND limit_keys < '["cap;' AND state <> 'running';

-- Finished jobs, with all that a redrive needs.
CREATE TABLE job_history (
    id              BLOB NOT NULL PRIMARY KEY,
    lane            INTEGER NOT NULL,
    tenant          INTEGER NOT NULL,
    priority        INTEGER NOT NULL,
    state           TEXT NOT NULL
                    CHECK (state IN ('succeeded', 'dead', 'cancelled', 'expired', 'dropped', 'skipped')),
    run_at          INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    start_by        INTEGER,
    token           INTEGER NOT NULL,
    failures        INTEGER NOT NULL,
    losses          INTEGER NOT NULL,
    worker          BLOB,
    cancel_at       INTEGER,
    cancel_reason   TEXT,
    limit_keys      TEXT,
    unique_key      TEXT,
    idempotency_key TEXT,
    schedule_id     BLOB,
    args            TEXT NOT NULL,
    labels          TEXT,
    options         TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    started_at      INTEGER,
    ended_at        INTEGER,
    on_parent_failure TEXT,
    awaited         INTEGER NOT NULL DEFAULT 0,
    finished_at     INTEGER NOT NULL,
    cause           TEXT NOT NULL,
    -- Whether the end of the job was the end of a run, which then is its last attempt.
    ran             INTEGER NOT NULL CHECK (ran IN (0, 1)),
    result          TEXT CHECK (json_valid(result)),
    result_location TEXT,
    error           TEXT,
    usage           TEXT,
    -- When all that the job was about was removed; only the fact that there was such a job is left.
    erased_at       INTEGER,
    -- Of the error, for the dead.
    fingerprint     TEXT
) STRICT;
CREATE INDEX job_history_tenant ON job_history (tenant, id);
CREATE INDEX job_history_age ON job_history (state, finished_at);
-- Dead letters are few among the many; lists of them must not walk over all that succeeded.
CREATE INDEX job_history_failed ON job_history (state, id) WHERE state <> 'succeeded';
-- Dead letters by what they died of; the index has all that their groups show.
CREATE INDEX job_history_dead ON job_history (tenant, fingerprint, lane, finished_at, id) WHERE state = 'dead';

-- Who waits, or waited, for whom. Written with the child; `done` once the child need not wait for this parent any more.
CREATE TABLE dependency (
    child  BLOB NOT NULL,
    parent BLOB NOT NULL,
    done   INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1)),
    PRIMARY KEY (child, parent)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependency_parent ON dependency (parent, child);

-- Finished jobs with more children than their own transactions could tell, and the last child that was told.
CREATE TABLE ended_parent (
    parent BLOB NOT NULL PRIMARY KEY,
    state  TEXT NOT NULL,
    beyond BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Attempts that did not finish their job.
CREATE TABLE attempt (
    job_id     BLOB NOT NULL,
    token      INTEGER NOT NULL,
    worker     BLOB,
    started_at INTEGER,
    ended_at   INTEGER NOT NULL,
    cause      TEXT NOT NULL,
    error      TEXT,
    usage      TEXT,
    PRIMARY KEY (job_id, token)
) STRICT, WITHOUT ROWID;

-- What runs say of themselves while they go on.
CREATE TABLE run_note (
    job_id     BLOB NOT NULL PRIMARY KEY,
    token      INTEGER NOT NULL,
    progress   REAL,
    message    TEXT NOT NULL,
    checkpoint TEXT,
    paused     INTEGER CHECK (paused IN (0, 1)),
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX run_note_age ON run_note (updated_at);

-- Lines that runs wrote. A row is a piece, lines `first` to `last` of one run as JSON. Ids rise with time and are never
-- used again: retention takes the first, and segments are ranges of them.
CREATE TABLE log (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id    BLOB NOT NULL,
    token     INTEGER NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    lane      INTEGER,
    lines     TEXT NOT NULL
) STRICT;
CREATE INDEX log_job ON log (job_id, token, first, last);

-- Pieces whose words are not indexed yet, those of one append in a row, and their lanes as JSON: whoever looks for lines
-- of few lanes passes over those of others.
CREATE TABLE log_fresh (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    low      INTEGER NOT NULL,
    high     INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    lines    INTEGER NOT NULL,
    chars    INTEGER NOT NULL,
    noted_at INTEGER NOT NULL,
    lanes    TEXT NOT NULL
) STRICT;

-- Pieces that are searched together, about a thousand lines. Their words are in log_words under the same number.
CREATE TABLE log_segment (
    id       INTEGER PRIMARY KEY,
    low      INTEGER NOT NULL,
    high     INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX log_segment_high ON log_segment (high);
-- Keeps which words a segment has and nothing else. The words come ready, with a space between any two.
CREATE VIRTUAL TABLE log_words USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '_.:=/-'"
);

-- Finished jobs are counted in the transaction that finishes or retires them, active ones by a census.
CREATE TABLE rollup (
    lane  INTEGER NOT NULL,
    state TEXT NOT NULL,
    jobs  INTEGER NOT NULL,
    PRIMARY KEY (lane, state)
) STRICT, WITHOUT ROWID;
CREATE TABLE census (
    lane     INTEGER NOT NULL,
    state    TEXT NOT NULL,
    priority INTEGER NOT NULL,
    jobs     INTEGER NOT NULL,
    PRIMARY KEY (lane, state, priority)
) STRICT, WITHOUT ROWID;

-- How late jobs began and how long they ran, noted by the batch that ended them, as JSON lists of microseconds; a duty
-- folds that into statistic.
CREATE TABLE ended (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    lane   INTEGER NOT NULL,
    state  TEXT NOT NULL,
    jobs   INTEGER NOT NULL,
    delays TEXT NOT NULL,
    runs   TEXT NOT NULL
) STRICT;
-- By minute for two days, and by hour; the histograms are those of model/histogram.py.
CREATE TABLE statistic (
    hour   INTEGER NOT NULL CHECK (hour IN (0, 1)),
    at     INTEGER NOT NULL,
    lane   INTEGER NOT NULL,
    state  TEXT NOT NULL,
    jobs   INTEGER NOT NULL,
    delays TEXT NOT NULL,
    runs   TEXT NOT NULL,
    PRIMARY KEY (hour, at, lane, state)
) STRICT, WITHOUT ROWID;
-- How many jobs have ended since the beginning, as far as folded: it only rises, whatever is removed. Occurrences that
-- were missed are counted in a row of their own, without a queue.
CREATE TABLE finished (
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    jobs  INTEGER NOT NULL,
    PRIMARY KEY (queue, state)
) STRICT, WITHOUT ROWID;

-- How fast jobs end, by what had finished at the last two censuses.
CREATE TABLE finish_rate (
    lane       INTEGER NOT NULL PRIMARY KEY,
    finished   INTEGER NOT NULL,
    taken_at   INTEGER NOT NULL,
    per_second REAL
) STRICT;

-- One row a worker, one lease a worker; runs are found by job.worker.
CREATE TABLE worker (
    id            BLOB NOT NULL PRIMARY KEY,
    name          TEXT NOT NULL,
    queues        TEXT NOT NULL,
    kinds         TEXT,
    offer         TEXT NOT NULL,
    tenant        TEXT,
    ttl           INTEGER NOT NULL,
    alive         INTEGER NOT NULL DEFAULT 1 CHECK (alive = (ended_at IS NULL)),
    beat          INTEGER NOT NULL DEFAULT 0,
    registered_at INTEGER NOT NULL,
    beat_at       INTEGER NOT NULL,
    lease_until   INTEGER NOT NULL,
    ended_at      INTEGER,
    clock_ahead   INTEGER
) STRICT, WITHOUT ROWID;

-- Nodes that do chores, which duties each is ready for, and until when it counts as there.
CREATE TABLE keeper (
    id     BLOB NOT NULL PRIMARY KEY,
    duties TEXT NOT NULL,
    until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- A duty is its holder's for as long as that is there.
CREATE TABLE duty (
    name   TEXT NOT NULL PRIMARY KEY,
    holder BLOB,
    epoch  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE gate (
    id         BLOB NOT NULL PRIMARY KEY,
    mode       TEXT NOT NULL CHECK (mode IN ('hold', 'drop', 'slow')),
    kind       TEXT,
    queue      TEXT,
    tenant     TEXT,
    reason     TEXT NOT NULL,
    author     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- Of a slow one: jobs a second over the whole cluster, and from when on the next one may start.
    rate       REAL CHECK (rate > 0 AND (rate IS NOT NULL) = (mode = 'slow')),
    ready_at   INTEGER NOT NULL,
    expires_at INTEGER,
    stop_running INTEGER NOT NULL CHECK (stop_running IN (0, 1)),
    CHECK (coalesce(kind, queue, tenant) IS NOT NULL)
) STRICT, WITHOUT ROWID;

-- At most so many jobs of a tenant wait in a queue.
CREATE TABLE queue_cap (
    tenant   INTEGER NOT NULL REFERENCES tenant,
    queue    TEXT NOT NULL,
    most     INTEGER NOT NULL CHECK (most > 0),
    overflow TEXT NOT NULL CHECK (overflow IN ('reject', 'drop_oldest', 'replace')),
    PRIMARY KEY (tenant, queue)
) STRICT, WITHOUT ROWID;

-- What holds for the keys `name` and `name=value`; their rows in limit_key are made when they are first used.
CREATE TABLE limit_rule (
    name    TEXT NOT NULL PRIMARY KEY,
    most    INTEGER CHECK (most > 0),
    starts  INTEGER CHECK (starts > 0),
    seconds INTEGER CHECK ((seconds IS NULL) = (starts IS NULL)),
    burst   INTEGER CHECK ((burst IS NULL) = (starts IS NULL)),
    -- Set by an operator: what tasks declare does not change it.
    by_hand INTEGER NOT NULL CHECK (by_hand IN (0, 1)),
    -- Of a cap on what waits, which has nothing else.
    waiting  INTEGER CHECK (waiting > 0),
    overflow TEXT NOT NULL CHECK (overflow IN ('reject', 'drop_oldest', 'replace')),
    CHECK (coalesce(most, starts, waiting) IS NOT NULL),
    CHECK (waiting IS NULL OR coalesce(most, starts) IS NULL)
) STRICT, WITHOUT ROWID;

-- At most `most` run at once; `starts` in so many `seconds` may start, out of a bucket of `burst` tokens.
CREATE TABLE limit_key (
    tenant    INTEGER NOT NULL REFERENCES tenant,
    key       TEXT NOT NULL,
    rule      TEXT,
    most      INTEGER CHECK (most > 0),
    running   INTEGER NOT NULL DEFAULT 0 CHECK (running >= 0),
    starts    INTEGER CHECK (starts > 0),
    seconds   INTEGER CHECK ((seconds IS NULL) = (starts IS NULL)),
    burst     INTEGER CHECK ((burst IS NULL) = (starts IS NULL)),
    -- How full the bucket was at `filled_at`; NULL for a new one, which is full.
    tokens    REAL,
    filled_at INTEGER,
    -- When to see whether waiters may go because tokens came; NULL if nobody waits for that.
    look_at   INTEGER,
    -- How many started by their priority since one had its turn by age.
    passed    INTEGER NOT NULL DEFAULT 0 CHECK (passed >= 0),
    PRIMARY KEY (tenant, key),
    CHECK (coalesce(most, starts) IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_key_look ON limit_key (look_at) WHERE look_at IS NOT NULL;

-- `next_fire_at` is the first occurrence that is not recorded; NULL if there is none, and while it is paused.
CREATE TABLE schedule (
    id           BLOB NOT NULL PRIMARY KEY,
    tenant       INTEGER NOT NULL REFERENCES tenant,
    name         TEXT NOT NULL,
    shard        INTEGER NOT NULL,
    definition   TEXT NOT NULL,
    paused       INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    version      INTEGER NOT NULL DEFAULT 1,
    fired        INTEGER NOT NULL DEFAULT 0,
    next_fire_at INTEGER CHECK (next_fire_at IS NULL OR NOT paused),
    declared_by  TEXT,
    orphaned_at  INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_next ON schedule (shard, next_fire_at) WHERE next_fire_at IS NOT NULL;
CREATE INDEX schedule_coming ON schedule (tenant, next_fire_at) WHERE next_fire_at IS NOT NULL;

-- Its key is what makes each occurrence happen once. `undecided` is the shard while its overlap is still to be decided.
CREATE TABLE occurrence (
    schedule_id BLOB NOT NULL,
    fire_at     INTEGER NOT NULL,
    source      TEXT NOT NULL CHECK (source IN ('planned', 'manual', 'backfill')),
    outcome     TEXT NOT NULL CHECK (outcome IN ('made', 'missed', 'skipped')),
    reason      TEXT NOT NULL DEFAULT '',
    job_id      BLOB CHECK (outcome <> 'made' OR job_id IS NOT NULL),
    undecided   INTEGER CHECK (undecided IS NULL OR outcome = 'made'),
    recorded_at INTEGER NOT NULL,
    PRIMARY KEY (schedule_id, fire_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX occurrence_undecided ON occurrence (undecided, fire_at) WHERE undecided IS NOT NULL;
CREATE INDEX occurrence_age ON occurrence (recorded_at);

-- `check_at` is when to see whether the key may be forgotten; the end of its job may put that off.
CREATE TABLE idempotency (
    tenant      INTEGER NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    job_id      BLOB NOT NULL,
    check_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_check ON idempotency (check_at);

-- Keys of those who come by the network. Kept is a digest and not the key; a key that was revoked stays.
CREATE TABLE api_key (
    id           BLOB NOT NULL PRIMARY KEY,
    prefix       TEXT NOT NULL UNIQUE,
    digest       BLOB NOT NULL,
    tenant       TEXT,
    role         TEXT NOT NULL CHECK (role IN ('admin', 'operator', 'submitter', 'viewer', 'worker')),
    name         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    rate         REAL,
    burst        INTEGER
) STRICT, WITHOUT ROWID;

-- Secrets that jobs may name, encrypted before they come here; the key is never here. See `store.sealing`.
CREATE TABLE secret (
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    key_id     TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT;

-- Who changed what. Entries are added, and removed when they are old; none is changed.
CREATE TABLE audit (
    id      BLOB NOT NULL PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    role    TEXT NOT NULL,
    key_id  BLOB,
    tenant  TEXT,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_tenant ON audit (tenant, id) WHERE tenant IS NOT NULL;

-- Who has which file. The bytes are elsewhere, named by the digest, and shared by all tenants that have the same.
CREATE TABLE artifact (
    id         BLOB NOT NULL PRIMARY KEY,
    tenant     TEXT NOT NULL,
    digest     TEXT NOT NULL,
    size       INTEGER NOT NULL,
    name       TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL,
    UNIQUE (tenant, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX artifact_tenant ON artifact (tenant, id);
CREATE INDEX artifact_used ON artifact (used_at);
CREATE INDEX artifact_digest ON artifact (digest);

-- Files whose bytes are being deleted.
CREATE TABLE artifact_grave (
    digest TEXT NOT NULL PRIMARY KEY,
    dug_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Where messages go. The address and the secret are for the sender alone.
CREATE TABLE channel (
    id         BLOB NOT NULL PRIMARY KEY,
    tenant     TEXT,
    name       TEXT NOT NULL,
    type       TEXT NOT NULL CHECK (type IN ('webhook', 'service')),
    shown      TEXT NOT NULL,
    address    TEXT NOT NULL,
    secret     TEXT,
    old_secret TEXT,
    old_until  INTEGER,
    disabled   TEXT,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX channel_name ON channel (coalesce(tenant, ''), name);

-- `outcomes` are the events that must be noted for its sake; tenant and kind narrow what is noted, the rest is in the
-- definition.
CREATE TABLE subscription (
    id         BLOB NOT NULL PRIMARY KEY,
    channel    BLOB NOT NULL REFERENCES channel,
    tenant     TEXT,
    kind       TEXT,
    outcomes   TEXT NOT NULL,
    definition TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- For one that wants to hear of late jobs: how far down the line of those that wait it was told, by (run_at, id).
    late_at    INTEGER,
    late_id    BLOB CHECK ((late_id IS NULL) = (late_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX subscription_channel ON subscription (channel);

-- What happened and someone may want to hear of, noted in the transaction in which it happened.
CREATE TABLE outbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    event       TEXT NOT NULL,
    lane        INTEGER,
    tenant      TEXT,
    job_id      BLOB,
    token       INTEGER NOT NULL DEFAULT 0,
    schedule_id BLOB,
    failures    INTEGER NOT NULL DEFAULT 0,
    losses      INTEGER NOT NULL DEFAULT 0,
    due_at      INTEGER,
    started_at  INTEGER,
    labels      TEXT,
    error       TEXT,
    detail      TEXT
) STRICT;

-- Messages, and how far each is; a key is sent once by a channel.
CREATE TABLE delivery (
    id         BLOB NOT NULL PRIMARY KEY,
    channel    BLOB NOT NULL REFERENCES channel,
    key        TEXT NOT NULL,
    event      TEXT NOT NULL,
    job_id     BLOB,
    tenant     TEXT,
    state      TEXT NOT NULL CHECK (state IN ('pending', 'sent', 'failed')),
    tries      INTEGER NOT NULL DEFAULT 0,
    answer     TEXT NOT NULL DEFAULT '',
    attempts   TEXT NOT NULL DEFAULT '[]',
    created_at INTEGER NOT NULL,
    begun_at   INTEGER NOT NULL,
    next_at    INTEGER NOT NULL,
    ended_at   INTEGER CHECK ((ended_at IS NULL) = (state = 'pending')),
    body       TEXT NOT NULL,
    text       TEXT NOT NULL,
    UNIQUE (channel, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_due ON delivery (next_at) WHERE state = 'pending';
CREATE INDEX delivery_ended ON delivery (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX delivery_line ON delivery (channel, next_at) WHERE state = 'pending';
CREATE INDEX delivery_job ON delivery (job_id) WHERE job_id IS NOT NULL;

-- What is, or was, wrong. `firing` is the key while it is so, and NULL afterwards.
CREATE TABLE alert (
    id              BLOB NOT NULL PRIMARY KEY,
    firing          TEXT UNIQUE,
    rule            TEXT NOT NULL,
    subject         TEXT NOT NULL,
    tenant          TEXT,
    told            TEXT NOT NULL,
    since           INTEGER NOT NULL,
    resolved_at     INTEGER CHECK ((resolved_at IS NULL) = (firing IS NOT NULL)),
    acknowledged_by TEXT,
    acknowledged_at INTEGER
) STRICT, WITHOUT ROWID;

-- Times in which rules are silent; no rules stands for all.
CREATE TABLE maintenance (
    id     BLOB NOT NULL PRIMARY KEY,
    begins INTEGER NOT NULL,
    ends   INTEGER NOT NULL,
    rules  TEXT NOT NULL,
    reason TEXT NOT NULL,
    author TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What jobs are found by, in small letters: labels (`name=value`), names, descriptions, and messages of errors; and the
-- moments in which jobs with it were made. See model/job_phrases.py.
CREATE TABLE phrase (
    id     INTEGER PRIMARY KEY,
    phrase TEXT NOT NULL,
    tenant INTEGER NOT NULL,
    period INTEGER NOT NULL,
    UNIQUE (phrase, tenant, period)
) STRICT;
CREATE INDEX phrase_period ON phrase (period);
CREATE TABLE phrase_moment (
    phrase INTEGER NOT NULL,
    moment INTEGER NOT NULL,
    PRIMARY KEY (phrase, moment)
) STRICT, WITHOUT ROWID;
-- Knows which three characters stand in a row in which phrases, and nothing else.
CREATE VIRTUAL TABLE phrase_parts USING fts5 (
    phrase, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
CREATE TRIGGER phrase_added AFTER INSERT ON phrase BEGIN
    INSERT INTO phrase_parts (rowid, phrase) VALUES (new.id, new.phrase);
END;
CREATE TRIGGER phrase_removed AFTER DELETE ON phrase BEGIN
    DELETE FROM phrase_parts WHERE rowid = old.id;
END;

-- Jobs as readers see them; the columns are in the order of store/records.py, and the tenant's number follows, and
-- what a search for words looks at.
CREATE VIEW active_job AS
SELECT job.id, tenant.name AS tenant, lane.queue, lane.kind, lane.needs, job.state, job.priority, job.args, job.labels,
       job.options, job.limit_keys, job.unique_key, job.idempotency_key, job.schedule_id,
       CASE WHEN NOT job.held THEN job.cancel_at END AS cancel_at, lane.gate, job.waits_for, job.token, job.failures, job.losses, job.created_at, job.updated_at, job.due_at, job.run_at,
       job.start_by, job.started_at, job.ended_at, job.worker, NULL AS finished_at, NULL AS result,
       NULL AS result_location, NULL AS error, NULL AS usage, job.waits, job.on_parent_failure,
       CASE WHEN job.on_parent_failure IS NOT NULL THEN (
            SELECT json_group_array(hex(parent))
              FROM (SELECT parent FROM dependency WHERE child = job.id ORDER BY parent LIMIT 1000)) END AS parents,
       NULL AS erased_at, job.tenant AS tenant_id,
       lower(concat_ws(char(10), lane.kind, job.options ->> 'name', job.options ->> 'description',
                       replace(job.labels, '":"', '='))) AS words
  FROM job
 CROSS JOIN lane ON lane.id = job.lane
 CROSS JOIN tenant ON tenant.id = job.tenant;

CREATE VIEW finished_job AS
SELECT job.id, tenant.name AS tenant, lane.queue, lane.kind, lane.needs, job.state, job.priority, job.args, job.labels,
       job.options, job.limit_keys, job.unique_key, job.idempotency_key, job.schedule_id, job.cancel_at, lane.gate,
       NULL AS waits_for, job.token, job.failures, job.losses, job.created_at, job.updated_at, job.due_at, job.run_at,
       job.start_by, job.started_at, job.ended_at, job.worker, job.finished_at, job.result, job.result_location,
       job.error, job.usage, 0 AS waits, job.on_parent_failure,
       CASE WHEN job.on_parent_failure IS NOT NULL THEN (
            SELECT json_group_array(hex(parent))
              FROM (SELECT parent FROM dependency WHERE child = job.id ORDER BY parent LIMIT 1000)) END AS parents,
       job.erased_at, job.tenant AS tenant_id,
       lower(concat_ws(char(10), lane.kind, job.options ->> 'name', job.options ->> 'description',
                       replace(job.labels, '":"', '='), job.error ->> 'message')) AS words
  FROM job_history AS job
 CROSS JOIN lane ON lane.id = job.lane
 CROSS JOIN tenant ON tenant.id = job.tenant;
