-- name: has_grave
SELECT EXISTS (SELECT 1 FROM artifact_grave WHERE digest = :digest)

-- name: add_artifact
INSERT INTO artifact (id, tenant, digest, size, name, created_by, created_at, used_at)
VALUES (:id, :tenant, :digest, :size, :name, :by, :now, :now)
    ON CONFLICT (tenant, digest) DO UPDATE SET used_at = :now
RETURNING id, tenant, digest, size, name, created_by, created_at, used_at

-- name: use_artifacts
UPDATE artifact SET used_at = :now
 WHERE tenant = :tenant AND digest IN (SELECT value FROM json_each(:digests))
RETURNING digest

-- name: get_artifact
SELECT id, tenant, digest, size, name, created_by, created_at, used_at
  FROM artifact
 WHERE tenant = :tenant AND digest = :digest

-- name: artifacts
SELECT id, tenant, digest, size, name, created_by, created_at, used_at
  FROM artifact
 WHERE tenant = :tenant AND id < :after
 ORDER BY id DESC
 LIMIT :limit

-- name: unused_artifacts
SELECT id, tenant, digest FROM artifact WHERE used_at <= :until ORDER BY used_at LIMIT :limit

-- name: is_artifact_named
-- Whether a job that waits or runs or a schedule names an artifact. Asked once an hour at the most, and only for those
-- that were not used for long.
SELECT EXISTS (
       SELECT 1 FROM tenant
         CROSS JOIN job ON job.tenant = tenant.id
         CROSS JOIN lane ON lane.id = job.lane
        WHERE lane.kind = 'command' AND tenant.name = :tenant AND job.args ->> 'artifact' = :digest)
    OR EXISTS (
       SELECT 1 FROM schedule
         CROSS JOIN tenant ON tenant.id = schedule.tenant
        WHERE tenant.name = :tenant AND schedule.definition ->> 'kind' = 'command'
          AND schedule.definition ->> '$.args.artifact' = :digest)

-- name: bury_artifact
DELETE FROM artifact WHERE id = :id

-- name: dig_grave
-- Unless another tenant has the same file.
INSERT INTO artifact_grave (digest, dug_at)
SELECT :digest, :now
 WHERE NOT EXISTS (SELECT 1 FROM artifact WHERE digest = :digest)
    ON CONFLICT DO NOTHING

-- name: graves
SELECT digest FROM artifact_grave ORDER BY dug_at LIMIT :limit

-- name: close_graves
DELETE FROM artifact_grave WHERE digest IN (SELECT value FROM json_each(:digests))

-- name: signing_key
SELECT signing_key FROM meta
