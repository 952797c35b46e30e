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

# A sanitizer, or valgrind, is slow; waits that only guard against a hang are stretched by this.
SANITIZED = SERVICE.exists() and any(
    mark in SERVICE.read_bytes() for mark in (b"__asan_init", b"__tsan_init", b"exec valgrind")
)
PATIENCE = 4 if SANITIZED else 1
REPLY_S = 20 * PATIENCE  # longest wait for one reply
SOON_S = 4 * PATIENCE  # longest for what need not wait for a lock, for which an order would wait 5 s
START_S = 20 * PATIENCE  # longest wait for a process to come up or go down


def wait_until(true, what, seconds=10.0, every=0.01):
    """Waits until TRUE() is, and returns what it returned; fails with WHAT and the last value."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        value = true()
        if value:
            return value
        assert time.monotonic() < end, f"not within {seconds * PATIENCE} s: {what}; last value {value!r}"
        time.sleep(every)


def die_with_parent():
    """In a child: end when the test run does, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
