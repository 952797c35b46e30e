"""Clients that are slow on purpose: one deadline cuts them all, and nobody else waits for them."""

import collections
import itertools
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from basics import REPLY_S
from lab import Closed, PATIENCE, SANITIZED, SOON_S, as_body, at_any_speed, has_open, psql, request_bytes, together, wait_until

DEADLINE_S = 3.0
LATEST_S = 10.0 * PATIENCE  # cut by then
ORDERS = 200 if SANITIZED else 1000


@pytest.fixture(scope="module")
def hasty(stack, file_services):
    """A service whose requests must be over within DEADLINE_S."""
    return file_services.start(stack.database(), "--workers", "4", "--request-timeout-ms", int(DEADLINE_S * 1000))


def open_files(service):
    """How many descriptors the service has."""
    return len(os.listdir(f"/proc/{service.process.pid}/fd"))


def drip(service, data, every, most_s):
    """Sends DATA byte by byte; returns (seconds until closed, what came back)."""
    start = time.monotonic()
    with service.wire() as wire:
        wire.socket.settimeout(every)
        for byte in data:
            try:
                wire.send(bytes([byte]))
                wire.fill()
            except socket.timeout:
                pass
            except Closed as closed:
                return time.monotonic() - start, closed.partial
            if time.monotonic() - start > most_s:
                break
    raise AssertionError(f"still open after {time.monotonic() - start:.1f} s of dripping")


SLOW = {
    "request line": b"GET /" + b"x" * 10000,
    "header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: " + b"y" * 10000,
    "many headers": b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 2000,
    "body by length": request_bytes("POST", "/orders", b"", {"Content-Length": "10000"}) + b" " * 10000,
    "body in chunks": request_bytes(
        "POST", "/orders", b"", {"Content-Length": None, "Transfer-Encoding": "chunked"}
    )
    + b"1\r\n \r\n" * 2000,
}


def test_every_drip_is_cut_by_the_deadline(hasty):
    """Bytes keep coming, so the connection is never idle; only a deadline for the whole ends it."""
    quick = request_bytes("POST", "/orders", b"", {"Content-Length": "10000"})
    results = together(
        *[lambda data=data: drip(hasty, data, 0.05, LATEST_S) for data in SLOW.values()],
        lambda: drip(hasty, quick + b" " * 100, 0.2, LATEST_S),
    )
    for name, (seconds, partial) in zip([*SLOW, "long pauses"], results):
        assert DEADLINE_S * 0.6 < seconds < LATEST_S, f"{name}: cut after {seconds:.2f} s"
        assert partial == b"" or partial.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")), f"{name}: {partial!r}"


def test_silence_in_the_middle_is_cut_too(hasty):
    def cut_after(data):
        with hasty.wire() as wire:
            start = time.monotonic()
            wire.send(data)
            wire.ends(seconds=LATEST_S)
            return data, time.monotonic() - start

    starts = (
        b"G",
        b"GET /healthz HTTP/1.1\r\n",
        request_bytes("POST", "/orders", b"", {"Content-Length": "10"}) + b"{",
    )
    for data, seconds in together(*[lambda data=data: cut_after(data) for data in starts]):
        assert DEADLINE_S * 0.6 < seconds < LATEST_S, f"{data[:30]!r}: cut after {seconds:.2f} s"


@pytest.mark.long
def test_an_idle_connection_is_not_cut_by_that_deadline(hasty):
    """It counts from a request's first byte, and between two requests there is none."""
    with hasty.wire() as wire:
        for _ in range(2):
            wire.send(request_bytes("GET", "/healthz"))
            assert wire.reply().status == 200
            time.sleep(DEADLINE_S + 0.4)
        wire.send(request_bytes("GET", "/healthz"))
        assert wire.reply().status == 200


@pytest.mark.long
def test_each_request_of_a_connection_has_a_deadline_of_its_own(hasty):
    """Eight requests of 0.4 s each take longer than one may, and a slow one after them is cut."""
    with hasty.wire() as wire:
        data = request_bytes("GET", "/healthz")
        for _ in range(8):
            wire.send(data[:10])
            time.sleep(0.4)
            wire.send(data[10:])
            assert wire.reply().status == 200
        time.sleep(0.1)
        start = time.monotonic()
        wire.send(data[:10])
        wire.ends(seconds=LATEST_S)
        seconds = time.monotonic() - start
        assert DEADLINE_S * 0.6 < seconds < LATEST_S, f"cut after {seconds:.2f} s"


def test_a_new_connection_that_sends_nothing_is_cut_first(services, database):
    """Its client may never have wanted anything; one that has begun a request, or has had an answer, has more time."""

    def play(scale):
        service = services.start(
            database, "--first-byte-ms", 1000 * scale, "--request-timeout-ms", "600000", "--idle-timeout-ms", "3600000"
        )
        data = request_bytes("GET", "/healthz")
        with service.wire() as known, service.wire() as begun:
            begun.send(data[:1])
            known.send(data)
            assert known.reply().status == 200
            silent = [service.wire() for _ in range(100)]
            try:
                for wire in silent:
                    assert wire.ends() == b""
            finally:
                for wire in silent:
                    wire.close()
            known.send(data)
            begun.send(data[1:])
            assert known.reply().status == begun.reply().status == 200

    def play_or_fail(scale):
        try:
            play(scale)
        except Closed as closed:  # this machine may have been too slow to send in time
            raise AssertionError(f"cut too soon: {closed}") from closed

    at_any_speed(play_or_fail)


def test_first_bytes_on_the_heels_of_a_reply(services, database):
    """They cannot be told from the last request's, so silence after them is cut as an idle connection is."""
    service = services.start(database, "--request-timeout-ms", "1000", "--idle-timeout-ms", "2000")
    with service.wire() as wire:
        data = request_bytes("GET", "/healthz")
        wire.send(data)
        assert wire.reply().status == 200
        wire.send(data[:10])
        wire.ends(seconds=LATEST_S)


def test_a_client_that_has_said_all_and_closes_its_side_is_answered(hasty):
    """As netcat does: half closed is not gone."""
    for _ in range(100):
        with hasty.wire() as wire:
            wire.send(request_bytes("GET", "/products"))
            wire.socket.shutdown(socket.SHUT_WR)
            assert wire.reply().status == 200


@pytest.fixture(scope="module")
def large_page(hasty):
    """The target of a reply that is larger than what the sockets buffer, and its size."""
    product = hasty.product(stock=2000)
    psql(
        hasty.database_url,
        "WITH o AS (INSERT INTO orders (amount, receiver_name, created_by, updated_by)"
        " SELECT 19.90, repeat('x', 200), 'test', 'test' FROM generate_series(1, 1000) RETURNING id)"
        " INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance,"
        f" stock_xid, created_by, updated_by) SELECT id, {product}, 19.90, 1, 'test', 'test',"
        " pg_current_xact_id(), 'test', 'test' FROM o",
    )
    target = f"/orders?product_id={product}&limit=1000"
    size = len(hasty.get(target).body)
    assert size > 300000
    return target, size


@pytest.mark.long
def test_a_client_that_does_not_read_is_cut(hasty, large_page):
    """Its sockets are full, so that the replies wait for it; others do not."""
    target, size = large_page
    requests = 20  # more than the kernel keeps for a slow reader
    wires = [hasty.wire(receive_buffer=2048) for _ in range(4)]
    try:
        for wire in wires:
            wire.send(request_bytes("GET", target) * requests)
        assert hasty.order(1, 1).status == 201, "others are served meanwhile"
        wait_until(lambda: not any(has_open(hasty, wire) for wire in wires), "the service has closed their connections")
        for wire in wires:
            taken = len(wire.ends())  # what the kernel had already, then the end
            assert taken < size * requests, f"all of {taken} bytes came: it was not cut"
    finally:
        for wire in wires:
            wire.close()


def test_a_slow_reader_that_keeps_up_gets_it_all(hasty, large_page):
    with hasty.wire(receive_buffer=65536) as wire:
        wire.send(request_bytes("GET", large_page[0]))
        time.sleep(0.5)
        assert len(wire.reply().json["orders"]) == 1000


def order_for_a_while(service, product, orders, between=lambda: None):
    """Orders one after the other over one connection; returns the seconds that each took."""
    data, seconds = request_bytes("POST", "/orders", as_body({"product_id": product, "quantity": 1})), []
    with service.wire() as wire:
        for _ in range(orders):
            between()
            start = time.monotonic()
            wire.send(data)
            assert wire.reply().status == 201
            seconds.append(time.monotonic() - start)
    return seconds


def p99_ms(seconds):
    return sorted(seconds)[len(seconds) * 99 // 100] * 1000


@pytest.mark.long
def test_500_slow_clients_and_others_are_served(services, database):
    """What an order takes beside them, against what it takes alone before and after, is printed (pytest -s)."""
    service = services.start(database, "--workers", "4", "--request-timeout-ms", "600000")
    product = service.product(stock=100000)
    body = as_body({"product_id": product, "quantity": 1})
    order_for_a_while(service, product, ORDERS)
    alone = order_for_a_while(service, product, ORDERS)
    before = service.resident_bytes
    slow = [service.wire() for _ in range(500)]
    turn = itertools.cycle(slow)
    try:
        for index, wire in enumerate(slow):
            wire.send(
                (
                    b"POST /orders HTTP/1.1\r\nHost: x\r\n",
                    b"G",
                    SLOW["body by length"][:200],
                    request_bytes("POST", "/orders", body)[:-5],
                )[index % 4]
            )
        beside = order_for_a_while(service, product, ORDERS, lambda: next(turn).send(b"x"))
        grown = service.resident_bytes - before
        assert SANITIZED or grown < 500 * 64 * 1024, f"{grown} bytes for 500 slow clients"
    finally:
        for wire in slow:
            wire.close()
    alone += order_for_a_while(service, product, ORDERS)
    ratio = p99_ms(beside) / p99_ms(alone)
    print(f"\np99 of an order {p99_ms(alone):.2f} ms alone, {p99_ms(beside):.2f} ms beside 500 slow clients: {ratio:.2f} times")
    assert p99_ms(beside) < max(10 * 2 * p99_ms(alone), 1000 * PATIENCE), f"{ratio:.1f} times; 2 is the bound"
    assert service.audit(product)["orders"] == 4 * ORDERS


@pytest.fixture
def many_files():
    """How many descriptors a process may have; this one, too."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def close_at_once(wires):
    """Without the minute in which each keeps its port."""
    for wire in wires:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.close()


@pytest.mark.long
def test_10000_open_connections(services, database, many_files):
    """All stay open, all order at the same time, and all are answered: 201, or that there are too many at once."""
    service = services.start(database, "--workers", "4", "--idle-timeout-ms", "3600000")
    wanted = 10000
    count = min(wanted, many_files - 500)
    if count < wanted:
        warnings.warn(f"the hard limit of {many_files} descriptors allows {count} of {wanted} connections (ulimit -Hn)")
        assert "raise the hard limit" in service.log, service.log
    else:
        assert f"{many_files} file descriptors, for {wanted} connections" in service.log, service.log
    count -= 10  # for the calls below
    empty, wires = service.resident_bytes, []
    try:
        for _ in range(count):
            wire = service.wire()
            wires.append(wire)
            wire.send(request_bytes("GET", "/healthz"))
            assert wire.reply().status == 200
        each = (service.resident_bytes - empty) / count
        assert SANITIZED or each < 24 * 1024, f"{each:.0f} bytes a connection"
        product = service.product(stock=count)
        for wire in wires:
            wire.send(request_bytes("POST", "/orders", as_body({"product_id": product, "quantity": 1})))
        outcomes = collections.Counter(wire.reply().problem or "created" for wire in wires)
        assert set(outcomes) <= {"created", "overloaded"}, f"{outcomes}"
        assert outcomes["created"] >= 1000, f"{outcomes}"
        audit = service.audit(product)
        assert (audit["orders"], audit["balanced"]) == (outcomes["created"], True), f"{audit}"
        print(f"\n{count} connections, {each:.0f} bytes each; orders of all at once: {dict(outcomes)}")
    finally:
        close_at_once(wires)
    wait_until(lambda: service.order(product).status == 201, "it sells on")


def test_too_few_descriptors(services, database):
    """It says how many connections they are good for, takes no more, and its workers have theirs."""
    service = services.start(
        database, "--workers", "4", "--first-byte-ms", "600000", under=["prlimit", "--nofile=400:400"]
    )
    said = re.search(r"400 file descriptors allow only (\d+) of 10000 connections", service.log)
    assert said, service.log
    product = service.product()
    wires = [service.wire() for _ in range(500)]
    try:
        for wire in wires[:100]:
            wire.send(request_bytes("GET", "/healthz"))
            assert wire.reply().status == 200
        wires[0].send(request_bytes("POST", "/orders", as_body({"product_id": product, "quantity": 1})))
        assert wires[0].reply().status == 201
        files = open_files(service)
        assert 100 < files < 400, f"{files} descriptors are open"
        wires[-1].send(request_bytes("GET", "/healthz"))
        assert not wires[-1].reply_within(0.5), "one too many is served"
        service.process.send_signal(signal.SIGSTOP)  # so that it finds all ended at the same time
        for wire in wires[:-1]:
            wire.close()
        service.process.send_signal(signal.SIGCONT)
        assert wires[-1].reply_within(REPLY_S), "and is never served"
        assert wires[-1].last.status == 200
    finally:
        for wire in wires:
            wire.close()


def test_connections_that_come_and_go_leave_nothing_behind(services, database):
    service = services.start(database)
    service.get("/products")
    before = open_files(service)
    for start in (b"", b"GET /pro", b"GET /products HTTP/1.1\r\nHost: ", SLOW["body by length"][:200]):
        for _ in range(100):
            with service.wire() as wire:
                wire.send(start)
    for _ in range(300):
        with service.wire() as wire:
            wire.send(request_bytes("GET", "/products"))
    wait_until(lambda: open_files(service) <= before + 2, f"{before} open files as before")
    start = time.monotonic()
    service.stop()
    assert time.monotonic() - start < SOON_S, "it waits for requests of clients that have long gone"


def test_one_address_does_not_take_all_connections(services, database):
    """Each one too many is told so and closed; another address is served meanwhile, and an end makes room."""
    service = services.start(database, "--connections-per-address", "5", "--connections", "1000")
    crowd = []
    try:
        for _ in range(5):
            crowd.append(socket.create_connection(("127.0.0.1", service.port), source_address=("127.0.0.2", 0)))
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", service.port), source_address=("127.0.0.2", 0)) as extra:
                extra.settimeout(60)
                told = b"".join(iter(lambda: extra.recv(4096), b""))
            assert told.startswith(b"HTTP/1.1 503 ") and b"/problems/overloaded" in told, told
        assert service.get("/healthz").status == 200, "another address is served"
        crowd.pop().close()

        def served():
            with socket.create_connection(("127.0.0.1", service.port), source_address=("127.0.0.2", 0)) as again:
                again.settimeout(60)
                again.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return again.recv(4096).startswith(b"HTTP/1.1 200 ")

        wait_until(served, "there is room again")
    finally:
        for one in crowd:
            one.close()


IN_A_NETWORK = """
import socket, sys, time

PORT, GET = int(sys.argv[1]), b"GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"

def connect(source):
    made = socket.create_connection((source, PORT), source_address=(source, 0), timeout=600)
    made.sendall(GET)
    return made, made.recv(4096)

def is_served(connection):
    return connection[1].startswith(b"HTTP/1.1 200 ")

def open_all(source, count):
    made = [connect(source) for _ in range(count)]
    assert all(map(is_served, made)), (source, made)
    return made

crowd = open_all("198.51.100.1", 5)
for _ in range(3):
    refused = connect("198.51.100.1")[1]
    assert refused.startswith(b"HTTP/1.1 503 ") and b"/problems/overloaded" in refused, refused
others = open_all("198.51.100.2", 5) + open_all("127.0.0.1", 8)
assert not is_served(connect("198.51.100.2"))
crowd.pop()[0].close()
end = time.monotonic() + 600
while not is_served(connect("198.51.100.1")):
    assert time.monotonic() < end, "there is no room again"
    time.sleep(0.05)
"""


def test_by_default_another_machine_has_a_quarter_of_the_connections(services, database):
    """In a network of the test's own, whose two addresses are not loopback. The service needs no server for /healthz."""
    network = "ip link set lo up && ip address add 198.51.100.1/32 dev lo && ip address add 198.51.100.2/32 dev lo"
    own = ["unshare", "--map-root-user", "--net", "sh", "-c", f'{network} && exec "$@"', "sh"]
    if subprocess.run([*own, "true"], capture_output=True, check=False, timeout=60).returncode != 0:
        pytest.skip("this machine allows no network of the test's own")
    service = services.start(database, "--connections", "20", token="a-token", listen="0.0.0.0:0", ready=None, under=own)
    service.listening()
    ran = subprocess.run(
        ["nsenter", "--target", str(service.process.pid), "--user", "--net", "--preserve-credentials",
         sys.executable, "-c", IN_A_NETWORK, str(service.port)],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


@pytest.mark.long
def test_silent_connections_of_this_machine_keep_their_places_for_a_short_time(services, database):
    """The connections of this machine have no limit, but a silent one is closed. A client that came too late is then
    served, without another try."""
    service = services.start(database, "--connections", "20", "--first-byte-ms", "3000")
    silent = [service.wire() for _ in range(20)]
    try:
        with service.wire() as late:
            late.send(request_bytes("GET", "/healthz"))
            assert late.reply().status == 200
        for wire in silent:
            assert wire.ends() == b""
    finally:
        for wire in silent:
            wire.close()
