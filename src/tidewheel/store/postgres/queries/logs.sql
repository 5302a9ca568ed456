-- name: append_logs
INSERT INTO tidewheel.log (job_id, token, number, at, stored_at, stream, level, text)
SELECT line.job_id, line.token, line.number, line.at, tidewheel.now(), line.stream, line.level, line.text
  FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::text[], $6::text[], $7::text[])
       AS line (job_id, token, number, at, stream, level, text)

-- name: logs
-- A line that came twice, for the answer to the first was lost, is shown once, as it came first.
SELECT DISTINCT ON (token, number) job_id, token, number, at, stream, level, text
  FROM tidewheel.log
 WHERE job_id = $1 AND stored_at >= $2::timestamptz - interval '1 day' AND (token, number) > ($3, $4)
 ORDER BY token, number, stored_at
 LIMIT $5
