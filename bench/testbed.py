"""Measures the service, pgbench, and locks on private servers, for bench and growth. Each measurement starts in the same state: no
orders but the earlier ones, a product table without dead rows, just after a checkpoint, and a service that has just started."""

import contextlib
import http.client
import json
import re
import secrets
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from connections import connected, order_in_a_loop, order_on_all
from harness import BUILD, PATIENCE_S, ROOT, Broken, Database, Failure, Service, beside, output_of, private_servers, show, wait_until, wrk
from locks import Locks, Unavailable
from scripts import SCRIPTS, script_text, service_statements

AMPLE = 1_000_000_000  # more than a measurement can sell
HOT = 1
SPREAD_FIRST, SPREAD = 1001, 1000  # the other products that are sold
WARM_UP_ORDERS = 200  # connect every worker and prepare its statements
WARM_UP_ROUNDS = MEMORY_ROUNDS = 5  # orders over each of many connections, so that what fills with use is full
COUNTED_ORDERS = 10_000
LEARNERS = 40
SETTLE_S = 0.5  # until perf has found all threads
VACUUM_S = 600  # of ten million orders on a slow disk
EARLIER_BATCH = 100_000  # PostgreSQL keeps one event in memory for each row and foreign key
BUSY = ("lock_busy", "conflict", "overloaded", "lock_lost")  # an answer that asks to try again later
SYSTEM_CALLS = "raw_syscalls:sys_enter"


@dataclass(frozen=True)
class Load:
    """Orders to one service, through wrk."""

    strategy: str
    path: str = "/orders"
    counted: str = "created"  # the answers that should come, as order.lua counts them; "other": those of /echo
    first: int = HOT
    products: int = 1
    stock: int = AMPLE
    kind: str = ""  # of the stock of the one product; "": counter
    workers: int = 0  # 0: those of the testbed
    connections: int = 0  # 0: those of the testbed
    may_refuse: bool = False  # an answer that asks to try again later is no broken promise
    pages: int = 0  # open meanwhile: workshop pages that show the first product …
    learners: int = 0  # … or the pages of this many learners, and the class board
    classroom: bool = False
    seconds: int = 0  # 0: those of the testbed


@dataclass
class Seen:
    """What else a load showed."""

    created: Counter = field(default_factory=Counter)  # seconds that the service took for created orders: upper bounds of buckets
    round_trips: float = 0
    refused: int = 0
    written_s: float = 0  # from the last answer until all accepted orders were written


# ---- the service's metrics ------------------------------------------------------------------------


def read_metrics(text, strategy):
    """What GET /metrics says of a strategy: the histogram of its created orders, and round trips to the database."""
    seen, before = Seen(), Counter()
    for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", text, re.M):
        label = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))
        if label.get("strategy") != strategy:
            continue
        if name == "oversell_db_round_trips_total":
            seen.round_trips += float(value)
        if name == "oversell_order_seconds_bucket" and label["outcome"] in ("created", "accepted"):
            series = tuple(sorted((key, each) for key, each in label.items() if key != "le"))
            seen.created[float(label["le"])] += float(value) - before[series]  # buckets are cumulative
            before[series] = float(value)
    return seen


def percentile(histogram, share):
    """The upper bound of the bucket that has it; NaN of none. What is past the last finite bound counts as that bound."""
    samples, seen, finite = sum(histogram.values()), 0, 0.0
    if samples <= 0:
        return float("nan")
    for bound, count in sorted(histogram.items()):
        seen += count
        finite = bound if bound != float("inf") else finite
        if count > 0 and seen >= share * samples:
            break
    return finite


# ---- the testbed ----------------------------------------------------------------------------------


class Testbed(Locks):
    """The private servers. HAS_SHOP: PostgreSQL has the products, the hot one and PRODUCTS others."""

    def __init__(self, addresses, missing, folder, settings, has_shop=True, products=SPREAD):
        super().__init__(addresses, missing, settings.duration)
        self.folder, self.connections, self.workers = folder, settings.connections or 32, settings.workers
        self.earlier = self.earlier_wanted = self.last_earlier = 0
        self.insert_s = 0.0
        self.profile = ""  # record where the service's time goes during orders, under this name
        if has_shop:
            if "postgres" in missing:
                raise Failure(f"PostgreSQL did not start: {missing['postgres']}")
            self.database, self.statements = Database(addresses["DATABASE_URL"]), service_statements()
            self.make_products(products)

    def make_products(self, products):
        with self.service() as service:  # the first call that needs the schema makes it
            service.call("PUT", f"/products/{HOT}", {"name": "Benchmark", "price": "19.90", "stock": 0, "kind": "counter"})
        self.database.run("INSERT INTO product (id, name, price, count, initial_count, created_by, updated_by) SELECT id, 'Benchmark', 19.90, 0, 0, 'bench',"
                          f" 'bench' FROM generate_series({SPREAD_FIRST}, {SPREAD_FIRST + products - 1}) AS id")  # fmt: skip

    def refresh(self, stock):
        taken, others = "0", []
        if self.earlier_wanted:
            others = ["VACUUM (ANALYZE) orders, order_item"]
            self.refresh_earlier()
            taken = (f"CASE WHEN id BETWEEN {SPREAD_FIRST} AND {SPREAD_FIRST + SPREAD - 1} THEN {self.earlier // SPREAD} + "
                     f"(id - {SPREAD_FIRST} < {self.earlier % SPREAD})::int ELSE 0 END")  # fmt: skip
        else:
            self.earlier = 0
            self.database.run("TRUNCATE order_item, order_rejected, orders")
        self.database.run(f"UPDATE product SET count = {stock} - {taken}, initial_count = {stock}, version = 0, stock_kind = 'counter', "
                          "refuse_negative = false", "VACUUM (FULL, ANALYZE) product", *others, "CHECKPOINT",
                          patience_s=VACUUM_S)  # fmt: skip

    def refresh_earlier(self):
        """Deletes the orders of the last measurement and inserts the earlier orders that are missing. Each has one unit, and the spread
        products take turns."""
        if not 0 < self.earlier <= self.earlier_wanted:
            self.database.run("TRUNCATE order_item, order_rejected, orders")
            self.earlier = 0
        else:
            self.database.run(f"DELETE FROM orders WHERE id > {self.last_earlier}", patience_s=VACUUM_S)
        begun = time.monotonic()
        inserts = self.earlier < self.earlier_wanted
        while self.earlier < self.earlier_wanted:
            count = min(EARLIER_BATCH, self.earlier_wanted - self.earlier)
            self.last_earlier = int(self.database.run(f"""
                WITH made AS (
                  INSERT INTO orders (amount, created_by, updated_by) SELECT 19.90, 'earlier', 'earlier' FROM generate_series(1, {count}) RETURNING id
                ), numbered AS (SELECT id, row_number() OVER () - 1 + {self.earlier} AS i FROM made
                ), items AS (
                  INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance, stock_xid, created_by, updated_by)
                  SELECT id, {SPREAD_FIRST} + i % {SPREAD}, 19.90, 1, 'atomic-statement', 'earlier', pg_current_xact_id(), 'earlier', 'earlier'
                  FROM numbered
                ) SELECT max(id) FROM made""", patience_s=VACUUM_S))  # fmt: skip
            self.earlier += count
        if inserts:
            self.insert_s = time.monotonic() - begun

    def expect_books(self, who, told):
        """The database has exactly the orders that WHO got as created, and the stock lacks exactly their units."""
        orders, sold, lacking = map(int, self.database.run("SELECT count(*), coalesce(sum(purchase_num), 0), (SELECT sum(initial_count - count) FROM product)"
                                                           " FROM order_item", patience_s=VACUUM_S).split("|"))  # fmt: skip
        if orders - self.earlier != told or sold != lacking:
            raise Broken(f"{who} got {told} acknowledged orders, but the database has {orders - self.earlier} with {sold} units, and {lacking} units are "
                         "missing from the stock")  # fmt: skip

    @contextlib.contextmanager
    def service(self, load=None, environment=None, token=None):
        """A separate service for one measurement, so that nothing of an earlier measurement is left in its memory."""
        workers = (load and load.workers) or self.workers
        command = [BUILD / "order-service", "--listen", "127.0.0.1:0", "--instance", "service-1", "--product-limit", 0,
                   *(["--workers", workers] if workers else [])]  # fmt: skip
        with Service("order", command, self.addresses | (environment or {}), token) as service:
            # It stays open, as in all stored results: beside an idle connection an order makes 1.5 system calls more.
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE_S)) as idle:
                wait_until(lambda: service.expect_alive() or service.send("GET", "/readyz", connection=idle)[0] == 200, "The start of the order service")
                if load:
                    service.call("PUT", "/strategy", {"name": load.strategy, "think_ms": 0})
                yield service

    # ---- orders ----

    def orders(self, load, quick=False):
        """Answers a second, of the kind that should come, and what else was seen. QUICK: one second, to find the best count."""
        self.say(f"the service, {load.path if load.path != '/orders' else load.strategy}")
        self.refresh(load.stock)
        environment, token = {}, None
        if load.classroom:  # it needs a token, which other loads are measured without
            token = secrets.token_hex(10)
            environment = {"CLASSROOM": "yes", "ADMIN_TOKEN": token}
        with self.service(load, environment, token) as service:
            if load.kind:
                service.call("POST", f"/products/{load.first}/reset", {"stock": load.stock, "kind": load.kind})
            return self.drive(load, service, environment, 1 if quick else load.seconds or self.seconds)

    def warm_up(self, load, service, environment=None, requests=WARM_UP_ORDERS):
        return wrk(service, load.connections or self.connections, environment=environment, path=load.path, product=load.first,
                   products=load.products, quantity=1, requests=requests)  # fmt: skip

    def drive(self, load, service, environment, seconds):
        warm_up = self.warm_up(load, service, environment)
        counts_orders = load.path == "/orders"
        recorded = self.profile if counts_orders else ""
        with self.open_pages(load, service, environment) as pages, self.recording(service, recorded):
            before = read_metrics(service.call("GET", "/metrics"), load.strategy)
            result = wrk(service, load.connections or self.connections, environment=environment, path=load.path, product=load.first,
                         products=load.products, quantity=1, window_ms=seconds * 1000)  # fmt: skip
            seen = read_metrics(service.call("GET", "/metrics"), load.strategy)
            expect_open(pages)
        seen.created.subtract(before.created)
        seen.refused = sum(result[name] for name in BUSY) if load.may_refuse else 0
        others = result["sent"] - result[load.counted] - seen.refused
        if others > 0:
            raise Broken(f"{others} of {result['sent']} answers to {load.path} were not the expected ones: {result}")
        if load.kind:
            seen.written_s = self.await_written(load, service)
        self.expect_books("wrk", warm_up["created"] + result["created"])
        if load.counted == "created":
            return result["window_created"] / seconds, seen
        return result[load.counted] * 1e6 / max(result["elapsed_us"], 1), seen

    def await_written(self, load, service):
        """Seconds until all accepted orders are written. Stock and orders must balance then."""
        begun, least, end = time.monotonic(), None, 0.0
        while True:
            books = json.loads(service.call("GET", f"/audit?product_id={load.first}"))
            waiting = books.get("in_flight", 0)
            if waiting == 0:
                break
            if least is None or waiting < least:
                least, end = waiting, time.monotonic() + PATIENCE_S
            if time.monotonic() > end:
                raise Failure(f"the service still has {waiting} orders in progress")
            time.sleep(0.05)
        if not books["balanced"]:
            raise Broken(f"the stock is not correct: {books['sold']} sold and {books['left']} left of {books['initial']}")
        return time.monotonic() - begun

    def open_pages(self, load, service, environment):
        """A wrk that behaves like the open pages of LOAD, until the end of the block."""
        if not load.pages + load.learners:
            return contextlib.nullcontext()
        tokens = []
        if load.learners:
            code = json.loads(service.call("GET", "/class/board"))["code"]
            tokens = [json.loads(service.call("POST", "/sandboxes", {"name": f"Learner {number + 1}"}, token=code))["token"]
                      for number in range(load.learners)]  # fmt: skip
        connections = load.pages + load.learners + (1 if load.learners else 0)
        return beside(["wrk", "--threads", 1, "--connections", connections, "--duration", "24h", "--script", ROOT / "bench/pages.lua",
                       f"http://127.0.0.1:{service.port}"],
                      environment | {"PAGES_PRODUCT": str(load.first), "PAGES_LEARNERS": ",".join(tokens)})  # fmt: skip

    def get(self, path):
        """GET requests a second, of one path of the service."""
        self.say(f"the service, GET {path}")
        self.refresh(0)
        with self.service() as service:
            text = output_of(["wrk", "--threads", 1, "--connections", self.connections, "--duration", f"{self.seconds}s",
                              f"http://127.0.0.1:{service.port}{path}"], patience_s=self.seconds + PATIENCE_S)  # fmt: skip
        rate = re.search(r"Requests/sec: *([\d.]+)", text)
        if not rate or "Non-2xx" in text:
            raise Failure(f"wrk failed with GET {path}:\n{text}")
        return float(rate[1])

    def pgbench(self, load, clients, quick=False):
        """Orders a second; of no stock, transactions that could make as many."""
        self.say(f"pgbench, {load.strategy}, {clients} clients")
        script = SCRIPTS[load.strategy]
        path = Path(self.folder) / f"{load.strategy}.pgbench"
        path.write_text(script_text(script.steps, self.statements), encoding="utf-8")
        self.refresh(load.stock)
        rate, transactions = self.database.pgbench(path, clients, 1 if quick else self.seconds, first=load.first, last=load.first + load.products - 1,
                                                   quantity=1, instance="service-1", strategy=load.strategy)  # fmt: skip
        self.expect_books("pgbench", transactions * script.orders if load.stock else 0)
        return rate * script.orders

    # ---- many connections ----

    def memory(self, connections):
        """Resident MiB of the service while the connections are open."""
        self.say(f"the service, {connections} connections open")
        self.refresh(AMPLE)
        with self.service() as service, connected(service, connections) as sockets:
            order_on_all(sockets, HOT, MEMORY_ROUNDS)
            resident = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{service.process.pid}/status").read_text(encoding="utf-8"), re.M)
        self.expect_books("the client", connections * MEMORY_ROUNDS)
        return int(resident[1]) / 1024

    def latencies(self, load):
        """Median and 99th percentile of the answers' time in ms, if each connection sends its next order after the answer to the last."""
        self.say(f"the service, {load.strategy}: its latencies")
        self.refresh(load.stock)
        with self.service(load) as service, connected(service, load.connections) as sockets:
            order_on_all(sockets, load.first, WARM_UP_ROUNDS)
            times = order_in_a_loop(sockets, load.first, self.seconds)
        self.expect_books("the client", len(times) + WARM_UP_ROUNDS * load.connections)
        times.sort()
        return times[int(len(times) * 0.5)] * 1000, times[int(len(times) * 0.99)] * 1000

    # ---- what an order calls ----

    def calls(self, load):
        """System calls, allocations and round trips to the database of an order, without the start and the first orders."""
        self.say(f"the service, {load.strategy}: its calls")
        try:
            output_of(["perf", "stat", "--event", SYSTEM_CALLS, "--output", "/dev/null", "true"])
        except Failure:
            raise Unavailable(f"perf cannot count {SYSTEM_CALLS}: install the package linux-perf") from None
        _, _, before = self.one_life(load, 0)
        calls, trips, after = self.one_life(load, COUNTED_ORDERS)
        return calls / COUNTED_ORDERS, (after - before) / COUNTED_ORDERS, trips / COUNTED_ORDERS

    def one_life(self, load, orders):
        """The system calls and round trips of ORDERS orders after the first ones, and the allocations of the service from its start to its end."""
        calls = trips = 0
        self.refresh(load.stock)
        with self.service(load, {"LD_PRELOAD": "libmemusage.so"}) as service:  # it comes with glibc
            self.warm_up(load, service)
            if orders:
                path = Path(self.folder) / "perf.txt"
                before = read_metrics(service.call("GET", "/metrics"), load.strategy)
                with perf(service, "stat", "--field-separator", ",", "--event", SYSTEM_CALLS, "--output", path):
                    time.sleep(SETTLE_S)
                    self.warm_up(load, service, requests=orders)
                trips = read_metrics(service.call("GET", "/metrics"), load.strategy).round_trips - before.round_trips
                calls = int((re.search(r"^(\d+),", path.read_text(encoding="utf-8"), re.M) or [0, 0])[1])
            service.stop()
            allocations = allocations_in(service.said.text())
        self.expect_books("wrk", WARM_UP_ORDERS + orders)
        if allocations == 0 or (orders and calls == 0):
            raise Failure("perf counted nothing, or the service did not report its number of allocations")
        return calls, trips, allocations

    @contextlib.contextmanager
    def recording(self, service, title):
        """Records where the service's CPU time goes, and prints the functions that took most of it."""
        if not title:
            yield
            return
        path = Path(self.folder) / "perf.data"
        with perf(service, "record", "--freq", "997", "--output", path):
            yield
        report = output_of(["perf", "report", "--stdio", "--input", path, "--sort", "dso,symbol", "--percent-limit", "0.7"])
        show("")
        print(f"\nCPU time of the service: {title}\n{report}", file=sys.stderr)


@contextlib.contextmanager
def opened(servers, settings, **options):
    """The testbed on these servers of the stack, until the end of the block."""
    show("starting the servers")
    with TemporaryDirectory(prefix="oversell-bench-") as folder, private_servers(servers) as (addresses, missing):
        try:
            yield Testbed(addresses, missing, folder, settings, **options)
        finally:
            show("")


# ---- helpers --------------------------------------------------------------------------------------


@contextlib.contextmanager
def perf(service, *words):
    with beside(["perf", *words, "--pid", service.process.pid]) as process:
        yield
        process.send_signal(signal.SIGINT)
        wait_until(lambda: process.poll() is not None, "The end of perf")


def expect_open(pages):
    """PAGES, a wrk, must have sent until now; None: there are none."""
    if pages and pages.poll() is not None:
        raise Failure(f"wrk, which plays the open pages, ended with status {pages.returncode}. Run bench/pages.lua with wrk to see why.")


def allocations_in(text):
    """Calls of malloc, calloc and realloc, from the table of libmemusage: "\\033[00;34mrealloc|\\033[0m   123 …"."""
    return sum(int(count) for count in re.findall(r"(?<=[ m])(?:malloc|calloc|realloc)\|(?:\033\[[\d;]*m)?\s*(\d+)", text))


def echoes_of(load):
    """Requests of the same size that only come back."""
    return replace(load, path="/echo", counted="other", stock=0, kind="")
