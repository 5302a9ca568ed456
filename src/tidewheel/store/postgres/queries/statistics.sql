-- name: statistics
SELECT statistic.at, lane.queue, lane.kind, statistic.state, statistic.jobs, statistic.delays, statistic.runs
  FROM tidewheel.statistic
  JOIN tidewheel.lane ON lane.id = statistic.lane
  JOIN tidewheel.tenant ON tenant.id = lane.tenant
 WHERE statistic.hour = $1 AND statistic.at >= $2 AND statistic.at < $3
   AND ($4::text IS NULL OR tenant.name = $4) AND ($5::text IS NULL OR lane.kind = $5)
   AND ($6::text IS NULL OR lane.queue = $6)

-- name: unfolded
SELECT ended.at, lane.queue, lane.kind, ended.state, ended.jobs, ended.delays, ended.runs
  FROM tidewheel.ended
  JOIN tidewheel.lane ON lane.id = ended.lane
  JOIN tidewheel.tenant ON tenant.id = lane.tenant
 WHERE ended.at >= $1 AND ended.at < $2
   AND ($3::text IS NULL OR tenant.name = $3) AND ($4::text IS NULL OR lane.kind = $4)
   AND ($5::text IS NULL OR lane.queue = $5)

-- name: lock_statistics
-- One folds at a time.
SELECT pg_advisory_xact_lock(8433, 4)

-- name: take_ended
DELETE FROM tidewheel.ended
 WHERE id = ANY (ARRAY(SELECT id FROM tidewheel.ended ORDER BY id LIMIT $1))
RETURNING at, lane, state, jobs, delays, runs

-- name: forget_minutes
-- Minutes of hours that are long over.
WITH gone AS (
    DELETE FROM tidewheel.statistic
     WHERE (hour, at, lane, state) IN (
           SELECT old.hour, old.at, old.lane, old.state
             FROM tidewheel.statistic AS old
            WHERE NOT old.hour AND old.at < date_trunc('hour', tidewheel.now() - $1::interval, 'UTC')
            ORDER BY old.at
            LIMIT $2)
    RETURNING 1
)
SELECT count(*) FROM gone

-- name: folded
SELECT statistic.at, statistic.lane, statistic.state, statistic.jobs, statistic.delays, statistic.runs
  FROM unnest($2::timestamptz[], $3::integer[], $4::text[]) AS named (at, lane, state)
  JOIN tidewheel.statistic
    ON statistic.hour = $1 AND statistic.at = named.at AND statistic.lane = named.lane AND statistic.state = named.state

-- name: keep_statistics
INSERT INTO tidewheel.statistic (hour, at, lane, state, jobs, delays, runs)
SELECT $1, *
  FROM unnest($2::timestamptz[], $3::integer[], $4::text[], $5::bigint[], $6::text[], $7::text[])
ON CONFLICT (hour, at, lane, state) DO UPDATE
   SET jobs = excluded.jobs, delays = excluded.delays, runs = excluded.runs

-- name: add_finished
INSERT INTO tidewheel.finished AS before (queue, state, jobs)
SELECT lane.queue, ended.state, sum(ended.jobs)
  FROM unnest($1::integer[], $2::text[], $3::bigint[]) AS ended (lane, state, jobs)
  JOIN tidewheel.lane ON lane.id = ended.lane
 GROUP BY lane.queue, ended.state
ON CONFLICT (queue, state) DO UPDATE SET jobs = before.jobs + excluded.jobs

-- name: finished
SELECT queue, state, sum(jobs)::bigint AS jobs
  FROM (SELECT queue, state, jobs FROM tidewheel.finished WHERE state <> 'missed'
        UNION ALL
        SELECT lane.queue, ended.state, ended.jobs FROM tidewheel.ended JOIN tidewheel.lane ON lane.id = ended.lane) AS ends
 GROUP BY queue, state

-- name: missed
SELECT jobs FROM tidewheel.finished WHERE queue = '' AND state = 'missed'

-- name: retire_statistics
DELETE FROM tidewheel.statistic WHERE hour AND at < tidewheel.now() - $1::interval
