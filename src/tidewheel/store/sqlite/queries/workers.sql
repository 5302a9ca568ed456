-- name: register
INSERT INTO worker (id, name, queues, kinds, offer, tenant, ttl, registered_at, beat_at, lease_until)
VALUES (:id, :name, :queues, :kinds, :offer, :tenant, :ttl, :now, :now, :now + :ttl)

-- name: worker
SELECT id, name, queues, kinds, offer, tenant, ttl, alive, beat, clock_ahead, registered_at, beat_at, lease_until,
       ended_at
  FROM worker
 WHERE id = :worker

-- name: beat
UPDATE worker
   SET beat = beat + 1, beat_at = :now, lease_until = :now + ttl, clock_ahead = coalesce(:clock - :now, clock_ahead)
 WHERE id IN (SELECT unhex(value) FROM json_each(:workers)) AND alive
RETURNING id, beat, lease_until

-- name: cancelling
SELECT worker, id, token
  FROM job
 WHERE state = 'running' AND worker IN (SELECT unhex(value) FROM json_each(:workers)) AND cancel_at IS NOT NULL
 ORDER BY id

-- name: expired_workers
SELECT id, beat, ttl FROM worker WHERE alive AND lease_until <= :now ORDER BY lease_until, id

-- name: end_worker
-- With a beat given, only if that was its last and its lease has passed.
UPDATE worker
   SET alive = 0, ended_at = :now
 WHERE id = :worker AND alive AND (:beat IS NULL OR (beat = :beat AND lease_until <= :now))
RETURNING id

-- name: workers
SELECT id, name, queues, kinds, offer, tenant, ttl, alive, beat, clock_ahead, registered_at, beat_at, lease_until,
       ended_at
  FROM worker
 WHERE :alive IS NULL OR alive = :alive
 ORDER BY id DESC
