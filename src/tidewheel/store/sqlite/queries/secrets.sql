-- name: count_other_secrets
SELECT count(*) FROM secret WHERE tenant = :tenant AND name <> :name

-- name: set_secret
INSERT INTO secret (tenant, name, version, changed_at, changed_by, key_id, sealed)
VALUES (:tenant, :name, 1, :now, :by, :key_id, :sealed)
ON CONFLICT (tenant, name) DO UPDATE
   SET version = version + 1, changed_at = excluded.changed_at, changed_by = excluded.changed_by,
       key_id = excluded.key_id, sealed = excluded.sealed
RETURNING name, tenant, version, changed_at, changed_by, key_id

-- name: stored_secrets
SELECT name, tenant, version, changed_at, changed_by, key_id FROM secret WHERE tenant = :tenant ORDER BY name

-- name: remove_secret
DELETE FROM secret WHERE tenant = :tenant AND name = :name
RETURNING version

-- name: secrets_of_other_keys
SELECT tenant, name, key_id, sealed
  FROM secret
 WHERE key_id <> :key_id AND (:tenant IS NULL OR tenant = :tenant) AND (tenant, name) > (:after_tenant, :after_name)
 ORDER BY tenant, name
 LIMIT :limit

-- name: reseal_secret
-- Only as it was read: whoever gave it another text meanwhile was right. No two are sealed alike, and versions begin anew
-- for one that was removed.
UPDATE secret SET key_id = :key_id, sealed = :sealed
 WHERE tenant = :tenant AND name = :name AND sealed = :was_sealed
RETURNING 1

-- name: args_of_run
SELECT tenant.name, job.args
  FROM job
 CROSS JOIN tenant ON tenant.id = job.tenant
 WHERE job.id = :id AND job.token = :token AND +job.state = 'running' AND +job.worker = :worker

-- name: sealed_secrets
SELECT name, key_id, sealed FROM secret WHERE tenant = :tenant AND name IN (SELECT value FROM json_each(:names))
