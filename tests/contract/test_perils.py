"""What may end a lock under its holder, and does so where the lock says so: run one after the other, since servers suffer.

A pause is in conditions.py, a clock that jumps in `loadtest faults`."""

import pytest
from basics import PATIENCE, wait_until
from conditions import FREE_WITHIN_MS, LONG_MS, stranger_gets_it
from conftest import probes_on
from contender import fresh_key
from locks import BY_NAME, declaring, lease_ms
from servers import terminate_sessions
from stack import proxies

REDIS = ("REDIS_URL", "REDLOCK_URLS")
RESTART_MS = 300000  # a lease that does not end while servers are started again
BACK_S = 60  # longest for a server that is started again, and for its clients to be back; what they are told then is what counts


def told(holder):
    """What the holder hears of its lock, once it hears anything."""
    wait_until(lambda: holder.holds() != "away", "an answer", BACK_S)
    return holder.holds()


@pytest.mark.parametrize("lock", [name for name, lock in BY_NAME.items() if lock.setting in REDIS])
def test_a_redis_that_forgets(lock, start, stack):
    """What a restart without its memory does, on a majority of the servers where there are several."""
    assert BY_NAME[lock].restart
    holder, other = start().contender(lock), start().contender(lock)
    key = fresh_key()
    holder.got(key, lease=LONG_MS)
    for server in [stack.redis] if BY_NAME[lock].setting == "REDIS_URL" else stack.redlock[:3]:
        server.flushall()
    assert stranger_gets_it(other, key)
    assert holder.holds() == "lost"
    assert holder.release()["status"] != "failed"


REMEMBERING = {"LOCK_DATABASE_URL": "postgres", "ZOOKEEPER_CONNECT": "zookeeper", "ETCD_ENDPOINTS": "etcd"}


@pytest.fixture(scope="module")
def restarted(stack):
    """Restarts, all at once, the servers that remember: gives what the holder of each lock and another are told after it."""
    with probes_on(stack.addresses) as start:
        holders, others, keys, outcomes = {}, {}, {}, {}
        for lock in [name for name, lock in BY_NAME.items() if lock.setting in REMEMBERING]:
            holders[lock], others[lock] = (start().contender(lock, RESTART_MS) for _ in range(2))
            keys[lock] = fresh_key()
            holders[lock].got(keys[lock], lease=RESTART_MS)
        stack.stop(*REMEMBERING.values())
        stack.start(*REMEMBERING.values())
        for lock, key in keys.items():
            held = told(holders[lock])
            wait_until(lambda: others[lock].acquire(fresh_key(), wait=1000)["status"] == "ok", f"{lock} can be taken again", BACK_S)
            others[lock].released()
            outcomes[lock] = (held, "ok" if stranger_gets_it(others[lock], key) else "busy")
            holders[lock].release()
    return outcomes


@pytest.mark.long
@pytest.mark.parametrize("lock", [name for name, lock in BY_NAME.items() if lock.setting in REMEMBERING])
def test_a_restart(lock, restarted, print_later):
    expected = ("lost", "ok") if BY_NAME[lock].restart else ("ok", "busy")
    print_later("After a restart: the holder and another are told", f"{lock:18} expected {expected}, saw {restarted[lock]}")
    assert restarted[lock] == expected


@pytest.mark.parametrize("lock", [name for name, lock in BY_NAME.items() if lock.server and not lock.disconnect])
def test_a_connection_that_is_cut(lock, start, stack):
    """Does not end a lock that is not bound to it."""
    with proxies(stack.addresses, BY_NAME[lock].setting) as (addresses, servers):
        holder, other = start(**addresses).contender(lock), start().contender(lock)
        key = fresh_key()
        holder.got(key, lease=LONG_MS)
        for server in servers:
            server.cut()
        assert not stranger_gets_it(other, key)
        assert told(holder) == "ok"
        holder.released()
        other.got(key, lease=LONG_MS)


@pytest.mark.parametrize("lock", [name for name, lock in BY_NAME.items() if lock.setting == "LOCK_DATABASE_URL"])
def test_a_backend_that_is_terminated(lock, start, stack):
    holder, other = start().contender(lock), start().contender(lock)
    key = fresh_key()
    holder.got(key, lease=LONG_MS)
    terminate_sessions(stack.database_url)
    wait_until(lambda: stack.left_behind("LOCK_DATABASE_URL")["sessions"] <= 1, "they are gone")
    peril = BY_NAME[lock].disconnect
    assert other.acquire(key, wait=FREE_WITHIN_MS if peril else 500)["status"] == ("ok" if peril else "busy")
    assert told(holder) == ("lost" if peril else "ok")
    assert holder.release()["status"] == ("lost" if peril else "ok")
    if peril:
        other.released()
    holder.got(key)  # it has recovered by itself


@pytest.mark.parametrize("lock", [name for name, lock in BY_NAME.items() if lock.setting == "ZOOKEEPER_CONNECT"])
def test_a_session_that_is_cut_off(lock, start, stack):
    """For longer than it lives; its holder learns that, and goes on with a new session."""
    assert BY_NAME[lock].disconnect
    with proxies(stack.addresses, "ZOOKEEPER_CONNECT") as (addresses, proxy):
        holder, other = start(**addresses).contender(lock), start().contender(lock)
        key = fresh_key()
        holder.got(key, lease=lease_ms(lock))
        proxy[0].refuse = True
        proxy[0].cut()
        assert other.acquire(key, wait=lease_ms(lock) + FREE_WITHIN_MS)["status"] == "ok"
        proxy[0].refuse = False
        assert told(holder) == "lost"
        assert holder.release()["status"] == "lost"
        other.released()
        holder.got(key)


@pytest.mark.parametrize("lock", [name for name, lock in BY_NAME.items() if lock.setting == "REDLOCK_URLS"])
def test_a_minority_of_the_servers_may_die(lock, start, stack):
    assert BY_NAME[lock].survives_minority
    probe = start()
    holder, other = probe.contender(lock), start().contender(lock)
    key = fresh_key()
    thaw = stack.freeze_redlock(2)
    try:
        holder.got(key, lease=LONG_MS)
        assert not stranger_gets_it(other, key)
        assert told(holder) == "ok"
        assert holder.release()["status"] == "ok"
        other.got(key, lease=LONG_MS)
        other.released()
    finally:
        thaw()
    thaw = stack.freeze_redlock(3)
    try:
        event = holder.acquire(fresh_key(), wait=700, lease=1000)
        assert event["status"] == "away", event
        assert event["ended_us"] - event["began_us"] < 3_000_000 * PATIENCE, event
    finally:
        thaw()
    holder.got(fresh_key(), lease=LONG_MS)


@pytest.mark.parametrize("lock", [name for name in declaring(can_raise_fence=True)])
def test_a_counter_that_was_lost(lock, start, stack):
    """The next token is greater than what the resource has seen; that it was lost costs liveness only."""
    contender = start().contender(lock)
    key = fresh_key()
    for _ in range(3):
        seen = contender.got(key)["fence"]
        contender.released()
    stack.redis.flushall()
    assert contender.got(key)["fence"] <= seen
    contender.released()
    assert contender.start("raise-fence", key, seen).done("raise-fence")["status"] == "ok"
    assert contender.got(key)["fence"] > seen
    contender.released()
    assert contender.start("raise-fence", key, 1).done("raise-fence")["status"] == "ok"  # never the reverse
    assert contender.got(key)["fence"] > seen


@pytest.mark.parametrize("lock", [name for name, lock in BY_NAME.items() if lock.server])
def test_ping(lock, start, stack):
    setting = BY_NAME[lock].setting
    assert start().ping(lock, 15000)["status"] == "ok"
    assert start(**{setting: "", "DATABASE_URL": ""}).ping(lock, 15000)["status"] == "unavailable"
