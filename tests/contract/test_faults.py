"""Servers that are away, silent, or whose replies are lost: the typed status within the wait, no lock left behind for
longer than its lease, and recovery by itself."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from basics import PATIENCE, wait_until
from conditions import EXCLUSIVE, FREE_WITHIN_MS
from conftest import probes_on
from contender import Contender, fresh_key
from locks import BREAKS, BY_NAME, lease_ms
from stack import proxies

LATE_MS = 3000 * PATIENCE  # beyond the wait: one request may take up to LOCK_COMMAND_MS, and half a second to hang up
LOCKS = [name for name in EXCLUSIVE if BY_NAME[name].server]


def in_time(event, wait):
    assert (event["ended_us"] - event["began_us"]) / 1000 <= wait + LATE_MS, event
    return event["status"]


def recovers(contender, lock):
    """By itself, and soon: it may spare a server that was away a moment ago."""
    wait_until(
        lambda: contender.acquire(fresh_key(), wait=1000, lease=lease_ms(lock))["status"] == "ok", "recovery"
    )


def a_silent_server(lock, start, addresses):
    with proxies(addresses, BY_NAME[lock].setting) as (through, servers):
        contender = start(**through).contender(lock)
        for server in servers:
            server.stalled.set()
        event = contender.acquire(fresh_key(), wait=400, lease=lease_ms(lock))
        assert in_time(event, 400) == "away", event
        assert event["error"], event
        for server in servers:
            server.stalled.clear()
        recovers(contender, lock)
        for server in servers:
            server.stalled.set()
        event = contender.release()
        assert in_time(event, 0) in ("away", "lost"), event


def a_server_that_is_gone(lock, start, addresses):
    with proxies(addresses, BY_NAME[lock].setting) as (through, servers):
        contender = Contender(start(**through), lock)  # not connected yet
        for server in servers:
            server.refuse = True
        event = contender.acquire(fresh_key(), wait=400, lease=lease_ms(lock))
        assert in_time(event, 400) == "away", event
        assert event["error"], event
        for server in servers:
            server.refuse = False
        recovers(contender, lock)
        contender.released()


def a_lost_reply(lock, start, addresses):
    """Got or not, nobody knows: whatever was made goes away, at once or with its lease."""
    with proxies(addresses, BY_NAME[lock].setting) as (through, servers):
        contender, other = start(**through).contender(lock), start().contender(lock)
        key = fresh_key()
        for server in servers:
            server.arm(b"/v3/kv/txn" if BY_NAME[lock].setting == "ETCD_ENDPOINTS" else key.encode(), "reply")
        event = contender.acquire(key, wait=1000, lease=lease_ms(lock))
        assert any(server.triggered.is_set() for server in servers), event
        status = in_time(event, 1000)
        assert status in ("ok", "away", "busy", "lost"), event
        if status == "ok":
            assert contender.release()["status"] == "ok"
        if lock not in BREAKS["crash_of_a_holder"]:
            other.got(key, wait=lease_ms(lock) + FREE_WITHIN_MS, lease=lease_ms(lock))


FAULTS = [a_silent_server, a_server_that_is_gone, a_lost_reply]


@pytest.fixture(scope="module")
def outcomes(stack):
    """All side by side, since they mostly wait."""

    def play(fault, lock):
        with probes_on(stack.addresses) as start:
            fault(lock, start, stack.addresses)

    pool = ThreadPoolExecutor(6)
    yield {(fault, lock): pool.submit(play, fault, lock) for fault in FAULTS for lock in LOCKS}
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_fault(fault, lock, outcomes):
    outcomes[fault, lock].result()
