"""A reset, or a PUT of the product, by another process while orders run: the books of every safe row stay balanced, and no row writes over
the new stock what it read of the old one."""

import itertools

import pytest

from lab import Background, holding, number, psql, wait_until, waiting_backends
from length import short_only

OLD, NEW = 50, 10  # units before and after the change
THINK_MS = 6000  # between an order's read and its write: longer than all changes take
IN_TRANSACTION = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name LIKE 'oversell orders %' AND state = 'idle in transaction'"
)


@pytest.fixture(scope="module")
def shops(stack, file_services):
    """The process that changes the product, and the one that sells it."""
    database = stack.database()
    settings = ["--order-timeout-ms", 60000, "--lock-wait-ms", 30000, "--lock-ttl-ms", 60000, "--workers", 40]
    return [file_services.start(database, *settings) for _ in range(2)]


def safe_rows(shop):
    """The safe rows; a row that locks the whole table keeps the others waiting, so it is tried by itself."""
    names = [
        row["name"] for row in shop.get("/strategies").json["strategies"] if row["guarantee"] == "safe"
    ]
    assert {"redis-fenced", "zookeeper-fenced", "etcd-fenced", "check-constraint", "redis-stock"} <= set(names)
    return [[name for name in names if name != "table-lock"], ["table-lock"]]


def other_rows(shop):
    """The rows whose lock may end, or that promise nothing: their orders oversell each other, but not the stock of another sale."""
    rows = shop.get("/strategies").json["strategies"]
    names = [row["name"] for row in rows if row["guarantee"] != "safe" and row["available"]]
    assert {"read-write", "mutex", "redis-lock"} <= set(names)
    return names


def reset(shop, product, kind):
    return shop.post(f"/products/{product}/reset", {"stock": NEW, "kind": kind})


def put(shop, product, kind):
    body = {"name": "changed", "price": "1.00", "stock": NEW, "kind": kind}
    return shop.put(f"/products/{product}", body)


def free(shop, products):
    """The names of those products that no order holds against a change."""
    listed = ",".join(map(str, products.values()))
    found = psql(
        shop.database_url,
        f"SELECT id FROM product WHERE id IN ({listed})"
        " AND pg_try_advisory_xact_lock(hashtextextended('product:' || id, 0)) FOR UPDATE SKIP LOCKED",
    )
    return [name for name, product in products.items() if [str(product)] in found]


def changed_at(shop, product):
    return psql(
        shop.database_url,
        """SELECT to_char(updated_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') FROM product """ f"WHERE id = {product}",
    )[0][0]


def settled(shop, product):
    """The audit, once the orders that are written afterwards have been."""
    return wait_until(
        lambda: (audit := shop.audit(product))["in_flight"] == 0 and audit, "all orders are written"
    )


def judge(shop, name, product, change, replies, changed):
    """Stock and orders balance, and each client was told the truth."""
    audit = settled(shop, product)
    there = {order["id"] for order in shop.orders(product)}
    what = f"{name}: {[str(reply) for reply in replies]}, {changed}, {audit}"
    assert changed.status == 200, what
    assert (audit["balanced"], audit["drift"], audit["oversold"]) == (True, 0, 0), what
    told = {reply.json["id"]: reply.json for reply in replies if reply.status in (201, 202)}
    assert there <= set(told), f"an order whose client was told that nothing was sold; {what}"
    for reply in replies:
        assert reply.status in (201, 202) or reply.problem in ("conflict", "lock-lost"), what
    if change is put:
        assert there == set(told), f"a PUT keeps the orders; {what}"
    for lost in set(told) - there:
        assert told[lost]["created_at"] < changed_at(shop, product), f"only older orders go; {what}"
    assert audit["left"] == audit["initial"] - len(there), what


def judge_unsafe(shop, name, product, change, replies, changed):
    """Orders may have overtaken each other, but none has written what it read before the change."""
    audit = settled(shop, product)
    there = {order["id"] for order in shop.orders(product)}
    what = f"{name}: {[str(reply) for reply in replies]}, {changed}, {audit}"
    assert changed.status == 200, what
    assert NEW - len(replies) <= audit["left"] <= NEW, f"the old stock came back; {what}"
    told = {reply.json["id"]: reply.json for reply in replies if reply.status in (201, 202)}
    assert there <= set(told), f"an order whose client was told that nothing was sold; {what}"
    for reply in replies:
        assert reply.status in (201, 202) or reply.problem in ("conflict", "lock-lost", "lock-busy"), what
    for lost in set(told) - there:
        assert change is reset and told[lost]["created_at"] < changed_at(shop, product), f"only older orders go; {what}"


@pytest.mark.long
@pytest.mark.parametrize("change", [reset, put], ids=lambda change: change.__name__)
def test_an_order_that_has_read_before_the_change(shops, change):
    """One order has read and thinks, a second one is behind it; the product is changed by the other process."""
    changing, selling = shops
    others = other_rows(selling)
    for names in [*safe_rows(selling), others]:
        products = {name: selling.product(stock=OLD, strategy=name) for name in names}
        kinds = {name: selling.kind(name) for name in names}
        selling.strategy("atomic-decrement", think_ms=0)
        earlier = {name: selling.order(product, 1, name) for name, product in products.items()}
        for product in products.values():
            settled(selling, product)
        selling.strategy("atomic-decrement", think_ms=THINK_MS if len(names) > 1 else 500)

        def place_all():
            return {
                name: Background(lambda name=name: selling.order(products[name], 1, name)) for name in names
            }

        first = place_all()
        in_postgres = [order for name, order in first.items() if kinds[name] != "redis"]
        wait_until(
            lambda: number(selling.database_url, IN_TRANSACTION) >= sum(order.running for order in in_postgres),
            "the first orders have read, or ended",
        )
        second = place_all()
        at_once = free(changing, products) if len(names) > 1 else []
        ends = {}
        for some in (at_once, set(names) - set(at_once)):  # so that no change waits behind one that an order keeps waiting
            for name in some:
                ends[name] = Background(lambda name=name: change(changing, products[name], kinds[name]))
            for name in some:
                ends[name].result(60)
            if some is at_once:
                writes_later = {name for name in at_once if first[name].running}
        wrong = []
        for name in names:
            replies = [earlier[name], first[name].result(60), second[name].result(60)]
            try:
                judges = judge_unsafe if name in others else judge
                judges(selling, name, products[name], change, replies, ends[name].result(60))
                if name in others and name in writes_later:
                    assert replies[1].problem in ("conflict", "lock-lost"), f"{name} wrote over the change: {replies[1]}"
                if name.endswith("-fenced"):
                    assert replies[1].problem == "conflict", f"{name} wrote over the change: {replies[1]}"
            except AssertionError as failure:
                wrong.append(f"{name}: {failure}"[:500])
        assert not wrong, "\n".join(wrong)
    selling.strategy("atomic-decrement", think_ms=0)


@pytest.mark.long
@pytest.mark.parametrize("change", short_only([put], [reset, put]), ids=lambda change: change.__name__)
def test_an_order_that_comes_during_the_change(shops, change):
    """The change has the product's row, and has not committed, when the order comes."""
    changing, selling = shops
    selling.strategy("atomic-decrement", think_ms=0)
    for name in itertools.chain(*safe_rows(selling)):
        product, kind = selling.product(stock=OLD, strategy=name), selling.kind(name)
        assert selling.order(product, 1, name).status in (201, 202)
        settled(selling, product)
        with holding(selling.database_url, "LOCK TABLE product_unit IN SHARE MODE") as blocked:
            ending = Background(lambda: change(changing, product, kind))
            waiting = wait_until(lambda: waiting_backends(selling.database_url), f"{name}: the change is under way")
            order = Background(lambda: selling.order(product, 1, name))
            wait_until(
                lambda: waiting_backends(selling.database_url) > waiting or not order.running,
                f"{name}: the order waits for the change",
            )
            blocked.run("ROLLBACK")
        reply, changed = order.result(60), ending.result(60)
        audit = settled(selling, product)
        what = f"{name}: {reply}, {changed}, {audit}"
        assert changed.status == 200, what
        assert (audit["balanced"], audit["drift"], audit["oversold"]) == (True, 0, 0), what
        kept = 1 if change is put else 0  # the order before the change
        if reply.status in (201, 202):
            assert audit["orders"] == kept + 1, what
        else:
            # The units of skip-locked were replaced, and nobody else held one.
            assert reply.problem == "conflict" or (reply.problem == "lock-busy" and name != "skip-locked"), what
            assert audit["orders"] == kept, what
        assert (audit["left"], audit["initial"]) == (NEW - audit["orders"] + kept, NEW + kept), what
