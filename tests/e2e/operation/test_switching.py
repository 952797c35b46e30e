"""Switches and resets while many clients order: no call stalls, no client is refused because of it, orders go on."""

import re
import threading
import time

import pytest

from lab import Background, hammer, holding_row, psql, wait_until, waiting_backends
from length import short_only
from learner import Learner

TIMES = 20
LONGEST_S = 2  # what a call may take; a busy machine gets ten times that


def answered(service):
    """How many orders the service has answered."""
    found = re.findall(r"^oversell_orders_total\{.*\} (\d+)$", service.get("/metrics").text, re.M)
    return sum(int(count) for count in found)


CASES = {
    "one-at-a-time": ("select-for-update", 64, ("--product-limit", "1")),
    "combined": ("batched", 256, ()),
    "one-worker": ("select-for-update", 64, ("--workers", "1")),
    "one-worker-combined": ("batched", 64, ("--workers", "1")),
}


@pytest.mark.long
@pytest.mark.parametrize("case", short_only(["one-at-a-time", "combined"], CASES))
def test_changes_under_load(services, database, case):
    strategy, clients, flags = CASES[case]
    service = services.start(database, "--strategy", strategy, "--order-timeout-ms", "60000", *flags)
    product = service.product(stock=1000000)
    stop = threading.Event()
    calls = {
        "switch": lambda: service.call("PUT", "/strategy", {"name": strategy}),
        "own switch": lambda: service.call("PUT", f"/strategy?product_id={product}", {"name": strategy}),
        "reset": lambda: service.call("POST", f"/products/{product}/reset", {"stock": 1000000}),
    }
    load = Background(lambda: hammer([service], product, threads=clients, stop=stop))
    seconds, gaps = {name: [] for name in calls}, []
    try:
        wait_until(lambda: answered(service) >= clients, "all clients order", seconds=60)
        for name, call in calls.items():
            for _ in range(TIMES):
                reply = call()
                assert reply.status == 200, f"{name}: {reply}"
                seconds[name].append(reply.seconds)
                before, begun = answered(service), time.monotonic()
                wait_until(lambda: answered(service) > before, "orders go on", seconds=60)
                gaps.append(time.monotonic() - begun)
    finally:
        stop.set()
        outcomes = load.result(120).outcomes
    for name, taken in seconds.items():
        print(f"{case}: {name}: median {sorted(taken)[TIMES // 2]:.3f} s, longest {max(taken):.3f} s")
        assert max(taken) < 10 * LONGEST_S, f"{name}: {taken}"
    print(f"{case}: orders went on after {max(gaps):.3f} s at most")
    assert max(gaps) < 10 * LONGEST_S, f"{gaps}"
    assert set(outcomes) == {"created"}, f"{outcomes}"
    assert service.audit(product)["balanced"] is True


def test_a_sandbox_that_another_learner_gets(services, database):
    """An order of the learner before, which waits for its turn, does not land in the new learner's sale."""
    service = services.start(
        database, "--classroom", "--sandbox-idle-ms", "2000", "--lock-wait-ms", "60000", "--order-timeout-ms", "60000",
        "--strategy", "select-for-update", "--product-limit", "1", "--sandboxes-per-address", "0", listen="127.0.0.1:0",
    )  # fmt: skip
    code, service.token = (
        re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token")
    )
    before, others = Learner(service, code), []
    for place in range(1, 100):
        others.append(Learner(service, code if place < 96 else service.token))  # the last four are the teacher's reserve
        assert others[-1].order(before.product).problem == "not-yours"
        # On a slow machine the first learner would be idle for too long meanwhile, and lose the place to one of the last.
        assert before.order(others[-1].product).problem == "not-yours"
    with holding_row(database, before.product) as row:
        first = Background(before.order)
        wait_until(lambda: waiting_backends(database) == 1 or not first.running, "the first order waits for the row")
        assert first.running, str(first.value)
        second = Background(before.order)
        wait_until(lambda: "oversell_orders_waiting 1\n" in service.get("/metrics").text, "the second waits")
        for learner in others[:4]:  # so that the first one is idle for longest
            wait_until(lambda learner=learner: learner.order(before.product).problem == "not-yours", "its token works")
        wait_until(lambda: service.get("/classroom").json["learners"] == 0, "all sandboxes are idle")
        for learner in others[4:]:  # so that five are left alone, one more than the reserve
            assert learner.order(before.product).problem == "not-yours"
        late = Background(lambda: Learner(service, code))
        wait_until(lambda: f"product {before.product} goes to another learner" in service.log, "it is given away")
        assert before.order().status == 401, "the token of the learner before has ended"
        row.run("ROLLBACK")
        assert late.result(60).product == before.product
    assert first.result(60).status == 201
    assert second.result(60).problem == "not-yours"
    assert psql(database, f"SELECT count(*) FROM order_item WHERE product_id = {before.product}") == [["0"]]
    audit = service.audit(before.product)
    assert (audit["initial"], audit["orders"], audit["balanced"]) == (100, 0, True), f"{audit}"


@pytest.mark.long
def test_changes_that_overlap(services, database):
    """Many clients reset and switch at the same time, again and again: orders are placed between the changes."""
    service = services.start(database, "--strategy", "select-for-update", "--order-timeout-ms", "60000")
    product = service.product(stock=1000000)
    stop = threading.Event()

    def change(index):
        calls = 0
        while not stop.is_set():
            if index % 2:
                reply = service.call("POST", f"/products/{product}/reset", {"stock": 1000000})
            else:
                reply = service.call("PUT", "/strategy", {"name": "select-for-update"})
            assert reply.status == 200, str(reply)
            calls += 1
        return calls

    changers = [Background(lambda index=index: change(index)) for index in range(6)]
    try:
        outcomes = hammer([service], product, threads=8, most=200).outcomes
    finally:
        stop.set()
        calls = [changer.result(120) for changer in changers]
    assert outcomes == {"created": 200}, f"{outcomes}"
    assert min(calls) > 0, f"{calls}"
