"""What every lock has to stand, as scripts for processes and threads.

A script gets a lock's name and a function that starts processes. It returns None where the lock stood the test, or
what went wrong; any other surprise is an assertion. locks.BREAKS says which lock breaks what. Most of each script is
waiting for a lease to end, so that they run side by side."""

import tempfile
import time

from basics import PATIENCE, REPLY_S, wait_until
from contender import fresh_key, now_us, took_ms
from locks import BREAKS, BY_NAME, IN_PROCESS, LOCKS, SHARED, VOTED, declaring, lease_ms, scaled

FREE_WITHIN_MS = 4000 * PATIENCE  # after the lease's end
ROUNDS = 25
NEVER_S = 3  # after which a waiter is taken for one that is not woken, where that is the flaw of its lock
LONG_MS = 60000  # a lease that does not end during the test


def sleep_ms(milliseconds):
    time.sleep(milliseconds / 1000)


def stranger_gets_it(stranger, key):
    """Does one try get the lock? Redlock's servers have few milliseconds to answer it, so it may take another."""
    for _ in range(5):
        event = stranger.acquire(key)
        if event["status"] != "away":
            break
    assert event["status"] in ("ok", "busy"), event
    return event["status"] == "ok"


def two_contenders(lock, start):
    """In two processes, so that a lock inside the process does not answer for the server; where there is one."""
    probe = start()
    return probe.contender(lock, LONG_MS), (probe if lock in IN_PROCESS else start()).contender(lock, LONG_MS)


# ---- mutual exclusion ----


def threads(lock, start):
    probe = start()
    return count_together(lock, [probe.contender(lock) for _ in range(4)])


def processes(lock, start):
    """Two threads in each of them, but where threads of one process do not exclude each other."""
    threads_each = 1 if lock in BREAKS["threads"] else 2
    return count_together(lock, [probe.contender(lock) for probe in (start(), start()) for _ in range(threads_each)])


def count_together(lock, contenders):
    """One holds it: the last must not get it. Then all count in one file, kept from overwriting each other by the lock."""
    key = fresh_key()
    contenders[0].got(key)
    if stranger_gets_it(contenders[-1], key):
        return "two hold it at once"
    contenders[0].released()
    if lock in BREAKS["lost_wake_up"]:
        return None  # whether all are woken in time would be luck
    with tempfile.NamedTemporaryFile("w+") as file:
        for contender in contenders:
            contender.start("count", key, file.name, ROUNDS, wait=60000 * PATIENCE)
        events = [contender.done("count", within=60) for contender in contenders]
        counted = int(file.read() or 0)
    intervals = sorted(interval for event in events for interval in event["intervals"])
    overlaps = sum(left[1] > right[0] for left, right in zip(intervals, intervals[1:]))
    done = len(intervals)
    if overlaps or counted != done:
        return f"{overlaps} overlaps, {done} increments made {counted}"
    for event in events:
        all_well(lock, event)
    return None


def all_well(lock, event):
    """Every round that was counted, but for a few that were released to a majority that was late to answer."""
    late = max(3, event["done"] // 1000) if lock in VOTED else 0
    assert event["status"] == "ok" and event["away"] <= late, event


# ---- no deadlock: a dead contender's lock frees itself, and its death hands it to nobody else ----


def crash_of_a_holder(lock, start):
    holder, other = start().contender(lock), start().contender(lock)
    key = fresh_key()
    holder.got(key, lease=lease_ms(lock))
    return is_free_after_crash(lock, holder, other, key)


def is_free_after_crash(lock, holder, other, key):
    limit_ms = lease_ms(lock) + FREE_WITHIN_MS
    killed_us = now_us()
    holder.probe.kill()
    event = other.acquire(key, wait=limit_ms, lease=lease_ms(lock))
    assert event["status"] in ("ok", "busy"), event
    return None if event["status"] == "ok" else f"busy {(event['ended_us'] - killed_us) / 1000:.0f} ms after the crash"


def crash_inside_acquire(lock, start):
    holder, other = start().contender(lock), start().contender(lock)
    key = fresh_key()
    holder.start("hold-at", "setnx").start("acquire", key, lease=lease_ms(lock))
    holder.first_of("step", "acquire")
    return is_free_after_crash(lock, holder, other, key)


def crash_of_a_waiter(lock, start):
    holder, dead, waiter = (start().contender(lock) for _ in range(3))
    key, lease = fresh_key(), lease_ms(lock)
    holder.got(key, lease=LONG_MS)
    dead.waits(key, wait=lease + 1000, lease=lease)  # its place in a queue times out with its own wait
    waiter.waits(key, wait=60000 * PATIENCE, lease=lease)
    dead.probe.kill()
    event = waiter.event("acquire", (lease + 1500) / 1000)
    if event:
        return f"a waiter's death gave the lock to another: {event}"
    holder.released()
    event = waiter.event("acquire", REPLY_S)
    return None if event and event["status"] == "ok" else f"not got after the release: {event}"


def pause_of_a_waiter(lock, start):
    """A waiter's process sleeps for longer than what keeps its place, and wakes when it is somebody else's turn. (Jepsen
    found in 2020 that such a waiter in etcd's own lock service believed that it held the lock.)"""
    holder, sleeper, owner = (start().contender(lock) for _ in range(3))
    key, lease = fresh_key(), lease_ms(lock)
    holder.got(key, lease=LONG_MS)
    sleeper.waits(key, wait=60000 * PATIENCE, lease=lease)
    sleep_ms(scaled(100))  # it has told that it waits, and now stands in the queue
    sleeper.probe.pause()
    owner.waits(key, wait=60000 * PATIENCE, lease=LONG_MS)
    sleep_ms(lease + 1000)
    holder.released()
    event = owner.event("acquire", REPLY_S)
    sleeper.probe.resume()
    assert event and event["status"] == "ok", event
    event = sleeper.event("acquire", 1)
    if event and event["status"] == "ok" or owner.holds() != "ok":
        return f"two hold it: {event}"
    return None


def keeps_its_place(lock, start):
    """A waiter waits for longer than its lease, and is served before one who came later."""
    holder, first, second = (start().contender(lock) for _ in range(3))
    key, lease = fresh_key(), lease_ms(lock)
    holder.got(key, lease=LONG_MS)
    first.waits(key, wait=60000 * PATIENCE, lease=lease)
    sleep_ms(scaled(100))
    second.waits(key, wait=60000 * PATIENCE, lease=LONG_MS)
    sleep_ms(2.5 * lease)
    holder.released()
    for waiter in (first, second):
        event = waiter.event("acquire", REPLY_S)
        if not event or event["status"] != "ok":
            return f"{'the first' if waiter is first else 'the second'} did not get it when it was its turn: {event}"
        waiter.released()
    return None


def lost_wake_up(lock, start):
    """The holder releases in the very moment in which a waiter starts to wait."""
    probe = start()
    holder, waiter = probe.contender(lock), probe.contender(lock)
    key = fresh_key()
    holder.got(key, lease=LONG_MS)
    waiter.start("hold-at", "wait").start("acquire", key, wait=60000 * PATIENCE, lease=LONG_MS).done("step")
    holder.released()
    waiter.start("go")
    event = waiter.event("acquire", NEVER_S if lock in BREAKS["lost_wake_up"] else REPLY_S)
    return None if event and event["status"] == "ok" else "never woken"


# ---- waiting ----


def deadline_in_the_past(lock, start):
    """Means one try."""
    holder, other = two_contenders(lock, start)
    key = fresh_key()
    for wait in (-1000, -(10**12)):
        holder.got(key, wait=wait, lease=LONG_MS)
        tries = [other.decided(lambda: other.acquire(key, wait=wait, lease=LONG_MS)) for _ in range(3)]
        assert all(event["status"] == "busy" for event in tries), tries
        assert min(map(took_ms, tries)) < 500 * PATIENCE, tries
        holder.released()
        other.got(key, wait=wait, lease=LONG_MS)
        other.released()


def waits_until_it_comes(lock, start):
    holder, other = two_contenders(lock, start)
    key = fresh_key()
    holder.got(key, lease=LONG_MS)
    other.waits(key, wait="forever", lease=LONG_MS)
    assert other.event("acquire", 0.5) is None
    holder.released()
    assert other.done("acquire")["status"] == "ok"


def first_come_first_served(lock, start):
    probes = [start(), start()]
    holder, *waiters = [probes[number % 2].contender(lock, LONG_MS) for number in range(7)]
    key = fresh_key()
    holder.got(key, lease=LONG_MS)
    for waiter in waiters:
        waiter.waits(key, wait=60000 * PATIENCE, lease=LONG_MS)
        sleep_ms(scaled(100))
    for previous, waiter in zip([holder, *waiters], waiters):
        previous.released()
        assert waiter.done("acquire")["status"] == "ok"


def one_is_woken(lock, start):
    """By a release, one waiter in each process at most; where there is a queue, or where the first of each process polls
    and only its own release wakes the next, one in all. The herd shows the other way.

    Nobody gives up, which might wake others too: each has it in turn, and holds it until those that were woken in vain
    wait again. Redlock's waiters stand on one server, since a release of all wakes one on each of them."""
    probes = [start(REDLOCK_URLS=start.addresses["REDLOCK_URLS"].split(",")[0]) for _ in range(2)]
    holder, *waiters = [probes[number % 2].contender(lock, LONG_MS) for number in range(7)]
    key = fresh_key()
    holder.got(key, lease=LONG_MS)
    before = [waiter.stats()["wake_ups"] for waiter in waiters]
    for waiter in waiters:
        waiter.waits(key, wait=60000 * PATIENCE, lease=LONG_MS)
    waiting = list(waiters)
    while waiting:
        sleep_ms(scaled(200))
        holder.released()
        holder = wait_until(lambda: first_to_get_it(waiting), "a waiter gets it", seconds=60)
        waiting.remove(holder)
    woken = [waiter.stats()["wake_ups"] - count for waiter, count in zip(waiters, before)]
    one_in_all = BY_NAME[lock].fair or lock in WITH_A_LOCAL_LOCK
    if sum(woken) > len(waiters) * (1 if one_in_all else len(probes)):
        return f"{len(waiters)} releases woke {sum(woken)}"
    assert any(woken)
    return None


def first_to_get_it(waiters):
    for waiter in waiters:
        event = waiter.event("acquire", 0)
        if event:
            assert event["status"] == "ok", event
            return waiter
    return None


# ---- only the owner releases ----


def release_after_the_lease(lock, start):
    late, owner, stranger = (start().contender(lock) for _ in range(3))
    key = fresh_key()
    late.got(key, lease=lease_ms(lock), ends=True)
    owner.got(key, wait=lease_ms(lock) + FREE_WITHIN_MS, lease=LONG_MS)
    status = late.release()["status"]
    if stranger_gets_it(stranger, key) or owner.holds() != "ok":
        return f"the release ({status}) of an ended lease took away another's lock"
    return None if status == "lost" else f"the release of an ended lease said {status}"


def release_after_the_end(lock, start):
    """The lease has ended, and nobody has taken the lock since: the holder is told all the same."""
    late, other = start().contender(lock), start().contender(lock)
    key = fresh_key()
    grant = late.got(key, lease=lease_ms(lock), ends=True)
    wait_until(lambda: now_us() > grant["lease_end_us"], "the lease's end")
    sleep_ms(1000)
    status = late.release()["status"]
    other.got(key, lease=LONG_MS)
    return None if status == "lost" else f"the release of an ended lease said {status}"


def lease_ends_inside_release(lock, start):
    late, owner, stranger = (start().contender(lock) for _ in range(3))
    key = fresh_key()
    late.got(key, lease=lease_ms(lock), ends=True)
    late.start("hold-at", "get").start("release")
    held = late.first_of("step", "release")
    owner.got(key, wait=lease_ms(lock) + FREE_WITHIN_MS, lease=LONG_MS)
    if held["did"] == "step":
        late.start("go").done("release")
    if stranger_gets_it(stranger, key) or owner.holds() != "ok":
        return f"a release took away another's lock, stopped at {held}"
    return None


def release_again(lock, start):
    probe = start()
    spent, owner, stranger = (probe.contender(lock) for _ in range(3))
    key = fresh_key()
    spent.got(key)
    spent.released()
    owner.got(key, wait=1000)
    status = spent.start("release-again").done("release-again")["status"]
    if stranger_gets_it(stranger, key):
        return f"a spent grant's release ({status}) took away another's lock"
    return None if status in ("lost", "not owner") else f"a spent grant's release said {status}"


# ---- what each lock declares of itself ----


def lease_outlived(lock, start):
    """Three leases later it is still held where it is renewed, or has no lease."""
    holder, other = start().contender(lock), start().contender(lock)
    key, lease = fresh_key(), lease_ms(lock)
    holder.got(key, lease=lease)
    sleep_ms(3.3 * lease)
    free, held = stranger_gets_it(other, key), holder.holds()
    lasts = BY_NAME[lock].renewed or not BY_NAME[lock].leased
    assert (free, held) == ((False, "ok") if lasts else (True, "lost")), (free, held)


def lease_ends(lock, start):
    """A lease that is not renewed ends by itself: not before the holder was told, and soon after."""
    holder, other = start().contender(lock), start().contender(lock)
    key, lease = fresh_key(), lease_ms(lock)
    grant = holder.got(key, lease=lease, ends=True)
    end_us = grant["lease_end_us"]
    assert 0.8 * lease <= (end_us - grant["began_us"]) / 1000 <= 1.1 * lease + took_ms(grant) + 50, grant
    event = other.got(key, wait=lease + FREE_WITHIN_MS, lease=lease)
    late_ms = (event["ended_us"] - end_us) / 1000
    assert -5 <= late_ms <= FREE_WITHIN_MS, f"got {late_ms:.0f} ms after the lease's end"
    assert holder.holds() == "lost"


def pause(lock, start):
    """The holder's process sleeps for longer than its lease."""
    probe = start()
    holder, other = probe.contender(lock), start().contender(lock)
    key, lease = fresh_key(), lease_ms(lock)
    holder.got(key, lease=lease)
    probe.pause()
    event = other.acquire(key, wait=lease + FREE_WITHIN_MS, lease=LONG_MS)
    probe.resume()
    wait_until(lambda: holder.holds() != "away", "the holder's connection is back")
    told = holder.holds()
    peril = BY_NAME[lock].pause
    assert (event["status"], told) == (("ok", "lost") if peril else ("busy", "ok")), (event, told)


def fence(lock, start):
    """Tokens only grow, whoever gets the lock, and however often it was free in between."""
    contenders = [start().contender(lock), start().contender(lock)]
    key, fences = fresh_key(), []
    for contender in contenders * 3:
        fences.append(contender.got(key, wait=1000)["fence"])
        contender.released()
    if BY_NAME[lock].fenced:
        assert all(left < right for left, right in zip([0, *fences], fences)), fences
    else:
        assert not any(fences), fences


def reentrance(lock, start):
    """Its holder may take it again where it says so, and as often has to release it; else it is taken for its holder too."""
    probe = start()
    holder, other = probe.contender(lock), probe.contender(lock)
    key, lease = fresh_key(), lease_ms(lock)
    holder.got(key, lease=lease)
    if not BY_NAME[lock].reentrant:
        assert not stranger_gets_it(holder, key)
        return
    holder.got(key, lease=lease)
    assert not stranger_gets_it(other, key)
    holder.released()
    if BY_NAME[lock].renewed:
        sleep_ms(1.5 * lease)  # what is left of it is prolonged as before
    assert not stranger_gets_it(other, key)
    assert holder.holds() == "ok"
    holder.released()
    assert stranger_gets_it(other, key)


def renewal_by_hand(lock, start):
    """Prolongs what is held, and says so when there is nothing left to prolong."""
    holder, other = start().contender(lock), start().contender(lock)
    key, lease = fresh_key(), max(2000, lease_ms(lock))
    holder.got(key, lease=lease, ends=True)
    for _ in range(3):
        sleep_ms(0.4 * lease)
        assert holder.start("renew").done("renew")["status"] == "ok"
    assert not stranger_gets_it(other, key)
    other.got(key, wait=lease + FREE_WITHIN_MS, lease=LONG_MS)
    assert holder.start("renew").done("renew")["status"] in ("lost", "not owner")
    assert other.holds() == "ok"


ALL = [lock.name for lock in LOCKS]
EXCLUSIVE = [name for name in ALL if name not in BREAKS["threads"]]
LEASED = declaring(leased=True)
# Polled, but behind a lock inside the process, whose waiters are woken.
WITH_A_LOCAL_LOCK = ["lock-table", "redis-registry"]

# Those in which a lease, or a short pause, must not end while a slow machine is at something else: see basics.at_any_speed.
SHORT_TIMES = {
    crash_of_a_waiter, pause_of_a_waiter, keeps_its_place, release_after_the_lease, lease_ends_inside_release,
    lease_outlived, lease_ends, pause, reentrance, renewal_by_hand, first_come_first_served, one_is_woken,
}  # fmt: skip

# Script: the locks that have to play it.
SCRIPTS = {
    threads: ALL,
    processes: ALL,
    crash_of_a_holder: ALL,
    crash_inside_acquire: declaring(setting="REDIS_URL"),
    crash_of_a_waiter: [name for name in SHARED if name in EXCLUSIVE],
    pause_of_a_waiter: [name for name in declaring(pause=True) if name in EXCLUSIVE],
    keeps_its_place: declaring(fair=True, leased=True),
    lost_wake_up: EXCLUSIVE,
    deadline_in_the_past: EXCLUSIVE,
    waits_until_it_comes: EXCLUSIVE,
    first_come_first_served: declaring(fair=True),
    one_is_woken: [name for name in declaring(blocking=True) if name in SHARED] + WITH_A_LOCAL_LOCK,
    release_after_the_lease: [name for name in LEASED if name in EXCLUSIVE],
    release_after_the_end: [name for name in LEASED if name in EXCLUSIVE],
    lease_ends_inside_release: [name for name in LEASED if name in EXCLUSIVE],
    release_again: EXCLUSIVE,
    lease_outlived: [name for name in EXCLUSIVE if name not in IN_PROCESS],
    lease_ends: [name for name in LEASED if name in EXCLUSIVE],
    pause: [name for name in EXCLUSIVE if name not in IN_PROCESS],
    fence: ALL,
    reentrance: EXCLUSIVE,
    renewal_by_hand: [name for name in declaring(can_renew=True) if name in EXCLUSIVE],
}
