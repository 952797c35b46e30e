"""Clients that are not ours, each with the same calls: hold(key), which does not wait for another holder and tells whether it
holds now, release(key), and, where the client can, wait(key), which tells whether it came.

redis-py, kazoo and etcdctl are the real clients. Redisson, Spring and npm's etcd3 are not to be had here: redis-cli, psql
and etcdctl play their formats, written from wire-formats.md and not from our C."""

import contextlib
import hashlib
import selectors
import signal
import subprocess
import time
import uuid

from basics import PATIENCE, REPLY_S, wait_until
from kazoo.client import KazooClient
from servers import Session, psql
from stack import run

LEASE_MS = 120000  # which does not end during a test


class RedisPy:
    """redis-py's Lock, on one server."""

    title = "redis-py Lock"

    def __init__(self, stack):
        self.servers = [stack.redis]

    def locks_of(self, key):
        name, options = f"oversell:lock:{key}", {"timeout": LEASE_MS / 1000, "thread_local": False}
        return [server.lock(name, **options) for server in self.servers]

    def hold(self, key):
        self.locks = self.locks_of(key)
        got = [lock.acquire(blocking=False) for lock in self.locks]
        if not all(got):
            self.locks = [lock for lock, ok in zip(self.locks, got) if ok]
            self.release(key)
        return all(got)

    def wait(self, key):
        self.locks = self.locks_of(key)
        return all(lock.acquire(blocking_timeout=REPLY_S) for lock in self.locks)

    def release(self, _key):
        for lock in self.locks:
            lock.release()

    def close(self):
        pass


class RedisPyMajority(RedisPy):
    """On three of Redlock's five."""

    title = "redis-py Lock ×3"

    def __init__(self, stack):
        self.servers = stack.redlock[1:4]

    def hold(self, key):
        """Redlock's release waits for no minority: one of these may hear of it a moment after the majority."""
        end = time.monotonic() + PATIENCE
        while not (held := super().hold(key)) and time.monotonic() < end:
            time.sleep(0.02)
        return held


class Kazoo:
    """kazoo's Lock, told to honour Curator's nodes."""

    title = "kazoo Lock"
    patterns = {"extra_lock_patterns": ["-lock-"]}

    def __init__(self, stack):
        self.client = KazooClient(stack.zookeeper)
        self.client.start(timeout=REPLY_S)

    def hold(self, key, **options):
        self.lock = self.client.Lock(f"/oversell/locks/{key}", "foreign", **self.patterns)
        return self.lock.acquire(**(options or {"blocking": False}))

    def wait(self, key):
        return self.hold(key, timeout=REPLY_S)

    def release(self, _key):
        self.lock.release()

    def close(self):
        self.client.stop()
        self.client.close()


class KazooByDefault(Kazoo):
    """It knows its own nodes only, and so does not see ours; we see its."""

    title = "kazoo by default"
    patterns = {}


class EtcdctlLock:
    """`etcdctl lock`, which says its key once it holds the lock, and releases it when it is interrupted."""

    title = "etcdctl lock"

    def __init__(self, stack):
        self.environment = stack.etcd_environment
        self.process = None

    def wait(self, key):
        return self.hold(key, waits=True)

    def hold(self, key, waits=False):
        """Does not wait for another holder: its key in the queue behind another's says that it would."""
        self.process = subprocess.Popen(
            ["etcdctl", "lock", f"oversell/locks/{key}"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)

            def holds_or_would_wait():
                return selector.select(0.1) or not waits and len(self.queue(key)) > 1

            wait_until(holds_or_would_wait, "etcdctl holds the lock or waits", REPLY_S)
            if selector.select(0):
                line = self.process.stdout.readline()
                assert line.startswith(f"oversell/locks/{key}/"), line
                return True
        self.close()
        return False

    def queue(self, key):
        return run("etcdctl", "get", "--prefix", f"oversell/locks/{key}/", "--keys-only", env=self.environment).split()

    def release(self, _key):
        self.process.send_signal(signal.SIGINT)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(timeout=REPLY_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class EtcdPut:
    """A key put if absent, with a lease, as npm's etcd3 locks."""

    title = "etcdctl txn (etcd3)"

    def __init__(self, stack):
        self.stack = stack

    def hold(self, key):
        self.lease = self.stack.etcdctl("lease", "grant", LEASE_MS // 1000).split()[1]
        script = f'create("oversell/locks/{key}") = "0"\n\nput oversell/locks/{key} "" --lease={self.lease}\n\n\n'
        answer = run("etcdctl", "txn", env=self.stack.etcd_environment, input=script).split()[0]
        if answer != "SUCCESS":
            self.release(key)
        return answer == "SUCCESS"

    def release(self, _key):
        self.stack.etcdctl("lease", "revoke", self.lease)

    def close(self):
        pass


class RedisCli:
    """redis-cli, evaluating scripts."""

    def __init__(self, stack):
        self.urls = [stack.addresses["REDIS_URL"]]
        self.me = str(uuid.uuid4())

    def evaluate(self, url, script, keys, *arguments):
        words = ["redis-cli", "--no-auth-warning", "-u", url, "EVAL", script, len(keys), *keys, *arguments]
        return run(*words).strip()

    def everywhere(self, script, keys, *arguments):
        return [self.evaluate(url, script, keys, *arguments) for url in self.urls]

    def hold(self, key):
        got = [answer == "" for answer in self.everywhere(self.take, self.names(key), LEASE_MS, self.owner())]
        if not all(got):
            self.release(key)
        return all(got)

    def release(self, key):
        self.everywhere(self.give, self.names(key), LEASE_MS, self.owner())

    def close(self):
        pass


class Redisson(RedisCli):
    """Redisson's RLock: a hash, and a message on release. Nil is printed as nothing."""

    title = "redis-cli as Redisson"
    take = """
        if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
            redis.call('hincrby', KEYS[1], ARGV[2], 1)
            redis.call('pexpire', KEYS[1], ARGV[1])
            return nil
        end
        return redis.call('pttl', KEYS[1])"""
    give = """
        if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
        if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
            redis.call('pexpire', KEYS[1], ARGV[1])
            return 0
        end
        redis.call('del', KEYS[1])
        redis.call('publish', KEYS[2], '0')
        return 1"""

    def owner(self):
        return f"{self.me}:1"

    def names(self, key):
        name = f"oversell:lock:{key}"
        return [name, f"redisson_lock__channel:{{{name}}}"]


class RedissonFair(Redisson):
    """Redisson's fair lock: the lock is free for the first in the queue only, and he alone is told."""

    title = "… fair"
    take = """
        while true do
            local first = redis.call('lindex', KEYS[3], 0)
            if first == false then break end
            if tonumber(redis.call('zscore', KEYS[4], first)) > tonumber(redis.call('time')[1]) * 1000 then break end
            redis.call('zrem', KEYS[4], first)
            redis.call('lpop', KEYS[3])
        end
        if redis.call('exists', KEYS[1]) == 0
                and (redis.call('exists', KEYS[3]) == 0 or redis.call('lindex', KEYS[3], 0) == ARGV[2]) then
            redis.call('hset', KEYS[1], ARGV[2], 1)
            redis.call('pexpire', KEYS[1], ARGV[1])
            return nil
        end
        return redis.call('pttl', KEYS[1])"""
    give = """
        if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
        redis.call('del', KEYS[1])
        local first = redis.call('lindex', KEYS[3], 0)
        if first ~= false then redis.call('publish', KEYS[2] .. ':' .. first, '0') end
        return 1"""

    def names(self, key):
        name = f"oversell:lock:{key}"
        return [*super().names(key), f"redisson_lock_queue:{{{name}}}", f"redisson_lock_timeout:{{{name}}}"]


class RedissonMajority(Redisson):
    """RLocks on three of the five."""

    title = "… ×3"

    def __init__(self, stack):
        super().__init__(stack)
        self.urls = stack.addresses["REDLOCK_URLS"].split(",")[1:4]


class SpringRedis(RedisCli):
    """Spring's RedisLockRegistry: the registry's id in a string, and a message on release."""

    title = "redis-cli as Spring"
    take = """
        local owner = redis.call('get', KEYS[1])
        if owner == ARGV[2] then redis.call('pexpire', KEYS[1], ARGV[1]) return nil end
        if owner == false then redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[1]) return nil end
        return 0"""
    give = """
        if redis.call('get', KEYS[1]) ~= ARGV[2] then return 0 end
        redis.call('del', KEYS[1])
        redis.call('publish', KEYS[2], KEYS[1])
        return 1"""

    def owner(self):
        return self.me

    def names(self, key):
        return [f"oversell:{key}", f"oversell-channel:oversell:{key}"]


class Psql:
    def __init__(self, stack):
        self.url = stack.database_url
        self.me = str(uuid.uuid4())

    def close(self):
        pass


class SpringJdbc(Psql):
    """Spring's JdbcLockRegistry: an update of what is mine or expired, else an insert."""

    title = "psql as Spring"

    def row(self, key):
        hashed = uuid.UUID(bytes=hashlib.md5(key.encode()).digest(), version=3)  # Java's nameUUIDFromBytes
        return f"region = 'DEFAULT' AND lock_key = '{hashed}'", str(hashed)

    def hold(self, key):
        where, hashed = self.row(key)
        now = "(now() AT TIME ZONE 'UTC')"
        until = f"{now} + interval '{LEASE_MS} ms'"
        updated = psql(
            self.url,
            f"UPDATE int_lock SET client_id = '{self.me}', created_date = {now}, expired_after = {until}"
            f" WHERE {where} AND (client_id = '{self.me}' OR expired_after < {now}) RETURNING 1",
        )
        inserted = updated or psql(
            self.url,
            "INSERT INTO int_lock (lock_key, region, client_id, created_date, expired_after)"
            f" VALUES ('{hashed}', 'DEFAULT', '{self.me}', {now}, {until}) ON CONFLICT DO NOTHING RETURNING 1",
        )
        return bool(inserted)

    def release(self, key):
        psql(self.url, f"DELETE FROM int_lock WHERE {self.row(key)[0]} AND client_id = '{self.me}'")


class ShedLock(Psql):
    """ShedLock's table."""

    title = "psql as ShedLock"

    def hold(self, key):
        now = "timezone('utc', current_timestamp)"
        return bool(
            psql(
                self.url,
                "INSERT INTO shedlock (name, lock_until, locked_at, locked_by)"
                f" VALUES ('{key}', {now} + interval '{LEASE_MS} ms', {now}, '{self.me}')"
                " ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until, locked_at = excluded.locked_at,"
                f" locked_by = excluded.locked_by WHERE shedlock.lock_until <= {now} RETURNING 1",
            )
        )

    def release(self, key):
        now = "timezone('utc', current_timestamp)"
        psql(self.url, f"UPDATE shedlock SET lock_until = {now} WHERE name = '{key}' AND locked_by = '{self.me}'")


class RowLock(Psql):
    """A psql session that locks the row of a business code."""

    title = "psql FOR UPDATE"

    def hold(self, key):
        psql(self.url, f"INSERT INTO distribute_lock (business_code) VALUES ('{key}') ON CONFLICT DO NOTHING")
        self.session = Session(self.url)
        self.session.run("BEGIN")
        rows = self.session.run(
            f"SELECT 'mine' FROM distribute_lock WHERE business_code = '{key}' FOR UPDATE SKIP LOCKED"
        )
        if rows != ["mine"]:
            self.close()
        return rows == ["mine"]

    def release(self, _key):
        self.session.run("COMMIT")

    def close(self):
        with contextlib.suppress(OSError, AttributeError, ValueError):
            self.session.end()


# Who contends with which lock of ours.
PAIRS = [
    ("redis-lock", RedisPy),
    ("redis-fenced", RedisPy),
    ("redlock", RedisPyMajority),
    ("redis-reentrant", Redisson),
    ("redis-fair", RedissonFair),
    ("redisson-redlock", RedissonMajority),
    ("redis-registry", SpringRedis),
    ("zookeeper-herd", Kazoo),
    ("zookeeper", Kazoo),
    ("curator", Kazoo),
    ("curator", KazooByDefault),
    ("etcd", EtcdctlLock),
    ("etcd-cas", EtcdPut),
    ("lock-table", SpringJdbc),
    ("shedlock", ShedLock),
    ("lock-row", RowLock),
]
# Known and documented: this client does not look at our nodes.
BLIND = [KazooByDefault]

