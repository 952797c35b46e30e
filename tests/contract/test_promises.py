"""What single locks promise beyond the conditions of all: each promise by a script in which a lock without it fails."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from basics import PATIENCE, at_any_speed, wait_until
from conditions import LONG_MS, sleep_ms
from conftest import probes_on
from contender import Contender, fresh_key
from foreign import ShedLock, SpringJdbc
from locks import declaring
from stack import proxies

# ---- etcd ---------------------------------------------------------------------------------------------------------


def queue_in_etcd(stack, key):
    """The names of the contenders' keys, the first created first."""
    prefix = f"oversell/locks/{key}/"
    return stack.etcdctl("get", "--prefix", prefix, "--keys-only", "--sort-by=CREATE", "--order=ASCEND").split()


def test_a_waiter_in_etcd_whose_key_was_deleted(start, stack):
    """It lives, its lease too, and nobody is before it: all the same it must not hold what is another's turn."""
    holder, waiter, third = (start().contender("etcd") for _ in range(3))
    key = fresh_key()
    holder.got(key, lease=LONG_MS)
    waiter.waits(key, wait=60000, lease=LONG_MS)
    mine = wait_until(lambda: queue_in_etcd(stack, key)[1:], "it stands in the queue")[0]
    stack.etcdctl("del", mine)
    third.waits(key, wait=60000, lease=LONG_MS)
    holder.released()
    assert third.done("acquire", )["status"] == "ok"
    assert waiter.event("acquire", 0.5) is None, "two hold it"
    third.released()
    event = waiter.done("acquire", )
    assert event["status"] == "ok"
    assert queue_in_etcd(stack, key) == [f"oversell/locks/{key}/{event['token']}"] != [mine]
    waiter.released()


def test_etcd_cas_compares_before_it_keeps_alive(start, stack):
    """The lease lives, but the key is gone: somebody else may hold it by now."""
    holder, key = start().contender("etcd-cas"), fresh_key()
    lease = holder.got(key, lease=LONG_MS, ends=True)["token"].split("/")[0]
    assert holder.start("renew").done("renew")["status"] == "ok"
    stack.etcdctl("del", f"oversell/locks/{key}")
    assert holder.start("renew").done("renew")["status"] == "lost"
    assert "remaining" in stack.etcdctl("lease", "timetolive", lease)
    assert holder.release()["status"] == "lost"


# ---- redlock, redisson-redlock ------------------------------------------------------------------------------------


def test_redlock_deducts_the_drift(start):
    """A hundredth of the lease and two milliseconds, from before the servers were asked."""
    event = start().contender("redlock").got(fresh_key(), wait=2000, lease=60000)
    assert event["lease_end_us"] <= event["ended_us"] + (60000 - 602) * 1000, event


def test_a_redlock_without_validity_is_not_got(start):
    """The drift is all of a lease of 2 ms, so a majority is not enough."""
    contender, key, told = start().contender("redlock"), fresh_key(), []

    def enough_tries():
        told.append(contender.acquire(key, lease=2)["status"])
        assert told[-1] in ("busy", "away"), told  # away: a majority was late, and the try shows nothing
        return told.count("busy") >= 10

    wait_until(enough_tries, "ten tries that a majority has answered")


def test_redlock_is_extended_by_a_majority(start, stack):
    holder, key = start().contender("redlock"), fresh_key()
    holder.got(key, wait=2000, lease=LONG_MS)

    def renewed():
        return holder.decided(lambda: holder.start("renew").done("renew"))["status"]

    for server in stack.redlock[3:]:
        server.delete(f"oversell:lock:{key}")
    assert renewed() == "ok"
    stack.redlock[2].delete(f"oversell:lock:{key}")
    assert renewed() == "lost"


def test_redisson_redlock_gives_back_the_parts_of_a_failed_round(start, stack):
    contender, key = start().contender("redisson-redlock"), fresh_key()
    name = f"oversell:lock:{key}"
    for server in stack.redlock[2:]:
        server.hset(name, "stranger:1", 1)
    event = contender.acquire(key, wait=500, lease=60000)
    assert event["status"] == "busy", event
    wait_until(lambda: not any(server.exists(name) for server in stack.redlock[:2]), "the two others are free")
    assert all(server.hgetall(name) == {"stranger:1": "1"} for server in stack.redlock[2:])
    for server in stack.redlock[2:]:
        server.delete(name)


# ---- ZooKeeper ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", declaring(setting="ZOOKEEPER_CONNECT"))
def test_a_node_whose_making_was_not_answered_is_found(lock, start, stack):
    """As Curator's protected create: with time left, the lost reply costs nothing, and no second node is made."""
    key = fresh_key()
    with proxies(stack.addresses, "ZOOKEEPER_CONNECT") as (through, servers), stack.zookeeper_client() as client:
        contender = start(**through).contender(lock, LONG_MS)
        parent = f"/oversell/locks/{key}"
        client.ensure_path(parent)  # else the first try is answered before it makes a node
        servers[0].arm(f"{key}/_c_".encode(), "reply")
        event = contender.acquire(key, wait=20000 * PATIENCE)
        assert servers[0].triggered.is_set()
        assert event["status"] == "ok", event
        assert client.get_children(parent) == [event["token"].split("/")[1]]
        contender.released()
        assert client.get_children(parent) == []


# ---- Redis --------------------------------------------------------------------------------------------------------


def places_in_queue(stack, key):
    return sum(stack.redis.llen(name) for name in stack.redis.scan_iter("*queue*") if key in name)


def test_a_waiter_that_leaves_the_fair_queue_wakes_the_next(start, stack):
    """The first is woken and may not take it, since its user may not write; the second needs no timeout to learn that."""
    stack.redis.execute_command("ACL", "SETUSER", "test-leaver", "on", ">word", "~*", "&*", "+@all", "-hset")
    url = f"redis://test-leaver:word@127.0.0.1:{stack.port_of('REDIS_URL')}"
    holder, second = start().contender("redis-fair"), start().contender("redis-fair")
    first = Contender(start(REDIS_URL=url), "redis-fair")
    key = fresh_key()
    try:
        lease = wait = 60000 * PATIENCE  # a place in the queue that had to end with its timeout would take longer than a reply
        holder.got(key, lease=lease)
        for place, waiter in enumerate((first, second)):
            waiter.waits(key, wait=wait, lease=lease)
            wait_until(lambda: places_in_queue(stack, key) > place, "it stands in the queue")  # noqa: B023
        holder.released()
        event = first.done("acquire")
        assert event["status"] == "refused", event
        assert second.done("acquire", )["status"] == "ok"
    finally:
        stack.redis.execute_command("ACL", "DELUSER", "test-leaver")


@pytest.mark.parametrize("lock", ["redis-registry", "redis-registry-shared"])
def test_a_registry_publishes_its_release(lock, start, stack):
    """To whom subscribes as Spring does."""
    holder, key = start().contender(lock), fresh_key()
    with stack.redis.pubsub(ignore_subscribe_messages=True) as subscriber:
        subscriber.psubscribe("oversell-channel:*")
        wait_until(lambda: stack.redis.pubsub_numpat() > 0, "it has subscribed")
        holder.got(key, lease=LONG_MS)
        assert subscriber.get_message(timeout=0.2) is None
        holder.released()
        message = wait_until(lambda: subscriber.get_message(timeout=0.1), "the message")
        assert (message["channel"], message["data"]) == (f"oversell-channel:oversell:{key}", f"oversell:{key}")
        assert subscriber.get_message(timeout=0.1) is None


# ---- renewal ------------------------------------------------------------------------------------------------------


RENEWED_MS, WATCHED_S = 6000, 4.5
LEFT = {
    "redis-reentrant": lambda stack, key, _: [stack.redis.pttl(f"oversell:lock:{key}")],
    "redis-fair": lambda stack, key, _: [stack.redis.pttl(f"oversell:lock:{key}")],
    "redisson-redlock": lambda stack, key, _: [server.pttl(f"oversell:lock:{key}") for server in stack.redlock],
    "etcd": lambda stack, _, token: [left_in_etcd(stack, token)],
    "etcd-cas": lambda stack, _, token: [left_in_etcd(stack, token.split("/")[0])],
}


def left_in_etcd(stack, lease):
    return 1000 * int(stack.etcdctl("lease", "timetolive", lease).split("remaining(")[1].split("s)")[0])


@pytest.fixture(scope="module")
def renewals(stack):
    """Watches the time to live of each lock's lease, while all are held."""

    def watch(lock, scale):
        with probes_on(stack.addresses) as start:
            contender, key = start().contender(lock), fresh_key()
            token = contender.got(key, lease=RENEWED_MS * scale)["token"]
            end, least = time.monotonic() + WATCHED_S * scale, []
            while time.monotonic() < end:
                least.append(min(LEFT[lock](stack, key, token)))
                time.sleep(0.05)
            contender.released()
            # At a third of it, so that two thirds are always left; on a slow machine half, and etcd tells whole seconds only.
            assert min(least) >= RENEWED_MS * scale / 2, (lock, least)

    pool = ThreadPoolExecutor()
    yield {lock: pool.submit(at_any_speed, lambda scale, lock=lock: watch(lock, scale)) for lock in LEFT}
    pool.shutdown(cancel_futures=True)


@pytest.mark.long
@pytest.mark.parametrize("lock", declaring(renewed=True))
def test_a_lease_is_renewed_long_before_it_ends(lock, renewals):
    renewals[lock].result()


# ---- clocks of other time zones -----------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["JST-9", "EST5"])  # Tokyo and New York, without a data base of zones
@pytest.mark.parametrize("lock, client", [("lock-table", SpringJdbc), ("shedlock", ShedLock)])
def test_times_in_tables_are_utc(lock, client, zone, start, stack):
    """Who wrote local time would take over what others hold, or be taken over."""
    ours, theirs, key = start(TZ=zone).contender(lock), client(stack), fresh_key()
    assert theirs.hold(key)
    assert ours.acquire(key, lease=LONG_MS)["status"] == "busy"
    theirs.release(key)
    ours.got(key, lease=LONG_MS)
    assert not theirs.hold(key)
    ours.released()
    assert theirs.hold(key)
    theirs.release(key)
