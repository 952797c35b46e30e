"""Exercise 1: the program checks the stock, then the database subtracts. Change the order so that the UPDATE does both."""

from servers import transaction


def order(product, quantity):
    with transaction() as cursor:
        cursor.execute("SELECT count FROM product WHERE id = %s", (product,))
        if cursor.fetchone()[0] < quantity:
            return False
        cursor.execute("UPDATE product SET count = count - %s WHERE id = %s", (quantity, product))
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        return True
