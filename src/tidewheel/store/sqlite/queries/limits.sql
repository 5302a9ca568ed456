-- name: room
-- How much room the named keys have, of those that have a limit.
SELECT json_group_array(json_array(limit_key.tenant, limit_key.key, limit_key.most - limit_key.running))
  FROM json_each(:keys) AS named
 CROSS JOIN limit_key ON limit_key.tenant = named.value ->> 0 AND limit_key.key = named.value ->> 1

-- name: add_running
UPDATE limit_key
   SET running = max(0, running + change.n)
  FROM (SELECT value ->> 0 AS tenant, value ->> 1 AS key, value ->> 2 AS n FROM json_each(:changes)) AS change
 WHERE limit_key.tenant = change.tenant AND limit_key.key = change.key

-- name: room_for_waiters
-- Those of the named keys that have both waiters and room, and how much; -1 is no bound, for a key without a limit.
SELECT json_group_array(json_array(named.tenant, named.key, coalesce(limit_key.most - limit_key.running, -1)))
  FROM (SELECT value ->> 0 AS tenant, value ->> 1 AS key FROM json_each(:keys)) AS named
  LEFT JOIN limit_key ON limit_key.tenant = named.tenant AND limit_key.key = named.key
 WHERE (limit_key.most IS NULL OR limit_key.most > limit_key.running)
   AND EXISTS (SELECT 1 FROM job WHERE state = 'limited' AND tenant = named.tenant AND waits_for = named.key)

-- name: waiters
SELECT json_group_array(json_array(rowid, lane * 4 + priority, run_at))
  FROM (
       SELECT rowid, lane, priority, run_at
         FROM job
        WHERE state = 'limited' AND tenant = :tenant AND waits_for = :key
        ORDER BY priority, run_at, id
        LIMIT :room
       )

-- name: release
-- They keep their run_at, and with it their place before those who came later.
UPDATE job
   SET state = 'queued', waits_for = NULL, updated_at = :now
 WHERE rowid IN (SELECT value ->> 0 FROM json_each(:waiters)) AND +state = 'limited'

-- name: set_limit
INSERT INTO limit_key (tenant, key, most) VALUES (:tenant, :key, :most)
ON CONFLICT (tenant, key) DO UPDATE SET most = excluded.most

-- name: recount
-- Recounts from the runs themselves, for one key or for all, and tells which counters were wrong.
UPDATE limit_key
   SET running = true_count.running
  FROM (
       SELECT limit_key.tenant, limit_key.key, count(used.key) AS running
         FROM limit_key
         LEFT JOIN (
              SELECT job.tenant, held.value AS key
                FROM job INDEXED BY job_running
               CROSS JOIN json_each(job.limit_keys) AS held
               WHERE job.state = 'running' AND job.limit_keys IS NOT NULL
              ) AS used ON used.tenant = limit_key.tenant AND used.key = limit_key.key
        GROUP BY limit_key.tenant, limit_key.key
       ) AS true_count
 WHERE limit_key.tenant = true_count.tenant AND limit_key.key = true_count.key
   AND limit_key.running <> true_count.running
   AND (:key IS NULL OR (limit_key.tenant = :tenant AND limit_key.key = :key))
RETURNING limit_key.tenant, limit_key.key

-- name: get_limit
SELECT tenant.name, limit_key.key, limit_key.most, limit_key.running
  FROM limit_key
  JOIN tenant ON tenant.id = limit_key.tenant
 WHERE limit_key.tenant = :tenant AND limit_key.key = :key

-- name: remove_limit
DELETE FROM limit_key WHERE tenant = :tenant AND key = :key RETURNING key

-- name: limits
SELECT tenant.name, limit_key.key, limit_key.most, limit_key.running
  FROM limit_key
  JOIN tenant ON tenant.id = limit_key.tenant
 WHERE :tenant IS NULL OR tenant.name = :tenant
 ORDER BY tenant.name, limit_key.key

-- name: keys_waited_for
-- By a loose scan, for many may wait for few keys.
WITH RECURSIVE waited (tenant, key) AS (
    SELECT * FROM (SELECT tenant, waits_for FROM job WHERE state = 'limited' ORDER BY tenant, waits_for LIMIT 1)
    UNION ALL
    SELECT next.tenant, next.waits_for
      FROM waited
     CROSS JOIN job AS next ON next.rowid = coalesce(
           (SELECT job.rowid FROM job
             WHERE job.state = 'limited' AND job.tenant = waited.tenant AND job.waits_for > waited.key
             ORDER BY job.waits_for LIMIT 1),
           (SELECT job.rowid FROM job
             WHERE job.state = 'limited' AND job.tenant > waited.tenant
             ORDER BY job.tenant, job.waits_for LIMIT 1))
)
SELECT json_group_array(json_array(tenant, key)) FROM waited
