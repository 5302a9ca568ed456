-- name: close_gate
UPDATE gate
   SET mode = :mode, reason = :reason, author = :author, created_at = :now, rate = :rate, ready_at = :now,
       expires_at = :expires_at, stop_running = :stop_running
 WHERE kind IS :kind AND queue IS :queue AND tenant IS :tenant
RETURNING id

-- name: add_gate
INSERT INTO gate (id, mode, kind, queue, tenant, reason, author, created_at, rate, ready_at, expires_at, stop_running)
VALUES (:id, :mode, :kind, :queue, :tenant, :reason, :author, :now, :rate, :now, :expires_at, :stop_running)

-- name: open_gate
DELETE FROM gate WHERE id = :id RETURNING id

-- name: open_expired
DELETE FROM gate WHERE expires_at <= :now RETURNING id

-- name: flag_lanes
UPDATE lane
   SET gate = flag.gate
  FROM (SELECT value ->> 0 AS id, value ->> 1 AS gate FROM json_each(:flags)) AS flag
 WHERE lane.id = flag.id

-- name: stop_behind
-- Asks what runs in some lanes to stop, to be given back or cancelled; who was asked before stays as he is.
UPDATE job
   SET cancel_at = :now, cancel_reason = :reason, held = :held, updated_at = :now
 WHERE rowid IN (
       SELECT rowid FROM job INDEXED BY job_running
        WHERE state = 'running' AND cancel_at IS NULL AND lane IN (SELECT value FROM json_each(:lanes)))
RETURNING rowid

-- name: slow_gates
SELECT id, rate, ready_at FROM gate WHERE mode = 'slow'

-- name: move_gate
UPDATE gate SET ready_at = :ready_at WHERE id = :id AND mode = 'slow'
