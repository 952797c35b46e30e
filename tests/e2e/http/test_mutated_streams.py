"""Streams of requests with bytes changed, lost, repeated and mixed, many connections at once: each ends with answers or
without, in bounded time, and the service goes on, no larger, with its books in balance. Under the address sanitizer
(`make asan`) the same is a search for leaks; FUZZ_SECONDS makes it a long one (`make fuzz`)."""

import os
import random
import re
import socket
import time
from pathlib import Path

import pytest

from basics import PATIENCE, SANITIZED
from lab import as_body, chunked, request_bytes, wait_until

SECONDS = float(os.environ.get("FUZZ_SECONDS", 0))
BATCHES = 5  # where no time is given
CROWD = 60  # connections at once
TOKEN = "the-token-that-no-stream-has"
ENDS_S = 30 * PATIENCE  # a stream lasts a second, by its deadline, and perhaps an order's
MOST_GROWTH = (400 if SANITIZED else 64) << 20  # a sanitizer keeps what was freed, for a while
ODD = [b"", b"\0", b"\r\n", b"\r\n\r\n", b"\n", b" ", b":", b"-1", b"0", b"99999999999999999999", b"\xff", b"%00", b"0x1",
       b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"x" * 9000, b"[" * 500]  # fmt: skip


def seeds(product):
    order = as_body({"product_id": product, "quantity": 1, "receiver_name": "Ada ö"})
    control = {"Authorization": "Bearer of-another"}
    return [
        request_bytes("POST", "/orders", order),
        request_bytes("POST", "/orders?strategy=mutex", order, {"Idempotency-Key": "key-1"}),
        request_bytes("POST", "/orders?strategy=batched", order) * 3,
        request_bytes("POST", "/orders", b"", {"Content-Length": None, "Transfer-Encoding": "chunked"}) + chunked(order[:9], order[9:]),
        request_bytes("POST", "/echo", order, {"Expect": "100-continue"}),
        request_bytes("GET", f"/products/{product}") + request_bytes("GET", "/orders?limit=2&after=0"),
        request_bytes("GET", f"/live?product_id={product}&traces=3") + request_bytes("HEAD", "/metrics"),
        request_bytes("GET", f"/audit?product_id={product}") + request_bytes("OPTIONS", "/strategy"),
        request_bytes("GET", "/", b"", {"If-None-Match": '"0"'}) + request_bytes("GET", "/page/shared/dom.js"),
        request_bytes("PUT", "/strategy", as_body({"name": "mutex", "think_ms": 1}), control),
        request_bytes("POST", "/runs", as_body({"strategies": ["mutex"]}), control),
        request_bytes("GET", "/strategies/redlock") + request_bytes("GET", "/traces?format=chrome"),
    ]  # fmt: skip


def mutated(chance, streams):
    data = chance.choice(streams)
    for _ in range(chance.choice([0, 1, 1, 2, 4, 9])):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice([1, 1, 2, 8, 40, 400]))
        other = chance.choice(streams)
        data = chance.choice([
            data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :],
            data[:at] + data[end:],
            data[:end] + data[at:],
            data[:at] + chance.choice(ODD) + data[at:],
            data[:at] + chance.choice(ODD) + data[end:],
            data[:at] + other[chance.randrange(len(other)) :],
            data[:at],
        ]) or b"\r\n"  # fmt: skip
    return data[: 1 << 17]


def pieces(chance, data):
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice([0, 0, 1, 3])))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]


def send(chance, port, data):
    """The connection, with DATA sent as far as the service takes it; some clients say that there is no more."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=ENDS_S)
    try:
        for piece in pieces(chance, data):
            connection.sendall(piece)
        if chance.randrange(4) == 0:
            connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # it has been refused already
    return connection


def read_to_the_end(connection, until):
    """What came until the service closed the connection; None if it did not in time."""
    got = b""
    while True:
        connection.settimeout(max(0.01, until - time.monotonic()))
        try:
            data = connection.recv(1 << 16)
        except ConnectionResetError:
            return got
        except socket.timeout:
            return None
        if not data:
            return got
        got += data


def descriptors(service):
    return len(list(Path(f"/proc/{service.process.pid}/fd").iterdir()))


@pytest.fixture(scope="module")
def service(stack, file_services):
    return file_services.start(stack.database(), "--request-timeout-ms", "1000", "--idle-timeout-ms", "1000",
                               "--lock-wait-ms", "1000", "--order-timeout-ms", "2000", token=TOKEN)  # fmt: skip


@pytest.mark.long
def test_mutated_streams(service):
    product = service.product(stock=1000000)
    streams, begun, seed, answered = seeds(product), time.monotonic(), 0, 0
    before = size = None
    while time.monotonic() - begun < SECONDS if SECONDS else seed < BATCHES:
        chance = random.Random(seed)
        sent = [mutated(chance, streams) for _ in range(CROWD)]
        connections = [send(chance, service.port, data) for data in sent]
        until = time.monotonic() + ENDS_S
        for data, connection in zip(sent, connections):
            with connection:
                got = read_to_the_end(connection, until)
            assert got is not None, f"batch {seed}: not ended within {ENDS_S} s: {data!r}"
            assert not got or re.match(rb"HTTP/1\.[01] \d{3} ", got), f"batch {seed}: {data!r}\n{got[:200]!r}"
            assert not re.search(rb"^HTTP/1\.[01] 500 ", got, re.M), f"batch {seed}: {data!r}\n{got!r}"
            answered += bool(got)
        assert service.process.poll() is None and service.get("/healthz").status == 200, f"batch {seed}\n{service.log[-3000:]}"
        if seed == 0:  # by then every worker has what it needs
            before, size = descriptors(service), service.resident_bytes
        seed += 1
    assert answered > seed * CROWD / 3, f"of {seed * CROWD} streams only {answered} were answered: these are poor ones"
    wait_until(lambda: descriptors(service) <= before + 20, "its connections are closed")
    grown = service.resident_bytes - size
    hours = SANITIZED and SECONDS  # then the sanitizer's own books grow too: `make fuzz` asks this without it as well
    assert hours or grown < MOST_GROWTH, f"{grown} bytes more"
    wait_until(lambda: service.audit(product)["in_flight"] == 0, "all orders have ended")
    # (strategies are mixed on purpose, so overselling is not the question; lost units would be)
    assert service.order(product).status == 201
    print(f"{seed * CROWD} streams, {answered} answered, in {time.monotonic() - begun:.0f} s, {grown >> 10} KiB more")
