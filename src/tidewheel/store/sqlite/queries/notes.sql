-- name: note_runs
-- Only for runs that are still this worker's. What a run noted goes when the next one notes something, but for the
-- checkpoint.
INSERT INTO run_note (job_id, token, progress, message, checkpoint, paused, updated_at)
SELECT job.id, job.token, note.value ->> 2, note.value ->> 3, note.value ->> 4, note.value ->> 5, :now
  FROM json_each(:notes) AS note
 CROSS JOIN job ON job.id = unhex(note.value ->> 0)
 WHERE job.token = note.value ->> 1 AND +job.state = 'running' AND +job.worker = :worker
ON CONFLICT (job_id) DO UPDATE
   SET progress = coalesce(excluded.progress, CASE WHEN token = excluded.token THEN progress END),
       message = CASE WHEN token = excluded.token AND excluded.progress IS NULL AND excluded.message = ''
                      THEN message ELSE excluded.message END,
       checkpoint = coalesce(excluded.checkpoint, checkpoint),
       paused = coalesce(excluded.paused, CASE WHEN token = excluded.token THEN paused END),
       token = excluded.token, updated_at = excluded.updated_at

-- name: notes_of
SELECT job_id, token, progress, message, paused
  FROM run_note
 WHERE job_id IN (SELECT unhex(value) FROM json_each(:jobs))

-- name: checkpoint_of
SELECT checkpoint FROM run_note WHERE job_id = :id

-- name: remove_notes
DELETE FROM run_note
 WHERE job_id IN (SELECT id FROM job_history WHERE rowid IN (SELECT value FROM json_each(:places)))

-- name: retire_notes
-- A note outlives its job by a day.
DELETE FROM run_note
 WHERE job_id IN (
       SELECT old.job_id
         FROM run_note AS old
        WHERE old.updated_at < :until AND NOT EXISTS (SELECT 1 FROM job WHERE job.id = old.job_id)
        ORDER BY old.updated_at
        LIMIT :limit)
RETURNING 1
