"""Ids in paths and parameters in queries: what is not of the contract is refused, never guessed at."""

import pytest

from lab import DOCUMENT, Closed, request_bytes

# Not a number, or none that an id can be: there is nothing at such a path.
NOT_AN_ID = [
    "0",
    "-1",
    "abc",
    "9223372036854775808",
    "99999999999999999999999999",
    "1e3",
    "1.0",
    "0x1",
    "+1",
    "1%20",
    "%31x",
    "1;2",
    "1,2",
    "%2F",
    "%2E%2E",
    "%00",
    "1%00",
    "%FF",
    "ⅷ",
    "1'",
    "",
    "%",
    "%zz",
    "1%",
    "x" * 90,
]


def get(service, method, target, body=b""):
    """A request whose target no library has made harmless; None if the connection was closed."""
    with service.wire() as wire:
        wire.send(request_bytes(method, target.encode("utf-8"), body))
        try:
            reply = wire.reply()
            if reply.header("X-Request-Id"):  # ours, not the library's
                DOCUMENT.check(method, target, reply)
            return reply
        except Closed as closed:
            assert closed.partial == b"", f"half a reply: {closed.partial!r}"
            return None


@pytest.mark.parametrize("value", NOT_AN_ID)
@pytest.mark.parametrize(
    "method, path",
    [("GET", "/orders/{}"), ("GET", "/products/{}"), ("PUT", "/products/{}"), ("POST", "/products/{}/reset")],
)
def test_a_path_that_is_not_an_id(shop, method, path, value):
    reply = get(
        shop,
        method,
        path.format(value),
        b'{"name":"x","price":"1.00","stock":1}'
        if method == "PUT"
        else b'{"stock":1}'
        if method == "POST"
        else b"",
    )
    assert reply is not None, "closed without an answer"
    assert reply.status in (400, 404), str(reply)
    if not any(mark in value for mark in "%ⅷ"):
        assert reply.status == 404, str(reply)
    if reply.media_type.startswith("application/"):
        assert reply.problem in ("bad-request", "not-found", "no-such-order", "no-such-product"), str(reply)


@pytest.mark.parametrize("value", ["%31", "001"])
def test_one_product_has_one_path(shop, value):
    """What is only nearly a 1 is not read as one."""
    assert get(shop, "GET", f"/products/{value}").status == 404


@pytest.mark.parametrize(
    "name", ["nobody", "MUTEX", "mutex%00", "mutex%2F", "%6Dutex%20", "x" * 3000, "-", "mutex;"]
)
def test_no_such_strategy_in_a_path(shop, name):
    reply = get(shop, "GET", f"/strategies/{name}")
    assert reply is not None and reply.status == 404 or "%" in name and reply.status == 400, str(reply)


BAD_QUERIES = [
    *[
        ("GET", f"/orders?limit={value}")
        for value in (
            "0",
            "1001",
            "-1",
            "x",
            "",
            "1.5",
            "1e2",
            "99999999999999999999",
            "10%20",
            "%31x",
            "+10",
            "0x10",
            "10%00",
        )
    ],
    *[("GET", f"/orders?after={value}") for value in ("-1", "x", "", "1.5", "9223372036854775808", "1%002")],
    *[("GET", f"/orders?product_id={value}") for value in ("x", "", "-1", "0", "1.5", "9223372036854775808")],
    *[
        ("GET", f"/audit?product_id={value}")
        for value in ("x", "", "-1", "0", "1.5", "9223372036854775808", "1%00")
    ],
    *[("GET", f"/traces?limit={value}") for value in ("0", "-1", "x", "", "1.5", "99999999999999999999")],
    ("GET", "/traces?format=xml"),
    ("GET", "/traces?format="),
    ("GET", "/traces?format=JSON"),
]


@pytest.mark.parametrize("method, target", BAD_QUERIES)
def test_a_bad_query(shop, method, target):
    reply = shop.call(method, target)
    assert reply.problem == "bad-request", str(reply)


@pytest.mark.parametrize("strategy", ["nobody", "MUTEX", "x" * 60, "mutex%20", "mutex%27%3B--", "%C3%A9"])
def test_an_unknown_strategy_in_a_query(shop, strategy):
    product = shop.product(stock=1)
    assert shop.order(product, 1, strategy).problem == "invalid-order"
    assert shop.audit(product)["orders"] == 0


@pytest.mark.parametrize("strategy", ["", "mutex%00", "%FF", "x" * 3000], ids=str.__len__)
def test_no_strategy_at_all_in_a_query(shop, strategy):
    product = shop.product(stock=1)
    reply = shop.post(f"/orders?strategy={strategy}", {"product_id": product, "quantity": 1})
    assert reply.problem in ("bad-request", "invalid-order"), str(reply)
    assert shop.audit(product)["orders"] == 0


@pytest.mark.parametrize(
    "query",
    [
        "strategy=mutex&strategy=mutex",
        "strategy=mutex&strategy=nobody",
        "strategy",
        "&&&",
        "=",
        "=mutex",
        "unknown=1",
        "%00=%00",
        "strategy=mutex&x=" + "y" * 3000,
    ],
)
def test_odd_queries_are_no_failure(shop, query):
    product = shop.product(stock=5)
    reply = shop.post(f"/orders?{query}", {"product_id": product, "quantity": 1})
    assert reply.status in (201, 400, 422), str(reply)
    assert shop.audit(product)["orders"] == (1 if reply.status == 201 else 0)


def test_an_audit_of_nothing(shop):
    assert shop.get("/audit?product_id=999999999").problem == "no-such-product"


def test_the_edges_of_limit(shop):
    for limit in (1, 1000):
        assert shop.get(f"/orders?limit={limit}").status == 200


def test_a_fragment_and_an_absolute_target(shop):
    """A proxy sends the absolute form; a fragment is never sent, and is then part of the path."""
    assert get(shop, "GET", "/products/1#top").status in (400, 404)
    absolute = get(shop, "GET", f"http://127.0.0.1:{shop.port}/products/1")
    assert absolute.status in (200, 400, 404), str(absolute)


def test_a_long_target_is_no_failure(shop):
    for length in (4000, 30000, 100000):
        reply = get(shop, "GET", "/orders/" + "1" * length)
        assert reply is None or reply.status in (400, 404, 414, 431), str(reply)
    assert shop.get("/healthz").status == 200
