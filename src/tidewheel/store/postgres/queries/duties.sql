-- name: be_there
-- Renews the lease of a node, and tells who else is there and who has which duty; one row for each of either.
-- None if there are $4 others already.
WITH present AS (
    INSERT INTO tidewheel.keeper (id, duties, until)
    SELECT $1, $2, tidewheel.now() + $3
     WHERE (SELECT count(*) FROM tidewheel.keeper WHERE until > tidewheel.now() AND id <> $1) < $4
    ON CONFLICT (id) DO UPDATE SET duties = excluded.duties, until = excluded.until
    RETURNING id
)
SELECT id AS node, NULL::text[] AS duties, NULL::text AS name, NULL::bigint AS epoch, NULL::timestamptz AS until
  FROM present
UNION ALL
SELECT id, duties, NULL, NULL, NULL
  FROM tidewheel.keeper
 WHERE until > tidewheel.now() AND id <> $1
UNION ALL
SELECT holder, NULL, name, epoch, tidewheel.now() + $3 FROM tidewheel.duty

-- name: move_duties
-- In the order of the names, so that two nodes never wait for one another. Who has a duty and is there keeps it. One that
-- comes back just now may believe for one lease that it still has what another takes: a chore done twice does no harm.
WITH given AS (
    UPDATE tidewheel.duty SET holder = NULL
     WHERE name = ANY (ARRAY(
           SELECT name FROM tidewheel.duty WHERE name = ANY ($3::text[]) AND holder = $1 ORDER BY name FOR UPDATE))
)
INSERT INTO tidewheel.duty AS held (name, holder, epoch)
SELECT name, $1, 1 FROM unnest($2::text[]) AS wanted (name) ORDER BY name
ON CONFLICT (name) DO UPDATE
   SET holder = excluded.holder, epoch = held.epoch + (held.holder IS DISTINCT FROM excluded.holder)::integer
 WHERE held.holder IS NULL
    OR NOT EXISTS (SELECT FROM tidewheel.keeper WHERE id = held.holder AND until > tidewheel.now())
RETURNING name, epoch, tidewheel.now() + $4 AS until

-- name: leave_duties
-- The rows of the duties stay, so that their epochs go on rising.
WITH gone AS (
    DELETE FROM tidewheel.keeper WHERE id = $1
)
UPDATE tidewheel.duty SET holder = NULL
 WHERE name = ANY (ARRAY(SELECT name FROM tidewheel.duty WHERE holder = $1 ORDER BY name FOR UPDATE))

-- name: agenda
SELECT tidewheel.now() AS now,
       EXISTS (SELECT FROM tidewheel.worker WHERE alive AND lease_until <= tidewheel.now()) AS lapsed,
       (SELECT min(start_by) FROM tidewheel.job WHERE start_by IS NOT NULL AND state <> 'running') AS next_start_by,
       EXISTS (SELECT FROM tidewheel.lane WHERE gate = 'drop') AS dropping,
       (SELECT min(expires_at) FROM tidewheel.gate) AS next_opening,
       EXISTS (SELECT FROM tidewheel.gate WHERE stop_running) AS stopping,
       EXISTS (SELECT FROM tidewheel.ended_parent) AS telling,
       EXISTS (SELECT FROM tidewheel.outbox) AS happened,
       EXISTS (SELECT FROM tidewheel.subscription WHERE late_at IS NOT NULL) AS awaited,
       (SELECT min(next_at) FROM tidewheel.delivery WHERE state = 'pending') AS next_delivery,
       ARRAY(SELECT (SELECT min(next_fire_at) FROM tidewheel.schedule WHERE shard = n AND next_fire_at IS NOT NULL)
               FROM generate_series(0, $1::integer - 1) AS n ORDER BY n) AS next_fires,
       ARRAY(SELECT (SELECT min(fire_at) FROM tidewheel.occurrence WHERE undecided = n AND undecided IS NOT NULL)
               FROM generate_series(0, $1::integer - 1) AS n ORDER BY n) AS next_decisions

-- name: retire_keepers
DELETE FROM tidewheel.keeper WHERE until < tidewheel.now() - interval '1 day'
