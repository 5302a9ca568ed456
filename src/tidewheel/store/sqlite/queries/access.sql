-- name: add_api_key
INSERT INTO api_key (id, prefix, digest, tenant, role, name, created_at, created_by, expires_at, rate, burst)
VALUES (:id, :prefix, :digest, :tenant, :role, :name, :now, :by, :expires_at, :rate, :burst)

-- name: has_api_keys
SELECT EXISTS (SELECT 1 FROM api_key)

-- name: find_api_key
SELECT id, prefix, name, role, tenant, created_at, created_by, expires_at, last_used_at, revoked_at, rate, burst, digest
  FROM api_key
 WHERE prefix = :prefix

-- name: get_api_key
SELECT id, prefix, name, role, tenant, created_at, created_by, expires_at, last_used_at, revoked_at, rate, burst
  FROM api_key
 WHERE id = :id

-- name: api_keys
SELECT id, prefix, name, role, tenant, created_at, created_by, expires_at, last_used_at, revoked_at, rate, burst
  FROM api_key
 WHERE id < :after AND (:tenant IS NULL OR tenant = :tenant)
 ORDER BY id DESC
 LIMIT :limit

-- name: note_api_key_use
UPDATE api_key
   SET last_used_at = :now
 WHERE id = :id AND (last_used_at IS NULL OR last_used_at <= :now - :pause)

-- name: revoke_api_key
UPDATE api_key
   SET revoked_at = :now
 WHERE id = :id AND revoked_at IS NULL AND (:tenant IS NULL OR tenant = :tenant)
RETURNING prefix, tenant

-- name: set_tenant
INSERT INTO tenant (name, weight, max_queued, max_payload, keep_logs)
VALUES (:name, :weight, :max_queued, :max_payload, :keep_logs)
ON CONFLICT (name) DO UPDATE
   SET weight = excluded.weight, max_queued = excluded.max_queued, max_payload = excluded.max_payload,
       keep_logs = excluded.keep_logs

-- name: tenants_shown
SELECT name, weight, max_queued, max_payload, keep_logs FROM tenant WHERE :tenant IS NULL OR name = :tenant ORDER BY name

-- name: count_unfinished
SELECT count(*)
  FROM (SELECT 1 FROM job WHERE tenant = (SELECT id FROM tenant WHERE name = :tenant) LIMIT :most)

-- name: add_audit
INSERT INTO audit (id, at, actor, role, key_id, tenant, action, subject, detail)
VALUES (:id, :now, :actor, :role, :key_id, :tenant, :action, :subject, :detail)

-- name: audited
-- At most `:scan` entries are looked at; `audit_edge` tells where to go on.
SELECT id, at, actor, role, key_id, tenant, action, subject, detail
  FROM (SELECT * FROM audit WHERE id < :after ORDER BY id DESC LIMIT :scan)
 WHERE (:action IS NULL OR action = :action) AND (:subject IS NULL OR subject = :subject)
   AND (:key_id IS NULL OR key_id = :key_id)
   AND (:since IS NULL OR at >= :since) AND (:before IS NULL OR at < :before)
 ORDER BY id DESC
 LIMIT :limit

-- name: audit_edge
SELECT id FROM audit WHERE id < :after ORDER BY id DESC LIMIT 1 OFFSET :scan - 1

-- name: audited_of_tenant
SELECT id, at, actor, role, key_id, tenant, action, subject, detail
  FROM (SELECT * FROM audit WHERE tenant = :tenant AND id < :after ORDER BY id DESC LIMIT :scan)
 WHERE (:action IS NULL OR action = :action) AND (:subject IS NULL OR subject = :subject)
   AND (:key_id IS NULL OR key_id = :key_id)
   AND (:since IS NULL OR at >= :since) AND (:before IS NULL OR at < :before)
 ORDER BY id DESC
 LIMIT :limit

-- name: audit_edge_of_tenant
SELECT id FROM audit WHERE tenant = :tenant AND id < :after ORDER BY id DESC LIMIT 1 OFFSET :scan - 1

-- name: retire_audit
-- Ids carry about the time at which they were made, so the old ones come first.
DELETE FROM audit
 WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT :limit) AND at < :until
RETURNING 1

-- name: erase_job
UPDATE job_history
   SET args = '{}', labels = NULL, options = NULL, limit_keys = NULL, unique_key = NULL, idempotency_key = NULL,
       cancel_reason = NULL, result = NULL, result_location = NULL,
       error = CASE WHEN error IS NOT NULL THEN json_object('reason', error ->> 'reason') END,
       erased_at = :now, updated_at = :now
 WHERE id = :id AND (:tenant IS NULL OR tenant = (SELECT tenant.id FROM tenant WHERE name = :tenant))
RETURNING (SELECT name FROM tenant WHERE tenant.id = job_history.tenant)

-- name: erase_attempts
UPDATE attempt SET error = json_object('reason', error ->> 'reason') WHERE job_id = :id AND error IS NOT NULL

-- name: erase_notes
DELETE FROM run_note WHERE job_id = :id

-- name: erase_logs
DELETE FROM log WHERE job_id = :id

-- name: erase_happenings
DELETE FROM outbox WHERE job_id = :id

-- name: erase_deliveries
DELETE FROM delivery WHERE job_id = :id
