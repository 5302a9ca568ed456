-- name: store_now
SELECT tidewheel.now()

-- name: add_schedule
INSERT INTO tidewheel.schedule (id, tenant, name, shard, definition, next_fire_at, declared_by, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5::text::json, $6, $7, tidewheel.now(), tidewheel.now())
ON CONFLICT (tenant, name) DO NOTHING
RETURNING id

-- name: get_schedule
SELECT schedule.id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM tidewheel.schedule
  JOIN tidewheel.tenant ON tenant.id = schedule.tenant
 WHERE schedule.id = $1 AND ($2::text IS NULL OR tenant.name = $2)

-- name: lock_schedule
SELECT schedule.id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM tidewheel.schedule
  JOIN tidewheel.tenant ON tenant.id = schedule.tenant
 WHERE schedule.id = $1 AND ($2::text IS NULL OR tenant.name = $2)
   FOR UPDATE OF schedule

-- name: find_schedule
SELECT schedule.id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM tidewheel.schedule
  JOIN tidewheel.tenant ON tenant.id = schedule.tenant
 WHERE schedule.name = $1 AND tenant.name = $2

-- name: list_schedules
SELECT schedule.id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM tidewheel.schedule
  JOIN tidewheel.tenant ON tenant.id = schedule.tenant
 WHERE schedule.id > $3 AND ($1::text IS NULL OR tenant.name = $1)
 ORDER BY schedule.id
 LIMIT $2

-- name: lock_schedules
-- In the order of their ids, before anything else of theirs.
SELECT id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM tidewheel.schedule
 WHERE id = ANY ($1::uuid[])
 ORDER BY id
   FOR UPDATE

-- name: lock_declaring
-- One worker of an app at a time says what its code declares.
SELECT pg_advisory_xact_lock(8435, hashtext($1))

-- name: schedules_declared
SELECT id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM tidewheel.schedule
 WHERE declared_by = $1

-- name: lock_declared
SELECT id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM tidewheel.schedule
 WHERE declared_by = $1
 ORDER BY id
   FOR UPDATE

-- name: name_holder
SELECT other.id
  FROM tidewheel.schedule
  JOIN tidewheel.schedule AS other ON other.tenant = schedule.tenant AND other.name = $2 AND other.id <> schedule.id
 WHERE schedule.id = $1

-- name: write_schedule
-- Only if it is still at the version that the caller read.
UPDATE tidewheel.schedule
   SET name = $3, definition = $4::text::json, paused = $5, next_fire_at = $6, fired = $7, orphaned_at = $8,
       version = version + 1, updated_at = tidewheel.now()
 WHERE id = $1 AND version = $2
RETURNING id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at

-- name: remove_schedule
DELETE FROM tidewheel.schedule WHERE id = $1 AND version = $2

-- name: orphan_schedules
UPDATE tidewheel.schedule SET orphaned_at = tidewheel.now(), updated_at = tidewheel.now()
 WHERE id = ANY ($1::uuid[]) AND orphaned_at IS NULL

-- name: schedules_near
SELECT id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at,
       tidewheel.now() AS now
  FROM tidewheel.schedule
 WHERE shard = $1 AND next_fire_at IS NOT NULL AND next_fire_at <= tidewheel.now() + $2::interval
 ORDER BY next_fire_at
 LIMIT $3

-- name: next_instants
SELECT tidewheel.now() AS now,
       (SELECT next_fire_at FROM tidewheel.schedule
         WHERE shard = $1 AND next_fire_at IS NOT NULL AND next_fire_at > tidewheel.now() + $2::interval
         ORDER BY next_fire_at
         LIMIT 1) AS beyond,
       (SELECT fire_at FROM tidewheel.occurrence
         WHERE undecided IS NOT NULL AND undecided = $1
         ORDER BY fire_at
         LIMIT 1) AS undecided

-- name: add_occurrences
-- One that is there stays as it is, and is not in the answer.
WITH added AS (
    INSERT INTO tidewheel.occurrence (schedule_id, fire_at, source, outcome, reason, job_id, undecided, recorded_at)
    SELECT line.*, tidewheel.now()
      FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::smallint[]) AS line
    ON CONFLICT (schedule_id, fire_at) DO NOTHING
    RETURNING schedule_id, fire_at, outcome, reason
), told AS (
    INSERT INTO tidewheel.outbox (at, event, schedule_id, due_at, detail)
    SELECT tidewheel.now(), 'missed', schedule_id, fire_at, json_build_object('reason', reason)
      FROM added
     WHERE outcome = 'missed' AND EXISTS (SELECT FROM tidewheel.subscription WHERE 'missed' = ANY (outcomes))
), counted AS (
    INSERT INTO tidewheel.finished AS before (queue, state, jobs)
    SELECT '', 'missed', count(*) FROM added WHERE outcome = 'missed' HAVING count(*) > 0
    ON CONFLICT (queue, state) DO UPDATE SET jobs = before.jobs + excluded.jobs
)
SELECT schedule_id, fire_at FROM added

-- name: advance_schedules
UPDATE tidewheel.schedule
   SET next_fire_at = plan.next_fire_at, fired = plan.fired
  FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::bigint[])
       AS plan (id, version, believed, next_fire_at, fired)
 WHERE schedule.id = plan.id AND schedule.version = plan.version AND schedule.next_fire_at = plan.believed

-- name: backfill_occurrences
-- One that has a job of its own stays as it is, and is not in the answer.
INSERT INTO tidewheel.occurrence (schedule_id, fire_at, source, outcome, job_id, recorded_at)
SELECT $1, line.fire_at, 'backfill', 'made', line.job_id, tidewheel.now()
  FROM unnest($2::timestamptz[], $3::uuid[]) AS line (fire_at, job_id)
ON CONFLICT (schedule_id, fire_at) DO UPDATE
   SET source = 'backfill', outcome = 'made', reason = '', job_id = excluded.job_id, recorded_at = excluded.recorded_at
 WHERE occurrence.outcome <> 'made'
RETURNING fire_at

-- name: recorded_before
SELECT fire_at, outcome = 'made' FROM tidewheel.occurrence
 WHERE schedule_id = $1 AND fire_at = ANY ($2::timestamptz[])

-- name: list_occurrences
SELECT schedule_id, fire_at, source, outcome, reason, job_id
  FROM tidewheel.occurrence
 WHERE schedule_id = $1 AND fire_at < coalesce($2::timestamptz, 'infinity')
 ORDER BY fire_at DESC
 LIMIT $3

-- name: coming_schedules
SELECT id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM tidewheel.schedule
 WHERE tenant = (SELECT tenant.id FROM tidewheel.tenant WHERE tenant.name = $1) AND next_fire_at IS NOT NULL
 ORDER BY tenant, next_fire_at
 LIMIT $2

-- name: past_occurrences
-- The last ones of some schedules, each with the state of its job and when the first run of that began: runs before the
-- last one are among the attempts. When an occurrence was recorded bounds the days to look through.
SELECT past.schedule_id, past.fire_at, past.source, past.outcome, past.reason, past.job_id,
       coalesce(job.state, history.state) AS state,
       coalesce((SELECT attempt.started_at FROM tidewheel.attempt
                  WHERE attempt.job_id = past.job_id AND attempt.ended_at >= past.recorded_at - interval '1 day'
                    AND attempt.started_at IS NOT NULL
                  ORDER BY attempt.token LIMIT 1), job.started_at, history.started_at) AS started_at
  FROM unnest($1::uuid[]) WITH ORDINALITY AS named (id, n)
  JOIN tidewheel.schedule ON schedule.id = named.id
  JOIN tidewheel.tenant ON tenant.id = schedule.tenant
 CROSS JOIN LATERAL (
       SELECT * FROM tidewheel.occurrence
        WHERE occurrence.schedule_id = named.id AND occurrence.fire_at <= tidewheel.now()
        ORDER BY occurrence.fire_at DESC
        LIMIT $2
       ) AS past
  LEFT JOIN LATERAL (SELECT state, started_at FROM tidewheel.job WHERE job.id = past.job_id LIMIT 1) AS job ON true
  LEFT JOIN LATERAL (
       SELECT state, started_at FROM tidewheel.job_history
        WHERE job_history.id = past.job_id AND job_history.finished_at >= past.recorded_at - interval '1 day'
        LIMIT 1
       ) AS history ON true
 WHERE $3::text IS NULL OR tenant.name = $3
 ORDER BY named.n, past.fire_at DESC

-- name: occurrence_of_job
-- From the latest on: whoever repeats a trigger does so soon.
SELECT schedule_id, fire_at, source, outcome, reason, job_id
  FROM tidewheel.occurrence
 WHERE schedule_id = $1 AND job_id = $2
 ORDER BY fire_at DESC
 LIMIT 1

-- name: lock_written_ahead
-- Waiting jobs of planned occurrences that are not due. From the jobs to the occurrences, never the other way: of these
-- there may be millions.
WITH coming AS MATERIALIZED (
    SELECT job.id, job.due_at FROM tidewheel.job WHERE job.schedule_id = $1 AND job.due_at > $2
), planned AS MATERIALIZED (
    SELECT coming.id
      FROM coming
     CROSS JOIN LATERAL (
           SELECT job_id, source FROM tidewheel.occurrence WHERE schedule_id = $1 AND fire_at = coming.due_at LIMIT 1
           ) AS occurrence
     WHERE occurrence.job_id = coming.id AND occurrence.source = 'planned'
)
SELECT job.id, job.due_at
  FROM tidewheel.job
 WHERE job.id = ANY (ARRAY(SELECT id FROM planned)) AND job.state || '' <> 'running'
 ORDER BY job.id
   FOR UPDATE

-- name: lock_waiting_of_schedule
SELECT job.id FROM tidewheel.job
 WHERE job.schedule_id = $1 AND job.state || '' <> 'running'
 ORDER BY job.id
   FOR UPDATE

-- name: take_back
DELETE FROM tidewheel.occurrence WHERE schedule_id = $1 AND fire_at = ANY ($2::timestamptz[])

-- name: leave_undecided
UPDATE tidewheel.occurrence SET undecided = NULL WHERE undecided IS NOT NULL AND undecided = $2 AND schedule_id = $1

-- name: undecided
SELECT schedule_id, fire_at, job_id FROM tidewheel.occurrence
 WHERE undecided IS NOT NULL AND undecided = $1 AND fire_at <= tidewheel.now()
 ORDER BY fire_at
 LIMIT $2

-- name: still_undecided
-- Under the locks of the schedules: who came second sees what the first has decided.
SELECT occurrence.schedule_id, occurrence.fire_at, occurrence.job_id
  FROM unnest($1::uuid[], $2::timestamptz[]) AS named (schedule_id, fire_at)
  JOIN tidewheel.occurrence ON occurrence.schedule_id = named.schedule_id AND occurrence.fire_at = named.fire_at
 WHERE occurrence.undecided IS NOT NULL

-- name: alive_of_schedules
-- Jobs that have not ended of occurrences that are due; those of backfills are due at other times than they stand for.
WITH due AS MATERIALIZED (
    SELECT job.*
      FROM unnest($1::uuid[]) AS named (id)
     CROSS JOIN LATERAL (
           SELECT schedule_id, due_at, job.id, state || '' = 'running' AS running
             FROM tidewheel.job
            WHERE job.schedule_id = named.id AND job.due_at <= tidewheel.now()
            ORDER BY job.due_at
           ) AS job
)
SELECT due.schedule_id, due.due_at, due.id, due.running
  FROM due
 CROSS JOIN LATERAL (
       SELECT job_id FROM tidewheel.occurrence WHERE schedule_id = due.schedule_id AND fire_at = due.due_at LIMIT 1
       ) AS occurrence
 WHERE occurrence.job_id = due.id

-- name: lock_to_end
-- Of the jobs that are to end, those that are there, in the order of their ids, and whether they run by now.
SELECT id, state || '' = 'running' AS running FROM tidewheel.job WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE

-- name: note_decided
UPDATE tidewheel.occurrence
   SET outcome = CASE WHEN decided.reason IS NULL THEN occurrence.outcome ELSE 'skipped' END,
       reason = coalesce(decided.reason, occurrence.reason), undecided = NULL
  FROM unnest($1::uuid[], $2::timestamptz[], $3::text[]) AS decided (schedule_id, fire_at, reason)
 WHERE occurrence.schedule_id = decided.schedule_id AND occurrence.fire_at = decided.fire_at

-- name: retire_occurrences
WITH gone AS (
    DELETE FROM tidewheel.occurrence
     WHERE ctid = ANY (ARRAY(
           SELECT ctid FROM tidewheel.occurrence
            WHERE recorded_at < tidewheel.now() - $1::interval
            ORDER BY recorded_at
            LIMIT $2))
       AND recorded_at < tidewheel.now() - $1::interval
    RETURNING 1
)
SELECT count(*) FROM gone
