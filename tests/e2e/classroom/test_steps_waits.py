"""Whom an order waits for in POST /steps: the current holder of the lock, or the order before it in the lock's queue."""

import pytest

from test_steps import order, steps

# Locks that serve their waiters in turn: each watches the one before it, except in zookeeper-herd.
QUEUES = {"redis-fair", "zookeeper", "zookeeper-naive", "zookeeper-fenced", "curator", "etcd", "etcd-fenced"}
# Nobody waits for these locks: each order takes another lock than the others.
SEPARATE = {"mutex-wrong-object", "redis-registry-shared"}
# A lease that ends between the two commands of these has no end yet.
HALF_TAKEN = {"redis-setnx-forever", "redis-setnx", "redis-setnx-repair"}


def held(state):
    return [one["order"] for one in state["lock"]["holders"] if one["held"]]


def now(state, name):
    one = order(state, name)
    assert one["state"] == "waiting", state["schedule"]
    return one["waits_for"], one["reason"]


def waits(state, name):
    """Whom NAME waits for since its last event, and why."""
    last = [event for event in state["told"] if event["actor"] == name][-1]
    assert (last["step"], last["waits_for"]) == ("waits", order(state, name)["waits_for"]), state["schedule"]
    return now(state, name)


def has(holder):
    return [holder], f"waits for the lock, which {holder} has"


@pytest.mark.long
def test_every_lock_strategy_with_two_and_three_orders(shop):
    tried = set()
    for name in (row["name"] for row in shop.get("/strategies").json["strategies"] if row["lock"]):
        if name in SEPARATE:
            continue
        tried.add(name)
        for quantities in ("1,1", "1,1,1"):
            state = steps(shop, f"{name} s=3 q={quantities} A>lock", "B>end")
            assert held(state) == ["A"] and waits(state, "B") == has("A"), name
        state = steps(shop, state["schedule"], "C>end")
        assert waits(state, "B") == has("A"), name
        behind = (["B"], "waits in the lock's queue behind B") if name in QUEUES else has("A")
        assert waits(state, "C") == behind, name
        if order(state, "A")["can"]["expire"] and name not in HALF_TAKEN:
            state = steps(shop, f"{name} s=3 q=1,1,1 A>lock A!expire B>lock", "C>end")
            assert "A" in [one["order"] for one in state["lock"]["holders"]], "A does not know that its lock has ended"
            assert held(state) == ["B"] and waits(state, "C") == has("B"), name
    assert tried > QUEUES | HALF_TAKEN | {"mutex", "lock-row", "shedlock", "redis-lock", "redlock", "zookeeper-herd", "etcd-cas"}


def test_two_holders_and_one_that_waits(shop):
    """The naive waiter believes that it has the lock as soon as the node before its own has gone."""
    state = steps(shop, "redis-lock s=3 q=1,1,1 A>lock A!crash", "B>end")
    assert waits(state, "B") == (["A"], "waits for the lock that A died with")
    state = steps(shop, "zookeeper-naive s=3 q=1,1,1,1 A>lock B>lock~ C>lock~ B!expire C>lock", "D>end")
    assert held(state) == ["A", "C"] and waits(state, "D") == has("C")


@pytest.mark.parametrize("name", ["redis-fair", "zookeeper", "etcd"])
def test_a_queue_without_the_one_before(shop, name):
    state = steps(shop, f"{name} s=3 q=1,1,1 A>lock B>lock~ C>lock~", "B!crash")
    assert waits(state, "C") == (["B"], "waits in the lock's queue behind B, which died")
    state = steps(shop, state["schedule"], "B!expire")
    if order(state, "C")["can"]["step"]:  # it watched B's place, and looks again
        state = steps(shop, state["schedule"], "C>end")
    assert now(state, "C") == has("A")
    assert order(steps(shop, state["schedule"] + " A>end", "C>end"), "C")["outcome"] == "created"


@pytest.mark.long
def test_servers_that_have_forgotten_the_first_holder(shop):
    state = steps(shop, "redlock s=3 q=1,1,1 A>lock A!restart A!restart", "B>end")
    assert waits(state, "B") == has("A"), "three of five remember it"
    state = steps(shop, "redlock s=3 q=1,1,1 A>lock A!restart A!restart A!restart B>lock", "C>end")
    assert waits(state, "C") == has("B")
