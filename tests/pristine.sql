-- What makes a database of the tests as good as new after each of them: what its tables hold at first, who changed its
-- schema, and a function that takes back what was done. Run in a template when all else is in it.

DROP SCHEMA IF EXISTS pristine CASCADE;
CREATE SCHEMA pristine;

-- Tables that are not empty, or were not.
CREATE FUNCTION pristine.used() RETURNS SETOF regclass LANGUAGE sql AS $$
    SELECT oid::regclass FROM pg_class
    WHERE relnamespace = 'tidewheel'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
$$;

-- Of each row also its place and who wrote it: both stay the same as long as nobody touches it.
DO $$
DECLARE used regclass;
BEGIN
    FOR used IN SELECT pristine.used() LOOP
        EXECUTE format('CREATE TABLE pristine.%s AS SELECT t AS whole, t.ctid AS place, t.xmin AS writer FROM %s AS t',
            split_part(used::text, '.', 2), used);
    END LOOP;
END
$$;

CREATE TABLE pristine."sequence of" AS
    SELECT sequencename AS name, start_value, last_value FROM pg_sequences WHERE schemaname = 'tidewheel';

-- Take back what a test did, and tell whether that can be: not if it changed the schema or settings, or wrote very much.
CREATE FUNCTION pristine.restore() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    used regclass;
    saved regclass;
BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend';
    IF EXISTS (SELECT FROM pristine."change of schema")
        OR EXISTS (SELECT FROM pg_db_role_setting JOIN pg_database AS d ON d.oid = setdatabase
            WHERE datname = current_database()) THEN
        RETURN false;
    END IF;
    SET LOCAL session_replication_role = replica;  -- whatever the order, no table minds that another was emptied
    FOR used IN SELECT pristine.used() LOOP
        saved := to_regclass('pristine.' || split_part(used::text, '.', 2));
        IF pg_relation_size(used) > 4194304 THEN
            RETURN false;
        ELSIF saved IS NULL THEN
            -- To truncate would take two milliseconds, for new files of the table and of each index.
            EXECUTE format('DELETE FROM %s', used);
        ELSE
            EXECUTE format('DELETE FROM %s AS t WHERE NOT EXISTS '
                '(SELECT FROM %s WHERE place = t.ctid AND writer = t.xmin)', used, saved);
            EXECUTE format('INSERT INTO %s OVERRIDING SYSTEM VALUE SELECT (s.whole).* FROM %s AS s WHERE NOT EXISTS '
                '(SELECT FROM %1$s AS t WHERE s.place = t.ctid AND s.writer = t.xmin)', used, saved);
        END IF;
    END LOOP;
    PERFORM setval(format('tidewheel.%I', name), coalesce(last_value, start_value), last_value IS NOT NULL)
        FROM pristine."sequence of";
    RETURN true;
END
$$;

-- Noted by the transaction that changes the schema, and forgotten if it is rolled back.
CREATE TABLE pristine."change of schema" (command text);
CREATE FUNCTION pristine.note_change() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO pristine."change of schema" VALUES (tg_tag);
END
$$;
CREATE EVENT TRIGGER note_change ON ddl_command_end EXECUTE FUNCTION pristine.note_change();
