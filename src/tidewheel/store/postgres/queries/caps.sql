-- name: set_cap
INSERT INTO tidewheel.queue_cap (tenant, queue, most, overflow) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant, queue) DO UPDATE SET most = excluded.most, overflow = excluded.overflow

-- name: remove_cap
DELETE FROM tidewheel.queue_cap WHERE tenant = $1 AND queue = $2 RETURNING queue

-- name: caps
SELECT tenant.name, cap.queue, cap.most, cap.overflow
  FROM tidewheel.queue_cap AS cap
  JOIN tidewheel.tenant ON tenant.id = cap.tenant
 WHERE $1::text IS NULL OR tenant.name = $1
 ORDER BY tenant.name, cap.queue

-- name: lock_caps
-- The caps that hold for some lanes. Under their locks nobody else brings jobs into these queues.
SELECT tenant.name, cap.queue, cap.most, cap.overflow, cap.tenant
  FROM tidewheel.queue_cap AS cap
  JOIN tidewheel.tenant ON tenant.id = cap.tenant
 WHERE (cap.tenant, cap.queue) IN (SELECT lane.tenant, lane.queue FROM tidewheel.lane WHERE lane.id = ANY ($1::integer[]))
 ORDER BY cap.tenant, cap.queue
   FOR UPDATE OF cap

-- name: count_waiting
-- How many jobs of a queue wait, counted up to a bound.
SELECT count(*)
  FROM (
       SELECT
         FROM tidewheel.lane
        CROSS JOIN LATERAL (
              SELECT FROM tidewheel.job WHERE job.state = 'queued' AND job.lane = lane.id
               UNION ALL
              SELECT FROM tidewheel.job
               WHERE job.state = 'blocked' AND job.on_parent_failure IS NOT NULL AND job.lane = lane.id
               UNION ALL
              SELECT FROM tidewheel.job
               WHERE lane.keyed AND job.state = 'limited' AND job.tenant = lane.tenant AND job.lane = lane.id
              ) AS waiting
        WHERE lane.tenant = $1 AND lane.queue = $2
        LIMIT $3
       ) AS waiting

-- name: first_in_line
-- Those of a queue that are due for the longest time.
SELECT waiting.id
  FROM tidewheel.lane
 CROSS JOIN LATERAL (
       SELECT head.id, head.run_at
         FROM (VALUES (0::smallint), (1::smallint), (2::smallint)) AS level (priority)
        CROSS JOIN LATERAL (
              SELECT job.id, job.run_at
                FROM tidewheel.job
               WHERE job.state = 'queued' AND job.lane = lane.id AND job.priority = level.priority
               ORDER BY job.run_at, job.id
               LIMIT $3
              ) AS head
        UNION ALL
       SELECT job.id, job.run_at FROM tidewheel.job
        WHERE job.state = 'blocked' AND job.on_parent_failure IS NOT NULL AND job.lane = lane.id
        UNION ALL
       SELECT job.id, job.run_at FROM tidewheel.job
        WHERE lane.keyed AND job.state = 'limited' AND job.tenant = lane.tenant AND job.lane = lane.id
       ) AS waiting
 WHERE lane.tenant = $1 AND lane.queue = $2
 ORDER BY waiting.run_at, waiting.id
 LIMIT $3

-- name: last_in_line
-- Those of a queue that are due last.
SELECT waiting.id
  FROM tidewheel.lane
 CROSS JOIN LATERAL (
       SELECT head.id, head.run_at
         FROM (VALUES (0::smallint), (1::smallint), (2::smallint)) AS level (priority)
        CROSS JOIN LATERAL (
              SELECT job.id, job.run_at
                FROM tidewheel.job
               WHERE job.state = 'queued' AND job.lane = lane.id AND job.priority = level.priority
               ORDER BY job.run_at DESC, job.id DESC
               LIMIT $3
              ) AS head
        UNION ALL
       SELECT job.id, job.run_at FROM tidewheel.job
        WHERE job.state = 'blocked' AND job.on_parent_failure IS NOT NULL AND job.lane = lane.id
        UNION ALL
       SELECT job.id, job.run_at FROM tidewheel.job
        WHERE lane.keyed AND job.state = 'limited' AND job.tenant = lane.tenant AND job.lane = lane.id
       ) AS waiting
 WHERE lane.tenant = $1 AND lane.queue = $2
 ORDER BY waiting.run_at DESC, waiting.id DESC
 LIMIT $3

-- name: cap_rules_of
-- The caps on what waits with some keys.
SELECT DISTINCT tenant.name, asked.key, rule.waiting, rule.overflow, asked.tenant
  FROM unnest($1::integer[], $2::text[]) AS asked (tenant, key)
  JOIN tidewheel.limit_rule AS rule ON rule.name = split_part(asked.key, '=', 1)
  JOIN tidewheel.tenant ON tenant.id = asked.tenant

-- name: lock_cap_keys
-- One submitter at a time for each key with a cap, in one order for all.
SELECT pg_advisory_xact_lock(8436, slot)
  FROM (
       SELECT DISTINCT hashtext(tenant || ':' || key) AS slot
         FROM unnest($1::integer[], $2::text[]) AS asked (tenant, key)
        ORDER BY slot
       ) AS slots

-- name: count_capped
-- How many jobs wait with a key, counted up to a bound.
SELECT count(*)
  FROM (
       SELECT FROM tidewheel.job
        WHERE tenant = $1 AND limit_keys[1] = $2 AND limit_keys[1] LIKE 'cap:%' AND state <> 'running'
        LIMIT $3
       ) AS waiting

-- name: first_capped
-- Those of a key that are due for the longest time.
SELECT id FROM tidewheel.job
 WHERE tenant = $1 AND limit_keys[1] = $2 AND limit_keys[1] LIKE 'cap:%' AND state <> 'running'
 ORDER BY run_at, id
 LIMIT $3

-- name: last_capped
-- Those of a key that are due last.
SELECT id FROM tidewheel.job
 WHERE tenant = $1 AND limit_keys[1] = $2 AND limit_keys[1] LIKE 'cap:%' AND state <> 'running'
 ORDER BY run_at DESC, id DESC
 LIMIT $3

-- name: lock_waiting
-- Those of the named jobs that still wait, in the order of their ids.
SELECT job.id
  FROM unnest($1::uuid[]) AS named (id)
 CROSS JOIN LATERAL (
       SELECT job.id FROM tidewheel.job
        WHERE job.id = named.id AND job.state || '' = ANY ('{queued,limited,blocked}')
        LIMIT 1
          FOR UPDATE
       ) AS job
 ORDER BY job.id
