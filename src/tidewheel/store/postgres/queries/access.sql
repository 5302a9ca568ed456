-- name: lock_first_key
SELECT pg_advisory_xact_lock(8433, 4)

-- name: add_api_key
INSERT INTO tidewheel.api_key (
       id, prefix, digest, tenant, role, name, created_by, rate, burst, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, tidewheel.now(), tidewheel.now() + $10::interval)

-- name: has_api_keys
SELECT EXISTS (SELECT FROM tidewheel.api_key)

-- name: find_api_key
SELECT id, prefix, name, role, tenant, created_at, created_by, expires_at, last_used_at, revoked_at, rate, burst,
       digest, tidewheel.now() AS now
  FROM tidewheel.api_key
 WHERE prefix = $1

-- name: get_api_key
SELECT id, prefix, name, role, tenant, created_at, created_by, expires_at, last_used_at, revoked_at, rate, burst
  FROM tidewheel.api_key
 WHERE id = $1

-- name: api_keys
SELECT id, prefix, name, role, tenant, created_at, created_by, expires_at, last_used_at, revoked_at, rate, burst
  FROM tidewheel.api_key
 WHERE id < $1 AND ($2::text IS NULL OR tenant = $2)
 ORDER BY id DESC
 LIMIT $3

-- name: note_api_key_use
UPDATE tidewheel.api_key
   SET last_used_at = tidewheel.now()
 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= tidewheel.now() - $2::interval)

-- name: revoke_api_key
UPDATE tidewheel.api_key
   SET revoked_at = tidewheel.now()
 WHERE id = $1 AND revoked_at IS NULL AND ($2::text IS NULL OR tenant = $2)
RETURNING prefix, tenant

-- name: set_tenant
INSERT INTO tidewheel.tenant (name, weight, max_queued, max_payload, keep_logs)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (name) DO UPDATE
   SET weight = excluded.weight, max_queued = excluded.max_queued, max_payload = excluded.max_payload,
       keep_logs = excluded.keep_logs

-- name: count_unfinished
-- Rows compared as a whole, so that only the index on them serves.
SELECT count(*)
  FROM (SELECT FROM tidewheel.job
         WHERE (tenant, id) >= ($1, '00000000-0000-0000-0000-000000000000'::uuid)
           AND (tenant, id) <= ($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
         ORDER BY tenant, id
         LIMIT $2) AS counted

-- name: add_audit
INSERT INTO tidewheel.audit (id, at, actor, role, key_id, tenant, action, subject, detail)
SELECT entry.id, tidewheel.now(), entry.actor, entry.role, entry.key_id, entry.tenant, entry.action, entry.subject,
       entry.detail::json
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[])
       AS entry (id, actor, role, key_id, tenant, action, subject, detail)

-- name: audited_all
-- At most $7 entries are looked at; `audit_edge_all` tells where to go on.
SELECT id, at, actor, role, key_id, tenant, action, subject, detail
  FROM (SELECT * FROM tidewheel.audit WHERE id < $1 ORDER BY id DESC LIMIT $7) AS seen
 WHERE ($2::text IS NULL OR action = $2) AND ($3::text IS NULL OR subject = $3) AND ($4::uuid IS NULL OR key_id = $4)
   AND ($5::timestamptz IS NULL OR at >= $5) AND ($6::timestamptz IS NULL OR at < $6)
 ORDER BY id DESC
 LIMIT $8

-- name: audit_edge_all
SELECT id FROM tidewheel.audit WHERE id < $1 ORDER BY id DESC OFFSET $2 - 1 LIMIT 1

-- name: audited_tenant
SELECT id, at, actor, role, key_id, tenant, action, subject, detail
  FROM (SELECT * FROM tidewheel.audit WHERE tenant = $9 AND id < $1 ORDER BY id DESC LIMIT $7) AS seen
 WHERE ($2::text IS NULL OR action = $2) AND ($3::text IS NULL OR subject = $3) AND ($4::uuid IS NULL OR key_id = $4)
   AND ($5::timestamptz IS NULL OR at >= $5) AND ($6::timestamptz IS NULL OR at < $6)
 ORDER BY id DESC
 LIMIT $8

-- name: audit_edge_tenant
SELECT id FROM tidewheel.audit WHERE tenant = $3 AND id < $1 ORDER BY id DESC OFFSET $2 - 1 LIMIT 1

-- name: retire_audit
-- Ids carry about the time at which they were made, so the old ones come first.
WITH gone AS (
    DELETE FROM tidewheel.audit
     WHERE id = ANY (ARRAY(SELECT id FROM tidewheel.audit ORDER BY id LIMIT $2))
       AND at < tidewheel.now() - $1::interval
    RETURNING 1
)
SELECT count(*) FROM gone

-- name: erase_job
UPDATE tidewheel.job_history AS job
   SET args = '{}', labels = NULL, options = NULL, limit_keys = NULL, unique_key = NULL, idempotency_key = NULL,
       result = NULL, result_location = NULL,
       error = CASE WHEN error IS NOT NULL THEN json_build_object('reason', error ->> 'reason') END,
       erased_at = tidewheel.now(), updated_at = tidewheel.now()
  FROM tidewheel.tenant
 WHERE job.id = $1 AND job.finished_at >= $2::timestamptz - interval '1 day'
   AND tenant.id = job.tenant AND ($3::text IS NULL OR tenant.name = $3)
RETURNING tenant.name

-- name: erase_attempts
UPDATE tidewheel.attempt
   SET error = json_build_object('reason', error ->> 'reason')
 WHERE job_id = $1 AND error IS NOT NULL

-- name: erase_notes
DELETE FROM tidewheel.run_note WHERE job_id = $1

-- name: erase_logs
DELETE FROM tidewheel.log WHERE job_id = $1

-- name: erase_happenings
-- Before the messages: what someone makes of it meanwhile is waited for here, and seen by the next statement.
DELETE FROM tidewheel.outbox WHERE job_id = $1

-- name: erase_deliveries
DELETE FROM tidewheel.delivery WHERE job_id = $1
