#!/usr/bin/python3
"""A small shop: POST /orders sells units of a product, protected as the environment variable PROTECTION says.

    naive          reads the stock, and writes what is left: two orders can read the same stock
    for-update     locks the product's row while it reads: SELECT ... FOR UPDATE
    statement      takes the units in one statement, which also inserts the order
    decrement      takes the units by an UPDATE that checks the stock itself
    synchronized   as naive, under a lock in this process: a second process has another lock
    redis-setnx    as naive, under a key in Redis that expires: an order that takes longer than the key is not alone
    redis-lock     the same, and the key is deleted only by its owner; it still expires

POOL is the number of connections to PostgreSQL; 0: a new one for each order. LOCK_MS is how long the key in Redis lives. libpq's
variables (PGHOST and so on) say where PostgreSQL is."""

import contextlib
import http.server
import json
import os
import queue
import threading
import time
import uuid

import psycopg2

PROTECTION = os.environ.get("PROTECTION", "naive")
POOL = int(os.environ.get("POOL", "10"))
LOCK_MS = int(os.environ.get("LOCK_MS", "2000"))
LOCK_WAIT_S = 10

idle = queue.LifoQueue()
slots = threading.BoundedSemaphore(POOL) if POOL else None
process_lock = threading.Lock()


@contextlib.contextmanager
def connection():
    """A connection to PostgreSQL in a transaction, which commits at the end, and rolls back after an error."""
    if slots:
        slots.acquire()
    opened = None
    try:
        try:
            opened = idle.get_nowait()
        except queue.Empty:
            opened = psycopg2.connect("")
        with opened:
            yield opened.cursor()
    finally:
        if slots and opened and not opened.closed:
            idle.put(opened)
        elif opened:
            opened.close()
        if slots:
            slots.release()


class SoldOut(Exception):
    pass


class Busy(Exception):
    pass


def insert_order(cursor, product, quantity):
    cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s) RETURNING id", (product, quantity))
    return cursor.fetchone()[0]


def read_and_write(product, quantity, select="SELECT count FROM product WHERE id = %s"):
    with connection() as cursor:
        cursor.execute(select, (product,))
        (left,) = cursor.fetchone()
        if left < quantity:
            raise SoldOut
        cursor.execute("UPDATE product SET count = %s WHERE id = %s", (left - quantity, product))
        return insert_order(cursor, product, quantity)


def for_update(product, quantity):
    return read_and_write(product, quantity, "SELECT count FROM product WHERE id = %s FOR UPDATE")


def statement(product, quantity):
    with connection() as cursor:
        cursor.execute(
            "WITH taken AS (UPDATE product SET count = count - %s WHERE id = %s AND count >= %s RETURNING id)"
            " INSERT INTO order_item (product_id, quantity) SELECT id, %s FROM taken RETURNING id",
            (quantity, product, quantity, quantity),
        )
        row = cursor.fetchone()
        if not row:
            raise SoldOut
        return row[0]


def decrement(product, quantity):
    with connection() as cursor:
        cursor.execute("UPDATE product SET count = count - %s WHERE id = %s AND count >= %s", (quantity, product, quantity))
        if cursor.rowcount == 0:
            raise SoldOut
        return insert_order(cursor, product, quantity)


def synchronized(product, quantity):
    with process_lock:
        return read_and_write(product, quantity)


def under_redis(release):
    import redis

    server = redis.Redis.from_url(os.environ["REDIS_URL"])

    def order(product, quantity):
        key, owner, end = f"lock:product:{product}", uuid.uuid4().hex, time.monotonic() + LOCK_WAIT_S
        while not server.set(key, owner, nx=True, px=LOCK_MS):
            if time.monotonic() > end:
                raise Busy
            time.sleep(0.002)
        try:
            return read_and_write(product, quantity)
        finally:
            release(server, key, owner)

    return order


def delete_any(server, key, _):
    server.delete(key)


def delete_own(server, key, owner):
    server.eval("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end", 1, key, owner)


PROTECTIONS = {
    "naive": lambda: read_and_write,
    "for-update": lambda: for_update,
    "statement": lambda: statement,
    "decrement": lambda: decrement,
    "synchronized": lambda: synchronized,
    "redis-setnx": lambda: under_redis(delete_any),
    "redis-lock": lambda: under_redis(delete_own),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet, so that no client waits 40 ms for an ACK

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def do_GET(self):
        self.answer(200 if self.path == "/healthz" else 404, {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/orders":
            self.answer(404, {})
            return
        try:
            self.answer(201, {"order_id": place_order(body["product_id"], body["quantity"])})
        except SoldOut:
            self.answer(409, {"error": "sold out"})
        except Busy:
            self.answer(503, {"error": "busy"})
        except psycopg2.Error as error:
            self.answer(500, {"error": str(error).strip()})

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


if __name__ == "__main__":
    if PROTECTION not in PROTECTIONS:
        raise SystemExit(f"PROTECTION must be one of {', '.join(PROTECTIONS)}, not {PROTECTION}")
    place_order = PROTECTIONS[PROTECTION]()
    Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
