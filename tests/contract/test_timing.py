"""Waiting: one absolute deadline, who is woken by a release, in which order, and how soon. Runs alone, to measure."""

import statistics
import time

import pytest
from basics import PATIENCE
from conditions import EXCLUSIVE
from contender import fresh_key
from locks import BY_NAME, IN_PROCESS, declaring

LATE_MS = 50 * PATIENCE  # how late a wait may end; it fails past ten times that
HAND_OVER_MS = 50 * PATIENCE  # of a lock whose waiters are woken: half of what the fastest poll takes on the average
HERD = ["zookeeper-herd"]
LEASE_MS = 10000


def two_contenders(lock, start):
    """In two processes, so that a lock inside the process does not answer for the server; where there is one."""
    probe = start()
    return probe.contender(lock), (probe if lock in IN_PROCESS else start()).contender(lock)


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_a_wait_is_never_short_and_hardly_long(lock, start, print_later):
    holder, other = two_contenders(lock, start)
    key, late_ms = fresh_key(), []
    holder.got(key, lease=LEASE_MS)
    for wait in (0, 1, 120, 333):
        event = other.acquire(key, wait=wait, lease=LEASE_MS)
        assert event["status"] == "busy", event
        late_ms.append((event["ended_us"] - event["began_us"]) / 1000 - wait)
    print_later("Lateness of a wait that ends in vain, in ms (mean and worst of four)",
                f"{lock:24} {statistics.mean(late_ms):8.1f} {max(late_ms):8.1f}")  # fmt: skip
    assert min(late_ms) >= 0, late_ms
    assert max(late_ms) <= 10 * LATE_MS, late_ms


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_a_deadline_in_the_past_means_one_try(lock, start):
    holder, other = two_contenders(lock, start)
    key = fresh_key()
    for wait in (-1000, -(10**12)):
        holder.got(key, wait=wait, lease=LEASE_MS)
        event = other.acquire(key, wait=wait, lease=LEASE_MS)
        assert event["status"] == "busy", event
        assert event["ended_us"] - event["began_us"] < 10 * LATE_MS * 1000, event
        holder.released()
        other.got(key, wait=wait, lease=LEASE_MS)
        other.released()


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_it_waits_until_the_lock_comes(lock, start):
    holder, other = two_contenders(lock, start)
    key = fresh_key()
    holder.got(key, lease=LEASE_MS)
    other.waits(key, wait="forever", lease=LEASE_MS)
    assert other.event("acquire", 0.3) is None
    holder.released()
    assert other.done("acquire")["status"] == "ok"


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_hand_over(lock, start, print_later):
    """From the release to the next holder: at once where the waiter is woken."""
    holder, waiter = two_contenders(lock, start)
    key, took_ms = fresh_key(), []
    holder.got(key, lease=LEASE_MS)
    for _ in range(9):
        waiter.waits(key, wait=20000, lease=LEASE_MS)
        time.sleep(0.03)
        released = holder.released()
        took_ms.append((waiter.done("acquire")["ended_us"] - released["began_us"]) / 1000)
        holder, waiter = waiter, holder
    woken = "woken" if BY_NAME[lock].blocking else "polls"
    trips = (holder.stats()["round_trips"] + waiter.stats()["round_trips"]) / 12  # one each to begin with
    print_later("Hand-over to a waiter, in ms (median and worst of nine), and requests for each acquisition",
                f"{lock:24} {woken} {statistics.median(took_ms):8.2f} {max(took_ms):8.2f} {trips:8.1f}")  # fmt: skip
    if BY_NAME[lock].blocking:
        assert statistics.median(took_ms) < HAND_OVER_MS, took_ms
        assert lock in IN_PROCESS or holder.stats()["wake_ups"] > 0


@pytest.mark.parametrize("lock", declaring(fair=True))
def test_first_come_first_served(lock, start):
    probes = [start(), start()]
    holder = probes[0].contender(lock)
    waiters = [probes[number % 2].contender(lock) for number in range(6)]
    key = fresh_key()
    holder.got(key, lease=LEASE_MS)
    for waiter in waiters:
        waiter.waits(key, wait=20000, lease=LEASE_MS)
        time.sleep(0.05)  # it has told that it waits, and now stands in the queue
    for previous, waiter in zip([holder, *waiters], waiters):
        previous.released()
        assert waiter.done("acquire", within=5)["status"] == "ok"


@pytest.mark.parametrize("lock", [name for name in declaring(blocking=True) if name not in IN_PROCESS])
def test_a_release_wakes_no_herd(lock, start, print_later):
    """One waiter at most in each process; where there is a queue, one in all. The herd is there to show the other way."""
    probes = [start(), start()]
    holder = probes[0].contender(lock)
    waiters = [probes[number % 2].contender(lock) for number in range(6)]
    key = fresh_key()
    holder.got(key, lease=LEASE_MS)
    for place, waiter in enumerate(waiters):  # the last in the queue gives up first: that wakes nobody behind it
        waiter.waits(key, wait=(2000 - 200 * place) * PATIENCE, lease=LEASE_MS)
        time.sleep(0.05)
    holder.released()
    events = [waiter.done("acquire") for waiter in waiters]  # all but one wait in vain
    assert sorted(event["status"] for event in events) == ["busy"] * 5 + ["ok"], events
    woken = sum(waiter.stats()["wake_ups"] for waiter in waiters)
    print_later("Wake-ups for one release, of six waiters in two processes", f"{lock:24} {woken:4}")
    if lock in HERD:
        assert woken >= 6
    elif BY_NAME[lock].fair:
        assert woken == 1
    else:
        assert 1 <= woken <= 2
