-- name: living_workers
SELECT * FROM tidewheel.worker WHERE alive AND lease_until > tidewheel.now() ORDER BY id DESC

-- name: limits_of
SELECT key, (extract(epoch FROM tidewheel.now()) * 1000000)::bigint AS now, most, running, starts, seconds, burst, tokens,
       filled_at, look_at
  FROM tidewheel.limit_key
 WHERE tenant = (SELECT id FROM tidewheel.tenant WHERE name = $1) AND key = ANY ($2::text[])
 ORDER BY key

-- name: holders
-- Some of the runs under a key; by their workers, which are few.
SELECT run.id
  FROM tidewheel.worker
 CROSS JOIN LATERAL (
       SELECT job.id
         FROM tidewheel.job
        WHERE job.state = 'running' AND job.worker = worker.id AND job.limit_keys @> ARRAY[$2::text]
          AND job.tenant = (SELECT id FROM tidewheel.tenant WHERE name = $1)
        LIMIT $3
       ) AS run
 WHERE worker.alive
 LIMIT $3

-- name: open_parents
SELECT parent FROM tidewheel.dependency WHERE child = $1 AND NOT done ORDER BY parent LIMIT $2

-- name: lanes_beside
-- The lanes of a queue that jobs may start from.
SELECT lane.id, lane.kind, lane.needs, tenant.name, lane.retried
  FROM tidewheel.lane
  JOIN tidewheel.tenant ON tenant.id = lane.tenant
 WHERE lane.queue = $1 AND lane.gate IN ('open', 'slow')

-- name: is_retry
SELECT lane.retried FROM tidewheel.job JOIN tidewheel.lane ON lane.id = job.lane WHERE job.id = $1

-- name: ahead
-- How many jobs of some lanes come before a place, which is given for each priority; no more than so many are counted.
SELECT count(*)
  FROM (
       SELECT 1
         FROM unnest($1::integer[]) AS named (lane)
        CROSS JOIN unnest($2::smallint[], $3::timestamptz[], $4::uuid[]) AS level (priority, run_at, id)
        CROSS JOIN LATERAL (
              SELECT 1
                FROM tidewheel.job
               WHERE job.state = 'queued' AND job.lane = named.lane AND job.priority = level.priority
                 AND (job.run_at, job.id) < (level.run_at, level.id)
               ORDER BY job.run_at, job.id
               LIMIT $5
              ) AS before
        LIMIT $5
       ) AS counted

-- name: waiters_ahead
SELECT count(*)
  FROM (
       SELECT 1
         FROM tidewheel.job
        WHERE job.state = 'limited' AND job.tenant = (SELECT id FROM tidewheel.tenant WHERE name = $1)
          AND job.waits_for = $2 AND (job.priority, job.run_at, job.id) < ($3::smallint, $4::timestamptz, $5::uuid)
        ORDER BY job.priority, job.run_at, job.id
        LIMIT $6
       ) AS before

-- name: finish_rate
-- How many jobs of some lanes end in a second, as far as it was measured of late.
SELECT sum(per_second)
  FROM tidewheel.finish_rate
 WHERE lane = ANY ($1::integer[]) AND taken_at > tidewheel.now() - $2::interval
