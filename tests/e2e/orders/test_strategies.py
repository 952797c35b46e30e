"""Every strategy from end to end: the safe ones never oversell, the unsafe ones are caught."""

import pytest
import redis

from lab import Background, expect_balanced, expect_books, hammer, holding_row, psql, wait_until, waiting_backends
from length import short_only
from promises import FEW, STRATEGIES

CLEAN_HERE = [name for name, (guarantee, _) in STRATEGIES.items() if guarantee != "unsafe"]
SHOWN_BY_LOAD = [name for name, (_, shown_by) in STRATEGIES.items() if "load" in shown_by]
SHOWN_BY_SECOND_PROCESS = [name for name, (_, shown_by) in STRATEGIES.items() if "second-process" in shown_by]
CLEAN_WITH_TWO = [
    name for name, (guarantee, _) in STRATEGIES.items() if guarantee in ("safe", "while-lease-holds")
]

# What takes in one statement reads no stock that it then relies on.
READS_NOTHING = {"atomic-decrement", "atomic-statement", "skip-locked"}


def test_the_table_is_data(shop):
    for row in shop.get("/strategies").json["strategies"]:
        assert shop.get(f"/strategies/{row['name']}").json == row
        assert (row["guarantee"] == "safe") == (row["shown_by"] == "nothing"), f"{row}"
        assert row["available"] is True, f"{row}"
    special = {name: {row["name"]: row[name] for row in shop.get("/strategies").json["strategies"]} for name in ("combined", "locks_all")}
    assert {name: where for name, where in special["combined"].items() if where != "none"} == {"batched": "postgresql", "redis-stock": "redis"}
    assert [name for name, locks in special["locks_all"].items() if locks] == ["table-lock"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_client_at_a_time_is_always_right(shop, strategy):
    product = shop.product(stock=4, strategy=strategy, price="2.50")
    order = shop.order(product, 3, strategy)
    assert order.status == 201, str(order)
    body = order.json
    assert (body["strategy"], body["quantity"], body["amount"]) == (strategy, 3, "7.50")
    if strategy not in READS_NOTHING:
        assert body["stock_seen"] == 4
    refused = shop.order(product, 2, strategy)
    assert (refused.problem, refused.json.get("available")) == ("sold-out", 1), str(refused)
    last = shop.order(product, 1, strategy)
    assert last.status == 201, str(last)
    refused = shop.order(product, 1, strategy)
    assert (refused.problem, refused.json.get("available")) == ("sold-out", 0), str(refused)

    audit = shop.audit(product)
    wanted = {
        "initial": 4,
        "left": 0,
        "sold": 4,
        "orders": 2,
        "oversold": 0,
        "drift": 0,
        "negative": 0,
        "balanced": True,
        "mixed": False,
        "strategies": [strategy],
        "witness": None,
    }
    assert {name: audit[name] for name in wanted} == wanted
    read = shop.get(f"/orders/{body['id']}").json
    assert [(item["product_id"], item["quantity"], item["strategy"]) for item in read["items"]] == [
        (product, 3, strategy)
    ]
    assert shop.order(999999999, 1, strategy).problem == "no-such-product"


@pytest.mark.parametrize("strategy", CLEAN_HERE)
def test_sixteen_clients_of_one_process_never_oversell(shop, strategy):
    product = shop.product(stock=60, strategy=strategy)
    load = hammer([shop], product, strategy=strategy, quantities=(1, 2, 3))
    audit = expect_balanced(shop, product, load, 60)
    assert (audit["sold"], audit["left"]) == (60, 0), f"sold out means sold: {audit}, {load.outcomes}"
    assert audit["strategies"] == [strategy]


@pytest.mark.parametrize("strategy", short_only(FEW.intersection(CLEAN_WITH_TWO), CLEAN_WITH_TWO))
def test_two_processes_never_oversell_unless_the_lock_is_in_one(pair, strategy):
    product = pair[0].product(stock=40, strategy=strategy)
    load = hammer(pair, product, strategy=strategy, quantities=(1, 2))
    audit = expect_balanced(pair[1], product, load, 40)
    assert (audit["sold"], audit["left"]) == (40, 0), f"sold out means sold: {audit}, {load.outcomes}"


@pytest.mark.parametrize("strategy", SHOWN_BY_LOAD)
def test_load_shows_the_flaw(services, database, strategy):
    service = services.start(database, "--workers", "16")
    product = service.product(stock=20)
    service.strategy(strategy, think_ms=10)
    load = hammer([service], product, most=300)
    audit = expect_books(service, product, load, 20)
    assert audit["oversold"] > 0, f"{strategy} was not caught: {audit}, {load.outcomes}"
    assert audit["balanced"] is False and audit["strategies"] == [strategy], f"{audit}"
    if strategy == "decrement":
        assert (
            audit["negative"] > 0 and audit["drift"] == 0
        ), f"its stock goes below zero, nothing is lost: {audit}"
    else:
        assert audit["drift"] > 0, f"updates are lost: {audit}"
    witness = audit["witness"]
    assert witness, f"{audit}"
    told = {order["id"]: order["stock_seen"] for order in load.created}
    assert [told[order] for order in witness["orders"]] == [witness["stock_seen"]] * 2, f"{witness}"


@pytest.mark.parametrize("strategy", SHOWN_BY_SECOND_PROCESS)
def test_a_second_process_shows_the_flaw(pair, strategy):
    one, two = pair
    product = one.product(stock=20)
    for service in pair:
        service.strategy(strategy, think_ms=10)
    load = hammer(pair, product, most=300)
    for service in pair:
        service.strategy("atomic-decrement", think_ms=0)
    audit = expect_books(two, product, load, 20)
    assert (
        audit["oversold"] > 0 and audit["drift"] > 0
    ), f"{strategy} was not caught: {audit}, {load.outcomes}"
    instances = {
        item["instance"]
        for order in audit["witness"]["orders"]
        for item in one.get(f"/orders/{order}").json["items"]
    }
    assert instances == {one.name, two.name}, f"the witness is of one process: {audit['witness']}"


@pytest.mark.parametrize("strategy", SHOWN_BY_SECOND_PROCESS)
def test_the_same_think_time_in_one_process_is_harmless(services, database, strategy):
    service = services.start(database, "--workers", "16")
    product = service.product(stock=20)
    service.strategy(strategy, think_ms=10)
    load = hammer([service], product)
    audit = expect_balanced(service, product, load, 20)
    assert audit["sold"] == 20, f"{audit}"


def test_a_lock_for_each_product_lets_other_products_pass(services, database):
    """mutex makes orders of two products wait for each other, mutex-per-product does not."""
    service = services.start(database, "--workers", "4")
    held, free = service.product(), service.product()
    service.strategy("mutex")
    for strategy, passes in (("mutex-per-product", True), ("mutex", False)):
        with holding_row(database, held) as row:
            first = Background(lambda strategy=strategy: service.order(held, 1, strategy))
            wait_until(lambda: waiting_backends(database) == 1, "the first order waits for the row")
            second = Background(lambda strategy=strategy: service.order(free, 1, strategy))
            second.thread.join(timeout=10 if passes else 1.5)
            assert second.running == (
                not passes
            ), f"{strategy}: the other product's order waits: {second.running}"
            row.run("ROLLBACK")
            assert (first.result().status, second.result().status) == (201, 201)


def test_a_product_has_settings_of_its_own(shop):
    mine, other = shop.product(), shop.product()
    shop.strategy("atomic-decrement", think_ms=0)
    reply = shop.put(f"/strategy?product_id={mine}", {"name": "select-for-update", "think_ms": 3})
    assert (reply.json["name"], reply.json["think_ms"]) == ("select-for-update", 3)
    assert shop.get(f"/strategy?product_id={mine}").json == reply.json
    for target in ("/strategy", f"/strategy?product_id={other}"):
        assert shop.get(target).json["name"] == "atomic-decrement"
    assert [shop.order(product).json["strategy"] for product in (mine, other)] == [
        "select-for-update",
        "atomic-decrement",
    ]
    shop.strategy("mutex")
    assert [shop.order(product).json["strategy"] for product in (mine, other)] == ["select-for-update", "mutex"]
    for query in ("product_id=0", "product_id=x", "colour=1"):
        assert shop.get(f"/strategy?{query}").problem == "bad-request"
        assert shop.put(f"/strategy?{query}", {"name": "mutex"}).problem == "bad-request"


def test_a_switch_does_not_wait_for_a_product_of_its_own(services, database):
    service = services.start(database, "--workers", "4")
    mine = service.product()
    service.put(f"/strategy?product_id={mine}", {"name": "select-for-update"})
    with holding_row(database, mine):
        order = Background(lambda: service.order(mine))
        wait_until(lambda: waiting_backends(database) == 1, "an order waits for the row")
        assert service.strategy("mutex")["name"] == "mutex"
        assert service.order(service.product()).json["strategy"] == "mutex"
    assert order.result().json["strategy"] == "select-for-update"


def test_a_token_that_was_registered_before_is_refused(shop):
    """As after a failover, when the counter of the tokens has lost its last step: two holders get the same one."""
    product = shop.product(stock=3)
    prefix = shop.database_url.rsplit("/", 1)[1]
    counter = f"redisson_lock_token:{{{prefix}:lock:product:{product}}}"
    client = redis.Redis.from_url(shop.lock_servers["REDIS_URL"], decode_responses=True)
    assert shop.order(product, strategy="redis-fenced").status == 201
    registered = int(psql(shop.database_url, f"SELECT fence_redis FROM product WHERE id = {product}")[0][0])
    assert int(client.get(counter)) == registered
    client.set(counter, registered - 1)
    twice = shop.order(product, strategy="redis-fenced")
    assert twice.problem == "lock-lost", f"token {registered} was registered twice: {twice}"
    audit = shop.audit(product)
    assert (audit["sold"], audit["left"], audit["balanced"]) == (1, 2, True)
    assert shop.order(product, strategy="redis-fenced").status == 201, "the counter was lifted for the next order"
