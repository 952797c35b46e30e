"""POST /locks/NAME/hold: taking a lock by hand."""

import contextlib
import socket
import threading
import time

import pytest

from basics import REPLY_S, wait_until
from lab import SOON_S, Background, Closed, as_body, at_any_speed, request_bytes, stays
from length import short_only
from promises import FEW, STRATEGIES

NO_EXCLUSION = {"mutex-early-release", "mutex-wrong-object", "redis-registry-shared"}  # or not their own lock
WITHOUT = {name for name, (guarantee, _) in STRATEGIES.items() if guarantee == "safe" and "fenced" not in name}
LOCKS = sorted(set(STRATEGIES) - WITHOUT - NO_EXCLUSION - {"read-write", "decrement"})


def hold(service, lock, name="door", hold_ms=0, **more):
    seconds = REPLY_S + (hold_ms + more.get("wait_ms", 0)) / 1000
    return service.call("POST", f"/locks/{name}/hold", {"lock": lock, "hold_ms": hold_ms, **more}, seconds=seconds)


def is_busy(service, lock, name="door"):
    return hold(service, lock, name, wait_ms=50).problem == "lock-busy"


@pytest.mark.parametrize("lock", short_only(FEW.intersection(LOCKS), LOCKS))
def test_one_holds_and_the_other_waits(shop, lock):
    fenced = shop.get(f"/strategies/{lock}").json["lock"]["fenced"]

    def two_hold(scale):
        hold_ms = 1000 * scale  # is over, where a machine is slow to see that the first holds it
        first = Background(lambda: hold(shop, lock, hold_ms=hold_ms, wait_ms=30000))
        time.sleep(0.2)  # lest it wait for a probe
        wait_until(lambda: is_busy(shop, lock) or not first.running, "the first holds it")
        assert first.running, f"it was not seen: {first.value}"
        second = hold(shop, lock, wait_ms=hold_ms + 30000)
        held = first.result().json
        assert held["held_ms"] >= hold_ms and held["released"], f"{held}"
        # In zookeeper-naive either may have waited in vain, for a probe that went just before it looked: its flaw.
        assert second.status == 200 and second.json["waited_ms"] > 10, f"the second has not waited: {held}, {second}"
        assert (held["fence"] is not None) == fenced and (not fenced or second.json["fence"] > held["fence"])
        assert second.json["acquired"] and second.json["released"], str(second)

    at_any_speed(two_hold)


@pytest.mark.long
def test_a_client_that_hangs_up_does_not_end_its_hold(shop):
    """Neither while it holds nor while it waits: the lock is released when the hold is over, and not before."""

    def it_hangs_up(scale):
        for name, pause_s in ((f"left-{scale}", 0.3), (f"left-waiting-{scale}", 0.05)):
            before = None
            if "waiting" in name:
                before = Background(lambda name=name: hold(shop, "mutex", name, hold_ms=200 * scale))
                time.sleep(0.1)
            body = as_body({"lock": "mutex", "hold_ms": 2500 * scale, "wait_ms": 60000})
            with shop.wire() as wire:
                wire.send(request_bytes("POST", f"/locks/{name}/hold", body))
                assert not wire.reply_within(pause_s)
            assert before is None or before.result().status == 200
            assert hold(shop, "mutex", name, wait_ms=100).problem == "lock-busy"
            assert hold(shop, "mutex", name, wait_ms=60000).status == 200

    at_any_speed(it_hangs_up)


def test_an_order_waits_for_a_lock_that_is_held_by_hand(shop):
    product = shop.product(stock=5)
    before = shop.get("/strategy").json
    shop.strategy("mutex", lock_wait_ms=100)
    try:

        def it_is_held(scale):
            held = Background(lambda: hold(shop, "mutex", f"product:{product}", hold_ms=3000 * scale))
            wait_until(lambda: is_busy(shop, "mutex", f"product:{product}") or not held.running, "it is held")
            assert shop.order(product).problem == "lock-busy"
            assert held.result().status == 200

        at_any_speed(it_is_held)
        shop.strategy("mutex", lock_wait_ms=before["lock_wait_ms"])
        assert shop.order(product).status == 201
    finally:
        shop.strategy(before["name"], lock_wait_ms=before["lock_wait_ms"])


def test_a_lock_that_is_not_there(shop):
    for lock in ("nobody", "read-write", "select-for-update"):
        refused = hold(shop, lock)
        assert refused.problem == "invalid-order", str(refused)
        assert "mutex-per-product" in refused.json["detail"], "valid names are listed"


@pytest.mark.parametrize("name", ["a%20b", "ä", "x" * 65, "a;b", "a%2Fb"])
def test_a_name_that_no_lock_can_have(shop, name):
    assert hold(shop, "mutex", name).status == 404


@pytest.mark.parametrize("name", ["x" * 64, "product:1", "A.b_c-d"])
def test_names_that_locks_can_have(shop, name):
    assert hold(shop, "mutex", name).status == 200


@pytest.mark.parametrize(
    "members, problem",
    [
        ({"hold_ms": -1}, "invalid-order"),
        ({"hold_ms": 600001}, "invalid-order"),
        ({"hold_ms": 1.5}, "bad-request"),
        ({"wait_ms": 60001}, "invalid-order"),
        ({"lease_ms": -1}, "invalid-order"),
        ({"lock": 1}, "bad-request"),
        ({"lock": ""}, "invalid-order"),
        ({"more": 1}, "bad-request"),
    ],
)
def test_members_that_are_wrong(shop, members, problem):
    reply = shop.post("/locks/door/hold", {"lock": "mutex", "hold_ms": 0, **members})
    assert reply.problem == problem, str(reply)


@pytest.mark.parametrize("name", [".", ".."])
@pytest.mark.parametrize("lock", ["zookeeper", "redis-lock", "mutex"])
def test_a_name_that_is_a_path(shop, lock, name):
    """ZooKeeper answers to such a path with a special error; the name is refused before."""
    reply = shop.post(f"/locks/{name}/hold", {"lock": lock, "hold_ms": 0})
    assert reply.problem == "not-found" and "neither . nor .." in reply.json["detail"], str(reply)


def test_a_service_that_shuts_down_lets_go(services, database):
    service = services.start(database)
    held = Background(lambda: hold(service, "mutex", hold_ms=60000))
    wait_until(lambda: is_busy(service, "mutex"), "it is held")
    service.stop()
    assert held.result().json["held_ms"] < 60000


@pytest.mark.long
def test_a_wait_for_a_lock_does_not_hold_up_the_end(services, database):
    one, other = (services.start(database, "--order-timeout-ms", "1000") for _ in range(2))
    held = Background(lambda: hold(other, "redis-lock", hold_ms=600000))
    wait_until(lambda: is_busy(one, "redis-lock"), "it is held")
    waits = Background(lambda: hold(one, "redis-lock", wait_ms=60000))
    stays(lambda: waits.running, "it waits", 0.3)
    start = time.monotonic()
    one.stop()
    assert time.monotonic() - start < SOON_S, "as long as a minute without its end"
    other.stop()
    assert held.result().status == 200
    with pytest.raises((AssertionError, OSError, Closed)):
        waits.result()


@pytest.mark.parametrize(
    "lock, backend", [("redis-lock", "redis"), ("redlock", "redlock"), ("zookeeper", "zookeeper"), ("etcd", "etcd")]
)
def test_a_lock_whose_server_is_away(services, database, lock, backend):
    nowhere = {
        "REDIS_URL": "redis://127.0.0.1:1",
        "REDLOCK_URLS": "redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3",
        "ZOOKEEPER_CONNECT": "127.0.0.1:1",
        "ETCD_ENDPOINTS": "http://127.0.0.1:1",
    }
    service = services.start(database, "--lock-wait-ms", "500", env=nowhere)
    product = service.product(stock=3)
    for reply in (hold(service, lock, wait_ms=300), service.order(product, 1, lock)):
        assert reply.problem == "backend-unavailable", str(reply)
        assert reply.json["backend"] == backend
    row = service.get(f"/strategies/{lock}").json
    assert not row["available"] and row["reason"], f"{row}"
    assert service.get("/readyz").json["backends"][backend]["up"] is False
    assert service.order(product, 1, "atomic-decrement").status == 201


class Silent:
    """A server that accepts and never answers; it notes when its first connection was opened and closed."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.opened = self.closed = None
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        first, _ = self.listener.accept()
        self.opened = time.monotonic()
        with contextlib.suppress(OSError):
            while first.recv(65536):
                pass
        self.closed = time.monotonic()
        first.close()


def test_silent_lock_servers_are_asked_at_once(services, database):
    """So /readyz waits for one of them, not for one after the other."""
    redis, one, another, etcd, postgres = silent = [Silent() for _ in range(5)]
    addresses = {
        "REDIS_URL": f"redis://{redis.address}",
        "REDLOCK_URLS": f"redis://{one.address},redis://{another.address}",
        "ZOOKEEPER_CONNECT": "127.0.0.1:1",  # whose session connects when it likes
        "ETCD_ENDPOINTS": f"http://{etcd.address}",
        "LOCK_DATABASE_URL": f"postgresql://nobody@{postgres.address}/nothing",
    }
    service = services.start(database, env=addresses)  # which waits for /readyz
    backends = service.get("/readyz").json["backends"]
    assert [name for name, told in backends.items() if told["up"]] == ["postgresql"], backends
    wait_until(lambda: all(server.closed for server in silent), "the service gives up")
    assert max(server.opened for server in silent) < min(server.closed for server in silent)
    for server in silent:
        server.listener.close()


def test_a_lock_whose_server_is_not_configured(services, database):
    service = services.start(database, env={"REDIS_URL": "", "ETCD_ENDPOINTS": ""})
    for lock, setting in (("redis-lock", "REDIS_URL"), ("etcd", "ETCD_ENDPOINTS")):
        assert hold(service, lock).problem == "backend-unavailable"
        row = service.get(f"/strategies/{lock}").json
        assert (row["available"], row["reason"]) == (False, f"{setting} is not set"), f"{row}"
