-- name: close_gate
INSERT INTO tidewheel.gate AS old (
       id, mode, kind, queue, tenant, reason, author, created_at, rate, ready_at, expires_at, stop_running)
VALUES ($1, $2, $3, $4, $5, $6, $7, tidewheel.now(), $8, tidewheel.now(), $9, $10)
ON CONFLICT (kind, queue, tenant) DO UPDATE
   SET mode = excluded.mode, reason = excluded.reason, author = excluded.author, created_at = excluded.created_at,
       rate = excluded.rate, ready_at = excluded.ready_at, expires_at = excluded.expires_at,
       stop_running = excluded.stop_running
RETURNING old.*

-- name: open_gate
DELETE FROM tidewheel.gate WHERE id = $1 RETURNING id

-- name: any_expired
SELECT EXISTS (SELECT FROM tidewheel.gate WHERE expires_at <= tidewheel.now())

-- name: open_expired
DELETE FROM tidewheel.gate WHERE expires_at <= tidewheel.now() RETURNING id

-- name: gates
SELECT * FROM tidewheel.gate ORDER BY created_at, id

-- name: all_lanes
SELECT lane.id, tenant.name AS tenant, lane.queue, lane.kind, lane.gate
  FROM tidewheel.lane
  JOIN tidewheel.tenant ON tenant.id = lane.tenant

-- name: flag_lanes
UPDATE tidewheel.lane SET gate = flag.gate
  FROM unnest($1::integer[], $2::text[]) AS flag (id, gate)
 WHERE lane.id = flag.id

-- name: store_time
SELECT tidewheel.now()

-- name: stop_behind
-- Asks what runs in some lanes to stop, to be given back or cancelled; who was asked before stays as he is. Locked in the
-- order of the ids, as everywhere.
WITH running AS MATERIALIZED (
    SELECT run.id
      FROM tidewheel.worker
     CROSS JOIN LATERAL (
           SELECT job.id
             FROM tidewheel.job
            WHERE job.state = 'running' AND job.worker = worker.id AND job.cancel_at IS NULL
              AND job.lane = ANY ($1::integer[])
           ) AS run
     WHERE worker.alive
), mine AS MATERIALIZED (
    SELECT job.ctid AS at
      FROM tidewheel.job
     WHERE job.id = ANY (ARRAY(SELECT id FROM running)) AND job.state || '' = 'running' AND job.cancel_at IS NULL
     ORDER BY job.id
       FOR NO KEY UPDATE
)
UPDATE tidewheel.job
   SET cancel_at = tidewheel.now(), cancel_reason = $2, held = $3, updated_at = tidewheel.now()
 WHERE job.ctid = ANY (ARRAY(SELECT at FROM mine)) AND job.state || '' = 'running' AND job.cancel_at IS NULL
RETURNING job.id

-- name: slow_gates
SELECT id, rate, extract(epoch FROM ready_at)::float8 AS ready, extract(epoch FROM tidewheel.now())::float8 AS now
  FROM tidewheel.gate
 WHERE id = ANY ($1::uuid[]) AND mode = 'slow'

-- name: lock_slow_gates
-- Before anything else that a claim locks; whoever waits here has taken nothing.
SELECT id, rate, extract(epoch FROM ready_at)::float8 AS ready, extract(epoch FROM tidewheel.now())::float8 AS now
  FROM tidewheel.gate
 WHERE id = ANY ($1::uuid[]) AND mode = 'slow'
 ORDER BY id
   FOR NO KEY UPDATE

-- name: move_gates
UPDATE tidewheel.gate
   SET ready_at = to_timestamp(moved.ready)
  FROM unnest($1::uuid[], $2::float8[]) AS moved (id, ready)
 WHERE gate.id = moved.id AND gate.mode = 'slow'
