"""Load runs from the service: what they find, that one goes on at a time, and that nothing of one stays behind."""

import signal
import subprocess
import threading

import pytest

from basics import BUILD, START_S
from lab import Background, DOCUMENT, request_bytes, wait_until
from processes import alive, descendants

TOKEN = "a-token-of-some-length"
LONG = {"strategies": ["atomic-decrement"], "duration_ms": 30000}


def ask(service, **order):
    """Asks for a run until it is this product's turn."""

    def turn():
        reply = service.post("/runs", order)
        return reply if reply.problem != "run-in-progress" else None

    return wait_until(turn, "it is this product's turn", every=0.1)


def start(service, **order):
    reply = ask(service, **order)
    assert reply.status == 202, str(reply)
    assert reply.header("Location") == f"/runs/{reply.json['id']}"
    return reply.json["id"]


def ended(service, run, seconds=60):
    """The run once it has ended, and all that was seen of it meanwhile."""
    seen = []

    def look():
        seen.append(service.get(f"/runs/{run}").json)
        return seen[-1]["state"] != "running"

    wait_until(look, f"run {run} ends", seconds, every=0.05)
    return seen[-1], seen


def under_load(service, run, processes):
    """Waits until the run's orders are answered, and returns its processes: at least PROCESSES."""
    wait_until(
        lambda: (service.get(f"/runs/{run}").json["load"] or {}).get("created", 0) > 0,
        f"run {run} sells",
        30,
    )
    found = descendants(service.process.pid)
    assert len(found) >= processes, f"{found}"
    return found


def test_a_run_tells_the_safe_from_the_unsafe(shop):
    before = shop.get("/strategy").json
    product = shop.product()
    run = start(shop, strategies=["read-write", "atomic-decrement"], product_id=product, stock=50, duration_ms=500)
    last, seen = ended(shop, run)
    assert (last["state"], last["error"]) == ("done", None), f"{last}"
    rows = {row["strategy"]: row for row in last["rows"]}
    assert rows["read-write"]["verdict"] == "oversold-as-expected", f"{rows}"
    assert rows["read-write"]["oversold"] > 0 and "both saw" in rows["read-write"]["witness"]
    assert (rows["atomic-decrement"]["verdict"], rows["atomic-decrement"]["oversold"]) == ("ok", 0), f"{rows}"
    assert all(row["orders_per_s"] is not None and "cells" not in row for row in last["rows"])
    assert last["machine"]["cpus"] > 0 and last["settings"]["phases"] == ["throughput", "sell-out"]
    phases = {(step["load"]["strategy"], step["load"]["phase"]) for step in seen if step["load"]}
    every = {(name, phase) for name in ("read-write", "atomic-decrement") for phase in ("throughput", "sell-out")}
    assert len(phases) > 1 and phases <= every, f"progress shows {phases}"
    assert any(len(step["rows"]) == 1 for step in seen), "the first row was not there before the end"
    books = shop.audit(product)
    assert (books["initial"], books["sold"]) == (50, 50), f"the sale's books are there to be looked at: {books}"
    assert shop.get("/strategy").json == before
    assert shop.get(f"/runs/{run}/traces").json == {"instances": []}
    assert shop.audit(1)["orders"] == 0, "another product was ordered"


def test_a_second_process_defeats_the_mutex_and_its_orders_are_shown(shop):
    product = shop.product()
    run = start(shop, strategies=["mutex"], product_id=product, instances=2, duration_ms=300)
    last, _ = ended(shop, run)
    assert last["state"] == "done" and last["rows"][0]["oversold"] > 0, f"{last}"
    ours = shop.get(f"/traces?product_id={product}&limit=1000").json
    (other,) = shop.get(f"/runs/{run}/traces").json["instances"]
    assert other["instance"] != ours["instance"] and other["traces"]
    for side in (ours, other):
        assert {trace["product_id"] for trace in side["traces"]} == {product}
    witness = shop.audit(product)["witness"]["orders"]
    known = {trace["order_id"] for trace in ours["traces"] + other["traces"]}
    assert set(witness) <= known, f"{witness} is in no trace"


def test_one_at_a_time_and_cancelled_without_a_trace(shop):
    product = shop.product()
    before = shop.get("/strategy").json
    run = start(shop, **LONG, product_id=product, instances=2)
    processes = under_load(shop, run, 3)  # the load test, wrk, the second service
    busy = shop.post("/runs", {"strategies": ["mutex"]})
    assert (busy.problem, busy.json["run"]) == ("run-in-progress", run), str(busy)
    ended_run = shop.call("DELETE", f"/runs/{run}")
    assert (ended_run.status, ended_run.json["state"]) == (200, "cancelled"), str(ended_run)
    wait_until(lambda: not alive(processes), "its processes are gone")
    assert shop.get("/strategy").json == before
    assert shop.call("DELETE", f"/runs/{run}").json["state"] == "cancelled", "once ended, it stays as it is"
    again = start(shop, strategies=["atomic-decrement"], product_id=product, duration_ms=100)
    assert again == run + 1 and ended(shop, again)[0]["state"] == "done"


@pytest.mark.long
def test_products_take_turns(services, database):
    """Who asks for one run after the other comes after everybody who has asked meanwhile."""
    service = services.start(database)
    greedy, others = service.product(), [service.product() for _ in range(2)]
    first = start(service, strategies=["atomic-decrement"], product_id=greedy, duration_ms=1000)
    stop = threading.Event()

    def be_greedy():
        runs = []
        while not stop.is_set():
            reply = service.post("/runs", {"strategies": ["atomic-decrement"], "product_id": greedy, "duration_ms": 100})
            if reply.status == 202:
                runs.append(reply.json["id"])
        return runs

    wanted = [
        Background(lambda product=product: start(service, strategies=["mutex"], product_id=product, duration_ms=100))
        for product in others
    ]
    hog = Background(be_greedy)
    try:
        ids = [run.result(120) for run in wanted]
    finally:
        stop.set()
        runs = hog.result(60)
    assert max(ids) <= first + 4, f"others {ids}, greedy {runs}"
    wait_until(lambda: service.get(f"/runs/{max([*ids, *runs])}").json["state"] == "done", "the last run ends")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_service_that_ends_takes_its_run_with_it(services, database, how):
    service = services.start(database)
    run = start(service, **LONG, instances=2)
    processes = under_load(service, run, 3)
    if how == signal.SIGTERM:
        service.stop()
        assert not alive(processes), "processes of the run are still there"
    else:
        service.kill()
        wait_until(lambda: not alive(processes), "its processes are gone", 30)


def test_a_run_that_cannot_be_says_why(services, database):
    service = services.start(database, env={"OVERSELL_LOADTEST": "/nonexistent/loadtest"})
    last, _ = ended(service, start(service, strategies=["mutex"]))
    assert last["state"] == "failed" and "load test" in last["error"], f"{last}"


def test_a_run_whose_server_is_away_says_which_and_what_to_do(services, database):
    service = services.start(database, env={"REDIS_URL": "redis://127.0.0.1:1"})
    last, _ = ended(service, start(service, strategies=["redis-lock"]))
    assert last["state"] == "failed" and last["rows"][0]["verdict"] == "unavailable", f"{last}"
    assert "redis-lock could not be loaded: redis" in last["error"] and "127.0.0.1:1" in last["error"], f"{last}"
    assert "Start that server" in last["error"] and "status" not in last["error"], f"{last}"
    last, _ = ended(service, start(service, strategies=["redis-lock", "atomic-decrement"], duration_ms=100))
    assert (last["state"], last["error"]) == ("done", None), f"what could be measured was: {last}"
    verdicts = {row["strategy"]: row["verdict"] for row in last["rows"]}
    assert verdicts == {"redis-lock": "unavailable", "atomic-decrement": "ok"}


@pytest.mark.parametrize(
    "order, problem",
    [
        ({}, "bad-request"),
        ({"strategies": "mutex"}, "bad-request"),
        ({"strategies": [1]}, "bad-request"),
        ({"strategies": None}, "bad-request"),
        ({"strategies": ["mutex"], "colour": 1}, "bad-request"),
        ({"strategies": ["mutex"], "stock": "1"}, "bad-request"),
        ({"strategies": []}, "invalid-order"),
        ({"strategies": ["mutex"] * 65}, "invalid-order"),
        ({"strategies": ["nonsense"]}, "invalid-order"),
        ({"strategies": ["--help"]}, "invalid-order"),
        ({"strategies": ["all"]}, "invalid-order"),
        ({"strategies": ["mutex"], "connections": 257}, "invalid-order"),
        ({"strategies": ["mutex"], "stock": 0}, "invalid-order"),
        ({"strategies": ["mutex"], "stock": 10001}, "invalid-order"),
        ({"strategies": ["mutex"], "stock": 5, "quantity": 6}, "invalid-order"),
        ({"strategies": ["mutex"], "requests": 100001}, "invalid-order"),
        ({"strategies": ["mutex"], "duration_ms": 99}, "invalid-order"),
        ({"strategies": ["mutex"], "duration_ms": 30001}, "invalid-order"),
        ({"strategies": ["mutex"], "think_ms": 1001}, "invalid-order"),
        ({"strategies": ["mutex"], "instances": 5}, "invalid-order"),
        ({"strategies": ["mutex"], "product_id": 0}, "invalid-order"),
    ],
)
def test_what_cannot_be_run_is_refused(shop, order, problem):
    assert shop.post("/runs", order).problem == problem


@pytest.mark.parametrize("run", ["0", "999999", "-1", "x", "01", "99999999999999999999"])
def test_a_run_that_is_not_there(shop, run):
    assert shop.get(f"/runs/{run}").problem == "not-found"
    assert shop.get(f"/runs/{run}/traces").problem == "not-found"
    assert shop.call("DELETE", f"/runs/{run}").problem == "not-found"


def test_runs_are_control(services, database):
    service = services.start(database, token=TOKEN)
    stranger, page = {"Authorization": None}, {"Origin": "http://evil.example"}
    for method, target, body in (("POST", "/runs", LONG), ("DELETE", "/runs/1", None)):
        assert service.call(method, target, body, stranger).problem == "unauthorized"
        assert service.call(method, target, body, page).problem == "forbidden-origin"
    run = start(service, strategies=["mutex"], duration_ms=100)
    last, _ = ended(service, run)
    assert last["state"] == "done", f"the load test has the token: {last}"
    assert TOKEN not in service.get(f"/runs/{run}").text


def test_an_end_with_a_body_that_is_too_large(shop):
    with shop.wire() as wire:
        wire.send(request_bytes("DELETE", "/runs/1", b"{" + b" " * 70000))
        reply = wire.reply()
    DOCUMENT.check("DELETE", "/runs/1", reply)
    assert reply.problem == "payload-too-large", str(reply)


def test_compare_accepts_services_whose_orders_do_not_wait_for_a_lock(services, database):
    """A lock wait of 0 ms is a valid setting; compare shortens the wait for a while, and restores each service's own."""
    pair = [services.start(database), services.start(database)]
    waits = [0, 4000]
    for service, wait in zip(pair, waits, strict=True):
        service.strategy("atomic-decrement", lock_wait_ms=wait)
    urls = [word for service in pair for word in ("--url", f"http://127.0.0.1:{service.port}")]
    ran = subprocess.run(
        [BUILD / "loadtest", "compare", *urls, "--strategies", "select-for-update", "--phases", "sell-out"],
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [service.get("/strategy").json["lock_wait_ms"] for service in pair] == waits
