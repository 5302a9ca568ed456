-- name: runs_named
-- Those of the named runs that are still this worker's; `key` is the place in the list that was given.
SELECT json_group_array(json_array(
       named.key, job.rowid, job.token, job.lane, job.priority, job.cancel_at IS NOT NULL, job.cancel_reason, job.losses,
       json(job.limit_keys), CASE WHEN job.awaited THEN named.value END, job.held))
  FROM json_each(:jobs) AS named
 CROSS JOIN job ON job.id = unhex(named.value)
 WHERE +job.state = 'running' AND +job.worker = :worker

-- name: runs_of_worker
SELECT json_group_array(json_array(
       0, rowid, token, lane, priority, cancel_at IS NOT NULL, cancel_reason, losses, json(limit_keys),
       CASE WHEN awaited THEN hex(id) END, held))
  FROM (SELECT rowid, * FROM job WHERE state = 'running' AND worker = :worker ORDER BY id)

-- name: finish_returned
-- The common end in short: copies runs that returned to history; `remove` deletes what was copied.
INSERT INTO job_history (
       id, lane, tenant, priority, state, run_at, due_at, start_by, token, failures, losses, worker, cancel_at,
       cancel_reason, limit_keys, unique_key, idempotency_key, schedule_id, args, labels, options, created_at,
       updated_at, started_at, ended_at, on_parent_failure, awaited, finished_at, cause, ran, result, result_location,
       usage)
SELECT job.id, lane, tenant, priority, 'succeeded', run_at, due_at, start_by, token, failures, losses, worker, cancel_at,
       cancel_reason, limit_keys, unique_key, idempotency_key, schedule_id, args, labels, options, created_at,
       :now, coalesce(ended.value ->> 4, started_at), :now, on_parent_failure, awaited, :now, 'returned', 1, ended.value ->> 2, ended.value ->> 3,
       ended.value ->> 5
  FROM json_each(:ends) AS ended
 CROSS JOIN job ON job.rowid = ended.value ->> 0
 WHERE +job.state = 'running' AND job.token = ended.value ->> 1

-- name: finish
-- Copies jobs to history. Each names the state and token it is believed to have; `remove` deletes what was copied.
INSERT INTO job_history (
       id, lane, tenant, priority, state, run_at, due_at, start_by, token, failures, losses, worker, cancel_at,
       cancel_reason, limit_keys, unique_key, idempotency_key, schedule_id, args, labels, options, created_at,
       updated_at, started_at, ended_at, on_parent_failure, awaited, finished_at, cause, ran, result, result_location, error,
       usage, fingerprint)
SELECT job.id, lane, tenant, priority, ended.value ->> 3, run_at, due_at, start_by, token,
       failures + (ended.value ->> 4 IN ('gave_up', 'unstorable')), losses + (ended.value ->> 4 = 'quarantined'),
       worker, cancel_at, cancel_reason, limit_keys, unique_key, idempotency_key, schedule_id, args, labels, options,
       created_at, :now, coalesce(ended.value ->> 8, started_at),
       CASE WHEN job.state = 'running' THEN :now ELSE ended_at END, on_parent_failure, awaited, :now, ended.value ->> 4, job.state = 'running',
       ended.value ->> 5, ended.value ->> 6, ended.value ->> 7, ended.value ->> 9,
       ended.value ->> 10
  FROM json_each(:ends) AS ended
 CROSS JOIN job ON job.rowid = ended.value ->> 0
 WHERE job.token = ended.value ->> 1 AND +job.state = ended.value ->> 2

-- name: note_ended
-- Of those that were just copied, which follow one another.
INSERT INTO ended (at, lane, state, jobs, delays, runs)
SELECT :now, lane, state, count(*), json_group_array(started_at - run_at) FILTER (WHERE ran),
       json_group_array(finished_at - started_at) FILTER (WHERE ran)
  FROM job_history
 WHERE rowid BETWEEN :first AND :last
 GROUP BY lane, state

-- name: tell_ended
-- Of those that were just copied, which someone may want to hear of. The first look is at the subscriptions: mostly
-- there are none.
INSERT INTO outbox (at, event, lane, job_id, token, schedule_id, failures, losses, due_at, started_at, labels, error)
SELECT :now, job.state, job.lane, job.id, job.token, job.schedule_id, job.failures - (job.cause IN ('gave_up', 'unstorable')),
       job.losses - (job.cause = 'quarantined'), job.due_at, job.started_at, job.labels, job.error
  FROM (SELECT 1 FROM subscription LIMIT 1)
 CROSS JOIN job_history AS job
 CROSS JOIN lane ON lane.id = job.lane
 CROSS JOIN tenant ON tenant.id = job.tenant
 WHERE job.rowid BETWEEN :first AND :last
   AND EXISTS (
       SELECT 1 FROM subscription AS wish
        WHERE (wish.kind IS NULL OR wish.kind = lane.kind) AND (wish.tenant IS NULL OR wish.tenant = tenant.name)
          AND EXISTS (SELECT 1 FROM json_each(wish.outcomes) WHERE value = job.state))

-- name: tell_failed
-- While the runs are still running, as add_attempts.
INSERT INTO outbox (at, event, lane, job_id, token, schedule_id, failures, losses, due_at, started_at, labels, error)
SELECT :now, 'failed', job.lane, job.id, job.token, job.schedule_id, job.failures, job.losses, job.due_at,
       coalesce(ended.value ->> 2, job.started_at), job.labels, ended.value ->> 4
  FROM (SELECT 1 FROM subscription LIMIT 1)
 CROSS JOIN json_each(:attempts) AS ended
 CROSS JOIN job ON job.rowid = ended.value ->> 0
 CROSS JOIN lane ON lane.id = job.lane
 CROSS JOIN tenant ON tenant.id = job.tenant
 WHERE +job.state = 'running' AND job.token = ended.value ->> 1
   AND EXISTS (
       SELECT 1 FROM subscription AS wish
        WHERE (wish.kind IS NULL OR wish.kind = lane.kind) AND (wish.tenant IS NULL OR wish.tenant = tenant.name)
          AND EXISTS (SELECT 1 FROM json_each(wish.outcomes) WHERE value = 'failed'))

-- name: remove
DELETE FROM job WHERE rowid IN (SELECT value ->> 0 FROM json_each(:ends))

-- name: give_back
-- Returns runs to the queue, never due before now. Nobody who returns was cancelled: a request to stop that is left was
-- that of a gate.
UPDATE job
   SET state = 'queued', run_at = :now + max(0, back.delay), failures = job.failures + back.failures,
       losses = job.losses + back.losses, started_at = coalesce(back.started_at, job.started_at), ended_at = :now,
       updated_at = :now, lane = back.lane, cancel_at = NULL, cancel_reason = NULL, held = 0
  FROM (
       SELECT value ->> 0 AS place, value ->> 1 AS token, value ->> 2 AS delay, value ->> 3 AS failures,
              value ->> 4 AS losses, value ->> 5 AS started_at, value ->> 6 AS lane
         FROM json_each(:back)
       ) AS back
 WHERE job.rowid = back.place AND +job.state = 'running' AND job.token = back.token

-- name: add_attempts
-- While the runs are still running: the row says who and since when.
INSERT INTO attempt (job_id, token, worker, started_at, ended_at, cause, error, usage)
SELECT job.id, job.token, job.worker, coalesce(ended.value ->> 2, job.started_at), :now, ended.value ->> 3,
       ended.value ->> 4, ended.value ->> 5
  FROM json_each(:attempts) AS ended
 CROSS JOIN job ON job.rowid = ended.value ->> 0
 WHERE +job.state = 'running' AND job.token = ended.value ->> 1

-- name: find_ended
-- What became of runs that are no longer this worker's: the cause that ended them, wherever that stands.
SELECT json_group_array(coalesce(
       (SELECT cause FROM job_history
         WHERE id = unhex(named.value ->> 0) AND token = named.value ->> 1 AND worker = :worker),
       (SELECT cause FROM attempt
         WHERE job_id = unhex(named.value ->> 0) AND token = named.value ->> 1 AND worker = :worker),
       (SELECT 'queued' FROM job
         WHERE id = unhex(named.value ->> 0) AND token = named.value ->> 1 AND +worker = :worker AND +state <> 'running')))
  FROM json_each(:runs) AS named

-- name: count_finished
INSERT INTO rollup (lane, state, jobs)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:counts) WHERE true
ON CONFLICT (lane, state) DO UPDATE SET jobs = jobs + excluded.jobs
