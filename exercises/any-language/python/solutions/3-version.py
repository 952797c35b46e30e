"""Each write changes the version, and an order that finds another version reads again in a new transaction."""

from servers import transaction

SOLD, SOLD_OUT, CONFLICT = range(3)


def attempt(product, quantity):
    with transaction() as cursor:
        cursor.execute("SELECT count, version FROM product WHERE id = %s", (product,))
        count, version = cursor.fetchone()
        if count < quantity:
            return SOLD_OUT
        cursor.execute(
            "UPDATE product SET count = %s, version = version + 1 WHERE id = %s AND version = %s", (count - quantity, product, version)
        )
        if cursor.rowcount == 0:
            return CONFLICT
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        return SOLD


def order(product, quantity):
    for _ in range(100):
        result = attempt(product, quantity)
        if result != CONFLICT:
            return result == SOLD
    raise TimeoutError("100 other orders came first")
