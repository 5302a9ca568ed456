-- name: add_schedule
INSERT INTO schedule (id, tenant, name, shard, definition, next_fire_at, declared_by, created_at, updated_at)
VALUES (:id, :tenant, :name, :shard, :definition, :next_fire_at, :declared_by, :now, :now)
ON CONFLICT (tenant, name) DO NOTHING
RETURNING id

-- name: get_schedule
SELECT schedule.id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM schedule
 CROSS JOIN tenant ON tenant.id = schedule.tenant
 WHERE schedule.id = :id AND (:tenant IS NULL OR tenant.name = :tenant)

-- name: find_schedule
SELECT schedule.id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM tenant
 CROSS JOIN schedule ON schedule.tenant = tenant.id AND schedule.name = :name
 WHERE tenant.name = :tenant

-- name: list_schedules
SELECT schedule.id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM schedule
 CROSS JOIN tenant ON tenant.id = schedule.tenant
 WHERE schedule.id > :after AND (:tenant IS NULL OR tenant.name = :tenant)
 ORDER BY schedule.id
 LIMIT :limit

-- name: schedules_named
SELECT schedule.id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM json_each(:ids) AS named
 CROSS JOIN schedule ON schedule.id = unhex(named.value)

-- name: schedules_declared
SELECT id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM schedule
 WHERE declared_by = :app

-- name: write_schedule
-- Only if it is still at the version that the caller read; a name that is taken leaves it as it is, too.
UPDATE schedule
   SET name = :name, definition = :definition, paused = :paused, next_fire_at = :next_fire_at, fired = :fired,
       orphaned_at = :orphaned_at, version = version + 1, updated_at = :now
 WHERE id = :id AND version = :version
   AND NOT EXISTS (
       SELECT 1 FROM schedule AS other
        WHERE other.tenant = schedule.tenant AND other.name = :name AND other.id <> schedule.id)
RETURNING id

-- name: remove_schedule
DELETE FROM schedule WHERE id = :id AND version = :version RETURNING id

-- name: orphan_schedule
UPDATE schedule SET orphaned_at = :now, updated_at = :now WHERE id = :id AND orphaned_at IS NULL

-- name: schedules_near
SELECT id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM schedule
 WHERE shard = :shard AND next_fire_at IS NOT NULL AND next_fire_at <= :until
 ORDER BY next_fire_at
 LIMIT :limit

-- name: next_beyond
SELECT next_fire_at FROM schedule
 WHERE shard = :shard AND next_fire_at IS NOT NULL AND next_fire_at > :until
 ORDER BY next_fire_at
 LIMIT 1

-- name: next_undecided
SELECT fire_at FROM occurrence WHERE undecided IS NOT NULL AND undecided = :shard ORDER BY fire_at LIMIT 1

-- name: standing
-- Which of the plans (id, version, next_fire_at) were made from what their schedules are now.
SELECT plan.key
  FROM json_each(:plans) AS plan
 CROSS JOIN schedule ON schedule.id = unhex(plan.value ->> 0)
 WHERE schedule.version = plan.value ->> 1 AND schedule.next_fire_at = plan.value ->> 2

-- name: add_occurrences
-- One that is there stays as it is, and is not in the answer.
INSERT INTO occurrence (schedule_id, fire_at, source, outcome, reason, job_id, undecided, recorded_at)
SELECT unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3, value ->> 4, unhex(value ->> 5), value ->> 6, :now
  FROM json_each(:occurrences)
 WHERE true
ON CONFLICT (schedule_id, fire_at) DO NOTHING
RETURNING schedule_id, fire_at

-- name: tell_missed
INSERT INTO outbox (at, event, schedule_id, due_at, detail)
SELECT :now, 'missed', schedule_id, fire_at, json_object('reason', reason)
  FROM (SELECT 1 FROM subscription WHERE EXISTS (SELECT 1 FROM json_each(outcomes) WHERE value = 'missed') LIMIT 1)
 CROSS JOIN json_each(:added) AS added
 CROSS JOIN occurrence ON schedule_id = unhex(added.value ->> 0) AND fire_at = added.value ->> 1
 WHERE outcome = 'missed'

-- name: count_missed
INSERT INTO finished (queue, state, jobs)
SELECT '', 'missed', count(*)
  FROM json_each(:added) AS added
 CROSS JOIN occurrence ON schedule_id = unhex(added.value ->> 0) AND fire_at = added.value ->> 1
 WHERE outcome = 'missed'
 HAVING count(*) > 0
ON CONFLICT (queue, state) DO UPDATE SET jobs = jobs + excluded.jobs

-- name: advance_schedules
UPDATE schedule
   SET next_fire_at = plan.next_fire_at, fired = plan.fired
  FROM (SELECT unhex(value ->> 0) AS id, value ->> 1 AS version, value ->> 2 AS believed, value ->> 3 AS next_fire_at,
               value ->> 4 AS fired
          FROM json_each(:plans)) AS plan
 WHERE schedule.id = plan.id AND schedule.version = plan.version AND schedule.next_fire_at = plan.believed

-- name: backfill_occurrences
-- One that has a job of its own stays as it is, and is not in the answer.
INSERT INTO occurrence (schedule_id, fire_at, source, outcome, job_id, recorded_at)
SELECT :schedule, value ->> 0, 'backfill', 'made', unhex(value ->> 1), :now
  FROM json_each(:occurrences)
 WHERE true
ON CONFLICT (schedule_id, fire_at) DO UPDATE
   SET source = 'backfill', outcome = 'made', reason = '', job_id = excluded.job_id, recorded_at = excluded.recorded_at
 WHERE occurrence.outcome <> 'made'
RETURNING fire_at

-- name: recorded_before
SELECT occurrence.fire_at, occurrence.outcome = 'made'
  FROM json_each(:times) AS time
 CROSS JOIN occurrence ON occurrence.schedule_id = :schedule AND occurrence.fire_at = time.value

-- name: list_occurrences
SELECT schedule_id, fire_at, source, outcome, reason, job_id
  FROM occurrence
 WHERE schedule_id = :schedule AND fire_at < :before
 ORDER BY fire_at DESC
 LIMIT :limit

-- name: coming_schedules
SELECT id, definition, paused, version, fired, next_fire_at, declared_by, orphaned_at, created_at, updated_at
  FROM schedule
 WHERE tenant = (SELECT id FROM tenant WHERE name = :tenant) AND next_fire_at IS NOT NULL
 ORDER BY next_fire_at
 LIMIT :limit

-- name: past_occurrences
-- The last ones of some schedules, each with the state of its job and when the first run of that began: runs before the
-- last one are among the attempts.
SELECT past.schedule_id, past.fire_at, past.source, past.outcome, past.reason, past.job_id,
       coalesce(job.state, history.state),
       coalesce((SELECT attempt.started_at FROM attempt
                  WHERE attempt.job_id = past.job_id AND attempt.started_at IS NOT NULL
                  ORDER BY attempt.token LIMIT 1), job.started_at, history.started_at)
  FROM json_each(:ids) AS named
 CROSS JOIN schedule ON schedule.id = unhex(named.value)
 CROSS JOIN tenant ON tenant.id = schedule.tenant
 CROSS JOIN occurrence AS past
            ON past.schedule_id = schedule.id
           AND past.fire_at IN (SELECT near.fire_at FROM occurrence AS near
                                 WHERE near.schedule_id = schedule.id AND near.fire_at <= :now
                                 ORDER BY near.fire_at DESC LIMIT :each)
  LEFT JOIN job ON job.id = past.job_id
  LEFT JOIN job_history AS history ON history.id = past.job_id
 WHERE :tenant IS NULL OR tenant.name = :tenant
 ORDER BY named.key, past.fire_at DESC

-- name: occurrence_of_job
-- From the latest on: whoever repeats a trigger does so soon.
SELECT schedule_id, fire_at, source, outcome, reason, job_id
  FROM occurrence
 WHERE schedule_id = :schedule AND job_id = :job
 ORDER BY fire_at DESC
 LIMIT 1

-- name: written_ahead
-- Waiting jobs of planned occurrences that are not due.
SELECT json_array(
       job.rowid, job.token, job.state, job.lane, job.priority, json(job.limit_keys), CASE WHEN job.awaited THEN hex(job.id) END),
       job.due_at
  FROM job
 CROSS JOIN occurrence ON occurrence.schedule_id = job.schedule_id AND occurrence.fire_at = job.due_at
 WHERE job.schedule_id = :schedule AND job.due_at > :now AND job.state <> 'running'
   AND occurrence.job_id = job.id AND occurrence.source = 'planned'

-- name: waiting_of_schedule
SELECT json_array(
       job.rowid, job.token, job.state, job.lane, job.priority, json(job.limit_keys), CASE WHEN job.awaited THEN hex(job.id) END)
  FROM job
 WHERE job.schedule_id = :schedule AND job.state <> 'running'

-- name: take_back
DELETE FROM occurrence WHERE schedule_id = :schedule AND fire_at IN (SELECT value FROM json_each(:times))

-- name: leave_undecided
UPDATE occurrence SET undecided = NULL
 WHERE schedule_id = :schedule AND (undecided, fire_at) IN (
       SELECT undecided, fire_at FROM occurrence WHERE undecided IS NOT NULL AND undecided = :shard)

-- name: undecided
SELECT schedule_id, fire_at, job_id FROM occurrence
 WHERE undecided IS NOT NULL AND undecided = :shard AND fire_at <= :now
 ORDER BY fire_at
 LIMIT :limit

-- name: alive_of_schedules
-- Jobs that have not ended of occurrences that are due; those of backfills are due at other times than they stand for.
SELECT job.schedule_id, job.due_at, job.id, job.state = 'running'
  FROM json_each(:ids) AS named
 CROSS JOIN job ON job.schedule_id = unhex(named.value) AND job.due_at <= :now
 CROSS JOIN occurrence ON occurrence.schedule_id = job.schedule_id AND occurrence.fire_at = job.due_at
 WHERE occurrence.job_id = job.id

-- name: note_decided
UPDATE occurrence
   SET outcome = iif(decided.reason IS NULL, outcome, 'skipped'), reason = coalesce(decided.reason, occurrence.reason),
       undecided = NULL
  FROM (SELECT unhex(value ->> 0) AS schedule_id, value ->> 1 AS fire_at, value ->> 2 AS reason
          FROM json_each(:decided)) AS decided
 WHERE occurrence.schedule_id = decided.schedule_id AND occurrence.fire_at = decided.fire_at

-- name: retire_occurrences
DELETE FROM occurrence
 WHERE (schedule_id, fire_at) IN (
       SELECT schedule_id, fire_at FROM occurrence WHERE recorded_at < :until ORDER BY recorded_at LIMIT :limit)
RETURNING 1
