"""Exercise 3: write only if the row has not changed since the read. Two bugs: an order that should fail is sold, and one that should be
sold fails."""

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
