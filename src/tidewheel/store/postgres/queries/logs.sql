-- name: append_logs
-- Whoever ran the job most often knows the lane. If not, the job is most often active; for what comes late `pieces`
-- looks at its record. The note has the lanes that were given: were it to ask what was stored, this would be planned anew
-- for each append, which takes longer than the append itself.
WITH stored AS (
    INSERT INTO tidewheel.log (job_id, token, first, last, stored_at, lane, lines)
    SELECT piece.job_id, piece.token, piece.first, piece.last, tidewheel.now(),
           coalesce(piece.lane, (SELECT job.lane FROM tidewheel.job WHERE job.id = piece.job_id)), piece.lines
      FROM unnest($1::uuid[], $2::text::bigint[], $3::text::bigint[], $4::text::bigint[], $5::text::integer[], $6::text[])
           AS piece (job_id, token, first, last, lane, lines)
)
INSERT INTO tidewheel.log_fresh (first_at, last_at, lines, chars, jobs, tokens, firsts, lanes)
VALUES (tidewheel.now(), tidewheel.now(), $7, $8, $1, $2::text::bigint[], $3::text::bigint[], $9::text::integer[])

-- name: logs
-- The next pieces beyond a line, as many as have $5 lines together, or $6 bytes. Of two with the same line the one that
-- was stored first counts; a line that came twice is shown once.
SELECT job_id, token, first, last, place, lines
  FROM (
       SELECT *, sum(count) OVER near_by - count AS before, sum(size) OVER near_by - size AS bytes_before
         FROM (
              SELECT job_id, token, first, last, (extract(epoch FROM stored_at) * 1000000)::bigint AS place, lines,
                     last - first + 1 AS count, octet_length(lines) AS size
                FROM tidewheel.log
               WHERE job_id = $1 AND stored_at >= $2::timestamptz - interval '1 day'
                 AND token >= $3 AND (token, last) > ($3, $4)
               ORDER BY token, first, stored_at
               LIMIT $5
              ) AS near
       WINDOW near_by AS (ORDER BY token, first, place ROWS UNBOUNDED PRECEDING)
       ) AS counted
 WHERE before < $5 AND bytes_before < $6
 ORDER BY token, first, place

-- name: last_logs
-- The last pieces before a line, in the same way.
SELECT job_id, token, first, last, place, lines
  FROM (
       SELECT *, sum(count) OVER near_by - count AS beyond, sum(size) OVER near_by - size AS bytes_beyond
         FROM (
              SELECT job_id, token, first, last, (extract(epoch FROM stored_at) * 1000000)::bigint AS place, lines,
                     last - first + 1 AS count, octet_length(lines) AS size
                FROM tidewheel.log
               WHERE job_id = $1 AND stored_at >= $2::timestamptz - interval '1 day'
                 AND token <= $3 AND (token, first) < ($3, $4)
               ORDER BY token DESC, first DESC, stored_at DESC
               LIMIT $5
              ) AS near
       WINDOW near_by AS (ORDER BY token DESC, first DESC, place ROWS UNBOUNDED PRECEDING)
       ) AS counted
 WHERE beyond < $5 AND bytes_beyond < $6

-- name: log_sight
-- The time, what can be seen, and the lanes that may have what is wanted; NULL stands for all. A standby does not say which
-- transactions are under way, and many of them are a long text: then what began after the first of them counts as not seen.
SELECT (extract(epoch FROM tidewheel.now()) * 1000000)::bigint AS at,
       CASE WHEN pg_is_in_recovery() OR (SELECT count(*) FROM pg_snapshot_xip(seen)) > $4
            THEN concat(pg_snapshot_xmin(seen), ':', pg_snapshot_xmin(seen), ':')
            ELSE seen::text END AS snapshot,
       CASE WHEN coalesce($1::text, $2::text, $3::text) IS NOT NULL THEN ARRAY(
            SELECT lane.id
              FROM tidewheel.lane
              JOIN tidewheel.tenant ON tenant.id = lane.tenant
             WHERE ($1 IS NULL OR tenant.name = $1) AND ($2 IS NULL OR lane.queue = $2) AND ($3 IS NULL OR lane.kind = $3))
       END AS lanes
  FROM pg_current_snapshot() AS seen

-- name: segments_with
-- The order is by an expression that no index has: only the words may lead to the segments.
SELECT first_at, last_at, jobs, tokens, firsts, NULL::integer AS lines
  FROM tidewheel.log_segment
 WHERE words @@ $1::text::tsquery AND last_at >= $2 AND first_at <= $3
 ORDER BY extract(epoch FROM last_at) DESC
 FETCH FIRST $4 ROWS WITH TIES

-- name: segments_with_first
SELECT first_at, last_at, jobs, tokens, firsts, NULL::integer AS lines
  FROM tidewheel.log_segment
 WHERE words @@ $1::text::tsquery AND last_at >= $2 AND first_at <= $3
 ORDER BY extract(epoch FROM first_at)
 FETCH FIRST $4 ROWS WITH TIES

-- name: segments
SELECT first_at, last_at, jobs, tokens, firsts, NULL::integer AS lines
  FROM tidewheel.log_segment
 WHERE $1::text IS NULL AND last_at >= $2 AND first_at <= $3
 ORDER BY last_at DESC
 FETCH FIRST $4 ROWS WITH TIES

-- name: segments_first
SELECT first_at, last_at, jobs, tokens, firsts, NULL::integer AS lines
  FROM tidewheel.log_segment
 WHERE $1::text IS NULL AND last_at >= $2 AND first_at <= $3
 ORDER BY first_at
 FETCH FIRST $4 ROWS WITH TIES

-- name: segments_news
-- Those that could not be seen. Whoever makes a segment sees its pieces, so all pieces of the others could be seen.
SELECT first_at, last_at, jobs, tokens, firsts, NULL::integer AS lines
  FROM tidewheel.log_segment
 WHERE xid >= pg_snapshot_xmin($5::text::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, $5::text::pg_snapshot)
   AND ($1::text IS NULL OR words @@ $1::text::tsquery) AND last_at >= $2 AND first_at <= $3
 ORDER BY first_at
 FETCH FIRST $4 ROWS WITH TIES

-- name: fresh
SELECT first_at, last_at, jobs, tokens, firsts, lines
  FROM tidewheel.log_fresh
 WHERE last_at >= $1 AND first_at <= $2
   AND ($4::integer[] IS NULL OR lanes && $4 OR array_position(lanes, NULL) IS NOT NULL)
 ORDER BY last_at DESC
 FETCH FIRST $3 ROWS WITH TIES

-- name: fresh_first
SELECT first_at, last_at, jobs, tokens, firsts, lines
  FROM tidewheel.log_fresh
 WHERE last_at >= $1 AND first_at <= $2
   AND ($4::integer[] IS NULL OR lanes && $4 OR array_position(lanes, NULL) IS NOT NULL)
 ORDER BY first_at
 FETCH FIRST $3 ROWS WITH TIES

-- name: fresh_news
SELECT first_at, last_at, jobs, tokens, firsts, lines
  FROM tidewheel.log_fresh
 WHERE xid >= pg_snapshot_xmin($5::text::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, $5::text::pg_snapshot)
   AND last_at >= $1 AND first_at <= $2
   AND ($4::integer[] IS NULL OR lanes && $4 OR array_position(lanes, NULL) IS NOT NULL)
 ORDER BY first_at
 FETCH FIRST $3 ROWS WITH TIES

-- name: pieces
-- The pieces of segments; the instants bound the days to look through. Of some lanes alone, if these are given, and only
-- what could not be seen at $7 and could be at $8. Also whether another one has all of the same lines: after an error with
-- unknown outcome they come again, within a day. Then the earlier one counts, or the one that could be seen at $7.
SELECT log.job_id, log.token, log.first, log.last, log.lines, log.stored_at, tenant.name AS tenant, lane.queue, lane.kind,
       EXISTS (
           SELECT FROM tidewheel.log AS other
            WHERE other.job_id = log.job_id AND other.token = log.token AND other.first = log.first
              AND other.last >= log.last AND other.stored_at >= log.stored_at - interval '1 day'
              AND other.stored_at < log.stored_at + CASE WHEN $7::text IS NULL THEN interval '0' ELSE interval '1 day' END
              AND ($8::text IS NULL OR pg_visible_in_snapshot(other.xid, $8::text::pg_snapshot))
              AND (other.stored_at < log.stored_at OR pg_visible_in_snapshot(other.xid, $7::text::pg_snapshot))
       ) AS again
  FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS named (job_id, token, first)
 CROSS JOIN LATERAL (
       SELECT * FROM tidewheel.log
        WHERE log.job_id = named.job_id AND log.token = named.token AND log.first = named.first
          AND log.stored_at >= $4 AND log.stored_at <= $5
          AND ($6::integer[] IS NULL OR log.lane = ANY ($6) OR log.lane IS NULL)
          AND ($7::text IS NULL OR NOT pg_visible_in_snapshot(log.xid, $7::text::pg_snapshot))
          AND ($8::text IS NULL OR pg_visible_in_snapshot(log.xid, $8::text::pg_snapshot))
       ) AS log
  JOIN tidewheel.lane ON lane.id = coalesce(log.lane, (
       SELECT history.lane FROM tidewheel.job_history AS history
        WHERE history.id = log.job_id AND history.finished_at <= log.stored_at
        LIMIT 1))
  JOIN tidewheel.tenant ON tenant.id = lane.tenant

-- name: log_ages
SELECT id, keep_logs FROM tidewheel.tenant WHERE keep_logs IS NOT NULL ORDER BY id

-- name: retire_lines
-- The lines of some jobs of a day: of a tenant, or of those without an age of their own.
WITH lanes AS MATERIALIZED (
    SELECT array_agg(lane.id) AS ids
      FROM tidewheel.lane
      JOIN tidewheel.tenant ON tenant.id = lane.tenant
     WHERE CASE WHEN $2::integer IS NULL THEN tenant.keep_logs IS NULL ELSE tenant.id = $2 END
), jobs AS MATERIALIZED (
    SELECT DISTINCT job_id
      FROM (SELECT job_id
              FROM tidewheel.log
             WHERE stored_at >= $1::timestamptz AND stored_at < $1::timestamptz + interval '1 day'
               AND lane = ANY ((SELECT ids FROM lanes)::integer[])
             LIMIT $3) AS found
), gone AS (
    DELETE FROM tidewheel.log
     WHERE stored_at >= $1::timestamptz AND stored_at < $1::timestamptz + interval '1 day'
       AND job_id = ANY (ARRAY(SELECT job_id FROM jobs))
    RETURNING 1
)
SELECT count(*) FROM gone

-- name: lock_segments
-- Words are gathered by one at a time, and not while lines are erased.
SELECT pg_advisory_xact_lock(8433, 3)

-- name: next_fresh
-- The first that are in no segment, with whether they have waited long enough.
SELECT id, first_at, last_at, lines, chars, jobs, tokens, firsts, last_at < tidewheel.now() - $2::interval AS old
  FROM tidewheel.log_fresh
 ORDER BY id
 LIMIT $1

-- name: unindexed
-- The first one waits longest, also if its lines were taken out of a segment and are old.
SELECT coalesce(sum(lines), 0)::bigint, coalesce(max(waits), interval '0')
  FROM (SELECT lines, greatest(tidewheel.now() - noted_at, interval '0') AS waits
          FROM tidewheel.log_fresh
         ORDER BY id
         LIMIT $1) AS first

-- name: note_lanes_of_late
-- Lines that came after the end of their jobs learn the lane before the records of these go.
UPDATE tidewheel.log
   SET lane = history.lane
  FROM tidewheel.job_history AS history
 WHERE log.job_id = ANY ($1::uuid[]) AND log.stored_at >= $2 AND log.stored_at <= $3 AND log.lane IS NULL
   AND history.id = log.job_id

-- name: add_segment
INSERT INTO tidewheel.log_segment (first_at, last_at, jobs, tokens, firsts, words)
VALUES ($1, $2, $3, $4, $5, array_to_tsvector($6::text[]))

-- name: remove_fresh
DELETE FROM tidewheel.log_fresh WHERE id = ANY ($1::bigint[])

-- name: unindex_logs
-- The segments with lines of a job, whose words are to be gathered anew; each is enough for one again.
WITH gone AS (
    DELETE FROM tidewheel.log_segment WHERE $1 = ANY (jobs) RETURNING *
)
INSERT INTO tidewheel.log_fresh (first_at, last_at, lines, chars, jobs, tokens, firsts, lanes)
SELECT first_at, last_at, 1000, 0, jobs, tokens, firsts, ARRAY[NULL]::integer[] FROM gone
