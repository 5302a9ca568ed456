-- name: get
SELECT * FROM active_job WHERE id = :id AND (:tenant IS NULL OR tenant = :tenant)
UNION ALL
SELECT * FROM finished_job WHERE id = :id AND (:tenant IS NULL OR tenant = :tenant)

-- name: attempts
-- The last attempt stands in history, if the end of the job was the end of a run.
SELECT * FROM (
       SELECT job_id, token, worker, started_at, ended_at, cause, error, usage
         FROM attempt
        WHERE job_id = :id AND token < :before
       UNION ALL
       SELECT id, token, worker, started_at, ended_at, cause, error, usage
         FROM job_history
        WHERE id = :id AND ran AND token < :before
        ORDER BY token DESC
        LIMIT :limit
       )
 ORDER BY token

-- name: tenant_of
SELECT tenant.id FROM tenant WHERE name = :tenant

-- name: has_lane
-- Whether there ever was a job of such a tenant, kind and queue.
SELECT EXISTS (
       SELECT 1 FROM lane
        WHERE (:tenant IS NULL OR tenant = :tenant) AND (:kind IS NULL OR kind = :kind) AND (:queue IS NULL OR queue = :queue))

-- name: edge
-- The id down to which `:scan` jobs lie after `:after`, or NULL if there are fewer: how far one page looks.
SELECT id FROM (
       SELECT id FROM (SELECT id FROM job WHERE :active AND id < :after AND id >= :floor ORDER BY id DESC LIMIT :scan)
       UNION ALL
       SELECT id FROM (SELECT id FROM job_history WHERE :finished AND id < :after AND id >= :floor ORDER BY id DESC LIMIT :scan)
       )
 ORDER BY id DESC
 LIMIT 1 OFFSET :scan - 1

-- name: edge_of_tenant
SELECT id FROM (
       SELECT id FROM (SELECT id FROM job WHERE :active AND tenant = :tenant AND id < :after AND id >= :floor ORDER BY id DESC LIMIT :scan)
       UNION ALL
       SELECT id FROM (SELECT id FROM job_history WHERE :finished AND tenant = :tenant AND id < :after AND id >= :floor ORDER BY id DESC LIMIT :scan)
       )
 ORDER BY id DESC
 LIMIT 1 OFFSET :scan - 1

-- name: find
-- Both tables in one statement, so that no job is missed or doubled while it moves from one to the other; a table of which
-- no state is wanted is left out.
SELECT * FROM (
       SELECT * FROM active_job
        WHERE :active AND id < :after AND id >= :floor
          AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
          AND (:kind IS NULL OR kind = :kind) AND (:queue IS NULL OR queue = :queue)
          AND (:schedule IS NULL OR schedule_id = :schedule)
          AND (:label IS NULL OR labels ->> :label = :text)
          AND (:words IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(:words) AS word WHERE instr(words, word.value) = 0))
          AND (:since IS NULL OR created_at >= :since) AND (:before IS NULL OR created_at < :before)
        ORDER BY id DESC
        LIMIT :limit)
UNION ALL
SELECT * FROM (
       SELECT * FROM finished_job
        WHERE :finished AND id < :after AND id >= :floor
          AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
          AND (:kind IS NULL OR kind = :kind) AND (:queue IS NULL OR queue = :queue)
          AND (:schedule IS NULL OR schedule_id = :schedule)
          AND (:label IS NULL OR labels ->> :label = :text)
          AND (:words IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(:words) AS word WHERE instr(words, word.value) = 0))
          AND (:since IS NULL OR created_at >= :since) AND (:before IS NULL OR created_at < :before)
        ORDER BY id DESC
        LIMIT :limit)
 ORDER BY id DESC
 LIMIT :limit

-- name: find_of_tenant
SELECT * FROM (
       SELECT * FROM active_job
        WHERE :active AND tenant_id = :tenant AND id < :after AND id >= :floor
          AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
          AND (:kind IS NULL OR kind = :kind) AND (:queue IS NULL OR queue = :queue)
          AND (:schedule IS NULL OR schedule_id = :schedule)
          AND (:label IS NULL OR labels ->> :label = :text)
          AND (:words IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(:words) AS word WHERE instr(words, word.value) = 0))
          AND (:since IS NULL OR created_at >= :since) AND (:before IS NULL OR created_at < :before)
        ORDER BY id DESC
        LIMIT :limit)
UNION ALL
SELECT * FROM (
       SELECT * FROM finished_job
        WHERE :finished AND tenant_id = :tenant AND id < :after AND id >= :floor
          AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
          AND (:kind IS NULL OR kind = :kind) AND (:queue IS NULL OR queue = :queue)
          AND (:schedule IS NULL OR schedule_id = :schedule)
          AND (:label IS NULL OR labels ->> :label = :text)
          AND (:words IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(:words) AS word WHERE instr(words, word.value) = 0))
          AND (:since IS NULL OR created_at >= :since) AND (:before IS NULL OR created_at < :before)
        ORDER BY id DESC
        LIMIT :limit)
 ORDER BY id DESC
 LIMIT :limit

-- name: find_running
-- What runs is no more than the workers can do at once, and has an index of its own; + keeps the planner off the others.
SELECT * FROM active_job
 WHERE state = 'running' AND +id < :after AND +id >= :floor AND (:tenant IS NULL OR +tenant_id = :tenant)
   AND (:kind IS NULL OR kind = :kind) AND (:queue IS NULL OR queue = :queue)
   AND (:schedule IS NULL OR schedule_id = :schedule)
   AND (:label IS NULL OR labels ->> :label = :text)
   AND (:words IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(:words) AS word WHERE instr(words, word.value) = 0))
   AND (:since IS NULL OR created_at >= :since) AND (:before IS NULL OR created_at < :before)
 ORDER BY +id DESC
 LIMIT :limit

-- name: edge_few
-- The id down to which `:scan` jobs of one of these states lie after `:after`, or NULL if there are fewer.
SELECT id FROM job_history
 WHERE state = :state AND state <> 'succeeded' AND id < :after AND id >= :floor
 ORDER BY id DESC
 LIMIT 1 OFFSET :scan - 1

-- name: find_few
-- For one state of those that are few: its index leads straight to them, however many succeeded in between.
SELECT * FROM finished_job
 WHERE state = :state AND state <> 'succeeded' AND (:tenant IS NULL OR tenant_id = :tenant) AND id < :after AND id >= :floor
   AND (:kind IS NULL OR kind = :kind) AND (:queue IS NULL OR queue = :queue)
   AND (:schedule IS NULL OR schedule_id = :schedule)
   AND (:label IS NULL OR labels ->> :label = :text)
   AND (:error IS NULL OR instr(error ->> 'message', :error) > 0)
   AND (:words IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(:words) AS word WHERE instr(words, word.value) = 0))
   AND (:since IS NULL OR created_at >= :since) AND (:before IS NULL OR created_at < :before)
 ORDER BY id DESC
 LIMIT :limit

-- name: fresh_counts
-- The active jobs, of which no more than so many are looked at.
SELECT lane, state, priority, count(*) FROM (SELECT lane, state, priority FROM job ORDER BY id LIMIT :most) GROUP BY 1, 2, 3

-- name: fresh_counts_of_tenant
SELECT lane, state, priority, count(*)
  FROM (SELECT lane, state, priority FROM job WHERE tenant = (SELECT id FROM tenant WHERE name = :tenant) LIMIT :most)
 GROUP BY 1, 2, 3

-- name: counts
-- The active jobs as of the census, unless they were counted anew.
SELECT tenant.name, lane.queue, lane.kind, counted.state, counted.priority, sum(counted.jobs)
  FROM (
       SELECT lane, state, priority, jobs FROM census WHERE :fresh IS NULL
       UNION ALL
       SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(:fresh)
       UNION ALL
       SELECT lane, state, NULL, jobs FROM rollup
       ) AS counted
  JOIN lane ON lane.id = counted.lane
  JOIN tenant ON tenant.id = lane.tenant
 WHERE :tenant IS NULL OR tenant.name = :tenant
 GROUP BY 1, 2, 3, 4, 5
HAVING sum(counted.jobs) > 0
 ORDER BY 1, 2, 3, 4, 5
