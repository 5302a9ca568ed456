-- name: get_active
SELECT * FROM tidewheel.active_job WHERE id = $1 AND ($2::text IS NULL OR tenant = $2)

-- name: get_finished
-- The time in the id bounds the days to look through; a day's grace is for clocks that disagree.
SELECT * FROM tidewheel.finished_job
 WHERE id = $1 AND ($2::text IS NULL OR tenant = $2) AND finished_at >= $3::timestamptz - interval '1 day'

-- name: attempts
SELECT * FROM (
       SELECT attempt.job_id, attempt.token, attempt.worker, attempt.started_at, attempt.ended_at, attempt.cause,
              attempt.error, attempt.usage
         FROM tidewheel.attempt
        WHERE attempt.job_id = $1 AND attempt.ended_at >= $2::timestamptz - interval '1 day' AND attempt.token < $3
       UNION ALL
       SELECT job.id, job.token, job.worker, job.started_at, job.ended_at, job.cause, job.error, job.usage
         FROM tidewheel.job_history AS job
        WHERE job.id = $1 AND job.finished_at >= $2::timestamptz - interval '1 day' AND job.ran AND job.token < $3
        ORDER BY token DESC
        LIMIT $4
       ) AS last
 ORDER BY token

-- name: has_lane
-- Whether there ever was a job of such a tenant, kind and queue.
SELECT EXISTS (
       SELECT FROM tidewheel.lane
        WHERE ($1::integer IS NULL OR tenant = $1) AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR queue = $3))

-- name: plan_for_all
-- For the rest of a transaction, plans know no values. With values the planner takes a tenant's part of a day for a few rows,
-- which it would rather sort than read in order, and plans all days of history anew each time.
SET LOCAL plan_cache_mode = force_generic_plan

-- name: list_all
-- Both tables in one statement, so that no job is missed or doubled while it moves from one to the other; a table of which
-- no state is wanted is left out ($12, $13). At most $8 rows of each are read before the page is given up as short;
-- `edge_all` then tells where to go on.
(SELECT * FROM (
        SELECT * FROM tidewheel.active_job WHERE $12::boolean AND id < $1 AND id >= $2 ORDER BY id DESC LIMIT $8
        ) AS seen
  WHERE ($3::text[] IS NULL OR state = ANY ($3)) AND ($4::text IS NULL OR kind = $4) AND ($5::text IS NULL OR queue = $5)
    AND ($6::uuid IS NULL OR schedule_id = $6) AND ($7::text[] IS NULL OR labels ->> $7[1] = $7[2])
    AND ($10::timestamptz IS NULL OR created_at >= $10) AND ($11::timestamptz IS NULL OR created_at < $11)
    AND ($14::text[] IS NULL OR tidewheel.has_words($14, kind, options, labels, error))
  ORDER BY id DESC LIMIT $9)
UNION ALL
(SELECT * FROM (
        SELECT * FROM tidewheel.finished_job WHERE $13::boolean AND id < $1 AND id >= $2 ORDER BY id DESC LIMIT $8
        ) AS seen
  WHERE ($3::text[] IS NULL OR state = ANY ($3)) AND ($4::text IS NULL OR kind = $4) AND ($5::text IS NULL OR queue = $5)
    AND ($6::uuid IS NULL OR schedule_id = $6) AND ($7::text[] IS NULL OR labels ->> $7[1] = $7[2])
    AND ($10::timestamptz IS NULL OR created_at >= $10) AND ($11::timestamptz IS NULL OR created_at < $11)
    AND ($14::text[] IS NULL OR tidewheel.has_words($14, kind, options, labels, error))
  ORDER BY id DESC LIMIT $9)
ORDER BY id DESC LIMIT $9

-- name: edge_all
-- The lowest id down to which both tables were read, or NULL if they were read to the end.
SELECT id FROM (
       (SELECT id FROM tidewheel.job WHERE $4::boolean AND id < $1 AND id >= $2 ORDER BY id DESC OFFSET $3 - 1 LIMIT 1)
       UNION ALL
       (SELECT id FROM tidewheel.job_history
         WHERE $5::boolean AND id < $1 AND id >= $2 ORDER BY id DESC OFFSET $3 - 1 LIMIT 1)
       ) AS edge ORDER BY id DESC LIMIT 1

-- name: list_all_of_tenant
-- Rows compared as a whole, so that only the index on them serves: the one on id alone would walk over everyone's jobs.
-- Ordered as a whole, too, all the way: by id alone all that was read would have to be sorted.
(SELECT * FROM (
        SELECT * FROM tidewheel.active_job
         WHERE $12::boolean AND (tenant_id, id) < ($14, $1) AND (tenant_id, id) >= ($14, $2)
         ORDER BY tenant_id DESC, id DESC LIMIT $8
        ) AS seen
  WHERE ($3::text[] IS NULL OR state = ANY ($3)) AND ($4::text IS NULL OR kind = $4) AND ($5::text IS NULL OR queue = $5)
    AND ($6::uuid IS NULL OR schedule_id = $6) AND ($7::text[] IS NULL OR labels ->> $7[1] = $7[2])
    AND ($10::timestamptz IS NULL OR created_at >= $10) AND ($11::timestamptz IS NULL OR created_at < $11)
    AND ($15::text[] IS NULL OR tidewheel.has_words($15, kind, options, labels, error))
  ORDER BY tenant_id DESC, id DESC LIMIT $9)
UNION ALL
(SELECT * FROM (
        SELECT * FROM tidewheel.finished_job
         WHERE $13::boolean AND (tenant_id, id) < ($14, $1) AND (tenant_id, id) >= ($14, $2)
         ORDER BY tenant_id DESC, id DESC LIMIT $8
        ) AS seen
  WHERE ($3::text[] IS NULL OR state = ANY ($3)) AND ($4::text IS NULL OR kind = $4) AND ($5::text IS NULL OR queue = $5)
    AND ($6::uuid IS NULL OR schedule_id = $6) AND ($7::text[] IS NULL OR labels ->> $7[1] = $7[2])
    AND ($10::timestamptz IS NULL OR created_at >= $10) AND ($11::timestamptz IS NULL OR created_at < $11)
    AND ($15::text[] IS NULL OR tidewheel.has_words($15, kind, options, labels, error))
  ORDER BY tenant_id DESC, id DESC LIMIT $9)
ORDER BY tenant_id DESC, id DESC LIMIT $9

-- name: edge_all_of_tenant
SELECT id FROM (
       (SELECT id FROM tidewheel.job
         WHERE $4::boolean AND (tenant, id) < ($6, $1) AND (tenant, id) >= ($6, $2)
         ORDER BY tenant DESC, id DESC OFFSET $3 - 1 LIMIT 1)
       UNION ALL
       (SELECT id FROM tidewheel.job_history
         WHERE $5::boolean AND (tenant, id) < ($6, $1) AND (tenant, id) >= ($6, $2)
         ORDER BY tenant DESC, id DESC OFFSET $3 - 1 LIMIT 1)
       ) AS edge ORDER BY id DESC LIMIT 1

-- name: list_running
-- What runs is no more than the workers can do at once, and has an index of its own; `IS TRUE` keeps the planner off others.
WITH running AS MATERIALIZED (
    SELECT id FROM tidewheel.job
     WHERE state = 'running' AND (id < $1) IS TRUE AND (id >= $2) IS TRUE AND ($11::integer IS NULL OR tenant = $11)
)
SELECT active_job.*
  FROM running
  JOIN tidewheel.active_job ON active_job.id = running.id
 WHERE ($3::text[] IS NULL OR state = ANY ($3)) AND ($4::text IS NULL OR kind = $4) AND ($5::text IS NULL OR queue = $5)
   AND ($6::uuid IS NULL OR schedule_id = $6) AND ($7::text[] IS NULL OR labels ->> $7[1] = $7[2])
   AND ($9::timestamptz IS NULL OR created_at >= $9) AND ($10::timestamptz IS NULL OR created_at < $10)
   AND ($12::text[] IS NULL OR tidewheel.has_words($12, kind, options, labels, error))
 ORDER BY active_job.id DESC LIMIT $8

-- name: list_failed
-- Those that ended without success, perhaps with a part of the message of their error: they are few, and have partitions of
-- their own.
SELECT * FROM (
       SELECT * FROM tidewheel.finished_job
        WHERE id < $1 AND id >= $2 AND state IN ('dead', 'cancelled', 'expired', 'dropped', 'skipped')
        ORDER BY id DESC LIMIT $8
       ) AS seen
 WHERE ($3::text[] IS NULL OR state = ANY ($3)) AND ($4::text IS NULL OR kind = $4) AND ($5::text IS NULL OR queue = $5)
   AND ($6::uuid IS NULL OR schedule_id = $6) AND ($7::text[] IS NULL OR labels ->> $7[1] = $7[2])
   AND ($10::timestamptz IS NULL OR created_at >= $10) AND ($11::timestamptz IS NULL OR created_at < $11)
   AND ($13::text[] IS NULL OR tidewheel.has_words($13, kind, options, labels, error))
   AND ($12::text IS NULL OR strpos(error ->> 'message', $12) > 0)
 ORDER BY id DESC LIMIT $9

-- name: edge_failed
SELECT id FROM tidewheel.job_history
 WHERE id < $1 AND id >= $2 AND state IN ('dead', 'cancelled', 'expired', 'dropped', 'skipped')
 ORDER BY id DESC OFFSET $3 - 1 LIMIT 1

-- name: list_failed_of_tenant
SELECT * FROM (
       SELECT * FROM tidewheel.finished_job
        WHERE (tenant_id, id) < ($13, $1) AND (tenant_id, id) >= ($13, $2)
          AND state IN ('dead', 'cancelled', 'expired', 'dropped', 'skipped')
        ORDER BY tenant_id DESC, id DESC LIMIT $8
       ) AS seen
 WHERE ($3::text[] IS NULL OR state = ANY ($3)) AND ($4::text IS NULL OR kind = $4) AND ($5::text IS NULL OR queue = $5)
   AND ($6::uuid IS NULL OR schedule_id = $6) AND ($7::text[] IS NULL OR labels ->> $7[1] = $7[2])
   AND ($10::timestamptz IS NULL OR created_at >= $10) AND ($11::timestamptz IS NULL OR created_at < $11)
   AND ($14::text[] IS NULL OR tidewheel.has_words($14, kind, options, labels, error))
   AND ($12::text IS NULL OR strpos(error ->> 'message', $12) > 0)
 ORDER BY tenant_id DESC, id DESC LIMIT $9

-- name: edge_failed_of_tenant
SELECT id FROM tidewheel.job_history
 WHERE (tenant, id) < ($4, $1) AND (tenant, id) >= ($4, $2)
   AND state IN ('dead', 'cancelled', 'expired', 'dropped', 'skipped')
 ORDER BY tenant DESC, id DESC OFFSET $3 - 1 LIMIT 1

-- name: fresh_counts
-- The active jobs, of which no more than so many are looked at.
SELECT lane, state, priority, count(*) AS jobs
  FROM (SELECT lane, state, priority FROM tidewheel.job ORDER BY id LIMIT $1) AS near
 GROUP BY 1, 2, 3

-- name: fresh_counts_of_tenant
SELECT lane, state, priority, count(*) AS jobs
  FROM (
       SELECT lane, state, priority FROM tidewheel.job
        WHERE (tenant, id) >= ($2, '00000000-0000-0000-0000-000000000000'::uuid)
          AND (tenant, id) <= ($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
        ORDER BY tenant, id
        LIMIT $1
       ) AS near
 GROUP BY 1, 2, 3

-- name: counts
-- The active jobs as of the census, unless they were counted anew.
SELECT tenant.name AS tenant, lane.queue, lane.kind, counted.state, counted.priority, sum(counted.jobs)::bigint AS jobs
  FROM (
       SELECT lane, state, priority, jobs FROM tidewheel.census WHERE $2::integer[] IS NULL
       UNION ALL
       SELECT * FROM unnest($2::integer[], $3::text[], $4::smallint[], $5::bigint[])
       UNION ALL
       SELECT lane, state, NULL, jobs FROM tidewheel.rollup
       UNION ALL
       SELECT lane, state, NULL, jobs FROM tidewheel.tally
       ) AS counted
  JOIN tidewheel.lane ON lane.id = counted.lane
  JOIN tidewheel.tenant ON tenant.id = lane.tenant
 WHERE $1::text IS NULL OR tenant.name = $1
 GROUP BY 1, 2, 3, 4, 5
HAVING sum(counted.jobs) > 0

-- name: census_at
SELECT census_at FROM tidewheel.meta
