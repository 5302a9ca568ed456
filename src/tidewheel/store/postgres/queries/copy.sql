-- Taking in all that another store has.

-- name: copy_counts
-- The keels of two tables are left out.
SELECT 'tenant', count(*) FROM tidewheel.tenant
UNION ALL SELECT 'lane', count(*) FROM tidewheel.lane
UNION ALL SELECT 'worker', count(*) FROM tidewheel.worker
UNION ALL SELECT 'gate', count(*) FROM tidewheel.gate
UNION ALL SELECT 'queue_cap', count(*) FROM tidewheel.queue_cap
UNION ALL SELECT 'limit_rule', count(*) FROM tidewheel.limit_rule
UNION ALL SELECT 'limit_key', count(*) FROM tidewheel.limit_key
UNION ALL SELECT 'api_key', count(*) FROM tidewheel.api_key
UNION ALL SELECT 'secret', count(*) FROM tidewheel.secret
UNION ALL SELECT 'audit', count(*) FROM tidewheel.audit
UNION ALL SELECT 'channel', count(*) FROM tidewheel.channel
UNION ALL SELECT 'subscription', count(*) FROM tidewheel.subscription
UNION ALL SELECT 'delivery', count(*) FROM tidewheel.delivery
UNION ALL SELECT 'outbox', count(*) FROM tidewheel.outbox
UNION ALL SELECT 'alert', count(*) FROM tidewheel.alert
UNION ALL SELECT 'maintenance', count(*) FROM tidewheel.maintenance
UNION ALL SELECT 'artifact', count(*) FROM tidewheel.artifact
UNION ALL SELECT 'artifact_grave', count(*) FROM tidewheel.artifact_grave
UNION ALL SELECT 'statistic', count(*) FROM tidewheel.statistic
UNION ALL SELECT 'ended', count(*) FROM tidewheel.ended
UNION ALL SELECT 'finished', count(*) FROM tidewheel.finished
UNION ALL SELECT 'idempotency', count(*) FROM tidewheel.idempotency
UNION ALL SELECT 'dependency', count(*) FROM tidewheel.dependency WHERE child <> parent
UNION ALL SELECT 'ended_parent', count(*) FROM tidewheel.ended_parent
UNION ALL SELECT 'attempt', count(*) FROM tidewheel.attempt
UNION ALL SELECT 'run_note', count(*) FROM tidewheel.run_note
UNION ALL SELECT 'log', count(*) FROM tidewheel.log
UNION ALL SELECT 'job_history', count(*) FROM tidewheel.job_history
UNION ALL SELECT 'occurrence', count(*) FROM tidewheel.occurrence
UNION ALL SELECT 'schedule', count(*) FROM tidewheel.schedule
UNION ALL SELECT 'job', count(*) FROM tidewheel.job WHERE lane <> 0

-- name: copy_mark
SELECT name FROM tidewheel.migration WHERE number = $1 FOR UPDATE

-- name: copy_unmark
DELETE FROM tidewheel.migration WHERE number = $1

-- name: copy_clear
TRUNCATE tidewheel.tenant, tidewheel.lane, tidewheel.worker, tidewheel.gate, tidewheel.queue_cap, tidewheel.limit_rule,
         tidewheel.limit_key, tidewheel.api_key, tidewheel.secret, tidewheel.audit, tidewheel.artifact, tidewheel.artifact_grave,
         tidewheel.channel, tidewheel.subscription, tidewheel.delivery, tidewheel.outbox, tidewheel.alert, tidewheel.maintenance,
         tidewheel.idempotency, tidewheel.ended_parent,
         tidewheel.attempt, tidewheel.run_note, tidewheel.log, tidewheel.log_fresh, tidewheel.job_history,
         tidewheel.occurrence, tidewheel.schedule, tidewheel.statistic, tidewheel.ended, tidewheel.finished

-- name: copy_clear_jobs
DELETE FROM tidewheel.job WHERE lane <> 0

-- name: copy_clear_edges
DELETE FROM tidewheel.dependency WHERE child <> parent

-- name: copy_clear_phrases
DELETE FROM tidewheel.phrase WHERE period > 0

-- name: copy_clear_moments
DELETE FROM tidewheel.phrase_moment WHERE moment > 0

-- name: copy_days
SELECT tidewheel.prepare_days($1::date, (tidewheel.now() AT TIME ZONE 'UTC')::date - $1::date + 7)

-- name: copy_columns
SELECT attname, format_type(atttypid, NULL)
  FROM pg_attribute
 WHERE attrelid = ('tidewheel.' || quote_ident($1))::regclass AND attnum > 0 AND NOT attisdropped

-- name: copy_kinds
SELECT id, kind FROM tidewheel.lane WHERE id = ANY ($1::integer[])

-- name: copy_fresh
-- Words of lines that came are still to be indexed.
INSERT INTO tidewheel.log_fresh (first_at, last_at, lines, chars, jobs, tokens, firsts, lanes)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: copy_finish
-- Numbers go on after the last one that came, or ever was in the outbox; finished jobs are counted by day, and lanes are to
-- be read again. Fencing tokens of the source are all lower than those that come from now on.
WITH numbered AS (
    SELECT setval('tidewheel.tenant_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM tidewheel.tenant), false),
           setval('tidewheel.lane_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM tidewheel.lane), false),
           setval('tidewheel.outbox_id_seq', $2::bigint + 1, false)
), counted AS (
    INSERT INTO tidewheel.rollup (day, lane, state, jobs)
    SELECT (finished_at AT TIME ZONE 'UTC')::date, lane, state, count(*) FROM tidewheel.job_history GROUP BY 1, 2, 3
)
UPDATE tidewheel.meta SET epoch = greatest(epoch, $1) + 1, lanes = lanes + 1 FROM numbered
