"""Servers that are away, silent, or refuse us, and replies that are lost or cut short: the typed status within the wait,
no lock left behind for longer than its lease, and recovery by itself."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import redis
from basics import PATIENCE, wait_until
from conditions import EXCLUSIVE, FREE_WITHIN_MS, LONG_MS
from conftest import probes_on
from contender import Contender, fresh_key
from locks import BREAKS, BY_NAME, lease_ms
from stack import proxies

LATE_MS = 3000 * PATIENCE  # beyond the wait: one request may take up to LOCK_COMMAND_MS, and half a second to hang up
LOCKS = [name for name in EXCLUSIVE if BY_NAME[name].server]


def in_time(event, wait):
    assert (event["ended_us"] - event["began_us"]) / 1000 <= wait + LATE_MS, event
    return event["status"]


def recovers(contender):
    """By itself, and soon: it may spare a server that was away a moment ago."""
    wait_until(
        lambda: contender.acquire(fresh_key(), wait=1000, lease=LONG_MS)["status"] == "ok", "recovery"
    )


def a_request(lock, key):
    """What is found in a request about KEY, which etcd's clients encode."""
    return b"/v3/kv/txn" if BY_NAME[lock].setting == "ETCD_ENDPOINTS" else key.encode()


def a_silent_server(lock, start, addresses):
    with proxies(addresses, BY_NAME[lock].setting) as (through, servers):
        contender = start(**through).contender(lock, LONG_MS)
        for server in servers:
            server.stalled.set()
        event = contender.acquire(fresh_key(), wait=400, lease=LONG_MS)
        assert in_time(event, 400) == "away", event
        assert event["error"], event
        for server in servers:
            server.stalled.clear()
        recovers(contender)
        for server in servers:
            server.stalled.set()
        event = contender.release()
        assert in_time(event, 0) in ("away", "lost"), event


def a_server_that_is_gone(lock, start, addresses):
    with proxies(addresses, BY_NAME[lock].setting) as (through, servers):
        contender = Contender(start(**through), lock)  # not connected yet
        for server in servers:
            server.refuse = True
        event = contender.acquire(fresh_key(), wait=400, lease=LONG_MS)
        assert in_time(event, 400) == "away", event
        assert event["error"], event
        for server in servers:
            server.refuse = False
        recovers(contender)
        contender.released()


def a_lost_reply(lock, start, addresses):
    """Got or not, nobody knows: whatever was made goes away, at once or with its lease."""
    with proxies(addresses, BY_NAME[lock].setting) as (through, servers):
        contender, other = start(**through).contender(lock, LONG_MS), start().contender(lock, LONG_MS)
        key = fresh_key()
        for server in servers:
            server.arm(a_request(lock, key), "reply")
        event = contender.acquire(key, wait=1000, lease=lease_ms(lock))
        assert any(server.triggered.is_set() for server in servers), event
        status = in_time(event, 1000)
        assert status in ("ok", "away", "busy", "lost"), event
        if status == "ok":
            assert contender.release()["status"] == "ok"
        if lock not in BREAKS["crash_of_a_holder"]:
            other.got(key, wait=lease_ms(lock) + FREE_WITHIN_MS, lease=lease_ms(lock))


def a_reply_cut_short(lock, start, addresses):
    """The connection ends after the first byte, in the middle of the reply's first word, and before its last byte."""
    with proxies(addresses, BY_NAME[lock].setting) as (through, servers):
        contender, other = start(**through).contender(lock, LONG_MS), start().contender(lock, LONG_MS)
        seen = {}
        for after in (1, 3, -1):
            key = fresh_key()
            for server in servers:
                server.arm(a_request(lock, key), "reply", after)
            event = contender.acquire(key, wait=1000, lease=lease_ms(lock))
            assert any(server.triggered.is_set() for server in servers), event
            seen[after] = in_time(event, 1000)
            assert seen[after] in ("ok", "away", "busy", "lost"), event
            if seen[after] == "ok":
                contender.released()
            else:
                assert event["error"], event
            other.got(key, wait=lease_ms(lock) + FREE_WITHIN_MS, lease=LONG_MS)
            other.released()
            recovers(contender)
            contender.released()
        return f"expected a status in time, no lock left, recovery; saw {seen}"


def a_wrong_password(lock, start, addresses):
    """From the first connection on; and, where a waiter listens on another connection, only for that."""
    setting, user = BY_NAME[lock].setting, f"test-{lock}"
    urls = addresses[setting].split(",")
    servers = [redis.Redis.from_url(url) for url in urls]

    def password(word):
        for server in servers:
            server.execute_command("ACL", "SETUSER", user, "reset", "on", f">{word}", "~*", "&*", "+@all")

    password("another")
    ours = ",".join(f"redis://{user}:word@127.0.0.1:{urlsplit(url).port}" for url in urls)
    contender, other, key = Contender(start(**{setting: ours}), lock), start().contender(lock, LONG_MS), fresh_key()
    first = contender.acquire(key, wait=4000, lease=lease_ms(lock))
    assert in_time(first, 4000) == "refused" and first["error"], first
    password("word")
    recovers(contender)
    contender.released()
    seen = f"expected refused, saw {first['status']} ({first['error']})"
    if BY_NAME[lock].blocking:
        password("another")
        other.got(key, lease=LONG_MS)
        event = contender.acquire(key, wait=4000, lease=lease_ms(lock))
        assert in_time(event, 4000) == "refused" and event["error"], event
        seen += f"; as a waiter refused, {event['status']}"
        other.released()
        password("word")
        other.got(key, lease=LONG_MS)
        wait_until(lambda: contender.acquire(key, wait=200)["status"] == "busy", "waiting works again")
        other.released()
    for server in servers:
        server.execute_command("ACL", "DELUSER", user)
        server.close()
    return seen


# One lock for each way of talking with each server.
TALKERS = ["lock-row", "lock-table", "redis-lock", "redis-fair", "redlock", "redisson-redlock"]
TALKERS += ["zookeeper", "etcd", "etcd-cas"]
FAULTS = {
    a_silent_server: LOCKS,
    a_server_that_is_gone: LOCKS,
    a_lost_reply: LOCKS,
    a_reply_cut_short: TALKERS,
    a_wrong_password: [name for name, lock in BY_NAME.items() if lock.setting in ("REDIS_URL", "REDLOCK_URLS")],
}
CASES = [(fault, lock) for fault, locks in FAULTS.items() for lock in locks]


@pytest.fixture(scope="module")
def outcomes(request, stack):
    """All that were chosen, side by side, since they mostly wait."""

    def play(fault, lock):
        with probes_on(stack.addresses) as start:
            return fault(lock, start, stack.addresses)

    chosen = [
        (item.callspec.params["fault"], item.callspec.params["lock"])
        for item in request.session.items
        if item.originalname == "test_fault"
    ]
    pool = ThreadPoolExecutor(6)
    yield {case: pool.submit(play, *case) for case in chosen}
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("fault, lock", CASES, ids=[f"{fault.__name__}-{lock}" for fault, lock in CASES])
def test_fault(fault, lock, outcomes, print_later):
    seen = outcomes[fault, lock].result()
    if seen:
        print_later(fault.__name__.replace("_", " ").capitalize(), f"{lock:22} {seen}")
