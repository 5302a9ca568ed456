-- name: intern_tenant
INSERT INTO tidewheel.tenant (name) VALUES ($1) ON CONFLICT (name) DO NOTHING

-- name: tenant_id
SELECT id FROM tidewheel.tenant WHERE name = $1

-- name: lock_lanes
-- Lanes appear and gates close one at a time, so that no lane misses a gate. Taken by the transaction, so that it also
-- holds behind a pooler.
SELECT pg_advisory_xact_lock(8433, 1)

-- name: note_lanes
UPDATE tidewheel.meta SET lanes = lanes + 1

-- name: find_lane
SELECT id FROM tidewheel.lane WHERE tenant = $1 AND queue = $2 AND kind = $3 AND needs = $4 AND keyed = $5 AND retried = $6
   AND overdue = $7

-- name: add_lane
INSERT INTO tidewheel.lane (tenant, queue, kind, needs, keyed, retried, overdue, gate)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING id

-- name: add_jobs
-- A column that is empty for all rows is passed as NULL and padded.
-- Adds nothing at all if one of the queues has a cap, unless its lock is held.
-- run_at is never before now: a row behind the marks of the claimers would wait for the next sweep.
-- What the jobs are found by ($18 to $20) is noted as `note_phrases` does it.
WITH said AS MATERIALIZED (
    SELECT tidewheel.phrase_id(tenant, phrase) AS id, tenant, phrase, moment
      FROM unnest($18::integer[], $19::text[], $20::bigint[]) AS said (tenant, phrase, moment)
), fresh AS MATERIALIZED (
    SELECT * FROM said
     WHERE (SELECT true FROM tidewheel.phrase_moment AS known
             WHERE known.phrase = said.id AND known.moment = said.moment LIMIT 1) IS NULL
), named AS (
    INSERT INTO tidewheel.phrase (period, id, tenant, phrase)
    SELECT DISTINCT moment >> 16, id, tenant, phrase FROM fresh
     WHERE (SELECT true FROM tidewheel.phrase AS known
             WHERE known.period = fresh.moment >> 16 AND known.id = fresh.id LIMIT 1) IS NULL
), noted AS (
    INSERT INTO tidewheel.phrase_moment (phrase, moment) SELECT id, moment FROM fresh
)
INSERT INTO tidewheel.job (
       id, lane, tenant, priority, state, run_at, due_at, start_by, args, labels, options, limit_keys,
       idempotency_key, unique_key, schedule_id, waits, on_parent_failure, created_at, updated_at)
SELECT spec.id, spec.lane, spec.tenant, spec.priority, CASE WHEN spec.waits > 0 THEN 'blocked' ELSE 'queued' END, greatest(spec.due_at, tidewheel.now()), spec.due_at,
       spec.start_by, spec.args::json, spec.labels::json, spec.options::json, string_to_array(spec.limit_keys, chr(31)),
       spec.idempotency_key, spec.unique_key, spec.schedule_id, coalesce(spec.waits, 0), spec.on_parent_failure,
       tidewheel.now(), tidewheel.now()
  FROM (
       SELECT *, coalesce(run_at, tidewheel.now() + coalesce(delay, interval '0')) AS due_at
         FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::smallint[], $5::text[], $6::text[], $7::text[],
                     $8::timestamptz[], $9::interval[], $10::timestamptz[], $11::text[], $12::text[], $13::text[],
                     $14::uuid[], $15::integer[], $16::text[])
              AS spec (id, lane, tenant, priority, args, labels, options, run_at, delay, start_by, limit_keys,
                       idempotency_key, unique_key, schedule_id, waits, on_parent_failure)
       ) AS spec
 WHERE $17::boolean OR NOT EXISTS (
       SELECT FROM tidewheel.queue_cap AS cap
         JOIN tidewheel.lane ON lane.tenant = cap.tenant AND lane.queue = cap.queue AND lane.id = ANY ($2::integer[]))
ON CONFLICT (tenant, unique_key) WHERE unique_key IS NOT NULL DO NOTHING
RETURNING id

-- name: add_keys
-- In the order of the keys, so that two batches never wait for one another.
INSERT INTO tidewheel.idempotency (tenant, key, fingerprint, job_id, created_at)
SELECT tenant, key, fingerprint, job_id, tidewheel.now()
  FROM unnest($1::integer[], $2::text[], $3::bytea[], $4::uuid[]) AS asked (tenant, key, fingerprint, job_id)
 ORDER BY tenant, key
ON CONFLICT (tenant, key) DO NOTHING
RETURNING job_id

-- name: find_keys
SELECT idempotency.tenant, idempotency.key, idempotency.fingerprint, idempotency.job_id
  FROM tidewheel.idempotency
  JOIN unnest($1::integer[], $2::text[]) AS asked (tenant, key)
    ON asked.tenant = idempotency.tenant AND asked.key = idempotency.key

-- name: seen_keys
SELECT asked.tenant, asked.key
  FROM unnest($1::text[], $2::text[]) AS asked (tenant, key)
  JOIN tidewheel.tenant ON tenant.name = asked.tenant
  JOIN tidewheel.idempotency ON idempotency.tenant = tenant.id AND idempotency.key = asked.key

-- name: lock_unique_keys
-- One submitter at a time for each unique key, in one order for all.
SELECT pg_advisory_xact_lock(8434, slot)
  FROM (
       SELECT DISTINCT hashtext(tenant || ':' || key) AS slot
         FROM unnest($1::integer[], $2::text[]) AS asked (tenant, key)
        ORDER BY slot
       ) AS slots

-- name: lock_unique
SELECT job.id, job.tenant, job.unique_key, job.state
  FROM tidewheel.job
  JOIN unnest($1::integer[], $2::text[]) AS asked (tenant, key)
    ON asked.tenant = job.tenant AND asked.key = job.unique_key
 ORDER BY job.id
   FOR UPDATE OF job

-- name: find_named_lane
SELECT lane.id, lane.tenant
  FROM tidewheel.lane
  JOIN tidewheel.tenant ON tenant.id = lane.tenant
 WHERE tenant.name = $1 AND lane.queue = $2 AND lane.kind = $3 AND lane.needs = $4 AND lane.keyed = $5 AND NOT lane.retried
   AND NOT lane.overdue

-- name: mark_caller
-- In the caller's transaction a race that was lost must not undo what the caller did.
SAVEPOINT tidewheel_submit

-- name: undo_to_caller
ROLLBACK TO SAVEPOINT tidewheel_submit

-- name: unmark_caller
RELEASE SAVEPOINT tidewheel_submit

-- name: begin_by_look
-- Lets a driver that begins transactions with the first statement begin one.
SELECT 1
