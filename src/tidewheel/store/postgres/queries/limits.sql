-- name: lock_limits
-- Locks the limits of some keys in the order of their names and tells how much room each has.
SELECT limit_key.tenant, limit_key.key, limit_key.most - limit_key.running AS room
  FROM tidewheel.limit_key
  JOIN unnest($1::integer[], $2::text[]) AS named (tenant, key)
    ON named.tenant = limit_key.tenant AND named.key = limit_key.key
 ORDER BY limit_key.tenant, limit_key.key
   FOR UPDATE OF limit_key

-- name: add_running
UPDATE tidewheel.limit_key
   SET running = greatest(0, limit_key.running + change.n)
  FROM unnest($1::integer[], $2::text[], $3::integer[]) AS change (tenant, key, n)
 WHERE limit_key.tenant = change.tenant AND limit_key.key = change.key

-- name: make_limited
UPDATE tidewheel.job
   SET state = 'limited', waits_for = refused.key, updated_at = tidewheel.now()
  FROM unnest($1::uuid[], $2::text[]) AS refused (id, key)
 WHERE job.id = refused.id AND job.state || '' = 'queued'

-- name: release_waiters
-- Puts as many waiters of each key back into the queue as it has room for, in the order of their priority. Runs in a
-- statement of its own after the limits were locked, so that it sees whoever began to wait before that.
WITH waiters AS MATERIALIZED (
    SELECT waiter.at
      FROM unnest($1::integer[], $2::text[]) AS named (tenant, key)
      LEFT JOIN tidewheel.limit_key ON limit_key.tenant = named.tenant AND limit_key.key = named.key
     CROSS JOIN LATERAL (
           SELECT job.ctid AS at
             FROM tidewheel.job
            WHERE job.state = 'limited' AND job.tenant = named.tenant AND job.waits_for = named.key
            ORDER BY job.priority, job.run_at, job.id
            -- Without a limit any more, all may go.
            LIMIT greatest(0, coalesce(limit_key.most - limit_key.running, 1000000))
              FOR UPDATE SKIP LOCKED
           ) AS waiter
)
UPDATE tidewheel.job
   SET state = 'queued', waits_for = NULL, run_at = tidewheel.now(), updated_at = tidewheel.now()
 WHERE job.ctid = ANY (ARRAY(SELECT at FROM waiters)) AND job.state || '' = 'limited'
RETURNING job.id

-- name: set_limit
INSERT INTO tidewheel.limit_key (tenant, key, most) VALUES ($1, $2, $3)
ON CONFLICT (tenant, key) DO UPDATE SET most = excluded.most

-- name: recount_limits
-- Recounts from the runs themselves, under the locks of all limits.
UPDATE tidewheel.limit_key
   SET running = true_count.running
  FROM (
       SELECT limit_key.tenant, limit_key.key, count(used.key)::integer AS running
         FROM tidewheel.limit_key
         LEFT JOIN (
              SELECT job.tenant, unnest(job.limit_keys) AS key
                FROM tidewheel.job
               WHERE job.state = 'running' AND job.limit_keys IS NOT NULL
              ) AS used ON used.tenant = limit_key.tenant AND used.key = limit_key.key
        WHERE limit_key.tenant = ANY ($1::integer[])
        GROUP BY limit_key.tenant, limit_key.key
       ) AS true_count
 WHERE limit_key.tenant = true_count.tenant AND limit_key.key = true_count.key
   AND limit_key.running <> true_count.running
   AND ($2::text IS NULL OR limit_key.key = $2)
RETURNING limit_key.tenant, limit_key.key

-- name: lock_all_limits
SELECT tenant, key FROM tidewheel.limit_key ORDER BY tenant, key FOR UPDATE

-- name: keys_waited_for
-- Steps from key to key, however many wait for each.
WITH RECURSIVE waited AS (
    (SELECT tenant, waits_for AS key FROM tidewheel.job WHERE state = 'limited' ORDER BY tenant, waits_for LIMIT 1)
    UNION ALL
    SELECT next.tenant, next.key
      FROM waited
     CROSS JOIN LATERAL (
           SELECT job.tenant, job.waits_for AS key
             FROM tidewheel.job
            WHERE job.state = 'limited' AND (job.tenant, job.waits_for) > (waited.tenant, waited.key)
            ORDER BY job.tenant, job.waits_for
            LIMIT 1
           ) AS next
)
SELECT tenant, key FROM waited

-- name: remove_limit
DELETE FROM tidewheel.limit_key WHERE tenant = $1 AND key = $2 RETURNING key

-- name: limits
SELECT tenant.name AS tenant, limit_key.key, limit_key.most, limit_key.running
  FROM tidewheel.limit_key
  JOIN tidewheel.tenant ON tenant.id = limit_key.tenant
 WHERE $1::text IS NULL OR tenant.name = $1
 ORDER BY tenant.name, limit_key.key
