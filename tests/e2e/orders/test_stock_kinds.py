"""Kinds of stock: a counter, a row for each unit, buckets. Set by a reset, taken by the strategies of that kind."""

import threading
import time

import pytest

from lab import (
    Background,
    SOON_S,
    ROOT,
    expect_balanced,
    hammer,
    holding,
    number,
    psql,
    wait_until,
    waiting_backends,
)
from length import short_only
from promises import FEW_ARE_SHORT, STRATEGIES

SELLER = {"counter": "atomic-decrement", "units": "skip-locked", "buckets": "bucketed"}  # of each kind one
BUCKETS = 16


def rows_of(shop, product):
    """How many rows of each table hold the product's stock."""
    return {
        "units": number(shop.database_url, f"SELECT count(*) FROM product_unit WHERE product_id = {product}"),
        "buckets": number(
            shop.database_url, f"SELECT count(*) FROM product_bucket WHERE product_id = {product}"
        ),
    }


# ── setting the kind ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("old", SELLER)
@pytest.mark.parametrize("new", SELLER)
def test_from_any_kind_to_any_kind(shop, old, new):
    product = shop.product(stock=20, kind=old)
    assert shop.order(product, 3, SELLER[old]).status == 201
    read = shop.get(f"/products/{product}").json
    assert (read["stock"], read["initial"], read["kind"]) == (17, 20, old)
    assert shop.reset(product, 35, kind=new)["kind"] == new
    read = shop.get(f"/products/{product}").json
    assert (read["stock"], read["initial"], read["kind"]) == (35, 35, new)
    assert read in shop.get("/products").json["products"]
    wanted = {"units": 35 if new == "units" else 0, "buckets": BUCKETS if new == "buckets" else 0}
    assert rows_of(shop, product) == wanted, "nothing of the kind before is left"
    assert shop.order(product, 5, SELLER[new]).status == 201
    audit = shop.audit(product)
    told = {name: audit[name] for name in ("kind", "initial", "left", "sold", "orders", "drift", "balanced")}
    assert told == {
        "kind": new,
        "initial": 35,
        "left": 30,
        "sold": 5,
        "orders": 1,
        "drift": 0,
        "balanced": True,
    }


@pytest.mark.parametrize("old", SELLER)
@pytest.mark.parametrize("new", SELLER)
def test_a_replaced_product_keeps_its_orders_in_any_kind(shop, old, new):
    product = shop.product(stock=20, kind=old)
    shop.order(product, 3, SELLER[old])
    body = {"name": "Tee", "price": "1", "stock": 6, "kind": new}
    reply = shop.put(f"/products/{product}", body)
    assert (reply.status, reply.json["kind"], reply.json["stock"], reply.json["initial"]) == (200, new, 6, 9)
    assert shop.order(product, 6, SELLER[new]).status == 201
    audit = shop.audit(product)
    assert (audit["left"], audit["sold"], audit["drift"], audit["balanced"]) == (0, 9, 0, True), f"{audit}"


def test_the_counter_is_what_is_not_said(shop):
    product = shop.product(stock=5, kind="units")
    assert shop.reset(product, 5)["kind"] == "counter"
    shop.reset(product, 5, kind="buckets")
    reply = shop.put(f"/products/{product}", {"name": "Tee", "price": "1", "stock": 5})
    assert (reply.json["kind"], rows_of(shop, product)) == ("counter", {"units": 0, "buckets": 0})


@pytest.mark.parametrize("kind", SELLER)
def test_a_stock_of_nothing(shop, kind):
    product = shop.product(stock=0, kind=kind)
    reply = shop.order(product, 1, SELLER[kind])
    assert (reply.problem, reply.json["available"]) == ("sold-out", 0), str(reply)
    assert shop.audit(product)["balanced"] is True


def test_units_have_a_limit(shop):
    product = shop.product(stock=5, kind="units")
    for call in (
        lambda: shop.post(f"/products/{product}/reset", {"stock": 100001, "kind": "units"}),
        lambda: shop.put(
            f"/products/{product}", {"name": "n", "price": "1", "stock": 100001, "kind": "units"}
        ),
    ):
        reply = call()
        assert (reply.problem, reply.json["member"]) == ("invalid-order", "stock"), str(reply)
        assert "100000" in reply.json["detail"], str(reply)
        assert shop.get(f"/products/{product}").json["stock"] == 5
    assert shop.reset(product, 100000, kind="units")["stock"] == 100000
    assert shop.order(product, 99999, "skip-locked").status == 201
    reply = shop.order(product, 1000000, "skip-locked")
    assert (reply.problem, reply.json["available"]) == ("sold-out", 1), str(reply)
    assert shop.reset(product, 100001, kind="buckets")["stock"] == 100001


def test_a_small_stock_and_then_a_large_one(services, database):
    """The plan that PostgreSQL has kept from the small one must not read the large one row by row."""
    service = services.start(database, "--workers", "1", "--strategy", "skip-locked")
    product = service.product(stock=50, kind="units")
    psql(database, "ANALYZE")
    assert [service.order(product).status for _ in range(12)] == [201] * 12
    service.reset(product, 20000, kind="units")
    read = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'product_unit'"
    time.sleep(1.2)  # sessions report what they did once a second at most
    service.get("/healthz")
    before = number(database, read)
    assert [service.order(product).status for _ in range(12)] == [201] * 12
    time.sleep(1.2)
    assert service.order(product).status == 201
    assert number(database, read) - before < 20000, "orders have read the table from its beginning"


# ── the strategy's kind ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strategy", FEW_ARE_SHORT)
def test_stock_of_another_kind(shop, strategy):
    own = shop.kind(strategy)
    product = shop.product(stock=5)
    for kind in sorted(set(SELLER) - {own}) + [own]:
        shop.reset(product, 5, kind=kind)
        reply = shop.order(product, 1, strategy)
        if kind == own:
            assert reply.status == 201, str(reply)
            continue
        assert (reply.problem, reply.json["kind"]) == ("wrong-stock-kind", kind), str(reply)
        audit = shop.audit(product)
        assert (audit["orders"], audit["left"], audit["balanced"]) == (0, 5, True), f"{audit}"
    assert shop.audit(product)["left"] == 4


def test_what_each_strategy_sells(shop):
    kinds = {row["name"]: row["stock_kind"] for row in shop.get("/strategies").json["strategies"]}
    others = {name: kind for name, kind in kinds.items() if kind != "counter" and name in STRATEGIES}
    assert others == {"skip-locked": "units", "bucketed": "buckets"}


def test_a_switch_of_the_kind_while_orders_run(pair):
    """Orders of every kind from two processes, and resets between: at every moment the books are right."""
    one, two = pair
    product = one.product(stock=5000)
    stop = threading.Event()
    loads = [
        Background(lambda strategy=strategy: hammer(pair, product, threads=3, strategy=strategy, stop=stop))
        for strategy in SELLER.values()
    ]
    try:
        for kind in ["units", "buckets", "counter"] * 3:
            one.reset(product, 5000, kind=kind)
            before = two.audit(product)["sold"]
            wait_until(lambda: two.audit(product)["sold"] > before + 5, f"{kind} are sold")
            audit = two.audit(product)
            assert (audit["kind"], audit["drift"], audit["balanced"]) == (kind, 0, True), f"{audit}"
            assert audit["strategies"] == [SELLER[kind]], f"{audit}"
    finally:
        stop.set()
        told = [load.result() for load in loads]
    for load in told:
        allowed = {"created", "wrong-stock-kind", "lock-busy", "conflict"}
        assert set(load.outcomes) <= allowed, f"{load.outcomes}"
        assert load.outcomes["created"] and load.outcomes["wrong-stock-kind"], f"{load.outcomes}"
    audit = two.audit(product)
    assert (audit["drift"], audit["balanced"], audit["in_flight"]) == (0, True, 0), f"{audit}"


# ── their books ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "kind, change, wanted",
    [
        ("units", "DELETE FROM product_unit WHERE no >= 9 AND product_id = {}", {"left": 5, "drift": -2}),
        ("units", "INSERT INTO product_unit VALUES ({}, 99)", {"left": 8, "drift": 1}),
        ("buckets", "UPDATE product_bucket SET count = 3 WHERE no = 15 AND product_id = {}", {"drift": 3}),
        ("units", "UPDATE product SET initial_count = 2 WHERE id = {}", {"oversold": 1, "left": 7}),
        ("buckets", "UPDATE product SET initial_count = 2 WHERE id = {}", {"oversold": 1, "left": 7}),
        ("units", "UPDATE product SET count = 3 WHERE id = {}", {"left": 7, "drift": 0}),
    ],
)
def test_books_that_somebody_else_made_wrong(shop, kind, change, wanted):
    """Ten units, three of them sold, and then a hand in the till; the counter is none of theirs."""
    product = shop.product(stock=10, kind=kind)
    assert shop.order(product, 3, SELLER[kind]).status == 201
    psql(shop.database_url, change.format(product))
    audit = shop.audit(product)
    assert {name: audit[name] for name in wanted} == wanted, f"{audit}"
    assert audit["balanced"] is (audit["drift"] == 0 and audit["oversold"] == 0), f"{audit}"
    assert (audit["negative"], audit["witness"]) == (0, None), f"{audit}"


# ── units ───────────────────────────────────────────────────────────────────────────────────────────────────


def holding_units(shop, product, most):
    """Holds units 1 to MOST as an order does that has not been committed."""
    return holding(
        shop.database_url,
        f"SELECT FROM product_unit WHERE product_id = {product} AND no <= {most} FOR UPDATE",
    )


def test_held_units_are_busy_and_not_sold_out(shop):
    """Three units, of which somebody holds two."""
    product = shop.product(stock=3, kind="units")
    with holding_units(shop, product, 2) as others:
        start = time.monotonic()
        assert shop.order(product, 2, "skip-locked").problem == "lock-busy", "one free, three left"
        reply = shop.order(product, 4, "skip-locked")
        assert (reply.problem, reply.json["available"]) == ("sold-out", 3), str(reply)
        assert shop.order(product, 1, "skip-locked").status == 201, "the third"
        assert shop.order(product, 1, "skip-locked").problem == "lock-busy", "none free, two left"
        assert shop.order(product, 2, "skip-locked").problem == "lock-busy"
        reply = shop.order(product, 3, "skip-locked")
        assert (reply.problem, reply.json["available"]) == ("sold-out", 2), str(reply)
        assert time.monotonic() - start < SOON_S, "nobody has waited"
        others.run("ROLLBACK")
    assert shop.order(product, 2, "skip-locked").status == 201, "they were set free"
    audit = shop.audit(product)
    assert (audit["orders"], audit["sold"], audit["left"], audit["balanced"]) == (2, 3, 0, True), f"{audit}"


def test_held_units_that_are_sold_are_sold_out(shop):
    product = shop.product(stock=2, kind="units")
    with holding_units(shop, product, 2) as others:
        assert shop.order(product, 1, "skip-locked").problem == "lock-busy"
        others.run(f"DELETE FROM product_unit WHERE product_id = {product}")
        assert shop.order(product, 1, "skip-locked").problem == "lock-busy", "not before they are committed"
        others.run("COMMIT")
        assert shop.order(product, 1, "skip-locked").problem == "sold-out"


def test_two_orders_for_the_last_units(services, database):
    """Two orders for two of three units, the first not yet committed: the second is told the truth of the moment."""
    service = services.start(database, "--workers", "4", "--strategy", "skip-locked")
    product = service.product(stock=3, kind="units")
    with holding(database, "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE") as table:
        first = Background(lambda: service.order(product, 2))
        wait_until(lambda: waiting_backends(database) == 1, "the first has its units and waits to insert")
        assert service.order(product, 2).problem == "lock-busy", "three are left, and one of them is free"
        table.run("ROLLBACK")
        assert first.result().status == 201
    reply = service.order(product, 2)
    assert (reply.problem, reply.json["available"]) == ("sold-out", 1), str(reply)


# ── buckets ─────────────────────────────────────────────────────────────────────────────────────────────────


def fill_buckets(shop, product, *counts):
    """The first buckets of the product as COUNTS say, the others empty."""
    psql(
        shop.database_url,
        f"UPDATE product_bucket SET count = coalesce((ARRAY{list(counts)})[no + 1], 0) WHERE product_id = {product}",
    )


def buckets_of(shop, product):
    return [
        int(row[0])
        for row in psql(
            shop.database_url, f"SELECT count FROM product_bucket WHERE product_id = {product} ORDER BY no"
        )
    ]


@pytest.mark.parametrize("stock", [0, 1, 15, 16, 17, 1000, 1000000000000])
def test_a_stock_is_split_evenly(shop, stock):
    product = shop.product(stock=stock, kind="buckets")
    counts = buckets_of(shop, product)
    assert (len(counts), sum(counts)) == (BUCKETS, stock)
    assert max(counts) - min(counts) <= 1


def test_one_bucket_that_has_enough_is_enough(shop):
    product = shop.product(stock=10, kind="buckets")
    fill_buckets(shop, product, 1, 1, 5, 1, 2)
    order = shop.order(product, 4, "bucketed")
    assert (order.status, order.json["stock_seen"]) == (201, None), str(order)
    assert buckets_of(shop, product)[:5] == [1, 1, 1, 1, 2]


def test_several_buckets_are_taken_in_their_order_or_none_is(shop):
    product = shop.product(stock=10, kind="buckets")
    fill_buckets(shop, product, 1, 0, 3, 3, 3)
    order = shop.order(product, 6, "bucketed")
    assert (order.status, order.json["stock_seen"]) == (201, 10), str(order)
    assert buckets_of(shop, product)[:5] == [0, 0, 0, 1, 3]
    reply = shop.order(product, 5, "bucketed")
    assert (reply.problem, reply.json["available"]) == ("sold-out", 4), str(reply)
    assert buckets_of(shop, product)[:5] == [0, 0, 0, 1, 3]
    assert shop.order(product, 4, "bucketed").status == 201
    audit = shop.audit(product)
    assert (audit["left"], audit["sold"], audit["balanced"]) == (0, 10, True), f"{audit}"


def test_all_buckets_are_used(shop):
    """Sixteen orders choose among sixteen: all would choose the same one once in 10^18 runs."""
    product = shop.product(stock=1600, kind="buckets")
    for _ in range(16):
        shop.order(product, 1, "bucketed")
    assert len([count for count in buckets_of(shop, product) if count < 100]) > 1


def holding_bucket(shop, product, no):
    return holding(
        shop.database_url,
        f"UPDATE product_bucket SET count = 0 WHERE product_id = {product} AND no = {no}",
    )


def test_an_order_waits_for_its_bucket_alone(shop):
    product = shop.product(stock=10, kind="buckets")
    fill_buckets(shop, product, 2, 8)
    with holding_bucket(shop, product, 0):
        assert shop.order(product, 5, "bucketed").status == 201, "only the second has five"
    assert buckets_of(shop, product)[:2] == [2, 3]


@pytest.mark.parametrize("end, left", [("ROLLBACK", 5), ("COMMIT", 0)])
def test_a_bucket_that_somebody_empties_is_not_sold_out_before_it_is_committed(shop, end, left):
    product = shop.product(stock=5, kind="buckets")
    fill_buckets(shop, product, 5)
    with holding_bucket(shop, product, 0) as other:
        order = Background(lambda: shop.order(product, 1, "bucketed"))
        wait_until(lambda: waiting_backends(shop.database_url) == 1, "the order waits for the bucket")
        other.run(end)
        reply = order.result()
    if left:
        assert (reply.status, buckets_of(shop, product)[0]) == (201, 4), str(reply)
    else:
        assert (reply.problem, reply.json["available"]) == ("sold-out", 0), str(reply)


@pytest.mark.parametrize("end, status", [("ROLLBACK", 201), ("COMMIT", 409)])
def test_a_sweep_waits_for_those_who_hold_a_bucket(shop, end, status):
    """Nobody is told sold out for the sake of units that may yet be set free."""
    product = shop.product(stock=5, kind="buckets")
    fill_buckets(shop, product, 2, 2, 1)
    with holding_bucket(shop, product, 1) as other:
        order = Background(lambda: shop.order(product, 5, "bucketed"))
        wait_until(lambda: waiting_backends(shop.database_url) == 1, "the sweep waits for the second bucket")
        other.run(end)
        reply = order.result()
    assert reply.status == status, str(reply)
    if status == 409:
        assert (reply.problem, reply.json["available"]) == ("sold-out", 3), str(reply)


def test_a_bucket_that_stays_locked_is_busy(shop):
    product = shop.product(stock=5, kind="buckets")
    fill_buckets(shop, product, 5)
    before = shop.get("/strategy").json
    shop.strategy(before["name"], lock_wait_ms=200)
    try:
        with holding_bucket(shop, product, 0):
            assert shop.order(product, 1, "bucketed").problem == "lock-busy"
    finally:
        shop.strategy(before["name"], lock_wait_ms=before["lock_wait_ms"])
    assert shop.order(product, 5, "bucketed").status == 201


@pytest.mark.parametrize("strategy", ["skip-locked", "bucketed"])
@pytest.mark.parametrize("quantities", [(1,), (1, 2, 3), (1, 7, 40)])
def test_sixteen_clients_of_two_processes_sell_exactly_what_there_is(pair, strategy, quantities):
    """With quantities that no bucket has by itself; sweeps that waited in a circle would show as conflicts."""
    product = pair[0].product(stock=200, strategy=strategy)
    load = hammer(pair, product, strategy=strategy, quantities=quantities)
    audit = expect_balanced(pair[1], product, load, 200)
    assert (audit["sold"], audit["left"]) == (200, 0), f"{audit}, {load.outcomes}"
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert number(pair[0].database_url, deadlocks) == 0


# ── the schema ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_database_of_the_first_version_is_brought_up_to_date(services, database):
    psql(database, (ROOT / "db/schema/001.sql").read_text(encoding="utf-8"))
    psql(
        database,
        "CREATE TABLE schema_version (version int PRIMARY KEY,"
        " applied_at timestamptz NOT NULL DEFAULT clock_timestamp());"
        " INSERT INTO schema_version VALUES (1);"
        " INSERT INTO product (id, name, price, count, initial_count, created_by, updated_by)"
        " VALUES (7, 'old', 2, 3, 5, 't', 't');"
        " INSERT INTO orders (amount, created_by, updated_by) VALUES (4, 't', 't');"
        " INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance,"
        " stock_xid, created_by, updated_by) VALUES (1, 7, 2, 2, 'mutex', 't', '999', 't', 't')",
    )
    service = services.start(database)
    audit = service.audit(7)
    assert (audit["kind"], audit["left"], audit["sold"], audit["balanced"]) == ("counter", 3, 2, True)
    assert service.order(7, 1, "mutex").status == 201
    assert service.reset(7, 9, kind="units")["stock"] == 9
    assert service.order(7, 9, "skip-locked").status == 201
    assert [row[0] for row in psql(database, "SELECT version FROM schema_version ORDER BY 1")][:2] == [
        "1",
        "2",
    ]


# ── many orders ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_reset_of_many_orders_where_the_planner_has_seen_none(services, database):
    """By figures of when the tables were empty, each order's item would be looked for among all."""
    service = services.start(database)
    product = service.product(stock=0)
    sell = (
        "WITH o AS (INSERT INTO orders (amount, created_by, updated_by) SELECT 19.90, 't', 't' FROM generate_series(1, 60000)"
        " RETURNING id) INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance, stock_xid,"
        f" created_by, updated_by) SELECT id, {product}, 19.90, 1, 't', 't', pg_current_xact_id(), 't', 't' FROM o"
    )
    psql(database, sell)
    psql(database, "DELETE FROM orders")
    psql(database, "VACUUM (TRUNCATE off, ANALYZE) orders")
    psql(database, "VACUUM (TRUNCATE off, ANALYZE) order_item")
    psql(database, sell)
    service.reset(product, 0)
    assert number(database, "SELECT count(*) FROM orders") == 0


@pytest.mark.parametrize("strategy", short_only(["read-write"], ["read-write", *SELLER.values()]))
def test_no_order_reads_all_the_others(services, database, strategy):
    """Not even where PostgreSQL made its plans, those of foreign keys too, while there were none."""
    service = services.start(database, "--workers", "1")
    product = service.product(stock=400, strategy=strategy)
    for table in ("orders", "order_item", "product"):
        psql(database, f"VACUUM ANALYZE {table}")
    assert hammer([service], product, threads=2, strategy=strategy).sold >= 400
    service.stop()  # then its sessions have told what they have read
    read = "SELECT coalesce(sum({}), 0) FROM pg_stat_user_tables WHERE relname IN ('orders', 'order_item')"
    wait_until(lambda: number(database, read.format("n_tup_ins")) >= 800, "the figures are told")
    assert number(database, read.format("seq_tup_read")) < 400 * 10
