"""Foreign clients and ours exclude each other on the same key, in both directions, waiting included; and what a stranger
left under our key does no harm."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from basics import PATIENCE, stays
from conditions import LONG_MS
from contender import fresh_key, now_us, took_ms
from foreign import BLIND, LEASE_MS, PAIRS
from locks import BY_NAME, declaring

TITLE = "Exclusion: our lock, a foreign client, [they hold: ours waits] [we hold: theirs waits] [they release: ours gets it]"
WAIT_MS = 400


@pytest.fixture
def met(request, start, stack):
    lock, client = request.param
    foreign = client(stack)
    yield lock, foreign, start().contender(lock, LONG_MS)
    foreign.close()


@pytest.mark.long
@pytest.mark.parametrize("met", PAIRS, indirect=True, ids=[f"{lock}-{client.__name__}" for lock, client in PAIRS])
def test_exclusion(met, print_later):
    lock, foreign, ours = met
    key = fresh_key()

    assert foreign.hold(key), "theirs gets what is free"
    event = ours.decided(lambda: ours.acquire(key, wait=WAIT_MS, lease=LONG_MS))
    they_hold = event["status"] == "busy"
    assert took_ms(event) >= WAIT_MS, event

    for pause_s in (0.15, 0.75, 3.75):  # it has told that it waits, and does soon; on a slow machine later
        before = ours.stats()["wake_ups"]
        ours.waits(key, wait=LEASE_MS // 2, lease=LONG_MS)
        time.sleep(pause_s)
        released_us = now_us()
        foreign.release(key)
        event = ours.done("acquire")
        assert event["status"] == "ok", event
        after_ms = (event["ended_us"] - released_us) / 1000
        they_release = ours.stats()["wake_ups"] > before or not BY_NAME[lock].blocking
        if they_release or pause_s > 3:
            break
        ours.released()
        assert foreign.hold(key), "theirs gets what we released"

    we_hold = not foreign.hold(key)
    if not we_hold:
        foreign.release(key)
    ours.released()
    assert foreign.hold(key), "theirs gets what we released"
    foreign.release(key)

    words = ["yes" if ok else "NO" for ok in (they_hold, we_hold, they_release)]
    print_later(TITLE, f"{lock:18} {foreign.title:22} {words[0]:4} {words[1]:4} {words[2]:4} after {after_ms:.0f} ms")
    assert (they_hold, we_hold, they_release) == (True, type(foreign) not in BLIND, True), (event, after_ms)


THEY_WAIT = [(lock, client) for lock, client in PAIRS if hasattr(client, "wait") and client not in BLIND]


@pytest.mark.parametrize("met", THEY_WAIT, indirect=True, ids=[f"{lock}-{client.__name__}" for lock, client in THEY_WAIT])
def test_they_wait_for_us(met, print_later):
    """Behind us in the same queue, where there is one; our release is what they wait for."""
    lock, foreign, ours = met
    key = fresh_key()
    ours.got(key, lease=LEASE_MS)  # so that what comes is not its end
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(lambda: (foreign.wait(key), now_us()))
        stays(lambda: not theirs.done(), "theirs waits")
        released_us = ours.released()["began_us"]
        came, at_us = theirs.result()
    assert came
    print_later("They wait: got after our release, in ms", f"{lock:18} {foreign.title:22} {(at_us - released_us) / 1000:6.1f}")
    assert ours.acquire(key)["status"] == "busy"
    foreign.release(key)


# ---- a value of another kind under a Redis lock's key -----------------------------------------------------------

HASHES = ["redis-reentrant", "redis-fair", "redisson-redlock"]
# Who is told only that the key is there waits for it, as for any holder: redlock asks no server what lies there.
BUSY = ["redlock"]
ON_REDIS = [*declaring(setting="REDIS_URL"), *declaring(setting="REDLOCK_URLS")]


@pytest.mark.parametrize("lock", ON_REDIS)
def test_a_value_of_another_kind(lock, start, stack, print_later):
    """It is said to be one, and is left alone."""
    servers = [stack.redis] if BY_NAME[lock].setting == "REDIS_URL" else stack.redlock
    ours, key = start().contender(lock), fresh_key()
    name = f"oversell:{key}" if lock.startswith("redis-registry") else f"oversell:lock:{key}"
    for server in servers:
        if lock in HASHES:
            server.set(name, "somebody")
        else:
            server.hset(name, "somebody", 1)
    event = ours.decided(lambda: ours.acquire(key, wait=1000, lease=LONG_MS))
    expected = "busy" if lock in BUSY else "refused"
    told = f"{lock:22} expected {expected}, got {event['status']}: {event['error']}"
    print_later("A value of another kind under our key", told)
    assert event["status"] == expected and event["error"], event
    assert {server.type(name) for server in servers} == {"string" if lock in HASHES else "hash"}
    if lock != "redis-setnx-repair":  # which gives an end to whatever has none
        assert {server.ttl(name) for server in servers} == {-1}
    for server in servers:
        server.delete(name)
    ours.got(key, lease=LONG_MS)
    ours.released()


# ---- what is not a lock under the key of a lock in ZooKeeper or etcd ----------------------------------------------

IGNORED, HOLDS = "ok", "busy"


class Node:
    """A stranger's node in ZooKeeper: a parent of others, a contender, or neither."""

    def __init__(self, path, value=b"\x00\xff not ours", **how):
        self.path, self.value, self.how = path, value, how

    def put(self, stack, key):
        with stack.zookeeper_client() as client:
            self.made = client.create(self.path.format(key), self.value, makepath=True, **self.how)

    def take_away(self, stack):
        with stack.zookeeper_client() as client:
            client.delete(self.made)


class Key:
    """A stranger's key in etcd, without a lease."""

    def __init__(self, path):
        self.path = path

    def put(self, stack, key):
        self.made = self.path.format(key)
        assert stack.etcdctl("put", self.made, "not ours").strip() == "OK"

    def take_away(self, stack):
        assert stack.etcdctl("del", self.made).strip() == "1"


QUEUES = declaring(setting="ZOOKEEPER_CONNECT")
STRANGE = [
    *[(lock, "a node without a number", Node("/oversell/locks/{}/somebody"), IGNORED) for lock in QUEUES],
    *[(lock, "a node with too short a number", Node("/oversell/locks/{}/x-lock-7"), IGNORED) for lock in QUEUES],
    *[(lock, "a node with a number and strange data", Node("/oversell/locks/{}/x-", sequence=True), HOLDS) for lock in QUEUES],
    ("etcd", "a key in the queue, without a lease", Key("oversell/locks/{}/somebody"), HOLDS),
    ("etcd", "a bare key", Key("oversell/locks/{}"), IGNORED),
    ("etcd", "a key of another queue", Key("oversell/locks/{}0/somebody"), IGNORED),
    ("etcd-cas", "a bare key, without a lease", Key("oversell/locks/{}"), HOLDS),
    ("etcd-cas", "a key of a queue", Key("oversell/locks/{}/somebody"), IGNORED),
]  # fmt: skip


@pytest.mark.parametrize("lock, what, strange, expected", STRANGE, ids=["-".join(row[:2]).replace(" ", "-") for row in STRANGE])
def test_what_is_not_ours(lock, what, strange, expected, start, stack, print_later):
    """Counts as a holder or not at all; and when it has gone, the lock is had."""
    ours, key = start().contender(lock, LONG_MS), fresh_key()
    strange.put(stack, key)
    event = ours.acquire(key, wait=300, lease=LONG_MS)
    print_later("What is not ours under our key", f"{lock:16} {what:40} expected {expected}, got {event['status']}")
    assert event["status"] == expected, event
    if expected == IGNORED:
        ours.released()
    else:
        ours.waits(key, wait=60000 * PATIENCE, lease=LONG_MS)
    strange.take_away(stack)
    if expected == IGNORED:
        ours.got(key, lease=LONG_MS)
    else:
        assert ours.done("acquire")["status"] == "ok"
    ours.released()
