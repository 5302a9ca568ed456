-- name: notify
-- Sent as one simple query, which is one transaction; that it lasts is worth no wait for the disk.
SET LOCAL synchronous_commit = off; NOTIFY tidewheel

-- name: still_there
SELECT 1
