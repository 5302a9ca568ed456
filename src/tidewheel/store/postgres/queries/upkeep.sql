-- name: lock_expired
SELECT id FROM tidewheel.job
 WHERE start_by IS NOT NULL AND start_by <= tidewheel.now() AND state <> 'running'
 ORDER BY start_by
 LIMIT $1
   FOR UPDATE SKIP LOCKED

-- name: lock_dropped
(SELECT head.id, lane.id AS lane
  FROM tidewheel.lane
 CROSS JOIN LATERAL (
       SELECT job.id FROM tidewheel.job
        WHERE job.state = 'queued' AND job.lane = lane.id
        ORDER BY job.priority, job.run_at, job.id
        LIMIT $1
          FOR UPDATE SKIP LOCKED
       ) AS head
 WHERE lane.gate = 'drop'
 LIMIT $1)
UNION ALL
(SELECT head.id, lane.id AS lane
  FROM tidewheel.lane
 CROSS JOIN LATERAL (
       SELECT job.id FROM tidewheel.job
        WHERE job.state = 'limited' AND job.tenant = lane.tenant AND job.lane = lane.id
        LIMIT $1
          FOR UPDATE SKIP LOCKED
       ) AS head
 WHERE lane.gate = 'drop' AND lane.keyed
 LIMIT $1)
UNION ALL
(SELECT head.id, lane.id AS lane
  FROM tidewheel.lane
 CROSS JOIN LATERAL (
       SELECT job.id FROM tidewheel.job
        WHERE job.state = 'blocked' AND job.on_parent_failure IS NOT NULL AND job.lane = lane.id
        ORDER BY job.priority, job.id
        LIMIT $1
          FOR UPDATE SKIP LOCKED
       ) AS head
 WHERE lane.gate = 'drop'
 LIMIT $1)

-- name: take_census
-- All in one statement, tally included. In the order of the keys: two who count at once do not wait for one another.
WITH folded AS (
    DELETE FROM tidewheel.tally RETURNING *
), rolled AS (
    INSERT INTO tidewheel.rollup AS kept (day, lane, state, jobs)
    SELECT day, lane, state, sum(jobs) FROM folded GROUP BY day, lane, state ORDER BY day, lane, state
    ON CONFLICT (day, lane, state) DO UPDATE SET jobs = kept.jobs + excluded.jobs
), counted AS MATERIALIZED (
    SELECT lane, state, priority, count(*) AS jobs FROM tidewheel.job GROUP BY lane, state, priority
), noted AS (
    UPDATE tidewheel.meta SET census_at = tidewheel.now()
), cleared AS (
    DELETE FROM tidewheel.census
     WHERE NOT EXISTS (
           SELECT FROM counted
            WHERE counted.lane = census.lane AND counted.state = census.state AND counted.priority = census.priority)
), rated AS (
    -- What has finished is compared with what had at the last census.
    INSERT INTO tidewheel.finish_rate AS old (lane, finished, taken_at)
    SELECT lane, sum(jobs), tidewheel.now()
      FROM (
           SELECT lane, state, jobs FROM tidewheel.rollup
           UNION ALL
           SELECT lane, state, jobs FROM tidewheel.tally
           ) AS finished
     WHERE state IN ('succeeded', 'dead')
     GROUP BY lane
     ORDER BY lane
    ON CONFLICT (lane) DO UPDATE
       SET per_second = CASE WHEN excluded.taken_at > old.taken_at
                             THEN greatest(0, excluded.finished - old.finished)
                                  / extract(epoch FROM excluded.taken_at - old.taken_at)::float8 END,
           finished = excluded.finished, taken_at = excluded.taken_at
     WHERE excluded.taken_at <> old.taken_at
)
INSERT INTO tidewheel.census (lane, state, priority, jobs)
SELECT lane, state, priority, jobs FROM counted ORDER BY lane, state, priority
ON CONFLICT (lane, state, priority) DO UPDATE SET jobs = excluded.jobs

-- name: fold_tally
WITH folded AS (
    DELETE FROM tidewheel.tally RETURNING *
)
INSERT INTO tidewheel.rollup AS kept (day, lane, state, jobs)
SELECT day, lane, state, sum(jobs) FROM folded GROUP BY day, lane, state ORDER BY day, lane, state
ON CONFLICT (day, lane, state) DO UPDATE SET jobs = kept.jobs + excluded.jobs

-- name: prepare_days
SELECT tidewheel.prepare_days((tidewheel.now() AT TIME ZONE 'UTC')::date - 1, $1 + 1)

-- name: old_days
-- Day partitions that end before what is to be kept, with what must be done to take them off.
SELECT parent.relname AS parent, part.relname AS part, inhdetachpending AS pending
  FROM pg_inherits
  JOIN pg_class AS part ON part.oid = inhrelid
  JOIN pg_class AS parent ON parent.oid = inhparent
 WHERE parent.oid = ('tidewheel.' || quote_ident($1))::regclass
   AND part.relname ~ '_[0-9]{8}$'
   AND to_date(right(part.relname, 8), 'YYYYMMDD') + 1 <= ((tidewheel.now() - $2::interval) AT TIME ZONE 'UTC')::date
 ORDER BY part.relname

-- name: loose_days
-- Partitions that were taken off and not yet dropped.
SELECT relname AS part
  FROM pg_class
 WHERE relnamespace = 'tidewheel'::regnamespace AND relkind = 'r' AND NOT relispartition
   AND relname ~ '^(job_history_succeeded|job_history_other|attempt|log|log_segment)_[0-9]{8}$'

-- name: days_to_retire
-- Where there is something that a rule lets go: the numbers of each day tell, so that no day is looked through in vain.
SELECT rollup.day, array_agg(rollup.lane) AS lanes
  FROM tidewheel.rollup
  JOIN tidewheel.lane ON lane.id = rollup.lane
 WHERE rollup.state = $1 AND rollup.jobs > 0 AND rollup.day < ((tidewheel.now() - $2::interval) AT TIME ZONE 'UTC')::date
   AND ($3::text IS NULL OR lane.kind = $3) AND lane.kind <> ALL ($4::text[])
 GROUP BY rollup.day
 ORDER BY rollup.day

-- name: retire_jobs
-- For what is kept for less time than others in the same partitions.
WITH gone AS (
    DELETE FROM tidewheel.job_history
     WHERE state = $1 AND finished_at >= $2::timestamptz AND finished_at < $2::timestamptz + interval '1 day'
       AND lane = ANY ($3::integer[])
       AND id = ANY (ARRAY(
           SELECT id FROM tidewheel.job_history
            WHERE state = $1 AND finished_at >= $2::timestamptz AND finished_at < $2::timestamptz + interval '1 day'
              AND lane = ANY ($3::integer[])
            LIMIT $4))
    RETURNING id, finished_at, lane, state
), uncounted AS (
    INSERT INTO tidewheel.tally (day, lane, state, jobs)
    SELECT (finished_at AT TIME ZONE 'UTC')::date, lane, state, -count(*) FROM gone GROUP BY 1, 2, 3
), forgotten AS (
    DELETE FROM tidewheel.attempt WHERE job_id = ANY (ARRAY(SELECT id FROM gone))
)
SELECT count(*) FROM gone

-- name: next_by_id
-- The next active jobs by their ids, with whether they have waited for too long.
SELECT id, state <> 'running' AND run_at < tidewheel.now() - $3::interval AS old
  FROM tidewheel.job
 WHERE id > $1 AND id < $2
 ORDER BY id
 LIMIT $4

-- name: lock_old
SELECT job.id
  FROM unnest($1::uuid[]) AS named (id)
 CROSS JOIN LATERAL (
       SELECT job.id FROM tidewheel.job
        WHERE job.id = named.id AND job.state || '' <> 'running' AND job.run_at < tidewheel.now() - $2::interval
        LIMIT 1
          FOR UPDATE SKIP LOCKED
       ) AS job

-- name: forget_days
-- Numbers of days that are over and whose partition was taken off.
DELETE FROM tidewheel.rollup
 WHERE day < (tidewheel.now() AT TIME ZONE 'UTC')::date
   AND NOT EXISTS (
       SELECT FROM pg_inherits
         JOIN pg_class AS part ON part.oid = inhrelid
        WHERE NOT inhdetachpending AND part.relnamespace = 'tidewheel'::regnamespace
          AND part.relname = CASE WHEN state = 'succeeded' THEN 'job_history_succeeded' ELSE 'job_history_other' END
                             || to_char(day, '_YYYYMMDD'))

-- name: retire_keys
-- A key outlives the end of its job by a day.
DELETE FROM tidewheel.idempotency
 WHERE (tenant, key) IN (
       SELECT old.tenant, old.key
         FROM tidewheel.idempotency AS old
        WHERE old.created_at < tidewheel.now() - interval '1 day'
          AND NOT EXISTS (SELECT FROM tidewheel.job WHERE job.id = old.job_id)
          AND NOT EXISTS (
              SELECT FROM tidewheel.job_history AS history
               WHERE history.id = old.job_id AND history.finished_at >= tidewheel.now() - interval '1 day')
        ORDER BY old.created_at
        LIMIT $1)

-- name: retire_sweeps
-- Scopes that nobody sweeps any more.
DELETE FROM tidewheel.sweep WHERE next_at < tidewheel.now() - interval '1 day'

-- name: old_edges
-- The edges of the next children beyond one; those made since $2 are young and not looked at.
SELECT child FROM tidewheel.dependency WHERE child > $1 AND child < $2 ORDER BY child LIMIT $3

-- name: retire_edges
-- Edges go with the record of their child.
DELETE FROM tidewheel.dependency
 WHERE child = ANY (ARRAY(
       SELECT old.child
         FROM unnest($1::uuid[]) AS old (child)
         LEFT JOIN LATERAL (SELECT 1 AS found FROM tidewheel.job WHERE job.id = old.child LIMIT 1) AS active ON true
         LEFT JOIN LATERAL (
              SELECT 1 AS found FROM tidewheel.job_history WHERE job_history.id = old.child LIMIT 1
              ) AS finished ON true
        WHERE active.found IS NULL AND finished.found IS NULL))

-- name: retire_workers
DELETE FROM tidewheel.worker WHERE NOT alive AND ended_at < tidewheel.now() - interval '1 day'
