-- name: add_jobs
-- A job may leave out all after its options, and is then due now. run_at is never before now.
-- Rows are written in the order of their ids, which is then also that of their rowids.
INSERT INTO job (
       id, lane, tenant, priority, state, run_at, due_at, args, labels, options, start_by, limit_keys,
       idempotency_key, unique_key, schedule_id, waits, on_parent_failure, created_at, updated_at)
SELECT unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3, iif(value ->> 13 > 0, 'blocked', 'queued'), max(coalesce(value ->> 7, :now), :now),
       coalesce(value ->> 7, :now), value ->> 4, value ->> 5, value ->> 6, value ->> 8, value ->> 9, value ->> 10,
       value ->> 11, unhex(value ->> 12), coalesce(value ->> 13, 0), value ->> 14, :now, :now
  FROM json_each(:jobs)

-- name: add_plain_jobs
-- The same for jobs all of which leave that out.
INSERT INTO job (
       id, lane, tenant, priority, state, run_at, due_at, args, labels, options, created_at, updated_at)
SELECT unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3, 'queued', :now, :now, value ->> 4, value ->> 5,
       value ->> 6, :now, :now
  FROM json_each(:jobs)

-- name: find_key
SELECT fingerprint, job_id FROM idempotency WHERE tenant = :tenant AND key = :key

-- name: seen_keys
SELECT asked.value ->> 0, asked.value ->> 1
  FROM json_each(:asked) AS asked
 CROSS JOIN tenant ON tenant.name = asked.value ->> 0
 CROSS JOIN idempotency ON idempotency.tenant = tenant.id AND idempotency.key = asked.value ->> 1

-- name: add_key
INSERT INTO idempotency (tenant, key, fingerprint, job_id, check_at) VALUES (:tenant, :key, :fingerprint, :job, :check_at)

-- name: find_unique
SELECT id, json_array(rowid, token, state, lane, priority, json(limit_keys), CASE WHEN awaited THEN hex(id) END)
  FROM job
 WHERE tenant = :tenant AND unique_key = :key AND unique_key IS NOT NULL
