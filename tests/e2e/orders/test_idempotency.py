"""Idempotency-Key: one order for one key, however often and wherever it is asked for."""

import uuid

import pytest

from lab import (
    Background,
    as_body,
    holding_row,
    hammer,
    number,
    request_bytes,
    together,
    wait_until,
    waiting_backends,
)
from promises import FEW_ARE_SHORT, STRATEGIES


def new_key():
    return f"key {uuid.uuid4()}".replace(" ", "-")


@pytest.mark.parametrize("strategy", FEW_ARE_SHORT)
def test_a_retry_gives_the_first_order_again(pair, strategy):
    """At once, under another strategy, and from the other process."""
    one, two = pair
    product, key = one.product(stock=10, strategy=strategy), new_key()
    first = one.order(product, 2, strategy, key=key, receiver_name="Ada")
    assert (first.status, first.header("Idempotency-Replayed")) == (201, None), str(first)
    for service, name in ((one, strategy), (two, strategy), (two, "select-for-update"), (one, None)):
        again = service.order(product, 2, name, key=key, receiver_name="Ada")
        assert (again.status, again.header("Idempotency-Replayed")) == (201, "true"), str(again)
        assert again.json == first.json
        assert again.header("Location") == first.header("Location")
    audit = two.audit(product)
    assert (audit["orders"], audit["sold"], audit["left"], audit["balanced"]) == (1, 2, 8, True), f"{audit}"


def test_another_key_is_another_order(pair):
    product = pair[0].product(stock=10)
    ids = {pair[0].order(product, 1, key=new_key()).json["id"] for _ in range(5)}
    assert len(ids) == 5


def test_no_key_is_no_promise(pair):
    product = pair[0].product(stock=10)
    assert pair[0].order(product).json["id"] != pair[0].order(product).json["id"]


@pytest.mark.parametrize(
    "other",
    [
        {"quantity": 3},
        {"receiver_name": "Bob"},
        {"receiver_name": None},
        {"receiver_mobile": "1"},
        {"product": "other"},
    ],
)
def test_the_same_key_for_another_order(pair, other):
    one, two = pair
    product, key = one.product(stock=10), new_key()
    asked = {"quantity": 2, "receiver_name": "Ada"}
    assert one.order(product, key=key, **asked).status == 201
    asked.update(other)
    elsewhere = one.product(stock=10) if asked.pop("product", None) else product
    asked = {name: value for name, value in asked.items() if value is not None}
    for service in pair:
        reply = service.order(elsewhere, key=key, **asked)
        assert reply.problem == "idempotency-mismatch", str(reply)
    assert two.audit(product)["orders"] == 1


def test_only_created_orders_are_remembered(pair):
    one, _ = pair
    product, key = one.product(stock=1), new_key()
    assert one.order(product, 2, key=key).problem == "sold-out"
    one.reset(product, 5)
    first = one.order(product, 2, key=key)
    assert (first.status, first.header("Idempotency-Replayed")) == (201, None), str(first)


def test_a_retry_of_the_last_unit_is_not_sold_out(pair):
    product, key = pair[0].product(stock=1), new_key()
    first = pair[0].order(product, 1, key=key)
    assert first.status == 201
    assert pair[0].order(product, 1).problem == "sold-out"
    assert pair[1].order(product, 1, key=key).json == first.json


@pytest.mark.parametrize(
    "strategy",
    [
        "atomic-decrement",
        "atomic-statement",
        "select-for-update",
        "mutex",
        "optimistic",
        "serializable",
        "reentrant-mutex",
    ],
)
def test_the_first_is_still_running(pair, strategy):
    """The first order waits for its row; meanwhile its key is in progress, here and in the other process."""
    one, two = pair
    product, key = one.product(stock=10), new_key()
    with holding_row(one.database_url, product) as row:
        first = Background(lambda: one.order(product, 1, strategy, key=key))
        wait_until(lambda: waiting_backends(one.database_url) == 1, "the first order waits for the row")
        reply = two.order(product, 1, strategy, key=key)
        assert reply.problem == "idempotency-in-progress", str(reply)
        reply = two.order(product, 1, "advisory-lock", key=key)
        assert reply.problem == "idempotency-in-progress", str(reply)
        # With a mutex it waits for the mutex before it can know, and in turn for the order before it.
        if strategy in ("optimistic", "serializable"):
            reply = one.order(product, 1, strategy, key=key)
            assert reply.problem == "idempotency-in-progress", str(reply)
        assert first.running
        row.run("ROLLBACK")
        order = first.result()
    assert order.status == 201, str(order)
    for service in pair:
        assert service.order(product, 1, strategy, key=key).json == order.json
    assert one.audit(product)["orders"] == 1


def test_the_first_thinks_for_a_while(pair):
    one, two = pair
    product, key = one.product(stock=10), new_key()
    before = one.get("/strategy").json
    one.strategy("select-for-update", think_ms=700)
    try:
        first = Background(lambda: one.order(product, 1, key=key))
        wait_until(
            lambda: number(
                one.database_url,
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in"
                " transaction' AND datname = current_database()",
            )
            == 1,
            "it thinks",
        )
        for service in pair:
            assert service.order(product, 1, key=key).problem == "idempotency-in-progress"
        assert first.running
        order = first.result()
        assert order.status == 201, str(order)
    finally:
        one.strategy(before["name"], think_ms=before["think_ms"])


@pytest.mark.parametrize(
    "strategy", ["atomic-decrement", "atomic-statement", "select-for-update", "mutex", "check-constraint"]
)
def test_sixteen_at_once_make_one_order(pair, strategy):
    """Whoever is not told the order is told that it is in progress."""
    product, key = pair[0].product(stock=10), new_key()
    replies = together(
        *[lambda service=pair[index % 2]: service.order(product, 1, strategy, key=key) for index in range(16)]
    )
    orders = [reply for reply in replies if reply.status == 201]
    others = {reply.problem for reply in replies if reply.status != 201}
    assert others <= {"idempotency-in-progress"}, f"{others}"
    assert len({order.json["id"] for order in orders}) == 1, f"{[order.json for order in orders]}"
    assert (
        sum(order.header("Idempotency-Replayed") is None for order in orders) == 1
    ), "one of them is the first"
    audit = pair[0].audit(product)
    assert (audit["orders"], audit["left"], audit["balanced"]) == (1, 9, True), f"{audit}"


@pytest.mark.parametrize("key", ["k", "k" * 255, "!~", "\"quoted\"", "a,b;c=d", "%00", "';DROP--"])
def test_keys_that_are_taken(pair, key):
    product = pair[0].product(stock=10)
    stored = number(pair[0].database_url, "SELECT count(*) FROM orders WHERE idempotency_key IS NOT NULL")
    assert pair[0].order(product, 1, key=key).status == 201
    assert (
        number(pair[0].database_url, "SELECT count(*) FROM orders WHERE idempotency_key IS NOT NULL")
        == stored + 1
    )


@pytest.mark.parametrize(
    "key", ["", "k" * 256, "k" * 4000, "two words", "tab\there", "ümlaut", "\x7f", "a\x01b", "\xff"]
)
def test_keys_that_are_refused(pair, key):
    product = pair[0].product(stock=10)
    reply = pair[0].post("/orders", {"product_id": product, "quantity": 1}, {"Idempotency-Key": key})
    assert reply.problem == "bad-request", str(reply)
    assert pair[0].audit(product)["orders"] == 0


def test_two_keys_at_once_are_refused(pair):
    product = pair[0].product(stock=10)
    with pair[0].wire() as wire:
        wire.send(
            request_bytes(
                "POST",
                "/orders",
                as_body({"product_id": product, "quantity": 1}),
                [("Idempotency-Key", "one-" + new_key()), ("Idempotency-Key", "two-" + new_key())],
            )
        )
        reply = wire.reply()
    assert reply.problem == "bad-request", str(reply)
    assert pair[0].audit(product)["orders"] == 0


def test_keys_do_not_slow_down_the_books(pair):
    """Orders with and without keys side by side still balance."""
    product = pair[0].product(stock=30)
    keyed = [new_key() for _ in range(10)]
    load, *replies = together(
        lambda: hammer(pair, product, threads=6),
        *[lambda key=key: pair[0].order(product, 1, key=key) for key in keyed],
    )
    created = [reply for reply in replies if reply.status == 201]
    audit = pair[0].audit(product)
    assert audit["sold"] == load.sold + len(created) == 30, f"{audit}"
    assert audit["balanced"], f"{audit}"
