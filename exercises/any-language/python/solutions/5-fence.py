"""The order stores its token in the row before it reads, and writes only if the row still has that token."""

import secrets
import time

from servers import redis, transaction

GRANT = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 2000) then return redis.call('INCR', KEYS[2]) end return 0"
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class LeaseLost(Exception):
    pass


def order_with(token, product, quantity):
    with transaction() as cursor:  # commits, so that others see the token before this order reads
        cursor.execute("UPDATE product SET fence = %s WHERE id = %s AND fence < %s", (token, product, token))
        if cursor.rowcount == 0:
            raise LeaseLost
    with transaction() as cursor:
        cursor.execute("SELECT count FROM product WHERE id = %s", (product,))
        count = cursor.fetchone()[0]
        if count < quantity:
            return False
        cursor.execute("UPDATE product SET count = %s WHERE id = %s AND fence = %s", (count - quantity, product, token))
        if cursor.rowcount == 0:
            raise LeaseLost
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        return True


def order(product, quantity):
    key, owner = f"lock:{product}", secrets.token_hex(8)
    with redis() as server:
        while not (token := server.eval(GRANT, 2, key, f"token:{product}", owner)):
            time.sleep(0.01)
        try:
            return order_with(token, product, quantity)
        finally:
            server.eval(RELEASE, 1, key, owner)
