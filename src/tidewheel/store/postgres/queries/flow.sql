-- name: close_gate
INSERT INTO tidewheel.gate (id, mode, kind, queue, tenant, reason, author, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, tidewheel.now())
ON CONFLICT (kind, queue, tenant) DO UPDATE
   SET mode = excluded.mode, reason = excluded.reason, author = excluded.author, created_at = excluded.created_at
RETURNING *

-- name: open_gate
DELETE FROM tidewheel.gate WHERE id = $1 RETURNING id

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
