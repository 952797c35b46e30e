"""Foreign clients and ours exclude each other on the same key, in both directions, waiting included."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from basics import PATIENCE
from conditions import LONG_MS
from contender import fresh_key, now_us
from foreign import BLIND, LEASE_MS, PAIRS
from locks import BY_NAME

TITLE = "Exclusion: our lock, a foreign client, [they hold: ours waits] [we hold: theirs waits] [they release: ours gets it]"
WAIT_MS = 400
WOKEN_MS = 400  # from the start of their release, which for some is a program to be started
POLLED_MS = 600


@pytest.fixture
def met(request, start, stack):
    lock, client = request.param
    foreign = client(stack)
    yield lock, foreign, start().contender(lock, LONG_MS)
    foreign.close()


@pytest.mark.parametrize("met", PAIRS, indirect=True, ids=[f"{lock}-{client.__name__}" for lock, client in PAIRS])
def test_exclusion(met, print_later):
    lock, foreign, ours = met
    key = fresh_key()

    assert foreign.hold(key), "theirs gets what is free"
    event = ours.acquire(key, wait=WAIT_MS, lease=LONG_MS)
    they_hold = event["status"] == "busy"
    assert WAIT_MS <= (event["ended_us"] - event["began_us"]) / 1000 < WAIT_MS + 500 * PATIENCE, event

    ours.waits(key, wait=LEASE_MS // 2, lease=LONG_MS)
    time.sleep(0.15)
    released_us = now_us()
    foreign.release(key)
    event = ours.done("acquire")
    took_ms = (event["ended_us"] - released_us) / 1000
    they_release = event["status"] == "ok" and took_ms < (WOKEN_MS if BY_NAME[lock].blocking else POLLED_MS) * PATIENCE

    we_hold = not foreign.hold(key)
    if not we_hold:
        foreign.release(key)
    ours.released()
    assert foreign.hold(key), "theirs gets what we released"
    foreign.release(key)

    words = ["yes" if ok else "NO" for ok in (they_hold, we_hold, they_release)]
    print_later(TITLE, f"{lock:18} {foreign.title:22} {words[0]:4} {words[1]:4} {words[2]:4} after {took_ms:.0f} ms")
    assert (they_hold, we_hold, they_release) == (True, type(foreign) not in BLIND, True), (event, took_ms)


THEY_WAIT = [(lock, client) for lock, client in PAIRS if hasattr(client, "wait") and client not in BLIND]


@pytest.mark.parametrize("met", THEY_WAIT, indirect=True, ids=[f"{lock}-{client.__name__}" for lock, client in THEY_WAIT])
def test_they_wait_for_us(met, print_later):
    """Behind us in the same queue, where there is one; our release is what they wait for."""
    lock, foreign, ours = met
    key = fresh_key()
    ours.got(key, lease=LONG_MS)
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(lambda: (foreign.wait(key), now_us()))
        time.sleep(0.5)
        assert not theirs.done()
        released_us = ours.released()["began_us"]
        came, at_us = theirs.result()
    assert came
    print_later("They wait: got after our release, in ms", f"{lock:18} {foreign.title:22} {(at_us - released_us) / 1000:6.1f}")
    assert at_us - released_us < POLLED_MS * 1000 * PATIENCE
    assert ours.acquire(key)["status"] == "busy"
    foreign.release(key)


# A value of another kind under our key is said to be one, and is left alone.
KINDS = [
    ("redis-lock", lambda server, key: server.hset(f"oversell:lock:{key}", "somebody", 1)),
    ("redis-fenced", lambda server, key: server.hset(f"oversell:lock:{key}", "somebody", 1)),
    ("redis-reentrant", lambda server, key: server.set(f"oversell:lock:{key}", "somebody")),
    ("redis-fair", lambda server, key: server.set(f"oversell:lock:{key}", "somebody")),
    ("redis-registry", lambda server, key: server.hset(f"oversell:{key}", "somebody", 1)),
]


@pytest.mark.parametrize("lock, put", KINDS, ids=[lock for lock, _ in KINDS])
def test_a_value_of_another_kind(lock, put, start, stack):
    ours, key = start().contender(lock), fresh_key()
    put(stack.redis, key)
    event = ours.acquire(key, wait=200, lease=LONG_MS)
    assert event["status"] == "refused" and event["error"], event
    assert event["ended_us"] - event["began_us"] < 800_000 * PATIENCE, event
    stack.redis.delete(f"oversell:lock:{key}", f"oversell:{key}")
    ours.got(key, lease=LONG_MS)
    ours.released()
