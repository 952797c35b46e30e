"""Waits that end: full queues, busy locks, used-up tries; switches and resets that wait for orders."""

import contextlib
import threading
import time
from collections import Counter

import pytest

from lab import (
    Background,
    DOCUMENT,
    SOON_S,
    Session,
    expect_balanced,
    expect_books,
    hammer,
    holding,
    holding_row,
    number,
    psql,
    request_bytes,
    stays,
    together,
    wait_until,
    waiting_backends,
)
from length import short_only
from promises import FEW, STRATEGIES

# Rows whose orders wait for one another in the database, not in the process.
IN_DATABASE = [name for name, (guarantee, _) in STRATEGIES.items() if guarantee == "safe"]


# ── the queue ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_full_queue_of_orders_leaves_the_books_open(services, database):
    """While every worker waits and the queue is full, everything but orders is answered."""
    service = services.start(database, "--workers", "1", "--queue", "2", "--in-turn=no")
    product = service.product()
    service.strategy("select-for-update")
    with holding_row(database, product) as row:
        first = Background(lambda: service.order(product))
        wait_until(lambda: waiting_backends(database) == 1, "the first order waits for the row")
        queued = [Background(lambda: service.order(product)) for _ in range(2)]
        wait_until(lambda: "oversell_queue_depth 2\n" in service.get("/metrics").text, "the queue is full")
        refused = together(*[lambda: service.order(product)] * 9)
        assert [reply.problem for reply in refused] == ["overloaded"] * 9, "it refuses at once, while the first is at work"
        for target in (
            "/healthz",
            "/readyz",
            "/metrics",
            "/strategies",
            "/strategy",
            "/traces",
            "/openapi.yaml",
            "/products",
            "/products/1",
            "/orders",
            f"/audit?product_id={product}",
        ):
            reply = service.call("GET", target)
            assert reply.status == 200, f"{target}: {reply}"
        row.run("ROLLBACK")
        assert [call.result().status for call in (first, *queued)] == [201] * 3
    assert service.order(product).status == 201, "there is room again"
    assert service.audit(product)["orders"] == 4


def answered(wires):
    """Those on which something has come."""
    return [wire for wire in wires if wire.reply_has_begun()]


def test_a_crowd_of_control_calls_is_bounded_too(services, database):
    """Three hundred resets of a product whose row is locked: some are refused at once, all are answered."""
    service = services.start(database)
    product = service.product(stock=1)
    wires = [service.wire() for _ in range(300)]
    try:
        with holding_row(database, product) as row:
            for wire in wires:
                wire.send(request_bytes("POST", f"/products/{product}/reset", b'{"stock":3}'))
            wait_until(lambda: len(answered(wires)) >= 20, "twenty are refused")
            refused = {wire: wire.reply().problem for wire in answered(wires)}
            assert set(refused.values()) == {"overloaded"}, f"{refused.values()}"
            row.run("ROLLBACK")
        outcomes = Counter(refused.get(wire) or wire.reply().problem or "reset" for wire in wires)
        assert set(outcomes) <= {"reset", "lock-busy", "overloaded"} and outcomes["overloaded"] <= 60, f"{outcomes}"
    finally:
        for wire in wires:
            wire.close()
    assert service.reset(product, 5)["stock"] == 5


@contextlib.contextmanager
def waiting_for(shop, strategy, lock_wait_ms):
    """The strategy and how long its orders wait, inside the with."""
    before = shop.get("/strategy").json
    shop.strategy(strategy, lock_wait_ms=lock_wait_ms)
    try:
        yield
    finally:
        shop.strategy(before["name"], lock_wait_ms=before["lock_wait_ms"])


# ── locks ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strategy", short_only(FEW, [name for name in STRATEGIES if name != "advisory-lock"]))
def test_a_row_that_stays_locked(shop, strategy):
    """Somebody else holds the product's row: lock-busy after the wait, not before it and not long after."""
    product = shop.product(stock=5, strategy=strategy)
    with waiting_for(shop, strategy, 200), holding_row(shop.database_url, product):
        start = time.monotonic()
        reply = shop.order(product)
        seconds = time.monotonic() - start
    assert reply.problem == "lock-busy", str(reply)
    assert 0.18 < seconds < SOON_S, f"the wait was 0.2 s, the answer took {seconds:.3f} s"
    assert shop.order(product, 1, strategy).status == 201
    audit = shop.audit(product)
    assert (audit["orders"], audit["left"], audit["balanced"]) == (1, 4, True), f"{audit}"


@pytest.mark.parametrize("strategy", ["mutex", "mutex-per-product", "reentrant-mutex"])
def test_a_mutex_that_stays_locked(shop, strategy):
    """One order holds the mutex and waits for the row; the other waits for the mutex, not for ever."""
    product = shop.product(stock=5)
    with waiting_for(shop, strategy, 1000), holding_row(shop.database_url, product):
        replies = together(*[lambda: shop.order(product)] * 2)
    assert [reply.problem for reply in replies] == ["lock-busy"] * 2, f"{[str(reply) for reply in replies]}"
    assert shop.order(product, 1, strategy).status == 201


def test_an_advisory_lock_that_stays_locked(shop):
    """Whoever holds it, here the order of another client, which waits for the row."""
    product = shop.product(stock=5)
    with waiting_for(shop, "advisory-lock", 400), holding_row(shop.database_url, product):
        assert shop.order(product).problem == "lock-busy"
    assert shop.order(product, 1, "advisory-lock").status == 201


def test_a_table_that_stays_locked(shop):
    product = shop.product(stock=5)
    with waiting_for(shop, "table-lock", 200), holding(shop.database_url, "LOCK TABLE product IN EXCLUSIVE MODE"):
        assert shop.order(product).problem == "lock-busy"
    assert shop.order(product, 1, "table-lock").status == 201


def test_a_wait_of_nothing_does_not_wait(shop):
    """lock_wait_ms 0: what is free is taken, what is not is busy at once."""
    product = shop.product(stock=5)
    with waiting_for(shop, "select-for-update", 0):
        assert shop.order(product).status == 201
        with holding_row(shop.database_url, product):
            start = time.monotonic()
            assert shop.order(product).problem == "lock-busy"
            assert time.monotonic() - start < SOON_S


def test_a_product_that_stays_locked_cannot_be_changed(shop):
    """Control calls wait no longer than orders do; nothing is half done."""
    product = shop.product(stock=5)
    shop.order(product)
    with waiting_for(shop, shop.get("/strategy").json["name"], 300), holding_row(shop.database_url, product):
        for method, target, body in (
            ("POST", f"/products/{product}/reset", {"stock": 9}),
            ("PUT", f"/products/{product}", {"name": "new", "price": "1.00", "stock": 9}),
        ):
            reply = shop.call(method, target, body)
            assert reply.problem == "lock-busy", str(reply)
            assert reply.seconds < SOON_S, f"the wait was 0.3 s, the answer took {reply.seconds:.1f} s"
    audit = shop.audit(product)
    assert (audit["orders"], audit["left"], audit["initial"]) == (1, 4, 5), f"{audit}"


def test_an_order_that_waits_is_served_when_the_row_is_free(shop):
    product = shop.product(stock=5)
    with holding_row(shop.database_url, product) as row:
        waiting = Background(lambda: shop.order(product, 1, "select-for-update"))
        wait_until(lambda: waiting_backends(shop.database_url) == 1, "the order waits for the row")
        row.run(f"UPDATE product SET count = 2, initial_count = 2 WHERE id = {product}")
        row.run("COMMIT")
        order = waiting.result()
    assert (order.status, order.json["stock_seen"]) == (201, 2), "it reads what the holder wrote"


# ── tries ───────────────────────────────────────────────────────────────────────────────────────────────────


# Before another statement writes products, somebody writes twice: so no row is any more as an order has read it.
SOMEBODY_IS_FIRST = """
    CREATE SEQUENCE written;
    CREATE FUNCTION let_somebody_write() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE before bigint := (SELECT last_value FROM written);
        BEGIN
            WHILE (SELECT last_value FROM written) < before + 2 LOOP PERFORM pg_sleep(0.001); END LOOP;
            RETURN NULL;
        END $$;
    CREATE TRIGGER somebody_is_first BEFORE UPDATE ON product
        WHEN (current_setting('test.writes', true) IS NULL) EXECUTE FUNCTION let_somebody_write();
"""
WRITE_ON = """
    SET test.writes = 'on';
    DO $$ BEGIN
        FOR i IN 1..100000 LOOP
            UPDATE product SET version = version + 1 WHERE id = {} AND name <> 'stop';
            EXIT WHEN NOT FOUND;
            COMMIT;
            PERFORM nextval('written');
            PERFORM pg_sleep(0.001);
        END LOOP;
    END $$
"""


@pytest.mark.parametrize("strategy", ["optimistic", "repeatable-read", "serializable"])
def test_tries_are_used_up(services, database, strategy):
    """Somebody writes the row again and again, each time between the order's read and its write."""
    service = services.start(database, "--strategy", strategy)
    product = service.product(stock=5)
    psql(database, SOMEBODY_IS_FIRST)
    session = Session(database)
    try:
        writer = Background(lambda: session.run(WRITE_ON.format(product)))
        reply = service.order(product)
        assert reply.problem == "conflict", str(reply)
        rows = {row["name"]: row for row in service.get("/strategies").json["strategies"]}
        assert reply.json["tries"] == rows[strategy]["max_tries"] > 1, f"{reply.json}"
        psql(database, f"UPDATE product SET name = 'stop' WHERE id = {product}")
        writer.result()
    finally:
        session.end()
    psql(database, "DROP TRIGGER somebody_is_first ON product")
    assert service.order(product).status == 201, "as soon as it is quiet"
    audit = service.audit(product)
    assert (audit["orders"], audit["left"], audit["balanced"]) == (1, 4, True), f"{audit}"


# ── switches and resets ─────────────────────────────────────────────────────────────────────────────────────


def test_a_switch_waits_for_the_orders_before_it(services, database):
    service = services.start(database, "--workers", "4", "--in-turn=no")
    product = service.product()
    service.strategy("select-for-update")
    with holding_row(database, product) as row:
        orders = [Background(lambda: service.order(product)) for _ in range(2)]
        wait_until(lambda: waiting_backends(database) == 2, "two orders wait for the row")
        switch = Background(lambda: service.put("/strategy", {"name": "optimistic"}))
        stays(lambda: switch.running, "the switch waits while old orders run")
        assert service.get("/healthz").status == 200, "others are served meanwhile"
        row.run("ROLLBACK")
        assert [order.result().json["strategy"] for order in orders] == ["select-for-update"] * 2
        assert switch.result().json["name"] == "optimistic"
    assert service.order(product).json["strategy"] == "optimistic"


def test_after_a_switch_no_order_of_the_old_strategy_follows(services, database):
    service = services.start(database, "--workers", "1")
    product = service.product()
    service.strategy("select-for-update", think_ms=150)
    orders = [Background(lambda: service.order(product)) for _ in range(6)]
    wait_until(lambda: number(database, "SELECT count(*) FROM order_item") >= 1, "the first is done")
    service.strategy("atomic-decrement", think_ms=0)
    old = "SELECT count(*) FROM order_item WHERE strategy = 'select-for-update'"
    when_answered = number(database, old)
    assert [order.result().status for order in orders] == [201] * 6
    assert number(database, old) == when_answered, "an order of the old strategy came after the answer"


def test_switching_all_the_time_loses_no_answer(services, database):
    """Whatever the strategy of the moment is, who is told 201 has an order; the audit says: mixed."""
    service = services.start(database, "--workers", "8")
    product = service.product(stock=100000)
    stop = threading.Event()
    load = Background(lambda: hammer([service], product, threads=8, stop=stop))
    try:
        for index in range(20):
            before = service.audit(product)["orders"]
            service.strategy(("mutex", "select-for-update", "optimistic")[index % 3])
            wait_until(lambda before=before: service.audit(product)["orders"] > before, "orders flow")
    finally:
        stop.set()
        told = load.result()
    audit = expect_books(service, product, told, 100000)
    assert audit["mixed"] is True, f"{audit}"
    assert set(audit["strategies"]) >= {"mutex", "select-for-update", "optimistic"}, f"{audit}"


def test_a_switch_that_is_refused_changes_nothing(services, database):
    """The order before it does not end in time: lock-busy, and the strategy is the old one."""
    wait_ms, think_ms = 1000, 10000
    service = services.start(
        database, "--order-timeout-ms", wait_ms, "--think-ms", think_ms, "--strategy", "select-for-update"
    )
    before = service.get("/strategy").json
    order = Background(lambda: service.order(1))
    thinking = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
    wait_until(lambda: number(database, thinking) == 1, "the order has read, and thinks for longer than a switch waits")
    reply = service.put("/strategy", {"name": "optimistic"})
    assert reply.problem == "lock-busy", str(reply)
    assert order.running and service.get("/strategy").json == before
    order.result()


def test_two_switches_at_once(services, database):
    service = services.start(database, "--workers", "4")
    names = ["mutex", "optimistic", "table-lock", "serializable"]
    replies = together(*[lambda name=name: service.strategy(name) for name in names])
    assert [reply["name"] for reply in replies] == names
    assert service.get("/strategy").json["name"] in names


def test_a_reset_waits_for_the_orders_of_its_product(services, database):
    service = services.start(database, "--workers", "4")
    product, other = service.product(stock=10), service.product(stock=10)
    service.strategy("select-for-update")
    kept = service.order(other).json["id"]
    with holding_row(database, product) as row:
        order = Background(lambda: service.order(product, 2))
        wait_until(lambda: waiting_backends(database) == 1, "an order waits for the row")
        reset = Background(lambda: service.post(f"/products/{product}/reset", {"stock": 7}))
        stays(lambda: reset.running, "the reset waits while an order runs")
        assert service.order(other).status == 201, "other products are sold meanwhile"
        row.run("ROLLBACK")
        assert order.result().status == 201
        assert reset.result().status == 200
    audit = service.audit(product)
    assert (audit["initial"], audit["left"], audit["orders"]) == (7, 7, 0), f"{audit}"
    assert service.get(f"/orders/{kept}").status == 200, "another product's orders stay"


def test_a_reset_in_the_middle_of_a_rush_leaves_balanced_books(services, database):
    service = services.start(database, "--workers", "8")
    for strategy in ("mutex", "atomic-decrement", "optimistic"):
        service.strategy(strategy)
        product = service.product(stock=100000)
        stop = threading.Event()
        load = Background(lambda product=product, stop=stop: hammer([service], product, threads=8, stop=stop))
        try:
            for _ in range(5):
                wait_until(lambda product=product: service.audit(product)["orders"] > 0, "orders flow")
                service.reset(product, 100000)
        finally:
            stop.set()
            load.result()
        audit = service.audit(product)
        assert (audit["drift"], audit["oversold"], audit["initial"]) == (0, 0, 100000), f"{strategy}: {audit}"


def test_a_reset_lowers_no_version_and_no_fence(shop):
    product = shop.product(stock=10)
    shop.order(product, 1, "optimistic")
    psql(
        shop.database_url,
        "UPDATE product SET version = 1000, fence_redis = 1001, fence_zookeeper = 1002,"
        f" fence_etcd = 1003 WHERE id = {product}",
    )
    read = f"SELECT version, fence_redis, fence_zookeeper, fence_etcd FROM product WHERE id = {product}"

    def fences():
        return [int(value) for value in psql(shop.database_url, read)[0]]

    for change in (
        lambda: shop.reset(product, 10),
        lambda: shop.order(product, 1, "read-write"),
        lambda: shop.put(f"/products/{product}", {"name": "x", "price": "1.00", "stock": 3}),
        lambda: shop.reset(product, 0, kind="counter"),
    ):
        before = fences()
        change()
        after = fences()
        assert after[1:] == [1001, 1002, 1003], f"fences {before[1:]} became {after[1:]}"
        assert after[0] > before[0], f"version {before[0]} became {after[0]}"


def test_a_reset_takes_no_lock_away(shop):
    """An order that waits behind a reset's own row lock is served after it, by the new stock."""
    product = shop.product(stock=0)
    with holding_row(shop.database_url, product) as row:
        reset = Background(lambda: shop.post(f"/products/{product}/reset", {"stock": 5}))
        wait_until(lambda: waiting_backends(shop.database_url) == 1, "the reset waits for the row")
        row.run("ROLLBACK")
        assert reset.result().status == 200
    order = shop.order(product, 5, "select-for-update")
    assert (order.status, order.json["stock_seen"]) == (201, 5)


def test_after_an_unsafe_strategy_a_reset_makes_the_books_right_again(services, database):
    service = services.start(database, "--workers", "16")
    product = service.product(stock=10)
    service.strategy("read-write", think_ms=10)
    hammer([service], product, most=60)
    assert service.audit(product)["oversold"] > 0
    service.strategy("atomic-decrement", think_ms=0)
    service.reset(product, 10)
    expect_balanced(service, product, hammer([service], product), 10)


@pytest.mark.long
def test_check_constraint_leaves_nothing_switched_on(shop):
    """Its CHECK is for its own orders; the next strategy of the product is as unprotected as it says."""
    product = shop.product(stock=1)
    assert shop.order(product, 1, "check-constraint").status == 201
    shop.reset(product, 5)
    assert psql(shop.database_url, f"SELECT refuse_negative FROM product WHERE id = {product}") == [["f"]]


@pytest.mark.long
def test_the_documents_bounds_are_those_of_the_service(shop):
    before = shop.get("/strategy").json
    try:
        for member, schema in (
            ("lock_ttl_ms", "LockTtl"),
            ("lock_wait_ms", "LockWait"),
            ("think_ms", "Think"),
            ("product_limit", "ProductLimit"),
        ):
            bounds = DOCUMENT.tree["components"]["schemas"][schema]
            for value in (bounds["minimum"], bounds["maximum"]):
                assert shop.strategy("mutex", **{member: value})[member] == value
            for value in (bounds["minimum"] - 1, bounds["maximum"] + 1):
                assert shop.put("/strategy", {"name": "mutex", member: value}).problem == "invalid-order"
    finally:
        shop.strategy(
            before["name"], **{name: before[name] for name in ("lock_wait_ms", "lock_ttl_ms", "think_ms", "product_limit")}
        )
