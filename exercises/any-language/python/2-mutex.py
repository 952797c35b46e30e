"""Exercise 2: a mutex around an order, for one process. Does it cover every step?"""

import threading

from servers import transaction

mutex = threading.Lock()


def order(product, quantity):
    with transaction() as cursor, mutex:
        cursor.execute("SELECT count FROM product WHERE id = %s", (product,))
        count = cursor.fetchone()[0]
        if count < quantity:
            return False
        cursor.execute("UPDATE product SET count = %s WHERE id = %s", (count - quantity, product))
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        return True
