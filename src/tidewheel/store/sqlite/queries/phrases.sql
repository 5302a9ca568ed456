-- Phrases by which jobs are found, and the moments in which jobs with them were made; see model/job_phrases.py.

-- name: note_phrases
INSERT INTO phrase (phrase, tenant, period)
SELECT value ->> 1, value ->> 0, value ->> 2 >> 16 FROM json_each(:said) WHERE true
ON CONFLICT DO NOTHING

-- name: note_moments
INSERT INTO phrase_moment (phrase, moment)
SELECT phrase.id, said.value ->> 2
  FROM json_each(:said) AS said
 CROSS JOIN phrase ON phrase.phrase = said.value ->> 1 AND phrase.tenant = said.value ->> 0
                  AND phrase.period = said.value ->> 2 >> 16
 WHERE true
ON CONFLICT DO NOTHING

-- name: messages_of_ended
-- Of those that were just copied to history.
SELECT tenant, id, error ->> 'message'
  FROM job_history
 WHERE rowid BETWEEN :first AND :last AND state <> 'succeeded' AND error IS NOT NULL

-- name: phrases_that_are
-- Of one tenant, or of each.
SELECT id FROM phrase
 WHERE phrase = :phrase AND (:tenant IS NULL OR tenant = :tenant) AND period BETWEEN :first AND :last
 LIMIT :limit

-- name: phrases_with
-- The phrases of some periods in which a word stands.
SELECT phrase.id
  FROM phrase_parts
 CROSS JOIN phrase ON phrase.id = phrase_parts.rowid
 WHERE phrase_parts MATCH :parts AND instr(phrase.phrase, :word) > 0 AND (:tenant IS NULL OR phrase.tenant = :tenant)
   AND phrase.period BETWEEN :first AND :last
 LIMIT :limit

-- name: moments_of_phrase
SELECT moment FROM phrase_moment
 WHERE phrase = :phrase AND moment BETWEEN :first AND :last
 ORDER BY moment DESC
 LIMIT :limit

-- name: old_periods_of_phrases
-- All periods before one, each found by a single look.
WITH RECURSIVE known (period) AS (
    SELECT min(period) FROM phrase WHERE period < :young
    UNION ALL
    SELECT (SELECT min(period) FROM phrase WHERE phrase.period > known.period AND phrase.period < :young)
      FROM known
     WHERE known.period IS NOT NULL
)
SELECT period FROM known WHERE period IS NOT NULL

-- name: any_job_between
SELECT EXISTS (SELECT 1 FROM job WHERE id < :below AND id >= :floor)
    OR EXISTS (SELECT 1 FROM job_history WHERE id < :below AND id >= :floor)

-- name: phrases_of_period
SELECT json_group_array(id) FROM (SELECT id FROM phrase WHERE period = :period LIMIT :limit)

-- name: remove_moments
DELETE FROM phrase_moment WHERE phrase IN (SELECT value FROM json_each(:phrases))

-- name: remove_phrases
DELETE FROM phrase WHERE id IN (SELECT value FROM json_each(:phrases))

-- name: found_by
-- What jobs of a moment are found by; and what one of them, which has ended, was found by before it went round again.
SELECT id, tenant, labels, options, NULL FROM job WHERE id < :below AND id >= :floor
UNION ALL
SELECT id, tenant, labels, options, error ->> 'message' FROM job_history WHERE id < :below AND id >= :floor
UNION ALL
SELECT job.id, job.tenant, NULL, NULL, attempt.error ->> 'message'
  FROM attempt
 CROSS JOIN job_history AS job ON job.id = attempt.job_id
 WHERE attempt.job_id = :id

-- name: is_kind
SELECT EXISTS (SELECT 1 FROM lane WHERE tenant = :tenant AND lower(kind) = :phrase)

-- name: erase_moment
DELETE FROM phrase_moment
 WHERE moment = :moment
   AND phrase = (SELECT id FROM phrase WHERE phrase = :phrase AND tenant = :tenant AND period = :moment >> 16)

-- name: erase_phrase
-- If no job of the period has it any more.
DELETE FROM phrase
 WHERE phrase = :phrase AND tenant = :tenant AND period = :moment >> 16
   AND NOT EXISTS (SELECT 1 FROM phrase_moment WHERE phrase_moment.phrase = phrase.id)
