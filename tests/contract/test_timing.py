"""How late a wait ends, and how soon a waiter has what was released: measured, with nothing else of these tests at work."""

import statistics
import time

import pytest
from basics import at_any_speed
from conditions import EXCLUSIVE, LONG_MS, two_contenders
from contender import fresh_key, took_ms
from locks import BY_NAME

LATE_MS = 500  # ten times how late a wait may end, in the best of TRIES: a busy machine is not always late
TRIES = 10
HAND_OVERS = 9


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_a_wait_is_never_short_and_hardly_long(lock, start, print_later):
    holder, other = two_contenders(lock, start)
    key, late_ms = fresh_key(), []
    holder.got(key, lease=LONG_MS)
    for wait in (0, 1, 120, 333):
        for _ in range(TRIES):
            event = other.decided(lambda: other.acquire(key, wait=wait, lease=LONG_MS))
            assert event["status"] == "busy", event
            late_ms.append(took_ms(event) - wait)
            assert late_ms[-1] >= 0, event
            if late_ms[-1] <= LATE_MS:
                break
        assert late_ms[-1] <= LATE_MS, late_ms
    print_later("Lateness of a wait that ends in vain, in ms (mean and worst)",
                f"{lock:24} {statistics.mean(late_ms):8.1f} {max(late_ms):8.1f}")  # fmt: skip


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_hand_over(lock, start, print_later):
    """From the release to the next holder: most are woken, where the lock says that it wakes."""
    at_any_speed(lambda scale: hand_over(lock, start, print_later, 0.03 * scale))


def hand_over(lock, start, print_later, pause_s):
    """PAUSE_S: from a waiter's telling that it waits until it is asleep."""
    holder, waiter = two_contenders(lock, start)
    key, took_ms = fresh_key(), []
    holder.got(key, lease=LONG_MS)
    before = wake_ups(holder, waiter)
    for _ in range(HAND_OVERS):
        waiter.waits(key, wait=60000, lease=LONG_MS)
        time.sleep(pause_s)
        released = holder.released()
        took_ms.append((waiter.done("acquire")["ended_us"] - released["began_us"]) / 1000)
        holder, waiter = waiter, holder
    woken = "woken" if BY_NAME[lock].blocking else "polls"
    trips = (holder.stats()["round_trips"] + waiter.stats()["round_trips"]) / 12  # one each to begin with
    if BY_NAME[lock].blocking:
        assert wake_ups(holder, waiter) - before > HAND_OVERS / 2, took_ms
    print_later("Hand-over to a waiter, in ms (median and worst of nine), and requests for each acquisition",
                f"{lock:24} {woken} {statistics.median(took_ms):8.2f} {max(took_ms):8.2f} {trips:8.1f}")  # fmt: skip
    holder.released()


def wake_ups(*contenders):
    return sum(contender.stats()["wake_ups"] for contender in contenders)
