"""The configuration of nginx that the image ships (stack/container/nginx.conf), in Debian's nginx before two services."""

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from basics import REPLY_S, START_S, die_with_parent
from lab import (
    DOCUMENT,
    PATIENCE,
    ROOT,
    SOON_S,
    Background,
    Closed,
    Service,
    as_body,
    chunked,
    hammer,
    has_open,
    holding_row,
    number,
    psql,
    request_bytes,
    together,
    wait_until,
)

SHIPPED = ROOT / "stack" / "container" / "nginx.conf"
LIMIT_OF_A_CLIENT = 512  # calls of one address at the same time: limit_conn
ORDER = "/orders"


def replace(text, old, new, times):
    """The shipped file must have what a test puts its own in the place of."""
    assert text.count(old) == times, f"{text.count(old)} times in {SHIPPED.name}, not {times}: {old}"
    return text.replace(old, new)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Nginx(Service):
    """An nginx with the shipped file, in which only addresses and folders are others. To be called as a service is.
    CHANGES: texts of the file, and what stands in their places."""

    def __init__(self, first, second, token=None, changes=()):
        self.name, self.token = "nginx", token
        self.folder = Path(tempfile.mkdtemp(prefix="oversell-nginx-"))
        self.log_file = self.folder / "log"
        self.as_user = []
        if os.geteuid() == 0:  # as the image does
            shutil.chown(self.folder, "www-data")
            self.as_user = ["setpriv", "--reuid", "www-data", "--regid", "www-data", "--clear-groups"]
        text = SHIPPED.read_text()
        for number_of, service in (("1", first), ("2", second)):
            text = replace(text, f"server service-{number_of}:8080", f"server 127.0.0.1:{service.port}", 2)
        text = replace(text, " /tmp/", f" {self.folder}/", 6)
        for old, new in changes:
            text = replace(text, old, new, 1)
        for _ in range(20):  # another program may take the port meanwhile
            self.port = free_port()
            if self._start(replace(text, "listen 8080;", f"listen 127.0.0.1:{self.port};", 1)):
                return
        raise AssertionError(f"nginx did not start:\n{self.log}")

    def _start(self, text):
        conf = self.folder / "nginx.conf"
        conf.write_text(text)
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen(
                [*self.as_user, "/usr/sbin/nginx", "-c", conf, "-e", "stderr"],
                env={"PATH": os.environ["PATH"]},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        wait_until(lambda: self._listens() or self.process.poll() is not None, "nginx listens", START_S / PATIENCE)
        if self.process.poll() is not None:
            assert "Address already in use" in self.log, f"nginx ended with {self.process.returncode}:\n{self.log}"
            return False
        return True

    def _listens(self):
        """It writes this file when it has opened its port."""
        return (self.folder / "nginx.pid").exists()

    def stop(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        try:
            assert self.process.wait(timeout=START_S) == 0, self.log
            # One alert is of a machine that allows fewer descriptors than the file asks for.
            alerts = [line for line in re.findall(r".*\[(?:alert|emerg|crit)\].*", self.log) if "setrlimit" not in line]
            assert not alerts, alerts
        finally:
            self.process.kill()
            self.process.wait()
            shutil.rmtree(self.folder)


class Proxied:
    """Two services on one database, and nginx before them."""

    def __init__(self, services, database, *flags, changes=(), **options):
        self.first, self.second = (services.start(database, *flags, **options) for _ in range(2))
        self.nginx = Nginx(self.first, self.second, changes=changes)


@pytest.fixture
def proxied(services, database):
    """Makes it, with the services' flags."""
    made = []

    def make(*flags, **options):
        made.append(Proxied(services, database, *flags, **options))
        return made[-1]

    yield make
    for one in made:
        one.nginx.stop()


@pytest.fixture(scope="module")
def plain(stack, file_services):
    """One for all tests that break nothing."""
    made = Proxied(file_services, stack.database(), "--allowed-hosts", "shop.example")
    yield made
    made.nginx.stop()


def order_body(product):
    return as_body({"product_id": product, "quantity": 1})


def told(reply):
    """The problem that the proxy itself answered with: as the service's problems are."""
    DOCUMENT.check_problem("nginx", reply)
    assert reply.json["request_id"] == reply.header("X-Request-Id"), f"{reply.headers}"
    assert reply.header("X-Content-Type-Options") == "nosniff"
    assert "nginx/" not in (reply.header("Server") or ""), "no client needs to know the version"
    return reply.problem


# ── one shop, two services ──────────────────────────────────────────────────────────────────────────────────


def test_orders_go_to_both_services_and_the_rest_to_the_first(plain):
    product = plain.nginx.product(stock=40)
    load = hammer([plain.nginx], product, threads=8)
    assert load.sold == 40 and load.unanswered == 0, f"{load.outcomes}"
    assert plain.nginx.audit(product)["balanced"] is True
    sold_by = psql(plain.first.database_url, f"SELECT DISTINCT instance FROM order_item WHERE product_id = {product} ORDER BY 1")
    assert sold_by == [[name] for name in sorted([plain.first.name, plain.second.name])], f"{sold_by}"
    assert plain.nginx.get("/").status == 200 and b"<html" in plain.nginx.get("/").body.lower()
    assert {plain.nginx.get(f"/live?product_id={product}").json["instance"] for _ in range(6)} == {plain.first.name}


def test_a_strategy_is_set_in_both(plain):
    for name in ("optimistic", "atomic-decrement"):
        assert plain.nginx.strategy(name, think_ms=7)["name"] == name
        assert plain.first.get("/strategy").json["name"] == name
        wait_until(lambda: plain.second.get("/strategy").json["name"] == name, "the second service has it too")  # noqa: B023
    product = plain.nginx.product()
    assert plain.nginx.put(f"/strategy?product_id={product}", {"name": "mutex", "think_ms": 0}).status == 200
    wait_until(lambda: plain.second.get(f"/strategy?product_id={product}").json["name"] == "mutex", "for a product too")
    assert plain.second.get("/strategy").json["name"] == "atomic-decrement"
    plain.nginx.strategy("atomic-decrement", think_ms=0)


def test_an_order_shows_in_the_page_at_once(plain):
    """What the page asks for again and again is neither cached nor kept back."""
    product = plain.nginx.product(stock=50)
    with plain.nginx.wire() as page:
        for sold in range(1, 20):
            assert plain.nginx.order(product).status == 201
            page.send(request_bytes("GET", f"/live?product_id={product}"))
            start = time.monotonic()
            assert page.reply().status == 200
            assert time.monotonic() - start < SOON_S
            assert plain.nginx.get(f"/products/{product}").json["stock"] == 50 - sold


def test_a_client_and_the_service_speak_of_a_call_by_one_id(plain):
    assert plain.nginx.get("/healthz", {"X-Request-Id": "mine-1"}).header("X-Request-Id") == "mine-1"
    made = {plain.nginx.get("/healthz", {"X-Request-Id": bad}).header("X-Request-Id") for bad in ("two words", '"', "x" * 65)}
    assert len(made) == 3 and all(re.fullmatch("[0-9a-f]{32}", each) for each in made), f"{made}"


# ── Host and Origin ─────────────────────────────────────────────────────────────────────────────────────────


def test_pages_of_the_proxys_own_address_may_order_and_others_may_not(plain):
    product = plain.nginx.product()
    port = plain.nginx.port
    own = (f"127.0.0.1:{port}", f"localhost:{port}", "192.168.7.7:8080", "10.1.2.3:80", "[fd00::7]:8080", "shop.example")
    for host in own:
        page = {"Host": host, "Origin": f"http://{host}"}
        reply = plain.nginx.post(ORDER, {"product_id": product, "quantity": 1}, page)
        assert reply.status == 201, f"{host}: {reply}"
        assert plain.nginx.get("/", {"Host": host}).status == 200, host
        assert plain.nginx.put("/strategy", {"name": "atomic-decrement"}, page).status == 200, host
    foreign = [
        {"Host": "evil.example", "Origin": "http://evil.example"},
        {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"},
        {"Host": f"127.0.0.1:{port}", "Origin": "http://evil.example"},
        {"Host": f"127.0.0.1:{port}", "Origin": "http://127.0.0.1:1"},
        {"Host": f"127.0.0.1:{port}", "Origin": "null"},
        {"Host": "service-1:8080", "Origin": "http://service-1:8080"},
        # What nginx could have put in Host's place.
        {"Host": "evil.example", "Origin": "http://evil.example", "X-Forwarded-Host": "localhost"},
    ]
    for page in foreign:
        for method, target, body in (
            ("POST", ORDER, {"product_id": product, "quantity": 1}),
            ("PUT", "/strategy", {"name": "read-write"}),
        ):
            assert plain.nginx.call(method, target, body, page).problem == "forbidden-origin", f"{page}"
    assert plain.nginx.audit(product)["orders"] == len(own)
    assert plain.second.get("/strategy").json["name"] == "atomic-decrement", "the second service refuses them as well"


@pytest.mark.parametrize("order", [False, True])
def test_http_1_0_without_host_is_served_as_by_the_service(plain, order):
    """The proxy calls the service with HTTP/1.1, which needs a Host."""
    product = plain.nginx.product()
    body = order_body(product) if order else b""
    data = request_bytes("POST" if order else "GET", ORDER if order else "/healthz", body, {"Host": None}, "HTTP/1.0")
    with plain.nginx.wire() as wire:
        wire.send(data)
        reply = wire.reply()
        assert reply.status == (201 if order else 200), str(reply)
        assert wire.ends() == b""
    foreign = request_bytes("POST", ORDER, order_body(product), {"Host": None, "Origin": "http://evil.example"}, "HTTP/1.0")
    with plain.nginx.wire() as wire:
        wire.send(foreign)
        assert wire.reply().problem == "forbidden-origin"


# ── what the proxy refuses itself ───────────────────────────────────────────────────────────────────────────


def test_a_body_that_is_too_large_gets_a_problem(plain):
    """Just too large, far too large, in chunks; and the largest that the service takes gets through."""
    for size in (65537, 3_000_000):
        blank = b" " * size
        for headers, body in (({}, blank), ({"Content-Length": None, "Transfer-Encoding": "chunked"}, chunked(*[blank[:9000]] * 8))):
            for target in (ORDER, "/runs"):
                with plain.nginx.wire() as wire:
                    try:
                        wire.send(request_bytes("POST", target, b"", {"Content-Length": str(size), **headers}) + body)
                    except Closed:
                        pass  # it need not read it all
                    reply = wire.reply()
                assert told(reply) == "payload-too-large", f"{size} {target}: {reply}"
    product = plain.nginx.product()
    body = order_body(product)
    assert plain.nginx.post(ORDER, body + b" " * (65536 - len(body))).status == 201


MALFORMED = {
    "no request line": b"hello\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "a wrong length": b"POST /orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    "two lengths": b"POST /orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
    "length and chunks": b"POST /orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another encoding": b"POST /orders HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
    "HTTP 2 by its name": b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "a long line": b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 9000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 4000) for i in range(12)) + b"\r\n",
    "above the root": b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a NUL": b"GET /a\0b HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_gets_a_problem(plain, name):
    with plain.nginx.wire() as wire:
        wire.send(MALFORMED[name])
        assert told(wire.reply()) == "bad-request"


def test_internal_paths_and_other_methods_of_the_proxy_are_refused(plain):
    for target in ("/second", "/problem", "/unanswered", "/unanswered?order"):
        assert told(plain.nginx.call("GET", target, check=False)) == "not-found", target
    assert told(plain.nginx.call("TRACE", "/", check=False)) == "method-not-allowed"
    for target in ("/nothing", "/orders/x", "/ordersx"):
        reply = plain.nginx.get(target)
        assert reply.problem in ("not-found", "bad-request", "no-such-order"), f"{target}: {reply}"


# ── slow and greedy clients ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_slow_clients_are_cut_and_others_are_served(proxied):
    """Slow headers are cut by the proxy, bodies of which a byte comes now and then by the service's one deadline."""
    shop = proxied("--request-timeout-ms", "3000")
    product = shop.nginx.product(stock=1000000)
    head = request_bytes("POST", ORDER, b"", {"Content-Length": "10000"})
    starts = {"silent": b"", "line": b"GE", "header": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", "body": head + b"{", "length": head}
    wires = [(name, shop.nginx.wire()) for name in starts for _ in range(40)]
    begun, cut = time.monotonic(), {}

    def drip():
        """A byte to each, until all but the silent ones are closed."""
        while len(cut) < 4 * 40:
            for index, (name, wire) in enumerate(wires):
                if name == "silent" or index in cut:
                    continue
                try:
                    wire.send(b"x")
                    if wire.reply_has_begun():
                        wire.fill()
                except Closed as closed:
                    cut[index] = closed.partial
            assert time.monotonic() - begun < 10 * SOON_S, f"{len(cut)} are cut"
            time.sleep(0.2)

    try:
        for name, wire in wires:
            wire.send(starts[name])
        dripping = Background(drip)
        slowest = 0
        while dripping.running:
            start = time.monotonic()
            assert shop.nginx.order(product).status == 201, "a slow client does not make the proxy give a service up"
            assert shop.nginx.get("/healthz").status == 200
            slowest = max(slowest, time.monotonic() - start)
            time.sleep(0.05)
        dripping.result()
        assert slowest < SOON_S, f"an order and a look took {slowest:.1f} s beside slow clients"
        for index, (name, _) in enumerate(wires):
            if name in ("body", "length"):
                status = cut[index].split(b"\r\n")[0]
                assert not status or re.match(rb"HTTP/1\.1 (40[08]|50[34])", status), f"{name}: {cut[index]!r}"
                assert b"<html" not in cut[index]
        print(f"\n{len(cut)} slow clients cut within {time.monotonic() - begun:.1f} s; slowest call of another {slowest:.2f} s")
    finally:
        for _, wire in wires:
            wire.close()


@pytest.mark.long
def test_a_slow_reader_is_cut_and_others_are_served(plain):
    wires = [plain.nginx.wire(receive_buffer=2048) for _ in range(4)]
    try:
        for wire in wires:
            wire.send(request_bytes("GET", "/openapi.yaml") * 300)  # more than the kernel keeps for a slow reader

        def all_are_cut():
            assert plain.nginx.get("/healthz").status == 200, "others are served"
            return not any(has_open(plain.nginx, wire) for wire in wires)

        wait_until(all_are_cut, "nginx has closed their connections", seconds=60, every=0.1)
    finally:
        for wire in wires:
            wire.close()


def connect_from(source, port):
    made = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
    made.settimeout(REPLY_S)
    return made


def first_answer(connection):
    """All that comes up to the end of the connection."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def test_one_address_does_not_take_all_places_and_all_are_not_counted_as_one(proxied):
    """The service counts connections by address, and behind the proxy all have one: its limit is off (docker-compose.yml).
    The proxy counts each client address separately."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    shop = proxied(
        "--connections-per-address", "10000", "--request-timeout-ms", "600000",  # so that they stay for as long as the test needs
        changes=[("client_body_timeout 10s;", "client_body_timeout 600s;")],
    )  # fmt: skip
    greedy, taken = request_bytes("POST", ORDER, b"", {"Content-Length": "100", "Connection": "close"}), []
    get = request_bytes("GET", "/healthz", headers={"Connection": "close"})
    try:
        def open_calls(source, count):
            for _ in range(count):
                taken.append(connect_from(source, shop.nginx.port))
                taken[-1].sendall(greedy + b"{")

        open_calls("127.0.0.2", LIMIT_OF_A_CLIENT + 5)  # of which five are refused

        def is_refused():
            with connect_from("127.0.0.2", shop.nginx.port) as extra:
                extra.sendall(get)
                return first_answer(extra)

        refused = wait_until(lambda: (answer := is_refused()).startswith(b"HTTP/1.1 503 ") and answer, "one more is refused")
        assert b"/problems/overloaded" in refused and b"Retry-After: 1" in refused and b"Your address" in refused, refused
        open_calls("127.0.0.3", LIMIT_OF_A_CLIENT // 2)
        for source in ("127.0.0.3", "127.0.0.4"):
            with connect_from(source, shop.nginx.port) as other:
                other.sendall(get)
                assert first_answer(other).startswith(b"HTTP/1.1 200 "), f"{source} is counted by itself"
        assert shop.nginx.order(shop.first.product()).status == 201
        for connection in taken:
            connection.close()
        taken.clear()
        wait_until(lambda: is_refused().startswith(b"HTTP/1.1 200 "), "its places are free again")
    finally:
        for connection in taken:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_compose_and_the_service_say_agrees_with_the_proxy():
    """The limits that belong together are in three files."""
    text = SHIPPED.read_text()
    assert f"limit_conn clients {LIMIT_OF_A_CLIENT};" in text and "client_max_body_size 64k;" in text
    assert "HTTP_BODY_MAX = 64 * 1024" in (ROOT / "service/http/server.h").read_text()
    assert 'CONNECTIONS_PER_ADDRESS: "10000"' in (ROOT / "docker-compose.yml").read_text()
    defaults = dict(re.findall(r'"([A-Z_]+_MS|CONNECTIONS)", NUMBER, AT\(\w+\), "(\d+)"', (ROOT / "service/config/config.c").read_text()))
    assert defaults["CONNECTIONS"] == "10000"
    assert int(defaults["ORDER_TIMEOUT_MS"]) < 60000 and "proxy_read_timeout 60s;" in text
    assert set(re.findall(r"keepalive_timeout (\d+)s;", text)) == {"30"} and int(defaults["IDLE_TIMEOUT_MS"]) > 30000


# ── services that are away ──────────────────────────────────────────────────────────────────────────────────


def test_orders_go_on_while_one_service_is_away(proxied):
    """The other gets them, and each once."""
    shop = proxied()
    product = shop.nginx.product(stock=1000)
    assert {shop.nginx.order(product).status for _ in range(4)} == {201}
    shop.second.stop()
    assert {shop.nginx.order(product).status for _ in range(20)} == {201}
    assert shop.nginx.audit(product)["orders"] == 24
    shop.first.kill()
    for method, target, body in (("GET", "/products", None), ("GET", f"/orders?product_id={product}", None), ("PUT", "/strategy", {"name": "mutex"}),
                                 ("POST", ORDER, {"product_id": product, "quantity": 1})):  # fmt: skip
        reply = shop.nginx.call(method, target, body, check=False)
        assert told(reply) == "backend-unavailable" and reply.header("Retry-After") == "1", f"{method} {target}: {reply}"
        assert reply.seconds < SOON_S
    assert number(shop.first.database_url, f"SELECT count(*) FROM order_item WHERE product_id = {product}") == 24


def busy(service):
    """How many workers of a service have an order."""
    return int(re.search(r"^oversell_workers_busy (\d+)$", service.get("/metrics").text, re.M)[1])


def test_an_order_that_a_service_lost_is_not_given_to_the_other(proxied):
    """A service is killed while orders wait in it for a row: their clients learn that the outcome is unknown, and nobody
    repeats them but the client, who does it under the same key."""
    shop = proxied("--strategy", "select-for-update", "--in-turn=no")
    product = shop.first.product(stock=100)
    orders = [
        request_bytes("POST", ORDER, order_body(product), {"Idempotency-Key": f"{product}-{index}"} if index % 2 else {})
        for index in range(8)
    ]
    wires = [shop.nginx.wire() for _ in orders]
    try:
        with holding_row(shop.first.database_url, product):
            for wire, data in zip(wires, orders):
                wire.send(data)
            wait_until(lambda: busy(shop.first) + busy(shop.second) == len(orders), "all orders wait for the row")
            lost = busy(shop.first)
            assert 0 < lost < len(orders), "both services have some"
            shop.first.kill()
            wait_until(lambda: sum(wire.reply_has_begun() for wire in wires) >= lost, "their clients are told")
        replies = [wire.reply() for wire in wires]
        unknown = [reply for reply in replies if reply.status != 201]
        assert len(unknown) == lost and {told(reply) for reply in unknown} == {"outcome-unknown"}, f"{replies}"
        assert shop.second.audit(product)["orders"] == len(orders) - lost, "nginx has repeated an order"
        for data in orders:
            with shop.nginx.wire() as wire:
                wire.send(data)
                assert wire.reply().status == 201
        # Those with a key are there once, the others twice unless they were lost.
        again = sum(reply.status == 201 for reply in replies[0::2])
        assert shop.second.audit(product)["orders"] == len(orders) + again
    finally:
        for wire in wires:
            wire.close()


@pytest.mark.long
def test_a_service_that_does_not_answer_keeps_nobody_for_long(proxied):
    """It is stopped with its connections open. The times of the shipped file are shortened, so that the test is."""
    shop = proxied(
        changes=[("proxy_read_timeout 60s;", "proxy_read_timeout 12s;"), ("proxy_read_timeout 10s;", "proxy_read_timeout 5s;")]
    )
    product = shop.nginx.product()
    shop.second.process.send_signal(signal.SIGSTOP)
    try:
        with shop.nginx.wire() as wire:
            for _ in range(2):  # the copy for the second service delays the client's next call for 5 s at most
                wire.send(request_bytes("PUT", "/strategy", as_body({"name": "atomic-decrement"})))
                assert wire.reply().status == 200
        outcomes = together(*[lambda: shop.nginx.call("POST", ORDER, order_body(product))] * 6)
        assert {reply.problem for reply in outcomes} == {None, "outcome-unknown"}, [str(reply) for reply in outcomes]
        assert shop.nginx.get("/healthz").status == 200
    finally:
        shop.second.process.send_signal(signal.SIGCONT)
    wait_until(lambda: shop.nginx.order(product).status == 201, "it sells on")
