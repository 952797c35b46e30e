"""Nothing grows with the number of acquisitions: no memory, descriptors, keys, leases, nodes, rows or channels.

Half of the rounds are contended, so that queues, watches and subscriptions come and go. LEAK_ROUNDS=100000 for the long
version."""

import os
from pathlib import Path

import pytest
from basics import SANITIZED, wait_until
from conditions import LONG_MS, all_well
from contender import fresh_key
from length import short_only
from locks import BREAKS, BY_NAME, declaring

ROUNDS = int(os.environ.get("LEAK_ROUNDS", "2000"))
THREADS = 4
GROWTH_KIB = 512  # of memory, whatever the number of rounds
NEVER_SHARED = {*BREAKS["threads"], *BREAKS["lost_wake_up"]}  # a thread of theirs could be robbed, or wait for ever
# What a server has while somebody holds or waits, and not when all have gone: not even for a process that still runs,
# and whose subscriber keeps its connection.
GONE_WITH_THE_LAST = ("channels", "zk_watch_count", "zk_ephemerals_count", "leases")
GONE_S = 25  # what the tests before have left on purpose ends with its lease


class Cycling:
    """A process whose threads acquire and release: each its own key, then all of them one key.

    It has one arena of memory, as one for each thread takes some hundred thousand rounds to be as large as it gets."""

    def __init__(self, lock, start):
        self.lock = lock
        self.probe = start(MALLOC_ARENA_MAX="1")
        self.contenders = [(self.probe.contender(lock, LONG_MS), fresh_key()) for _ in range(THREADS)]
        self.shared = fresh_key()
        self.keys = [self.shared, *(key for _, key in self.contenders)]
        self.waited = 0  # threads that had to wait

    def begin(self, rounds):
        wait = max(60000, 30 * rounds)  # those that poll may be overtaken by all the others
        for contender, key in self.contenders:
            for each in (key, key if self.lock in NEVER_SHARED else self.shared):
                contender.start("cycle", each, rounds // THREADS // 2, wait=wait)

    def end(self, rounds):
        for contender, _ in self.contenders:
            for _ in range(2):
                event = contender.done("cycle", within=max(100, rounds / 20))
                all_well(self.lock, event)
                assert event["done"] == rounds // THREADS // 2, event
            self.waited += contender.event("wait", 0) is not None

    def waits_at_each_server(self, start):
        """So that it has the thread that listens there, which else may come at any time: few stand there by chance."""
        contender = self.contenders[0][0]
        for url in start.addresses["REDLOCK_URLS"].split(","):
            key = fresh_key()
            holder = start(REDLOCK_URLS=url).contender(self.lock)
            holder.got(key, lease=LONG_MS)
            contender.waits(key, wait=2000, lease=LONG_MS)
            assert contender.done("acquire")["status"] == "ok"  # by the other servers
            contender.released()
            holder.released()
            holder.probe.end()

    def wake_ups(self):
        return sum(contender.stats()["wake_ups"] for contender, _ in self.contenders)

    def footprint(self):
        process = Path(f"/proc/{self.probe.process.pid}")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        return {
            "KiB": int(status["VmRSS"].split()[0]),
            "descriptors": len(list((process / "fd").iterdir())),
            "threads": int(status["Threads"]),
        }


def is_leak(grown):
    return grown["descriptors"] > 0 or grown["threads"] > 0 or not SANITIZED and grown["KiB"] > GROWTH_KIB


@pytest.mark.long
@pytest.mark.parametrize("setting", short_only(["", "REDIS_URL", "REDLOCK_URLS"], sorted({lock.setting for lock in BY_NAME.values()})))
def test_nothing_grows(setting, start, stack, print_later):
    """All locks of one kind of server at the same time, a process each. (A mutex is free before another thread comes.)"""
    cycling = {lock: Cycling(lock, start) for lock in BY_NAME if BY_NAME[lock].setting == setting}

    def run(rounds):
        for process in cycling.values():
            process.begin(rounds)
        for process in cycling.values():
            process.end(rounds)

    for lock in declaring(setting=setting, blocking=True) if setting == "REDLOCK_URLS" else []:
        cycling[lock].waits_at_each_server(start)
    run(200)  # caches fill
    left = stack.left_behind(setting)
    allowed = {what: 0 if what in GONE_WITH_THE_LAST else count for what, count in left.items()}
    for attempt in range(1, 4):  # a connection more, where a server was late, stays; what leaks grows each time
        before = {lock: process.footprint() for lock, process in cycling.items()}
        run(ROUNDS)
        grown = {
            lock: {what: count - before[lock][what] for what, count in process.footprint().items()}
            for lock, process in cycling.items()
        }
        leaking = {lock: growth for lock, growth in grown.items() if is_leak(growth)}
        if not leaking:
            break
    assert not leaking, f"{leaking} in each of {attempt} runs, at last beyond {before}"
    for lock, process in cycling.items():
        told = f"{lock:24} {grown[lock]}, {process.wake_ups()} wake-ups"
        print_later(f"Growth of a process by {ROUNDS} acquisitions, half of them contended", told)
        assert process.waited or not setting or lock in NEVER_SHARED, f"{lock}: nobody had to wait"
    keys = [key for process in cycling.values() for key in process.keys]
    wait_until(
        lambda: not any(stack.left_behind(setting)[what] > count for what, count in allowed.items())
        and not stack.left_of(setting, keys),
        f"no more than {allowed} on the server, and nothing of these locks; there is {stack.left_behind(setting)}"
        f" and {stack.left_of(setting, keys)}",
        seconds=GONE_S,
        every=0.2,
    )
