-- name: meta
SELECT epoch, lanes, census_at, (SELECT min(look_at) FROM limit_key WHERE look_at IS NOT NULL) FROM meta

-- name: begin_epoch
UPDATE meta SET epoch = epoch + 1 RETURNING epoch

-- name: lanes_changed
UPDATE meta SET lanes = lanes + 1

-- name: tenants
SELECT id, name, weight FROM tenant

-- name: lanes
SELECT id, tenant, queue, kind, needs, keyed, retried, overdue, gate FROM lane

-- name: gates
SELECT id, mode, kind, queue, tenant, reason, author, created_at, rate, ready_at, expires_at, stop_running
  FROM gate
 ORDER BY created_at, id

-- name: add_tenant
INSERT INTO tenant (name) VALUES (:name) RETURNING id

-- name: add_lane
INSERT INTO lane (tenant, queue, kind, needs, keyed, retried, overdue, gate)
VALUES (:tenant, :queue, :kind, :needs, :keyed, :retried, :overdue, :gate)
RETURNING id
