-- name: lock_artifact
-- Adding an artifact and digging its grave exclude each other; a hash that two digests share costs a wait.
SELECT pg_advisory_xact_lock(8434, hashtext($1))

-- name: has_grave
SELECT EXISTS (SELECT FROM tidewheel.artifact_grave WHERE digest = $1)

-- name: add_artifact
INSERT INTO tidewheel.artifact (id, tenant, digest, size, name, created_by, created_at, used_at)
VALUES ($1, $2, $3, $4, $5, $6, tidewheel.now(), tidewheel.now())
    ON CONFLICT (tenant, digest) DO UPDATE SET used_at = tidewheel.now()
RETURNING id, tenant, digest, size, name, created_by, created_at, used_at

-- name: use_artifacts
-- In the order of the digests, as all who touch several do.
WITH mine AS (
    SELECT id FROM tidewheel.artifact WHERE tenant = $1 AND digest = ANY ($2::text[]) ORDER BY digest FOR UPDATE)
UPDATE tidewheel.artifact SET used_at = tidewheel.now()
  FROM mine
 WHERE artifact.id = mine.id
RETURNING digest

-- name: get_artifact
SELECT id, tenant, digest, size, name, created_by, created_at, used_at
  FROM tidewheel.artifact
 WHERE tenant = $1 AND digest = $2

-- name: artifacts
SELECT id, tenant, digest, size, name, created_by, created_at, used_at
  FROM tidewheel.artifact
 WHERE tenant = $1 AND id < $2
 ORDER BY id DESC
 LIMIT $3

-- name: unused_artifacts
SELECT id, tenant, digest
  FROM tidewheel.artifact
 WHERE used_at <= tidewheel.now() - $1::interval
 ORDER BY used_at
 LIMIT $2

-- name: named_artifacts
-- Which of some artifacts a job that waits or runs or a schedule names. Asked once an hour at the most, and only if some
-- were not used for long.
WITH asked AS (SELECT unnest($1::text[]) AS tenant, unnest($2::text[]) AS digest),
lanes AS (
    SELECT lane.id, tenant.name AS tenant
      FROM tidewheel.lane
      JOIN tidewheel.tenant ON tenant.id = lane.tenant
     WHERE lane.kind = 'command' AND tenant.name IN (SELECT tenant FROM asked)
)
SELECT lanes.tenant, job.args ->> 'artifact' AS digest
  FROM tidewheel.job
  JOIN lanes ON lanes.id = job.lane
  JOIN asked ON asked.tenant = lanes.tenant AND asked.digest = job.args ->> 'artifact'
 UNION
SELECT asked.tenant, asked.digest
  FROM tidewheel.schedule
  JOIN tidewheel.tenant ON tenant.id = schedule.tenant
  JOIN asked ON asked.tenant = tenant.name AND asked.digest = schedule.definition -> 'args' ->> 'artifact'
 WHERE schedule.definition ->> 'kind' = 'command'

-- name: bury_artifact
-- Only if it was not used meanwhile.
DELETE FROM tidewheel.artifact
 WHERE id = $1 AND used_at <= tidewheel.now() - $2::interval
RETURNING digest

-- name: dig_grave
-- Unless another tenant has the same file.
INSERT INTO tidewheel.artifact_grave (digest, dug_at)
SELECT $1, tidewheel.now()
 WHERE NOT EXISTS (SELECT FROM tidewheel.artifact WHERE digest = $1)
    ON CONFLICT DO NOTHING

-- name: graves
SELECT digest FROM tidewheel.artifact_grave ORDER BY dug_at LIMIT $1

-- name: close_graves
DELETE FROM tidewheel.artifact_grave WHERE digest = ANY ($1::text[])

-- name: signing_key
SELECT signing_key FROM tidewheel.meta
