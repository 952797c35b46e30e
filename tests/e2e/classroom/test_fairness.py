"""A class of 40 learners, one of them hostile within all bounds that a learner has: nobody else waits for that one."""

import re
import threading
import time

import pytest

from lab import Background, Closed, as_body, request_bytes, wait_until
from learner import Learner, bearer

START = "read-write s=1 q=1,1"  # a schedule that nothing has happened in

LEARNERS = 40
LONGEST_S = 1  # what a call may take; a busy machine gets ten times that
TIMES = 25


class Hostile:
    """Everything that a learner's token and the class code allow, as fast as the service answers."""

    def __init__(self, service, learner, code):
        self.service, self.learner, self.code = service, learner, code
        self.stop = threading.Event()
        settings = {"name": "select-for-update", "think_ms": 200, "lock_wait_ms": 5000}
        assert learner.call("PUT", f"/strategy?product_id={learner.product}", settings).status == 200
        self.silent = [service.wire() for _ in range(100)]
        calls = (self.orders, self.runs, self.sandboxes, self.switches, self.reads, self.steps)
        self.at_work = [Background(call) for call in calls]

    def orders(self):
        """200 at a time, each on a connection."""
        body = as_body({"product_id": self.learner.product, "quantity": 1})
        request = request_bytes("POST", "/orders", body, bearer(self.learner.token))
        wires, outcomes = [self.service.wire() for _ in range(200)], set()
        for wire in wires:
            wire.send(request)
        while not self.stop.is_set():
            for wire in wires:
                reply = wire.reply()
                outcomes.add(reply.problem or "created")
                wire.send(request)
        for wire in wires:
            wire.close()
        return outcomes

    def again(self, call):
        outcomes = set()
        while not self.stop.is_set():
            try:
                reply = call()
                outcomes.add(reply.problem or reply.status)
            except Closed:
                outcomes.add("closed")
        return outcomes

    def runs(self):
        order = {"strategies": ["read-write"], "product_id": self.learner.product, "connections": 32, "duration_ms": 2000}
        return self.again(lambda: self.learner.call("POST", "/runs", order))

    def sandboxes(self):
        return self.again(lambda: self.service.call("POST", "/sandboxes", {}, bearer(self.code)))

    def switches(self):
        product, names = self.learner.product, ("select-for-update", "serializable", "advisory-lock", "mutex")

        def call():
            for name in names:
                reply = self.learner.call("PUT", f"/strategy?product_id={product}", {"name": name})
            self.learner.call("POST", f"/products/{product}/reset", {"stock": 100})
            return reply

        return self.again(call)

    def reads(self):
        return self.again(lambda: self.service.get(f"/live?product_id={self.learner.product}&traces=1000"))

    def steps(self):
        step = {"schedule": START, "move": "A"}
        return self.again(lambda: self.learner.call("POST", "/steps", step))

    def end(self):
        self.stop.set()
        outcomes = [call.result(120) for call in self.at_work]
        for wire in self.silent:
            wire.close()
        return outcomes


def measured(what, call):
    """Calls TIMES times; prints the delays, and fails where one is far too long."""
    delays = []
    for _ in range(TIMES):
        begun = time.monotonic()
        call()
        delays.append(time.monotonic() - begun)
    delays.sort()
    print(f"{what}: p50 {delays[TIMES // 2]:.3f} s, p99 {delays[-1]:.3f} s")
    assert delays[-1] < 10 * LONGEST_S, f"{what}: {delays}"


@pytest.fixture
def classroom(services, database):
    service = services.start(database, "--classroom", "--learner-run-ms", "5000", listen="127.0.0.1:0")
    service.code, service.token = (
        re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token")
    )
    return service


def test_a_hostile_learner_keeps_nobody_waiting(classroom):
    learners = [Learner(classroom, classroom.code) for _ in range(LEARNERS)]
    hostile, one, other = learners[0], learners[1], learners[2]

    def order(learner):
        reply = learner.order()
        assert reply.status in (201, 409), str(reply)

    def look(when):
        measured(f"{when}: the teacher's audit", lambda: classroom.audit(one.product))
        measured(f"{when}: the teacher's list of learners", lambda: classroom.get("/sandboxes"))
        measured(f"{when}: the teacher's switch", lambda: classroom.strategy("atomic-decrement"))
        measured(f"{when}: a learner's order", lambda: order(one))
        measured(f"{when}: a learner's order under the mutex", lambda: order(other))

    settings = {"name": "mutex", "lock_wait_ms": 5000}
    assert other.call("PUT", f"/strategy?product_id={other.product}", settings).status == 200
    attack = Hostile(classroom, hostile, classroom.code)
    try:
        wait_until(lambda: classroom.audit(hostile.product)["in_flight"] > 50, "the hostile learner is at work")
        look("during")
        run = {"strategies": ["read-write"], "product_id": one.product, "duration_ms": 300}
        begun = time.monotonic()
        reply = wait_until(
            lambda: (answer := one.call("POST", "/runs", run)).problem != "run-in-progress" and answer,
            "the learner's run has its turn", seconds=60, every=0.1,
        )  # fmt: skip
        print(f"during: a learner's run began after {time.monotonic() - begun:.3f} s")
        assert reply.status == 202, str(reply)
        assert Learner(classroom, classroom.token).order().status == 201, "the teacher has sandboxes in reserve"
        evicted = classroom.call("DELETE", f"/sandboxes/{hostile.product}")
        assert evicted.status == 200, str(evicted)
        assert hostile.order().status == 401
    finally:
        print(f"the hostile learner was told {attack.end()}")
    look("afterwards")
