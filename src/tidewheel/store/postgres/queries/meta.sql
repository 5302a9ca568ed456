-- name: meta
SELECT epoch, extract(epoch FROM tidewheel.now())::float8 AS now FROM tidewheel.meta

-- name: begin_epoch
UPDATE tidewheel.meta SET epoch = epoch + 1 RETURNING epoch

-- name: begin_migrations
SELECT pg_advisory_xact_lock(8433, 0)

-- name: has_migrations
SELECT to_regclass('tidewheel.migration') IS NOT NULL

-- name: make_migrations
CREATE SCHEMA IF NOT EXISTS tidewheel;
CREATE TABLE IF NOT EXISTS tidewheel.migration (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT statement_timestamp()
)

-- name: version
SELECT coalesce(max(number), 0) FROM tidewheel.migration

-- name: note_migration
INSERT INTO tidewheel.migration (number, name) VALUES ($1, $2)

-- name: replica_lag
-- What was received and not yet replayed, or a sender that is gone, makes the last replayed transaction tell the lag.
SELECT CASE
       WHEN NOT pg_is_in_recovery() THEN 0
       WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() AND EXISTS (SELECT FROM pg_stat_wal_receiver) THEN 0
       ELSE coalesce(extract(epoch FROM statement_timestamp() - pg_last_xact_replay_timestamp()), 1e9)
       END::float8
