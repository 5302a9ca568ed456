-- name: lock_limits
-- Locks the limits of some keys in the order of their names and tells how they stand.
SELECT limit_key.tenant, limit_key.key, (extract(epoch FROM tidewheel.now()) * 1000000)::bigint AS now,
       limit_key.most, limit_key.running, limit_key.starts, limit_key.seconds, limit_key.burst, limit_key.tokens,
       limit_key.filled_at, limit_key.look_at, limit_key.passed
  FROM tidewheel.limit_key
  JOIN unnest($1::integer[], $2::text[]) AS named (tenant, key)
    ON named.tenant = limit_key.tenant AND named.key = limit_key.key
 ORDER BY limit_key.tenant, limit_key.key
   FOR UPDATE OF limit_key

-- name: lock_due_looks
-- The same for keys with waiters for whom tokens came.
SELECT limit_key.tenant, limit_key.key, (extract(epoch FROM tidewheel.now()) * 1000000)::bigint AS now,
       limit_key.most, limit_key.running, limit_key.starts, limit_key.seconds, limit_key.burst, limit_key.tokens,
       limit_key.filled_at, limit_key.look_at, limit_key.passed
  FROM tidewheel.limit_key
 WHERE limit_key.look_at <= (extract(epoch FROM tidewheel.now()) * 1000000)::bigint
 ORDER BY limit_key.tenant, limit_key.key
 LIMIT $1
   FOR UPDATE SKIP LOCKED

-- name: set_limit_standings
-- Writes how locked limits stand.
UPDATE tidewheel.limit_key
   SET running = stand.running, tokens = stand.tokens, filled_at = stand.filled_at, look_at = stand.look_at,
       passed = stand.passed
  FROM unnest($1::integer[], $2::text[], $3::integer[], $4::float8[], $5::bigint[], $6::bigint[], $7::integer[])
       AS stand (tenant, key, running, tokens, filled_at, look_at, passed)
 WHERE limit_key.tenant = stand.tenant AND limit_key.key = stand.key

-- name: make_limited
UPDATE tidewheel.job
   SET state = 'limited', waits_for = refused.key, run_at = coalesce(job.stood_at, job.run_at), stood_at = NULL,
       updated_at = tidewheel.now()
  FROM unnest($1::uuid[], $2::text[]) AS refused (id, key)
 WHERE job.id = refused.id AND job.state || '' = 'queued'

-- name: release_waiters
-- Puts so many waiters of each key back into the queue, and writes how locked limits stand. As many as have their turn by
-- age are the oldest, if they are old enough; the others go in the order of their priority. All that are old go to the lanes
-- of the overdue. Runs in a statement of its own after the limits were locked, so that it sees whoever began to wait before
-- that.
WITH counted AS (
    UPDATE tidewheel.limit_key
       SET running = stand.running, tokens = stand.tokens, filled_at = stand.filled_at, look_at = stand.look_at,
           passed = stand.passed
      FROM unnest($6::integer[], $7::text[], $8::integer[], $9::float8[], $10::bigint[], $11::bigint[], $12::integer[])
           AS stand (tenant, key, running, tokens, filled_at, look_at, passed)
     WHERE limit_key.tenant = stand.tenant AND limit_key.key = stand.key
), named AS MATERIALIZED (
    SELECT *
      FROM unnest($1::integer[], $2::text[], $3::integer[], $4::integer[]) WITH ORDINALITY
           AS named (tenant, key, room, turns, n)
), oldest AS MATERIALIZED (
    SELECT named.n, waiter.at
      FROM named
     CROSS JOIN LATERAL (
           SELECT aged.at
             FROM (VALUES (0::smallint), (1::smallint), (2::smallint)) AS level (priority)
            CROSS JOIN LATERAL (
                  SELECT job.ctid AS at, job.run_at, job.id
                    FROM tidewheel.job
                   WHERE job.state = 'limited' AND job.tenant = named.tenant AND job.waits_for = named.key
                     AND job.priority = level.priority AND job.run_at <= tidewheel.now() - $5::interval
                   ORDER BY job.run_at, job.id
                   LIMIT named.turns
                  ) AS aged
            ORDER BY aged.run_at, aged.id
            LIMIT named.turns
           ) AS waiter
     WHERE named.turns > 0
), aged AS MATERIALIZED (
    SELECT oldest.n, oldest.at
      FROM oldest
      JOIN tidewheel.job ON job.ctid = oldest.at
     WHERE job.state || '' = 'limited'
       FOR UPDATE OF job SKIP LOCKED
), waiters AS MATERIALIZED (
    SELECT aged.n, aged.at FROM aged
    UNION ALL
    SELECT named.n, waiter.at
      FROM named
     CROSS JOIN LATERAL (
           SELECT job.ctid AS at
             FROM tidewheel.job
            WHERE job.state = 'limited' AND job.tenant = named.tenant AND job.waits_for = named.key
              AND job.ctid <> ALL (ARRAY(SELECT aged.at FROM aged WHERE aged.n = named.n))
            ORDER BY job.priority, job.run_at, job.id
            LIMIT named.room - (SELECT count(*) FROM aged WHERE aged.n = named.n)
              FOR UPDATE SKIP LOCKED
           ) AS waiter
)
UPDATE tidewheel.job
   SET state = 'queued', waits_for = NULL, run_at = tidewheel.now(), stood_at = job.run_at, updated_at = tidewheel.now(),
       lane = CASE WHEN job.run_at <= tidewheel.now() - $5::interval
                   THEN coalesce(tidewheel.lane_of_overdue(job.lane), job.lane) ELSE job.lane END
  FROM waiters
 WHERE job.ctid = waiters.at AND job.state || '' = 'limited'
RETURNING waiters.n

-- name: set_limit
-- A bucket that is there is kept, so that setting a limit anew gives no tokens away.
INSERT INTO tidewheel.limit_key (tenant, key, most, starts, seconds, burst) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, key) DO UPDATE
   SET rule = NULL, most = excluded.most, starts = excluded.starts, seconds = excluded.seconds, burst = excluded.burst

-- name: doubtful_limits
-- Limits whose counter is not what the runs say, as far as can be seen without locks.
SELECT limit_key.tenant, limit_key.key
  FROM tidewheel.limit_key
  LEFT JOIN (
       SELECT tenant, key, count(*) AS running
         FROM (
              SELECT job.tenant, unnest(job.limit_keys) AS key
                FROM tidewheel.job
               WHERE job.state = 'running' AND job.limit_keys IS NOT NULL
              ) AS held
        GROUP BY tenant, key
       ) AS used ON used.tenant = limit_key.tenant AND used.key = limit_key.key
 WHERE limit_key.running <> coalesce(used.running, 0)

-- name: recount_limits
-- Recounts from the runs themselves, under the locks of these limits.
UPDATE tidewheel.limit_key
   SET running = true_count.running
  FROM (
       SELECT named.tenant, named.key, count(used.key)::integer AS running
         FROM unnest($1::integer[], $2::text[]) AS named (tenant, key)
         LEFT JOIN (
              SELECT job.tenant, unnest(job.limit_keys) AS key
                FROM tidewheel.job
               WHERE job.state = 'running' AND job.limit_keys IS NOT NULL
              ) AS used ON used.tenant = named.tenant AND used.key = named.key
        GROUP BY named.tenant, named.key
       ) AS true_count
 WHERE limit_key.tenant = true_count.tenant AND limit_key.key = true_count.key
   AND limit_key.running <> true_count.running
RETURNING limit_key.tenant, limit_key.key

-- name: keys_waited_for
-- Steps from key to key, however many wait for each.
WITH RECURSIVE waited AS (
    (SELECT tenant, waits_for AS key FROM tidewheel.job WHERE state = 'limited' ORDER BY tenant, waits_for LIMIT 1)
    UNION ALL
    SELECT next.tenant, next.key
      FROM waited
     CROSS JOIN LATERAL (
           SELECT job.tenant, job.waits_for AS key
             FROM tidewheel.job
            WHERE job.state = 'limited' AND (job.tenant, job.waits_for) > (waited.tenant, waited.key)
            ORDER BY job.tenant, job.waits_for
            LIMIT 1
           ) AS next
)
SELECT tenant, key FROM waited

-- name: remove_limit
DELETE FROM tidewheel.limit_key WHERE tenant = $1 AND key = $2 RETURNING key

-- name: limits
SELECT (extract(epoch FROM tidewheel.now()) * 1000000)::bigint AS now, tenant.name AS tenant, limit_key.key,
       limit_key.rule, limit_key.most, limit_key.running, limit_key.starts, limit_key.seconds, limit_key.burst, limit_key.tokens,
       limit_key.filled_at, limit_key.look_at
  FROM tidewheel.limit_key
  JOIN tidewheel.tenant ON tenant.id = limit_key.tenant
 WHERE ($1::text IS NULL OR tenant.name = $1) AND ($2::text IS NULL OR limit_key.key = $2)
   AND ($3::text IS NULL OR (tenant.name, limit_key.key) > ($3, $4))
 ORDER BY tenant.name, limit_key.key
 LIMIT $5::bigint

-- name: limit_waiters
-- How many wait for each of the named keys, up to a bound.
SELECT (SELECT count(*) FROM (
               SELECT FROM tidewheel.job
                WHERE job.state = 'limited' AND job.tenant = tenant.id AND job.waits_for = named.key
                LIMIT $3
               ) AS few) AS waiting
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS named (tenant, key, n)
  LEFT JOIN tidewheel.tenant ON tenant.name = named.tenant
 ORDER BY named.n

-- name: limit_holders
-- Who runs under the named keys; what runs is no more than the workers can do at once.
SELECT tenant.name AS tenant, held.key, array_agg(held.id ORDER BY held.id) AS ids
  FROM (
       SELECT job.id, job.tenant, unnest(job.limit_keys) AS key
         FROM tidewheel.job
        WHERE job.state = 'running' AND job.limit_keys IS NOT NULL
       ) AS held
  JOIN tidewheel.tenant ON tenant.id = held.tenant
  JOIN unnest($1::text[], $2::text[]) AS named (tenant, key) ON named.tenant = tenant.name AND named.key = held.key
 GROUP BY tenant.name, held.key

-- name: limit_rules
SELECT name, most, starts, seconds, burst, by_hand, waiting, overflow FROM tidewheel.limit_rule ORDER BY name

-- name: put_rule
-- What tasks declare changes nothing that an operator set. Answers if something was changed.
INSERT INTO tidewheel.limit_rule (name, most, starts, seconds, burst, by_hand, waiting, overflow)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (name) DO UPDATE
   SET most = excluded.most, starts = excluded.starts, seconds = excluded.seconds, burst = excluded.burst,
       by_hand = excluded.by_hand, waiting = excluded.waiting, overflow = excluded.overflow
 WHERE excluded.by_hand >= limit_rule.by_hand
   AND (limit_rule.most, limit_rule.starts, limit_rule.seconds, limit_rule.burst, limit_rule.by_hand,
        limit_rule.waiting, limit_rule.overflow)
       IS DISTINCT FROM (excluded.most, excluded.starts, excluded.seconds, excluded.burst, excluded.by_hand,
        excluded.waiting, excluded.overflow)
RETURNING name

-- name: follow_rules
UPDATE tidewheel.limit_key
   SET most = limit_rule.most, starts = limit_rule.starts, seconds = limit_rule.seconds, burst = limit_rule.burst
  FROM tidewheel.limit_rule
 WHERE limit_rule.name = ANY ($1::text[]) AND limit_key.rule = limit_rule.name
RETURNING limit_key.tenant, limit_key.key

-- name: make_limits
-- Makes the limits of keys that are used for the first time. The rule cannot change meanwhile.
INSERT INTO tidewheel.limit_key (tenant, key, rule, most, starts, seconds, burst)
SELECT named.tenant, named.key, rule.name, rule.most, rule.starts, rule.seconds, rule.burst
  FROM unnest($1::integer[], $2::text[], $3::text[]) AS named (tenant, key, rule)
  JOIN (SELECT * FROM tidewheel.limit_rule WHERE name = ANY ($3::text[]) FOR SHARE) AS rule ON rule.name = named.rule
 ORDER BY named.tenant, named.key
ON CONFLICT (tenant, key) DO NOTHING

-- name: make_limits_of_runs
-- The same for keys under which jobs run already.
INSERT INTO tidewheel.limit_key (tenant, key, rule, most, starts, seconds, burst)
SELECT DISTINCT held.tenant, held.key, rule.name, rule.most, rule.starts, rule.seconds, rule.burst
  FROM (
       SELECT job.tenant, unnest(job.limit_keys) AS key
         FROM tidewheel.job
        WHERE job.state = 'running' AND job.limit_keys IS NOT NULL
       ) AS held
  JOIN tidewheel.limit_rule AS rule ON rule.name = split_part(held.key, '=', 1)
 WHERE rule.name = ANY ($1::text[]) AND rule.waiting IS NULL
 ORDER BY held.tenant, held.key
ON CONFLICT (tenant, key) DO NOTHING

-- name: remove_rule
DELETE FROM tidewheel.limit_rule WHERE name = $1 RETURNING name

-- name: remove_limits_of_rule
DELETE FROM tidewheel.limit_key WHERE rule = $1 RETURNING tenant, key

-- name: forget_unused_limits
-- Limits that a rule made and nobody uses: a bucket that is full again says no more than none.
DELETE FROM tidewheel.limit_key
 WHERE ctid = ANY (ARRAY(
       SELECT unused.ctid
         FROM tidewheel.limit_key AS unused
        WHERE rule IS NOT NULL AND running = 0
          AND (tokens IS NULL OR starts IS NULL OR filled_at + (burst - tokens) * seconds * 1000000 / starts
               <= extract(epoch FROM tidewheel.now()) * 1000000)
          AND NOT EXISTS (SELECT FROM tidewheel.job
                           WHERE job.state = 'limited' AND job.tenant = unused.tenant AND job.waits_for = unused.key)
        LIMIT $1
          FOR UPDATE SKIP LOCKED))
RETURNING key
