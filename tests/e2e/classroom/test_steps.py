"""The step-through's API: a schedule goes in, what can be seen at its end comes out, and nothing is held in between."""

import os
import re
import signal
import subprocess
import threading

import pytest

from basics import BUILD
from lab import PATIENCE, Background, wait_until
from servers import number
from learner import Learner
from processes import alive, descendants

TOKEN = "a-token-of-some-length"
START = "read-write s=1 q=1,1"
SEARCH = {"schedule": START}


def steps(service, schedule, move=None, **more):
    reply = service.post("/steps", {"schedule": schedule, **({"move": move} if move else {}), **more})
    assert reply.status == 200, str(reply)
    return reply.json


def walk(service, schedule, *moves):
    """The states after each of the moves, each sent with what the answer before it said."""
    states = [steps(service, schedule)]
    for move in moves:
        states.append(steps(service, states[-1]["schedule"], move))
    return states


def order(state, name):
    return next(one for one in state["orders"] if one["name"] == name)


def explorers(service):
    """Its explorers that run, as (pid, when it started)."""
    return descendants(service.process.pid)


def schemas(service):
    return number(service.database_url, "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^explore_'")


# ── what it tells ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_lost_update_step_by_step(shop):
    first, read_a, read_b, wrote, *_, over = walk(shop, START, "A", "B", "B", "B", "A", "A")
    assert first["steps"] == ["read", "write", "insert", "commit"] and first["told"] == []
    assert order(read_a, "A")["did"] == [{"step": "read", "value": 1}] and order(read_a, "A")["next"] == "write"
    assert order(read_b, "B")["did"] == [{"step": "read", "value": 1}]
    assert wrote["database"]["left"] == 1, "others do not see what is not committed"
    assert wrote["database"]["uncommitted"] == [{"order": "B", "stock": 0}]
    assert wrote["database"]["row_locked_by"] == ["B"]
    assert wrote["schedule"].endswith("B>insert"), "the order's rows follow its write"
    assert (over["over"], over["bad"], over["oversold"], over["ending"]["drift"]) == (True, True, 1, 1)
    assert "A and B both read 1." in over["explanation"] and order(over, "A")["outcome"] == "created"
    assert over["schedule"] == "read-write s=1 q=1,1 A>read B>end A>end"


def test_an_oversell_is_told_as_soon_as_others_can_see_it(shop):
    state = walk(shop, "mutex-early-release s=1 q=1,1 A>unlock B>read A>end", "B", "B", "B")[-1]
    assert not state["over"] or order(state, "B")["outcome"] == "created"
    state = steps(shop, "redis-registry-shared s=1 q=1,1 A>read B>read A>commit B>commit")
    assert not state["over"] and state["ending"] is None
    assert state["bad"] and state["oversold"] == 1 and "Sold 2 of 1" in state["explanation"]


@pytest.mark.parametrize(
    "schedule, reason",
    [
        ("select-for-update s=1 q=1,1 A>read", "waits for A's row lock"),
        ("table-lock s=1 q=1,1 A>read", "waits for A's table lock"),
        ("advisory-lock s=1 q=1,1 A>read", "waits for A's advisory lock"),
        ("read-write s=1 q=1,1 A>read B>read A>write", "waits for A's row lock"),
        ("mutex s=1 q=1,1 A>read", "waits for the lock, which A has"),
        ("redis-lock s=1 q=1,1 A>read", "waits for the lock, which A has"),
    ],
)
def test_who_waits_for_whom_and_why(shop, schedule, reason):
    state = steps(shop, schedule, "B")
    waits = order(state, "B")
    assert (waits["state"], waits["reason"], waits["waits_for"]) == ("waiting", reason, ["A"])
    assert not waits["can"]["step"] and order(state, "A")["can"]["step"] and not state["over"]
    assert shop.post("/steps", {"schedule": state["schedule"], "move": "B"}).problem == "invalid-schedule"
    freed = steps(shop, state["schedule"], "A>end")
    assert order(freed, "B")["state"] != "waiting" and order(freed, "B")["reason"] is None
    done = steps(shop, freed["schedule"], "B>end") if order(freed, "B")["can"]["step"] else freed
    assert done["over"]


def test_a_lease_that_ends_and_a_fence(shop):
    held, ended, taken, over = walk(shop, "redis-lock s=1 q=1,1 A>read", "A!expire", "B>end", "A>end")
    assert held["lock"]["holders"] == [{"order": "A", "fence": None, "held": True, "crashed": False}]
    assert order(held, "A")["can"] == {"step": True, "expire": True, "crash": True, "restart": False, "cut": False}
    assert ended["lock"]["holders"][0]["held"] is False, "A does not know it"
    assert order(ended, "A")["next"] == "write"
    assert order(taken, "B")["outcome"] == "created" and over["oversold"] == 1
    fenced = steps(shop, "redis-fenced s=1 q=1,1 A>read A!expire B>end A>end")
    assert (fenced["over"], fenced["bad"], order(fenced, "A")["outcome"]) == (True, False, "lock-lost")
    tokens = [next(step["value"] for step in one["did"] if step["step"] == "fence") for one in fenced["orders"]]
    assert tokens[1] > tokens[0]


def test_a_crash_leaves_a_lock_that_nobody_will_release(shop):
    state = steps(shop, "redis-setnx-forever s=1 q=1,1 A>lock A!crash", "B")
    assert order(state, "A")["state"] == "crashed" and state["lock"]["holders"][0]["crashed"]
    assert order(state, "B")["reason"] == "waits for the lock that A died with"
    assert state["over"] and state["bad"] and state["ending"]["stuck"]
    state = steps(shop, "redis-lock s=1 q=1,1 A>read A!crash", "B")
    assert not state["over"], "time will help"
    assert order(state, "A")["can"]["expire"] and not order(state, "B")["can"]["step"]
    assert steps(shop, state["schedule"] + " A!expire", "B>end")["ending"]["sold"] == 1


@pytest.mark.parametrize("strategy", ["lock-table", "redis-registry", "curator"])
def test_the_next_schedule_does_not_see_a_holder_that_died(shop, strategy):
    """These locks are gates within a process too; a gate remembers a dead holder until its lease would have ended."""
    for stock in range(1, 7):  # other settings each time, so that the explorer begins again
        state = steps(shop, f"{strategy} s={stock} q=1,1 A>read A!crash")
        assert order(state, "A")["state"] == "crashed"


def test_servers_that_forget(shop):
    state = steps(shop, "redlock s=1 q=1,1")
    assert order(state, "A")["can"]["cut"]
    state = walk(shop, state["schedule"], "A!cut", "A!cut", "A!cut", "A>end")[-1]
    assert order(state, "A")["outcome"] != "created", "two of five are no majority"
    state = steps(shop, "redlock s=1 q=1,1 A>read")
    assert order(state, "A")["can"]["restart"]
    for _ in range(3):
        state = steps(shop, state["schedule"], "A!restart")
    assert state["lock"]["holders"][0]["held"] is False
    assert steps(shop, state["schedule"], "B>end")["database"]["sold"] == 1


def test_a_queue_and_a_place_in_it(shop):
    state = steps(shop, "zookeeper s=2 q=1,1,1 A>read", "B>end")
    assert order(state, "B")["reason"] == "waits for the lock, which A has", "a place is no lock"
    assert [holder["order"] for holder in state["lock"]["holders"]] == ["A"]
    state = steps(shop, state["schedule"], "C>end")
    state = steps(shop, state["schedule"], "B!expire")
    assert "its place ends" in [event["text"] for event in state["told"]]
    assert walk(shop, state["schedule"], "A>end", "C>end")[-1]["database"]["sold"] == 2


def test_three_orders_and_every_step(shop):
    state = steps(shop, "decrement s=2 q=1,1,1", "C", every_step=True)
    assert [one["name"] for one in state["orders"]] == ["A", "B", "C"]
    state = steps(shop, state["schedule"], "C", every_step=True)
    assert order(state, "C")["next"] == "insert" and state["schedule"].endswith("C>write")
    state = walk(shop, state["schedule"], "C>end", "A>end", "B>end")[-1]
    assert state["over"] and state["database"]["sold"] == 2


def test_the_notation_goes_there_and_back(shop):
    """Every prefix of a history leads to where it says, and loadtest plays the same."""

    def told(state):
        return [{**event, "sent": None} for event in state["told"]]  # which has times in it

    full = steps(shop, "optimistic s=2 q=1,1 A>read B>end A>retry A>end")
    assert full["over"] and not full["bad"] and order(full, "A")["tries"] == 2
    for moves, schedule in enumerate(full["history"]):
        state = steps(shop, schedule)
        assert (state["schedule"], len(state["history"])) == (schedule, moves + 1)
        assert told(state) == told(full)[: len(state["told"])]
    witness = shop.post("/steps/search", SEARCH).json["witness"]
    replayed = subprocess.run(
        [BUILD / "loadtest", "explore", "--servers", "environment", "--replay", witness["replay"], "--format", "json"],
        env={**os.environ, "DATABASE_URL": shop.database_url}, capture_output=True, text=True, timeout=60 * PATIENCE, check=False,
    )  # fmt: skip
    assert replayed.returncode == 0, replayed.stderr
    played = steps(shop, witness["replay"])
    assert played["schedule"] == witness["replay"] and played["explanation"] == witness["explanation"]
    assert witness["explanation"] in replayed.stdout


@pytest.mark.long
def test_find_me_an_oversell(shop):
    found = shop.post("/steps/search", SEARCH).json
    assert found["verdict"] == "oversold-as-expected"  # the search ends after 1.5 s, on a slow machine before it is complete
    assert found["oversold"] == 22 if found["complete"] else 0 < found["oversold"] <= 22, f"{found}"
    assert found["witness"]["replay"] == "read-write s=1 q=1,1 A>read B>end A>end"
    impossible = shop.post("/steps/search", {"schedule": "atomic-decrement s=1 q=1,1 A>take", "faults": "none"}).json
    assert (impossible["complete"], impossible["oversold"], impossible["witness"]) == (True, 0, None)
    assert impossible["schedules"] > 1
    lease = shop.post("/steps/search", {"schedule": "redis-lock s=1 q=1,1", "faults": "expire"}).json
    assert lease["oversold"] > 0 and "A!expire" in lease["witness"]["replay"]
    stuck = shop.post("/steps/search", {"schedule": "redis-setnx-forever s=1 q=1,1", "faults": "crash"}).json
    assert steps(shop, stuck["witness"]["replay"])["ending"]["stuck"]


# ── nobody disturbs anybody ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_side_by_side_they_do_not_disturb_one_another(shop):
    """Six at once, in the middle of orders that hold locks, while the shop itself sells under the same strategy."""
    product, wrong = shop.product(stock=1_000_000), []
    schedules = ["redis-lock s=1 q=1,1", "select-for-update s=1 q=1,1", "read-write s=1 q=1,1"] * 2

    def learn(schedule):
        try:
            for _ in range(4):
                state = walk(shop, schedule, "A", "A", "B", "A>end")[-1]
                assert state["database"]["orders"] <= 2 and order(state, "A")["outcome"] == "created"
        except Exception as problem:  # pylint: disable=broad-except
            wrong.append(problem)

    threads = [threading.Thread(target=learn, args=(schedule,)) for schedule in schedules]
    for thread in threads:
        thread.start()
    orders = 0
    while any(thread.is_alive() for thread in threads):
        assert shop.order(product, strategy="select-for-update").status == 201
        orders += 1
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    assert shop.audit(product)["sold"] == orders > 0
    assert len(explorers(shop)) <= 4, "there is a cap"


def test_a_service_that_ends_leaves_nothing(services, database):
    service = services.start(database)
    steps(service, "redis-lock s=1 q=1,1 A>read", "B")
    processes = explorers(service)
    assert processes and schemas(service) == len(processes)
    service.stop()
    assert not alive(processes) and schemas(service) == 0


def test_a_service_that_is_killed_takes_its_explorers_with_it(services, database):
    service = services.start(database)
    steps(service, START)
    processes = explorers(service)
    service.kill()
    wait_until(lambda: not alive(processes), "its explorers are gone", 30)
    wait_until(lambda: schemas(service) == 0, "and their schemas", 30)


def test_an_explorer_that_is_killed_is_replaced_and_swept_up(services, database):
    service = services.start(database)
    steps(service, START)
    for pid, _ in explorers(service):
        os.kill(pid, signal.SIGKILL)
    state = steps(service, START, "A")
    assert order(state, "A")["did"], "another one answers"
    steps(service, START, "B")
    wait_until(lambda: schemas(service) == len(explorers(service)), "the dead one's schema is dropped", 30)


# ── what it refuses ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", ["/steps", "/steps/search"])
@pytest.mark.parametrize(
    "schedule",
    [
        "",
        " ",
        "nonsense s=1 q=1,1",
        "read-write s=-1",
        "read-write s=1001",
        "read-write s=99999999999999999999",
        "read-write q=0,1",
        "read-write q=1,1001",
        "read-write q=1,1,1,1,1",
        "read-write s=1 q=1,1 A>sleep",
        "read-write s=1 q=1,1 C>read",
        "read-write s=1 q=1,1 A>read; DROP TABLE product",
        "read-write s=1 q=1,1\nA>read\0",
        "batched s=1 q=1,1",
        "redis-stock s=1 q=1,1",
        "read-write s=1 q=1,1 " + "A>read " * 129,
        "read-write s=1 q=1,1 " + "x" * 20000,
    ],
)
def test_what_is_no_schedule_is_refused(shop, target, schedule):
    problem = shop.post(target, {"schedule": schedule}).problem
    assert problem == ("bad-request" if "\0" in schedule else "invalid-schedule")


@pytest.mark.parametrize(
    "schedule, move, said",
    [
        ("read-write s=1 q=1,1 A>end A>read", None, "word 2"),
        ("read-write s=1 q=1,1 B>lock~", None, "ended"),
        ("select-for-update s=1 q=1,1 A>read B>read", None, "waits before its 'read'"),
        ("read-write s=1 q=1,1 A!expire", None, "cannot happen to A"),
        ("read-write s=1 q=1,1", "A!crash", "cannot happen to A"),
        ("read-write s=1 q=1,1 A>end", "A", "A cannot continue"),
        ("read-write s=1 q=1,1", "C", "no move"),
        ("read-write s=1 q=1,1", "", "no move"),
        ("read-write s=1 q=1,1", "A>read", "no move"),
        ("read-write s=1 q=1,1", "A B", "no move"),
        ("read-write s=1 q=1,1", "A>end~", "no move"),
        ("read-write s=1 q=1,1", "x" * 40, "no such move"),
    ],
)
def test_what_cannot_happen_is_refused(shop, schedule, move, said):
    reply = shop.post("/steps", {"schedule": schedule, **({} if move is None else {"move": move})})
    assert reply.problem == "invalid-schedule" and said in reply.json["detail"], str(reply)
    assert steps(shop, START)["told"] == [], "and the next one is answered"


@pytest.mark.parametrize("target", ["/steps", "/steps/search"])
def test_bodies_that_are_none(shop, target):
    for body in (b"", b"[]", {}, {"schedule": 1}, {"schedule": None}, {"schedule": START, "colour": 1}):
        assert shop.post(target, body).problem == "bad-request", f"{body}"
    assert shop.post(target, SEARCH, {"Content-Type": "text/plain"}).problem == "unsupported-media-type"
    assert shop.post(target, b"{" + b" " * 70000).problem == "payload-too-large"
    page = {"Origin": "http://evil.example"}
    assert shop.post(target, SEARCH, page).problem == "forbidden-origin"


def test_members_of_other_types(shop):
    for more in ({"move": 1}, {"every_step": "yes"}, {"every_step": 1}, {"faults": "none"}):
        assert shop.post("/steps", {**SEARCH, **more}).problem == "bad-request", f"{more}"
    assert shop.post("/steps/search", {**SEARCH, "faults": "flood"}).problem == "invalid-schedule"
    assert shop.post("/steps/search", {**SEARCH, "move": "A"}).problem == "bad-request"


@pytest.mark.parametrize("target", ["/steps", "/steps/search"])
def test_who_may_step(services, database, target):
    service = services.start(database, token=TOKEN)
    assert service.call("POST", target, SEARCH, {"Authorization": None}).problem == "unauthorized"
    assert service.call("POST", target, SEARCH).status == 200


def test_a_learner_may_step_and_a_stranger_may_not(services, database):
    service = services.start(database, "--classroom", listen="127.0.0.1:0")
    code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    learner = Learner(service, code)
    assert learner.call("POST", "/steps", SEARCH).status == 200
    assert learner.call("POST", "/steps/search", SEARCH).json["oversold"] == 22
    assert service.call("POST", "/steps", SEARCH, {"Authorization": f"Bearer {code}"}).problem == "unauthorized"
    assert service.audit(learner.product)["orders"] == 0, "its product is not what is stepped with"


# ── what is not there ───────────────────────────────────────────────────────────────────────────────────────


def test_without_the_load_test(services, database):
    service = services.start(database, env={"OVERSELL_LOADTEST": "/nonexistent/loadtest"})
    for target in ("/steps", "/steps/search"):
        reply = service.post(target, SEARCH)
        assert reply.problem == "explorer-unavailable" and "not in the folder" in reply.json["detail"], str(reply)


def test_with_an_explorer_that_says_nothing(services, database):
    service = services.start(database, env={"OVERSELL_LOADTEST": "/bin/true"})
    assert service.post("/steps", SEARCH).problem == "explorer-unavailable"


def test_without_a_lock_server(services, database):
    service = services.start(database, env={"REDIS_URL": ""})
    for target in ("/steps", "/steps/search"):
        reply = service.post(target, {"schedule": "redis-lock s=1 q=1,1"})
        assert (reply.problem, reply.json["backend"]) == ("backend-unavailable", "redis"), str(reply)
    assert service.post("/steps", SEARCH).status == 200


@pytest.mark.long
def test_without_postgresql(services, database):
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    service = services.start(nowhere, ready=False)
    for target in ("/steps", "/steps/search"):
        reply = service.post(target, SEARCH)
        assert (reply.problem, reply.json["backend"]) == ("backend-unavailable", "postgresql"), str(reply)


@pytest.mark.long
def test_searches_leave_an_explorer_for_steps(shop):
    """Of three at once one waits for another one's end, and steps go on meanwhile."""
    slow = {"schedule": "redis-lock s=1 q=1,1", "faults": "expire"}
    searches = [Background(lambda: shop.call("POST", "/steps/search", slow, seconds=600)) for _ in range(3)]
    while any(search.running for search in searches):
        assert steps(shop, START)["told"] == []
    assert [search.result().status for search in searches] == [200] * 3
