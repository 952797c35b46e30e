-- The tables of the locks that are kept in PostgreSQL, in whatever database: made where they are missing, never altered.

-- lock-row: a row for each lock, found by its business code, and locked by FOR UPDATE. What stands in it does not matter.
CREATE TABLE IF NOT EXISTS distribute_lock (
    business_code varchar(64) PRIMARY KEY,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- lock-table: a row while a lock is held, as Spring Integration's JdbcLockRegistry keeps it. Times are UTC.
CREATE TABLE IF NOT EXISTS int_lock (
    lock_key      char(36) NOT NULL,
    region        varchar(100) NOT NULL,
    client_id     char(36),
    created_date  timestamp NOT NULL,
    expired_after timestamp NOT NULL,
    PRIMARY KEY (lock_key, region)
);

-- shedlock: a row for each lock that was ever held, as ShedLock keeps it. Times are UTC.
CREATE TABLE IF NOT EXISTS shedlock (
    name       varchar(64) PRIMARY KEY,
    lock_until timestamp NOT NULL,
    locked_at  timestamp NOT NULL,
    locked_by  varchar(255) NOT NULL
);
