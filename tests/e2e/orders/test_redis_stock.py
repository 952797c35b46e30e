"""redis-stock: units are taken in Redis, orders are accepted with 202 and written to PostgreSQL later, once each; and
what every kind of crash leaves is found."""

import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid

import pytest
import redis

from basics import die_with_parent
from basics import REPLY_S, START_S
from lab import (
    Background,
    Proxy,
    expect_balanced,
    hammer,
    holding_row,
    number,
    psql,
    stays,
    together,
    wait_until,
    waiting_backends,
)

STRATEGY = "redis-stock"


class Redis:
    """A Redis server of a test's own, which it may kill."""

    def __init__(self, folder, *options):
        self.folder, self.options = folder, options
        folder.mkdir(exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self.client = redis.Redis.from_url(self.url, decode_responses=True)
        self.process = None

    def start(self):
        command = [shutil.which("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        self.process = subprocess.Popen(
            [*command, "--save", "", "--loglevel", "warning", *self.options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        wait_until(self.answers, "redis answers")
        return self

    def answers(self):
        try:
            return self.client.ping()
        except redis.RedisError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=START_S)

    def restart(self):
        self.kill()
        self.start()


@pytest.fixture
def own_redis(tmp_path):
    """Starts Redis servers for one test: own_redis(options…)."""
    started = []

    def start(*options):
        started.append(Redis(tmp_path / f"redis-{len(started)}", *options))
        return started[-1].start()

    yield start
    for server in started:
        server.kill()


def client_of(shop):
    """The shop's Redis and its prefix there."""
    prefix = shop.database_url.rsplit("/", 1)[1]
    return redis.Redis.from_url(shop.lock_servers["REDIS_URL"], decode_responses=True), prefix


def settled(service, product):
    """The audit, once all that was accepted is written."""

    def rest():
        audit = service.audit(product)
        return audit if audit["in_flight"] == 0 else None

    return wait_until(rest, "every accepted order is written", every=0.05)


def wait_for_orders(service, product, more=50):
    """Waits until MORE orders of a product are written."""
    before = service.audit(product)["orders"]
    wait_until(lambda: service.audit(product)["orders"] >= before + more, "orders flow")


def expect_settled(service, product, load, initial):
    settled(service, product)
    return expect_balanced(service, product, load, initial)


def order_status(service, order):
    reply = service.get(f"/orders/{order}")
    return reply.json["status"] if reply.status == 200 else reply.problem


def accept(service, product, quantity=1, **more):
    """An order that is accepted; its id."""
    reply = service.order(product, quantity, STRATEGY, **more)
    assert reply.status == 202, str(reply)
    assert reply.header("Location") == f"/orders/{reply.json['id']}"
    return reply.json["id"]


def metric(service, name):
    lines = service.get("/metrics").body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


# ── an order's way ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_row(shop):
    row = shop.get(f"/strategies/{STRATEGY}").json
    assert (row["guarantee"], row["stock_kind"], row["available"], row["lock"]) == ("safe", "redis", True, None)


def test_accepted_then_pending(shop):
    """While the product's row is locked nothing can be written; the order is the same before and after."""
    product = shop.product(stock=10, price="19.90", kind="redis")
    with holding_row(shop.database_url, product):
        reply = shop.order(product, 3, STRATEGY, receiver_name='Ada "Count\\ess"', receiver_mobile="+49 30")
        assert reply.status == 202, str(reply)
        told = reply.json
        assert (told["amount"], told["stock_seen"], told["status"]) == ("59.70", 10, "accepted")
        accepted = shop.get(f"/orders/{told['id']}").json
        assert {name: accepted[name] for name in told} == told
        assert number(shop.database_url, f"SELECT count(*) FROM orders WHERE id = {told['id']}") == 0
    audit = settled(shop, product)
    assert (audit["left"], audit["sold"], audit["orders"], audit["balanced"]) == (7, 3, 1, True), f"{audit}"
    pending = shop.get(f"/orders/{told['id']}").json
    changed = {name for name in pending if pending[name] != accepted[name]}
    assert changed == {"status", "items"} and pending["status"] == "pending", f"{accepted} → {pending}"
    changes = {name for name in pending["items"][0] if pending["items"][0][name] != accepted["items"][0][name]}
    assert changes <= {"committed_at"}, f"{accepted} → {pending}"
    assert [order["id"] for order in shop.orders(product)] == [told["id"]]
    assert shop.get(f"/products/{product}").json["stock"] == 7


def test_amounts_are_exact(shop):
    product = shop.product(stock=10**12, price="9999999999.99", kind="redis")
    order = shop.get(f"/orders/{accept(shop, product, 1000000)}").json
    assert order["amount"] == "9999999999990000.00"
    settled(shop, product)
    assert shop.get(f"/orders/{order['id']}").json["amount"] == order["amount"]


def test_sold_out(shop):
    product = shop.product(stock=5, kind="redis")
    accept(shop, product, 3)
    reply = shop.order(product, 3, STRATEGY)
    assert (reply.problem, reply.json["available"]) == ("sold-out", 2), str(reply)
    accept(shop, product, 2)
    reply = shop.order(product, 1, STRATEGY)
    assert (reply.problem, reply.json["available"]) == ("sold-out", 0), str(reply)


def test_two_processes_sell_out_exactly(pair):
    product = pair[0].product(stock=600, kind="redis")
    load = hammer(pair, product, strategy=STRATEGY, quantities=(1, 2, 3))
    audit = expect_settled(pair[1], product, load, 600)
    assert (audit["sold"], audit["left"]) == (600, 0), f"sold out means sold: {audit}"
    assert set(load.outcomes) == {"created", "sold-out"}


def test_the_books_balance_at_every_moment(pair):
    """What is accepted and not written counts as sold."""
    product = pair[0].product(stock=3000, kind="redis")
    stop, looks = threading.Event(), []
    load = Background(lambda: hammer(pair, product, threads=8, strategy=STRATEGY, stop=stop))
    try:
        for service in pair * 10:
            looks.append(service.audit(product))
    finally:
        stop.set()
    odd = [audit for audit in looks if not audit["balanced"]]
    assert not odd, f"{odd[0]}"
    expect_settled(pair[0], product, load.result(), 3000)


def test_steps_and_metrics(shop):
    product = shop.product(stock=9, kind="redis")
    before = metric(shop, f'oversell_orders_total{{strategy="{STRATEGY}",outcome="accepted"}}')
    shop.post(
        f"/orders?strategy={STRATEGY}",
        {"product_id": product, "quantity": 2},
        {"X-Request-Id": "redis-stock-trace"},
    )
    traces = [t for t in shop.get("/traces?limit=1000").json["traces"] if t["request_id"] == "redis-stock-trace"]
    assert [(step["step"], step["value"]) for step in traces[0]["steps"]] == [("take", 7)]
    assert (traces[0]["outcome"], traces[0]["order_id"] > 0) == ("accepted", True)
    after = metric(shop, f'oversell_orders_total{{strategy="{STRATEGY}",outcome="accepted"}}')
    assert after == before + 1
    settled(shop, product)
    wait_until(lambda: metric(shop, 'oversell_writer_orders_total{fate="written"}') >= 1, "the writer counts")


# ── kinds, resets, replacements ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["counter", "units", "buckets"])
def test_other_kinds(shop, kind):
    seller = {"counter": "atomic-decrement", "units": "skip-locked", "buckets": "bucketed"}[kind]
    product = shop.product(stock=5, kind=kind)
    reply = shop.order(product, 1, STRATEGY)
    assert (reply.problem, reply.json["kind"]) == ("wrong-stock-kind", kind), str(reply)
    assert shop.reset(product, 6, kind="redis")["kind"] == "redis"
    reply = shop.order(product, 1, seller)
    assert (reply.problem, reply.json["kind"]) == ("wrong-stock-kind", "redis"), str(reply)
    first = accept(shop, product, 4)
    shop.reset(product, 7, kind=kind)
    assert shop.order(product, 1, STRATEGY).problem == "wrong-stock-kind"
    assert shop.order(product, 7, seller).status == 201
    stays(lambda: shop.get(f"/orders/{first}").problem == "no-such-order", "the reset has deleted it", 0.2)
    assert shop.audit(product)["balanced"]


def test_an_accepted_order_that_a_reset_has_deleted(shop):
    """The writer waits for another product's row, so the order is still in the stream. It will never be written."""
    blocked, product = (shop.product(stock=5, kind="redis") for _ in range(2))
    for each in (blocked, product):
        accept(shop, each)
        settled(shop, each)
    key = str(uuid.uuid4())
    with holding_row(shop.database_url, blocked):
        accept(shop, blocked)
        wait_until(lambda: waiting_backends(shop.database_url) >= 1, "the writer waits for the row")
        deleted = accept(shop, product, 2, key=key)
        shop.reset(product, 7, kind="redis")
        assert order_status(shop, deleted) == "no-such-order"
        again = accept(shop, product, 2, key=key)
        assert again != deleted, "the key's order is gone, so this is a new one"
    assert settled(shop, product)["left"] == 5
    assert (order_status(shop, deleted), order_status(shop, again)) == ("no-such-order", "pending")


def test_no_such_product(shop):
    reply = shop.post(f"/orders?strategy={STRATEGY}", {"product_id": 987654321, "quantity": 1})
    assert reply.problem == "no-such-product", str(reply)


def test_a_reset_while_orders_run(pair):
    """Those of the sale before are gone, wherever they were; those of the new one are all there."""
    product = pair[0].product(stock=100000, kind="redis")
    stop = threading.Event()
    load = Background(lambda: hammer(pair, product, threads=8, strategy=STRATEGY, stop=stop))
    try:
        for _ in range(4):
            wait_for_orders(pair[1], product)
            pair[0].reset(product, 100000, kind="redis")
            assert pair[1].audit(product)["balanced"]
    finally:
        stop.set()
    load.result()
    audit = settled(pair[0], product)
    assert audit["balanced"] and audit["left"] + audit["sold"] == 100000, f"{audit}"
    pair[0].reset(product, 30, kind="redis")
    expect_settled(pair[0], product, hammer(pair, product, strategy=STRATEGY), 30)


def test_a_replacement_keeps_accepted_orders(pair):
    product = pair[0].product(stock=100000, kind="redis")
    stop = threading.Event()
    load = Background(lambda: hammer(pair, product, threads=8, strategy=STRATEGY, stop=stop))
    try:
        for price in ("1", "2.50", "3"):
            wait_for_orders(pair[1], product)
            body = {"name": "Tee", "price": price, "stock": 50000, "kind": "redis"}
            assert pair[0].put(f"/products/{product}", body).status == 200
    finally:
        stop.set()
    load = load.result()
    audit = settled(pair[1], product)
    assert audit["balanced"] and audit["orders"] == len(load.created), f"{audit}"


# ── Idempotency-Key ────────────────────────────────────────────────────────────────────────────────────────


def test_a_retry_gives_the_first_order(pair):
    """Before it is written, and afterwards; from both processes."""
    one, two = pair
    product, key = one.product(stock=10, kind="redis"), f"key-{uuid.uuid4()}"
    with holding_row(one.database_url, product):
        first = one.order(product, 2, STRATEGY, key=key, receiver_name="Ada")
        assert (first.status, first.header("Idempotency-Replayed")) == (202, None), str(first)
        for service in pair:
            again = service.order(product, 2, STRATEGY, key=key, receiver_name="Ada")
            assert (again.status, again.header("Idempotency-Replayed")) == (202, "true"), str(again)
            assert again.json == first.json
        for other in ({"quantity": 3}, {"receiver_name": "Bob"}, {"receiver_mobile": "1"}):
            asked = {"quantity": 2, "receiver_name": "Ada", **other}
            reply = two.order(product, strategy=STRATEGY, key=key, **asked)
            assert reply.problem == "idempotency-mismatch", str(reply)
    settled(one, product)
    for service in pair:
        again = service.order(product, 2, STRATEGY, key=key, receiver_name="Ada")
        assert (again.status, again.header("Idempotency-Replayed")) == (201, "true"), str(again)
        assert (again.json["id"], again.json["status"]) == (first.json["id"], "pending")
        reply = service.order(product, 3, STRATEGY, key=key, receiver_name="Ada")
        assert reply.problem == "idempotency-mismatch", str(reply)
    assert one.audit(product)["orders"] == 1


def test_the_same_key_at_the_same_time(pair):
    """A client that meets the first request while it runs gets a 409, and asks again with the same key."""
    product, key = pair[0].product(stock=100, kind="redis"), f"key-{uuid.uuid4()}"

    def order_until_done(service):
        while (reply := service.order(product, 1, STRATEGY, key=key)).status == 409:
            assert reply.problem == "idempotency-in-progress", f"{reply}"
            assert reply.header("Retry-After") == "1"
        return reply

    replies = together(*[lambda i=i: order_until_done(pair[i % 2]) for i in range(16)])
    assert {reply.status for reply in replies} <= {201, 202}, [str(reply) for reply in replies]
    assert len({reply.json["id"] for reply in replies}) == 1
    assert sum(reply.header("Idempotency-Replayed") is None for reply in replies) == 1
    assert settled(pair[0], product)["sold"] == 1


def test_a_key_is_free_again_after_a_reset(shop):
    product, key = shop.product(stock=10, kind="redis"), f"key-{uuid.uuid4()}"
    first = accept(shop, product, 2, key=key)
    settled(shop, product)
    shop.reset(product, 10, kind="redis")
    second = accept(shop, product, 2, key=key)
    assert second != first
    assert settled(shop, product)["orders"] == 1


def test_a_key_that_another_strategy_took_meanwhile(shop):
    """Its order was accepted and cannot be written under its key: rejected, and its unit goes back on sale."""
    product, other, key = shop.product(stock=10, kind="redis"), shop.product(stock=5), f"key-{uuid.uuid4()}"
    with holding_row(shop.database_url, product):
        order = accept(shop, product, 2, key=key)
        assert shop.order(other, 1, "atomic-decrement", key=key).status == 201
    wait_until(lambda: order_status(shop, order) == "rejected", "it is rejected")
    wait_until(lambda: shop.audit(product)["left"] == 10, "its units are back")
    record = shop.get(f"/orders/{order}").json
    assert (record["product_id"], record["quantity"], record["items"]) == (product, 2, [])
    audit = settled(shop, product)
    assert (audit["orders"], audit["sold"], audit["balanced"]) == (0, 0, True), f"{audit}"
    shop.reset(product, 10, kind="redis")
    assert shop.get(f"/orders/{order}").problem == "no-such-order"


# ── what Redis may do ──────────────────────────────────────────────────────────────────────────────────────


def test_redis_away(services, database, own_redis):
    server = own_redis()
    service = services.start(database, env={"REDIS_URL": server.url})
    product, other = service.product(stock=10, kind="redis"), service.product(stock=10)
    order = accept(service, product)
    settled(service, product)
    server.kill()
    for reply in (
        service.order(product, 1, STRATEGY),
        service.post(f"/products/{product}/reset", {"stock": 5, "kind": "redis"}),
        service.post(f"/products/{product}/reset", {"stock": 5}),
        service.post(f"/products/{other}/reset", {"stock": 5, "kind": "redis"}),
        service.get(f"/audit?product_id={product}"),
        service.get("/orders/123456789"),
    ):
        assert (reply.problem, reply.json["backend"]) == ("backend-unavailable", "redis"), str(reply)
    assert order_status(service, order) == "pending"
    assert service.get(f"/products/{product}").json["kind"] == "redis", "nothing was changed"
    assert service.order(other, 1, "atomic-decrement").status == 201
    server.start()
    wait_until(lambda: service.order(product, 1, STRATEGY).status == 202, "it goes on")
    audit = settled(service, product)
    assert (audit["left"], audit["sold"], audit["balanced"]) == (8, 2, True), f"{audit}"


def test_no_redis_at_all(services, database):
    service = services.start(database, env={"REDIS_URL": ""})
    product = service.product()
    for reply in (
        service.order(product, 1, STRATEGY),
        service.post(f"/products/{product}/reset", {"stock": 5, "kind": "redis"}),
    ):
        assert (reply.problem, reply.json["backend"]) == ("backend-unavailable", "redis"), str(reply)
    assert service.get("/orders/123456789").problem == "no-such-order"
    assert service.get(f"/strategies/{STRATEGY}").json["available"] is False


@pytest.mark.parametrize("options", [pytest.param((), marks=pytest.mark.long), ("--appendonly", "yes", "--appendfsync", "everysec")], ids=["memory", "aof"])
def test_redis_is_killed_under_load(services, database, own_redis, options):
    """What it had accepted, and neither saved nor handed on, is lost; no unit is sold twice, and every unit is sold."""
    server = own_redis(*options)
    pair = [services.start(database, env={"REDIS_URL": server.url}) for _ in range(2)]
    product = pair[0].product(stock=20000, kind="redis")
    stop = threading.Event()
    running = Background(lambda: hammer(pair, product, threads=8, strategy=STRATEGY, stop=stop))
    wait_for_orders(pair[0], product)
    server.restart()
    wait_until(lambda: pair[0].get(f"/audit?product_id={product}").status == 200, "Redis is back")
    wait_for_orders(pair[0], product)
    stop.set()
    load = running.result()
    audit = settled(pair[0], product)
    assert audit["balanced"] and audit["left"] + audit["sold"] == 20000, f"{audit}"
    stored = {order["id"] for order in pair[0].orders(product)}
    unknown = load.outcomes["outcome-unknown"] + load.unanswered
    assert len(stored - load.ids) <= unknown, "orders that no client was told of"
    print(f"told {len(load.ids)}, lost {len(load.ids - stored)}, {dict(load.outcomes)}")
    assert number(database, "SELECT count(*) FROM orders WHERE status = 'rejected'") == 0
    pair[0].reset(product, 50, kind="redis")
    expect_settled(pair[1], product, hammer(pair, product, strategy=STRATEGY), 50)


def test_redis_comes_back_with_an_older_memory(services, database, own_redis):
    """It is held against PostgreSQL before anything is taken."""
    server = own_redis()
    service = services.start(database, env={"REDIS_URL": server.url})
    product = service.product(stock=10, kind="redis")
    accept(service, product, 2)
    settled(service, product)
    server.client.save()
    accept(service, product, 7)
    settled(service, product)
    server.restart()
    assert server.client.hget(f"{database.rsplit('/', 1)[1]}:stock:{product}", "left") == "8", "it has forgotten"
    reply = service.order(product, 2, STRATEGY)
    assert (reply.problem, reply.json["available"]) == ("sold-out", 1), str(reply)
    accept(service, product, 1)
    audit = settled(service, product)
    assert (audit["left"], audit["sold"], audit["balanced"]) == (0, 10, True), f"{audit}"


def test_a_reply_that_is_lost(services, database, own_redis):
    """Whether the order was accepted is not known; the key tells."""
    server = own_redis()
    proxy = Proxy(server.url)
    try:
        service = services.start(database, env={"REDIS_URL": proxy.url})
        product, key = service.product(stock=10, kind="redis"), f"key-{uuid.uuid4()}"
        accept(service, product, 1)
        settled(service, product)
        proxy.arm(key.encode(), "reply")
        reply = service.order(product, 2, STRATEGY, key=key)
        assert reply.problem == "outcome-unknown", str(reply)
        again = service.order(product, 2, STRATEGY, key=key)
        assert again.status in (201, 202) and again.header("Idempotency-Replayed") == "true", str(again)
        audit = settled(service, product)
        assert (audit["left"], audit["orders"], audit["balanced"]) == (7, 2, True), f"{audit}"
        proxy.arm(b"redis-lost-request", "request")
        reply = service.order(product, 2, STRATEGY, key="redis-lost-request")
        assert reply.problem == "outcome-unknown", str(reply)
        assert settled(service, product)["orders"] == 2
    finally:
        proxy.close()


def test_forgotten_scripts(shop):
    product = shop.product(stock=10, kind="redis")
    server, _ = client_of(shop)
    for _ in range(3):
        server.script_flush()
        accept(shop, product)
        assert settled(shop, product)["balanced"]


@pytest.mark.long
def test_a_stock_that_was_tampered_with_is_repaired(shop):
    product = shop.product(stock=10, kind="redis")
    server, prefix = client_of(shop)
    for wrong in (5, -3):
        before, times = metric(shop, "oversell_stock_repaired_units_total"), 0

        def audit_before_the_repair():
            nonlocal times
            times += 1
            server.hincrby(f"{prefix}:stock:{product}", "left", wrong)
            audit = shop.audit(product)
            wait_until(lambda: shop.audit(product)["balanced"], "it is repaired")
            return None if audit["balanced"] else audit

        audit = wait_until(audit_before_the_repair, "the audit is made before the next round of repairs")
        assert (audit["left"], audit["drift"], audit["balanced"]) == (10 + wrong, wrong, False), f"{audit}"
        assert metric(shop, "oversell_stock_repaired_units_total") == before + abs(wrong) * times
    server.delete(f"{prefix}:stock:{product}")
    accept(shop, product, 10)
    assert shop.order(product, 1, STRATEGY).problem == "sold-out"


def test_postgresql_has_the_last_word(shop):
    """Somebody puts units on sale in Redis that there are not: orders for them are rejected, and nothing is oversold."""
    product = shop.product(stock=3, kind="redis")
    server, prefix = client_of(shop)
    with holding_row(shop.database_url, product):
        server.hincrby(f"{prefix}:stock:{product}", "left", 4)
        orders = [accept(shop, product) for _ in range(7)]
    audit = settled(shop, product)
    wait_until(lambda: shop.audit(product)["left"] == 0, "the stock is repaired")
    states = [order_status(shop, order) for order in orders]
    assert sorted(states) == ["pending"] * 3 + ["rejected"] * 4, f"{states}, {audit}"
    audit = shop.audit(product)
    assert (audit["sold"], audit["oversold"], audit["balanced"]) == (3, 0, True), f"{audit}"
    assert shop.order(product, 1, STRATEGY).problem == "sold-out"


def test_strange_entries_are_dropped(shop):
    product = shop.product(stock=10, kind="redis")
    server, prefix = client_of(shop)
    spoilt = metric(shop, 'oversell_writer_orders_total{fate="spoilt"}')
    good = {"product": product, "epoch": 1, "quantity": 1, "price": "1.00", "seen": 1, "at": "2026-01-01T00:00:00Z"}
    for fields in (
        {"hello": "world"},
        {**good, "order": 99999991, "instance": "x", "quantity": 0},
        {**good, "order": "x", "instance": "x"},
    ):
        server.xadd(f"{prefix}:orders", fields)
    epoch = server.hget(f"{prefix}:stock:{product}", "epoch")
    server.xadd(f"{prefix}:orders", {**good, "order": 99999992, "instance": "x", "epoch": epoch, "at": "never, says who wrote this"})
    order = accept(shop, product)
    wait_until(lambda: order_status(shop, order) == "pending", "the good one is written")
    wait_until(lambda: server.xlen(f"{prefix}:orders") == 0, "nothing is left")
    assert metric(shop, 'oversell_writer_orders_total{fate="spoilt"}') == spoilt + 3
    assert "order 99999992 of the stream cannot be written" in shop.log
    assert settled(shop, product)["balanced"]


def test_a_full_stream(services, database, own_redis):
    """The number of orders that may wait to be written has a limit."""
    server = own_redis()
    service = services.start(database, env={"REDIS_URL": server.url})
    product, prefix = service.product(stock=10, kind="redis"), database.rsplit("/", 1)[1]
    with holding_row(database, product):
        accept(service, product)
        wait_until(lambda: waiting_backends(database) > 0, "the writer waits for the row")
        server.client.eval(
            "for i = 1, 100000 do redis.call('XADD', KEYS[1], '*', 'hello', 'world') end", 1, f"{prefix}:orders"
        )
        reply = service.order(product, 1, STRATEGY)
        assert reply.problem == "overloaded", str(reply)
    wait_until(lambda: service.order(product, 1, STRATEGY).status == 202, "there is room again")
    audit = settled(service, product)
    assert (audit["sold"], audit["left"], audit["balanced"]) == (2, 8, True), f"{audit}"


# ── what PostgreSQL may do ─────────────────────────────────────────────────────────────────────────────────


def test_postgresql_away_while_orders_are_accepted(services, database):
    proxy = Proxy(database)
    try:
        service = services.start(proxy.url)
        product = service.product(stock=200, kind="redis")
        first = accept(service, product)
        settled(service, product)
        proxy.refuse = True
        proxy.cut()
        load = hammer([service], product, strategy=STRATEGY)
        assert load.sold == 199, f"sold out without PostgreSQL: {load.outcomes}"
        order = min(load.ids)
        assert order_status(service, order) == "accepted"
        assert order_status(service, first) in ("backend-unavailable", "accepted")
        assert service.get(f"/audit?product_id={product}").problem == "backend-unavailable"
        assert service.order(product, 1, STRATEGY, key="k").problem == "backend-unavailable", "it may know the key"
        proxy.refuse = False
        wait_until(lambda: order_status(service, order) == "pending", "they are written")
        audit = settled(service, product)
        assert (audit["orders"], audit["sold"], audit["left"], audit["balanced"]) == (200, 200, 0, True), f"{audit}"
    finally:
        proxy.close()


def test_a_commit_whose_reply_is_lost(services, database):
    """The batch is written again, and found written."""
    proxy = Proxy(database)
    try:
        service = services.start(proxy.url)
        product = service.product(stock=20, kind="redis")
        accept(service, product)
        settled(service, product)
        with holding_row(database, product):
            load = hammer([service], product, threads=4, strategy=STRATEGY, most=12)
            proxy.arm(b"commit", "reply")
        assert proxy.triggered.wait(REPLY_S), "a COMMIT has come by"
        audit = settled(service, product)
        assert (audit["orders"], audit["balanced"]) == (1 + len(load.created), True), f"{audit}"
    finally:
        proxy.close()


# ── crashes and ends of the service ────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_kill_9_under_load(services, database):
    """Every order that a client was told of is written after a restart, and no other."""
    service = services.start(database)
    product = service.product(stock=100000, kind="redis")
    running = Background(lambda: hammer([service], product, threads=8, strategy=STRATEGY, stop=threading.Event()))
    wait_for_orders(service, product)
    with holding_row(database, product):
        wait_until(lambda: waiting_backends(database) > 0, "some are handed to the writer, which waits for the row")
        stays(lambda: running.running, "more are accepted", 0.3)
        service.kill()
    load = running.result()
    assert len(load.created) > 50, f"{load.outcomes}"
    service = services.start(database)
    wait_until(lambda: order_status(service, max(load.ids)) == "pending", "they are written")
    audit = settled(service, product)
    assert audit["balanced"] and audit["left"] + audit["sold"] == 100000, f"{audit}"
    stored = {order["id"] for order in service.orders(product)}
    assert not load.ids - stored, "accepted, and not there"
    assert len(stored - load.ids) <= load.unanswered


@pytest.mark.long
def test_another_process_writes_what_a_dead_one_was_given(services, database):
    one, two = (services.start(database) for _ in range(2))
    product = one.product(stock=10, kind="redis")
    accept(two, product)
    settled(two, product)
    with holding_row(database, product):
        orders = [accept(one, product) for _ in range(3)]
        wait_until(lambda: waiting_backends(database) > 0, "a writer waits for the row")
        one.kill()
    for order in orders:
        wait_until(lambda order=order: order_status(two, order) == "pending", "it is written")
    assert settled(two, product)["balanced"]


def test_the_end_writes_what_is_accepted(services, database, stack):
    service = services.start(database)
    product = service.product(stock=100000, kind="redis")
    stop = threading.Event()
    running = Background(lambda: hammer([service], product, threads=8, strategy=STRATEGY, stop=stop))
    wait_for_orders(service, product)
    service.process.send_signal(signal.SIGTERM)
    load = running.result()
    service.stop()
    stored = number(database, "SELECT count(*) FROM orders")
    assert stored == number(database, f"SELECT 100000 - count FROM product WHERE id = {product}")
    assert len(load.ids) <= stored <= len(load.ids) + load.unanswered, f"{load.outcomes}"
    server = redis.Redis.from_url(stack.environment["REDIS_URL"], decode_responses=True)
    prefix = database.rsplit("/", 1)[1]
    assert (server.xlen(f"{prefix}:orders"), server.hlen(f"{prefix}:orders:accepted")) == (0, 0)
    assert server.xinfo_consumers(f"{prefix}:orders", "writers") == [], "it has left the group"


@pytest.mark.long
def test_the_end_without_postgresql_is_bounded(services, database):
    proxy = Proxy(database)
    try:
        service = services.start(proxy.url)
        product = service.product(stock=10, kind="redis")
        accept(service, product)
        settled(service, product)
        proxy.refuse = True
        proxy.cut()
        accept(service, product)
        start = time.monotonic()
        service.stop()
        assert time.monotonic() - start < START_S
        assert "1 accepted orders are left in Redis" in service.log
    finally:
        proxy.close()
    service = services.start(database)
    wait_until(lambda: number(database, "SELECT count(*) FROM orders") == 2, "the next start writes it")
    psql(database, "SELECT 1")


def test_a_new_database_takes_no_notice_of_an_old_stock(services, stack, own_redis):
    """Same Redis, same prefix, another database."""
    server = own_redis()
    for stock in (10, 7):
        env = {"REDIS_URL": server.url, "LOCK_PREFIX": "same"}
        service = services.start(stack.database(), env=env)
        assert service.order(1, 1, STRATEGY).problem == "wrong-stock-kind", "its own product is of another kind"
        service.reset(1, stock, kind="redis")
        load = hammer([service], 1, strategy=STRATEGY)
        expect_settled(service, 1, load, stock)
        service.reset(1, stock, kind="redis")
        accept(service, 1)
        service.stop()
