-- name: statistics
SELECT statistic.at, lane.queue, lane.kind, statistic.state, statistic.jobs, statistic.delays, statistic.runs
  FROM statistic
 CROSS JOIN lane ON lane.id = statistic.lane
 CROSS JOIN tenant ON tenant.id = lane.tenant
 WHERE statistic.hour = :hour AND statistic.at >= :since AND statistic.at < :before
   AND (:tenant IS NULL OR tenant.name = :tenant) AND (:kind IS NULL OR lane.kind = :kind)
   AND (:queue IS NULL OR lane.queue = :queue)

-- name: unfolded
SELECT ended.at, lane.queue, lane.kind, ended.state, ended.jobs, ended.delays, ended.runs
  FROM ended
 CROSS JOIN lane ON lane.id = ended.lane
 CROSS JOIN tenant ON tenant.id = lane.tenant
 WHERE ended.at >= :since AND ended.at < :before
   AND (:tenant IS NULL OR tenant.name = :tenant) AND (:kind IS NULL OR lane.kind = :kind)
   AND (:queue IS NULL OR lane.queue = :queue)

-- name: take_ended
DELETE FROM ended WHERE id IN (SELECT id FROM ended ORDER BY id LIMIT :limit)
RETURNING at, lane, state, jobs, delays, runs

-- name: forget_minutes
-- Minutes of hours that are long over.
DELETE FROM statistic
 WHERE (hour, at, lane, state) IN (
       SELECT hour, at, lane, state FROM statistic WHERE hour = 0 AND at < :until ORDER BY at LIMIT :limit)

-- name: folded
SELECT statistic.at, statistic.lane, statistic.state, statistic.jobs, statistic.delays, statistic.runs
  FROM json_each(:keys) AS named
 CROSS JOIN statistic ON statistic.hour = :hour AND statistic.at = named.value ->> 0
   AND statistic.lane = named.value ->> 1 AND statistic.state = named.value ->> 2

-- name: keep_statistics
INSERT INTO statistic (hour, at, lane, state, jobs, delays, runs)
SELECT :hour, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM json_each(:rows) WHERE true
ON CONFLICT (hour, at, lane, state) DO UPDATE
   SET jobs = excluded.jobs, delays = excluded.delays, runs = excluded.runs

-- name: add_finished
INSERT INTO finished (queue, state, jobs)
SELECT lane.queue, ended.value ->> 1, sum(ended.value ->> 2)
  FROM json_each(:rows) AS ended
 CROSS JOIN lane ON lane.id = ended.value ->> 0
 WHERE true
 GROUP BY lane.queue, ended.value ->> 1
ON CONFLICT (queue, state) DO UPDATE SET jobs = jobs + excluded.jobs

-- name: finished
SELECT queue, state, sum(jobs)
  FROM (SELECT queue, state, jobs FROM finished WHERE state <> 'missed'
        UNION ALL
        SELECT lane.queue, ended.state, ended.jobs FROM ended CROSS JOIN lane ON lane.id = ended.lane)
 GROUP BY queue, state

-- name: missed
SELECT jobs FROM finished WHERE queue = '' AND state = 'missed'

-- name: retire_statistics
DELETE FROM statistic WHERE hour = 1 AND at < :until
