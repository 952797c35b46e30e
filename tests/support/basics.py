"""What is under test, and how long a test waits for it."""

import ctypes
import os
import signal
import time
from pathlib import Path

from contract import Document

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
SERVICE = BUILD / "order-service"
DOCUMENT = Document(ROOT / "docs" / "openapi.yaml")

# A sanitizer, or valgrind, is slow.
SANITIZED = SERVICE.exists() and any(
    mark in SERVICE.read_bytes() for mark in (b"__asan_init", b"__tsan_init", b"exec valgrind")
)
# A test waits for a state, not for a time. Its bounds only end a test that would hang, and are multiplied by this, which
# leaves room for a machine four times slower that other programs keep busy.
PATIENCE = 16 if SANITIZED else 4
REPLY_S = 20 * PATIENCE  # longest wait for one reply
START_S = 30 * PATIENCE  # longest wait for a process to start or to end
# A service that is not told otherwise waits this long, so that no order times out because the machine is slow.
WAIT_MS = 60000
SOON_S = 20  # what takes less has not waited for a lock, nor for the 30 s after which a request is cut


def wait_until(true, what, seconds=15.0, every=0.01):
    """Waits until TRUE() is, and returns what it returned; fails with WHAT and the last value."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        value = true()
        if value:
            return value
        assert time.monotonic() < end, f"not within {seconds * PATIENCE} s: {what}; last value {value!r}"
        time.sleep(every)


def stays(true, what, seconds=0.5):
    """Watches for a moment that TRUE() stays so, where nothing shows that it will. On a slow machine this sees less, and
    fails no sooner."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert true(), f"not for {seconds} s: {what}"
        time.sleep(0.01)


def at_any_speed(play, scales=(1, 5, 25)):
    """Runs PLAY(scale), whose times are to be SCALE times as long, until it does not fail. A slow machine outlives a short
    lease or a short pause; a mistake shows at every length. Not for races, which do not show each time."""
    for scale in scales:
        try:
            return play(scale)
        except AssertionError:
            if scale == scales[-1]:
                raise
    raise ValueError("no scales")


def die_with_parent():
    """In a child: end when the test run does, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
