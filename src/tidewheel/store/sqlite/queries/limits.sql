-- name: standings
-- How the limits of the named keys stand, of those that have one.
SELECT json_group_array(json_array(limit_key.tenant, limit_key.key, json_array(
       limit_key.most, limit_key.running, limit_key.starts, limit_key.seconds, limit_key.burst, limit_key.tokens,
       limit_key.filled_at, limit_key.look_at, limit_key.passed)))
  FROM json_each(:keys) AS named
 CROSS JOIN limit_key ON limit_key.tenant = named.value ->> 0 AND limit_key.key = named.value ->> 1

-- name: standings_and_waiters
-- The same for all of the named keys, with or without a limit, and whether someone waits for it.
SELECT json_group_array(json_array(named.tenant, named.key,
       EXISTS (SELECT 1 FROM job WHERE state = 'limited' AND tenant = named.tenant AND waits_for = named.key),
       CASE WHEN limit_key.key IS NOT NULL THEN json_array(
            limit_key.most, limit_key.running, limit_key.starts, limit_key.seconds, limit_key.burst, limit_key.tokens,
            limit_key.filled_at, limit_key.look_at, limit_key.passed) END))
  FROM (SELECT value ->> 0 AS tenant, value ->> 1 AS key FROM json_each(:keys)) AS named
  LEFT JOIN limit_key ON limit_key.tenant = named.tenant AND limit_key.key = named.key

-- name: set_standings
UPDATE limit_key
   SET running = now.running, tokens = now.tokens, filled_at = now.filled_at, look_at = now.look_at, passed = now.passed
  FROM (
       SELECT value ->> 0 AS tenant, value ->> 1 AS key, value ->> 2 AS running, value ->> 3 AS tokens,
              value ->> 4 AS filled_at, value ->> 5 AS look_at, value ->> 6 AS passed
         FROM json_each(:standings)
       ) AS now
 WHERE limit_key.tenant = now.tenant AND limit_key.key = now.key

-- name: due_looks
SELECT json_group_array(json_array(tenant, key, json_array(
       most, running, starts, seconds, burst, tokens, filled_at, look_at, passed)))
  FROM (SELECT * FROM limit_key WHERE look_at IS NOT NULL AND look_at <= :now ORDER BY look_at LIMIT :limit)

-- name: next_look
SELECT min(look_at) FROM limit_key WHERE look_at IS NOT NULL

-- name: aged_waiters
-- The oldest that wait for a key, whatever their priority, if they are old enough.
SELECT json_group_array(json_array(rowid, lane, priority, run_at))
  FROM (
       SELECT job.rowid, job.lane, job.priority, job.run_at
         FROM json_each('[0, 1, 2]') AS level
        CROSS JOIN job ON job.rowid IN (
              SELECT aged.rowid FROM job AS aged
               WHERE aged.state = 'limited' AND aged.tenant = :tenant AND aged.waits_for = :key
                 AND aged.priority = level.value AND aged.run_at <= :until
               ORDER BY aged.run_at, aged.id
               LIMIT :turns)
        ORDER BY job.run_at, job.id
        LIMIT :turns
       )

-- name: waiters
SELECT json_group_array(json_array(rowid, lane, priority, run_at))
  FROM (
       SELECT rowid, lane, priority, run_at
         FROM job
        WHERE state = 'limited' AND tenant = :tenant AND waits_for = :key
        ORDER BY priority, run_at, id
        LIMIT :room
       )

-- name: release
-- They keep their run_at, and with it their place before those who came later.
UPDATE job
   SET state = 'queued', waits_for = NULL, lane = waiter.lane, updated_at = :now
  FROM (SELECT value ->> 0 AS place, value ->> 1 AS lane FROM json_each(:waiters)) AS waiter
 WHERE job.rowid = waiter.place AND +job.state = 'limited'

-- name: set_limit
-- A bucket that is there is kept, so that setting a limit anew gives no tokens away.
INSERT INTO limit_key (tenant, key, most, starts, seconds, burst)
VALUES (:tenant, :key, :most, :starts, :seconds, :burst)
ON CONFLICT (tenant, key) DO UPDATE
   SET rule = NULL, most = excluded.most, starts = excluded.starts, seconds = excluded.seconds, burst = excluded.burst

-- name: recount
-- Recounts from the runs themselves, for one key or for all, and tells which counters were wrong.
UPDATE limit_key
   SET running = true_count.running
  FROM (
       SELECT limit_key.tenant, limit_key.key, count(used.key) AS running
         FROM limit_key
         LEFT JOIN (
              SELECT job.tenant, held.value AS key
                FROM job INDEXED BY job_running
               CROSS JOIN json_each(job.limit_keys) AS held
               WHERE job.state = 'running' AND job.limit_keys IS NOT NULL
              ) AS used ON used.tenant = limit_key.tenant AND used.key = limit_key.key
        GROUP BY limit_key.tenant, limit_key.key
       ) AS true_count
 WHERE limit_key.tenant = true_count.tenant AND limit_key.key = true_count.key
   AND limit_key.running <> true_count.running
   AND (:key IS NULL OR (limit_key.tenant = :tenant AND limit_key.key = :key))
RETURNING limit_key.tenant, limit_key.key

-- name: remove_limit
DELETE FROM limit_key WHERE tenant = :tenant AND key = :key RETURNING key

-- name: limits
SELECT tenant.name, limit_key.key, limit_key.rule, limit_key.most, limit_key.running, limit_key.starts,
       limit_key.seconds, limit_key.burst, limit_key.tokens, limit_key.filled_at, limit_key.look_at
  FROM limit_key
  JOIN tenant ON tenant.id = limit_key.tenant
 WHERE (:tenant IS NULL OR tenant.name = :tenant) AND (:key IS NULL OR limit_key.key = :key)
   AND (:after_tenant IS NULL OR (tenant.name, limit_key.key) > (:after_tenant, :after_key))
 ORDER BY tenant.name, limit_key.key
 LIMIT coalesce(:limit, -1)

-- name: limit_waiters
-- How many wait for each of the named keys, up to a bound.
SELECT (SELECT count(*) FROM (
               SELECT 1 FROM job
                WHERE state = 'limited' AND tenant = (SELECT id FROM tenant WHERE name = named.value ->> 0)
                  AND waits_for = named.value ->> 1
                LIMIT :most))
  FROM json_each(:keys) AS named
 ORDER BY named.key

-- name: limit_holders
-- Who runs under the named keys; what runs is no more than the workers can do at once.
SELECT tenant.name, held.value, json_group_array(hex(job.id) ORDER BY job.id)
  FROM job INDEXED BY job_running
 CROSS JOIN json_each(job.limit_keys) AS held
 CROSS JOIN tenant ON tenant.id = job.tenant
 WHERE job.state = 'running' AND job.limit_keys IS NOT NULL
   AND EXISTS (SELECT 1 FROM json_each(:keys) AS named
                WHERE named.value ->> 0 = tenant.name AND named.value ->> 1 = held.value)
 GROUP BY tenant.name, held.value

-- name: limit_rules
SELECT name, most, starts, seconds, burst, by_hand, waiting, overflow FROM limit_rule ORDER BY name

-- name: put_rule
-- What tasks declare changes nothing that an operator set. Answers if something was changed.
INSERT INTO limit_rule (name, most, starts, seconds, burst, by_hand, waiting, overflow)
VALUES (:name, :most, :starts, :seconds, :burst, :by_hand, :waiting, :overflow)
ON CONFLICT (name) DO UPDATE
   SET most = excluded.most, starts = excluded.starts, seconds = excluded.seconds, burst = excluded.burst,
       by_hand = excluded.by_hand, waiting = excluded.waiting, overflow = excluded.overflow
 WHERE excluded.by_hand >= limit_rule.by_hand
   AND (limit_rule.most, limit_rule.starts, limit_rule.seconds, limit_rule.burst, limit_rule.by_hand,
        limit_rule.waiting, limit_rule.overflow)
       IS NOT (excluded.most, excluded.starts, excluded.seconds, excluded.burst, excluded.by_hand,
        excluded.waiting, excluded.overflow)
RETURNING name

-- name: follow_rule
UPDATE limit_key
   SET most = limit_rule.most, starts = limit_rule.starts, seconds = limit_rule.seconds, burst = limit_rule.burst
  FROM limit_rule
 WHERE limit_key.rule = :name AND limit_rule.name = :name

-- name: keys_of_runs_under_rule
-- Makes rows for keys of a rule under which jobs run already.
INSERT INTO limit_key (tenant, key, rule, most, starts, seconds, burst)
SELECT DISTINCT job.tenant, held.value, limit_rule.name, limit_rule.most, limit_rule.starts, limit_rule.seconds,
       limit_rule.burst
  FROM limit_rule
 CROSS JOIN job INDEXED BY job_running
 CROSS JOIN json_each(job.limit_keys) AS held
 WHERE limit_rule.name = :name AND limit_rule.waiting IS NULL AND job.state = 'running' AND job.limit_keys IS NOT NULL
   AND (held.value = :name OR substr(held.value, 1, length(:name) + 1) = :name || '=')
ON CONFLICT (tenant, key) DO NOTHING

-- name: make_limit_key
-- Makes the row of a key that is used for the first time.
INSERT INTO limit_key (tenant, key, rule, most, starts, seconds, burst)
SELECT :tenant, :key, name, most, starts, seconds, burst FROM limit_rule WHERE name = :rule
ON CONFLICT (tenant, key) DO NOTHING

-- name: remove_rule
DELETE FROM limit_rule WHERE name = :name RETURNING name

-- name: remove_keys_of_rule
DELETE FROM limit_key WHERE rule = :name RETURNING tenant, key

-- name: keys_of_rule
SELECT tenant, key FROM limit_key WHERE rule = :name

-- name: forget_unused_keys
-- Keys that a rule made and nobody uses: a bucket that is full again says no more than none.
DELETE FROM limit_key
 WHERE (tenant, key) IN (
       SELECT tenant, key
         FROM limit_key
        WHERE rule IS NOT NULL AND running = 0
          AND (tokens IS NULL OR starts IS NULL OR filled_at + (burst - tokens) * seconds * 1e6 / starts <= :now)
          AND NOT EXISTS (SELECT 1 FROM job
                           WHERE state = 'limited' AND job.tenant = limit_key.tenant AND waits_for = limit_key.key)
        LIMIT :limit)
RETURNING key

-- name: keys_waited_for
-- By a loose scan, for many may wait for few keys.
WITH RECURSIVE waited (tenant, key) AS (
    SELECT * FROM (SELECT tenant, waits_for FROM job WHERE state = 'limited' ORDER BY tenant, waits_for LIMIT 1)
    UNION ALL
    SELECT next.tenant, next.waits_for
      FROM waited
     CROSS JOIN job AS next ON next.rowid = coalesce(
           (SELECT job.rowid FROM job
             WHERE job.state = 'limited' AND job.tenant = waited.tenant AND job.waits_for > waited.key
             ORDER BY job.waits_for LIMIT 1),
           (SELECT job.rowid FROM job
             WHERE job.state = 'limited' AND job.tenant > waited.tenant
             ORDER BY job.tenant, job.waits_for LIMIT 1))
)
SELECT json_group_array(json_array(tenant, key)) FROM waited
