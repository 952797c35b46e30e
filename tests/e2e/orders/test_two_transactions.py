"""Stock taken in one transaction and the order made in the next: an order that fails between them gives its units back."""

import contextlib
import re

import pytest

from lab import Background, Proxy, holding, holding_row, wait_until, waiting_backends

STOCK = 5
STRATEGY = "reentrant-mutex"
COMMIT = b"commit\0"  # the whole name of the prepared statement: that of BEGIN has "committed" in it


@pytest.fixture
def proxy(database):
    relay = Proxy(database)
    yield relay
    relay.close()


@pytest.fixture
def shop(services, proxy):
    """A service that reaches PostgreSQL through a network that can break, and a product that it has sold one of."""
    service = services.start(proxy.url, "--workers", "1", "--order-timeout-ms", "3000", "--lock-wait-ms", "1000")
    service.product_id = service.product(stock=STOCK)
    assert service.order(service.product_id, 1, STRATEGY).status == 201
    return service


@contextlib.contextmanager
def between(shop, database):
    """An order that has taken its stock, and cannot be inserted until the with ends."""
    with holding(database, "LOCK TABLE orders IN SHARE MODE"):
        order = Background(lambda: shop.order(shop.product_id, 1, STRATEGY))
        wait_until(lambda: waiting_backends(database) == 1, "the order waits to be inserted")
        yield order


def audit(shop):
    reply = shop.get(f"/audit?product_id={shop.product_id}")
    return reply.json if reply.status == 200 else None


def owed(shop):
    """Orders whose units the service has still to give back."""
    return int(re.search(r"^oversell_unsold_orders (\d+)$", shop.get("/metrics").text, re.M).group(1))


def expect_books(shop, sold):
    """Stock and orders balance, at the latest when the database has been back for a while; and the shop goes on selling."""
    wait_until(lambda: (books := audit(shop)) and books["balanced"], "the units are back")
    books = audit(shop)
    assert (books["sold"], books["left"]) == (sold, STOCK - sold), books
    rest = STOCK - sold
    for _ in range(rest):
        wait_until(lambda: shop.order(shop.product_id, 1, STRATEGY).status == 201, "orders flow")
    assert shop.order(shop.product_id, 1, STRATEGY).problem == "sold-out"
    books = audit(shop)
    assert (books["sold"], books["left"], books["balanced"]) == (STOCK, 0, True), books


def test_the_deadline_comes_between_the_two(shop, database):
    with between(shop, database) as order:
        reply = order.result()
        assert reply.problem == "lock-busy", str(reply)
        books = audit(shop)
        assert (books["sold"], books["left"], books["balanced"]) == (1, STOCK - 1, True), books
    expect_books(shop, 1)


def test_the_connection_ends_between_the_two(shop, proxy, database):
    with between(shop, database) as order:
        proxy.cut()
        reply = order.result()
        assert reply.problem == "backend-unavailable", str(reply)
        assert audit(shop)["balanced"], f"{audit(shop)}"
    expect_books(shop, 1)


def test_the_database_is_away_for_long_between_the_two(shop, proxy, database):
    with between(shop, database) as order:
        proxy.refuse = True
        proxy.cut()
        reply = order.result()
        assert reply.problem == "backend-unavailable", str(reply)
        assert owed(shop) == 1
    proxy.refuse = False
    expect_books(shop, 1)
    assert owed(shop) == 0


def test_units_that_are_owed_are_in_flight(shop, proxy, database):
    """Whoever waits until nothing is in flight sees books that balance."""
    with between(shop, database) as order:
        proxy.refuse = True
        proxy.cut()
        assert order.result().problem == "backend-unavailable"
        # The list cannot give back while the row is locked, and the audit does not wait for that.
        with holding_row(database, shop.product_id):
            proxy.refuse = False
            books = wait_until(lambda: audit(shop), "an audit")
            assert (books["in_flight"], books["balanced"]) == (1, False), books
    wait_until(lambda: audit(shop)["in_flight"] == 0, "nothing is in flight")
    assert audit(shop)["balanced"], f"{audit(shop)}"


@pytest.mark.parametrize("lost, sold", [("request", 1), ("reply", 2)])
def test_the_second_commit_is_lost_with_the_database(shop, proxy, database, lost, sold):
    """Whether the order was made is found out when the database is back, and only then are its units given back."""
    with between(shop, database) as order:
        proxy.lose, proxy.trigger, proxy.refuse = lost, COMMIT, True
    reply = order.result()
    assert reply.problem == "outcome-unknown", str(reply)
    proxy.refuse = False
    expect_books(shop, sold)


@pytest.mark.parametrize("lost", ["request", "reply"])
def test_the_first_commit_is_lost_with_the_database(shop, proxy, lost):
    """No order can follow any more: units that were taken go back."""
    proxy.lose, proxy.trigger, proxy.refuse = lost, COMMIT, True
    reply = shop.order(shop.product_id, 1, STRATEGY)
    assert reply.problem == "outcome-unknown", str(reply)
    proxy.refuse = False
    expect_books(shop, 1)
