"""How late a wait ends, and how soon a waiter has what was released: measured, with nothing else at work."""

import statistics
import time

import pytest
from basics import PATIENCE
from conditions import EXCLUSIVE, LONG_MS, two_contenders
from contender import fresh_key
from locks import BY_NAME, IN_PROCESS

LATE_MS = 50 * PATIENCE  # how late a wait may end; it fails past ten times that
HAND_OVER_MS = 50 * PATIENCE  # of a lock whose waiters are woken: half of what the fastest poll takes on the average


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_a_wait_is_never_short_and_hardly_long(lock, start, print_later):
    holder, other = two_contenders(lock, start)
    key, late_ms = fresh_key(), []
    holder.got(key, lease=LONG_MS)
    for wait in (0, 1, 120, 333):
        event = other.acquire(key, wait=wait, lease=LONG_MS)
        assert event["status"] == "busy", event
        late_ms.append((event["ended_us"] - event["began_us"]) / 1000 - wait)
    print_later("Lateness of a wait that ends in vain, in ms (mean and worst of four)",
                f"{lock:24} {statistics.mean(late_ms):8.1f} {max(late_ms):8.1f}")  # fmt: skip
    assert min(late_ms) >= 0, late_ms
    assert max(late_ms) <= 10 * LATE_MS, late_ms


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_hand_over(lock, start, print_later):
    """From the release to the next holder: at once where the waiter is woken."""
    holder, waiter = two_contenders(lock, start)
    key, took_ms = fresh_key(), []
    holder.got(key, lease=LONG_MS)
    for _ in range(9):
        waiter.waits(key, wait=20000, lease=LONG_MS)
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
