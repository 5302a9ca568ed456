-- name: set_weight
UPDATE tidewheel.tenant SET weight = $2 WHERE id = $1

-- name: tenants
SELECT name, weight, max_queued, max_payload, keep_logs
  FROM tidewheel.tenant
 WHERE $1::text IS NULL OR name = $1
 ORDER BY name COLLATE "C"
