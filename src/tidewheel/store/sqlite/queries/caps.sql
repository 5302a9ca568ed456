-- name: set_cap
INSERT INTO queue_cap (tenant, queue, most, overflow) VALUES (:tenant, :queue, :most, :overflow)
ON CONFLICT (tenant, queue) DO UPDATE SET most = excluded.most, overflow = excluded.overflow

-- name: remove_cap
DELETE FROM queue_cap WHERE tenant = :tenant AND queue = :queue RETURNING queue

-- name: caps
SELECT tenant.name, queue_cap.queue, queue_cap.most, queue_cap.overflow
  FROM queue_cap
  JOIN tenant ON tenant.id = queue_cap.tenant
 WHERE :tenant IS NULL OR tenant.name = :tenant
 ORDER BY tenant.name, queue_cap.queue

-- name: count_waiting
-- How many jobs of some lanes wait, counted up to a bound.
SELECT count(*)
  FROM (
       SELECT 1 FROM json_each(:lanes) AS named
        CROSS JOIN job ON job.state = 'queued' AND job.lane = named.value
        UNION ALL
       SELECT 1 FROM json_each(:lanes) AS named
        CROSS JOIN job ON job.state = 'blocked' AND job.lane = named.value
        UNION ALL
       SELECT 1 FROM job WHERE :keyed AND state = 'limited' AND tenant = :tenant
          AND lane IN (SELECT value FROM json_each(:lanes))
        LIMIT :bound
       )

-- name: first_in_line
-- Those of some lanes that are due for the longest time.
SELECT json_group_array(json_array(rowid, token, state, lane, priority, json(limit_keys), CASE WHEN awaited THEN hex(id) END))
  FROM (
       SELECT job.rowid, job.*
         FROM job
        WHERE rowid IN (
              SELECT rowid FROM (
                     SELECT job.rowid, job.run_at, job.id FROM json_each(:pairs) AS pair
                      CROSS JOIN job ON job.rowid IN (
                            SELECT head.rowid FROM job AS head
                             WHERE head.state = 'queued' AND head.lane = pair.value >> 2
                               AND head.priority = pair.value & 3
                             ORDER BY head.run_at, head.id
                             LIMIT :number)
                      UNION ALL
                     SELECT job.rowid, job.run_at, job.id FROM json_each(:lanes) AS named
                      CROSS JOIN job ON job.state = 'blocked' AND job.lane = named.value
                      UNION ALL
                     SELECT rowid, run_at, id FROM job WHERE :keyed AND state = 'limited' AND tenant = :tenant
                        AND lane IN (SELECT value FROM json_each(:lanes))
                      ORDER BY 2, 3
                      LIMIT :number))
        ORDER BY run_at, id
       )

-- name: last_in_line
-- Those of some lanes that are due last.
SELECT json_group_array(json_array(rowid, token, state, lane, priority, json(limit_keys), CASE WHEN awaited THEN hex(id) END))
  FROM (
       SELECT job.rowid, job.*
         FROM job
        WHERE rowid IN (
              SELECT rowid FROM (
                     SELECT job.rowid, job.run_at, job.id FROM json_each(:pairs) AS pair
                      CROSS JOIN job ON job.rowid IN (
                            SELECT head.rowid FROM job AS head
                             WHERE head.state = 'queued' AND head.lane = pair.value >> 2
                               AND head.priority = pair.value & 3
                             ORDER BY head.run_at DESC, head.id DESC
                             LIMIT :number)
                      UNION ALL
                     SELECT job.rowid, job.run_at, job.id FROM json_each(:lanes) AS named
                      CROSS JOIN job ON job.state = 'blocked' AND job.lane = named.value
                      UNION ALL
                     SELECT rowid, run_at, id FROM job WHERE :keyed AND state = 'limited' AND tenant = :tenant
                        AND lane IN (SELECT value FROM json_each(:lanes))
                      ORDER BY 2 DESC, 3 DESC
                      LIMIT :number))
        ORDER BY run_at DESC, id DESC
       )

-- name: count_capped
-- How many jobs wait with a key, counted up to a bound.
SELECT count(*)
  FROM (
       SELECT 1 FROM job
        WHERE tenant = :tenant AND limit_keys ->> 0 = :key
          AND limit_keys >= '["cap:' AND limit_keys < '["cap;' AND state <> 'running'
        LIMIT :bound
       )

-- name: first_capped
-- Those of a key that are due for the longest time.
SELECT json_group_array(json_array(rowid, token, state, lane, priority, json(limit_keys), CASE WHEN awaited THEN hex(id) END))
  FROM (
       SELECT rowid, * FROM job
        WHERE tenant = :tenant AND limit_keys ->> 0 = :key
          AND limit_keys >= '["cap:' AND limit_keys < '["cap;' AND state <> 'running'
        ORDER BY run_at, id
        LIMIT :number
       )

-- name: last_capped
-- Those of a key that are due last.
SELECT json_group_array(json_array(rowid, token, state, lane, priority, json(limit_keys), CASE WHEN awaited THEN hex(id) END))
  FROM (
       SELECT rowid, * FROM job
        WHERE tenant = :tenant AND limit_keys ->> 0 = :key
          AND limit_keys >= '["cap:' AND limit_keys < '["cap;' AND state <> 'running'
        ORDER BY run_at DESC, id DESC
        LIMIT :number
       )

-- name: places_of
SELECT json_group_array(rowid) FROM (SELECT rowid FROM job WHERE id IN (SELECT unhex(value) FROM json_each(:jobs)) ORDER BY id)
