-- name: append_logs
INSERT INTO log (job_id, token, number, at, stored_at, stream, level, text)
SELECT unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3, :now, value ->> 4, value ->> 5, value ->> 6
  FROM json_each(:lines)
 WHERE true
ON CONFLICT (job_id, token, number) DO NOTHING

-- name: logs
SELECT job_id, token, number, at, stream, level, text
  FROM log
 WHERE job_id = :id AND (token, number) > (:token, :number)
 ORDER BY token, number
 LIMIT :limit

-- name: retire_logs
-- Rows are in the order in which they were stored, so the old ones come first.
DELETE FROM log
 WHERE rowid IN (
       SELECT rowid FROM (SELECT rowid, stored_at FROM log ORDER BY rowid LIMIT :limit) WHERE stored_at < :until)
RETURNING 1
