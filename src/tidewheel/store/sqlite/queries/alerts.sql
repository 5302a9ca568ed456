-- name: queue_facts
-- By the first jobs of the lanes that are open, which the index of due jobs has, and by the first who wait for each limit:
-- of several queues that wait for the same one, those that are among its first few.
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
), head (queue, run_at) AS (
    SELECT lane.queue,
           (SELECT job.run_at FROM job
             WHERE job.state = 'queued' AND job.lane = lane.id AND job.priority = level.value
             ORDER BY job.run_at
             LIMIT 1)
      FROM lane
     CROSS JOIN json_each('[0,1,2]') AS level
     WHERE lane.gate = 'open'
    UNION ALL
    SELECT lane.queue, job.run_at
      FROM waited
     CROSS JOIN json_each('[0,1,2]') AS level
     CROSS JOIN job ON job.rowid IN (
           SELECT first.rowid FROM job AS first
            WHERE first.state = 'limited' AND first.tenant = waited.tenant AND first.waits_for = waited.key
              AND first.priority = level.value
            ORDER BY first.run_at
            LIMIT 20)
     CROSS JOIN lane ON lane.id = job.lane
     WHERE lane.gate = 'open'
)
SELECT queue, :now - min(run_at),
       (SELECT count(*) FROM worker
         WHERE alive AND lease_until > :now AND EXISTS (SELECT 1 FROM json_each(queues) WHERE value = head.queue))
  FROM head
 WHERE run_at <= :now
 GROUP BY queue
 ORDER BY queue

-- name: lane_facts
-- By what the jobs need, of those that wait for a worker.
SELECT tenant, queue, kind, needs, :now - min(head)
  FROM (SELECT tenant.name AS tenant, lane.queue, lane.kind, lane.needs,
               (SELECT job.run_at FROM job
                 WHERE job.state = 'queued' AND job.lane = lane.id AND job.priority = level.value
                 ORDER BY job.run_at
                 LIMIT 1) AS head
          FROM lane
         CROSS JOIN tenant ON tenant.id = lane.tenant
         CROSS JOIN json_each('[0,1,2]') AS level
         WHERE lane.gate = 'open')
 WHERE head <= :now
 GROUP BY tenant, queue, kind, needs
 ORDER BY tenant, queue, kind

-- name: kind_facts
SELECT tenant.name, lane.kind, sum(jobs), sum(jobs) FILTER (WHERE state = 'dead') AS dead
  FROM statistic
 CROSS JOIN lane ON lane.id = statistic.lane
 CROSS JOIN tenant ON tenant.id = lane.tenant
 WHERE hour = 0 AND at >= :since AND state IN ('succeeded', 'dead')
 GROUP BY tenant.name, lane.kind
HAVING dead > 0
 ORDER BY tenant.name, lane.kind

-- name: schedule_facts
-- Of the jobs that are first in line. One that has been out before, and came back or was sent round again, waits since then.
SELECT tenant, name, :now - since, missed, iif(next_fire_at <= :now, :now - next_fire_at, NULL)
  FROM (SELECT tenant.name AS tenant, schedule.name, schedule.next_fire_at,
               (SELECT min(since)
                  FROM (SELECT iif(job.token = 0, job.due_at, max(job.due_at, job.run_at)) AS since
                          FROM job
                         WHERE job.schedule_id = schedule.id AND job.due_at <= :now AND +job.state <> 'running'
                           AND job.failures = 0 AND job.losses = 0
                         ORDER BY job.due_at
                         LIMIT 20)
                 WHERE since <= :now) AS since,
               (SELECT CASE outcome WHEN 'missed' THEN fire_at END
                  FROM occurrence
                 WHERE schedule_id = schedule.id AND fire_at <= :now
                 ORDER BY fire_at DESC
                 LIMIT 1) AS missed
          FROM schedule
         CROSS JOIN tenant ON tenant.id = schedule.tenant
         WHERE NOT schedule.paused)
 WHERE since IS NOT NULL OR missed IS NOT NULL OR next_fire_at <= :now
 ORDER BY tenant, name

-- name: clock_facts
SELECT name, clock_ahead
  FROM worker
 WHERE alive AND lease_until > :now AND abs(clock_ahead) >= 1000000
 ORDER BY abs(clock_ahead)

-- name: database_size
SELECT page_count * page_size FROM pragma_page_count, pragma_page_size

-- name: firing
SELECT firing FROM alert WHERE firing IS NOT NULL

-- name: fire
INSERT INTO alert (id, firing, rule, subject, tenant, told, since)
VALUES (:id, :key, :rule, :subject, :tenant, :told, :now)
    ON CONFLICT (firing) DO NOTHING
RETURNING id

-- name: resolve
UPDATE alert SET firing = NULL, resolved_at = :now WHERE firing = :key
RETURNING id, rule, subject, told, tenant

-- name: tell_alert
INSERT INTO outbox (at, event, tenant, detail)
SELECT :now, :event, :tenant, :detail
 WHERE EXISTS (
       SELECT 1 FROM subscription CROSS JOIN json_each(outcomes) AS outcome WHERE outcome.value = :event)

-- name: alerts
SELECT id, rule, subject, tenant, told, iif(firing IS NULL, 'resolved', 'firing') AS state, since, resolved_at,
       acknowledged_by, acknowledged_at
  FROM alert
 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:state IS NULL OR state = :state)
 ORDER BY id DESC
 LIMIT :limit

-- name: acknowledge
UPDATE alert
   SET acknowledged_by = coalesce(acknowledged_by, :by), acknowledged_at = coalesce(acknowledged_at, :now)
 WHERE id = :id AND (:tenant IS NULL OR tenant = :tenant)
RETURNING id, rule, subject, tenant, told, iif(firing IS NULL, 'resolved', 'firing'), since, resolved_at, acknowledged_by,
       acknowledged_at

-- name: add_window
INSERT INTO maintenance (id, begins, ends, rules, reason, author)
VALUES (:id, :begins, :ends, :rules, :reason, :author)
RETURNING id, begins, ends, rules, reason, author

-- name: windows
SELECT id, begins, ends, rules, reason, author FROM maintenance WHERE ends > :now ORDER BY begins, id

-- name: remove_window
DELETE FROM maintenance WHERE id = :id RETURNING id

-- name: retire_alerts
DELETE FROM alert WHERE id IN (SELECT id FROM alert WHERE resolved_at < :until LIMIT :limit)

-- name: retire_windows
DELETE FROM maintenance WHERE ends < :until
