-- name: peek
-- Looks at the heads of (lane, priority) pairs without locking anything: the run_at of the first rows of each, also one
-- that lies in the future, which tells when to look again. One row comes back: arrays are cheap to decode. `date_part`
-- is `extract` without the detour by numeric.
SELECT array_agg(pair.n) AS pairs,
       array_agg(date_part('epoch', head.run_at)) AS run_ats,
       array_agg(uuid_send(head.id)) AS ids,
       date_part('epoch', tidewheel.now()) AS now,
       (SELECT lanes FROM tidewheel.meta) AS lanes,
       (SELECT min(look_at) FROM tidewheel.limit_key WHERE look_at IS NOT NULL) AS look_at,
       EXISTS (SELECT FROM tidewheel.worker
                WHERE worker.id = $6 AND worker.alive AND worker.lease_until > tidewheel.now()) AS alive
  FROM unnest($1::integer[], $2::smallint[], $3::timestamptz[], $4::uuid[]) WITH ORDINALITY
       AS pair (lane, priority, floor, floor_id, n)
 CROSS JOIN LATERAL (
       SELECT job.run_at, job.id
         FROM tidewheel.job
        WHERE job.state = 'queued' AND job.lane = pair.lane AND job.priority = pair.priority
          AND (job.run_at, job.id) >= (pair.floor, pair.floor_id)
        ORDER BY job.run_at, job.id
        LIMIT $5
       ) AS head

-- name: take
-- Takes each pair's quota for a worker that is alive, from lanes whose flag is what the claimer believes.
-- `me` holds the worker's own row against the reaper: either this statement ends first and the reaper sees its runs,
-- or the row is found dead and nothing is taken. Rows are locked only if they are taken. Updating by ctid needs no
-- second look into an index and leaves the planner no choice; a row that moved since is simply not taken.
WITH me AS MATERIALIZED (
    SELECT 1
      FROM tidewheel.worker
     WHERE worker.id = $1 AND worker.alive AND worker.lease_until > tidewheel.now()
       FOR KEY SHARE
), picked AS MATERIALIZED (
    SELECT head.at
      FROM unnest($2::integer[], $3::smallint[], $4::timestamptz[], $5::uuid[], $6::integer[])
           AS pair (lane, priority, floor, floor_id, quota)
      JOIN tidewheel.lane ON lane.id = pair.lane AND lane.gate = $7
     CROSS JOIN LATERAL (
           SELECT job.ctid AS at
             FROM tidewheel.job
            WHERE job.state = 'queued' AND job.lane = pair.lane AND job.priority = pair.priority
              AND (job.run_at, job.id) >= (pair.floor, pair.floor_id) AND job.run_at <= tidewheel.now()
            ORDER BY job.run_at, job.id
            LIMIT pair.quota
              FOR UPDATE SKIP LOCKED
           ) AS head
     WHERE EXISTS (SELECT FROM me)
)
UPDATE tidewheel.job
   SET state = 'running', token = token + 1, worker = $1, started_at = tidewheel.now(), updated_at = tidewheel.now()
 WHERE job.ctid = ANY (ARRAY(SELECT at FROM picked)) AND job.state || '' = 'queued'
RETURNING job.id, job.token, job.lane, job.priority, job.args, job.labels, job.options, job.run_at, job.due_at,
          job.start_by, job.started_at, job.failures, job.losses, job.cancel_at IS NOT NULL AS cancelling,
          job.awaited

-- name: take_all
-- Peeks, and takes all that is due if that is no more than there is room for: then order is no question, and a job that
-- comes to a worker with time on its hands starts after one statement instead of two. Of lanes that are not plain, for a
-- limit or a pace decides there, and for a claimer whose lanes are no longer what it believes, it takes nothing.
-- The worker's own row is locked only if there is something to take, as in `take`, or looking would be a write.
-- What was seen stands in one of the rows; there is always one.
WITH head AS MATERIALIZED (
    SELECT pair.n, pair.lane, pair.plain, first.run_at, first.id, first.at
      FROM unnest($1::integer[], $2::smallint[], $3::timestamptz[], $4::uuid[], $5::boolean[]) WITH ORDINALITY
           AS pair (lane, priority, floor, floor_id, plain, n)
     CROSS JOIN LATERAL (
           SELECT job.run_at, job.id, job.ctid AS at
             FROM tidewheel.job
            WHERE job.state = 'queued' AND job.lane = pair.lane AND job.priority = pair.priority
              AND (job.run_at, job.id) >= (pair.floor, pair.floor_id)
            ORDER BY job.run_at, job.id
            LIMIT $6 + 1
           ) AS first
), due AS MATERIALIZED (
    SELECT count(*) BETWEEN 1 AND $6 AND bool_and(head.plain) AS fits
      FROM head
     WHERE head.run_at <= tidewheel.now()
), me AS MATERIALIZED (
    SELECT 1
      FROM tidewheel.worker
     WHERE worker.id = $7 AND worker.alive AND worker.lease_until > tidewheel.now()
       AND (SELECT fits FROM due) AND (SELECT lanes FROM tidewheel.meta) = $8
       FOR KEY SHARE
), picked AS MATERIALIZED (
    SELECT job.ctid AS at
      FROM head
      JOIN tidewheel.lane ON lane.id = head.lane AND lane.gate = 'open'
      JOIN tidewheel.job ON job.ctid = head.at AND job.state || '' = 'queued'
     WHERE head.run_at <= tidewheel.now() AND EXISTS (SELECT FROM me)
       FOR UPDATE OF job SKIP LOCKED
), taken AS (
    UPDATE tidewheel.job
       SET state = 'running', token = token + 1, worker = $7, started_at = tidewheel.now(), updated_at = tidewheel.now()
     WHERE job.ctid = ANY (ARRAY(SELECT at FROM picked)) AND job.state || '' = 'queued'
    RETURNING job.id, job.token, job.lane, job.priority, job.args, job.labels, job.options, job.run_at, job.due_at,
              job.start_by, job.started_at, job.failures, job.losses, job.cancel_at IS NOT NULL AS cancelling,
              job.awaited
), numbered AS (
    SELECT *, row_number() OVER () AS row FROM taken
), seen AS (
    SELECT 1 AS row,
           array_agg(head.n) AS pairs,
           array_agg(date_part('epoch', head.run_at)) AS run_ats,
           array_agg(uuid_send(head.id)) AS ids,
           date_part('epoch', tidewheel.now()) AS now,
           (SELECT lanes FROM tidewheel.meta) AS lanes,
           (SELECT min(look_at) FROM tidewheel.limit_key WHERE look_at IS NOT NULL) AS look_at,
           EXISTS (SELECT FROM tidewheel.worker
                    WHERE worker.id = $7 AND worker.alive AND worker.lease_until > tidewheel.now()) AS alive
      FROM head
)
SELECT numbered.id, numbered.token, numbered.lane, numbered.priority, numbered.args, numbered.labels, numbered.options,
       numbered.run_at, numbered.due_at, numbered.start_by, numbered.started_at, numbered.failures, numbered.losses,
       numbered.cancelling, numbered.awaited,
       seen.pairs, seen.run_ats, seen.ids, seen.now, seen.lanes, seen.look_at, seen.alive
  FROM seen
  FULL JOIN numbered ON numbered.row = seen.row

-- name: pick_keyed
-- The same for lanes whose jobs have limit keys, but only locks them and tells what the runs would be:
-- who may start is decided next, in this transaction.
WITH me AS MATERIALIZED (
    SELECT 1
      FROM tidewheel.worker
     WHERE worker.id = $1 AND worker.alive AND worker.lease_until > tidewheel.now()
       FOR KEY SHARE
)
SELECT head.*
  FROM unnest($2::integer[], $3::smallint[], $4::timestamptz[], $5::uuid[], $6::integer[])
           AS pair (lane, priority, floor, floor_id, quota)
  JOIN tidewheel.lane ON lane.id = pair.lane AND lane.gate = $7
 CROSS JOIN LATERAL (
       SELECT job.id, job.token + 1 AS token, job.lane, job.priority, job.args, job.labels, job.options, job.run_at,
              job.due_at, job.start_by, tidewheel.now() AS started_at, job.failures, job.losses,
              job.cancel_at IS NOT NULL AS cancelling, job.tenant, array_to_string(job.limit_keys, chr(31)) AS names,
              coalesce(job.stood_at, job.run_at) AS stood_at
         FROM tidewheel.job
        WHERE job.state = 'queued' AND job.lane = pair.lane AND job.priority = pair.priority
          AND (job.run_at, job.id) >= (pair.floor, pair.floor_id) AND job.run_at <= tidewheel.now()
        ORDER BY job.run_at, job.id
        LIMIT pair.quota
          FOR UPDATE SKIP LOCKED
       ) AS head
 WHERE EXISTS (SELECT FROM me)

-- name: start_picked
-- Starts locked jobs, and writes how the locked limits stand then.
WITH counted AS (
    UPDATE tidewheel.limit_key
       SET running = stand.running, tokens = stand.tokens, filled_at = stand.filled_at, look_at = stand.look_at,
           passed = stand.passed
      FROM unnest($4::integer[], $5::text[], $6::integer[], $7::float8[], $8::bigint[], $9::bigint[], $10::integer[])
           AS stand (tenant, key, running, tokens, filled_at, look_at, passed)
     WHERE limit_key.tenant = stand.tenant AND limit_key.key = stand.key
)
UPDATE tidewheel.job
   SET state = 'running', token = token + 1, worker = $1, started_at = $3, updated_at = $3
 WHERE job.id = ANY ($2::uuid[]) AND job.state || '' = 'queued'

-- name: turn_away
-- Of the next rows of some pairs, lets those wait that have one of the full keys; the others are not locked.
WITH away AS MATERIALIZED (
    SELECT head.at, head.key
      FROM unnest($1::integer[], $2::smallint[]) AS pair (lane, priority)
     CROSS JOIN LATERAL (
           SELECT job.ctid AS at, (SELECT key FROM unnest(job.limit_keys) AS key WHERE key = ANY ($3::text[]) LIMIT 1) AS key
             FROM tidewheel.job
            WHERE job.state = 'queued' AND job.lane = pair.lane AND job.priority = pair.priority
              AND job.run_at <= tidewheel.now() AND job.limit_keys && $3::text[]
            ORDER BY job.run_at, job.id
            LIMIT 500
              FOR UPDATE SKIP LOCKED
           ) AS head
)
UPDATE tidewheel.job
   SET state = 'limited', waits_for = away.key, run_at = coalesce(job.stood_at, job.run_at), stood_at = NULL,
       updated_at = tidewheel.now()
  FROM away
 WHERE job.ctid = away.at AND job.state || '' = 'queued'

-- name: owned
SELECT job.id, job.token, job.lane, job.priority, job.args, job.labels, job.options, job.run_at, job.due_at,
       job.start_by, job.started_at, job.failures, job.losses, job.cancel_at IS NOT NULL AS cancelling,
       job.tenant, array_to_string(job.limit_keys, chr(31)) AS names
  FROM tidewheel.job
 WHERE job.state = 'running' AND job.worker = $1

-- name: take_sweep
-- Takes the turn to sweep a scope, if it is time. A time further ahead than the pause was set by a clock that has since
-- been set back.
INSERT INTO tidewheel.sweep AS turn (scope, next_at, pause)
VALUES ($1, tidewheel.now() + interval '1 second', interval '1 second')
ON CONFLICT (scope) DO UPDATE SET next_at = excluded.next_at, pause = excluded.pause
 WHERE turn.next_at <= tidewheel.now() OR turn.next_at > tidewheel.now() + turn.pause
RETURNING scope

-- name: defer_sweep
UPDATE tidewheel.sweep SET next_at = tidewheel.now() + $2, pause = $2 WHERE scope = $1

-- name: sweep
-- Looks at lanes from their very beginning: what committed late, behind the marks of the claimers, shows here.
SELECT pair.lane, pair.priority, head.run_at, head.id
  FROM unnest($1::integer[], $2::smallint[]) AS pair (lane, priority)
 CROSS JOIN LATERAL (
       SELECT job.run_at, job.id
         FROM tidewheel.job
        WHERE job.state = 'queued' AND job.lane = pair.lane AND job.priority = pair.priority
        ORDER BY job.run_at, job.id
        LIMIT 1
       ) AS head

-- name: oldest_due
-- The job that has been due the longest in some lanes, and since when.
SELECT head.lane, tidewheel.now() - head.run_at AS waited
  FROM unnest($1::integer[]) AS named (lane)
 CROSS JOIN unnest($2::smallint[]) AS level (priority)
 CROSS JOIN LATERAL (
       SELECT job.lane, job.run_at
         FROM tidewheel.job
        WHERE job.state = 'queued' AND job.lane = named.lane AND job.priority = level.priority
          AND job.run_at <= tidewheel.now()
        ORDER BY job.run_at, job.id
        LIMIT 1
       ) AS head
 ORDER BY head.run_at
 LIMIT 1

-- name: publish_marks
-- Each is worth a new row version only now and then: these pile up under a held snapshot, too.
UPDATE tidewheel.lane
   SET floors = mark.floors
  FROM (
       SELECT lane, array_agg(floor ORDER BY priority) AS floors
         FROM unnest($1::integer[], $2::smallint[], $3::timestamptz[]) AS mark (lane, priority, floor)
        GROUP BY lane
       ) AS mark
 WHERE lane.id = mark.lane
   AND greatest(mark.floors[1] - lane.floors[1], mark.floors[2] - lane.floors[2], mark.floors[3] - lane.floors[3])
       > interval '10 seconds'

-- name: lanes_served
SELECT lane.id, lane.tenant, tenant.name AS tenant_name, tenant.weight, lane.queue, lane.kind, lane.needs, lane.keyed,
       lane.gate, lane.floors, lane.retried, lane.overdue
  FROM tidewheel.lane
  JOIN tidewheel.tenant ON tenant.id = lane.tenant
 WHERE lane.queue = ANY ($1::text[]) AND ($2::text[] IS NULL OR lane.kind = ANY ($2))

-- name: lanes_named
SELECT lane.id, lane.tenant, tenant.name AS tenant_name, tenant.weight, lane.queue, lane.kind, lane.needs, lane.keyed,
       lane.gate, lane.floors, lane.retried, lane.overdue
  FROM tidewheel.lane
  JOIN tidewheel.tenant ON tenant.id = lane.tenant
 WHERE lane.id = ANY ($1::integer[])
