-- Sets go in and come out as one JSON text: a statement is then one step of SQLite, and the thread lets go of Python's
-- lock once and not for every row. Measured with a busy event loop beside it: 270 jobs a second row by row, 7 800 so.

-- name: worker_is_alive
SELECT EXISTS (SELECT 1 FROM worker WHERE id = :worker AND alive AND lease_until > :now)

-- name: active_pairs
-- Finds every (lane, priority) that has queued jobs, with the run_at of its first, by a loose scan of the due index.
WITH RECURSIVE head (place) AS (
    SELECT (SELECT rowid FROM job WHERE state = 'queued' ORDER BY lane, priority, run_at, id LIMIT 1)
    UNION ALL
    SELECT coalesce(
           (SELECT next.rowid FROM job AS next
             WHERE next.state = 'queued' AND next.lane = job.lane AND next.priority > job.priority
             ORDER BY next.priority, next.run_at, next.id LIMIT 1),
           (SELECT next.rowid FROM job AS next
             WHERE next.state = 'queued' AND next.lane > job.lane
             ORDER BY next.lane, next.priority, next.run_at, next.id LIMIT 1))
      FROM head
     CROSS JOIN job ON job.rowid = head.place
)
SELECT json_group_array(json_array(job.lane * 4 + job.priority, job.run_at, job.rowid))
  FROM head
 CROSS JOIN job ON job.rowid = head.place

-- name: peek
-- Looks at the first rows of each named pair, also at one that lies in the future, which tells when to look again.
-- The outer array is put together as text: what a subquery answers is no longer known to be JSON.
SELECT '[' || group_concat('[' || value || ',' || (
       SELECT json_group_array(json_array(head.run_at, head.place))
         FROM (
              SELECT job.run_at, job.rowid AS place
                FROM job
               WHERE job.state = 'queued' AND job.lane = value >> 2 AND job.priority = value & 3
               ORDER BY job.run_at, job.id
               LIMIT :depth
              ) AS head) || ']') || ']'
  FROM json_each(:pairs)

-- name: take
UPDATE job
   SET state = 'running', token = token + 1, worker = :worker, started_at = :now, updated_at = :now
 WHERE rowid IN (SELECT value FROM json_each(:places)) AND +state = 'queued'

-- name: taken
-- The runs of a claim, in the order in which they should start.
SELECT json_group_array(json_array(
       hex(id), token, lane, priority, args, labels, options, run_at, due_at, start_by, started_at, failures, losses,
       cancel_at IS NOT NULL, json(limit_keys)))
  FROM (SELECT * FROM job WHERE rowid IN (SELECT value FROM json_each(:places)) ORDER BY priority, run_at, id)

-- name: owned
SELECT json_group_array(json_array(
       hex(id), token, lane, priority, args, labels, options, run_at, due_at, start_by, started_at, failures, losses,
       cancel_at IS NOT NULL, json(limit_keys)))
  FROM (SELECT * FROM job WHERE state = 'running' AND worker = :worker ORDER BY priority, run_at, id)

-- name: keys_of
-- The limit keys of candidates, best first.
SELECT json_group_array(json_array(place, tenant, json(limit_keys), run_at))
  FROM (
       SELECT rowid AS place, tenant, limit_keys, run_at
         FROM job
        WHERE rowid IN (SELECT value FROM json_each(:places))
        ORDER BY priority, run_at, id
       )

-- name: keys_ahead
-- The limit keys of the first rows of some pairs.
SELECT json_group_array(json_array(job.rowid, job.tenant, json(job.limit_keys), job.run_at))
  FROM json_each(:pairs) AS pair
 CROSS JOIN job ON job.rowid IN (
       SELECT head.rowid FROM job AS head
        WHERE head.state = 'queued' AND head.lane = pair.value >> 2 AND head.priority = pair.value & 3
          AND head.run_at <= :now
        ORDER BY head.run_at, head.id
        LIMIT :depth)

-- name: make_limited
UPDATE job
   SET state = 'limited', waits_for = refused.key, updated_at = :now
  FROM (SELECT value ->> 0 AS place, value ->> 1 AS key FROM json_each(:refused)) AS refused
 WHERE job.rowid = refused.place AND +job.state = 'queued'
