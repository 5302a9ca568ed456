-- name: finish_returned
-- The common end: results of runs without limit keys or children go to history, and nothing else happens. Each row is found by its
-- id, then deleted by its place; the guards stand at the delete, where a concurrent change is seen again.
-- `IS NOT DISTINCT FROM` and `state || ''` keep the planner off the partial indexes, whose dead entries pile up under a
-- held snapshot: a vacuum that finds no live row makes them look free of charge.
WITH outcome AS MATERIALIZED (
    SELECT *
      FROM unnest($2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::timestamptz[], $7::text[])
           AS outcome (id, token, result, result_location, started_at, usage)
), mine AS MATERIALIZED (
    SELECT job.at
      FROM outcome
     CROSS JOIN LATERAL (
           SELECT job.ctid AS at FROM tidewheel.job WHERE job.id = outcome.id AND job.token = outcome.token LIMIT 1
           ) AS job
), gone AS (
    DELETE FROM tidewheel.job
     WHERE job.ctid = ANY (ARRAY(SELECT at FROM mine))
       AND job.state || '' = 'running' AND job.worker IS NOT DISTINCT FROM $1 AND job.limit_keys IS NULL
       AND NOT job.awaited
    RETURNING *
), counted AS (
    INSERT INTO tidewheel.tally (day, lane, state, jobs)
    SELECT (tidewheel.now() AT TIME ZONE 'UTC')::date, lane, 'succeeded', count(*) FROM gone GROUP BY lane
), timed AS (
    INSERT INTO tidewheel.ended (at, lane, state, jobs, delays, runs)
    SELECT tidewheel.now(), gone.lane, 'succeeded', count(*),
           array_agg(coalesce(outcome.started_at, gone.started_at) - gone.run_at),
           array_agg(tidewheel.now() - coalesce(outcome.started_at, gone.started_at))
      FROM gone
      JOIN outcome ON outcome.id = gone.id AND outcome.token = gone.token
     GROUP BY gone.lane
), told AS (
    INSERT INTO tidewheel.outbox (
           at, event, lane, job_id, token, schedule_id, failures, losses, due_at, started_at, labels)
    SELECT tidewheel.now(), 'succeeded', gone.lane, gone.id, gone.token, gone.schedule_id, gone.failures, gone.losses,
           gone.due_at, coalesce(outcome.started_at, gone.started_at), gone.labels
      FROM gone
      JOIN outcome ON outcome.id = gone.id AND outcome.token = gone.token
     WHERE (SELECT EXISTS (SELECT FROM tidewheel.subscription))
       AND gone.lane = ANY (ARRAY(
           SELECT lanes.lane  -- as is_wanted says, which would be planned anew each time
             FROM (SELECT DISTINCT lane FROM gone) AS lanes
             JOIN tidewheel.lane AS own ON own.id = lanes.lane
             JOIN tidewheel.tenant ON tenant.id = own.tenant
             JOIN tidewheel.subscription AS wish
               ON (wish.kind IS NULL OR wish.kind = own.kind) AND (wish.tenant IS NULL OR wish.tenant = tenant.name)
            WHERE 'succeeded' = ANY (wish.outcomes)))
), kept AS (
    INSERT INTO tidewheel.job_history (
           id, schedule_id, worker, run_at, due_at, created_at, updated_at, start_by, started_at, ended_at, cancel_at,
           token, lane, tenant, priority, failures, losses, state, args, labels, options, limit_keys, unique_key,
           idempotency_key, on_parent_failure, finished_at, cause, ran, result, result_location, usage)
    SELECT gone.id, gone.schedule_id, gone.worker, gone.run_at, gone.due_at, gone.created_at, tidewheel.now(),
           gone.start_by, coalesce(outcome.started_at, gone.started_at), tidewheel.now(), gone.cancel_at,
           gone.token, gone.lane, gone.tenant, gone.priority, gone.failures, gone.losses, 'succeeded', gone.args,
           gone.labels, gone.options, gone.limit_keys, gone.unique_key, gone.idempotency_key, gone.on_parent_failure,
           tidewheel.now(), 'returned', true, outcome.result::json, outcome.result_location, outcome.usage::json
      FROM gone
      JOIN outcome ON outcome.id = gone.id AND outcome.token = gone.token
    RETURNING id, token
)
SELECT array_agg(id), array_agg(token) FROM kept

-- name: finish_involved
-- The same for runs that may have limit keys or children. Tells what these are, to be dealt with in this transaction.
WITH outcome AS MATERIALIZED (
    SELECT *
      FROM unnest($2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::timestamptz[], $7::text[])
           AS outcome (id, token, result, result_location, started_at, usage)
), mine AS MATERIALIZED (
    SELECT job.at
      FROM outcome
     CROSS JOIN LATERAL (
           SELECT job.ctid AS at FROM tidewheel.job WHERE job.id = outcome.id AND job.token = outcome.token LIMIT 1
           ) AS job
), gone AS (
    DELETE FROM tidewheel.job
     WHERE job.ctid = ANY (ARRAY(SELECT at FROM mine))
       AND job.state || '' = 'running' AND job.worker IS NOT DISTINCT FROM $1
    RETURNING *
), counted AS (
    INSERT INTO tidewheel.tally (day, lane, state, jobs)
    SELECT (tidewheel.now() AT TIME ZONE 'UTC')::date, lane, 'succeeded', count(*) FROM gone GROUP BY lane
), timed AS (
    INSERT INTO tidewheel.ended (at, lane, state, jobs, delays, runs)
    SELECT tidewheel.now(), gone.lane, 'succeeded', count(*),
           array_agg(coalesce(outcome.started_at, gone.started_at) - gone.run_at),
           array_agg(tidewheel.now() - coalesce(outcome.started_at, gone.started_at))
      FROM gone
      JOIN outcome ON outcome.id = gone.id AND outcome.token = gone.token
     GROUP BY gone.lane
), told AS (
    INSERT INTO tidewheel.outbox (
           at, event, lane, job_id, token, schedule_id, failures, losses, due_at, started_at, labels)
    SELECT tidewheel.now(), 'succeeded', gone.lane, gone.id, gone.token, gone.schedule_id, gone.failures, gone.losses,
           gone.due_at, coalesce(outcome.started_at, gone.started_at), gone.labels
      FROM gone
      JOIN outcome ON outcome.id = gone.id AND outcome.token = gone.token
     WHERE (SELECT EXISTS (SELECT FROM tidewheel.subscription))
       AND gone.lane = ANY (ARRAY(
           SELECT lanes.lane  -- as is_wanted says, which would be planned anew each time
             FROM (SELECT DISTINCT lane FROM gone) AS lanes
             JOIN tidewheel.lane AS own ON own.id = lanes.lane
             JOIN tidewheel.tenant ON tenant.id = own.tenant
             JOIN tidewheel.subscription AS wish
               ON (wish.kind IS NULL OR wish.kind = own.kind) AND (wish.tenant IS NULL OR wish.tenant = tenant.name)
            WHERE 'succeeded' = ANY (wish.outcomes)))
), kept AS (
    INSERT INTO tidewheel.job_history (
           id, schedule_id, worker, run_at, due_at, created_at, updated_at, start_by, started_at, ended_at, cancel_at,
           token, lane, tenant, priority, failures, losses, state, args, labels, options, limit_keys, unique_key,
           idempotency_key, on_parent_failure, awaited, finished_at, cause, ran, result, result_location, usage)
    SELECT gone.id, gone.schedule_id, gone.worker, gone.run_at, gone.due_at, gone.created_at, tidewheel.now(),
           gone.start_by, coalesce(outcome.started_at, gone.started_at), tidewheel.now(), gone.cancel_at,
           gone.token, gone.lane, gone.tenant, gone.priority, gone.failures, gone.losses, 'succeeded', gone.args,
           gone.labels, gone.options, gone.limit_keys, gone.unique_key, gone.idempotency_key, gone.on_parent_failure,
           gone.awaited, tidewheel.now(), 'returned', true, outcome.result::json, outcome.result_location, outcome.usage::json
      FROM gone
      JOIN outcome ON outcome.id = gone.id AND outcome.token = gone.token
)
SELECT array_agg(id), array_agg(token), array_agg(tenant), array_agg(array_to_string(limit_keys, chr(31))),
       array_agg(awaited)
  FROM gone

-- name: lock_runs
-- Locks those of the named runs that are still this worker's, in the order of their ids.
SELECT job.id, job.token, job.cancel_at IS NOT NULL AS cancelling, job.losses, job.tenant, job.limit_keys,
       job.cancel_reason, job.held
  FROM unnest($2::uuid[], $3::bigint[]) AS named (id, token)
 CROSS JOIN LATERAL (
       SELECT * FROM tidewheel.job
        WHERE job.id = named.id AND job.token = named.token
          AND job.state || '' = 'running' AND job.worker IS NOT DISTINCT FROM $1
        LIMIT 1
          FOR UPDATE
       ) AS job
 ORDER BY job.id

-- name: lock_runs_of_worker
SELECT id, token, cancel_at IS NOT NULL AS cancelling, losses, tenant, limit_keys, cancel_reason, held
  FROM tidewheel.job
 WHERE state = 'running' AND worker = $1
 ORDER BY id
   FOR UPDATE

-- name: finish
-- Moves locked jobs to history. `from_states` is what the caller believes in. `room` are the keys of those that were
-- queued, perhaps because room was made for them.
WITH ending AS MATERIALIZED (
    SELECT *
      FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
                  $9::text[], $10::text[])
           AS ending (id, state, cause, result, result_location, error, started_at, usage, fingerprint)
), mine AS MATERIALIZED (
    SELECT job.at
      FROM ending
     CROSS JOIN LATERAL (SELECT job.ctid AS at FROM tidewheel.job WHERE job.id = ending.id LIMIT 1) AS job
), gone AS (
    DELETE FROM tidewheel.job
     WHERE job.ctid = ANY (ARRAY(SELECT at FROM mine)) AND job.state || '' = ANY ($1::text[])
    RETURNING *
), counted AS (
    INSERT INTO tidewheel.tally (day, lane, state, jobs)
    SELECT (tidewheel.now() AT TIME ZONE 'UTC')::date, gone.lane, ending.state, count(*)
      FROM gone JOIN ending ON ending.id = gone.id
     GROUP BY gone.lane, ending.state
), timed AS (
    INSERT INTO tidewheel.ended (at, lane, state, jobs, delays, runs)
    SELECT tidewheel.now(), gone.lane, ending.state, count(*),
           array_agg(coalesce(ending.started_at, gone.started_at) - gone.run_at) FILTER (WHERE gone.state = 'running'),
           array_agg(tidewheel.now() - coalesce(ending.started_at, gone.started_at)) FILTER (WHERE gone.state = 'running')
      FROM gone JOIN ending ON ending.id = gone.id
     GROUP BY gone.lane, ending.state
), told AS (
    INSERT INTO tidewheel.outbox (
           at, event, lane, job_id, token, schedule_id, failures, losses, due_at, started_at, labels, error)
    SELECT tidewheel.now(), ending.state, gone.lane, gone.id, gone.token, gone.schedule_id, gone.failures, gone.losses,
           gone.due_at, coalesce(ending.started_at, gone.started_at), gone.labels, ending.error::json
      FROM gone
      JOIN ending ON ending.id = gone.id
     WHERE (SELECT EXISTS (SELECT FROM tidewheel.subscription)) AND tidewheel.is_wanted(ending.state, gone.lane)
), kept AS (
    INSERT INTO tidewheel.job_history (
           id, schedule_id, worker, run_at, due_at, created_at, updated_at, start_by, started_at, ended_at, cancel_at,
           token, lane, tenant, priority, failures, losses, state, args, labels, options, limit_keys, unique_key,
           idempotency_key, on_parent_failure, awaited, finished_at, cause, ran, result, result_location, error, usage,
           fingerprint)
    SELECT gone.id, gone.schedule_id, gone.worker, gone.run_at, gone.due_at, gone.created_at, tidewheel.now(),
           gone.start_by, coalesce(ending.started_at, gone.started_at),
           CASE WHEN gone.state = 'running' THEN tidewheel.now() ELSE gone.ended_at END, gone.cancel_at,
           gone.token, gone.lane, gone.tenant, gone.priority,
           gone.failures + (ending.cause IN ('gave_up', 'unstorable'))::integer,
           gone.losses + (ending.cause = 'quarantined')::integer,
           ending.state, gone.args, gone.labels, gone.options, gone.limit_keys, gone.unique_key, gone.idempotency_key,
           gone.on_parent_failure, gone.awaited, tidewheel.now(), ending.cause, gone.state = 'running', ending.result::json, ending.result_location, ending.error::json,
           ending.usage::json, ending.fingerprint
      FROM gone
      JOIN ending ON ending.id = gone.id
)
SELECT id, tenant, CASE WHEN state = 'queued' THEN limit_keys END AS room, awaited FROM gone

-- name: give_back
-- Returns locked runs to the queue, never due before now: marks of claimers may already have passed any earlier time.
-- Those that failed wait in the lane of retries, and nobody is overdue any more.
-- Nobody who returns was cancelled: a request to stop that is left was that of a gate.
WITH back AS MATERIALIZED (
    SELECT *
      FROM unnest($1::uuid[], $2::interval[], $3::integer[], $4::integer[], $5::boolean[])
           AS back (id, delay, failures, losses, retried)
)
UPDATE tidewheel.job
   SET state = 'queued', run_at = tidewheel.now() + greatest(back.delay, interval '0'), ended_at = tidewheel.now(),
       updated_at = tidewheel.now(), failures = job.failures + back.failures, losses = job.losses + back.losses,
       lane = tidewheel.lane_like(job.lane, CASE WHEN back.retried THEN true END),
       cancel_at = NULL, cancel_reason = NULL, held = false, stood_at = NULL
  FROM (
       SELECT place.at, back.*
         FROM back
        CROSS JOIN LATERAL (SELECT job.ctid AS at FROM tidewheel.job WHERE job.id = back.id LIMIT 1) AS place
       ) AS back
 WHERE job.ctid = back.at AND job.state || '' = 'running'

-- name: add_attempts
-- While the runs are still running; whoever wants to hear that they failed will.
WITH ended AS MATERIALIZED (
    SELECT ended.*, job.lane, job.schedule_id, job.failures, job.losses, job.due_at, job.labels,
           coalesce(ended.began_at, job.started_at) AS started_at
      FROM unnest($2::uuid[], $3::bigint[], $4::timestamptz[], $5::text[], $6::text[], $7::text[])
           AS ended (id, token, began_at, cause, error, usage)
     CROSS JOIN LATERAL (SELECT * FROM tidewheel.job WHERE job.id = ended.id LIMIT 1) AS job
), told AS (
    INSERT INTO tidewheel.outbox (
           at, event, lane, job_id, token, schedule_id, failures, losses, due_at, started_at, labels, error)
    SELECT tidewheel.now(), 'failed', lane, id, token, schedule_id, failures, losses, due_at, started_at, labels,
           error::json
      FROM ended
     WHERE (SELECT EXISTS (SELECT FROM tidewheel.subscription)) AND tidewheel.is_wanted('failed', lane)
)
INSERT INTO tidewheel.attempt (job_id, token, worker, started_at, ended_at, cause, error, usage)
SELECT id, token, $1, started_at, tidewheel.now(), cause, error::json, usage::json FROM ended

-- name: find_ended
-- What became of runs that are no longer this worker's: the cause that ended them, wherever that stands.
SELECT named.id, named.token, coalesce(
       (SELECT history.cause FROM tidewheel.job_history AS history
         WHERE history.id = named.id AND history.token = named.token AND history.worker = $1
           AND history.finished_at >= named.made - interval '1 day'),
       (SELECT attempt.cause FROM tidewheel.attempt
         WHERE attempt.job_id = named.id AND attempt.token = named.token AND attempt.worker = $1
           AND attempt.ended_at >= named.made - interval '1 day'),
       (SELECT 'queued' FROM tidewheel.job
         WHERE job.id = named.id AND job.token = named.token AND job.worker IS NOT DISTINCT FROM $1
           AND job.state <> 'running')) AS cause
  FROM unnest($2::uuid[], $3::bigint[], $4::timestamptz[]) AS named (id, token, made)

-- name: lanes_without_retries
-- The lanes of jobs that failed for which there is no lane of retries yet. The jobs are looked up by themselves: with few
-- lanes counted, the planner would look each of them up again for every lane.
WITH failed AS MATERIALIZED (
    SELECT DISTINCT job.lane
      FROM unnest($1::uuid[]) AS named (id)
     CROSS JOIN LATERAL (SELECT job.lane FROM tidewheel.job WHERE job.id = named.id LIMIT 1) AS job
)
SELECT DISTINCT tenant.name AS tenant, lane.queue, lane.kind, lane.needs, lane.keyed
  FROM failed
  JOIN tidewheel.lane ON lane.id = failed.lane
  JOIN tidewheel.tenant ON tenant.id = lane.tenant
 WHERE NOT lane.retried AND tidewheel.lane_like(lane.id, true) = lane.id
