"""Orders that wait in the admission queue: combined into one transaction (batched), or a few at a time
(product_limit)."""

import itertools
import signal
import threading
import time

import pytest

from crowd import Crowd, expect_all_busy, held, in_line, metric, told, transactions  # noqa: F401  "held" is a fixture
from lab import (
    Background,
    at_any_speed,
    expect_balanced,
    hammer,
    holding_row,
    number,
    psql,
    stays,
    terminate_sessions,
    together,
    wait_until,
    waiting_backends,
)


# ── combining ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("workers", [1, 8])
def test_who_waits_is_combined(held, workers):
    """One alone, then all who have come meanwhile; also where there is but one worker."""
    service, product, crowd, row = held("--workers", workers)
    for _ in range(60):
        crowd.send(product)
    wait_until(lambda: in_line(service) == 60, "all others are in line")
    assert service.audit(product)["in_flight"] == 61, "those in line count"
    row.run("ROLLBACK")
    replies = crowd.replies()
    expect_balanced(service, product, told(replies), 1000)
    assert transactions(service, product) == [1, 60]
    assert metric(service, "oversell_batches_total") == 2
    assert metric(service, "oversell_batch_orders_total") == 61


def test_first_come_first_served_and_no_batch_without_end(held):
    """Two hundred in the order of their arrival, 128 at a time."""
    service, product, crowd, row = held()
    for _ in range(200):
        crowd.send_in_line(product)
    row.run("ROLLBACK")
    replies = crowd.replies()
    ids = [reply.json["id"] for reply in replies]
    assert ids == sorted(ids), "somebody has overtaken"
    assert [reply.json["stock_seen"] for reply in replies] == list(range(1000, 799, -1))
    assert transactions(service, product) == [1, 128, 72]


def test_one_alone_is_one_transaction(services, database):
    service = services.start(database, "--strategy", "batched", "--workers", 1)
    product = service.product()
    service.order(product)  # which connects
    trips = metric(service, "oversell_db_round_trips_total")
    for _ in range(5):
        assert service.order(product).status == 201
    assert transactions(service, product) == [1] * 6
    assert metric(service, "oversell_db_round_trips_total") - trips == 15, "lock, insert, commit"
    assert metric(service, "oversell_batches_total") == metric(service, "oversell_batch_orders_total") == 6


def test_a_crowd_sells_exactly_the_stock(shop):
    """Two hundred and forty at the same moment, one to three units each."""
    product = shop.product(stock=150)
    with Crowd(shop) as crowd:
        for quantity in itertools.islice(itertools.cycle((1, 2, 3)), 240):
            crowd.send(product, quantity, strategy="batched")
        load = told(crowd.replies())
    assert set(load.outcomes) == {"created", "sold-out"}, f"{load.outcomes}"
    audit = expect_balanced(shop, product, load, 150)
    assert audit["sold"] == 150, f"{audit}"


def test_who_does_not_fit_is_sold_out_and_the_smaller_one_behind_is_served(held):
    service, product, crowd, row = held(stock=6)
    for quantity in (2, 4, 3, 1):
        crowd.send_in_line(product, quantity=quantity)
    row.run("ROLLBACK")
    replies = crowd.replies()
    assert [reply.problem or reply.json["stock_seen"] for reply in replies] == [
        6,
        5,
        "sold-out",
        3,
        "sold-out",
    ]
    assert [reply.json["available"] for reply in replies if reply.problem] == [3, 0]
    expect_balanced(service, product, told(replies), 6)


def test_two_processes_side_by_side(pair):
    product = pair[0].product(stock=300)
    load = hammer(pair, product, threads=32, strategy="batched", quantities=(1, 2, 3))
    audit = expect_balanced(pair[1], product, load, 300)
    assert audit["sold"] == 300, f"{audit}"


def test_different_products_do_not_wait_for_each_other(held):
    service, product, crowd, row = held("--workers", 2)
    for _ in range(20):
        crowd.send(product)
    wait_until(lambda: in_line(service) == 20, "they are in line")
    other = service.product()
    assert service.order(other).status == 201
    row.run("ROLLBACK")
    assert set(crowd.outcomes()) == {"created"}


def test_a_line_without_end_leaves_the_worker_to_others(services, database):
    """One worker, and a product whose line is never empty: orders of another one get their turn."""
    service = services.start(database, "--workers", 1, "--strategy", "batched")
    hot, other = service.product(stock=10**9), service.product(stock=10**9)
    load = Background(lambda: hammer([service], hot, threads=16, most=3000))
    wait_until(lambda: service.audit(hot)["orders"] > 50, "orders flow")
    served = 0
    while load.running:
        assert service.order(other).status == 201
        served += 1
    assert served > 3, f"{served} orders of the other product while 3000 were placed"
    expect_balanced(service, hot, load.result(), 10**9)


# ── what befalls one is not the others' ─────────────────────────────────────────────────────────────────────


def test_an_order_that_the_database_refuses(held):
    """The others of its batch are served all the same."""
    service, product, crowd, row = held()
    psql(service.database_url, "ALTER TABLE orders ADD CHECK (receiver_name <> 'refused')")
    for name in ("Ada", "refused", "Bob", "Eve"):
        crowd.send_in_line(product, receiver_name=name)
    row.run("ROLLBACK")
    replies = crowd.replies()
    assert [reply.status for reply in replies] == [201, 201, 500, 201, 201]
    expect_balanced(service, product, told(replies), 1000)


def test_keys_in_a_batch(held):
    service, product, crowd, row = held()
    elsewhere = service.product()
    first = service.order(elsewhere, key="first")
    crowd.send_in_line(product, key="twice")
    crowd.send_in_line(product, key="twice")
    crowd.send_in_line(product, key="first")
    crowd.send_in_line(product, key="other")
    row.run("ROLLBACK")
    assert crowd.outcomes() == [
        "created",
        "created",
        "idempotency-in-progress",
        "idempotency-mismatch",
        "created",
    ]
    assert service.order(elsewhere, key="first").json == first.json
    assert service.order(product, key="twice").header("Idempotency-Replayed") == "true"
    assert service.audit(product)["orders"] == 3


def test_a_replay_in_a_batch(held):
    service, product, crowd, row = held()
    row.run("ROLLBACK")
    first = service.order(product, 2, key='a,b{"c\\d')
    with holding_row(service.database_url, product) as again:
        crowd.send(product)
        wait_until(lambda: waiting_backends(service.database_url) == 1, "an order waits for the row")
        crowd.send_in_line(product, quantity=2, key='a,b{"c\\d')
        crowd.send_in_line(product, receiver_name='{NULL,"x"\\', receiver_mobile="NULL")
        crowd.send_in_line(product)
        again.run("ROLLBACK")
        replies = crowd.replies()
    assert [reply.header("Idempotency-Replayed") for reply in replies] == [None, None, "true", None, None]
    assert replies[2].json == first.json
    stored = psql(
        service.database_url,
        f"SELECT receiver_name, receiver_mobile FROM orders WHERE id = {replies[3].json['id']}",
    )
    assert stored == [['{NULL,"x"\\', "NULL"]]
    none = f"SELECT count(*) FROM orders WHERE id = {replies[4].json['id']} AND receiver_name IS NULL"
    assert number(service.database_url, none) == 1


def test_one_key_from_many_sides(pair):
    """Whoever is not told the order is told that it is in progress; the books have one."""
    product = pair[0].product(stock=10)
    replies = together(
        *[lambda service=pair[i % 2]: service.order(product, 1, "batched", key="sides") for i in range(32)]
    )
    orders = [reply for reply in replies if reply.status == 201]
    assert {reply.problem for reply in replies if reply.status != 201} <= {"idempotency-in-progress"}
    assert len({order.json["id"] for order in orders}) == 1
    assert sum(order.header("Idempotency-Replayed") is None for order in orders) == 1
    assert pair[0].audit(product)["orders"] == 1


# ── waits ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_row_that_stays_locked_is_busy_for_all(held):
    service, product, crowd, row = held("--lock-wait-ms", 700, first=0)  # whose wait may be over before it is seen
    expect_all_busy(service, product, crowd, row, seconds=0.7)


@pytest.mark.long
def test_a_wait_is_the_orders_own(held):
    """Who came later waits on where the first one's wait is over."""

    def two_come_later(scale):
        service, product, crowd, row = held("--lock-wait-ms", 4000 * scale)
        time.sleep(1.5 * scale)
        crowd.send_in_line(product)
        crowd.send_in_line(product)
        assert crowd.wires[0].reply().problem == "lock-busy"
        row.run("ROLLBACK")
        assert [wire.reply().status for wire in crowd.wires[1:]] == [201, 201]

    at_any_speed(two_come_later, (1, 4, 15))


@pytest.mark.parametrize("strategy, limit", [("batched", 0), ("select-for-update", 1)])
def test_a_line_has_a_bound(held, strategy, limit):
    service, product, crowd, row = held("--queue", 5, "--product-limit", limit, strategy=strategy)
    for _ in range(5):
        crowd.send_in_line(product)
    refused = service.order(product)
    assert refused.problem == "overloaded", str(refused)
    assert int(refused.header("Retry-After")) >= 1
    row.run("ROLLBACK")
    assert set(crowd.outcomes()) == {"created"}
    assert service.order(product).status == 201, "there is room again"


def test_a_full_queue_of_other_products(held):
    """All products together have twice the bound of one, so no product fills the queue for the others."""
    service, product, crowd, row = held("--queue", 1, "--workers", 1)
    others = [service.product() for _ in range(3)]
    for other in others:
        crowd.send(other)
    wait_until(lambda: metric(service, "oversell_queue_depth") == 2, "the queue is full")
    assert crowd.wires[3].reply().problem == "overloaded", "the third of two"
    row.run("ROLLBACK")
    assert [wire.reply().status for wire in crowd.wires[:3]] == [201] * 3
    assert service.order(others[2]).status == 201, "there is room again"


def test_a_reset_comes_before_those_in_line(held):
    """The reset waits for the order that is being placed. The waiting orders are placed after it, in the new sale."""
    service, product, crowd, row = held()
    for _ in range(10):
        crowd.send_in_line(product)
    reset = Background(lambda: service.reset(product, 50))
    stays(lambda: reset.running, "an order is being placed")
    row.run("ROLLBACK")
    reset.result()
    assert set(crowd.outcomes()) == {"created"}
    audit = service.audit(product)
    assert (audit["orders"], audit["left"], audit["balanced"]) == (10, 40, True), f"{audit}"


def test_a_switch_comes_before_those_in_line(held):
    """Waiting orders are placed under the strategy that is set when a worker takes them."""
    service, product, crowd, row = held()
    for _ in range(10):
        crowd.send_in_line(product)
    crowd.send_in_line(product, strategy="batched")
    switch = Background(lambda: service.put("/strategy", {"name": "select-for-update"}))
    stays(lambda: switch.running, "an order is being placed", 0.3)
    row.run("ROLLBACK")
    assert switch.result().status == 200
    strategies = [reply.json["strategy"] for reply in crowd.replies()]
    assert strategies == ["batched"] + ["select-for-update"] * 10 + ["batched"], "the last one asked for its own"


# ── ends ────────────────────────────────────────────────────────────────────────────────────────────────────


def end_waiting_backend(url):
    terminate_sessions(url, "wait_event_type = 'Lock'")


def test_a_batch_whose_connection_breaks(held):
    """The first alone, then a batch of nine, lose their connection while they wait for the row; nothing was sold."""
    service, product, crowd, row = held()
    url = service.database_url
    for _ in range(9):
        crowd.send_in_line(product)
    end_waiting_backend(url)
    assert crowd.wires[0].reply().problem == "backend-unavailable"
    wait_until(lambda: in_line(service) == 0 and waiting_backends(url) == 1, "the others have the turn")
    end_waiting_backend(url)
    assert {wire.reply().problem for wire in crowd.wires[1:]} == {"backend-unavailable"}
    row.run("ROLLBACK")
    assert service.order(product).status == 201
    audit = service.audit(product)
    assert (audit["orders"], audit["balanced"]) == (1, True), f"{audit}"


@pytest.mark.long
def test_connections_that_break_under_load(services, database):
    """Whoever was told of an order has it; nobody else has one. (With an event, clients go on whatever they are told.)"""
    service = services.start(database, "--strategy", "batched", "--workers", 4)
    product = service.product(stock=100000)
    stop = threading.Event()
    load = Background(lambda: hammer([service], product, threads=24, stop=stop))
    for _ in range(8):
        before = number(database, "SELECT count(*) FROM order_item")
        wait_until(lambda before=before: number(database, "SELECT count(*) FROM order_item") > before, "orders flow")
        terminate_sessions(database, "application_name LIKE 'oversell orders%'")
    stop.set()
    loaded = load.result()
    assert set(loaded.outcomes) <= {"created", "backend-unavailable", "lock-busy"}, f"{loaded.outcomes}"
    assert loaded.outcomes["backend-unavailable"] > 0, "nothing was broken"
    expect_balanced(service, product, loaded, 100000)


def test_a_line_is_drained(held):
    """SIGTERM: all who are in line are served before the process ends."""
    service, product, crowd, row = held("--workers", 2)
    for _ in range(150):
        crowd.send(product)
    wait_until(lambda: in_line(service) == 150, "they are in line")
    service.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "draining" in service.log, "it drains")
    row.run("ROLLBACK")
    assert set(crowd.outcomes()) == {"created"}
    service.stop()
    sold = number(
        service.database_url, f"SELECT sum(purchase_num) FROM order_item WHERE product_id = {product}"
    )
    assert sold == 151


# ── a limit of orders at a product ──────────────────────────────────────────────────────────────────────────


def test_a_limit_is_kept_in_the_order_of_arrival(held):
    service, product, crowd, row = held("--product-limit", 2, "--workers", 3, strategy="select-for-update", first=2)
    url = service.database_url
    for _ in range(12):
        crowd.send_in_line(product)
    assert waiting_backends(url) == 2, "two have the turn"
    other = service.product()
    assert service.order(other).status == 201, "other products have their own turns"
    row.run("ROLLBACK")
    replies = crowd.replies()
    expect_balanced(service, product, told(replies), 1000)
    arrival = {reply.json["id"]: place for place, reply in enumerate(replies)}
    taken = {}  # by each worker, which goes on with whoever is the first in line
    for trace in sorted(service.get("/traces?limit=100").json["traces"], key=lambda trace: trace["started_us"]):
        if trace["order_id"] in arrival:
            taken.setdefault(trace["worker"], []).append(arrival[trace["order_id"]])
    assert sorted(sum(taken.values(), [])) == sorted(arrival.values())
    for places in taken.values():
        assert places == sorted(places), f"first come, first served: {taken}"


def test_a_limit_under_load(services, database):
    """Never more than two of a product in the database, however many come; and nobody is refused."""
    service = services.start(
        database, "--product-limit", 2, "--strategy", "select-for-update", "--workers", 8, "--lock-wait-ms", 60000, "--order-timeout-ms", 60000
    )
    product = service.product(stock=200)

    def active():
        return number(
            database,
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name LIKE 'oversell orders%' AND state <> 'idle'",
        )

    with holding_row(database, product) as row:
        load = Background(lambda: hammer([service], product, threads=24))
        wait_until(lambda: active() == 2, "as many as may are in the database")
        row.run("ROLLBACK")
    most = 2
    while load.running:
        most = max(most, active())
    assert most == 2, f"{most} were in the database at once"
    told_of = load.result()
    assert set(told_of.outcomes) == {"created", "sold-out"}, f"{told_of.outcomes}"
    expect_balanced(service, product, told_of, 200)


def test_without_a_limit_there_is_none(held):
    service, _, crowd, row = held("--in-turn=no", strategy="select-for-update", first=8)
    assert service.get("/strategy").json["product_limit"] == 0
    row.run("ROLLBACK")
    assert set(crowd.outcomes()) == {"created"}


def test_a_limit_is_set_and_stays(services, database):
    service = services.start(database, "--product-limit", 3)
    assert service.get("/strategy").json["product_limit"] == 3
    assert service.strategy("mutex")["product_limit"] == 3, "what is not named stays"
    assert service.strategy("mutex", product_limit=1)["product_limit"] == 1
    assert service.get("/strategy").json["product_limit"] == 1
    product = service.product(stock=20)
    expect_balanced(service, product, hammer([service], product, threads=8), 20)
    assert service.strategy("mutex", product_limit=0)["product_limit"] == 0
