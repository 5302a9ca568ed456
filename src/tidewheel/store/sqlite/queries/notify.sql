-- name: count_channels
SELECT count(*) FROM channel WHERE coalesce(tenant, '') = coalesce(:tenant, '')

-- name: count_subscriptions
SELECT count(*)
  FROM channel
 CROSS JOIN subscription ON subscription.channel = channel.id
 WHERE coalesce(channel.tenant, '') = coalesce(:tenant, '')

-- name: add_channel
INSERT INTO channel (id, tenant, name, type, shown, address, secret, created_at)
VALUES (:id, :tenant, :name, :type, :shown, :address, :secret, :now)
    ON CONFLICT DO NOTHING
RETURNING id, tenant, name, type, shown, disabled, created_at

-- name: channels
SELECT id, tenant, name, type, shown, disabled, created_at
  FROM channel
 WHERE :tenant IS NULL OR tenant = :tenant
 ORDER BY name, id

-- name: channel_named
SELECT id FROM channel WHERE coalesce(tenant, '') = coalesce(:tenant, '') AND name = :name

-- name: has_channel
SELECT EXISTS (SELECT 1 FROM channel WHERE id = :id AND (:tenant IS NULL OR tenant = :tenant))

-- name: forget_deliveries
DELETE FROM delivery WHERE channel = :id

-- name: forget_subscriptions
DELETE FROM subscription WHERE channel = :id

-- name: remove_channel
DELETE FROM channel WHERE id = :id

-- name: enable_channel
UPDATE channel SET disabled = NULL
 WHERE id = :id AND (:tenant IS NULL OR tenant = :tenant)
RETURNING id, tenant, name, type, shown, disabled, created_at

-- name: rotate_secret
UPDATE channel SET old_secret = secret, old_until = :until, secret = :secret
 WHERE id = :id AND (:tenant IS NULL OR tenant = :tenant) AND type = 'webhook'
RETURNING id, tenant, name, type, shown, disabled, created_at

-- name: disable_channel
UPDATE channel SET disabled = :why
 WHERE id = (SELECT channel FROM delivery WHERE id = :delivery) AND disabled IS NULL

-- name: fail_pending
-- All that still waits for the channel of a delivery.
UPDATE delivery SET state = 'failed', ended_at = :now, answer = :why
 WHERE channel = (SELECT channel FROM delivery WHERE id = :delivery) AND state = 'pending'

-- name: subscribe
INSERT INTO subscription (id, channel, tenant, kind, outcomes, definition, created_at, late_at, late_id)
VALUES (:id, :channel, :tenant, :kind, :outcomes, :definition, :now, :late_at, :late_id)
RETURNING id, channel, definition, created_at

-- name: subscriptions
SELECT subscription.id, subscription.channel, subscription.definition, subscription.created_at
  FROM subscription
 CROSS JOIN channel ON channel.id = subscription.channel
 WHERE (:tenant IS NULL OR channel.tenant = :tenant) AND (:all OR channel.disabled IS NULL)
 ORDER BY subscription.id

-- name: unsubscribe
DELETE FROM subscription
 WHERE id = :id AND EXISTS (
       SELECT 1 FROM channel WHERE channel.id = subscription.channel AND (:tenant IS NULL OR tenant = :tenant))
RETURNING id

-- name: happenings
-- Of the events that are known here: others are left to those who know them.
SELECT outbox.id, outbox.at, outbox.event, coalesce(outbox.tenant, tenant.name, owner.name), lane.queue, lane.kind,
       outbox.job_id, outbox.token, outbox.schedule_id, schedule.name, outbox.failures, outbox.losses, outbox.due_at,
       outbox.started_at, outbox.labels, outbox.error, outbox.detail,
       coalesce(
           (SELECT history.options ->> 'traceparent' FROM job_history AS history WHERE history.id = outbox.job_id),
           (SELECT job.options ->> 'traceparent' FROM job WHERE job.id = outbox.job_id)),
       CASE outbox.event WHEN 'missed' THEN schedule.definition END,
       CASE WHEN outbox.event = 'succeeded' AND outbox.schedule_id IS NOT NULL THEN coalesce((
            SELECT history.state = 'dead'
              FROM occurrence
             CROSS JOIN job_history AS history ON history.id = occurrence.job_id
             WHERE occurrence.schedule_id = outbox.schedule_id AND occurrence.fire_at < outbox.due_at
             ORDER BY occurrence.fire_at DESC
             LIMIT 1), 0) ELSE 0 END
       OR CASE WHEN outbox.event = 'succeeded' AND outbox.token > 1 THEN EXISTS (
            SELECT 1 FROM attempt
             WHERE attempt.job_id = outbox.job_id
               AND attempt.cause IN ('failed', 'gave_up', 'crashed', 'lost', 'quarantined', 'unstorable')) ELSE 0 END
  FROM outbox
  LEFT JOIN lane ON lane.id = outbox.lane
  LEFT JOIN tenant ON tenant.id = lane.tenant
  LEFT JOIN schedule ON schedule.id = outbox.schedule_id
  LEFT JOIN tenant AS owner ON owner.id = schedule.tenant
 WHERE outbox.event IN (SELECT value FROM json_each(:known))
 ORDER BY outbox.id
 LIMIT :limit

-- name: forget_happenings
DELETE FROM outbox WHERE id IN (SELECT value FROM json_each(:ids))

-- name: add_delivery
INSERT INTO delivery (id, channel, key, event, job_id, tenant, state, created_at, begun_at, next_at, body, text)
VALUES (:id, :channel, :key, :event, :job, :tenant, 'pending', :now, :now, :now, :body, :text)
    ON CONFLICT (channel, key) DO NOTHING

-- name: late_wishes
SELECT subscription.id, subscription.channel, subscription.definition, subscription.created_at, late_at, late_id,
       channel.disabled IS NULL
  FROM subscription
 CROSS JOIN channel ON channel.id = subscription.channel
 WHERE late_at IS NOT NULL
 ORDER BY subscription.id

-- name: late_jobs
-- The next in line of those that wait, not begun, since :until or longer: in the lanes, and for each limit. As `happenings`.
WITH line AS MATERIALIZED (
    SELECT job.id, job.run_at
      FROM lane
     CROSS JOIN tenant ON tenant.id = lane.tenant
     CROSS JOIN json_each('[0,1,2]') AS level
     CROSS JOIN job ON job.rowid IN (
           SELECT head.rowid FROM job AS head
            WHERE head.state = 'queued' AND head.lane = lane.id AND head.priority = level.value
              AND (head.run_at, head.id) > (:late_at, :late_id) AND head.run_at <= :until AND head.token = 0
            ORDER BY head.run_at, head.id
            LIMIT :limit)
     WHERE NOT lane.retried AND (:tenant IS NULL OR tenant.name = :tenant) AND (:kind IS NULL OR lane.kind = :kind)
    UNION ALL
    SELECT job.id, job.run_at
      FROM limit_key
     CROSS JOIN tenant ON tenant.id = limit_key.tenant
     CROSS JOIN json_each('[0,1,2]') AS level
     CROSS JOIN job ON job.rowid IN (
           SELECT head.rowid FROM job AS head
            WHERE head.state = 'limited' AND head.tenant = limit_key.tenant AND head.waits_for = limit_key.key
              AND head.priority = level.value
              AND (head.run_at, head.id) > (:late_at, :late_id) AND head.run_at <= :until AND head.token = 0
            ORDER BY head.run_at, head.id
            LIMIT :limit)
     WHERE :tenant IS NULL OR tenant.name = :tenant
     ORDER BY 2, 1
     LIMIT :limit
)
SELECT 0, :now, 'late', tenant.name, lane.queue, lane.kind, job.id, job.token, job.schedule_id, schedule.name,
       0, 0, job.due_at, NULL, job.labels, NULL, NULL, job.options ->> 'traceparent', NULL, 0, line.run_at
  FROM line
 CROSS JOIN job ON job.id = line.id
 CROSS JOIN lane ON lane.id = job.lane
 CROSS JOIN tenant ON tenant.id = job.tenant
  LEFT JOIN schedule ON schedule.id = job.schedule_id
 ORDER BY line.run_at, line.id

-- name: told_until
UPDATE subscription SET late_at = :late_at, late_id = :late_id WHERE id = :id

-- name: due_deliveries
-- A few of each channel, in turns: `place` is that in the line of a channel, `turn` that among all of its owner.
WITH busy AS MATERIALIZED (
    SELECT channel.id, coalesce(channel.tenant, '') AS owner, count(*) AS messages
      FROM json_each(:busy) AS named
     CROSS JOIN channel ON channel.id = unhex(named.value)
     GROUP BY channel.id
), line AS MATERIALIZED (
    SELECT coalesce(channel.tenant, '') AS owner, delivery.id, delivery.next_at,
           row_number() OVER (PARTITION BY channel.id ORDER BY delivery.next_at, delivery.id)
           + coalesce((SELECT messages FROM busy WHERE busy.id = channel.id), 0) AS place
      FROM channel
     CROSS JOIN delivery ON delivery.id IN (
           SELECT id FROM delivery AS head
            WHERE head.channel = channel.id AND head.state = 'pending' AND head.next_at <= :now
            ORDER BY head.next_at
            LIMIT :share)
), waiting AS (
    SELECT line.id, line.next_at,
           row_number() OVER (PARTITION BY line.owner ORDER BY line.place, line.next_at)
           + coalesce((SELECT sum(messages) FROM busy WHERE busy.owner = line.owner), 0) AS turn
      FROM line
     WHERE line.place <= :share
)
SELECT id FROM waiting WHERE turn <= :owner_share ORDER BY turn, next_at LIMIT :limit

-- name: take_delivery
UPDATE delivery SET tries = tries + 1, next_at = :until WHERE id = :id AND state = 'pending'

-- name: parcel
SELECT delivery.id, delivery.channel, tries, begun_at, key, body, text, channel.type, channel.address, channel.secret,
       iif(channel.old_until > :now, channel.old_secret, NULL)
  FROM delivery
 CROSS JOIN channel ON channel.id = delivery.channel
 WHERE delivery.id = :id

-- name: close_delivery
UPDATE delivery
   SET state = :state, next_at = coalesce(:next_at, next_at), answer = :answer,
       attempts = json_insert(attempts, '$[#]', json(:attempt)),
       ended_at = CASE WHEN :state <> 'pending' THEN :now END
 WHERE id = :id AND state = 'pending' AND tries = :tries AND begun_at = :begun_at
RETURNING id

-- name: deliveries
SELECT delivery.id, key, channel.name, channel.id, event, delivery.tenant, state, tries, answer, delivery.created_at,
       next_at, ended_at, body, attempts
  FROM delivery
 CROSS JOIN channel ON channel.id = delivery.channel
 WHERE delivery.id < :after AND (:tenant IS NULL OR channel.tenant = :tenant) AND (:state IS NULL OR state = :state)
 ORDER BY delivery.id DESC
 LIMIT :limit

-- name: test_channel
INSERT INTO delivery (id, channel, key, event, tenant, state, created_at, begun_at, next_at, body, text)
SELECT :id, id, :key, :event, tenant, 'pending', :now, :now, :now, :body, :text
  FROM channel
 WHERE id = :channel AND (:tenant IS NULL OR tenant = :tenant)
RETURNING id, key, (SELECT name FROM channel WHERE channel.id = delivery.channel), channel, event, tenant, state, tries,
       answer, created_at, next_at, ended_at, body, attempts

-- name: resend
UPDATE delivery SET state = 'pending', tries = 0, begun_at = :now, next_at = :now, ended_at = NULL
 WHERE id = :id AND EXISTS (
       SELECT 1 FROM channel WHERE channel.id = delivery.channel AND (:tenant IS NULL OR tenant = :tenant))
RETURNING id, key, (SELECT name FROM channel WHERE channel.id = delivery.channel), channel, event, tenant, state, tries,
       answer, created_at, next_at, ended_at, body, attempts

-- name: retire_deliveries
DELETE FROM delivery WHERE id IN (SELECT id FROM delivery WHERE ended_at < :until LIMIT :limit)
