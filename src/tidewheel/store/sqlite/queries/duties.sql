-- name: be_there
INSERT INTO keeper (id, duties, until) VALUES (:node, :duties, :until)
ON CONFLICT (id) DO UPDATE SET duties = excluded.duties, until = excluded.until

-- name: count_others
SELECT count(*) FROM keeper WHERE until > :now AND id <> :node

-- name: who_is_there
SELECT id, duties FROM keeper WHERE until > :now

-- name: duties
SELECT name, holder, epoch FROM duty

-- name: hold_duty
INSERT INTO duty (name, holder, epoch) VALUES (:name, :holder, 1)
ON CONFLICT (name) DO UPDATE SET epoch = epoch + (holder IS NOT excluded.holder), holder = excluded.holder
RETURNING epoch

-- name: give_up_duty
UPDATE duty SET holder = NULL WHERE name = :name AND holder = :holder

-- name: give_up_all_duties
-- The rows stay, so that the epochs go on rising.
UPDATE duty SET holder = NULL WHERE holder = :holder

-- name: forget_node
DELETE FROM keeper WHERE id = :node

-- name: agenda
SELECT EXISTS (SELECT 1 FROM worker WHERE alive AND lease_until <= :now),
       (SELECT min(start_by) FROM job WHERE start_by IS NOT NULL AND state <> 'running'),
       EXISTS (SELECT 1 FROM lane WHERE gate = 'drop'),
       (SELECT min(expires_at) FROM gate),
       EXISTS (SELECT 1 FROM gate WHERE stop_running),
       EXISTS (SELECT 1 FROM ended_parent),
       EXISTS (SELECT 1 FROM outbox),
       EXISTS (SELECT 1 FROM subscription WHERE late_at IS NOT NULL),
       (SELECT min(next_at) FROM delivery WHERE state = 'pending'),
       (SELECT json_group_array((SELECT min(next_fire_at) FROM schedule
                                  WHERE shard = n.value AND next_fire_at IS NOT NULL))
          FROM json_each(:shards) AS n),
       (SELECT json_group_array((SELECT min(fire_at) FROM occurrence
                                  WHERE undecided = n.value AND undecided IS NOT NULL))
          FROM json_each(:shards) AS n)

-- name: forget_nodes
DELETE FROM keeper WHERE until < :now - :day
