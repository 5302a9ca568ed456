-- name: dead_groups
-- The youngest by id stands for its group.
WITH grouped AS MATERIALIZED (
    SELECT job.tenant, lane.kind, job.fingerprint, count(*) AS jobs, min(job.finished_at) AS first_seen,
           max(job.finished_at) AS last_seen, max(job.id::text)::uuid AS sample
      FROM tidewheel.job_history AS job
      JOIN tidewheel.lane ON lane.id = job.lane
     WHERE job.state = 'dead'
       AND ($1::text IS NULL OR job.tenant = (SELECT id FROM tidewheel.tenant WHERE name = $1))
       AND ($2::text IS NULL OR lane.kind = $2) AND ($3::text IS NULL OR lane.queue = $3)
       AND ($4::text IS NULL OR job.fingerprint = $4)
       AND ($5::timestamptz IS NULL OR job.finished_at >= $5) AND ($6::timestamptz IS NULL OR job.finished_at < $6)
     GROUP BY job.tenant, lane.kind, job.fingerprint
     ORDER BY jobs DESC, last_seen DESC, job.fingerprint, lane.kind, job.tenant
     LIMIT $7
)
SELECT tenant.name AS tenant, grouped.kind, grouped.fingerprint, grouped.jobs, grouped.first_seen, grouped.last_seen,
       grouped.sample, (
       SELECT job.error FROM tidewheel.job_history AS job
        WHERE job.id = grouped.sample AND job.state = 'dead' AND job.finished_at >= grouped.first_seen
        LIMIT 1) AS error
  FROM grouped
  JOIN tidewheel.tenant ON tenant.id = grouped.tenant
 ORDER BY grouped.jobs DESC, grouped.last_seen DESC, grouped.fingerprint, grouped.kind, tenant.name

-- name: count_dead
SELECT count(*)
  FROM tidewheel.job_history AS job
  JOIN tidewheel.lane ON lane.id = job.lane
 WHERE job.state = 'dead'
   AND ($1::text IS NULL OR job.tenant = (SELECT id FROM tidewheel.tenant WHERE name = $1))
   AND ($2::text IS NULL OR lane.kind = $2) AND ($3::text IS NULL OR lane.queue = $3)
   AND ($4::text IS NULL OR job.fingerprint = $4)
   AND ($5::timestamptz IS NULL OR job.finished_at >= $5) AND ($6::timestamptz IS NULL OR job.finished_at < $6)

-- name: next_dead
-- Oldest first, each with its token: whoever sends it round means this death.
SELECT job.id, job.token
  FROM tidewheel.job_history AS job
  JOIN tidewheel.lane ON lane.id = job.lane
 WHERE job.state = 'dead'
   AND ($1::text IS NULL OR job.tenant = (SELECT id FROM tidewheel.tenant WHERE name = $1))
   AND ($2::text IS NULL OR lane.kind = $2) AND ($3::text IS NULL OR lane.queue = $3)
   AND ($4::text IS NULL OR job.fingerprint = $4)
   AND ($5::timestamptz IS NULL OR job.finished_at >= $5) AND ($6::timestamptz IS NULL OR job.finished_at < $6)
   AND job.id > $7
 ORDER BY job.id
 LIMIT $8

-- name: list_dead
SELECT finished_job.*
  FROM (
       SELECT job.id, job.finished_at
         FROM tidewheel.job_history AS job
         JOIN tidewheel.lane ON lane.id = job.lane
        WHERE job.state = 'dead'
          AND ($1::text IS NULL OR job.tenant = (SELECT id FROM tidewheel.tenant WHERE name = $1))
          AND ($2::text IS NULL OR lane.kind = $2) AND ($3::text IS NULL OR lane.queue = $3)
          AND ($4::text IS NULL OR job.fingerprint = $4)
          AND ($5::timestamptz IS NULL OR job.finished_at >= $5) AND ($6::timestamptz IS NULL OR job.finished_at < $6)
          AND job.id < $7
        ORDER BY job.id DESC
        LIMIT $8
       ) AS dead
  JOIN tidewheel.finished_job ON finished_job.id = dead.id AND finished_job.finished_at = dead.finished_at
 WHERE finished_job.state = 'dead'
 ORDER BY dead.id DESC

-- name: edit_dead
UPDATE tidewheel.job_history SET args = $2::json
 WHERE id = $1 AND state = 'dead' AND finished_at >= $3::timestamptz - interval '1 day'
RETURNING id

-- name: now
SELECT tidewheel.now()
