"""Many clients at once, what they were told, and whether the books agree."""

import itertools
import threading
from collections import Counter
from dataclasses import dataclass, field

from basics import DOCUMENT, PATIENCE
from servers import psql
from wire import Closed, as_body, request_bytes


def together(*calls):
    """Runs the calls at the same time; returns what they returned, in order; raises the first that failed."""
    results, failures = [None] * len(calls), []

    def run(index, call):
        try:
            results[index] = call()
        except BaseException as failure:  # noqa: B902  every failure belongs to the test
            failures.append(failure)

    threads = [
        threading.Thread(target=run, args=(index, call), daemon=True) for index, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60 * PATIENCE)
        assert not thread.is_alive(), "a call has not come back"
    if failures:
        raise failures[0]
    return results


class Background:
    """One call that runs while the test goes on."""

    def __init__(self, call):
        self.value, self.failure = None, None
        self.thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self.thread.start()

    def _run(self, call):
        try:
            self.value = call()
        except BaseException as failure:  # noqa: B902
            self.failure = failure

    @property
    def running(self):
        return self.thread.is_alive()

    def result(self, seconds=30):
        self.thread.join(timeout=seconds * PATIENCE)
        assert not self.running, f"no answer within {seconds * PATIENCE} s"
        if self.failure:
            raise self.failure
        return self.value


@dataclass
class Load:
    """What many clients together were told."""

    created: list = field(default_factory=list)  # the bodies of the 201s and 202s
    outcomes: Counter = field(default_factory=Counter)  # "created" or the problem's name → count
    unanswered: int = 0  # sent, and the connection ended without a reply

    @property
    def sold(self):
        return sum(order["quantity"] for order in self.created)

    @property
    def ids(self):
        return {order["id"] for order in self.created}


# After these a client simply tries again.
TRY_AGAIN = {"conflict", "lock-busy", "overloaded"}


def hammer(services, product, *, threads=16, strategy=None, quantities=(1,), most=None, stop=None):
    """THREADS clients buy until they are told that even one unit is sold out; each keeps one connection, and
    they are spread over SERVICES. At most MOST orders are sent in all; STOP (an Event) ends it early."""
    load, gate = Load(), threading.Lock()
    tickets = itertools.count()
    target = "/orders" + (f"?strategy={strategy}" if strategy else "")
    start = threading.Barrier(threads)
    odd = []

    def client(index):
        service = services[index % len(services)]
        wanted = itertools.cycle(
            quantities[index % len(quantities) :] + quantities[: index % len(quantities)]
        )
        only_one = False
        wire = service.wire()
        start.wait(timeout=30 * PATIENCE)
        with wire:
            while not (stop and stop.is_set()):
                if most is not None and next(tickets) >= most:
                    return
                quantity = 1 if only_one else next(wanted)
                body = as_body({"product_id": product, "quantity": quantity})
                try:
                    wire.send(request_bytes("POST", target, body))
                    reply = wire.reply()
                except Closed:
                    with gate:
                        load.unanswered += 1
                    return
                outcome = "created" if reply.status in (201, 202) else reply.problem
                with gate:
                    load.outcomes[outcome] += 1
                    first = load.outcomes[outcome] <= 20
                    if outcome == "created":
                        load.created.append(reply.json)
                if first:
                    DOCUMENT.check("POST", target, reply)
                if outcome == "sold-out":
                    if quantity == 1:
                        return
                    only_one = True
                elif outcome not in TRY_AGAIN and outcome != "created":
                    with gate:
                        odd.append(str(reply))
                    if stop is None:
                        return
                if reply.header("Connection") == "close":
                    return

    together(*[lambda index=index: client(index) for index in range(threads)])
    assert not odd or stop is not None, f"{len(odd)} odd answers, the first: {odd[0]}"
    return load


def expect_books(service, product, load, initial):
    """What clients were told is what the database has; returns the audit."""
    audit = service.audit(product)
    told = {"orders": len(load.created), "sold": load.sold}
    assert {name: audit[name] for name in told} == told, f"audit {audit}, the clients were told {told}"
    assert audit["initial"] == initial, f"{audit}"
    assert audit["in_flight"] == 0, f"{audit}"
    stored = {
        int(row[0])
        for row in psql(service.database_url, f"SELECT order_id FROM order_item WHERE product_id = {product}")
    }
    assert (
        stored == load.ids
    ), f"only stored: {sorted(stored - load.ids)}, only told: {sorted(load.ids - stored)}"
    drift = audit["sold"] - (audit["initial"] - audit["left"])
    assert audit["drift"] == drift, f"{audit}: drift should be {drift}"
    assert audit["oversold"] == max(0, audit["sold"] - audit["initial"]), f"{audit}"
    assert audit["negative"] == max(0, -audit["left"]), f"{audit}"
    return audit


def expect_balanced(service, product, load, initial):
    """As expect_books, and nothing is wrong with them."""
    audit = expect_books(service, product, load, initial)
    wanted = {"oversold": 0, "drift": 0, "negative": 0, "balanced": True, "witness": None}
    assert {name: audit[name] for name in wanted} == wanted, f"{audit}"
    return audit
