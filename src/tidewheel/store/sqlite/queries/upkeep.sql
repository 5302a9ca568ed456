-- name: overdue
SELECT json_group_array(json_array(
       rowid, token, state, lane, priority, json(limit_keys), CASE WHEN awaited THEN hex(id) END))
  FROM (SELECT rowid, * FROM job
         WHERE start_by IS NOT NULL AND state <> 'running' AND start_by <= :now
         ORDER BY start_by
         LIMIT :limit)

-- name: behind_drop_gates
SELECT json_group_array(json_array(
       rowid, token, state, lane, priority, json(limit_keys), CASE WHEN awaited THEN hex(id) END))
  FROM (
       SELECT job.rowid, job.*
         FROM lane
        CROSS JOIN job ON job.lane = lane.id AND job.state = 'queued'
        WHERE lane.gate = 'drop'
        UNION ALL
       SELECT job.rowid, job.*
         FROM lane
        CROSS JOIN job ON job.lane = lane.id AND job.state = 'blocked'
        WHERE lane.gate = 'drop'
        UNION ALL
       SELECT job.rowid, job.*
         FROM job INDEXED BY job_limited
        CROSS JOIN lane ON lane.id = job.lane
        WHERE job.state = 'limited' AND lane.gate = 'drop'
          AND EXISTS (SELECT 1 FROM lane WHERE gate = 'drop')
        LIMIT :limit)

-- name: count_active
-- Each state by its own partial index, which is a fraction of the table.
SELECT lane, 'queued', priority, count(*) FROM job WHERE state = 'queued' GROUP BY lane, priority
UNION ALL
SELECT lane, 'limited', priority, count(*) FROM job INDEXED BY job_limited WHERE state = 'limited' GROUP BY lane, priority
UNION ALL
SELECT lane, 'blocked', priority, count(*) FROM job INDEXED BY job_blocked WHERE state = 'blocked' GROUP BY lane, priority
UNION ALL
SELECT lane, 'running', priority, count(*) FROM job INDEXED BY job_running WHERE state = 'running' GROUP BY lane, priority

-- name: clear_census
DELETE FROM census

-- name: add_census
INSERT INTO census (lane, state, priority, jobs)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(:counts)

-- name: date_census
UPDATE meta SET census_at = :at

-- name: next_finished
-- The next jobs that ended in a state, with whether a rule goes for their kinds.
SELECT json_group_array(json_array(place, finished_at, goes))
  FROM (
       SELECT job_history.rowid AS place, job_history.finished_at,
              (:kind IS NULL OR lane.kind = :kind) AND lane.kind NOT IN (SELECT value FROM json_each(:but)) AS goes
         FROM job_history
        CROSS JOIN lane ON lane.id = job_history.lane
        WHERE job_history.state = :state AND job_history.finished_at >= :since AND job_history.finished_at < :until
          AND (job_history.finished_at, job_history.rowid) > (:since, :beyond)
        ORDER BY job_history.finished_at, job_history.rowid
        LIMIT :limit)

-- name: lanes_of_finished
SELECT lane, count(*) FROM job_history WHERE rowid IN (SELECT value FROM json_each(:places)) GROUP BY lane

-- name: remove_attempts
DELETE FROM attempt
 WHERE job_id IN (SELECT id FROM job_history WHERE rowid IN (SELECT value FROM json_each(:places)))

-- name: remove_edges
-- Edges go with the record of their child.
DELETE FROM dependency
 WHERE child IN (SELECT id FROM job_history WHERE rowid IN (SELECT value FROM json_each(:places)))

-- name: put_off_keys
-- A key outlives the end of its job by a day; while the job is active that is a day from now at the earliest.
UPDATE idempotency
   SET check_at = coalesce((SELECT max(finished_at) FROM job_history WHERE id = job_id), :now) + :day
 WHERE (tenant, key) IN (SELECT tenant, key FROM idempotency WHERE check_at <= :now ORDER BY check_at LIMIT :limit)
   AND (EXISTS (SELECT 1 FROM job WHERE id = job_id)
        OR EXISTS (SELECT 1 FROM job_history WHERE id = job_id AND finished_at > :now - :day))

-- name: forget_keys
DELETE FROM idempotency
 WHERE (tenant, key) IN (SELECT tenant, key FROM idempotency WHERE check_at <= :now ORDER BY check_at LIMIT :limit)
   AND NOT EXISTS (SELECT 1 FROM job WHERE id = job_id)
   AND NOT EXISTS (SELECT 1 FROM job_history WHERE id = job_id AND finished_at > :now - :day)

-- name: forget_workers
DELETE FROM worker WHERE NOT alive AND ended_at < :now - :day

-- name: next_by_id
-- The next active jobs by their ids, with whether they have waited for too long.
SELECT json_group_array(json_array(hex(id), old))
  FROM (SELECT id, state <> 'running' AND run_at < :until AS old FROM job WHERE id > :beyond AND id < :young
         ORDER BY id LIMIT :limit)

-- name: old_waiting
SELECT json_group_array(json_array(
       rowid, token, state, lane, priority, json(limit_keys), CASE WHEN awaited THEN hex(id) END))
  FROM (SELECT rowid, * FROM job
         WHERE id IN (SELECT unhex(value) FROM json_each(:jobs)) AND +state <> 'running' AND run_at < :until
         ORDER BY id)
