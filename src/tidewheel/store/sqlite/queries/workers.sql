-- name: register
INSERT INTO worker (id, name, queues, kinds, offer, ttl, registered_at, beat_at, lease_until)
VALUES (:id, :name, :queues, :kinds, :offer, :ttl, :now, :now, :now + :ttl)

-- name: worker
SELECT id, name, queues, kinds, offer, ttl, alive, beat, registered_at, beat_at, lease_until, ended_at
  FROM worker
 WHERE id = :worker

-- name: beat
UPDATE worker
   SET beat = beat + 1, beat_at = :now, lease_until = :now + ttl
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
SELECT id, name, queues, kinds, offer, ttl, alive, beat, registered_at, beat_at, lease_until, ended_at
  FROM worker
 WHERE :alive IS NULL OR alive = :alive
 ORDER BY id DESC

-- name: take_duty
INSERT INTO duty (name, holder, until, epoch) VALUES (:name, :holder, :now + :ttl, 1)
ON CONFLICT (name) DO UPDATE
   SET until = excluded.until, epoch = epoch + (holder <> excluded.holder), holder = excluded.holder
 WHERE holder = excluded.holder OR until <= :now
RETURNING name, holder, until, epoch

-- name: release_duty
-- The row stays, so that the epoch goes on rising.
UPDATE duty SET until = :now WHERE name = :name AND holder = :holder AND until > :now
