-- name: dead_groups
-- The youngest by id stands for its group.
SELECT tenant.name, grouped.kind, grouped.fingerprint, grouped.jobs, grouped.first_seen, grouped.last_seen, grouped.sample,
       (SELECT error FROM job_history WHERE job_history.id = grouped.sample)
  FROM (
       SELECT job.tenant, lane.kind, job.fingerprint, count(*) AS jobs, min(job.finished_at) AS first_seen,
              max(job.finished_at) AS last_seen, max(job.id) AS sample
         FROM job_history AS job INDEXED BY job_history_dead
        CROSS JOIN lane ON lane.id = job.lane
        WHERE job.state = 'dead'
          AND (:tenant IS NULL OR job.tenant = (SELECT id FROM tenant WHERE name = :tenant))
          AND (:kind IS NULL OR lane.kind = :kind) AND (:queue IS NULL OR lane.queue = :queue)
          AND (:fingerprint IS NULL OR job.fingerprint = :fingerprint)
          AND (:since IS NULL OR job.finished_at >= :since) AND (:until IS NULL OR job.finished_at < :until)
        GROUP BY job.tenant, lane.kind, job.fingerprint
        ORDER BY jobs DESC, last_seen DESC, job.fingerprint, lane.kind, job.tenant
        LIMIT :limit
       ) AS grouped
 CROSS JOIN tenant ON tenant.id = grouped.tenant
 ORDER BY grouped.jobs DESC, grouped.last_seen DESC, grouped.fingerprint, grouped.kind, tenant.name

-- name: count_dead
SELECT count(*)
  FROM job_history AS job INDEXED BY job_history_dead
 CROSS JOIN lane ON lane.id = job.lane
 WHERE job.state = 'dead'
   AND (:tenant IS NULL OR job.tenant = (SELECT id FROM tenant WHERE name = :tenant))
   AND (:kind IS NULL OR lane.kind = :kind) AND (:queue IS NULL OR lane.queue = :queue)
   AND (:fingerprint IS NULL OR job.fingerprint = :fingerprint)
   AND (:since IS NULL OR job.finished_at >= :since) AND (:until IS NULL OR job.finished_at < :until)

-- name: next_dead
-- Oldest first, each with its token: whoever sends it round means this death.
SELECT job.id, job.token
  FROM job_history AS job INDEXED BY job_history_failed
 CROSS JOIN lane ON lane.id = job.lane
 WHERE job.state = 'dead' AND job.state <> 'succeeded'
   AND (:tenant IS NULL OR job.tenant = (SELECT id FROM tenant WHERE name = :tenant))
   AND (:kind IS NULL OR lane.kind = :kind) AND (:queue IS NULL OR lane.queue = :queue)
   AND (:fingerprint IS NULL OR job.fingerprint = :fingerprint)
   AND (:since IS NULL OR job.finished_at >= :since) AND (:until IS NULL OR job.finished_at < :until)
   AND job.id > :after
 ORDER BY job.id
 LIMIT :limit

-- name: list_dead
SELECT finished_job.*
  FROM (
       SELECT job.id
         FROM job_history AS job INDEXED BY job_history_failed
        CROSS JOIN lane ON lane.id = job.lane
        WHERE job.state = 'dead' AND job.state <> 'succeeded'
          AND (:tenant IS NULL OR job.tenant = (SELECT id FROM tenant WHERE name = :tenant))
          AND (:kind IS NULL OR lane.kind = :kind) AND (:queue IS NULL OR lane.queue = :queue)
          AND (:fingerprint IS NULL OR job.fingerprint = :fingerprint)
          AND (:since IS NULL OR job.finished_at >= :since) AND (:until IS NULL OR job.finished_at < :until)
          AND job.id < :after
        ORDER BY job.id DESC
        LIMIT :limit
       ) AS dead
 CROSS JOIN finished_job ON finished_job.id = dead.id
 ORDER BY dead.id DESC

-- name: edit_dead
UPDATE job_history SET args = :args WHERE id = :id AND state = 'dead' RETURNING id
