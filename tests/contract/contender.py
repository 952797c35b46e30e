"""Processes full of contenders for locks: build/lockprobe, told what to do and listened to."""

import itertools
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from basics import PATIENCE, wait_until
from locks import BY_NAME, LOCKPROBE, VOTED, lease_ms

NAMES = (f"c{number}" for number in itertools.count(1))
KEYS = (f"test:{os.getpid()}:{number}" for number in itertools.count(1))
NAMING = threading.Lock()
SANITIZERS = {
    name: f"{os.environ.get(name, '')}:{options}"
    for name, options in {
        "ASAN_OPTIONS": "detect_leaks=1:exitcode=99",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
        "TSAN_OPTIONS": "exitcode=99",
    }.items()
}


def fresh(names):
    with NAMING:
        return next(names)


def fresh_key():
    """A key that nobody else contends for."""
    return fresh(KEYS)


def now_us():
    return time.monotonic_ns() // 1000


def took_ms(event):
    return (event["ended_us"] - event["began_us"]) / 1000


class Probe:
    """One process. It ends when its input does, so it never outlives the test run."""

    def __init__(self, addresses):
        self.process = subprocess.Popen(
            [LOCKPROBE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], **SANITIZERS, **addresses},
        )
        self.events = []
        self.changed = threading.Condition()
        self.errors = []
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._collect_errors, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            with self.changed:
                self.events.append(json.loads(line))
                self.changed.notify_all()
        with self.changed:
            self.events.append(None)  # the end
            self.changed.notify_all()

    def _collect_errors(self):
        self.errors += self.process.stderr.readlines()

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def take(self, who, did, within):
        """The next event of this kind, which is then no more; None if it does not come WITHIN seconds."""
        end = time.monotonic() + within

        def wanted(event):
            return event and event["who"] == who and event["did"] in (did, "misunderstood")

        with self.changed:
            while True:
                for event in self.events:
                    if wanted(event):
                        self.events.remove(event)
                        assert event["did"] == did, event
                        return event
                if None in self.events:
                    raise AssertionError(f"lockprobe ended {self.process.wait()}: {''.join(self.errors)[-4000:]}")
                if not self.changed.wait(max(0, end - time.monotonic())):
                    return None

    def contender(self, lock, lease=None):
        """One that has talked with its server before, so that what it does next takes no connecting. LEASE is that of a
        ZooKeeper session, which is the first that its process asks for; the shortest where none is given."""
        contender = Contender(self, lock)
        if BY_NAME[lock].setting == "ZOOKEEPER_CONNECT":
            lease = lease or lease_ms(lock)
        wait_until(lambda: contender.acquire(fresh_key(), 5000 * PATIENCE, lease)["status"] == "ok"
                   and contender.release()["status"] == "ok", f"{lock} is got and released", seconds=30)  # fmt: skip
        return contender

    def ping(self, lock, ms):
        self.tell("ping", lock, ms)
        return self.take(lock, "ping", 20 * PATIENCE)

    def connected_ports(self):
        """Of the servers that the process is connected with by IPv4."""
        folder = Path(f"/proc/{self.process.pid}")
        ends = [os.readlink(end) for end in (folder / "fd").iterdir()]
        rows = [line.split() for line in (folder / "net" / "tcp").read_text().splitlines()[1:]]
        return {int(row[2].split(":")[1], 16) for row in rows if row[3] == "01" and f"socket:[{row[9]}]" in ends}

    def kill(self):
        """A crash."""
        self.process.kill()
        self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        """Ends it in good order, where it still runs and nobody in it waits for ever; fails on a sanitizer's report."""
        if self.process.poll() is not None:
            return
        self.resume()
        try:
            self.tell("quit")
            status = self.process.wait(timeout=5 * PATIENCE)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.kill()
            status = 0
        assert status == 0, f"lockprobe ended {status}: {''.join(self.errors)[-4000:]}"


class Contender:
    """One thread of a probe, with its own handle. Each call tells it something and returns the event that answers."""

    def __init__(self, probe, lock):
        self.probe = probe
        self.lock = lock
        self.name = fresh(NAMES)
        self.probe.tell("open", self.name, lock)
        status = self.done("open")["status"]
        assert status == "ok", f"{lock}: {status}"

    def start(self, command, *words, **options):
        """Tells it; what comes of it is taken by done()."""
        options = [f"{name}={value}" for name, value in options.items() if value not in (None, False)]
        self.probe.tell(command, self.name, *words, *[word.removesuffix("=True") for word in options])
        return self

    def done(self, did, within=30):
        event = self.event(did, within * PATIENCE)
        assert event, f"{self.name}: no '{did}' within {within * PATIENCE} s"
        return event

    def event(self, did, within):
        """As done, but None where it does not come."""
        return self.probe.take(self.name, did, within)

    def first_of(self, *what):
        """The first of these events that comes."""
        return wait_until(lambda: next(filter(None, (self.event(did, 0) for did in what)), None), f"one of {what}")

    def acquire(self, key, wait=0, lease=None, ends=False):
        return self.start("acquire", key, wait=wait, lease=lease, ends=ends).done("acquire")

    def got(self, key, wait=15000 * PATIENCE, **options):
        """Acquires what is free, or will be; it must succeed. A try that a busy machine made too late may leave a node that its
        server removes only after a while, so tries go on."""
        deadline = time.monotonic() + 15 * PATIENCE
        while (event := self.acquire(key, wait, **options))["status"] in ("away", "busy") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert event["status"] == "ok", event
        return event

    def decided(self, ask):
        """The event that ASK returns; asked again where a server was late, as one on a busy machine may be."""
        for _ in range(5):
            event = ask()
            if event["status"] != "away":
                break
        return event

    def waits(self, key, **options):
        """Starts to acquire what somebody else holds, and returns once it waits."""
        self.start("acquire", key, **options).done("wait")
        return self

    def release(self):
        return self.start("release").done("release")

    def released(self):
        """Where a majority was late to answer, it has been asked all the same; and then the next release must do."""
        event = self.release()
        if event["status"] == "away" and self.lock in VOTED:
            assert self.decided(self.release_another)["status"] == "ok", event
        else:
            assert event["status"] == "ok", event
        return event

    def release_another(self):
        self.got(fresh_key(), wait=5000 * PATIENCE)
        return self.release()

    def holds(self):
        return self.start("held").done("held")["status"]

    def stats(self):
        return self.start("stats").done("stats")
