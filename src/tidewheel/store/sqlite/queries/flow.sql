-- name: close_gate
UPDATE gate
   SET mode = :mode, reason = :reason, author = :author, created_at = :now
 WHERE kind IS :kind AND queue IS :queue AND tenant IS :tenant
RETURNING id

-- name: add_gate
INSERT INTO gate (id, mode, kind, queue, tenant, reason, author, created_at)
VALUES (:id, :mode, :kind, :queue, :tenant, :reason, :author, :now)

-- name: open_gate
DELETE FROM gate WHERE id = :id RETURNING id

-- name: flag_lanes
UPDATE lane
   SET gate = flag.gate
  FROM (SELECT value ->> 0 AS id, value ->> 1 AS gate FROM json_each(:flags)) AS flag
 WHERE lane.id = flag.id
