"""The locks on ZooKeeper and etcd survive a minority of their servers, and say so when the majority has gone.

(Redlock's five are in test_perils.py.) On three servers each. First the member that a process talks with is frozen, or
killed: an acquisition turns to another one within its wait. Then one story for all locks at once: the leaders are killed
while each lock is held and waited for; then one more of each; then all come back."""

import contextlib
import time
from urllib.parse import urlsplit

import pytest
from basics import PATIENCE, wait_until
from conditions import LONG_MS
from conftest import probes_on
from contender import fresh_key
from locks import BY_NAME, declaring
from stack import Servers
from test_faults import in_time

KINDS = {"zookeeper": "ZOOKEEPER_CONNECT", "etcd": "ETCD_ENDPOINTS"}
LOCKS = [name for name in declaring(survives_minority=True) if BY_NAME[name].setting in KINDS.values()]
ELECTORATE = ["zookeeper", "etcd", "etcd-cas"]  # one lock for each way of asking
TAKE_OVER_S = 15  # for an election, and for clients to find another server
WAIT_MS = 1000
TURN_TITLE = "Three servers, the one in use frozen or killed: a new acquisition takes"
TITLE = "Three servers: held when one dies, waiter after the release, new acquire; with two dead; when all are back"


class Contest:
    """A lock that one holds and another waits for, and what is seen of it as servers die. What it sees wrong is told by its
    own test."""

    def __init__(self, lock, start):
        self.lock, self.seen, self.wrong = lock, {}, None
        self.holder, self.waiter = (start().contender(lock, LONG_MS) for _ in range(2))
        self.key = fresh_key()
        self.holder.got(self.key, wait=5000 * PATIENCE, lease=LONG_MS)
        self.waiter.waits(self.key, wait=60000 * PATIENCE, lease=LONG_MS)

    def play(self, scene):
        if self.wrong:
            return
        try:
            scene(self)
        except AssertionError as error:
            self.wrong = f"{scene.__name__}, after {self.seen}: {error}"

    def one_is_dead(self):
        self.seen["held"] = wait_until(
            lambda: (told := self.holder.holds()) != "away" and told, "an answer", TAKE_OVER_S
        )
        early = self.waiter.event("acquire", 0)
        assert self.seen["held"] == "ok" and early is None, (self.seen, early)
        self.holder.released()
        event = self.waiter.done("acquire", TAKE_OVER_S)
        self.seen["waiter"] = event["status"]
        assert event["status"] == "ok", event
        assert self.waiter.holds() == "ok"
        self.waiter.released()
        self.seen["new"] = self.holder.got(fresh_key(), wait=5000 * PATIENCE, lease=LONG_MS)["status"]
        self.holder.released()

    def two_are_dead(self):
        event = self.holder.acquire(fresh_key(), wait=WAIT_MS, lease=LONG_MS)
        self.seen["two dead"] = in_time(event, WAIT_MS)
        assert self.seen["two dead"] in ("busy", "away") and event["error"], event

    def all_are_back(self):
        wait_until(
            lambda: self.holder.acquire(fresh_key(), WAIT_MS, lease=LONG_MS)["status"] == "ok", "recovery", TAKE_OVER_S
        )
        self.seen["back"] = "ok"


@pytest.fixture(scope="module")
def servers():
    servers = Servers("--ensemble", *KINDS)
    try:
        servers.up()
        yield servers
    finally:
        servers.down()


def names(kind):
    return [f"{kind}-{number}" for number in (1, 2, 3)]


@contextlib.contextmanager
def talks_with(servers, lock, leader):
    """Gives a contender, and the name of the member that its process is connected with: the leader, or not the leader. A
    process begins with the first of etcd's, and with any of ZooKeeper's."""
    setting = BY_NAME[lock].setting
    kind = next(kind for kind in KINDS if KINDS[kind] == setting)
    wanted = [name for name in names(kind) if servers.is_leader(name) == leader]
    addresses = dict(zip(names(kind), servers.addresses[setting].split(",")))
    in_order = sorted(addresses, key=lambda name: name not in wanted)
    ports = {name: urlsplit(f"//{addresses[name].removeprefix('http://')}").port for name in wanted}
    with probes_on({**servers.addresses, setting: ",".join(addresses[name] for name in in_order)}) as start:
        for _ in range(50):
            contender = start().contender(lock, LONG_MS)
            connected = contender.probe.connected_ports()
            member = next((name for name in wanted if ports[name] in connected), None)
            if member:
                yield contender, member
                return
            contender.probe.end()
    raise AssertionError(f"never connected with one of {wanted}")


TURNS = [("frozen", False, 3000, LOCKS), ("killed", False, 3000, LOCKS), ("killed", True, 10000, ELECTORATE)]


@pytest.mark.parametrize(
    "fault, leader, wait, lock",
    [
        pytest.param(fault, leader, wait, lock, id=f"{fault}-{'leader' if leader else 'follower'}-{lock}",
                     marks=[pytest.mark.long] if fault == "killed" else [])
        for fault, leader, wait, locks in TURNS
        for lock in locks
    ],
)
def test_an_acquisition_turns_to_another_member(fault, leader, wait, lock, servers, print_later):
    """Within its wait; where a leader is killed, after an election."""
    with talks_with(servers, lock, leader) as (contender, member), servers.ill(member, fault):
        event = contender.acquire(fresh_key(), wait=wait * PATIENCE, lease=LONG_MS)
        assert event["status"] == "ok", event
        took_ms = (event["ended_us"] - event["began_us"]) / 1000
        print_later(TURN_TITLE, f"{lock:18} {'leader' if leader else 'follower'} {fault}: {took_ms:.0f} ms")
        contender.released()


@pytest.fixture(scope="module")
def contests(servers):
    with contextlib.ExitStack() as stack:
        start = stack.enter_context(probes_on(servers.addresses))
        played = {lock: Contest(lock, start) for lock in LOCKS}
        leaders = [next(name for name in names(kind) if servers.is_leader(name)) for kind in KINDS]
        for leader in leaders:
            servers.kill(leader)
        for contest in played.values():
            contest.play(Contest.one_is_dead)
        for kind in KINDS:
            servers.kill(next(name for name in names(kind) if name not in leaders))
        time.sleep(0.2)
        for contest in played.values():
            contest.play(Contest.two_are_dead)
        servers.start(*KINDS)
        for contest in played.values():
            contest.play(Contest.all_are_back)
        yield played


@pytest.mark.long
@pytest.mark.parametrize("lock", LOCKS)
def test_a_minority_of_the_ensemble_may_die(lock, contests, print_later):
    contest = contests[lock]
    print_later(TITLE, f"{lock:18} {contest.seen}{' WRONG' if contest.wrong else ''}")
    assert not contest.wrong, contest.wrong
