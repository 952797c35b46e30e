"""What is not the JSON that the contract asks for: the right problem, never a crash, nothing sold."""

import json

import pytest

from lab import next_free_id, request_bytes

BIG = 64 * 1024


@pytest.fixture(scope="module")
def product(shop):
    return shop.product(stock=1000000)


@pytest.fixture(autouse=True)
def nothing_is_sold(shop, product):
    """Whatever was sent, the books are as before and the service is there, unless the test says .sold."""

    class Sold:
        orders = 0

    before = shop.audit(product)["orders"]
    sold = Sold()
    yield sold
    after = shop.audit(product)
    assert after["orders"] == before + sold.orders, f"orders before {before}, after {after}"
    assert after["balanced"], f"{after}"


def send(shop, body):
    return shop.post("/orders", body if isinstance(body, bytes) else body.encode())


# ── not JSON, or not an object ──────────────────────────────────────────────────────────────────────────────

NOT_AN_OBJECT = {
    "nothing": b"",
    "blank": b" \n\t ",
    "text": b"hello",
    "array": b"[]",
    "array of an order": b'[{"product_id":1,"quantity":1}]',
    "null": b"null",
    "true": b"true",
    "number": b"1",
    "string": b'"order"',
    "open": b"{",
    "half": b'{"product_id":1,"quantity"',
    "comma": b'{"product_id":1,"quantity":1,}',
    "single quotes": b"{'product_id':1,'quantity':1}",
    "comment": b'{"product_id":1,"quantity":1/* one */}',
    "trailing garbage": b'{"product_id":1,"quantity":1} x',
    "two objects": b'{"product_id":1,"quantity":1}{}',
    "trailing brace": b'{"product_id":1,"quantity":1}}',
    "NaN": b'{"product_id":1,"quantity":NaN}',
    "Infinity": b'{"product_id":1,"quantity":Infinity}',
    "hex": b'{"product_id":0x1,"quantity":1}',
    "leading zero": b'{"product_id":01,"quantity":1}',
    "plus": b'{"product_id":+1,"quantity":1}',
    "bare member": b'{product_id:1,"quantity":1}',
    "byte order mark": b'\xef\xbb\xbf{"product_id":1,"quantity":1}',
    "UTF-16": '{"product_id":1,"quantity":1}'.encode("utf-16"),
    "form": b"product_id=1&quantity=1",
    "XML": b"<order/>",
    "NUL": b"\0",
    "NUL before": b'\0{"product_id":1,"quantity":1}',
    "NUL after": b'{"product_id":1,"quantity":1}\0',
    "NUL between": b'{"product_id":1,\0"quantity":1}',
    "NUL after a number": b'{"product_id":1\0,"quantity":1\0}',
    "control character in a string": b'{"product_id":1,"quantity":1,"receiver_name":"a\x01b"}',
    "raw NUL in a string": b'{"product_id":1,"quantity":1,"receiver_name":"a\0b"}',
    "unclosed string": b'{"product_id":1,"quantity":1,"receiver_name":"a',
    "bad escape": b'{"product_id":1,"quantity":1,"receiver_name":"\\x41"}',
    "short escape": b'{"product_id":1,"quantity":1,"receiver_name":"\\u12"}',
}


@pytest.mark.parametrize("name", NOT_AN_OBJECT)
def test_not_an_object(shop, name):
    reply = send(shop, NOT_AN_OBJECT[name])
    assert reply.problem == "bad-request", str(reply)


@pytest.mark.parametrize(
    "method, target",
    [("PUT", "/products/77"), ("POST", "/products/1/reset"), ("PUT", "/strategy"), ("POST", "/locks/door/hold")],
)
@pytest.mark.parametrize("name", ["nothing", "array", "null", "half", "trailing garbage", "NUL after"])
def test_not_an_object_elsewhere(shop, method, target, name):
    reply = shop.call(method, target, NOT_AN_OBJECT[name])
    assert reply.problem == "bad-request", str(reply)


INVALID_UTF8 = {
    "lone continuation": b"\x80",
    "cut short": b"\xc3",
    "overlong": b"\xc0\xaf",
    "surrogate": b"\xed\xa0\x80",
    "beyond Unicode": b"\xf4\x90\x80\x80",
    "0xff": b"\xff",
}


@pytest.mark.parametrize("name", INVALID_UTF8)
def test_invalid_utf8(shop, product, name):
    for member in (b"receiver_name", b"receiver_mobile"):
        reply = send(
            shop, b'{"product_id":%d,"quantity":1,"%s":"a%sb"}' % (product, member, INVALID_UTF8[name])
        )
        assert reply.problem == "bad-request", str(reply)


@pytest.mark.parametrize("text", ["\\ud800", "\\udc00", "\\ud800x", "\\udc00\\ud800", "\\ud83e\\u0041"])
def test_lone_surrogates(shop, product, text):
    reply = send(shop, '{"product_id":%d,"quantity":1,"receiver_name":"%s"}' % (product, text))
    assert reply.problem == "bad-request", str(reply)


@pytest.mark.parametrize("member", ["receiver_name", "receiver_mobile"])
def test_escaped_nul(shop, product, member):
    """PostgreSQL's text cannot hold it, so it cannot be taken."""
    reply = send(shop, '{"product_id":%d,"quantity":1,"%s":"a\\u0000b"}' % (product, member))
    assert reply.problem in ("bad-request", "invalid-order"), str(reply)


def test_escaped_nul_in_a_member_name(shop, product):
    reply = send(shop, '{"product_id":%d,"quantity":1,"a\\u0000b":1}' % product)
    assert reply.problem == "bad-request", str(reply)


@pytest.mark.parametrize("depth", [3000, 10000])
def test_deep_nesting(shop, product, depth):
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        inner = opening * depth + "1" + closing * depth
        body = '{"product_id":%d,"quantity":1,"x":%s}' % (product, inner)
        expected = "bad-request" if len(body) <= BIG else "payload-too-large"
        assert send(shop, body).problem == expected
        reply = send(shop, opening * depth)
        assert reply.problem == "bad-request", str(reply)


@pytest.mark.parametrize(
    "body",
    [
        '{"product_id":%d,"quantity":1,"quantity":1}',
        '{"product_id":%d,"quantity":1,"quantity":2}',
        '{"product_id":%d,"product_id":2,"quantity":1}',
        '{"product_id":%d,"quantity":1,"x":{"a":1,"a":1}}',
        '{"product_id":%d,"quantity":1,"\\u0071uantity":5}',
    ],
)
def test_a_member_twice(shop, product, body):
    assert send(shop, body % product).problem == "bad-request"


# ── types and ranges ────────────────────────────────────────────────────────────────────────────────────────

NOT_AN_INTEGER = [
    "1.5",
    '"1"',
    "true",
    "false",
    "null",
    "[1]",
    "{}",
    "[]",
    '""',
    "1.0000000001",
    "-1.5",
    "1e400",
    '"abc"',
]
OUT_OF_RANGE = ["0", "-1", "-9223372036854775808"]
BEYOND_64_BITS = ["9223372036854775808", "-9223372036854775809", "18446744073709551617", "1" + "0" * 100]


@pytest.mark.parametrize("value", NOT_AN_INTEGER)
@pytest.mark.parametrize("member", ["product_id", "quantity"])
def test_not_an_integer(shop, product, member, value):
    body = {"product_id": str(product), "quantity": "1", member: value}
    reply = send(shop, "{" + ",".join(f'"{name}":{text}' for name, text in body.items()) + "}")
    assert reply.problem == "bad-request", str(reply)


@pytest.mark.parametrize("value", OUT_OF_RANGE + BEYOND_64_BITS)
@pytest.mark.parametrize("member", ["product_id", "quantity"])
def test_out_of_range(shop, product, member, value):
    body = {"product_id": str(product), "quantity": "1", member: value}
    reply = send(shop, "{" + ",".join(f'"{name}":{text}' for name, text in body.items()) + "}")
    allowed = ("bad-request", "invalid-order") if value in BEYOND_64_BITS else ("invalid-order",)
    assert reply.problem in allowed, str(reply)


@pytest.mark.parametrize("value", ["1000001", "2147483648", "4294967297", "9223372036854775807"])
def test_a_quantity_over_a_million(shop, product, value):
    """4294967297 is 1 to whoever cuts it to 32 bits."""
    assert send(shop, '{"product_id":%d,"quantity":%s}' % (product, value)).problem == "invalid-order"


def test_a_product_id_is_not_cut_to_32_bits(shop, product):
    assert shop.order(product + (1 << 32), 1).problem == "no-such-product"


@pytest.mark.parametrize("member", ["product_id", "quantity"])
def test_a_member_missing(shop, product, member):
    body = {"product_id": product, "quantity": 1}
    del body[member]
    assert shop.post("/orders", body).problem == "bad-request"


def test_an_empty_object(shop):
    for method, target in (
        ("POST", "/orders"),
        ("PUT", "/products/77"),
        ("POST", "/products/1/reset"),
        ("PUT", "/strategy"),
        ("POST", "/locks/door/hold"),
    ):
        assert shop.call(method, target, b"{}").problem == "bad-request"


@pytest.mark.parametrize("value", [1, 1.5, True, [], {}, ["a"]])
@pytest.mark.parametrize("member", ["receiver_name", "receiver_mobile"])
def test_a_receiver_that_is_not_text(shop, product, member, value):
    assert shop.order(product, 1, **{member: value}).problem == "bad-request"


def test_a_receiver_as_long_as_it_may_be(shop, product, nothing_is_sold):
    """Lengths are counted in characters, not in bytes."""
    order = shop.order(product, 1, receiver_name="ö" * 200, receiver_mobile="9" * 40)
    assert order.status == 201, str(order)
    nothing_is_sold.orders = 1
    assert shop.get(f"/orders/{order.json['id']}").json["receiver_name"] == "ö" * 200


@pytest.mark.parametrize(
    "member, length",
    [("receiver_name", 201), ("receiver_mobile", 41), ("receiver_name", 60000), ("receiver_mobile", 60000)],
)
def test_a_receiver_that_is_too_long(shop, product, member, length):
    assert shop.order(product, 1, **{member: "x" * length}).problem == "invalid-order"


def test_a_receiver_that_is_null_is_none(shop, product, nothing_is_sold):
    order = shop.order(product, 1, receiver_name=None, receiver_mobile=None)
    assert order.status == 201, str(order)
    nothing_is_sold.orders = 1
    assert shop.get(f"/orders/{order.json['id']}").json["receiver_name"] is None


def test_sql_in_a_name_stays_text(shop, product, nothing_is_sold):
    name = "'); DROP TABLE order_item; -- $1 %s {1,2} \\N"
    order = shop.order(product, 1, receiver_name=name).json
    nothing_is_sold.orders = 1
    assert shop.get(f"/orders/{order['id']}").json["receiver_name"] == name


@pytest.mark.parametrize(
    "body", [{"colour": "red"}, {"": 1}, {"x" * 5000: "y" * 5000}, {"__proto__": {}}, {"ID": None}]
)
def test_a_member_that_nobody_knows(shop, product, nothing_is_sold, body):
    """Refused or passed over, but always the same way and never a failure of the service."""
    replies = [shop.order(product, 1, **body) for _ in range(2)]
    nothing_is_sold.orders = sum(reply.status == 201 for reply in replies)
    assert replies[0].status == replies[1].status and replies[0].status in (201, 400), str(replies[0])


def test_whitespace_and_escapes_are_json_too(shop, product, nothing_is_sold):
    reply = send(shop, ' \r\n\t{ "\\u0070roduct_id" : %d ,\n"quantity":1\r}\n ' % product)
    assert reply.status == 201, str(reply)
    nothing_is_sold.orders = 1


def test_a_body_of_64_kib_is_taken_and_one_byte_more_is_not(shop, product, nothing_is_sold):
    body = json.dumps({"product_id": product, "quantity": 1}).encode()
    assert send(shop, body + b" " * (BIG - len(body))).status == 201
    nothing_is_sold.orders = 1
    assert send(shop, body + b" " * (BIG + 1 - len(body))).problem == "payload-too-large"


# ── products, reset, strategy ───────────────────────────────────────────────────────────────────────────────


def test_products_are_created_and_replaced(shop):
    new = next_free_id()
    created = shop.put(f"/products/{new}", {"name": "Tee", "price": "19.90", "stock": 5})
    assert (created.status, created.header("Location")) == (201, f"/products/{new}")
    replaced = shop.put(f"/products/{new}", {"name": "Täschchen", "price": "21", "stock": 7})
    assert replaced.status == 200, str(replaced)
    read = shop.get(f"/products/{new}").json
    assert (read["id"], read["name"], read["price"], read["stock"], read["kind"]) == (
        new,
        "Täschchen",
        "21.00",
        7,
        "counter",
    )
    assert read in shop.get("/products").json["products"]


def test_a_replaced_product_keeps_balanced_books(shop):
    new = shop.product(stock=10)
    shop.order(new, 4)
    assert shop.put(f"/products/{new}", {"name": "more", "price": "1.00", "stock": 50}).status == 200
    audit = shop.audit(new)
    assert (audit["left"], audit["sold"], audit["drift"], audit["oversold"], audit["balanced"]) == (
        50,
        4,
        0,
        0,
        True,
    )


PRODUCT = {"name": "Tee", "price": "19.90", "stock": 5}


@pytest.mark.parametrize(
    "member, values, problem",
    [
        ("name", [1, None, True, [], {}], "bad-request"),
        ("name", ["", "x" * 201, "x" * 50000], "invalid-order"),
        ("price", [19.9, 20, None, True, []], "bad-request"),
        (
            "price",
            [
                "",
                "x",
                "-1",
                "-0.01",
                "1.999",
                "1e3",
                "NaN",
                "Infinity",
                " 1",
                "1 ",
                "1,50",
                ".",
                "0x10",
                "--1",
                "99999999999",
                "1" * 1000,
                "1;",
                "١.٠٠",
            ],
            ("bad-request", "invalid-order"),
        ),
        ("stock", [1.5, "1", True, None, []], "bad-request"),
        ("stock", [-1, -9223372036854775808, 1000000000001, 9223372036854775807], "invalid-order"),
        ("stock", [9223372036854775808, 10**100], ("bad-request", "invalid-order")),
    ],
)
def test_a_bad_product(shop, member, values, problem):
    new = next_free_id()
    for value in values:
        reply = shop.put(f"/products/{new}", {**PRODUCT, member: value})
        allowed = problem if isinstance(problem, tuple) else (problem,)
        assert reply.problem in allowed, f"{member} {value!r}: {reply}"
    reply = shop.put(f"/products/{new}", {name: value for name, value in PRODUCT.items() if name != member})
    assert reply.problem == "bad-request", f"without {member}: {reply}"
    assert shop.get(f"/products/{new}").problem == "no-such-product"


def test_a_reset_starts_again(shop):
    new = shop.product(stock=3)
    old = shop.order(new, 3).json
    shop.reset(new, 8)
    audit = shop.audit(new)
    assert (audit["initial"], audit["left"], audit["sold"], audit["orders"], audit["strategies"]) == (
        8,
        8,
        0,
        0,
        [],
    )
    assert shop.get(f"/orders/{old['id']}").problem == "no-such-order"
    assert shop.order(new, 8).status == 201
    assert shop.reset(new, 0, kind="counter")["stock"] == 0


@pytest.mark.parametrize(
    "body, problem",
    [
        ({}, "bad-request"),
        ({"stock": None}, "bad-request"),
        ({"stock": "5"}, "bad-request"),
        ({"stock": 1.5}, "bad-request"),
        ({"stock": True}, "bad-request"),
        ({"stock": 5, "kind": 1}, "bad-request"),
        ({"stock": -1}, "invalid-order"),
        ({"stock": 1000000000001}, "invalid-order"),
        ({"stock": 5, "kind": "barrels"}, "invalid-order"),
        ({"stock": 5, "kind": ""}, "invalid-order"),
    ],
)
def test_a_bad_reset(shop, product, body, problem):
    reply = shop.post(f"/products/{product}/reset", body)
    assert reply.problem == problem, str(reply)


def test_a_reset_of_nothing(shop):
    assert shop.post(f"/products/{next_free_id()}/reset", {"stock": 1}).problem == "no-such-product"


@pytest.mark.parametrize(
    "body, problem",
    [
        ({"name": "nobody"}, "invalid-order"),
        ({"name": ""}, "invalid-order"),
        ({"name": "x" * 5000}, "invalid-order"),
        ({"name": "MUTEX"}, "invalid-order"),
        ({"name": "mutex\u0000"}, ("bad-request", "invalid-order")),
        ({"name": 1}, "bad-request"),
        ({"name": None}, "bad-request"),
        ({"name": ["mutex"]}, "bad-request"),
        ({"think_ms": 1}, "bad-request"),
        *[
            ({"name": "mutex", member: value}, "bad-request")
            for member in ("lock_ttl_ms", "lock_wait_ms", "think_ms")
            for value in (1.5, "1", True, None, [])
        ],
        *[
            ({"name": "mutex", member: value}, "invalid-order")
            for member in ("lock_ttl_ms", "lock_wait_ms", "think_ms")
            for value in (-1, 9223372036854775807)
        ],
        ({"name": "mutex", "lock_ttl_ms": 0}, "invalid-order"),
    ],
)
def test_a_bad_strategy(shop, body, problem):
    before = shop.get("/strategy").json
    reply = shop.put("/strategy", body)
    assert reply.problem in (problem if isinstance(problem, tuple) else (problem,)), f"{body}: {reply}"
    assert shop.get("/strategy").json == before, "a refused switch changed something"


def test_a_switch_keeps_what_it_does_not_name(shop):
    before = shop.get("/strategy").json
    try:
        now = shop.strategy("select-for-update", lock_wait_ms=1234, lock_ttl_ms=4321, think_ms=0)
        assert (now["name"], now["lock_wait_ms"], now["lock_ttl_ms"]) == ("select-for-update", 1234, 4321)
        assert shop.strategy("optimistic")["lock_wait_ms"] == 1234
        assert shop.get("/strategy").json == {**now, "name": "optimistic"}
    finally:
        shop.strategy(
            before["name"], **{name: before[name] for name in ("lock_wait_ms", "lock_ttl_ms", "think_ms")}
        )


# ── media types ─────────────────────────────────────────────────────────────────────────────────────────────

BODIES = [
    ("POST", "/orders"),
    ("PUT", "/products/77"),
    ("POST", "/products/1/reset"),
    ("PUT", "/strategy"),
    ("POST", "/locks/door/hold"),
]


@pytest.mark.parametrize("method, target", BODIES)
@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/jsonx",
        "application/json5",
        "json",
        "*/*",
        "application/",
        "text/json",
        "application/problem+json",
        "text/plain; application/json",
    ],
)
def test_another_media_type(shop, method, target, kind):
    reply = shop.call(method, target, b'{"product_id":1,"quantity":1}', {"Content-Type": kind})
    assert reply.problem == "unsupported-media-type", str(reply)


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "Application/JSON",
        'application/json ; charset="utf-8"',
        "application/json;v=1",
    ],
)
def test_json_with_parameters(shop, product, nothing_is_sold, kind):
    reply = shop.post("/orders", {"product_id": product, "quantity": 1}, {"Content-Type": kind})
    assert reply.status == 201, str(reply)
    nothing_is_sold.orders = 1


def test_a_get_needs_no_media_type(shop):
    with shop.wire() as wire:
        wire.send(request_bytes("GET", "/products/1"))
        assert wire.reply().status == 200
