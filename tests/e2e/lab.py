"""The tools of the end-to-end tests: a private stack, services, plain and raw HTTP, psql, and load."""

import contextlib
import ctypes
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from contract import Document, strict_json

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
SERVICE = BUILD / "order-service"
DOCUMENT = Document(ROOT / "docs" / "openapi.yaml")

# A sanitizer is slow; waits that only guard against a hang are stretched by this.
SANITIZED = SERVICE.exists() and any(mark in SERVICE.read_bytes() for mark in (b"__asan_init", b"__tsan_init"))
PATIENCE = 4 if SANITIZED else 1
REPLY_S = 20 * PATIENCE       # longest wait for one reply
START_S = 20 * PATIENCE       # longest wait for a process to come up or go down

SANITIZER_REPORT = re.compile(r"(ERROR|WARNING): \w+Sanitizer|runtime error:")

PRODUCT_IDS = itertools.count(1000)     # fresh products, so that tests do not meet


def next_free_id():
    """The id of a product that does not exist."""
    return next(PRODUCT_IDS)


def wait_until(true, what, seconds=10.0, every=0.01):
    """Waits until TRUE() is, and returns what it returned; fails with WHAT and the last value."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        value = true()
        if value:
            return value
        assert time.monotonic() < end, f"not within {seconds * PATIENCE} s: {what}; last value {value!r}"
        time.sleep(every)


def die_with_parent():
    """In a child: end when the test run does, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)   # PR_SET_PDEATHSIG


# ── HTTP ──────────────────────────────────────────────────────────────────────────────────────────────────────

@dataclass
class Reply:
    """One HTTP reply."""
    status: int
    headers: list
    body: bytes
    seconds: float = 0.0

    def header(self, name):
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(values) <= 1, f"{name} given {len(values)} times: {values}"
        return values[0] if values else None

    @property
    def media_type(self):
        return (self.header("Content-Type") or "").split(";")[0].strip().lower()

    @property
    def text(self):
        return self.body.decode("utf-8")

    @property
    def json(self):
        return strict_json(self.text)

    @property
    def problem(self):
        """The problem's name, or None."""
        if self.media_type != "application/problem+json":
            return None
        return self.json["type"].removeprefix("/problems/")

    def __str__(self):
        return f"{self.status} {self.body[:500]!r}"


class Closed(Exception):
    """The service closed the connection; PARTIAL is what came before."""

    def __init__(self, partial):
        super().__init__(f"connection closed after {len(partial)} bytes: {partial[:200]!r}")
        self.partial = partial


class Wire:
    """One connection, on which a test sends the bytes that it wants."""

    def __init__(self, port, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(REPLY_S)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        """Sends all of DATA; Closed if the service does not take it."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed(self.buffer) from None

    def fill(self):
        """Reads some more; Closed at the end."""
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(self.buffer)
        self.buffer += data

    def reply(self, head=False, seconds=REPLY_S):
        """The next reply; interim ones (100) are passed over."""
        self.socket.settimeout(seconds)
        start = time.monotonic()
        while True:
            while b"\r\n\r\n" not in self.buffer:
                self.fill()
            top, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
            lines = top.decode("latin-1").split("\r\n")
            version, status = lines[0].split(" ", 2)[:2]
            assert version in ("HTTP/1.1", "HTTP/1.0"), f"status line {lines[0]!r}"
            headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
            reply = Reply(int(status), headers, b"")
            if reply.status != 100:
                break
        length = reply.header("Content-Length")
        if head or reply.status in (204, 304):
            length = "0"
        if length is None:                    # ends with the connection
            while True:
                try:
                    self.fill()
                except Closed:
                    break
            length = len(self.buffer)
        while len(self.buffer) < int(length):
            self.fill()
        reply.body, self.buffer = self.buffer[:int(length)], self.buffer[int(length):]
        reply.seconds = time.monotonic() - start
        return reply

    def reply_within(self, seconds):
        """Has a reply begun within that time? If so it is in .last."""
        self.socket.settimeout(seconds)
        try:
            if not self.buffer:
                self.fill()
        except socket.timeout:
            return False
        self.last = self.reply()
        return True

    def ends(self, seconds=REPLY_S):
        """Waits until the service closes the connection; returns what it still sent."""
        self.socket.settimeout(seconds)
        try:
            while True:
                self.fill()
        except Closed as closed:
            return closed.partial
        except socket.timeout:
            raise AssertionError(f"the connection is still open after {seconds} s") from None


def request_bytes(method, target, body=b"", headers=(), version="HTTP/1.1"):
    """A request as it goes over the wire; HEADERS are pairs, None as value leaves a default one out."""
    if isinstance(target, str):
        target = target.encode("latin-1")
    fields = {"Host": "127.0.0.1"}
    if body or method in ("POST", "PUT"):
        fields["Content-Length"] = str(len(body))
        fields["Content-Type"] = "application/json"
    extra = []
    for name, value in (headers.items() if isinstance(headers, dict) else headers):
        known = next((key for key in fields if key.lower() == name.lower()), None)
        if known:
            del fields[known]
        if value is not None:
            extra.append((name, value))
    lines = [method.encode() + b" " + target + b" " + version.encode()]
    for name, value in [*fields.items(), *extra]:
        lines.append(name.encode() + b": " + (value if isinstance(value, bytes) else value.encode("latin-1")))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def as_body(value):
    """Bytes as they are, anything else as JSON; None is no body."""
    if value is None:
        return b""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def chunked(*parts):
    """A chunked body."""
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part) + b"0\r\n\r\n"


# ── the stack ─────────────────────────────────────────────────────────────────────────────────────────────────

class Stack:
    """The project's own private servers, in a folder of their own."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="oversell-e2e-"))
        self.folder.chmod(0o755)
        self.script = ROOT / "stack" / "stack"
        self.databases = itertools.count(1)

    def run(self, *arguments):
        ran = subprocess.run([self.script, *arguments], capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, f"stack {' '.join(map(str, arguments))}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    @property
    def servers(self):
        return self.folder / "servers"

    def up(self):
        self.run("up", "--dir", str(self.servers), "--while", str(os.getpid()))
        self.environment = {}
        for line in self.run("env", "--dir", str(self.servers)).splitlines():
            if line.startswith("export "):
                name, value = shlex.split(line)[1].split("=", 1)
                self.environment[name] = value
        assert "DATABASE_URL" in self.environment, f"stack env: {self.environment}"
        self.url = self.environment["DATABASE_URL"]

    def stop(self):
        self.run("down", "--dir", str(self.servers))

    def down(self):
        try:
            self.run("down", "--purge", "--dir", str(self.servers))
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def database(self):
        """The URL of a new, empty database."""
        name = f"e2e_{os.getpid()}_{next(self.databases)}"
        psql(self.url, f"CREATE DATABASE {name}")
        return with_database(self.url, name)


def with_database(url, name):
    return urlunsplit(urlsplit(url)._replace(path="/" + name))


def password(url):
    return urlsplit(url).password


def with_port(url, port):
    """URL with the server at 127.0.0.1:PORT."""
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{port}"))


def psql(url, sql):
    """Runs SQL; returns the rows as lists of text."""
    ran = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", url, "-c", sql],
                         capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, f"psql: {sql}\n{ran.stderr}"
    return [line.split("\t") for line in ran.stdout.splitlines()]


def number(url, sql):
    """The one integer that SQL selects."""
    return int(psql(url, sql)[0][0])


class Session:
    """A psql session that stays open, so that a test can hold a lock in it."""

    def __init__(self, url):
        self.process = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", url],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, preexec_fn=die_with_parent)

    def run(self, sql):
        """Runs SQL, waits for its end, returns its output as lines."""
        self.process.stdin.write(f"{sql};\n\\echo done-here\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.rstrip() == "done-here":
                return lines
            lines.append(line.rstrip())
        raise AssertionError(f"psql ended during {sql}: {lines}")

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)


@contextlib.contextmanager
def holding(url, sql):
    """Runs SQL in a transaction that stays open inside the with; rolled back after it, or when .run("ROLLBACK")."""
    session = Session(url)
    try:
        session.run("BEGIN")
        session.run(sql)
        yield session
    finally:
        session.end()


def holding_row(url, product):
    """Holds the row lock of a product's stock."""
    return holding(url, f"SELECT count FROM product WHERE id = {product} FOR UPDATE")


def waiting_backends(url):
    """How many sessions of this database wait for a lock."""
    return number(url, "SELECT count(*) FROM pg_stat_activity"
                       " WHERE datname = current_database() AND wait_event_type = 'Lock'")


# ── the service ───────────────────────────────────────────────────────────────────────────────────────────────

class Service:
    """One order-service process. READY: wait until it takes orders; False: until it listens; None: not at all.
    To be started from the main thread, because it dies with the thread that started it."""

    count = itertools.count(1)

    def __init__(self, folder, database_url, *flags, env=None, ready=True, token=None, listen="127.0.0.1:0"):
        self.name = f"e2e-{next(Service.count)}"
        self.port_file = folder / f"{self.name}.port"
        self.log_file = folder / f"{self.name}.log"
        self.database_url = database_url
        self.token = token
        environment = {
            "PATH": os.environ["PATH"],
            "ASAN_OPTIONS": "detect_leaks=1:exitcode=99",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
            "TSAN_OPTIONS": "exitcode=99",
            "DATABASE_URL": database_url,
            **({"ADMIN_TOKEN": token} if token else {}),
            **(env or {}),
        }
        arguments = ["--listen", listen, "--port-file", str(self.port_file), "--instance", self.name, *flags]
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen([SERVICE, *map(str, arguments)], env=environment, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        if ready is not None:
            self.listening()
        if ready:
            self.ready()

    def listening(self):
        """Waits until it listens, and learns on which port."""
        self.port = int(wait_until(self._port, f"{self.name} listens", START_S / PATIENCE))
        return self

    def ready(self):
        """Waits until it takes orders."""
        wait_until(lambda: self.get("/readyz").status == 200, f"{self.name} is ready", START_S / PATIENCE)
        return self

    def _port(self):
        assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}:\n{self.log}"
        return self.port_file.read_text().strip() if self.port_file.exists() else None

    @property
    def log(self):
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    @property
    def resident_bytes(self):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def wire(self, **options):
        return Wire(self.port, **options)

    def call(self, method, target, body=None, headers=(), check=True, seconds=REPLY_S):
        """One request on a connection of its own; the reply is held against the document."""
        headers = dict(headers)
        if self.token and "Authorization" not in headers:
            headers["Authorization"] = f"Bearer {self.token}"
        with self.wire() as wire:
            wire.send(request_bytes(method, target, as_body(body), headers))
            reply = wire.reply(head=method == "HEAD", seconds=seconds)
        if check:
            DOCUMENT.check(method, target if isinstance(target, str) else target.decode("latin-1"), reply)
        return reply

    def get(self, target, headers=()):
        return self.call("GET", target, None, headers)

    def post(self, target, body=None, headers=()):
        return self.call("POST", target, body, headers)

    def put(self, target, body=None, headers=()):
        return self.call("PUT", target, body, headers)

    # the calls that most tests make

    def order(self, product, quantity=1, strategy=None, key=None, **more):
        target = "/orders" + (f"?strategy={strategy}" if strategy else "")
        return self.post(target, {"product_id": product, "quantity": quantity, **more},
                         {"Idempotency-Key": key} if key else {})

    def product(self, stock=100, price="19.90"):
        """A product that no other test knows; returns its id."""
        product = next(PRODUCT_IDS)
        reply = self.put(f"/products/{product}", {"name": f"product {product}", "price": price, "stock": stock})
        assert reply.status == 201, str(reply)
        return product

    def reset(self, product, stock, **more):
        reply = self.post(f"/products/{product}/reset", {"stock": stock, **more})
        assert reply.status == 200, str(reply)
        return reply.json

    def strategy(self, name, **settings):
        reply = self.put("/strategy", {"name": name, **settings})
        assert reply.status == 200, str(reply)
        return reply.json

    def audit(self, product):
        reply = self.get(f"/audit?product_id={product}")
        assert reply.status == 200, str(reply)
        return reply.json

    def orders(self, product):
        """All orders of a product, page by page."""
        found, after = [], None
        while True:
            page = self.get(f"/orders?product_id={product}&limit=1000" + (f"&after={after}" if after else "")).json
            found += page["orders"]
            after = page["next"]
            if after is None:
                return found

    # the end of it

    def stop(self, by=signal.SIGTERM):
        """Ends it as an operator would; fails unless it ends cleanly."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        try:
            status = self.process.wait(timeout=START_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end within {START_S} s of {by.name}:\n{self.log[-3000:]}") from None
        assert status == 0, f"{self.name} ended with {status}:\n{self.log[-6000:]}"
        self.check_log()

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait(timeout=START_S)

    def check_log(self):
        report = SANITIZER_REPORT.search(self.log)
        assert report is None, f"{self.name}:\n{self.log[report.start():report.start() + 6000]}"


class Services:
    """Starts services, and sees that each ends cleanly."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def start(self, database_url, *flags, **options):
        service = Service(self.folder, database_url, *flags, **options)
        self.running.append(service)
        return service

    def end(self):
        """Stops all that still run; the first that does not end cleanly is raised when all are gone."""
        failures = []
        for service in self.running:
            try:
                if service.process.poll() is None:
                    service.stop()
                service.check_log()
            except AssertionError as failure:
                failures.append(failure)
            finally:
                if service.process.poll() is None:
                    service.kill()
        self.running.clear()
        if failures:
            raise failures[0]


def run_service(*arguments, env=None, seconds=10):
    """Runs the service with arguments that end it at once; returns (exit status, stdout, stderr)."""
    ran = subprocess.run([SERVICE, *arguments], env={"PATH": os.environ["PATH"], **(env or {})}, capture_output=True,
                         text=True, timeout=seconds * PATIENCE, check=False, stdin=subprocess.DEVNULL)
    return ran.returncode, ran.stdout, ran.stderr


# ── load ──────────────────────────────────────────────────────────────────────────────────────────────────────

def together(*calls):
    """Runs the calls at the same time; returns what they returned, in order; raises the first that failed."""
    results, failures = [None] * len(calls), []

    def run(index, call):
        try:
            results[index] = call()
        except BaseException as failure:      # noqa: B902  every failure belongs to the test
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(index, call), daemon=True) for index, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120 * PATIENCE)
        assert not thread.is_alive(), "a call has not come back"
    if failures:
        raise failures[0]
    return results


class Background:
    """One call that runs while the test goes on."""

    def __init__(self, call):
        self.value, self.failure = None, None
        self.thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self.thread.start()

    def _run(self, call):
        try:
            self.value = call()
        except BaseException as failure:      # noqa: B902
            self.failure = failure

    @property
    def running(self):
        return self.thread.is_alive()

    def result(self, seconds=30):
        self.thread.join(timeout=seconds * PATIENCE)
        assert not self.running, f"no answer within {seconds * PATIENCE} s"
        if self.failure:
            raise self.failure
        return self.value


@dataclass
class Load:
    """What many clients together were told."""
    created: list = field(default_factory=list)      # the bodies of the 201s
    outcomes: Counter = field(default_factory=Counter)   # "created" or the problem's name → count
    unanswered: int = 0      # sent, and the connection ended without a reply

    @property
    def sold(self):
        return sum(order["quantity"] for order in self.created)

    @property
    def ids(self):
        return {order["id"] for order in self.created}


# After these a client simply tries again.
TRY_AGAIN = {"conflict", "lock-busy", "overloaded"}


def hammer(services, product, *, threads=16, strategy=None, quantities=(1,), most=None, stop=None):
    """THREADS clients buy until they are told that even one unit is sold out; each keeps one connection, and
    they are spread over SERVICES. At most MOST orders are sent in all; STOP (an Event) ends it early."""
    load, gate = Load(), threading.Lock()
    tickets = itertools.count()
    target = "/orders" + (f"?strategy={strategy}" if strategy else "")
    start = threading.Barrier(threads)
    odd = []

    def client(index):
        service = services[index % len(services)]
        wanted = itertools.cycle(quantities[index % len(quantities):] + quantities[:index % len(quantities)])
        only_one = False
        wire = service.wire()
        start.wait(timeout=30)
        with wire:
            while not (stop and stop.is_set()):
                if most is not None and next(tickets) >= most:
                    return
                quantity = 1 if only_one else next(wanted)
                body = as_body({"product_id": product, "quantity": quantity})
                try:
                    wire.send(request_bytes("POST", target, body))
                    reply = wire.reply()
                except Closed:
                    with gate:
                        load.unanswered += 1
                    return
                outcome = "created" if reply.status == 201 else reply.problem
                with gate:
                    load.outcomes[outcome] += 1
                    first = load.outcomes[outcome] <= 20
                    if outcome == "created":
                        load.created.append(reply.json)
                if first:
                    DOCUMENT.check("POST", target, reply)
                if outcome == "sold-out":
                    if quantity == 1:
                        return
                    only_one = True
                elif outcome not in TRY_AGAIN and outcome != "created":
                    with gate:
                        odd.append(str(reply))
                    if stop is None:
                        return
                if reply.header("Connection") == "close":
                    return

    together(*[lambda index=index: client(index) for index in range(threads)])
    assert not odd or stop is not None, f"{len(odd)} odd answers, the first: {odd[0]}"
    return load


def expect_books(service, product, load, initial):
    """What clients were told is what the database has; returns the audit."""
    audit = service.audit(product)
    told = {"orders": len(load.created), "sold": load.sold}
    assert {name: audit[name] for name in told} == told, f"audit {audit}, the clients were told {told}"
    assert audit["initial"] == initial, f"{audit}"
    assert audit["in_flight"] == 0, f"{audit}"
    stored = {int(row[0]) for row in psql(service.database_url,
                                         f"SELECT order_id FROM order_item WHERE product_id = {product}")}
    assert stored == load.ids, f"only stored: {sorted(stored - load.ids)}, only told: {sorted(load.ids - stored)}"
    drift = audit["sold"] - (audit["initial"] - audit["left"])
    assert audit["drift"] == drift, f"{audit}: drift should be {drift}"
    assert audit["oversold"] == max(0, audit["sold"] - audit["initial"]), f"{audit}"
    assert audit["negative"] == max(0, -audit["left"]), f"{audit}"
    return audit


def expect_balanced(service, product, load, initial):
    """As expect_books, and nothing is wrong with them."""
    audit = expect_books(service, product, load, initial)
    wanted = {"oversold": 0, "drift": 0, "negative": 0, "balanced": True, "witness": None}
    assert {name: audit[name] for name in wanted} == wanted, f"{audit}"
    return audit


# ── a network that breaks ─────────────────────────────────────────────────────────────────────────────────────

class Proxy:
    """A TCP relay before PostgreSQL that a test can break in the ways in which networks do."""

    def __init__(self, url):
        parts = urlsplit(url)
        self.target = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = with_port(url, self.port)
        self.gate = threading.Lock()
        self.pairs = set()
        self.lost = set()                # those whose server talks to nobody
        self.refuse = False              # new connections are closed at once
        self.stalled = threading.Event()   # nothing is passed on, in either direction
        self.trigger = None              # bytes of the client that set off what .lose says, once
        self.lose = None                 # "reply": pass them on, lose the reply; "request": lose them
        self.triggered = threading.Event()
        self.pieces = None               # pass replies on in pieces of so many bytes
        self.accepted = 0                # connections so far, the refused ones too
        self.closing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            try:
                assert not self.refuse
                server = socket.create_connection(self.target, timeout=5)
            except (AssertionError, OSError):
                client.close()
                continue
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = (client, server)
            with self.gate:
                self.pairs.add(pair)
            threading.Thread(target=self._relay, args=(pair, client, server), daemon=True).start()
            threading.Thread(target=self._relay, args=(pair, server, client), daemon=True).start()

    def _relay(self, pair, source, sink):
        from_client = source is pair[0]
        try:
            while data := source.recv(65536):
                while self.stalled.is_set() and not self.closing:
                    time.sleep(0.01)
                if from_client and self.trigger and self.trigger in data and not self.triggered.is_set():
                    if self.lose == "reply":
                        self.lost.add(pair)
                        sink.sendall(data)
                        time.sleep(0.3)      # the server does what it was asked
                    self.triggered.set()
                    break
                size = self.pieces if self.pieces and not from_client else len(data)
                for at in range(0, len(data) if pair not in self.lost else 0, size):
                    sink.sendall(data[at:at + size])
        except OSError:
            pass
        self._close(pair)

    def _close(self, pair):
        with self.gate:
            self.pairs.discard(pair)
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def cut(self):
        """Ends all connections."""
        with self.gate:
            pairs = list(self.pairs)
        for pair in pairs:
            self._close(pair)

    def arm(self, trigger, lose):
        """At the next TRIGGER from a client: lose the "reply" or the "request", and that connection."""
        self.trigger, self.lose = trigger, lose
        self.triggered.clear()

    def close(self):
        self.closing = True
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
