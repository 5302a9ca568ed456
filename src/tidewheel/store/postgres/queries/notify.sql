-- name: lock_owner
-- Whoever counts what an owner has, and then adds to it, does so alone.
SELECT pg_advisory_xact_lock(8437, hashtext(coalesce($1::text, '')))

-- name: count_channels
SELECT count(*) FROM tidewheel.channel WHERE coalesce(tenant, '') = coalesce($1::text, '')

-- name: count_subscriptions
SELECT count(*)
  FROM tidewheel.channel
  JOIN tidewheel.subscription ON subscription.channel = channel.id
 WHERE coalesce(channel.tenant, '') = coalesce($1::text, '')

-- name: add_channel
INSERT INTO tidewheel.channel (id, tenant, name, type, shown, address, secret, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, tidewheel.now())
    ON CONFLICT DO NOTHING
RETURNING id, tenant, name, type, shown, disabled, created_at

-- name: channels
SELECT id, tenant, name, type, shown, disabled, created_at
  FROM tidewheel.channel
 WHERE $1::text IS NULL OR tenant = $1
 ORDER BY name COLLATE "C", id

-- name: channel_named
-- Kept until the subscription to it is stored.
SELECT id FROM tidewheel.channel WHERE coalesce(tenant, '') = coalesce($1::text, '') AND name = $2 FOR KEY SHARE

-- name: lock_channel
SELECT id FROM tidewheel.channel WHERE id = $1 AND ($2::text IS NULL OR tenant = $2) FOR UPDATE

-- name: forget_deliveries
DELETE FROM tidewheel.delivery WHERE channel = $1

-- name: forget_subscriptions
DELETE FROM tidewheel.subscription WHERE channel = $1

-- name: remove_channel
DELETE FROM tidewheel.channel WHERE id = $1

-- name: enable_channel
UPDATE tidewheel.channel SET disabled = NULL
 WHERE id = $1 AND ($2::text IS NULL OR tenant = $2)
RETURNING id, tenant, name, type, shown, disabled, created_at

-- name: rotate_secret
UPDATE tidewheel.channel SET old_secret = secret, old_until = tidewheel.now() + $4::interval, secret = $3
 WHERE id = $1 AND ($2::text IS NULL OR tenant = $2) AND type = 'webhook'
RETURNING id, tenant, name, type, shown, disabled, created_at

-- name: has_channel
SELECT EXISTS (SELECT FROM tidewheel.channel WHERE id = $1 AND ($2::text IS NULL OR tenant = $2))

-- name: disable_channel
UPDATE tidewheel.channel SET disabled = $2
 WHERE id = (SELECT channel FROM tidewheel.delivery WHERE delivery.id = $1) AND disabled IS NULL

-- name: fail_pending
-- All that still waits for the channel of a delivery.
UPDATE tidewheel.delivery SET state = 'failed', ended_at = tidewheel.now(), answer = $2
 WHERE channel = (SELECT channel FROM tidewheel.delivery WHERE delivery.id = $1) AND state = 'pending'

-- name: subscribe
INSERT INTO tidewheel.subscription (id, channel, tenant, kind, outcomes, definition, created_at, late_at, late_id)
VALUES ($1, $2, $3, $4, $5, $6, tidewheel.now(), tidewheel.now() - $7::interval,
        CASE WHEN $7::interval IS NOT NULL THEN 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid END)
RETURNING id, channel, definition, created_at

-- name: subscriptions
SELECT subscription.id, subscription.channel, subscription.definition, subscription.created_at
  FROM tidewheel.subscription
  JOIN tidewheel.channel ON channel.id = subscription.channel
 WHERE ($1::text IS NULL OR channel.tenant = $1) AND ($2::boolean OR channel.disabled IS NULL)
 ORDER BY subscription.id

-- name: unsubscribe
DELETE FROM tidewheel.subscription
 USING tidewheel.channel
 WHERE subscription.id = $1 AND channel.id = subscription.channel AND ($2::text IS NULL OR channel.tenant = $2)
RETURNING subscription.id

-- name: happenings
-- Of the events that are known here: others are left to those who know them. Locked, so that of two who spread at once the
-- second takes others.
SELECT outbox.id, outbox.at, outbox.event, coalesce(outbox.tenant, tenant.name, owner.name), lane.queue, lane.kind,
       outbox.job_id, outbox.token, outbox.schedule_id, schedule.name, outbox.failures, outbox.losses, outbox.due_at,
       outbox.started_at, outbox.labels, outbox.error, outbox.detail,
       coalesce(
           (SELECT history.options ->> 'traceparent' FROM tidewheel.job_history AS history
             WHERE history.id = outbox.job_id AND history.finished_at = outbox.at),
           (SELECT job.options ->> 'traceparent' FROM tidewheel.job WHERE job.id = outbox.job_id)),
       CASE WHEN outbox.event = 'missed' THEN schedule.definition END,
       CASE WHEN outbox.event = 'succeeded' AND outbox.schedule_id IS NOT NULL THEN coalesce((
            SELECT history.state = 'dead'
              FROM tidewheel.occurrence
              JOIN tidewheel.job_history AS history ON history.id = occurrence.job_id
             WHERE occurrence.schedule_id = outbox.schedule_id AND occurrence.fire_at < outbox.due_at
             ORDER BY occurrence.fire_at DESC
             LIMIT 1), false) ELSE false END
       OR CASE WHEN outbox.event = 'succeeded' AND outbox.token > 1 THEN EXISTS (
            SELECT FROM tidewheel.attempt
             WHERE attempt.job_id = outbox.job_id
               AND attempt.cause IN ('failed', 'gave_up', 'crashed', 'lost', 'quarantined', 'unstorable')) ELSE false END
  FROM tidewheel.outbox
  LEFT JOIN tidewheel.lane ON lane.id = outbox.lane
  LEFT JOIN tidewheel.tenant ON tenant.id = lane.tenant
  LEFT JOIN tidewheel.schedule ON schedule.id = outbox.schedule_id
  LEFT JOIN tidewheel.tenant AS owner ON owner.id = schedule.tenant
 WHERE outbox.event = ANY ($2::text[])
 ORDER BY outbox.id
 LIMIT $1
   FOR UPDATE OF outbox SKIP LOCKED

-- name: forget_happenings
DELETE FROM tidewheel.outbox WHERE id = ANY ($1::bigint[])

-- name: add_deliveries
-- To channels that are there; in the order of the keys, as all who add several do.
INSERT INTO tidewheel.delivery (id, channel, key, event, job_id, tenant, state, created_at, begun_at, next_at, body, text)
SELECT line.id, line.channel, line.key, line.event, line.job_id, line.tenant, 'pending', tidewheel.now(), tidewheel.now(),
       tidewheel.now(), line.body, line.text
  FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::text[], $8::text[])
       AS line (id, channel, key, event, job_id, tenant, body, text)
 WHERE EXISTS (SELECT FROM tidewheel.channel WHERE channel.id = line.channel FOR KEY SHARE)
 ORDER BY line.channel, line.key
    ON CONFLICT (channel, key) DO NOTHING

-- name: late_wishes
-- Locked, so that of two who look at once the second takes others.
SELECT subscription.id, subscription.channel, subscription.definition, subscription.created_at, late_at, late_id,
       channel.disabled IS NULL AS heard
  FROM tidewheel.subscription
  JOIN tidewheel.channel ON channel.id = subscription.channel
 WHERE late_at IS NOT NULL
 ORDER BY subscription.id
   FOR UPDATE OF subscription SKIP LOCKED

-- name: late_jobs
-- The next in line of those that wait, not begun, since $5 or longer: in the lanes, and for each limit. As `happenings`.
WITH line AS MATERIALIZED (
    SELECT head.id, head.run_at
      FROM tidewheel.lane
      JOIN tidewheel.tenant ON tenant.id = lane.tenant
     CROSS JOIN generate_series(0, 2) AS level
     CROSS JOIN LATERAL (
           SELECT job.id, job.run_at FROM tidewheel.job
            WHERE job.state = 'queued' AND job.lane = lane.id AND job.priority = level
              AND (job.run_at, job.id) > ($3, $4) AND job.run_at <= $5 AND job.token = 0
            ORDER BY job.run_at, job.id
            LIMIT $6) AS head
     WHERE NOT lane.retried AND ($1::text IS NULL OR tenant.name = $1) AND ($2::text IS NULL OR lane.kind = $2)
    UNION ALL
    SELECT head.id, head.run_at
      FROM tidewheel.limit_key
      JOIN tidewheel.tenant ON tenant.id = limit_key.tenant
     CROSS JOIN generate_series(0, 2) AS level
     CROSS JOIN LATERAL (
           SELECT job.id, job.run_at FROM tidewheel.job
            WHERE job.state = 'limited' AND job.tenant = limit_key.tenant AND job.waits_for = limit_key.key
              AND job.priority = level AND (job.run_at, job.id) > ($3, $4) AND job.run_at <= $5 AND job.token = 0
            ORDER BY job.run_at, job.id
            LIMIT $6) AS head
     WHERE $1::text IS NULL OR tenant.name = $1
     ORDER BY run_at, id
     LIMIT $6
)
SELECT 0, tidewheel.now(), 'late', tenant.name, lane.queue, lane.kind, job.id, job.token, job.schedule_id, schedule.name,
       0, 0, job.due_at, NULL, job.labels, NULL, NULL, job.options ->> 'traceparent', NULL, false, line.run_at
  FROM line
 CROSS JOIN LATERAL (SELECT * FROM tidewheel.job WHERE job.id = line.id LIMIT 1) AS job
  JOIN tidewheel.lane ON lane.id = job.lane
  JOIN tidewheel.tenant ON tenant.id = job.tenant
  LEFT JOIN tidewheel.schedule ON schedule.id = job.schedule_id
 ORDER BY line.run_at, line.id

-- name: told_until
UPDATE tidewheel.subscription SET late_at = $4, late_id = $5 WHERE id = $1 AND late_at = $2 AND late_id = $3

-- name: take_deliveries
-- A few of each channel, in turns: `place` is that in the line of a channel, `turn` that among all of its owner.
WITH busy AS MATERIALIZED (
    SELECT channel.id, channel.tenant, count(*) AS messages
      FROM unnest($4::uuid[]) AS busy (channel)
      JOIN tidewheel.channel ON channel.id = busy.channel
     GROUP BY channel.id
), line AS (
    SELECT channel.tenant, head.id, head.next_at,
           row_number() OVER (PARTITION BY channel.id ORDER BY head.next_at, head.id) + coalesce(busy.messages, 0) AS place
      FROM tidewheel.channel
      LEFT JOIN busy ON busy.id = channel.id
     CROSS JOIN LATERAL (
           SELECT delivery.id, delivery.next_at
             FROM tidewheel.delivery
            WHERE delivery.channel = channel.id AND state = 'pending' AND next_at <= tidewheel.now()
            ORDER BY next_at
            LIMIT greatest($1::integer - coalesce(busy.messages, 0), 0)) AS head
), waiting AS (
    SELECT line.id, line.next_at,
           row_number() OVER (PARTITION BY line.tenant ORDER BY line.place, line.next_at)
           + (SELECT coalesce(sum(messages), 0) FROM busy WHERE busy.tenant IS NOT DISTINCT FROM line.tenant) AS turn
      FROM line
), due AS MATERIALIZED (
    SELECT id
      FROM tidewheel.delivery
     WHERE id = ANY (ARRAY(SELECT id FROM waiting WHERE turn <= $2 ORDER BY turn, next_at LIMIT $3))
       AND state = 'pending' AND next_at <= tidewheel.now()
       FOR UPDATE SKIP LOCKED
)
UPDATE tidewheel.delivery SET tries = tries + 1, next_at = tidewheel.now() + $5::interval
  FROM due, tidewheel.channel
 WHERE delivery.id = due.id AND channel.id = delivery.channel
RETURNING delivery.id, delivery.channel, tries, begun_at, key, body, text, channel.type, channel.address, channel.secret,
       CASE WHEN channel.old_until > tidewheel.now() THEN channel.old_secret END

-- name: test_channel
WITH made AS (
    INSERT INTO tidewheel.delivery (id, channel, key, event, tenant, state, created_at, begun_at, next_at, body, text)
    SELECT $1, channel.id, $5, $4, channel.tenant, 'pending', tidewheel.now(), tidewheel.now(), tidewheel.now(), $6, $7
      FROM tidewheel.channel
     WHERE channel.id = $2 AND ($3::text IS NULL OR channel.tenant = $3)
       FOR KEY SHARE
    RETURNING *
)
SELECT made.id, key, channel.name, channel.id, event, made.tenant, state, tries, answer, made.created_at, next_at, ended_at,
       body, attempts
  FROM made
  JOIN tidewheel.channel ON channel.id = made.channel

-- name: close_delivery
UPDATE tidewheel.delivery
   SET state = $3, next_at = coalesce($4::timestamptz, next_at), answer = $5, attempts = attempts || $6::jsonb,
       ended_at = CASE WHEN $3::text <> 'pending' THEN tidewheel.now() END
 WHERE id = $1 AND state = 'pending' AND tries = $2 AND begun_at = $7
RETURNING id

-- name: deliveries
SELECT delivery.id, key, channel.name, channel.id, event, delivery.tenant, state, tries, answer, delivery.created_at,
       next_at, ended_at, body, attempts
  FROM tidewheel.delivery
  JOIN tidewheel.channel ON channel.id = delivery.channel
 WHERE delivery.id < $1 AND ($2::text IS NULL OR channel.tenant = $2) AND ($3::text IS NULL OR state = $3)
 ORDER BY delivery.id DESC
 LIMIT $4

-- name: resend
UPDATE tidewheel.delivery
   SET state = 'pending', tries = 0, begun_at = tidewheel.now(), next_at = tidewheel.now(), ended_at = NULL
  FROM tidewheel.channel
 WHERE delivery.id = $1 AND channel.id = delivery.channel AND ($2::text IS NULL OR channel.tenant = $2)
RETURNING delivery.id, key, channel.name, channel.id, event, delivery.tenant, state, tries, answer,
       delivery.created_at, next_at, ended_at, body, attempts

-- name: retire_deliveries
WITH gone AS (
    DELETE FROM tidewheel.delivery
     WHERE ctid = ANY (ARRAY(
           SELECT ctid FROM tidewheel.delivery WHERE ended_at < tidewheel.now() - $1::interval LIMIT $2))
       AND ended_at < tidewheel.now() - $1::interval
    RETURNING 1
)
SELECT count(*) FROM gone
