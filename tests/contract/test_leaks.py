"""Nothing grows with the number of acquisitions: no memory, descriptors, keys, leases, nodes, rows or channels.

LEAK_ROUNDS=100000 for the long version."""

import os
from pathlib import Path

import pytest
from basics import PATIENCE, SANITIZED, wait_until
from conditions import LONG_MS
from contender import fresh_key
from locks import BY_NAME

ROUNDS = int(os.environ.get("LEAK_ROUNDS", "2000"))
THREADS = 4
GROWTH_KIB = 512  # of memory, whatever the number of rounds


class Cycling:
    """A process whose threads acquire and release, each a key of its own."""

    def __init__(self, lock, start):
        self.probe = start()
        self.contenders = [(self.probe.contender(lock, LONG_MS), fresh_key()) for _ in range(THREADS)]

    def begin(self, rounds):
        for contender, key in self.contenders:
            contender.start("cycle", key, rounds // THREADS, wait=60000)  # some have one mutex for all keys

    def end(self, rounds):
        for contender, _ in self.contenders:
            event = contender.done("cycle", within=max(100, rounds / 20))
            assert event["status"] == "ok" and event["done"] == rounds // THREADS, event

    def footprint(self):
        process = Path(f"/proc/{self.probe.process.pid}")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        return {
            "KiB": int(status["VmRSS"].split()[0]),
            "descriptors": len(list((process / "fd").iterdir())),
            "threads": int(status["Threads"]),
        }


@pytest.mark.parametrize("setting", sorted({lock.setting for lock in BY_NAME.values()}))
def test_nothing_grows(setting, start, stack, print_later):
    """All locks of one kind of server at the same time, a process each."""
    cycling = {lock: Cycling(lock, start) for lock in BY_NAME if BY_NAME[lock].setting == setting}

    def run(rounds):
        for process in cycling.values():
            process.begin(rounds)
        for process in cycling.values():
            process.end(rounds)

    run(200)  # caches fill, arenas settle
    before = {lock: process.footprint() for lock, process in cycling.items()}
    left = stack.left_behind(setting)
    run(ROUNDS)
    for lock, process in cycling.items():
        after = process.footprint()
        grown = {what: after[what] - count for what, count in before[lock].items()}
        print_later(f"Growth of a process by {ROUNDS} acquisitions", f"{lock:24} {grown}")
        assert grown["descriptors"] <= 0 and grown["threads"] <= 0, (lock, before[lock], grown)
        assert SANITIZED or grown["KiB"] <= GROWTH_KIB * PATIENCE, (lock, before[lock], grown)
    wait_until(
        lambda: all(count <= left[what] for what, count in stack.left_behind(setting).items()),
        f"no more than {left} on the server; there is {stack.left_behind(setting)}",
    )
