-- name: find_active
SELECT json_array(
       job.rowid, job.token, job.state, job.lane, job.priority, json(job.limit_keys), CASE WHEN job.awaited THEN hex(job.id) END)
  FROM job
 CROSS JOIN tenant ON tenant.id = job.tenant
 WHERE job.id = :id AND (:tenant IS NULL OR tenant.name = :tenant)

-- name: ask_to_stop
UPDATE job
   SET cancel_at = :now, cancel_reason = :reason, held = 0, updated_at = :now
 WHERE rowid = :place AND +state = 'running' AND (cancel_at IS NULL OR held)

-- name: redrivable
-- Of jobs that claim the same unique key the first of the list goes. None goes whose children are still being told. Where
-- a token is named, only the dead letter that had it goes.
SELECT history.rowid, history.id, history.tenant, history.unique_key, history.lane, history.priority, history.state
  FROM json_each(:jobs) AS named
 CROSS JOIN job_history AS history ON history.id = unhex(named.value ->> 0)
 CROSS JOIN tenant ON tenant.id = history.tenant
 WHERE history.state <> 'succeeded' AND history.erased_at IS NULL AND (:tenant IS NULL OR tenant.name = :tenant)
   AND (named.value ->> 1 IS NULL OR (history.state = 'dead' AND history.token = named.value ->> 1))
   AND NOT EXISTS (SELECT 1 FROM ended_parent WHERE ended_parent.parent = history.id)
   AND NOT EXISTS (
       SELECT 1 FROM job
        WHERE history.unique_key IS NOT NULL AND job.tenant = history.tenant AND job.unique_key = history.unique_key)
 ORDER BY named.key

-- name: keep_last_attempts
-- Only if the end was the end of a run.
INSERT INTO attempt (job_id, token, worker, started_at, ended_at, cause, error, usage)
SELECT id, token, worker, started_at, finished_at, cause, error, usage
  FROM job_history
 WHERE rowid IN (SELECT value FROM json_each(:places)) AND ran

-- name: redrive
INSERT INTO job (
       id, lane, tenant, priority, state, run_at, due_at, start_by, token, worker, limit_keys, unique_key,
       idempotency_key, schedule_id, args, labels, options, created_at, updated_at, started_at, ended_at,
       on_parent_failure, awaited)
SELECT job_history.id, sent.value ->> 1, tenant, priority, 'queued', sent.value ->> 2, due_at,
       CASE WHEN start_by > sent.value ->> 2 THEN start_by END, token, worker,
       limit_keys, unique_key, idempotency_key, schedule_id, args, labels, options, created_at, :now, started_at, ended_at,
       on_parent_failure, awaited
  FROM json_each(:sent) AS sent
 CROSS JOIN job_history ON job_history.rowid = sent.value ->> 0
 ORDER BY job_history.id

-- name: remove_finished
DELETE FROM job_history WHERE rowid IN (SELECT value FROM json_each(:places))
