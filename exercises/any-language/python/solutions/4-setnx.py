"""One command sets the key, its owner and its expiry. A script compares the owner and deletes the key, on every path."""

import secrets
import time

from servers import redis, transaction

RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


def read_and_write(product, quantity):
    with transaction() as cursor:
        cursor.execute("SELECT count FROM product WHERE id = %s", (product,))
        count = cursor.fetchone()[0]
        if count < quantity:
            raise LookupError("sold out")
        cursor.execute("UPDATE product SET count = %s WHERE id = %s", (count - quantity, product))
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))


def order(product, quantity):
    key, owner = f"lock:{product}", secrets.token_hex(8)
    with redis() as server:
        while not server.set(key, owner, nx=True, px=2000):
            time.sleep(0.01)
        try:
            read_and_write(product, quantity)
        except LookupError:
            return False
        finally:
            server.eval(RELEASE, 1, key, owner)
        return True
