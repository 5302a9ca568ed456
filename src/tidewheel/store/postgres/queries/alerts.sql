-- name: queue_facts
-- By the first jobs of the lanes that are open, which the index of due jobs has, and by the first who wait for each limit:
-- of several queues that wait for the same one, those that are among its first few.
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
            LIMIT 1) AS next
), head AS (
    SELECT lane.queue, first.run_at
      FROM tidewheel.lane
     CROSS JOIN generate_series(0, 2) AS level
     CROSS JOIN LATERAL (
           SELECT job.run_at FROM tidewheel.job
            WHERE job.state = 'queued' AND job.lane = lane.id AND job.priority = level
            ORDER BY job.run_at
            LIMIT 1) AS first
     WHERE lane.gate = 'open'
    UNION ALL
    SELECT lane.queue, first.run_at
      FROM waited
     CROSS JOIN generate_series(0, 2) AS level
     CROSS JOIN LATERAL (
           SELECT job.run_at, job.lane FROM tidewheel.job
            WHERE job.state = 'limited' AND job.tenant = waited.tenant AND job.waits_for = waited.key
              AND job.priority = level
            ORDER BY job.run_at
            LIMIT 20) AS first
      JOIN tidewheel.lane ON lane.id = first.lane
     WHERE lane.gate = 'open'
)
SELECT head.queue, tidewheel.now() - min(head.run_at),
       (SELECT count(*) FROM tidewheel.worker
         WHERE alive AND lease_until > tidewheel.now() AND head.queue = ANY (worker.queues))
  FROM head
 WHERE head.run_at <= tidewheel.now()
 GROUP BY head.queue
 ORDER BY head.queue COLLATE "C"

-- name: lane_facts
-- By what the jobs need, of those that wait for a worker.
SELECT tenant.name, lane.queue, lane.kind, lane.needs, tidewheel.now() - min(head.run_at)
  FROM tidewheel.lane
  JOIN tidewheel.tenant ON tenant.id = lane.tenant
 CROSS JOIN generate_series(0, 2) AS level
 CROSS JOIN LATERAL (
       SELECT job.run_at FROM tidewheel.job
        WHERE job.state = 'queued' AND job.lane = lane.id AND job.priority = level
        ORDER BY job.run_at
        LIMIT 1) AS head
 WHERE lane.gate = 'open' AND head.run_at <= tidewheel.now()
 GROUP BY tenant.name, lane.queue, lane.kind, lane.needs
 ORDER BY tenant.name COLLATE "C", lane.queue COLLATE "C", lane.kind COLLATE "C"

-- name: kind_facts
SELECT tenant.name, lane.kind, sum(jobs)::bigint, sum(jobs) FILTER (WHERE state = 'dead')::bigint
  FROM tidewheel.statistic
  JOIN tidewheel.lane ON lane.id = statistic.lane
  JOIN tidewheel.tenant ON tenant.id = lane.tenant
 WHERE NOT hour AND at >= tidewheel.now() - $1::interval AND state IN ('succeeded', 'dead')
 GROUP BY tenant.name, lane.kind
HAVING sum(jobs) FILTER (WHERE state = 'dead') > 0
 ORDER BY tenant.name COLLATE "C", lane.kind COLLATE "C"

-- name: schedule_facts
-- Of the jobs that are first in line. One that has been out before, and came back or was sent round again, waits since then.
SELECT tenant.name, schedule.name, tidewheel.now() - waiting.since, CASE WHEN last.outcome = 'missed' THEN last.fire_at END,
       CASE WHEN schedule.next_fire_at <= tidewheel.now() THEN tidewheel.now() - schedule.next_fire_at END
  FROM tidewheel.schedule
  JOIN tidewheel.tenant ON tenant.id = schedule.tenant
  LEFT JOIN LATERAL (
       SELECT min(since) AS since
         FROM (SELECT CASE WHEN job.token = 0 THEN job.due_at ELSE greatest(job.due_at, job.run_at) END AS since
                 FROM tidewheel.job
                WHERE job.schedule_id = schedule.id AND job.due_at <= tidewheel.now() AND job.state || '' <> 'running'
                  AND job.failures = 0 AND job.losses = 0
                ORDER BY job.due_at
                LIMIT 20) AS first
        WHERE since <= tidewheel.now()) AS waiting ON true
  LEFT JOIN LATERAL (
       SELECT outcome, fire_at FROM tidewheel.occurrence
        WHERE occurrence.schedule_id = schedule.id AND fire_at <= tidewheel.now()
        ORDER BY fire_at DESC
        LIMIT 1) AS last ON true
 WHERE NOT schedule.paused
   AND (waiting.since IS NOT NULL OR last.outcome = 'missed' OR schedule.next_fire_at <= tidewheel.now())
 ORDER BY tenant.name COLLATE "C", schedule.name COLLATE "C"

-- name: snapshot_facts
-- Those held longest, by the machine's own time, in which connections live. Who writes holds them as much as who reads, and
-- so does what outlives its connection. Since when a slot is unused is known from PostgreSQL 17 on, hence by its name.
SELECT holder, held
  FROM (SELECT 'pid ' || pid AS holder, statement_timestamp() - xact_start AS held
          FROM pg_stat_activity
         WHERE datname = current_database() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
           AND pid <> pg_backend_pid()
        UNION ALL
        SELECT 'prepared ' || gid, statement_timestamp() - prepared
          FROM pg_prepared_xacts
         WHERE database = current_database()
        UNION ALL
        SELECT 'slot ' || slot_name, statement_timestamp() - (to_jsonb(slot) ->> 'inactive_since')::timestamptz
          FROM pg_replication_slots AS slot
         WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL)) AS holders
 WHERE held > interval '0'
 ORDER BY held DESC
 LIMIT 20

-- name: sight
-- The version, and whether others' connections and replicas are seen.
SELECT current_setting('server_version_num')::integer / 10000, pg_has_role('pg_monitor', 'USAGE')

-- name: table_facts
-- Few rows of a small table are dead for a moment, which is nobody's worry.
SELECT relname, n_live_tup, n_dead_tup
  FROM pg_stat_user_tables
 WHERE schemaname = 'tidewheel' AND n_dead_tup >= $1
 ORDER BY n_dead_tup DESC

-- name: replica_facts
-- Of replicas that this user may see: for those of others it must be a member of pg_monitor. What nobody fetches any more is
-- kept for a slot until the disk is full.
SELECT coalesce(nullif(application_name, ''), 'pid ' || pid),
       greatest(0, pg_wal_lsn_diff(
           CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, replay_lsn))::bigint,
       replay_lag
  FROM pg_stat_replication
 WHERE replay_lsn IS NOT NULL
UNION ALL
SELECT 'slot ' || slot_name,
       greatest(0, pg_wal_lsn_diff(
           CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn))::bigint,
       NULL
  FROM pg_replication_slots
 WHERE NOT active AND restart_lsn IS NOT NULL
 ORDER BY 1

-- name: database_size
SELECT current_database()::text, pg_database_size(current_database())

-- name: data_place
-- Where the data are, if this user may know it, and the process that answers, by which one knows whether that is here.
SELECT CASE WHEN pg_has_role('pg_read_all_settings', 'USAGE') THEN current_setting('data_directory') END, pg_backend_pid()

-- name: clock_facts
SELECT name, clock_ahead
  FROM tidewheel.worker
 WHERE alive AND lease_until > tidewheel.now() AND abs(extract(epoch FROM clock_ahead)) >= 1
 ORDER BY abs(extract(epoch FROM clock_ahead))

-- name: firing
-- Locked, so that of two who note the same the second sees what the first did.
SELECT firing FROM tidewheel.alert WHERE firing IS NOT NULL ORDER BY firing FOR UPDATE

-- name: fire
INSERT INTO tidewheel.alert (id, firing, rule, subject, tenant, told, since)
VALUES ($1, $2, $3, $4, $5, $6, tidewheel.now())
    ON CONFLICT (firing) DO NOTHING
RETURNING id

-- name: resolve
UPDATE tidewheel.alert SET firing = NULL, resolved_at = tidewheel.now() WHERE firing = $1
RETURNING id, rule, subject, told, tenant

-- name: tell_alert
INSERT INTO tidewheel.outbox (at, event, tenant, detail)
SELECT tidewheel.now(), $1::text, $2::text, $3::json
 WHERE EXISTS (SELECT FROM tidewheel.subscription WHERE $1::text = ANY (outcomes))

-- name: alerts
SELECT id, rule, subject, tenant, told, CASE WHEN firing IS NULL THEN 'resolved' ELSE 'firing' END, since, resolved_at,
       acknowledged_by, acknowledged_at
  FROM tidewheel.alert
 WHERE ($1::text IS NULL OR tenant = $1)
   AND ($2::text IS NULL OR $2 = CASE WHEN firing IS NULL THEN 'resolved' ELSE 'firing' END)
 ORDER BY id DESC
 LIMIT $3

-- name: acknowledge
UPDATE tidewheel.alert
   SET acknowledged_by = coalesce(acknowledged_by, $2), acknowledged_at = coalesce(acknowledged_at, tidewheel.now())
 WHERE id = $1 AND ($3::text IS NULL OR tenant = $3)
RETURNING id, rule, subject, tenant, told, CASE WHEN firing IS NULL THEN 'resolved' ELSE 'firing' END, since, resolved_at,
       acknowledged_by, acknowledged_at

-- name: add_window
INSERT INTO tidewheel.maintenance (id, begins, ends, rules, reason, author)
VALUES ($1, $2, $3, $4, $5, $6)
RETURNING id, begins, ends, rules, reason, author

-- name: windows
SELECT id, begins, ends, rules, reason, author FROM tidewheel.maintenance WHERE ends > tidewheel.now() ORDER BY begins, id

-- name: remove_window
DELETE FROM tidewheel.maintenance WHERE id = $1 RETURNING id

-- name: retire_alerts
WITH gone AS (
    DELETE FROM tidewheel.alert
     WHERE id = ANY (ARRAY(SELECT id FROM tidewheel.alert WHERE resolved_at < tidewheel.now() - $1::interval LIMIT $2))
       AND resolved_at < tidewheel.now() - $1::interval
    RETURNING 1
)
SELECT count(*) FROM gone

-- name: retire_windows
DELETE FROM tidewheel.maintenance WHERE ends < tidewheel.now() - $1::interval
