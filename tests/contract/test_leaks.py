"""Nothing grows with the number of acquisitions: no memory, descriptors, keys, leases, nodes, rows or channels.

LEAK_ROUNDS=100000 for the long version."""

import os
from pathlib import Path

import pytest
from basics import PATIENCE, SANITIZED, wait_until
from conftest import probes_on
from contender import fresh_key
from locks import BY_NAME

ROUNDS = int(os.environ.get("LEAK_ROUNDS", "2000"))
THREADS = 4
GROWTH_KIB = 512  # of memory, whatever the number of rounds


class Cycling:
    """A process whose threads acquire and release, each a key of its own."""

    def __init__(self, lock, start):
        self.probe = start()
        self.contenders = [(self.probe.contender(lock), fresh_key()) for _ in range(THREADS)]

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


@pytest.fixture(scope="module")
def cycled(stack):
    """All locks at the same time, in a process each: what was there before and after, in the processes and on the servers."""
    with probes_on(stack.addresses) as start:
        cycling = {lock: Cycling(lock, start) for lock in BY_NAME}

        def run(rounds):
            for process in cycling.values():
                process.begin(rounds)
            for process in cycling.values():
                process.end(rounds)

        run(ROUNDS // 4)  # caches fill, arenas settle
        before = {lock: process.footprint() for lock, process in cycling.items()}
        servers = {lock.setting: stack.left_behind(lock.setting) for lock in BY_NAME.values()}
        run(ROUNDS)
        after = {lock: process.footprint() for lock, process in cycling.items()}
        yield before, after, servers


@pytest.mark.parametrize("lock", BY_NAME)
def test_a_process_does_not_grow(lock, cycled, print_later):
    before, after, _ = cycled
    grown = {what: after[lock][what] - count for what, count in before[lock].items()}
    print_later(f"Growth of a process by {ROUNDS} acquisitions", f"{lock:24} {grown}")
    assert grown["descriptors"] <= 0 and grown["threads"] <= 0, (before[lock], grown)
    assert SANITIZED or grown["KiB"] <= GROWTH_KIB * PATIENCE, (before[lock], grown)


@pytest.mark.parametrize("setting", sorted({lock.setting for lock in BY_NAME.values() if lock.setting}))
def test_a_server_does_not_fill(setting, cycled, stack, print_later):
    before = cycled[2][setting]
    print_later(f"Left on the servers after {ROUNDS} acquisitions", f"{setting:24} {stack.left_behind(setting)}")
    wait_until(
        lambda: all(count <= before[what] for what, count in stack.left_behind(setting).items()),
        f"no more than {before}; there is {stack.left_behind(setting)}",
    )
