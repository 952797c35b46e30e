"""Exercise 3: write only if the row has not changed since the read. This order() has two bugs: it sells an order
that should fail, and it refuses an order that it could sell."""

from servers import transaction


def order(product, quantity):
    with transaction() as cursor:
        cursor.execute("SELECT count, version FROM product WHERE id = %s", (product,))
        count, version = cursor.fetchone()
        if count < quantity:
            return False
        cursor.execute("UPDATE product SET count = %s WHERE id = %s AND version = %s", (count - quantity, product, version))
        if cursor.rowcount == 0:
            return False
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        return True
