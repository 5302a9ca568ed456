-- name: limits_of
SELECT key, most, running, starts, seconds, burst, tokens, filled_at, look_at
  FROM limit_key
 WHERE tenant = (SELECT id FROM tenant WHERE name = :tenant) AND key IN (SELECT value FROM json_each(:keys))
 ORDER BY key

-- name: holders
SELECT json_group_array(hex(id))
  FROM (
       SELECT id
         FROM job INDEXED BY job_running
        WHERE state = 'running' AND tenant = (SELECT id FROM tenant WHERE name = :tenant)
          AND EXISTS (SELECT 1 FROM json_each(limit_keys) WHERE value = :key)
        LIMIT :limit)

-- name: open_parents
SELECT json_group_array(hex(parent))
  FROM (SELECT parent FROM dependency WHERE child = :job AND NOT done ORDER BY parent LIMIT :limit)

-- name: lanes_beside
-- The lanes of a queue that jobs may start from.
SELECT lane.id, lane.kind, lane.needs, tenant.name, lane.retried
  FROM lane
  JOIN tenant ON tenant.id = lane.tenant
 WHERE lane.queue = :queue AND lane.gate IN ('open', 'slow')

-- name: is_retry
SELECT lane.retried FROM job JOIN lane ON lane.id = job.lane WHERE job.id = :job

-- name: ahead
-- How many jobs of some lanes come before a place, which is given for each priority; no more than so many are counted.
SELECT count(*)
  FROM (
       SELECT 1
         FROM json_each(:lanes) AS named
        CROSS JOIN json_each(:levels) AS level
        CROSS JOIN job
        WHERE job.state = 'queued' AND job.lane = named.value AND job.priority = level.value ->> 0
          AND (job.run_at, job.id) < (level.value ->> 1, unhex(level.value ->> 2))
        LIMIT :most)

-- name: waiters_ahead
SELECT count(*)
  FROM (
       SELECT 1
         FROM job
        WHERE state = 'limited' AND tenant = (SELECT id FROM tenant WHERE name = :tenant) AND waits_for = :key
          AND (priority, run_at, id) < (:priority, :run_at, :id)
        LIMIT :most)

-- name: finish_rate
-- How many jobs of some lanes end in a second, as far as it was measured of late.
SELECT sum(per_second)
  FROM finish_rate
 WHERE lane IN (SELECT value FROM json_each(:lanes)) AND taken_at > :since

-- name: note_finish_rates
-- Compares what has finished with what had when it was last looked.
INSERT INTO finish_rate (lane, finished, taken_at)
SELECT lane, sum(jobs), :at FROM rollup WHERE state IN ('succeeded', 'dead') GROUP BY lane
ON CONFLICT (lane) DO UPDATE
   SET per_second = CASE WHEN excluded.taken_at > taken_at
                         THEN 1e6 * max(0, excluded.finished - finished) / (excluded.taken_at - taken_at) END,
       finished = excluded.finished, taken_at = excluded.taken_at
 WHERE excluded.taken_at <> taken_at
