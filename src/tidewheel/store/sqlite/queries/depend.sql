-- name: find_jobs
-- Wherever they are: id, tenant, lane, state.
SELECT job.id, job.tenant, job.lane, job.state
  FROM json_each(:jobs) AS named
 CROSS JOIN job ON job.id = unhex(named.value)
UNION ALL
SELECT job_history.id, job_history.tenant, job_history.lane, job_history.state
  FROM json_each(:jobs) AS named
 CROSS JOIN job_history ON job_history.id = unhex(named.value)

-- name: add_edges
INSERT INTO dependency (parent, child) SELECT unhex(value ->> 0), unhex(value ->> 1) FROM json_each(:edges)

-- name: await_active
UPDATE job SET awaited = 1 WHERE id IN (SELECT unhex(value) FROM json_each(:jobs)) AND NOT awaited

-- name: await_finished
-- For finished jobs that someone waits for all the same, until they are redriven.
UPDATE job_history
   SET awaited = 1
 WHERE id IN (SELECT unhex(value) FROM json_each(:jobs)) AND +state <> 'succeeded' AND NOT awaited

-- name: open_edges
-- The next edges of ended parents, of each beyond the child that was told last.
SELECT json_group_array(json_array(hex(parent), hex(child)))
  FROM (
       SELECT dependency.parent, dependency.child
         FROM json_each(:parents) AS ended
        CROSS JOIN dependency INDEXED BY dependency_parent
           ON dependency.parent = unhex(ended.value ->> 0) AND dependency.child > unhex(ended.value ->> 1)
        WHERE NOT dependency.done
        LIMIT :limit)

-- name: doomed_edges
-- The edges below children that are skipped with their parent, and so on downwards; a parent's own come before those of
-- its children. One statement, however long the chain.
WITH RECURSIVE doomed (parent, child) AS (
    SELECT unhex(value ->> 0), unhex(value ->> 1) FROM json_each(:edges)
    UNION
    SELECT edge.parent, edge.child
      FROM doomed
     CROSS JOIN job ON job.id = doomed.child
     CROSS JOIN dependency AS edge INDEXED BY dependency_parent ON edge.parent = job.id AND NOT edge.done
     WHERE +job.state = 'blocked' AND job.on_parent_failure = 'skip' AND job.awaited
     LIMIT :limit
)
SELECT json_group_array(json_array(hex(parent), hex(child))) FROM doomed

-- name: blocked_children
SELECT json_group_array(json_array(hex(job.id), job.on_parent_failure, json_array(
       job.rowid, job.token, job.state, job.lane, job.priority, json(job.limit_keys), CASE WHEN job.awaited THEN hex(job.id) END)))
  FROM json_each(:jobs) AS named
 CROSS JOIN job ON job.id = unhex(named.value)
 WHERE +job.state = 'blocked'

-- name: tell_edges
UPDATE dependency
   SET done = 1
  FROM (SELECT unhex(value ->> 0) AS parent, unhex(value ->> 1) AS child FROM json_each(:edges)) AS told
 WHERE dependency.child = told.child AND dependency.parent = told.parent

-- name: count_down
-- Lets children wait for fewer parents, and run if there is none left; never due before now.
UPDATE job
   SET waits = waits - told.parents, state = iif(waits = told.parents, 'queued', 'blocked'),
       run_at = iif(waits = told.parents, max(run_at, :now), run_at), updated_at = :now
  FROM (SELECT unhex(value ->> 0) AS child, value ->> 1 AS parents FROM json_each(:told)) AS told
 WHERE job.id = told.child AND +job.state = 'blocked'
RETURNING lane * 4 + priority, run_at, state

-- name: note_ended_parents
INSERT INTO ended_parent (parent, state, beyond)
SELECT unhex(value ->> 0), value ->> 1, unhex(value ->> 2) FROM json_each(:parents) WHERE true
ON CONFLICT (parent) DO UPDATE SET state = excluded.state, beyond = excluded.beyond

-- name: take_ended_parents
-- They come back by `note_ended_parents` if there is more.
DELETE FROM ended_parent
 WHERE parent IN (
       SELECT parent FROM ended_parent
        WHERE :named IS NULL OR parent IN (SELECT unhex(value) FROM json_each(:named))
        ORDER BY parent
        LIMIT :limit)
RETURNING parent, state, beyond

-- name: blocked_jobs
SELECT lane, priority, id, waits
  FROM job INDEXED BY job_blocked
 WHERE state = 'blocked' AND (lane, priority, id) > (:lane, :priority, :id)
 ORDER BY lane, priority, id
 LIMIT :limit

-- name: edges_of_blocked
-- Of blocked jobs: how many edges are open, and the parents that have ended and are not about to be told from.
SELECT unhex(named.value), count(edge.parent),
       json_group_array(hex(edge.parent)) FILTER (
           WHERE edge.parent IS NOT NULL AND NOT EXISTS (SELECT 1 FROM job WHERE job.id = edge.parent)
             AND NOT EXISTS (SELECT 1 FROM ended_parent WHERE ended_parent.parent = edge.parent))
  FROM json_each(:jobs) AS named
  LEFT JOIN dependency AS edge ON edge.child = unhex(named.value) AND NOT edge.done
 GROUP BY named.key

-- name: recount_waits
-- Lets children wait for as many parents as they have open edges.
UPDATE job
   SET waits = edge.open, state = iif(edge.open = 0, 'queued', 'blocked'),
       run_at = iif(edge.open = 0, max(run_at, :now), run_at), updated_at = :now
  FROM (
       SELECT unhex(named.value) AS child,
              (SELECT count(*) FROM dependency WHERE child = unhex(named.value) AND NOT done) AS open
         FROM json_each(:jobs) AS named
       ) AS edge
 WHERE job.id = edge.child AND +job.state = 'blocked' AND job.waits <> edge.open
RETURNING lane * 4 + priority, run_at, state

-- name: parents_page
SELECT json_group_array(hex(parent))
  FROM (SELECT parent FROM dependency WHERE child = :job AND parent > :after ORDER BY parent LIMIT :limit)

-- name: children_page
SELECT json_group_array(hex(child))
  FROM (SELECT child FROM dependency WHERE parent = :job AND child > :after ORDER BY child LIMIT :limit)
