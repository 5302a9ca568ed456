-- name: lock_secrets
-- Whoever counts the secrets of a tenant, and then adds one, does so alone.
SELECT pg_advisory_xact_lock(8438, hashtext($1::text))

-- name: count_other_secrets
SELECT count(*) FROM tidewheel.secret WHERE tenant = $1 AND name <> $2

-- name: set_secret
INSERT INTO tidewheel.secret AS kept (tenant, name, version, changed_at, changed_by, key_id, sealed)
VALUES ($1, $2, 1, tidewheel.now(), $3, $4, $5)
ON CONFLICT (tenant, name) DO UPDATE
   SET version = kept.version + 1, changed_at = excluded.changed_at, changed_by = excluded.changed_by,
       key_id = excluded.key_id, sealed = excluded.sealed
RETURNING name, tenant, version, changed_at, changed_by, key_id

-- name: stored_secrets
SELECT name, tenant, version, changed_at, changed_by, key_id
  FROM tidewheel.secret
 WHERE tenant = $1
 ORDER BY name COLLATE "C"

-- name: remove_secret
DELETE FROM tidewheel.secret WHERE tenant = $1 AND name = $2
RETURNING version

-- name: secrets_of_other_keys
SELECT tenant, name, key_id, sealed
  FROM tidewheel.secret
 WHERE key_id <> $1 AND ($2::text IS NULL OR tenant = $2)
   AND (tenant COLLATE "C", name COLLATE "C") > ($3::text, $4::text)
 ORDER BY tenant COLLATE "C", name COLLATE "C"
 LIMIT $5

-- name: reseal_secret
-- Only as it was read: whoever gave it another text meanwhile was right. No two are sealed alike, and versions begin anew
-- for one that was removed.
UPDATE tidewheel.secret SET key_id = $4, sealed = $5
 WHERE tenant = $1 AND name = $2 AND sealed = $3
RETURNING version

-- name: args_of_run
SELECT tenant.name, job.args
  FROM tidewheel.job
  JOIN tidewheel.tenant ON tenant.id = job.tenant
 WHERE job.id = $1 AND job.token = $2 AND job.state || '' = 'running' AND job.worker IS NOT DISTINCT FROM $3

-- name: sealed_secrets
SELECT name, key_id, sealed FROM tidewheel.secret WHERE tenant = $1 AND name = ANY ($2::text[])
