-- Phrases by which jobs are found, and the moments in which jobs with them were made; see model/job_phrases.py.

-- name: note_phrases
-- Two who note the same at once both do: no index is unique, so that nobody waits here for anybody's commit. What is known
-- is looked up one by one: a join might read whole tables, if it was planned when these were small.
WITH said AS MATERIALIZED (
    SELECT tidewheel.phrase_id(tenant, phrase) AS id, tenant, phrase, moment
      FROM unnest($1::integer[], $2::text[], $3::bigint[]) AS said (tenant, phrase, moment)
), fresh AS MATERIALIZED (
    SELECT * FROM said
     WHERE (SELECT true FROM tidewheel.phrase_moment AS known
             WHERE known.phrase = said.id AND known.moment = said.moment LIMIT 1) IS NULL
), named AS (
    INSERT INTO tidewheel.phrase (period, id, tenant, phrase)
    SELECT DISTINCT moment >> 16, id, tenant, phrase FROM fresh
     WHERE (SELECT true FROM tidewheel.phrase AS known
             WHERE known.period = fresh.moment >> 16 AND known.id = fresh.id LIMIT 1) IS NULL
)
INSERT INTO tidewheel.phrase_moment (phrase, moment) SELECT id, moment FROM fresh

-- name: phrases_that_are
-- Of one tenant, or of each.
SELECT tidewheel.phrase_id(tenant.id, sought.phrase) AS id
  FROM tidewheel.tenant
 CROSS JOIN unnest($2::text[]) AS sought (phrase)
 WHERE $1::integer IS NULL OR tenant.id = $1
 LIMIT $3

-- name: phrases_of_kind
-- Of one tenant, or of each that has it.
SELECT DISTINCT tidewheel.phrase_id(tenant, $2) AS id
  FROM tidewheel.lane
 WHERE kind = $3 AND ($1::integer IS NULL OR tenant = $1)
 LIMIT $4

-- name: phrases_with
-- The phrases of some periods in which a word stands, of not more than so many rows. `IS TRUE` keeps the planner off the
-- index of periods.
SELECT id, count(*) AS seen
  FROM (
       SELECT id FROM tidewheel.phrase
        WHERE tidewheel.parts_of(phrase) @> $1::text[] AND phrase LIKE $2 AND ($3::integer IS NULL OR tenant = $3)
          AND (period >= $4) IS TRUE AND (period <= $5) IS TRUE
        LIMIT $6
       ) AS found
 GROUP BY id

-- name: moments_of_phrases
-- The newest moments of each phrase.
SELECT array_agg(made.moment ORDER BY made.moment DESC) AS moments
  FROM unnest($1::bigint[]) AS named (id)
 CROSS JOIN LATERAL (
       SELECT moment FROM tidewheel.phrase_moment
        WHERE (phrase, moment) >= (named.id, $3::bigint) AND (phrase, moment) <= (named.id, $2::bigint)
        ORDER BY phrase DESC, moment DESC
        LIMIT $4
       ) AS made
 GROUP BY named.id

-- name: periods_of_phrases
-- All periods before one, each found by a single look; that of the keel is none.
WITH RECURSIVE known AS (
    (SELECT period FROM tidewheel.phrase WHERE period > 0 AND period < $1 ORDER BY period LIMIT 1)
    UNION ALL
    SELECT (SELECT period FROM tidewheel.phrase WHERE period > known.period AND period < $1 ORDER BY period LIMIT 1)
      FROM known
     WHERE known.period IS NOT NULL
)
SELECT period FROM known WHERE period IS NOT NULL

-- name: any_job_between
SELECT (SELECT id FROM tidewheel.job WHERE id < $1 AND id >= $2 ORDER BY id LIMIT 1) IS NOT NULL
    OR (SELECT id FROM tidewheel.job_history WHERE id < $1 AND id >= $2 ORDER BY id LIMIT 1) IS NOT NULL

-- name: forget_phrases
-- Some phrases of a period of which no job is left, with their moments in it.
WITH gone AS (
    DELETE FROM tidewheel.phrase
     WHERE ctid = ANY (ARRAY(SELECT ctid FROM tidewheel.phrase WHERE period = $1 LIMIT $2))
    RETURNING id
), forgotten AS (
    DELETE FROM tidewheel.phrase_moment
     WHERE phrase = ANY (ARRAY(SELECT id FROM gone)) AND moment >= $1 << 16 AND moment < ($1 + 1) << 16
)
SELECT count(*) FROM gone

-- name: found_by
-- What jobs of a moment are found by; and what one of them, which has ended, was found by before it went round again.
SELECT id, tenant, labels, options, NULL AS message FROM tidewheel.job WHERE id < $1 AND id >= $2
UNION ALL
SELECT id, tenant, labels, options, error ->> 'message' FROM tidewheel.job_history WHERE id < $1 AND id >= $2
UNION ALL
SELECT job.id, job.tenant, NULL, NULL, attempt.error ->> 'message'
  FROM tidewheel.attempt
  JOIN tidewheel.job_history AS job ON job.id = attempt.job_id
 WHERE attempt.job_id = $3 AND job.id = $3

-- name: is_kind
SELECT EXISTS (SELECT FROM tidewheel.lane WHERE tenant = $1 AND lower(kind COLLATE "C") = $2)

-- name: erase_moment
DELETE FROM tidewheel.phrase_moment WHERE phrase = tidewheel.phrase_id($1, $2) AND moment = $3

-- name: erase_phrase
-- If no job of the period has it any more.
DELETE FROM tidewheel.phrase
 WHERE period = $3::bigint >> 16 AND id = tidewheel.phrase_id($1, $2)
   AND NOT EXISTS (
       SELECT FROM tidewheel.phrase_moment AS made
        WHERE made.phrase = phrase.id AND made.moment >= phrase.period << 16 AND made.moment < (phrase.period + 1) << 16)
