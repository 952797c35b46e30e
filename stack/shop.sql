-- Makes the role of the service: `shop` owns the shop's tables in this database and may create more. It is no superuser,
-- and owns nothing else.
--
-- A superuser runs this in the shop's database, once or again:
--
--     psql -d shop -f stack/shop.sql -c '\password shop'
--
-- It also hands over the tables of a database in which a superuser has run the service before. The private stack and the
-- image of docker-compose.yml give it to `postgres --single -j`, where a semicolon and an empty line end a statement.

DO $$
DECLARE
    made regclass;
BEGIN
    -- The first superuser of a cluster cannot lose its rights. Earlier versions of the stack called it `shop`, so it gets
    -- another name. A session cannot rename its own role.
    IF EXISTS (SELECT FROM pg_roles WHERE oid = 10 AND rolname = 'shop') THEN
        CREATE ROLE shop_renamer SUPERUSER;
        SET SESSION AUTHORIZATION shop_renamer;
        ALTER ROLE shop RENAME TO postgres;
        SET SESSION AUTHORIZATION postgres;
        DROP ROLE shop_renamer;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'shop') THEN
        CREATE ROLE shop;
    END IF;
    ALTER ROLE shop LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
    -- `loadtest explore` works in a separate schema.
    EXECUTE format('GRANT CREATE, TEMPORARY ON DATABASE %I TO shop', current_database());
    GRANT USAGE, CREATE ON SCHEMA public TO shop;
    FOR made IN
        SELECT oid FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relowner <> 'shop'::regrole AND relkind IN ('r', 'v')
          AND relname IN ('schema_version', 'product', 'product_unit', 'product_bucket', 'orders', 'order_item',
                          'order_rejected', 'order_times', 'order_line', 'product_stock',
                          'distribute_lock', 'int_lock', 'shedlock')
    LOOP
        EXECUTE format('ALTER TABLE %s OWNER TO shop', made);
    END LOOP;
END $$;

