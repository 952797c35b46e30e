"""Exercise 4: a lock that is a key in Redis. What happens to the key if its holder crashes? Which order may delete it?"""

import time

from servers import redis, transaction


def read_and_write(product, quantity):
    with transaction() as cursor:
        cursor.execute("SELECT count FROM product WHERE id = %s", (product,))
        count = cursor.fetchone()[0]
        if count < quantity:
            raise LookupError("sold out")
        cursor.execute("UPDATE product SET count = %s WHERE id = %s", (count - quantity, product))
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))


def order(product, quantity):
    key = f"lock:{product}"
    with redis() as server:
        while not server.setnx(key, "locked"):
            time.sleep(0.01)
        server.pexpire(key, 2000)
        try:
            read_and_write(product, quantity)
        except LookupError:
            return False
        finally:
            server.delete(key)
        return True
