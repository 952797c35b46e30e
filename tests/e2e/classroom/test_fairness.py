"""One hostile client within all bounds that it has, in a class of 40 learners and in an open instance: nobody else waits for it."""

import contextlib
import copy
import itertools
import re
import select
import selectors
import socket
import threading
import time

import pytest

from lab import PATIENCE, Background, Closed, as_body, request_bytes, wait_until
from learner import Learner, bearer
from length import short_only
from servers import holding_row

START = "read-write s=1 q=1,1"  # a schedule that nothing has happened in

LEARNERS = 40
LONGEST_S = 10 * (PATIENCE / 4)  # ten times what a call may take; sanitizers slow the service down, so they get more
TIMES = 25


class Attack:
    """Calls in the background, as fast as the service answers, until the end."""

    def __init__(self, calls):
        self.stop = threading.Event()
        self.flooded = []  # connections that end with the attack, in the middle of a call
        self.at_work = [Background(call) for call in calls]

    def flood(self, wires, requests):
        """Sends a request over each wire, again and again, and waits for all replies in between."""
        outcomes, pairs = set(), list(zip(wires, itertools.cycle(requests)))
        self.flooded += wires
        try:
            for wire, request in pairs:
                wire.send(request)
            while not self.stop.is_set():
                for wire, request in pairs:
                    reply = wire.reply()
                    outcomes.add(reply.problem or reply.status)
                    wire.send(request)
        except Closed:
            assert self.stop.is_set(), f"the service closed a connection, after {outcomes}"
        return outcomes

    def flood_each(self, wires, requests):
        """Sends a request over each wire, and again as soon as that wire has its reply."""
        outcomes, request = set(), dict(zip(wires, itertools.cycle(requests)))
        self.flooded += wires
        with selectors.DefaultSelector() as ready:
            try:
                for wire in wires:
                    wire.send(request[wire])
                    ready.register(wire.socket, selectors.EVENT_READ, wire)
                while not self.stop.is_set():
                    for key, _ in ready.select(0.1):
                        reply = key.data.reply()
                        outcomes.add(reply.problem or reply.status)
                        key.data.send(request[key.data])
            except (Closed, OSError):
                assert self.stop.is_set(), f"the service closed a connection, after {outcomes}"
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

    def end(self):
        self.stop.set()
        for wire in self.flooded:
            with contextlib.suppress(OSError):
                wire.socket.shutdown(socket.SHUT_RDWR)
        try:
            return [call.result(120) for call in self.at_work]
        finally:
            for wire in self.flooded:
                wire.close()


class Hostile(Attack):
    """Everything that a learner's token and the class code allow."""

    def __init__(self, service, learner, code):
        self.service, self.learner, self.code = service, learner, code
        settings = {"name": "select-for-update", "think_ms": 200, "lock_wait_ms": 5000}
        assert learner.call("PUT", f"/strategy?product_id={learner.product}", settings).status == 200
        self.silent = [service.wire() for _ in range(100)]
        super().__init__((self.orders, self.runs, self.sandboxes, self.switches, self.reads, self.steps))

    def orders(self):
        """200 at a time, each on a connection."""
        body = as_body({"product_id": self.learner.product, "quantity": 1})
        request = request_bytes("POST", "/orders", body, bearer(self.learner.token))
        return self.flood([self.service.wire() for _ in range(200)], [request])

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
        outcomes = super().end()
        for wire in self.silent:
            wire.close()
        return outcomes


class Greedy(Attack):
    """Everything that a client without a token may do, from one address: PRODUCT is the one that it orders. Where it has all
    rights, which is where there is no token, it also slows its own product, and holds locks, makes runs and steps. It leaves
    out what nobody can bound then (docs/security.md): common settings, a think time under a lock that products share, and many
    changes at once, which wait for each other."""

    ADDRESS = "127.0.0.7"
    ORDERS, READS, SILENT, SLOW = 200, 400, 100, 50

    def __init__(self, service, product, has_all_rights):
        self.service, self.product = service, product
        if has_all_rights:
            settings = {"name": "select-for-update", "think_ms": 10000, "lock_wait_ms": 60000}
            assert service.put(f"/strategy?product_id={product}", settings).status == 200
        self.idle = [self.wire() for _ in range(self.SILENT + self.SLOW)]
        self.strategies = ["atomic-decrement", "serializable"] + ([] if has_all_rights else ["mutex", "table-lock"])
        calls = [self.orders, self.reads, self.live, self.bodies]
        super().__init__(calls + ([self.holds, self.steps, self.runs] if has_all_rights else []))

    def wire(self):
        return self.service.wire(source=self.ADDRESS)

    def call(self, method, target, body=None):
        with self.wire() as wire:
            wire.send(request_bytes(method, target, as_body(body)))
            return wire.reply()

    def orders(self):
        body = as_body({"product_id": self.product, "quantity": 1})
        targets = ["/orders", "/echo", *[f"/orders?strategy={name}" for name in self.strategies]]
        requests = [request_bytes("POST", target, body) for target in targets]
        return self.flood([self.wire() for _ in range(self.ORDERS)], requests)

    def reads(self):
        """The costly ones."""
        targets = ["/orders?limit=1000", f"/live?product_id={self.product}&traces=1000", f"/audit?product_id={self.product}"]
        requests = [request_bytes("GET", target) for target in targets]
        return self.flood([self.wire() for _ in range(self.READS)], requests)

    def live(self):
        return self.again(lambda: self.call("GET", f"/live?product_id={self.product}&traces=1000"))

    def bodies(self):
        """Byte by byte, on connections of which each comes to an end and is replaced."""
        slow = self.idle[self.SILENT :]
        for wire in slow:
            wire.send(request_bytes("POST", "/orders", b"", {"Content-Length": "60000"}))

        def call():
            for index, wire in enumerate(slow):
                wire.send(b" ")
                if self.stop.wait(0.01):
                    break
            return self.call("GET", "/healthz")

        return self.again(call)

    def holds(self):
        hold = as_body({"lock": "redis-lock", "hold_ms": 2000, "wait_ms": 5000})
        wires = [self.wire() for _ in range(40)]
        return self.flood(wires, [request_bytes("POST", f"/locks/greedy-{index}/hold", hold) for index in range(8)])

    def steps(self):
        step = {"schedule": START, "move": "A"}
        return self.again(lambda: self.call("POST", "/steps", step))

    def runs(self):
        order = {"strategies": ["read-write"], "product_id": self.product, "connections": 32, "duration_ms": 1000}
        return self.again(lambda: self.call("POST", "/runs", order))

    def end(self):
        outcomes = super().end()
        for wire in self.idle:
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
    print(f"{what}: median {delays[TIMES // 2]:.3f} s, longest {delays[-1]:.3f} s of {TIMES}")
    assert delays[-1] < LONGEST_S, f"{what}: {delays}"


class Class:
    """Learners who order again and again, each at an own address. A few threads go round them."""

    THREADS, PAUSE_S, SAMPLES = 3, 0.02, 200

    def __init__(self, service, learners):
        self.service, self.stop, self.delays = service, threading.Event(), []
        pairs = list(enumerate(learners, 1))
        self.at_work = [Background(lambda part=pairs[i :: self.THREADS]: self.order(part)) for i in range(self.THREADS)]

    def order(self, learners):
        with contextlib.ExitStack() as stack:
            wires = [(stack.enter_context(self.service.wire(source=f"127.0.1.{number}")), learner) for number, learner in learners]
            for wire, learner in itertools.cycle(wires):
                if self.stop.wait(self.PAUSE_S):
                    return
                begun = time.monotonic()
                wire.send(request_bytes("POST", "/orders", as_body({"product_id": learner.product, "quantity": 1}), bearer(learner.token)))
                reply = wire.reply()
                assert reply.status == 201, str(reply)
                self.delays.append(time.monotonic() - begun)

    @contextlib.contextmanager
    def measured(self, when):
        """Prints the delays of the orders that end within the with, at least SAMPLES; fails if they are far too long."""
        before = len(self.delays)
        yield
        wait_until(
            lambda: len(self.delays) >= before + self.SAMPLES or not all(thread.running for thread in self.at_work),
            "the class orders", 120,
        )  # fmt: skip
        delays = sorted(self.delays[before:])
        assert len(delays) >= self.SAMPLES, self.end()
        p50, p99 = (delays[len(delays) * percent // 100] for percent in (50, 99))
        print(f"{when}: the orders of the class: p50 {p50:.3f} s, p99 {p99:.3f} s of {len(delays)}")
        assert p99 < LONGEST_S, f"{when}: {delays}"

    def end(self):
        self.stop.set()
        return [thread.result(120) for thread in self.at_work]


def start_class(services, database, *bounds):
    service = services.start(database, "--classroom", *bounds, listen="127.0.0.1:0")
    service.code, service.token = (
        re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token")
    )
    return service


@pytest.mark.long
def test_a_hostile_learner_keeps_nobody_waiting(services, database):
    """The teacher and the hostile learner have an address each. 37 learners order all the time, each at an own
    address; two more order, one of them under a mutex, and one asks for a load run.
    The addresses have the limits that those of other machines have."""
    bounds = ["--connections", "4000", "--connections-per-address", "1000", "--learner-run-ms", "5000"]
    classroom = start_class(services, database, *bounds)
    its_address = copy.copy(classroom)
    its_address.wire = lambda **options: classroom.wire(source=HOSTILE, **options)
    hostile = Learner(its_address, classroom.code)
    one, other, *others = [Learner(classroom, classroom.code) for _ in range(LEARNERS - 1)]
    for learner in (one, other, *others):
        classroom.reset(learner.product, 100000)

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
    attack = Hostile(its_address, hostile, classroom.code)
    others = Class(classroom, others)
    try:
        wait_until(lambda: classroom.audit(hostile.product)["in_flight"] > 50, "the hostile learner is at work")
        with others.measured("during"):
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
    with others.measured("afterwards"):
        look("afterwards")
    others.end()


@pytest.mark.long
def test_a_learner_who_floods_the_explorers_keeps_nobody_from_them(services, database):
    """Eight others, at the same address without limits, search and step at the same time: nobody is refused."""
    classroom = start_class(services, database)
    hostile, *others = [Learner(classroom, classroom.code) for _ in range(9)]
    told = []

    class Flood(Attack):
        def of(self, target):
            request = request_bytes("POST", target, as_body({"schedule": START}), bearer(hostile.token))
            return self.flood([classroom.wire() for _ in range(40)], [request])

    def refused(target, sentence):
        reply = hostile.call("POST", target, {"schedule": START})
        told.append(reply)
        return reply.problem == "overloaded" and sentence in reply.json["detail"]

    def ask(learner, target):
        return classroom.call("POST", target, {"schedule": START}, bearer(learner.token), seconds=600)

    attack = Flood([])
    attack.at_work = [Background(lambda target=target: attack.of(target)) for target in ("/steps", "/steps/search")]
    try:
        wait_until(lambda: refused("/steps", "you have 4 steps"), "the hostile learner has all the steps that it may have", 60)
        wait_until(lambda: refused("/steps/search", "you have 1 search"), "the hostile learner searches", 60)
        for target in ("/steps/search", "/steps"):
            asked = [Background(lambda learner=learner, target=target: ask(learner, target)) for learner in others]
            replies = [one.result(120) for one in asked]
            assert [reply.status for reply in replies] == [200] * 8, [str(reply) for reply in replies if reply.status != 200]
    finally:
        outcomes = attack.end()
        print(f"the hostile learner was told {outcomes}")
    assert {200, "overloaded"} <= outcomes[0] and {200, "overloaded"} <= outcomes[1], outcomes


HOSTILE = "127.0.0.7"


def call_from(service, source, method, target, body, token=None):
    with service.wire(source=source) as wire:
        wire.send(request_bytes(method, target, as_body(body), bearer(token) if token else {}))
        return wire.reply()


@pytest.mark.long
def test_one_address_has_a_share_of_the_searches(services, database):
    service = services.start(database, "--classroom", "--connections-per-address", "100", listen="127.0.0.1:0")
    code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    tokens = [Learner(service, code).token for _ in range(8)]
    requests = [request_bytes("POST", "/steps/search", as_body({"schedule": START}), bearer(token)) for token in tokens[:6]]

    def refused():
        reply = call_from(service, HOSTILE, "POST", "/steps/search", {"schedule": START}, tokens[6])
        return reply.problem == "overloaded" and "4 searches of your address" in reply.json["detail"]

    attack = Attack([])
    attack.at_work = [Background(lambda: attack.flood_each([service.wire(source=HOSTILE) for _ in requests], requests))]
    try:
        wait_until(refused, "the address has all the searches that it may have")
        reply = call_from(service, "127.0.0.8", "POST", "/steps/search", {"schedule": START}, tokens[7])
        assert reply.status == 200, str(reply)
    finally:
        print(f"the learners of one address were told {attack.end()}")


@pytest.mark.long
def test_a_learner_with_many_sandboxes_has_no_more_of_the_class(services, database):
    """One address takes all the sandboxes that it can get. Its orders fill the queues of all its products, also that of calls
    which order nothing, and it asks for a run of each."""
    bounds = ["--queue", "64", "--connections-per-address", "4000", "--learner-run-ms", "5000"]
    service = services.start(database, "--classroom", *bounds, listen="127.0.0.1:0")
    code, service.token = (
        re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token")
    )
    one = Learner(service, code)
    taken = []
    while (reply := call_from(service, HOSTILE, "POST", "/sandboxes", {}, code)).status == 201:
        taken.append((reply.json["token"], reply.json["product_id"]))
    assert reply.problem == "overloaded" and len(taken) > 40, f"{reply} after {len(taken)}"
    slow = {"name": "select-for-update", "think_ms": 200}
    for token, product in taken:
        assert call_from(service, HOSTILE, "PUT", f"/strategy?product_id={product}", slow, token).status == 200

    in_queue = set()  # products that have asked for a run

    class Many(Attack):
        def orders(self):
            def request(target, token, product):
                return request_bytes("POST", target, as_body({"product_id": product, "quantity": 1}), bearer(token))

            requests = [request("/orders", *taker) for taker in taken] * 10 + [request("/echo", *taken[0])] * 100
            return self.flood([service.wire(source=HOSTILE) for _ in requests], requests)

        def runs_of(self, token, product):
            run = {"strategies": ["read-write"], "product_id": product, "duration_ms": 300}

            def call():
                self.stop.wait(0.2)
                reply = call_from(service, HOSTILE, "POST", "/runs", run, token)
                in_queue.add(product)
                return reply

            return self.again(call)

    attack = Many([])
    try:
        attack.at_work.append(Background(attack.orders))
        wait_until(lambda: service.metric("oversell_queue_depth") > 0, "the hostile orders wait")
        told = set()

        def order():
            reply = one.order()
            told.add(reply.problem or reply.status)

        measured("many sandboxes: a learner's order", order)
        assert told == {201}, told
        attack.at_work += [Background(lambda taker=taker: attack.runs_of(*taker)) for taker in taken[:12]]
        run = {"strategies": ["read-write"], "product_id": one.product, "duration_ms": 300}
        asked = []

        def turn():
            reply = one.call("POST", "/runs", run)
            assert reply.problem in (None, "run-in-progress"), str(reply)
            asked.append(reply.json["run"] if reply.problem else reply.json["id"])
            return reply.status == 202

        wait_until(lambda: len(in_queue) == 12, "the hostile learner has a run, and many products in the queue")
        wait_until(turn, "the learner's run has its turn", seconds=120, every=0.1)
        print(f"many sandboxes: run {asked[-1]} was the learner's, who asked first during run {asked[0]}")
        assert asked[-1] <= asked[0] + 6, asked
    finally:
        print(f"the hostile learner was told {attack.end()}")


@pytest.mark.parametrize("products", [1, 200], ids=["one product", "many products"])
def test_one_address_fills_no_queue_of_orders(services, database, products):
    """An open instance. While the only worker waits, one address sends more orders than all may wait; there is room for the orders
    of another address, also of the same product."""
    bounds = ["--workers", "1", "--queue", "64", "--connections", "2000", "--connections-per-address", "500"]
    service = services.start(database, *bounds, "--order-timeout-ms", "120000", "--lock-wait-ms", "60000", token="a token of the operator's")
    held, wanted = service.product(), service.product()

    def request(product):
        return request_bytes("POST", "/orders", as_body({"product_id": product, "quantity": 1}))

    def answered(wires):
        poll = select.poll()
        for wire in wires:
            poll.register(wire.socket, select.POLLIN)
        return len(poll.poll(0))

    with contextlib.ExitStack() as stack:
        row = stack.enter_context(holding_row(service.database_url, held))
        wires = [stack.enter_context(service.wire(source=HOSTILE)) for _ in range(200)]
        other = stack.enter_context(service.wire(source="127.0.0.8"))
        wires[0].send(request(held))
        wait_until(lambda: service.audit(held)["in_flight"] == 1, "the worker waits for the row")
        for number, wire in enumerate(wires[1:]):
            wire.send(request(wanted + number % products))
        wait_until(
            lambda: answered(wires) + service.metric("oversell_queue_depth") == 199,
            "all orders but the one of the worker wait, or are refused",
        )  # fmt: skip
        before = service.metric("oversell_queue_depth")
        other.send(request(wanted))
        wait_until(
            lambda: service.metric("oversell_queue_depth") > before or answered([other]),
            "the order of the other waits, or is refused",
        )  # fmt: skip
        row.run("ROLLBACK")
        reply = other.reply()
        assert reply.status == 201, f"{reply}, while {before} orders of one address waited"
        replies = [wire.reply() for wire in wires]
    refused = [reply for reply in replies if reply.problem == "overloaded"]
    assert len(refused) == 168, "an address may have half of what one product may have"
    assert "of your address are already waiting" in refused[0].json["detail"], str(refused[0])


@pytest.mark.long
@pytest.mark.parametrize("token", short_only([None], ["a token of the operator's", None]), ids=["admin token", "no token"])
def test_a_greedy_client_of_an_open_instance_keeps_nobody_waiting(services, database, token):
    """With a limit of connections for each address, and, where there is no token and so everybody may set a think time, of
    workers for each product."""
    bounds = ["--connections", "4000", "--connections-per-address", "1000", "--order-timeout-ms", "10000"]
    if not token:
        bounds += ["--product-workers", "4", "--product-queue", "64"]
    service = services.start(database, *bounds, token=token)
    greedy, own, other = (service.product(stock=1000000) for _ in range(3))
    for _ in range(1000):  # so that a page of orders has its full length
        assert service.order(greedy).status == 201

    def order(product, source):
        body = as_body({"product_id": product, "quantity": 1})
        with service.wire(source=source) as wire:
            wire.send(request_bytes("POST", "/orders", body))
            reply = wire.reply()
        assert reply.status == 201, str(reply)

    def look(when):
        measured(f"{when}: an order", lambda: order(own, "127.0.0.8"))
        measured(f"{when}: an order of another product", lambda: order(other, "127.0.0.9"))
        measured(f"{when}: an audit", lambda: service.audit(own))
        measured(f"{when}: a reset", lambda: service.reset(own, 1000000))
        measured(f"{when}: a switch of one product", lambda: service.put(f"/strategy?product_id={other}", {"name": "mutex"}))
        measured(f"{when}: a switch of all", lambda: service.strategy("atomic-decrement"))
        measured(f"{when}: the readiness", lambda: service.get("/readyz"))

    attack = Greedy(service, greedy, not token)
    try:
        wait_until(lambda: service.audit(greedy)["in_flight"] > 10, "the greedy client is at work")
        look("during")
    finally:
        told = attack.end()
        print(f"the greedy client was told {told}")
    assert not {"unauthorized", "invalid-order", "bad-request"} & set().union(*told), "the attack is what it is meant to be"
    look("afterwards")


def test_reads_from_the_teacher_s_address_do_not_keep_the_teacher_out(services, database):
    """Nobody bounds the calls of loopback, nor of a proxy: 300 connections fill the queue of reads, and the teacher passes."""
    service = services.start(database, "--classroom", listen="127.0.0.1:0")
    code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    learner = Learner(service, code)
    for _ in range(20):
        assert learner.order().status == 201
    attack = Attack([])
    wires = [service.wire() for _ in range(300)]
    attack.at_work = [Background(lambda: attack.flood_each(wires, [request_bytes("GET", "/orders?limit=1000")]))]
    try:
        wait_until(lambda: service.call("GET", "/orders", None, {"Authorization": None}).problem == "overloaded", "the queue is full")
        victims = [Learner(service, code) for _ in range(5)]
        for victim in victims:
            for method, target in (("GET", "/audit?product_id=1"), ("GET", "/sandboxes"), ("DELETE", f"/sandboxes/{victim.product}")):
                reply = service.call(method, target)
                assert reply.status == 200, f"{method} {target}: {reply}"
            assert service.call("GET", "/readyz", None, {"Authorization": None}).status == 200
    finally:
        outcomes = attack.end()
    assert "overloaded" in outcomes[0], "the queue was never full"
