"""The books: what they say when all is well, and what they say of each way in which they can be wrong."""

import threading

import pytest

from basics import REPLY_S
from lab import Background, hammer, holding, number, psql, terminate_sessions, together, wait_until, waiting_backends


@pytest.mark.long
def test_a_product_that_was_never_sold(shop):
    product = shop.product(stock=7)
    audit = shop.audit(product)
    wanted = {
        "product_id": product,
        "initial": 7,
        "left": 7,
        "sold": 0,
        "orders": 0,
        "oversold": 0,
        "drift": 0,
        "negative": 0,
        "balanced": True,
        "mixed": False,
        "strategies": [],
        "in_flight": 0,
        "amount": "0",
        "amounts_wrong": 0,
        "witness": None,
    }
    assert {name: audit[name] for name in wanted} == wanted


def test_sold_counts_units_and_orders_count_orders(shop):
    product = shop.product(stock=10)
    for quantity in (1, 2, 3):
        shop.order(product, quantity)
    audit = shop.audit(product)
    assert (audit["orders"], audit["sold"], audit["left"], audit["balanced"]) == (3, 6, 4, True)
    assert (audit["amount"], audit["amounts_wrong"]) == ("119.40", 0), "6 units at 19.90"


def test_an_amount_that_is_not_price_times_quantity_is_counted(shop):
    product = shop.product(stock=10)
    orders = [shop.order(product, quantity).json["id"] for quantity in (1, 2, 3)]
    psql(shop.database_url, f"UPDATE orders SET amount = 19.90 WHERE id IN ({orders[1]}, {orders[2]})")
    audit = shop.audit(product)
    assert (audit["amount"], audit["amounts_wrong"], audit["balanced"]) == ("59.70", 2, True)


def test_the_product_id_may_be_left_out(shop):
    assert shop.get("/audit").json["product_id"] == 1


def test_one_strategy_is_not_mixed_two_are(shop):
    product = shop.product(stock=10)
    shop.order(product, 1, "mutex")
    shop.order(product, 1, "mutex")
    audit = shop.audit(product)
    assert (audit["mixed"], audit["strategies"]) == (False, ["mutex"])
    shop.order(product, 1, "select-for-update")
    audit = shop.audit(product)
    assert audit["mixed"] is True and sorted(audit["strategies"]) == ["mutex", "select-for-update"]
    assert audit["balanced"] is True, "mixed is a warning, not an error"
    shop.reset(product, 10)
    audit = shop.audit(product)
    assert (audit["mixed"], audit["strategies"]) == (False, [])


@pytest.mark.parametrize(
    "change, wanted",
    [
        ("count = count + 2", {"left": 9, "drift": 2, "oversold": 0, "negative": 0}),
        ("count = count - 2", {"left": 5, "drift": -2, "oversold": 0, "negative": 0}),
        ("count = -4", {"left": -4, "drift": -11, "oversold": 0, "negative": 4}),
        ("initial_count = 2", {"left": 7, "drift": 8, "oversold": 1, "negative": 0}),
    ],
)
def test_books_that_somebody_else_made_wrong(shop, change, wanted):
    """Ten units, three of them sold, and then a hand in the till."""
    product = shop.product(stock=10)
    shop.order(product, 3)
    psql(shop.database_url, f"UPDATE product SET {change} WHERE id = {product}")
    audit = shop.audit(product)
    assert {name: audit[name] for name in wanted} == wanted, f"{audit}"
    assert audit["balanced"] is False and audit["witness"] is None, f"{audit}"


def test_a_lost_update_by_hand(services, database):
    """Two orders in step: both read 5, both write 3; the books and the witness say exactly that."""
    service = services.start(database, "--workers", "4")
    product = service.product(stock=5)
    service.strategy("read-write", think_ms=300)
    one, two = (reply.json for reply in together(*[lambda: service.order(product, 2)] * 2))
    assert (one["stock_seen"], two["stock_seen"]) == (5, 5)
    audit = service.audit(product)
    wanted = {
        "initial": 5,
        "left": 3,
        "sold": 4,
        "orders": 2,
        "oversold": 0,
        "drift": 2,
        "negative": 0,
        "balanced": False,
        "strategies": ["read-write"],
        "witness": {"stock_seen": 5, "orders": sorted([one["id"], two["id"]])},
    }
    assert {name: audit[name] for name in wanted} == wanted


def test_a_negative_stock_by_hand(services, database):
    """Two orders in step under decrement: both find 3, both take 2."""
    service = services.start(database, "--workers", "4")
    product = service.product(stock=3)
    service.strategy("decrement", think_ms=300)
    one, two = (reply.json for reply in together(*[lambda: service.order(product, 2)] * 2))
    audit = service.audit(product)
    wanted = {
        "initial": 3,
        "left": -1,
        "sold": 4,
        "oversold": 1,
        "drift": 0,
        "negative": 1,
        "balanced": False,
        "witness": {"stock_seen": 3, "orders": sorted([one["id"], two["id"]])},
    }
    assert {name: audit[name] for name in wanted} == wanted


def test_orders_one_after_the_other_are_no_witness(services, database):
    """Under an unsafe strategy, but never at the same time: nothing happened, so nothing is shown."""
    service = services.start(database, "--strategy", "read-write")
    product = service.product(stock=5)
    for _ in range(4):
        service.order(product)
    audit = service.audit(product)
    assert (audit["balanced"], audit["witness"], audit["left"]) == (True, None, 1)


def test_a_crash_between_two_transactions_loses_units(services, database):
    """reentrant-mutex commits the stock, then the order. What is killed in between has lost its units."""
    service = services.start(database, "--workers", "2", "--strategy", "reentrant-mutex")
    product = service.product(stock=10)
    assert service.order(product, 2).status == 201
    with holding(database, "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE") as table:
        order = Background(lambda: service.order(product, 3))
        wait_until(
            lambda: waiting_backends(database) == 1, "the second transaction waits for the table of orders"
        )
        assert (
            number(database, f"SELECT count FROM product WHERE id = {product}") == 5
        ), "the first is committed"
        service.kill()
        terminate_sessions(database, "wait_event_type = 'Lock'")
        table.run("ROLLBACK")
        order.thread.join(timeout=REPLY_S)
    survivor = services.start(database)
    audit = survivor.audit(product)
    wanted = {
        "initial": 10,
        "left": 5,
        "sold": 2,
        "orders": 1,
        "oversold": 0,
        "drift": -3,
        "negative": 0,
        "balanced": False,
    }
    assert {name: audit[name] for name in wanted} == wanted, f"{audit}"


def test_a_failure_between_two_transactions_loses_nothing(shop):
    """The second transaction cannot get its lock: only a crash loses units, a failure gives them back."""
    before = shop.get("/strategy").json
    try:
        for strategy in ("reentrant-mutex", "mutex"):
            product = shop.product(stock=10)
            shop.strategy(strategy, lock_wait_ms=300)
            with holding(shop.database_url, "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE"):
                reply = shop.order(product, 3)
            assert reply.problem == "lock-busy", f"{strategy}: {reply}"
            audit = shop.audit(product)
            assert (audit["drift"], audit["sold"], audit["balanced"]) == (0, 0, True), f"{strategy}: {audit}"
    finally:
        shop.strategy(before["name"], lock_wait_ms=before["lock_wait_ms"])


def test_orders_in_flight_are_counted(services, database):
    service = services.start(
        database, "--workers", "8", "--strategy", "select-for-update"
    )
    product, other = service.product(), service.product()
    with holding(database, f"SELECT 1 FROM product WHERE id = {product} FOR UPDATE") as row:
        orders = [Background(lambda: service.order(product)) for _ in range(3)]
        wait_until(lambda: service.audit(product)["in_flight"] == 3, "three orders are in flight")
        assert service.audit(other)["in_flight"] == 0
        row.run("ROLLBACK")
        assert [order.result().status for order in orders] == [201] * 3
    wait_until(lambda: service.audit(product)["in_flight"] == 0, "none is")


@pytest.mark.long
def test_an_audit_of_many_orders_is_quick(shop):
    """A witness is searched for within bounds: thousands of orders on one stock seen, in a moment."""
    product = shop.product(stock=5)
    psql(
        shop.database_url,
        "WITH o AS (INSERT INTO orders (amount, created_by, updated_by)"
        " SELECT 1, 'test', 'test' FROM generate_series(1, 20000) RETURNING id)"
        " INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, stock_seen, strategy,"
        " instance, read_snapshot, stock_xid, created_by, updated_by)"
        f" SELECT id, {product}, 1, 1, 5, 'test', 'test',"
        " pg_current_snapshot(), pg_current_xact_id(), 'test', 'test' FROM o",
    )
    replies = [shop.get(f"/audit?product_id={product}") for _ in range(3)]
    assert [reply.json["oversold"] for reply in replies] == [19995] * 3
    assert min(reply.seconds for reply in replies) < 100, f"{[reply.seconds for reply in replies]}"


def test_the_audit_is_of_one_moment(shop):
    """While safe orders rush, no audit ever sees stock and orders disagree."""
    product = shop.product(stock=100000)
    stop = threading.Event()
    load = Background(lambda: hammer([shop], product, threads=8, stop=stop))
    audits = []

    def orders_flowed():
        audits.append(shop.audit(product))
        return len(audits) >= 60 and len({audit["orders"] for audit in audits}) > 3

    try:
        wait_until(orders_flowed, what="orders flowed between the audits")
    finally:
        stop.set()
        load.result()
    assert [audit for audit in audits if audit["drift"] != 0 or not audit["balanced"]] == []
