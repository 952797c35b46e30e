"""The way of an order with its calls failing, one after the other: memory, threads, connections, and what is sent and
received on them. After each: the service lives; what it said is true; the same order, asked for again with its key, is
there once; stock and orders balance; no transaction is open and no lock in the way of the next order.

By default a sample of the calls, the same one each time. TORTURE=all, or the names of strategies, fails every one of them
(`make torture`); under the address sanitizer it is a search for leaks as well."""

import collections
import os
import random
import re
import socket
import time
import uuid
from pathlib import Path

import pytest

from basics import REPLY_S
from lab import DOCUMENT, Closed, Session, as_body, next_free_id, request_bytes, wait_until
from length import short_only
from promises import STRATEGIES
from torture import Torture

EVERY_CALL = os.environ.get("TORTURE", "").replace(",", " ").split()

# One of each way of placing an order, and of each kind of lock.
SAMPLE = ["mutex", "reentrant-mutex", "select-for-update", "atomic-statement", "batched", "skip-locked", "bucketed", "redis-stock",
          "lock-row", "lock-table", "redis-lock", "redis-fenced", "redis-reentrant", "redis-fair", "redlock",
          "zookeeper", "curator", "etcd-fenced", "etcd-cas"]  # fmt: skip
# A lock that is left behind is what these two are there to show.
LEAVE_LOCKS = {"redis-setnx-forever", "redis-setnx"}
ALL = [name for name in STRATEGIES if name not in LEAVE_LOCKS]
TORTURED = ALL if EVERY_CALL == ["all"] else EVERY_CALL or SAMPLE

# How the service is found (after other orders, with its connections just cut, or in a new process), which calls fail, how,
# whether all that follow fail as well, and how many of them are in the sample.
FAULTS = [
    ("warm", "memory", "refused", False, 4),
    ("warm", "memory", "refused", True, 1),
    ("warm", "send", "refused", False, 1),
    ("warm", "send", "too-late", False, 2),
    ("warm", "send", "interrupted", False, 1),
    ("warm", "send", "short", False, 1),
    ("warm", "receive", "refused", False, 1),
    ("warm", "receive", "interrupted", False, 1),
    ("warm", "receive", "short", False, 1),
    ("warm", "poll", "interrupted", False, 1),
    ("cold", "connect", "refused", False, 1),
    ("cold", "send", "refused", False, 0),
    ("cold", "receive", "refused", False, 1),
    ("cold", "memory", "refused", False, 2),
    ("cold", "memory", "refused", True, 0),
    ("first", "memory", "refused", False, 1),
    ("first", "thread", "refused", False, 0),
]

# After these nothing was sold, nor will be.
REFUSALS = {"backend-unavailable", "lock-busy", "lock-lost", "conflict", "overloaded", "internal-error"}
DOUBTS = {"outcome-unknown"}
STOCK = 20000
NAME = "Ada, Countess!"  # with its quotes it just fills jansson's buffer, which must then grow
IDLE_S = 0.15  # after which the service looks whether its connection to PostgreSQL is still there
LEASE_MS = 1000
MOST = {"warm": 2000, "cold": 2000, "first": 100}  # calls that fail; a new process for each takes its time
SLOW_S = 3  # worth a line


class Victim:
    """A service whose calls fail, its product, and what it was seen to do."""

    def __init__(self, services, database, folder, strategy):
        self.services, self.database, self.folder, self.strategy = services, database, folder, strategy
        self.session = Session(database)
        self.answers = collections.Counter()
        self.cases = 0
        self.product = self.service = None
        self.restart()

    def restart(self):
        """A new process; the one before has ended cleanly, and so without leaks."""
        if self.service:
            self.service.stop()
        self.torture = Torture(self.folder, f"torture-{uuid.uuid4()}")
        self.service = self.services.start(
            self.database, "--workers", "1", "--lock-ttl-ms", str(LEASE_MS), "--lock-wait-ms", "3000", "--order-timeout-ms", "4000", env=self.torture.environment
        )
        if not self.product:
            self.product = self.service.product(stock=STOCK, strategy=self.strategy)

    def revive(self):
        """A new process where there is none any more."""
        if self.service.process.poll() is not None:
            self.service.killed, self.service = True, None
            self.restart()

    def end(self):
        self.session.end()
        self.service.stop()

    # ---- orders ----------------------------------------------------------------------------------------------------

    def order(self, key):
        """The reply, or None where the connection ended without one."""
        body = as_body({"product_id": self.product, "quantity": 2, "receiver_name": NAME})
        target = f"/orders?strategy={self.strategy}"
        try:
            with self.service.wire() as wire:
                wire.send(request_bytes("POST", target, body, {"Idempotency-Key": key}))
                reply = wire.reply()
        except (Closed, ConnectionError):
            return None
        except socket.timeout:
            raise AssertionError(f"no answer within {REPLY_S} s") from None
        if reply.problem != "internal-error":
            DOCUMENT.check("POST", target, reply)
        return reply

    def told(self, reply):
        """created, refused or nothing (which leaves it open); fails where that is no answer to this order."""
        what = "no answer" if reply is None else reply.problem or str(reply.status)
        self.answers[what] += 1
        if what in ("201", "202"):
            return "created"
        assert reply is None or what in REFUSALS | DOUBTS, f"a wrong answer: {reply}"
        return "refused" if what in REFUSALS else "nothing"

    def ask_again(self, key):
        """The order, asked for until it is there."""

        def created():
            ended = self.service.process.poll()
            assert ended is None, f"it ended with {ended}"
            reply = self.order(key)
            if reply is not None and reply.problem != "idempotency-in-progress" and self.told(reply) == "created":
                return reply
            return None

        return wait_until(created, "the order with this key is placed", 20, every=0.05)

    # ---- what is left ----------------------------------------------------------------------------------------------

    def transactions(self):
        """Those that are open."""
        return self.session.run(
            "SELECT pid, state, query FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
        )

    def rows(self, key):
        """The ids of the orders with this key, each of them what was ordered."""
        rows = self.session.run(
            "SELECT id, receiver_name, strategy, quantity FROM orders JOIN order_line ON order_id = id"
            f" WHERE idempotency_key = '{key}'"
        )
        ids = [int(row.split("|")[0]) for row in rows]
        assert rows == [f"{identity}|{NAME}|{self.strategy}|2" for identity in ids]
        return ids

    def drift(self):
        """Units sold beyond those that were taken."""
        return int(
            self.session.run(
                "SELECT (SELECT coalesce(sum(purchase_num), 0) FROM order_item WHERE product_id = p.id)"
                " - (initial_count - units_left)"
                f" FROM product p JOIN product_stock ON product_id = p.id WHERE p.id = {self.product}"
            )[0]
        )

    def expect_balance(self):
        """reentrant-mutex takes and orders in two transactions: units of an order that fails between them come back later."""
        if self.strategy == "reentrant-mutex":
            wait_until(lambda: self.drift() == 0, "the units are given back", 20)
        assert self.drift() == 0, f"drift {self.drift()}"

    def descriptors(self):
        return len(list(Path(f"/proc/{self.service.process.pid}/fd").iterdir()))

    # ---- a case ----------------------------------------------------------------------------------------------------

    def bring_about(self, state):
        if state == "first":
            self.restart()
        if state == "cold":
            self.torture.cut()
            assert self.service.get("/healthz").status == 200
            time.sleep(IDLE_S)

    def count(self, state, kind):
        """How many calls an order makes."""
        if state != "first":  # where libraries set themselves up
            self.ask_again(str(uuid.uuid4()))
        for _ in range(20):  # a busy machine may not take the first
            self.bring_about(state)
            self.torture.arm(kind)
            reply = self.order(str(uuid.uuid4()))
            self.written_behind(reply)
            calls, _ = self.torture.disarm()
            if self.told(reply) == "created":
                return calls
            time.sleep(0.2)
        raise AssertionError(f"no order is placed, though nothing fails; the last: {reply}")

    def written_behind(self, reply):
        """An order that is accepted has still some way to go, where calls fail as well."""
        if reply is None or reply.status != 202:
            return
        end = time.monotonic() + 0.5
        identity = reply.json["id"]
        while time.monotonic() < end and not self.torture.failed:
            if self.session.run(f"SELECT FROM orders WHERE id = {identity}") != []:
                break
            time.sleep(0.005)

    def fail(self, state, kind, way, lasting, number):
        """Returns whether a call failed."""
        self.bring_about(state)
        key, begun = str(uuid.uuid4()), time.monotonic()
        self.torture.arm(kind, way, number, 1 << 62 if lasting else None)
        try:
            reply = self.order(key)
            self.written_behind(reply)
            _, failed = self.torture.disarm()
            self.cases += failed > 0
            told = self.told(reply)
            self.judge(key, reply, told)
        except Exception as wrong:
            self.torture.disarm()
            raise AssertionError(
                f"{self.strategy}, {state}: call {number} of {kind} is {way}{', and all after it' if lasting else ''}:"
                f" {wrong}\n{self.torture.stack()[:8000]}\n{self.service.log[-3000:]}"
            ) from None
        if (took := time.monotonic() - begun) > SLOW_S:
            print(f"{self.strategy}, {state}: call {number} of {kind} is {way}{', lasting' if lasting else ''}: {told} after {took:.1f} s\n{self.torture.stack()[:1500]}")
        return failed > 0

    def judge(self, key, reply, told):
        ended = self.service.process.poll()
        assert ended is None, f"it ended with {ended}"
        wait_until(lambda: not self.transactions(), f"no transaction is open: {self.transactions()}")
        if told == "refused":
            assert self.rows(key) == [], f"told {reply}, and there is an order"
        elif told == "created" and reply.status == 201:
            assert self.rows(key) == [reply.json["id"]], f"told {reply}"
        again = self.ask_again(key)
        if told == "created":
            assert again.json["id"] == reply.json["id"], f"told {reply}, then {again}"
            assert again.header("Idempotency-Replayed") == "true", f"told {reply}, then {again} as if it were new"
        wait_until(lambda: self.rows(key), f"it is written: {again}")
        assert self.rows(key) == [again.json["id"]], f"told {again}"
        self.expect_balance()


def numbers(state, calls, sample, seed):
    """Those of the CALLS that fail."""
    if EVERY_CALL and calls <= MOST[state]:
        return range(1, calls + 3)
    size = min(MOST[state] if EVERY_CALL else sample, calls)
    return sorted(random.Random(seed).sample(range(1, calls + 1), size))


@pytest.mark.long
@pytest.mark.parametrize("strategy", short_only({"redis-stock", "redis-fenced"}.intersection(TORTURED), TORTURED))
def test_each_call_fails_in_turn(services, database, folder, strategy):
    victim = Victim(services, database, folder, strategy)
    begun, calls, descriptors, wrongs = time.monotonic(), {}, None, []
    for state, kind, way, lasting, sample in FAULTS:
        if not EVERY_CALL and not sample:
            continue
        if state == "first" and descriptors:
            wait_until(lambda: victim.descriptors() <= descriptors + 3, "its connections are closed")
            descriptors = None
        if (state, kind) not in calls:
            like = ("cold", kind) if state == "first" and not EVERY_CALL else None  # which are about as many
            calls[state, kind] = calls[like] if like else victim.count(state, kind)
        if state == "warm":  # by now it has all connections that it needs
            descriptors = descriptors or victim.descriptors()
        for number in numbers(state, calls[state, kind], sample, f"{strategy} {state} {kind} {way} {lasting}"):
            try:
                victim.fail(state, kind, way, lasting, number)
            except AssertionError as wrong:
                if not EVERY_CALL:
                    raise
                wrongs.append(wrong)  # a long run goes on, and tells at once
                print(wrong, flush=True)
                victim.revive()
        if EVERY_CALL:
            print(f"{strategy}, {state}, {kind}: {calls[state, kind]} calls, {time.monotonic() - begun:.0f} s", flush=True)
    assert victim.service.order(victim.product, 1, strategy).status in (201, 202)
    audit = wait_until(lambda: (audit := victim.service.audit(victim.product))["in_flight"] == 0 and audit, "all is written")
    assert audit["oversold"] == 0 and audit["witness"] is None, f"{audit}"
    assert victim.cases > 0
    assert not wrongs, f"{len(wrongs)}, the first: {wrongs[0]}"
    victim.end()
    print(f"{strategy}: {victim.cases} failed calls in {time.monotonic() - begun:.0f} s: {dict(victim.answers)}", flush=True)
