"""All locks, what each declares of itself, and the one table of what the flawed ones break."""

import contextlib
import json
import subprocess
import threading
from types import SimpleNamespace

from basics import BUILD, REPLY_S

LOCKPROBE = BUILD / "lockprobe"

# What a lock has to stand, by the name of its test in test_conditions.py; and the locks that do not, as they should.
BREAKS = {
    "threads": ["mutex-wrong-object", "redis-registry-shared"],
    "crash_of_a_holder": ["redis-setnx-forever"],
    "crash_inside_acquire": ["redis-setnx-forever", "redis-setnx"],
    "crash_of_a_waiter": ["zookeeper-naive"],
    "lost_wake_up": ["zookeeper-naive"],
    "one_is_woken": ["zookeeper-herd"],
    "release_after_the_lease": ["redis-setnx", "redis-del"],
    "lease_ends_inside_release": ["redis-setnx-repair", "redis-get-del"],
    "release_again": ["redis-setnx-forever", "redis-setnx", "redis-del"],
}

# The shortest lease worth testing, in milliseconds: an etcd lease lives for whole seconds, two at least.
LEASE_MS = {
    "": 500,
    "LOCK_DATABASE_URL": 600,
    "REDIS_URL": 600,
    "REDLOCK_URLS": 800,
    "ZOOKEEPER_CONNECT": 1000,
    "ETCD_ENDPOINTS": 2000,
}


def read_locks():
    listed = subprocess.run([LOCKPROBE, "--list"], capture_output=True, text=True, timeout=REPLY_S, check=True)
    return [SimpleNamespace(**json.loads(line)) for line in listed.stdout.splitlines()]


LOCKS = read_locks()
BY_NAME = {lock.name: lock for lock in LOCKS}
IN_PROCESS = [lock.name for lock in LOCKS if not lock.server]
BREAKS["processes"] = IN_PROCESS
SHARED = [lock.name for lock in LOCKS if lock.server]
# By a vote of servers that have few milliseconds each to answer: on a busy machine a majority is late now and then.
VOTED = [lock.name for lock in LOCKS if lock.setting == "REDLOCK_URLS"]


def declaring(**properties):
    """The names of the locks that declare all of these."""
    return [
        lock.name for lock in LOCKS if all(getattr(lock, name) == value for name, value in properties.items())
    ]


SCALE = threading.local()  # how many times as long a thread's times are


@contextlib.contextmanager
def longer_times(scale):
    """SCALE times as long, for this thread."""
    SCALE.value = scale
    try:
        yield
    finally:
        SCALE.value = 1


def scaled(ms):
    return ms * getattr(SCALE, "value", 1)


def lease_ms(name):
    return scaled(LEASE_MS[BY_NAME[name].setting])
