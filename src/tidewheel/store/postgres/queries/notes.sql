-- name: note_runs
-- Only for runs that are still this worker's, which are held until the note is there: nobody takes one back in between.
-- What a run noted goes when the next one notes something, but for the checkpoint.
WITH mine AS MATERIALIZED (
    SELECT note.*
      FROM unnest($2::uuid[], $3::bigint[], $4::float8[], $5::text[], $6::text[], $7::boolean[])
           AS note (id, token, progress, message, checkpoint, paused)
     CROSS JOIN LATERAL (
           SELECT FROM tidewheel.job
            WHERE job.id = note.id AND job.token = note.token
              AND job.state || '' = 'running' AND job.worker IS NOT DISTINCT FROM $1
            LIMIT 1
              FOR SHARE
           ) AS job
)
INSERT INTO tidewheel.run_note AS kept (job_id, token, progress, message, checkpoint, paused, updated_at)
SELECT id, token, progress, message, checkpoint::json, paused, tidewheel.now() FROM mine
ON CONFLICT (job_id) DO UPDATE
   SET token = excluded.token,
       progress = coalesce(excluded.progress, CASE WHEN kept.token = excluded.token THEN kept.progress END),
       message = CASE WHEN kept.token = excluded.token AND excluded.progress IS NULL AND excluded.message = ''
                      THEN kept.message ELSE excluded.message END,
       checkpoint = coalesce(excluded.checkpoint, kept.checkpoint),
       paused = coalesce(excluded.paused, CASE WHEN kept.token = excluded.token THEN kept.paused END),
       updated_at = excluded.updated_at
 WHERE kept.token <= excluded.token

-- name: notes_of
SELECT job_id, token, progress, message, paused FROM tidewheel.run_note WHERE job_id = ANY ($1::uuid[])

-- name: checkpoint_of
SELECT checkpoint FROM tidewheel.run_note WHERE job_id = $1

-- name: retire_notes
-- A note outlives its job by a day.
WITH gone AS (
    DELETE FROM tidewheel.run_note
     WHERE job_id = ANY (ARRAY(
           SELECT old.job_id
             FROM tidewheel.run_note AS old
            WHERE old.updated_at < tidewheel.now() - interval '1 day'
              AND NOT EXISTS (SELECT FROM tidewheel.job WHERE job.id = old.job_id)
            ORDER BY old.updated_at
            LIMIT $1))
    RETURNING 1
)
SELECT count(*) FROM gone
