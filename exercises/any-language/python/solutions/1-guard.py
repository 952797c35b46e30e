"""The UPDATE checks the newest version of the row, and the number of rows is the answer."""

from servers import transaction


def order(product, quantity):
    with transaction() as cursor:
        cursor.execute("UPDATE product SET count = count - %s WHERE id = %s AND count >= %s", (quantity, product, quantity))
        if cursor.rowcount == 0:
            return False
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        return True
