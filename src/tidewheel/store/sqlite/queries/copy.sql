-- Reading all that is stored, in an order that stays the same.

-- name: copy_counts
SELECT 'tenant', count(*) FROM tenant
UNION ALL SELECT 'lane', count(*) FROM lane
UNION ALL SELECT 'worker', count(*) FROM worker
UNION ALL SELECT 'gate', count(*) FROM gate
UNION ALL SELECT 'queue_cap', count(*) FROM queue_cap
UNION ALL SELECT 'limit_rule', count(*) FROM limit_rule
UNION ALL SELECT 'limit_key', count(*) FROM limit_key
UNION ALL SELECT 'api_key', count(*) FROM api_key
UNION ALL SELECT 'secret', count(*) FROM secret
UNION ALL SELECT 'audit', count(*) FROM audit
UNION ALL SELECT 'channel', count(*) FROM channel
UNION ALL SELECT 'subscription', count(*) FROM subscription
UNION ALL SELECT 'delivery', count(*) FROM delivery
UNION ALL SELECT 'outbox', count(*) FROM outbox
UNION ALL SELECT 'alert', count(*) FROM alert
UNION ALL SELECT 'maintenance', count(*) FROM maintenance
UNION ALL SELECT 'artifact', count(*) FROM artifact
UNION ALL SELECT 'artifact_grave', count(*) FROM artifact_grave
UNION ALL SELECT 'statistic', count(*) FROM statistic
UNION ALL SELECT 'ended', count(*) FROM ended
UNION ALL SELECT 'finished', count(*) FROM finished
UNION ALL SELECT 'idempotency', count(*) FROM idempotency
UNION ALL SELECT 'dependency', count(*) FROM dependency
UNION ALL SELECT 'ended_parent', count(*) FROM ended_parent
UNION ALL SELECT 'attempt', count(*) FROM attempt
UNION ALL SELECT 'run_note', count(*) FROM run_note
UNION ALL SELECT 'log', count(*) FROM log
UNION ALL SELECT 'job_history', count(*) FROM job_history
UNION ALL SELECT 'occurrence', count(*) FROM occurrence
UNION ALL SELECT 'schedule', count(*) FROM schedule
UNION ALL SELECT 'job', count(*) FROM job

-- name: copy_changes
-- What differs after a change that leaves the numbers of rows as they are. Remainders keep the sums within 63 bits.
SELECT (SELECT sum(updated_at % 4294967296) FROM job), (SELECT sum(token) FROM job),
       (SELECT sum(updated_at % 4294967296) FROM job_history), (SELECT sum(updated_at % 4294967296) FROM schedule),
       (SELECT sum(version) FROM schedule), (SELECT sum(fired) FROM schedule), (SELECT max(updated_at) FROM run_note),
       (SELECT max(id) FROM log), (SELECT max(recorded_at) FROM occurrence), (SELECT hex(max(id)) FROM audit),
       (SELECT sum(used_at % 4294967296) FROM artifact), (SELECT sum(jobs) FROM statistic),
       (SELECT sum(beat) FROM worker), (SELECT max(revoked_at) FROM api_key),
       (SELECT sum(tries) FROM delivery), (SELECT max(ended_at) FROM delivery)

-- name: copy_alive
SELECT count(*) FROM worker WHERE alive AND lease_until > :now

-- name: copy_epoch
SELECT meta.epoch,
       min(:now, coalesce((SELECT min(finished_at) FROM job_history), :now),
           coalesce((SELECT min(ended_at) FROM attempt), :now), coalesce((SELECT min(stored_at) FROM log), :now)),
       coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox'), 0)
  FROM meta

-- name: copy_tenant
SELECT * FROM tenant ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_lane
SELECT * FROM lane ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_worker
SELECT * FROM worker ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_gate
SELECT * FROM gate ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_queue_cap
SELECT * FROM queue_cap ORDER BY tenant, queue LIMIT -1 OFFSET :skip

-- name: copy_limit_rule
SELECT * FROM limit_rule ORDER BY name LIMIT -1 OFFSET :skip

-- name: copy_limit_key
SELECT * FROM limit_key ORDER BY tenant, key LIMIT -1 OFFSET :skip

-- name: copy_api_key
SELECT * FROM api_key ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_secret
SELECT * FROM secret ORDER BY tenant, name LIMIT -1 OFFSET :skip

-- name: copy_audit
SELECT * FROM audit ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_channel
SELECT * FROM channel ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_subscription
SELECT * FROM subscription ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_delivery
SELECT * FROM delivery ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_alert
SELECT * FROM alert ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_maintenance
SELECT * FROM maintenance ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_outbox
SELECT * FROM outbox ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_artifact
SELECT * FROM artifact ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_artifact_grave
SELECT * FROM artifact_grave ORDER BY digest LIMIT -1 OFFSET :skip

-- name: copy_statistic
SELECT * FROM statistic ORDER BY hour, at, lane, state LIMIT -1 OFFSET :skip

-- name: copy_ended
SELECT * FROM ended ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_idempotency
-- A key is looked at a day after it came.
SELECT tenant, key, fingerprint, job_id, check_at - 86400000000 AS created_at
  FROM idempotency
 ORDER BY tenant, key
 LIMIT -1 OFFSET :skip

-- name: copy_dependency
SELECT * FROM dependency ORDER BY child, parent LIMIT -1 OFFSET :skip

-- name: copy_finished
SELECT * FROM finished ORDER BY queue, state LIMIT -1 OFFSET :skip

-- name: copy_ended_parent
SELECT * FROM ended_parent ORDER BY parent LIMIT -1 OFFSET :skip

-- name: copy_attempt
SELECT * FROM attempt ORDER BY job_id, token LIMIT -1 OFFSET :skip

-- name: copy_run_note
SELECT * FROM run_note ORDER BY job_id LIMIT -1 OFFSET :skip

-- name: copy_log
SELECT * FROM log ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_job_history
SELECT * FROM job_history ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_occurrence
SELECT * FROM occurrence ORDER BY schedule_id, fire_at LIMIT -1 OFFSET :skip

-- name: copy_schedule
SELECT * FROM schedule ORDER BY id LIMIT -1 OFFSET :skip

-- name: copy_job
SELECT * FROM job ORDER BY id LIMIT -1 OFFSET :skip

