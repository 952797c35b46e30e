"""Orders on many connections, sent one after the other, and a product whose row somebody holds meanwhile."""

import time

import pytest

from basics import SOON_S, wait_until
from load import Load
from servers import holding_row, psql, waiting_backends
from wire import as_body, request_bytes


def metric(service, name):
    """The value of a metric, of the current strategy where it has one for each."""
    strategy = service.get("/strategy").json["name"]
    for line in service.get("/metrics").text.splitlines():
        if line.startswith((f"{name} ", f'{name}{{strategy="{strategy}"}} ')):
            return float(line.split()[-1])
    raise AssertionError(f"there is no {name}")


def in_line(service):
    return metric(service, "oversell_orders_waiting")


class Crowd:
    """Orders on separate connections, sent one after the other; each with what it wants, ("key", …) and so on."""

    def __init__(self, service):
        self.service = service
        self.wires = []
        self.queued = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for wire in self.wires:
            wire.close()

    def send(self, product, quantity=1, key=None, strategy=None, **more):
        wire = self.service.wire()
        body = as_body({"product_id": product, "quantity": quantity, **more})
        headers = {"Idempotency-Key": key} if key else {}
        target = "/orders" + (f"?strategy={strategy}" if strategy else "")
        wire.send(request_bytes("POST", target, body, headers))
        self.wires.append(wire)

    def send_in_line(self, product, **more):
        """As send, and waits until it stands in line."""
        before = in_line(self.service)
        self.send(product, **more)
        wait_until(lambda: in_line(self.service) == before + 1, "the order is in line")

    def replies(self):
        return [wire.reply() for wire in self.wires]

    def outcomes(self):
        return [reply.problem or "created" for reply in self.replies()]


@pytest.fixture
def held(services, database):
    """Starts a batched service and sends the first order of a product whose row somebody holds: all others that come
    then are in line behind it. Returns (service, product, crowd, the session that holds the row)."""
    with_row = []

    def hold(*flags, stock=1000, strategy="batched", first=1):
        service = services.start(database, "--strategy", strategy, *flags)
        product = service.product(stock=stock)
        holder = holding_row(database, product)
        row = holder.__enter__()
        crowd = Crowd(service)
        with_row.extend((crowd, holder))
        for _ in range(first):
            crowd.send(product)
        wait_until(lambda: waiting_backends(database) == first, "the first order waits for the row")
        return service, product, crowd, row

    yield hold
    for manager in with_row:
        manager.__exit__(None, None, None)


def transactions(service, product):
    """How many orders each transaction has made, by the ids of the orders."""
    rows = psql(
        service.database_url,
        f"SELECT stock_xid, count(*) FROM order_item WHERE product_id = {product}"
        " GROUP BY stock_xid ORDER BY min(order_id)",
    )
    return [int(count) for _, count in rows]


def told(replies):
    load = Load()
    for reply in replies:
        outcome = "created" if reply.status == 201 else reply.problem
        load.outcomes[outcome] += 1
        if outcome == "created":
            load.created.append(reply.json)
    return load


def expect_all_busy(service, product, crowd, row, seconds):
    """Each order waits SECONDS for the row, which stays locked, and no longer because of those before it."""
    start = time.monotonic()
    for _ in range(41):
        crowd.send(product)
    replies = crowd.replies()
    took = time.monotonic() - start
    assert {reply.problem for reply in replies} == {"lock-busy"}
    assert seconds <= took < SOON_S, f"the wait was {seconds} s, the answers took {took:.1f} s"
    row.run("ROLLBACK")
    assert service.order(product).status == 201
    assert service.audit(product)["orders"] == 1
