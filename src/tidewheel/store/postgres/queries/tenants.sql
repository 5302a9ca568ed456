-- name: set_weight
UPDATE tidewheel.tenant SET weight = $2 WHERE id = $1

-- name: tenants
SELECT name, weight FROM tidewheel.tenant ORDER BY name
