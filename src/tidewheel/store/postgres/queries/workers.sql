-- name: register
INSERT INTO tidewheel.worker (id, name, queues, kinds, offer, ttl, tenant, registered_at, beat_at, lease_until)
VALUES ($1, $2, $3, $4, $5, $6, $7, tidewheel.now(), tidewheel.now(), tidewheel.now() + $6)
RETURNING *

-- name: worker
SELECT * FROM tidewheel.worker WHERE id = $1

-- name: beat
-- Locked in the order of the ids, as everywhere. With what each is asked to stop, so that a beat is one statement; looked up
-- worker by worker, for a join might read all jobs.
WITH own AS (
    SELECT id FROM tidewheel.worker WHERE id = ANY ($1::uuid[]) AND alive ORDER BY id FOR NO KEY UPDATE
), renewed AS (
    UPDATE tidewheel.worker
       SET beat = worker.beat + 1, beat_at = tidewheel.now(), lease_until = tidewheel.now() + worker.ttl,
           clock_ahead = coalesce($2::timestamptz - tidewheel.now(), clock_ahead)
      FROM own
     WHERE worker.id = own.id AND worker.alive
    RETURNING worker.id, worker.beat, worker.lease_until
)
SELECT id, beat, lease_until,
       ARRAY(SELECT (job.id, job.token) FROM tidewheel.job
              WHERE state = 'running' AND cancel_at IS NOT NULL AND worker = renewed.id) AS stops
  FROM renewed

-- name: cancelling
SELECT worker, id, token
  FROM tidewheel.job
 WHERE state = 'running' AND cancel_at IS NOT NULL AND worker = ANY ($1::uuid[])

-- name: expired_workers
SELECT id, beat, ttl FROM tidewheel.worker WHERE alive AND lease_until <= tidewheel.now() ORDER BY lease_until

-- name: end_worker
-- Waits for claims in flight, which hold the row for KEY SHARE. The runs are looked for in a later statement, whose
-- snapshot sees what those claims took.
UPDATE tidewheel.worker
   SET alive = false, ended_at = tidewheel.now()
 WHERE id = (SELECT id FROM tidewheel.worker WHERE id = $1 AND alive FOR UPDATE)
   AND alive AND ($2::bigint IS NULL OR (beat = $2 AND lease_until <= tidewheel.now()))
RETURNING id

-- name: workers
SELECT * FROM tidewheel.worker WHERE $1::boolean IS NULL OR alive = $1 ORDER BY id DESC
