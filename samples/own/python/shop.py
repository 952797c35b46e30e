#!/usr/bin/python3
"""A small checkout in Python, with the usual drivers: http.server, psycopg2, and Redis over a socket. PROTECTION chooses how it protects
the stock. `loadtest check` shows which of these ways oversell.

    loadtest check samples/own/python/shop.json --env PROTECTION=for-update

PROTECTION    naive: reads the stock, then writes it; for-update: the same with SELECT ... FOR UPDATE;
              statement: one statement does all; decrement: UPDATE ... WHERE count >= quantity, then the order;
              synchronized: naive inside a lock of this process; redis-lock: naive inside a lock in Redis;
              redis-setnx: the same, but the release deletes the key of any owner;
              redis-fenced: redis-lock, and the row refuses an order whose lock has ended (default: naive)
POOL          connections to the database; 0: one for each request (default: 10)
LEASE_MS      time to live of a lock in Redis, in ms (default: 10000)
DATABASE_URL, REDIS_URL, PORT   addresses; Redis is only needed for its locks

POST /orders with {"product_id":1,"quantity":1} answers 201, or 409 if there are not enough units."""

import contextlib
import json
import os
import queue
import secrets
import socket
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2

PROTECTION = os.environ.get("PROTECTION", "naive")
POOL = int(os.environ.get("POOL", "10"))
LEASE_MS = int(os.environ.get("LEASE_MS", "10000"))
LOCK_WAIT_S = 30

# ---- connections ------------------------------------------------------------------------------------

idle = queue.LifoQueue()
for _ in range(POOL):
    idle.put(None)  # connects when it is first needed


@contextlib.contextmanager
def transaction():
    """Yields a cursor. COMMIT at the end; ROLLBACK after an exception."""
    connection = idle.get() if POOL else None
    try:
        if connection is None or connection.closed:
            connection = psycopg2.connect(os.environ["DATABASE_URL"])
        with connection, connection.cursor() as cursor:
            yield cursor
    finally:
        if POOL:
            idle.put(connection)
        elif connection:
            connection.close()


# ---- selling ----------------------------------------------------------------------------------------


def read_and_write(product, quantity, read="SELECT count FROM product WHERE id = %s"):
    with transaction() as cursor:
        cursor.execute(read, (product,))
        row = cursor.fetchone()
        if not row or row[0] < quantity:
            return False
        cursor.execute("UPDATE product SET count = %s WHERE id = %s", (row[0] - quantity, product))
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        return True


def for_update(product, quantity):
    return read_and_write(product, quantity, "SELECT count FROM product WHERE id = %s FOR UPDATE")


def decrement(product, quantity):
    with transaction() as cursor:
        cursor.execute("UPDATE product SET count = count - %s WHERE id = %s AND count >= %s", (quantity, product, quantity))
        if cursor.rowcount == 0:
            return False
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        return True


def statement(product, quantity):
    with transaction() as cursor:
        cursor.execute(
            "WITH taken AS (UPDATE product SET count = count - %s WHERE id = %s AND count >= %s RETURNING id)"
            " INSERT INTO order_item (product_id, quantity) SELECT id, %s FROM taken",
            (quantity, product, quantity, quantity),
        )
        return cursor.rowcount == 1


process_lock = threading.Lock()


def synchronized(product, quantity):
    with process_lock:
        return read_and_write(product, quantity)


def read_and_write_fenced(product, quantity, fence):
    """The statement that reads also keeps the token, so no older one can write after it."""
    with transaction() as cursor:
        cursor.execute("UPDATE product SET fence = %s WHERE id = %s AND fence < %s RETURNING count", (fence, product, fence))
        row = cursor.fetchone()
        if not row:
            raise TimeoutError("the lock has ended, and another order had it")
        if row[0] < quantity:
            return False
        cursor.execute("UPDATE product SET count = %s WHERE id = %s", (row[0] - quantity, product))
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        return True


# ---- locks in Redis ---------------------------------------------------------------------------------

LOCK = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end"
UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end"


class Redis:
    """A connection for each order. It reads integers, short strings, null and errors: these commands have no other replies."""

    def __init__(self):
        url = urllib.parse.urlsplit(os.environ["REDIS_URL"])
        self.socket = socket.create_connection((url.hostname, url.port or 6379), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")
        if url.password:
            self.command("AUTH", urllib.parse.unquote(url.password))

    def command(self, *words):
        parts = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        line = self.replies.readline().decode().rstrip("\r\n")
        if not line or line[0] == "-":
            raise ConnectionError(f"Redis: {line[1:] or 'the connection has ended'}")
        return None if line == "$-1" else line[1:]

    def close(self):
        self.replies.close()
        self.socket.close()


@contextlib.contextmanager
def redis_lock(product, acquire, release):
    """Waits for the lock, and yields what `acquire` returned. `release` gets the owner's token."""
    key, token = f"lock:{product}", secrets.token_hex(8)
    until = time.monotonic() + LOCK_WAIT_S
    with contextlib.closing(Redis()) as redis:
        while (grant := acquire(redis, key, token)) is None:
            if time.monotonic() > until:
                raise TimeoutError("the lock was not free in time")
            time.sleep(0.001)
        try:
            yield grant
        finally:
            release(redis, key, token)


def set_nx(redis, key, token):
    return redis.command("SET", key, token, "NX", "PX", LEASE_MS)


def lock_with_fence(redis, key, token):
    """Each holder gets a larger number than the one before."""
    return redis.command("EVAL", LOCK, 2, key, f"fence:{key}", token, LEASE_MS)


def unlock(redis, key, token):
    redis.command("EVAL", UNLOCK, 1, key, token)


def delete_whatever_is_there(redis, key, _):
    redis.command("DEL", key)  # after the lease has ended, this is the lock of another request


def in_redis_setnx(product, quantity):
    with redis_lock(product, set_nx, delete_whatever_is_there):
        return read_and_write(product, quantity)


def in_redis_lock(product, quantity):
    with redis_lock(product, set_nx, unlock):
        return read_and_write(product, quantity)


def in_fenced_redis_lock(product, quantity):
    with redis_lock(product, lock_with_fence, unlock) as fence:
        return read_and_write_fenced(product, quantity, int(fence))


PROTECTIONS = {
    "naive": read_and_write,
    "for-update": for_update,
    "statement": statement,
    "decrement": decrement,
    "synchronized": synchronized,
    "redis-lock": in_redis_lock,
    "redis-setnx": in_redis_setnx,
    "redis-fenced": in_fenced_redis_lock,
}

# ---- HTTP -------------------------------------------------------------------------------------------


def wanted(text):
    """The product and the quantity of a request; None if it is malformed."""
    try:
        body = json.loads(text)
        numbers = body["product_id"], body["quantity"]
    except (ValueError, KeyError, TypeError):
        return None
    return numbers if all(type(n) is int and 0 < n < 1 << 31 for n in numbers) else None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body go out together
    timeout = 60

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.answer(200 if self.path == "/healthz" else 404, {})

    def do_POST(self):
        numbers = wanted(self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 65536)))
        if self.path != "/orders":
            return self.answer(404, {"error": "use POST /orders"})
        if not numbers:
            return self.answer(400, {"error": "product_id and quantity must be positive integers"})
        try:
            sold = PROTECTIONS[PROTECTION](*numbers)
        except Exception as error:  # whatever the drivers raise
            print(f"shop: {error}", file=sys.stderr, flush=True)
            return self.answer(503, {"error": "the order failed"})
        self.answer(201, {"product_id": numbers[0]}) if sold else self.answer(409, {"error": "sold out"})

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


if PROTECTION not in PROTECTIONS:
    sys.exit(f"shop: PROTECTION is '{PROTECTION}'. Set it to one of: {', '.join(PROTECTIONS)}.")
if PROTECTION.startswith("redis"):
    Redis().close()
with transaction() as at_start:
    at_start.execute("SELECT 1")
Server(("127.0.0.1", int(os.environ.get("PORT", "8081"))), Handler).serve_forever()
