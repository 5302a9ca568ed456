-- name: set_weight
UPDATE tenant SET weight = :weight WHERE id = :tenant
