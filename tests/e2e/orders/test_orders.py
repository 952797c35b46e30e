"""Orders: placed, read back, paged, refused; what is sold is counted to the unit."""

import re
from datetime import datetime, timedelta, timezone

from lab import expect_balanced, hammer, next_free_id, number, psql


def test_the_shop_opens_with_one_product_of_stock_100(services, database):
    service = services.start(database)
    products = service.get("/products").json["products"]
    assert [(product["id"], product["stock"], product["kind"]) for product in products] == [
        (1, 100, "counter")
    ]
    assert service.get("/strategy").json["name"] == "atomic-decrement"


def test_an_order_says_what_was_sold(shop):
    product = shop.product(stock=10, price="19.90")
    before = datetime.now(timezone.utc)
    reply = shop.order(product, 2, receiver_name="Ada Lovelace", receiver_mobile="+44 20 7946 0000")
    assert reply.status == 201, str(reply)
    order = reply.json
    assert {name: order[name] for name in ("product_id", "quantity", "amount", "status", "strategy")} == {
        "product_id": product,
        "quantity": 2,
        "amount": "39.80",
        "status": "pending",
        "strategy": "atomic-decrement",
    }
    assert reply.header("Location") == f"/orders/{order['id']}"
    assert reply.header("Idempotency-Replayed") is None
    created = datetime.fromisoformat(order["created_at"].replace("Z", "+00:00"))
    assert abs(created - before) < timedelta(seconds=10), f"created at {created}, it is {before}"


def test_an_order_reads_back_with_its_items(shop):
    product = shop.product(stock=10, price="7.05")
    order = shop.order(
        product, 3, "read-write", receiver_name="Zoë 🦊 \"O'Neil\" \\ / \t", receiver_mobile=""
    ).json
    read = shop.get(f"/orders/{order['id']}").json
    assert {name: read[name] for name in order} == order
    assert read["receiver_name"] == "Zoë 🦊 \"O'Neil\" \\ / \t"
    assert read["receiver_mobile"] in ("", None)
    (item,) = read["items"]
    wanted = {
        "product_id": product,
        "quantity": 3,
        "price": "7.05",
        "strategy": "read-write",
        "stock_seen": 10,
        "instance": shop.name,
    }
    assert {name: item[name] for name in wanted} == wanted
    assert item["read_at"] and item["committed_at"], f"{item}"
    assert item["read_at"] < item["committed_at"], f"{item}"


def test_a_receiver_is_optional(shop):
    order = shop.order(shop.product(), 1).json
    read = shop.get(f"/orders/{order['id']}").json
    assert (read["receiver_name"], read["receiver_mobile"]) == (None, None)


def test_money_is_exact(shop):
    for price, quantity, amount in (
        ("0.10", 3, "0.30"),
        ("9999999999.99", 1000000, "9999999999990000.00"),
        ("0.00", 7, "0.00"),
        ("0.01", 1, "0.01"),
        ("19.9", 10, "199.00"),
        ("12345678.91", 99, "1222222212.09"),
    ):
        order = shop.order(shop.product(stock=1000000, price=price), quantity)
        assert order.status == 201, str(order)
        assert order.json["amount"] == amount, f"{quantity} × {price}"


def test_the_strategy_of_one_order_does_not_change_the_current_one(shop):
    product = shop.product()
    assert shop.order(product, 1, "select-for-update").json["strategy"] == "select-for-update"
    assert shop.order(product, 1).json["strategy"] == "atomic-decrement"
    assert shop.get("/strategy").json["name"] == "atomic-decrement"


def test_one_unit_left_and_two_wanted(shop):
    product = shop.product(stock=3)
    assert shop.order(product, 2).status == 201
    refused = shop.order(product, 2)
    assert (refused.problem, refused.json["available"]) == ("sold-out", 1)
    assert shop.order(product, 1).status == 201
    refused = shop.order(product, 1)
    assert (refused.problem, refused.json["available"]) == ("sold-out", 0)
    audit = shop.audit(product)
    assert (audit["sold"], audit["left"], audit["orders"], audit["balanced"]) == (3, 0, 2, True)


def test_the_whole_stock_in_one_order(shop):
    product = shop.product(stock=1000000)
    assert shop.order(product, 1000000).status == 201
    assert shop.order(product, 1).problem == "sold-out"


def test_no_stock_at_all(shop):
    refused = shop.order(shop.product(stock=0), 1)
    assert (refused.problem, refused.json["available"]) == ("sold-out", 0)


def test_products_do_not_share_stock(shop):
    one, two = shop.product(stock=1), shop.product(stock=1)
    assert shop.order(one).status == 201
    assert shop.order(one).problem == "sold-out"
    assert shop.order(two).status == 201


def test_no_such_product(shop):
    reply = shop.order(next_free_id(), 1)
    assert reply.problem == "no-such-product", str(reply)
    assert shop.order(9223372036854775807, 1).problem == "no-such-product"


def test_no_such_order(shop):
    for order in (999999999, 9223372036854775807):
        assert shop.get(f"/orders/{order}").problem == "no-such-order"


def test_pages_by_id(shop):
    product, other = shop.product(stock=50), shop.product()
    ids = []
    for _ in range(7):
        ids.append(shop.order(product, 1).json["id"])
        shop.order(other, 1)
    first = shop.get(f"/orders?product_id={product}&limit=3").json
    assert ([order["id"] for order in first["orders"]], first["next"]) == (ids[:3], ids[2])
    second = shop.get(f"/orders?product_id={product}&limit=3&after={first['next']}").json
    assert ([order["id"] for order in second["orders"]], second["next"]) == (ids[3:6], ids[5])
    third = shop.get(f"/orders?product_id={product}&limit=3&after={second['next']}").json
    assert ([order["id"] for order in third["orders"]], third["next"]) == (ids[6:], None)
    assert {order["product_id"] for order in first["orders"] + second["orders"]} == {product}
    both = [order["id"] for order in shop.get(f"/orders?after={ids[0] - 1}&limit=1000").json["orders"]]
    assert both == sorted(both) and set(ids) < set(both)


def test_a_page_is_of_100_orders_and_at_most_1000(shop):
    product = shop.product(stock=2000)
    url = shop.database_url
    psql(
        url,
        "WITH o AS (INSERT INTO orders (amount, created_by, updated_by)"
        " SELECT 19.90, 'test', 'test' FROM generate_series(1, 1005) RETURNING id)"
        " INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance,"
        f" stock_xid, created_by, updated_by) SELECT id, {product}, 19.90, 1, 'test', 'test',"
        " pg_current_xact_id(), 'test', 'test' FROM o",
    )
    assert len(shop.get(f"/orders?product_id={product}").json["orders"]) == 100
    page = shop.get(f"/orders?product_id={product}&limit=1000").json
    assert len(page["orders"]) == 1000
    assert len(shop.get(f"/orders?product_id={product}&limit=1000&after={page['next']}").json["orders"]) == 5
    empty = shop.get(f"/orders?product_id={product}&after=9223372036854775807").json
    assert empty == {"orders": [], "next": None}


def test_a_page_of_a_product_that_sold_nothing(shop):
    assert shop.get(f"/orders?product_id={shop.product()}").json == {"orders": [], "next": None}
    assert shop.get(f"/orders?product_id={next_free_id()}").json == {"orders": [], "next": None}


def test_many_clients_and_quantities_leave_nothing_over(shop):
    product = shop.product(stock=97)
    load = hammer([shop], product, threads=16, quantities=(3, 1, 2, 5))
    audit = expect_balanced(shop, product, load, 97)
    assert (audit["left"], audit["sold"]) == (0, 97)
    assert (
        number(
            shop.database_url,
            "SELECT count(*) FROM orders o LEFT JOIN order_item i ON i.order_id = o.id"
            " WHERE i.order_id IS NULL",
        )
        == 0
    )
    amounts = psql(
        shop.database_url,
        "SELECT DISTINCT o.amount = i.purchase_price * i.purchase_num FROM orders o"
        f" JOIN order_item i ON i.order_id = o.id WHERE i.product_id = {product}",
    )
    assert amounts == [["t"]]


def test_request_ids_of_orders_differ(shop):
    product = shop.product()
    ids = {shop.order(product).header("X-Request-Id") for _ in range(20)}
    assert len(ids) == 20, f"{ids}"
    assert all(re.fullmatch("[!-~]+", value) for value in ids), f"{ids}"


def test_a_sold_out_answer_has_the_status_that_is_preferred(shop):
    product = shop.product(stock=1)
    body = {"product_id": product, "quantity": 2}
    usual = shop.post("/orders", body)
    assert (usual.status, usual.problem, usual.header("Preference-Applied")) == (409, "sold-out", None), str(usual)
    asked = shop.post("/orders", body, {"Prefer": "sold-out=200"})
    assert (asked.status, asked.media_type) == (200, "application/problem+json"), str(asked)
    without_id = [{name: value for name, value in reply.json.items() if name != "request_id"} for reply in (usual, asked)]
    assert without_id[0] == without_id[1], "the problem is the same"
    assert shop.post("/orders", body, {"Prefer": "return=minimal"}).status == 409, "other preferences change nothing"
    assert shop.post("/orders", {**body, "quantity": 1}, {"Prefer": "sold-out=200"}).status == 201
    assert shop.post("/orders", {**body, "product_id": 999999999}, {"Prefer": "sold-out=200"}).status == 404
