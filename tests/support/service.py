"""The order service as a process: started, called, and ended cleanly."""

import itertools
import os
import re
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from basics import DOCUMENT, PATIENCE, REPLY_S, SERVICE, START_S, WAIT_MS, die_with_parent, wait_until
from wire import Wire, as_body, request_bytes

SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
    "TSAN_OPTIONS": "exitcode=99",
}
SANITIZER_REPORT = re.compile(r"(ERROR|WARNING): \w+Sanitizer|runtime error:")

PRODUCT_IDS = itertools.count(1000)  # fresh products, so that tests do not meet


def next_free_id():
    """The id of a product that does not exist."""
    return next(PRODUCT_IDS)


class Service:
    """One order-service process. To be started from the main thread: it dies with the thread that did.
    UNDER: the words of a program that becomes the service, having set something for it."""

    count = itertools.count(1)
    lock_servers = {}  # the variables that name them

    def __init__(self, folder, database_url, *flags, env=None, token=None, listen="127.0.0.1:0", under=()):
        self.name = f"e2e-{next(Service.count)}"
        self.port_file = folder / f"{self.name}.port"
        self.log_file = folder / f"{self.name}.log"
        self.database_url = database_url
        self.token = token
        environment = {
            "PATH": os.environ["PATH"],
            **{name: f"{os.environ.get(name, '')}:{options}" for name, options in SANITIZER_OPTIONS.items()},
            "DATABASE_URL": database_url,
            # Instances of one shop share its locks; shops that share the servers do not.
            "LOCK_PREFIX": urlsplit(database_url).path.strip("/") or "oversell",
            "LOCK_WAIT_MS": str(WAIT_MS),
            "ORDER_TIMEOUT_MS": str(WAIT_MS),
            "FIRST_BYTE_MS": str(WAIT_MS),  # a test opens many connections before it sends over each
            **Service.lock_servers,
            **({"ADMIN_TOKEN": token} if token else {}),
            **(env or {}),
        }
        arguments = ["--listen", listen, "--port-file", str(self.port_file), "--instance", self.name, *flags]
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen(
                [*under, SERVICE, *map(str, arguments)],
                env=environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                preexec_fn=die_with_parent,
            )
        self.killed = False

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
        """One request on a new connection; the reply is held against the document."""
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

    def metric(self, name):
        """The value of a metric without labels."""
        return int(re.search(rf"^{name} (\d+)$", self.get("/metrics").text, re.MULTILINE)[1])

    # the calls that most tests make

    def order(self, product, quantity=1, strategy=None, key=None, **more):
        target = "/orders" + (f"?strategy={strategy}" if strategy else "")
        return self.post(
            target,
            {"product_id": product, "quantity": quantity, **more},
            {"Idempotency-Key": key} if key else {},
        )

    def kind(self, strategy):
        """The kind of stock that a strategy sells."""
        return self.get(f"/strategies/{strategy}").json["stock_kind"]

    def product(self, stock=100, price="19.90", strategy=None, kind="counter"):
        """A product that no other test knows, with the kind of stock of a strategy; returns its id."""
        product = next(PRODUCT_IDS)
        body = {"name": f"product {product}", "price": price, "stock": stock}
        kind = self.kind(strategy) if strategy else kind
        reply = self.put(f"/products/{product}", body if kind == "counter" else {**body, "kind": kind})
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
            page = self.get(
                f"/orders?product_id={product}&limit=1000" + (f"&after={after}" if after else "")
            ).json
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
            raise AssertionError(
                f"{self.name} did not end within {START_S} s of {by.name}:\n{self.log[-3000:]}"
            ) from None
        assert status == 0, f"{self.name} ended with {status}:\n{self.log[-6000:]}"
        self.check_log()

    def kill(self):
        """kill -9."""
        self.killed = True
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

    def start(self, database_url, *flags, ready=True, **options):
        """READY: wait until it takes orders; False: until it listens; None: not at all."""
        service = Service(self.folder, database_url, *flags, **options)
        self.running.append(service)
        if ready is not None:
            service.listening()
        return service.ready() if ready else service

    def end(self):
        """Stops all that still run; the first that does not end cleanly is raised when all are gone."""
        failures = []
        for service in self.running:
            try:
                if not service.killed:
                    service.stop()  # also where it has ended by itself: with 0, or it fails here
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
    ran = subprocess.run(
        [SERVICE, *arguments],
        env={"PATH": os.environ["PATH"], **(env or {})},
        capture_output=True,
        text=True,
        timeout=seconds * PATIENCE,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return ran.returncode, ran.stdout, ran.stderr
