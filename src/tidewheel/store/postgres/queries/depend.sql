-- name: lock_ids
-- One submitter at a time for each id that is given, in one order for all, by a bounded number of locks.
SELECT pg_advisory_xact_lock(8435, slot)
  FROM (SELECT DISTINCT hashtext(id::text) & 63 AS slot FROM unnest($1::uuid[]) AS given (id) ORDER BY slot) AS slots

-- name: lock_parents
-- In the order of the ids, as given. Whoever ends one of them from now on sees what is written here.
SELECT job.id, job.tenant
  FROM unnest($1::uuid[]) AS named (id)
 CROSS JOIN LATERAL (
       SELECT job.id, job.tenant FROM tidewheel.job WHERE job.id = named.id LIMIT 1 FOR UPDATE
       ) AS job

-- name: find_finished
SELECT history.id, history.tenant, history.state
  FROM unnest($1::uuid[], $2::timestamptz[]) AS named (id, made)
 CROSS JOIN LATERAL (
       SELECT id, tenant, state FROM tidewheel.job_history
        WHERE job_history.id = named.id AND job_history.finished_at >= named.made - interval '1 day'
        LIMIT 1
       ) AS history

-- name: await_finished
-- For finished jobs that someone waits for all the same, until they are redriven.
UPDATE tidewheel.job_history
   SET awaited = true
 WHERE id = ANY ($1::uuid[]) AND finished_at >= $2::timestamptz - interval '1 day' AND state <> 'succeeded'
RETURNING id

-- name: await_active
UPDATE tidewheel.job
   SET awaited = true
  FROM (
       SELECT place.at
         FROM unnest($1::uuid[]) AS named (id)
        CROSS JOIN LATERAL (SELECT job.ctid AS at FROM tidewheel.job WHERE job.id = named.id LIMIT 1) AS place
       ) AS parent
 WHERE job.ctid = parent.at AND NOT job.awaited

-- name: add_edges
INSERT INTO tidewheel.dependency (parent, child, done)
SELECT parent, child, done FROM unnest($1::uuid[], $2::uuid[], $3::boolean[]) AS edge (parent, child, done)

-- name: open_edges
-- The next edges of ended parents, of each beyond the child that was told last.
SELECT edge.parent, edge.child
  FROM unnest($1::uuid[], $2::uuid[]) AS ended (parent, beyond)
 CROSS JOIN LATERAL (
       SELECT dependency.parent, dependency.child
         FROM tidewheel.dependency
        WHERE dependency.parent = ended.parent AND dependency.child > ended.beyond AND NOT dependency.done
        ORDER BY dependency.child
        LIMIT $3
       ) AS edge
 LIMIT $3

-- name: doomed_edges
-- The edges below children that are skipped with their parent, and so on downwards; a parent's own come before those of
-- its children. One round trip, however long the chain.
WITH RECURSIVE doomed (parent, child) AS (
    SELECT parent, child FROM unnest($1::uuid[], $2::uuid[]) AS edge (parent, child)
    UNION
    SELECT edge.parent, edge.child
      FROM doomed
     CROSS JOIN LATERAL (
           SELECT job.id FROM tidewheel.job
            WHERE job.id = doomed.child AND job.state || '' = 'blocked' AND job.on_parent_failure = 'skip' AND job.awaited
            LIMIT 1
           ) AS skipped
     CROSS JOIN LATERAL (
           SELECT dependency.parent, dependency.child
             FROM tidewheel.dependency
            WHERE dependency.parent = skipped.id AND NOT dependency.done
            ORDER BY dependency.child
            LIMIT $3
           ) AS edge
)
SELECT parent, child FROM doomed LIMIT $3

-- name: lock_children
-- Locks those of the named jobs that are blocked, in the order of their ids, as given.
SELECT job.id, job.on_parent_failure
  FROM unnest($1::uuid[]) AS named (id)
 CROSS JOIN LATERAL (
       SELECT job.id, job.on_parent_failure FROM tidewheel.job
        WHERE job.id = named.id AND job.state || '' = 'blocked'
        LIMIT 1
          FOR UPDATE
       ) AS job

-- name: tell_edges
-- Marks edges whose children are locked, and names the children, once for each edge that was not marked before.
UPDATE tidewheel.dependency
   SET done = true
  FROM (
       SELECT place.at
         FROM unnest($1::uuid[], $2::uuid[]) AS told (parent, child)
        CROSS JOIN LATERAL (
              SELECT dependency.ctid AS at FROM tidewheel.dependency
               WHERE dependency.child = told.child AND dependency.parent = told.parent
               LIMIT 1
              ) AS place
       ) AS edge
 WHERE dependency.ctid = edge.at AND NOT dependency.done
RETURNING dependency.child

-- name: count_down
-- Marks edges whose children are locked and lets these wait for fewer parents, for each edge that was not marked before,
-- and run if there is none left; never due before now.
WITH told AS (
    UPDATE tidewheel.dependency
       SET done = true
      FROM (
           SELECT place.at
             FROM unnest($1::uuid[], $2::uuid[]) AS named (parent, child)
            CROSS JOIN LATERAL (
                  SELECT dependency.ctid AS at FROM tidewheel.dependency
                   WHERE dependency.child = named.child AND dependency.parent = named.parent
                   LIMIT 1
                  ) AS place
           ) AS edge
     WHERE dependency.ctid = edge.at AND NOT dependency.done
    RETURNING dependency.child
), counted AS MATERIALIZED (
    SELECT child, count(*)::integer AS parents FROM told GROUP BY child
)
UPDATE tidewheel.job
   SET waits = job.waits - told.parents,
       state = CASE WHEN job.waits = told.parents THEN 'queued' ELSE 'blocked' END,
       run_at = CASE WHEN job.waits = told.parents THEN greatest(job.run_at, tidewheel.now()) ELSE job.run_at END,
       updated_at = tidewheel.now()
  FROM (
       SELECT place.at, counted.parents
         FROM counted
        CROSS JOIN LATERAL (SELECT job.ctid AS at FROM tidewheel.job WHERE job.id = counted.child LIMIT 1) AS place
       ) AS told
 WHERE job.ctid = told.at AND job.state || '' = 'blocked'

-- name: note_ended_parents
INSERT INTO tidewheel.ended_parent (parent, state, beyond)
SELECT parent, state, beyond FROM unnest($1::uuid[], $2::text[], $3::uuid[]) AS ended (parent, state, beyond)
 ORDER BY parent
ON CONFLICT (parent) DO UPDATE SET state = excluded.state, beyond = excluded.beyond

-- name: take_ended_parents
-- The next that nobody else is at; they come back by `note_ended_parents` if there is more.
DELETE FROM tidewheel.ended_parent
 WHERE parent = ANY (ARRAY(
       SELECT parent FROM tidewheel.ended_parent ORDER BY parent LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING parent, state, beyond

-- name: take_named_ended_parents
-- Waits for whoever is at them.
DELETE FROM tidewheel.ended_parent
 WHERE parent = ANY (ARRAY(
       SELECT parent FROM tidewheel.ended_parent WHERE parent = ANY ($1::uuid[]) ORDER BY parent FOR UPDATE))
RETURNING parent, state, beyond

-- name: blocked_jobs
SELECT lane, priority, id, waits
  FROM tidewheel.job
 WHERE state = 'blocked' AND on_parent_failure IS NOT NULL AND (lane, priority, id) > ($1, $2, $3)
 ORDER BY lane, priority, id
 LIMIT $4

-- name: edges_of_blocked
-- Of blocked jobs: how many edges are open, and the parents that have ended and are not about to be told from.
SELECT named.id, count(edge.parent)::integer AS open,
       array_agg(edge.parent) FILTER (WHERE edge.parent IS NOT NULL AND active.found IS NULL AND noted.found IS NULL) AS ended
  FROM unnest($1::uuid[]) AS named (id)
  LEFT JOIN LATERAL (
       SELECT parent FROM tidewheel.dependency WHERE dependency.child = named.id AND NOT dependency.done OFFSET 0
       ) AS edge ON true
  LEFT JOIN LATERAL (SELECT 1 AS found FROM tidewheel.job WHERE job.id = edge.parent LIMIT 1) AS active ON true
  LEFT JOIN LATERAL (
       SELECT 1 AS found FROM tidewheel.ended_parent WHERE ended_parent.parent = edge.parent LIMIT 1
       ) AS noted ON true
 GROUP BY named.id

-- name: set_waits
-- Lets locked children wait for so many parents, if they do not already.
UPDATE tidewheel.job
   SET waits = edges.open, state = CASE WHEN edges.open = 0 THEN 'queued' ELSE 'blocked' END,
       run_at = CASE WHEN edges.open = 0 THEN greatest(job.run_at, tidewheel.now()) ELSE job.run_at END,
       updated_at = tidewheel.now()
  FROM (
       SELECT place.at, edges.open
         FROM unnest($1::uuid[], $2::integer[]) AS edges (child, open)
        CROSS JOIN LATERAL (SELECT job.ctid AS at FROM tidewheel.job WHERE job.id = edges.child LIMIT 1) AS place
       ) AS edges
 WHERE job.ctid = edges.at AND job.state || '' = 'blocked' AND job.waits <> edges.open
RETURNING job.id

-- name: parents_page
SELECT parent FROM tidewheel.dependency WHERE child = $1 AND parent > $2 ORDER BY parent LIMIT $3

-- name: children_page
SELECT child FROM tidewheel.dependency WHERE parent = $1 AND child > $2 ORDER BY child LIMIT $3

-- name: relatives
SELECT named.id, lane.kind, coalesce(active.state, history.state) AS state
  FROM unnest($1::uuid[], $2::timestamptz[]) AS named (id, made)
  LEFT JOIN LATERAL (SELECT state, lane FROM tidewheel.job WHERE job.id = named.id LIMIT 1) AS active ON true
  LEFT JOIN LATERAL (
       SELECT state, lane FROM tidewheel.job_history
        WHERE job_history.id = named.id AND job_history.finished_at >= named.made - interval '1 day'
        LIMIT 1
       ) AS history ON true
  LEFT JOIN tidewheel.lane ON lane.id = coalesce(active.lane, history.lane)
 ORDER BY named.id
