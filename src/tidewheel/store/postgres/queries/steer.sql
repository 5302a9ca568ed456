-- name: lock_job
-- For whoever steers a single job; the id decides alone, so that the plan cannot err.
SELECT job.id, job.state
  FROM tidewheel.job
  JOIN tidewheel.tenant ON tenant.id = job.tenant
 WHERE job.id = $1 AND ($2::text IS NULL OR tenant.name = $2)
   FOR UPDATE OF job

-- name: ask_to_stop
UPDATE tidewheel.job
   SET cancel_at = coalesce(cancel_at, tidewheel.now()), cancel_reason = coalesce(cancel_reason, $2),
       held = false, updated_at = tidewheel.now()
 WHERE id = $1 AND state || '' = 'running'

-- name: redrive
-- Back from history to the queue, without what its runs noted. The last attempt becomes a row of its own; the token goes on
-- rising from where it was. A unique key that someone else took meanwhile keeps its job in history, and so do children
-- that are still being told. What begins anew is no retry. Where a token is named, only the dead letter that had it goes.
WITH named AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $4::interval[], $5::bigint[]) AS named (id, made, delay, died)
), free AS MATERIALIZED (
    SELECT history.id, history.finished_at, history.state,
           row_number() OVER (PARTITION BY history.tenant, coalesce(history.unique_key, history.id::text)) AS claimant
      FROM named
     CROSS JOIN LATERAL (
           SELECT * FROM tidewheel.job_history
            WHERE job_history.id = named.id AND job_history.finished_at >= named.made - interval '1 day'
              AND job_history.state <> 'succeeded' AND job_history.erased_at IS NULL
              AND (named.died IS NULL OR (job_history.state = 'dead' AND job_history.token = named.died))
            LIMIT 1
           ) AS history
      JOIN tidewheel.tenant ON tenant.id = history.tenant
     WHERE ($3::text IS NULL OR tenant.name = $3)
       AND NOT EXISTS (SELECT FROM tidewheel.ended_parent WHERE ended_parent.parent = history.id)
       AND NOT EXISTS (
           SELECT FROM tidewheel.job
            WHERE history.unique_key IS NOT NULL AND job.tenant = history.tenant AND job.unique_key = history.unique_key
           )
), back AS (
    DELETE FROM tidewheel.job_history AS history
     USING free
     WHERE free.claimant = 1 AND history.id = free.id AND history.finished_at = free.finished_at AND history.state = free.state
       AND history.erased_at IS NULL  -- again: it may have been erased while this waited for its lock
    RETURNING history.*
), counted AS (
    INSERT INTO tidewheel.tally (day, lane, state, jobs)
    SELECT (finished_at AT TIME ZONE 'UTC')::date, lane, state, -count(*) FROM back GROUP BY 1, 2, 3
), remembered AS (
    INSERT INTO tidewheel.attempt (job_id, token, worker, started_at, ended_at, cause, error, usage)
    SELECT id, token, worker, started_at, finished_at, cause, error, usage FROM back WHERE ran
), forgotten AS (
    DELETE FROM tidewheel.run_note USING back WHERE run_note.job_id = back.id
)
INSERT INTO tidewheel.job (
       id, schedule_id, worker, run_at, due_at, created_at, updated_at, start_by, started_at, ended_at,
       token, lane, tenant, priority, state, args, labels, options, limit_keys, unique_key, idempotency_key,
       on_parent_failure, awaited)
SELECT back.id, schedule_id, worker, tidewheel.now() + named.delay, due_at, created_at, tidewheel.now(),
       CASE WHEN start_by > tidewheel.now() + named.delay THEN start_by END, started_at, ended_at,
       token, tidewheel.lane_like(lane, false), tenant, priority, 'queued', args, labels, options, limit_keys, unique_key, idempotency_key,
       on_parent_failure, awaited
  FROM back
  JOIN named ON named.id = back.id
RETURNING id
