-- name: append_piece
-- Whoever ran the job most often knows the lane. If not, the job is most often active; for what comes late its record
-- tells it. The values are given in the order in which they stand here.
INSERT INTO log (job_id, token, first, last, stored_at, lane, lines)
VALUES (:job, :token, :first, :last, :now,
        coalesce(:lane, (SELECT lane FROM job WHERE id = :job), (SELECT lane FROM job_history WHERE id = :job)), :lines)

-- name: add_fresh
INSERT INTO log_fresh (low, high, first_at, last_at, lines, chars, noted_at, lanes)
VALUES (:low, :high, :first_at, :last_at, :lines, :chars, :now,
        (SELECT json_group_array(DISTINCT lane) FROM log WHERE id >= :low AND id <= :high))

-- name: logs
-- The next pieces beyond a line, as many as have `:limit` lines together, or `:bytes`. Their lines are read at the end, of
-- those pieces alone.
SELECT log.job_id, log.token, log.first, log.last, log.id, log.lines
  FROM (
       SELECT id, sum(count) OVER near - count AS before, sum(size) OVER near - size AS bytes_before
         FROM (
              SELECT token, first, id, last - first + 1 AS count, octet_length(lines) AS size
                FROM log
               WHERE job_id = :id AND token >= :token AND (token, last) > (:token, :number)
               ORDER BY token, first, id
               LIMIT :limit)
       WINDOW near AS (ORDER BY token, first, id ROWS UNBOUNDED PRECEDING)
       ) AS counted
 CROSS JOIN log ON log.id = counted.id
 WHERE counted.before < :limit AND counted.bytes_before < :bytes
 ORDER BY log.token, log.first, log.id

-- name: last_logs
-- The last pieces before a line, in the same way.
SELECT log.job_id, log.token, log.first, log.last, log.id, log.lines
  FROM (
       SELECT id, sum(count) OVER near - count AS beyond, sum(size) OVER near - size AS bytes_beyond
         FROM (
              SELECT token, first, id, last - first + 1 AS count, octet_length(lines) AS size
                FROM log
               WHERE job_id = :id AND token <= :token AND (token, first) < (:token, :number)
               ORDER BY token DESC, first DESC, id
               LIMIT :limit)
       WINDOW near AS (ORDER BY token DESC, first DESC, id ROWS UNBOUNDED PRECEDING)
       ) AS counted
 CROSS JOIN log ON log.id = counted.id
 WHERE counted.beyond < :limit AND counted.bytes_beyond < :bytes

-- name: log_sight
-- The last piece that can be seen, and the lanes that may have what is wanted; NULL stands for all.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'log'), 0),
       CASE WHEN coalesce(:tenant, :queue, :kind) IS NOT NULL THEN (
            SELECT json_group_array(lane.id)
              FROM lane
              JOIN tenant ON tenant.id = lane.tenant
             WHERE (:tenant IS NULL OR tenant.name = :tenant) AND (:queue IS NULL OR lane.queue = :queue)
               AND (:kind IS NULL OR lane.kind = :kind))
       END

-- name: segments_with
SELECT segment.first_at, segment.last_at, segment.low, segment.high, NULL
  FROM log_words
 CROSS JOIN log_segment AS segment ON segment.id = log_words.rowid
 WHERE log_words MATCH :words AND segment.last_at >= :since AND segment.first_at <= :until
 ORDER BY segment.last_at DESC

-- name: segments_with_first
SELECT segment.first_at, segment.last_at, segment.low, segment.high, NULL
  FROM log_words
 CROSS JOIN log_segment AS segment ON segment.id = log_words.rowid
 WHERE log_words MATCH :words AND segment.last_at >= :since AND segment.first_at <= :until
 ORDER BY segment.first_at

-- name: segments
SELECT first_at, last_at, low, high, NULL
  FROM log_segment
 WHERE :words IS NULL AND last_at >= :since AND first_at <= :until
 ORDER BY last_at DESC

-- name: segments_first
SELECT first_at, last_at, low, high, NULL
  FROM log_segment
 WHERE :words IS NULL AND last_at >= :since AND first_at <= :until
 ORDER BY first_at

-- name: segments_news_first
-- Of pieces beyond one that was seen: the others are stored in the order of their ids.
SELECT first_at, last_at, low, high, NULL
  FROM log_segment
 WHERE :words IS NULL AND high > :seen AND last_at >= :since AND first_at <= :until
 ORDER BY first_at

-- name: segments_news_with_first
SELECT segment.first_at, segment.last_at, segment.low, segment.high, NULL
  FROM log_segment AS segment
 CROSS JOIN log_words ON log_words.rowid = segment.id
 WHERE log_words MATCH :words AND segment.high > :seen AND segment.last_at >= :since AND segment.first_at <= :until
 ORDER BY segment.first_at

-- name: fresh
SELECT first_at, last_at, low, high, lines
  FROM log_fresh
 WHERE last_at >= :since AND first_at <= :until
   AND (:lanes IS NULL
        OR EXISTS (SELECT 1 FROM json_each(lanes) AS own WHERE own.value IN (SELECT value FROM json_each(:lanes))))
 ORDER BY last_at DESC

-- name: fresh_first
SELECT first_at, last_at, low, high, lines
  FROM log_fresh
 WHERE last_at >= :since AND first_at <= :until AND high > :seen
   AND (:lanes IS NULL
        OR EXISTS (SELECT 1 FROM json_each(lanes) AS own WHERE own.value IN (SELECT value FROM json_each(:lanes))))
 ORDER BY first_at

-- name: pieces
-- Also whether an earlier one has all of the same lines: after an error with unknown outcome they come again.
SELECT log.job_id, log.token, log.first, log.last, log.lines, log.stored_at, tenant.name, lane.queue, lane.kind,
       EXISTS (
           SELECT 1 FROM log AS earlier
            WHERE earlier.job_id = log.job_id AND earlier.token = log.token AND earlier.first = log.first
              AND earlier.last >= log.last AND earlier.id < log.id)
  FROM log
 CROSS JOIN lane ON lane.id = log.lane
 CROSS JOIN tenant ON tenant.id = lane.tenant
 WHERE log.id >= :low AND log.id <= :high
   AND (:lanes IS NULL OR log.lane IN (SELECT value FROM json_each(:lanes)))

-- name: next_fresh
SELECT id, low, high, first_at, last_at, lines, chars FROM log_fresh ORDER BY id LIMIT :limit

-- name: unindexed
-- The first one waits longest, also if its lines were taken out of a segment and are old.
SELECT coalesce(sum(lines), 0), coalesce(max(0, :now - min(noted_at)), 0)
  FROM (SELECT lines, noted_at FROM log_fresh ORDER BY id LIMIT :limit)

-- name: remove_fresh
-- Only if all of them are still there: whoever comes second has nothing to add.
DELETE FROM log_fresh
 WHERE id IN (SELECT value FROM json_each(:ids))
   AND (SELECT count(*) FROM log_fresh WHERE id IN (SELECT value FROM json_each(:ids))) = json_array_length(:ids)

-- name: add_segment
INSERT INTO log_segment (low, high, first_at, last_at) VALUES (:low, :high, :first_at, :last_at) RETURNING id

-- name: add_words
INSERT INTO log_words (rowid, words) VALUES (:segment, :words)

-- name: remove_words
DELETE FROM log_words WHERE rowid = :segment

-- name: segments_of_job
SELECT id, low, high, first_at, last_at
  FROM log_segment
 WHERE EXISTS (SELECT 1 FROM log WHERE job_id = :id AND log.id >= log_segment.low AND log.id <= log_segment.high)

-- name: fresh_of_job
SELECT id, low, high, first_at, last_at, lines, chars
  FROM log_fresh
 WHERE EXISTS (SELECT 1 FROM log WHERE job_id = :id AND log.id >= log_fresh.low AND log.id <= log_fresh.high)

-- name: remove_segment
DELETE FROM log_segment WHERE id = :segment

-- name: retire_logs
-- Rows are in the order in which they were stored, so the old ones come first.
DELETE FROM log
 WHERE id IN (SELECT id FROM (SELECT id, stored_at FROM log ORDER BY id LIMIT :limit) WHERE stored_at < :until)
RETURNING 1

-- name: log_ages
SELECT id, keep_logs FROM tenant WHERE keep_logs IS NOT NULL

-- name: next_lines
-- The next pieces that were stored before then, with whether they are a tenant's; none stands for those without an age.
SELECT near.id, CASE WHEN :tenant IS NULL THEN tenant.keep_logs IS NULL ELSE tenant.id = :tenant END
  FROM (SELECT id, stored_at, lane FROM log WHERE id > :beyond ORDER BY id LIMIT :limit) AS near
  LEFT JOIN lane ON lane.id = near.lane
  LEFT JOIN tenant ON tenant.id = lane.tenant
 WHERE near.stored_at < :until
 ORDER BY near.id

-- name: remove_lines
DELETE FROM log WHERE id IN (SELECT value FROM json_each(:ids))

-- name: retire_fresh
DELETE FROM log_fresh WHERE high < coalesce((SELECT min(id) FROM log), 0) OR NOT EXISTS (SELECT 1 FROM log)

-- name: old_segments
SELECT id FROM log_segment
 WHERE high < coalesce((SELECT min(id) FROM log), 9223372036854775807)
 ORDER BY high
 LIMIT :limit
