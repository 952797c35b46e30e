"""What the measuring tools share: processes, private servers, the database, the service, load by wrk, and pgbench.

A tool calls run(), which catches a Failure, whose text is for the user, and Interrupted."""

import contextlib
import ctypes
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / os.environ.get("BUILD", "build")
STACK = Path(os.environ.get("OVERSELL_STACK", ROOT / "stack" / "stack"))
ORDER_LUA = ROOT / "loadtest" / "load" / "order.lua"
TOOL = Path(sys.argv[0]).name
TARGET = {"growth": "bench-growth"}.get(TOOL, TOOL)  # of make

PATIENCE_S = 120  # for a service to start or to stop, and for each statement
STACK_S, STACK_STOP_S = 180, 30  # for the stack to start or to stop servers; to give up a start
POLL_S = 0.02
BROKEN, ENVIRONMENT = 1, 3  # exit statuses, as those of loadtest; of a wrong command line it is 2
ADDRESSES = ("DATABASE_URL", "REDIS_URL", "REDLOCK_URLS", "ZOOKEEPER_CONNECT", "ETCD_ENDPOINTS")


class Failure(Exception):
    """What went wrong, and the remedy, for the user. SAID is what a program that failed has printed."""

    status = ENVIRONMENT

    def __init__(self, text, said=""):
        super().__init__(text)
        self.said = said


class Broken(Failure):
    """A promise was broken: what clients were told and what the database has do not agree."""

    status = BROKEN


class Interrupted(BaseException):
    """A signal came. The tool prints what it has, and ends with the signal's status."""

    def __init__(self, number):
        super().__init__(number)
        self.status = 128 + number


def tell(text):
    print(f"{TOOL}: {text}", file=sys.stderr, flush=True)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
waiting = {"blocks": 0, "signal": 0}  # of undisturbed()


@contextlib.contextmanager
def undisturbed():
    """A signal that comes in the block interrupts the program at the end of the block, so that it cleans up before."""
    waiting["blocks"] += 1
    try:
        yield
    finally:
        waiting["blocks"] -= 1
        if waiting["signal"] and not waiting["blocks"]:
            raise Interrupted(waiting["signal"])


def interrupt(number, _frame):
    """A second signal does not disturb what the first one began."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    if not waiting["blocks"]:
        raise Interrupted(number)
    waiting["signal"] = number


def run(main):
    """Calls MAIN(), and ends with the status that it returns."""
    for number in SIGNALS:
        signal.signal(number, interrupt)
    try:
        sys.exit(main())
    except (Failure, OSError) as failure:
        show("")
        tell(failure)
        sys.exit(getattr(failure, "status", ENVIRONMENT))
    except Interrupted as interrupted:
        show("")
        tell("interrupted before there was a result")
        sys.exit(interrupted.status)


def show(text):
    """Shows on a terminal what is measured, in place of what was shown before."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)


# ---- processes ------------------------------------------------------------------------------------


def start(command, environment=None, output=subprocess.DEVNULL, death_signal=signal.SIGKILL):
    """Starts a process that a Ctrl-C does not reach, and that gets DEATH_SIGNAL (0: none) when this program ends, however it ends. A
    variable of ENVIRONMENT that is None is removed."""
    parent = os.getpid()

    def end_with_parent():
        ctypes.CDLL(None).prctl(1, death_signal)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    env = {name: value for name, value in (os.environ | (environment or {})).items() if value is not None}
    try:
        return subprocess.Popen([str(word) for word in command], cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                process_group=0, preexec_fn=end_with_parent)  # fmt: skip
    except FileNotFoundError:
        raise Failure(f"{command[0]} is missing. Run 'make {TARGET}', which installs or builds it.") from None


def finish(process):
    if process.poll() is None:
        process.kill()
    process.wait()


@contextlib.contextmanager
def beside(command, environment=None, output=subprocess.DEVNULL):
    """Runs a process until the end of the block."""
    process = start(command, environment, output)
    try:
        yield process
    finally:
        finish(process)


def output_of(command, environment=None, patience_s=PATIENCE_S):
    with beside(command, environment, subprocess.PIPE) as process:
        try:
            text = process.communicate(timeout=patience_s)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            raise Failure(f"{command[0]} did not end within {patience_s} s. Repeat the measurement on an idle machine.") from None
    if process.returncode != 0:
        raise Failure(f"{command[0]} failed. Correct what it says:\n{text.strip()}", said=text.strip())
    return text


def wait_until(condition, what, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise Failure(f"{what} took longer than {patience_s} s. Repeat the measurement on an idle machine.")
        time.sleep(POLL_S)
    return found


class Output:
    """What a process prints, in a file without a name."""

    def __init__(self):
        self.file = tempfile.TemporaryFile()

    def text(self):
        return os.pread(self.file.fileno(), 1 << 20, 0).decode(errors="replace")


# ---- servers --------------------------------------------------------------------------------------


def stack(verb, folder, *words):
    """Runs the script that starts and stops servers. Returns its status, None if it took too long, and what it printed. It is told to end
    before it is killed, since a killed `up` would leave what it had started. A `down` ends by itself if this program is killed."""
    said = Output()
    process = start([STACK, verb, "--dir", folder, *words], output=said.file, death_signal=signal.SIGTERM if verb == "up" else 0)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STACK_S)
        return process.returncode, said.text()
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STACK_STOP_S)
        finish(process)


@contextlib.contextmanager
def private_servers(names):
    """Starts the servers with these names of the stack, which end with this program as well. Yields their addresses by variable, and
    for each name that did not start the reason."""
    folder = tempfile.mkdtemp(prefix=f"oversell-{TOOL}-", dir=os.environ.get("TMPDIR") or "/var/tmp")
    os.chmod(folder, 0o755)  # if root runs this, the servers run as other users
    missing = {}
    try:
        for name in names:
            status, said = stack("up", folder, "--while", str(os.getpid()), "--purge", name)
            if status != 0:
                reasons = re.findall(r"^stack: (.*)", said, re.M) or [said.strip() or f"{name} did not start within {STACK_S} s"]
                missing[name] = reasons[-1]
        printed = output_of([STACK, "env", "--dir", folder], dict.fromkeys(ADDRESSES)) if len(missing) < len(names) else ""
        found = {name: shlex.split(value)[0] for name, value in re.findall(r"^export (\w+)=(.*)", printed, re.M)}
        yield dict.fromkeys(ADDRESSES) | {"LOCK_DATABASE_URL": None, "ADMIN_TOKEN_FILE": None} | found, missing
    finally:
        with undisturbed():
            status, said = stack("down", folder, "--purge")
            if status != 0:
                tell(f"the servers in {folder} cannot be stopped:\n{said.strip()}")
            shutil.rmtree(folder, ignore_errors=True)


class Service:
    """A service on a free port. It must stop on SIGTERM at the end of its block."""

    def __init__(self, name, command, environment=None, token=None):
        self.name, self.said = name, Output()
        self.token = token or os.environ.get("ADMIN_TOKEN")
        self.process = start(command, {"PORT": "0", "LOG_FORMAT": "text"} | (environment or {}), self.said.file)
        try:
            self.port = int(wait_until(self.listens, f"The start of the {name} service")[1])
        except BaseException:
            finish(self.process)
            raise

    def listens(self):
        self.expect_alive("did not start")
        return re.search(r"listening on port (\d+)", self.said.text())

    def expect_alive(self, otherwise="has ended"):
        if self.process.poll() is not None:
            raise Failure(f"The {self.name} service {otherwise}. Correct what it says:\n{self.said.text().strip()[-2000:]}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.stop()
        finally:
            finish(self.process)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            wait_until(lambda: self.process.poll() is not None, f"The stop of the {self.name} service")
        if self.process.returncode not in (0, 128 + signal.SIGTERM):  # the latter is Java's
            raise Failure(f"The {self.name} service did not stop cleanly (status {self.process.returncode}). It says:\n{self.said.text().strip()}")

    def send(self, method, path, body=None, connection=None, token=None):
        """Sends one request; returns the status and the body as text."""
        connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        token = token or self.token
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()

    def call(self, method, path, body=None, token=None):
        """The body of the answer, as text, which must be a good one."""
        status, text = self.send(method, path, body, token=token)
        if status // 100 != 2:
            raise Failure(f"The {self.name} service answered {status} to {method} {path}: {text[:500]}")
        return text


class Database:
    """PostgreSQL at URL. Its clients get the address by their environment, since everybody can read arguments."""

    def __init__(self, url):
        self.url, parts = url, urllib.parse.urlsplit(url)
        self.environment = {"PGHOST": parts.hostname, "PGPORT": str(parts.port), "PGUSER": parts.username, "PGPASSWORD": parts.password,
                            "PGDATABASE": parts.path.lstrip("/")}  # fmt: skip

    def run(self, *statements, options=(), patience_s=PATIENCE_S):
        """Runs each statement by itself; returns what psql prints."""
        words = [word for statement in statements for word in ("-c", statement)]
        return output_of(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", *options, *words], self.environment, patience_s).strip()

    def pgbench(self, script, clients, seconds, **variables):
        """Runs a script; returns its transactions per second and how many there were. pgbench's clock starts before its clients connect:
        on a busy machine the time may be over before the first transaction."""
        defines = [word for name, value in variables.items() for word in ("--define", f"{name}={value}")]
        # What the service's sessions ask of the planner (db/postgres/connection.c).
        environment = self.environment | {"PGOPTIONS": "-c enable_seqscan=off -c jit=off"}
        for longer in (seconds, 2 * seconds, 4 * seconds, 8 * seconds):
            text = output_of(["pgbench", "--no-vacuum", "--protocol=prepared", "--client", clients, "--time", longer, "--file", script, *defines],
                             environment, longer + PATIENCE_S)  # fmt: skip
            if not re.search(r"^number of transactions actually processed: 0$", text, re.M):
                break
        return pgbench_result(text)


def pgbench_result(text):
    """Transactions per second and their number, from pgbench's report."""
    done = re.search(r"^number of transactions actually processed: (\d+)", text, re.M)
    failed = re.search(r"^number of failed transactions: (\d+)", text, re.M)
    rate = re.search(r"^tps = ([\d.]+)", text, re.M)
    if not done or not rate or (failed and int(failed[1])):
        raise Failure(f"pgbench ended without an order, or with failures. It says:\n{text}")
    return float(rate[1]), int(done[1])


def wrk(service, connections, threads=1, environment=None, **settings):
    """Sends orders with `loadtest compare`'s script, and waits for all answers. SETTINGS are those of the script, such as
    window_ms. Returns the script's counts."""
    patience_s = settings.get("window_ms", 0) // 1000 + PATIENCE_S
    said = Output()
    each = connections // threads
    env = {f"LOAD_{name.upper()}": str(value) for name, value in settings.items()}
    env |= {"LOAD_TARGETS": f"127.0.0.1 {service.port}", "LOAD_THREADS": str(threads), "LOAD_CONNECTIONS": str(each)} | (environment or {})
    command = ["wrk", "-t", threads, "-c", each * threads, "-d", "24h", "--timeout", "60s", "-s", ORDER_LUA, f"http://127.0.0.1:{service.port}/orders"]

    def all_answered():
        service.expect_alive()
        return process.poll() is not None or said.text().count("oversell parked") >= threads

    def ended():
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)  # wrk may sleep through one
        return process.poll() is not None

    with beside(command, env, said.file) as process:
        wait_until(all_answered, f"The load of {service.name}", patience_s)
        wait_until(ended, "The stop of wrk")
    result = re.search(r"oversell result (\{.*\})", said.text())
    if not result:
        raise Failure(f"wrk gave no result. It says:\n{said.text().strip()[-1000:]}")
    return json.loads(result[1])
