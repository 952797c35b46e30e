"""What the service tells of itself: traces step by step, metrics that agree with the answers, health."""

import re
from collections import Counter, defaultdict

import pytest

from lab import (
    SOON_S,
    Background,
    at_any_speed,
    hammer,
    holding_row,
    psql,
    request_bytes,
    terminate_sessions,
    together,
    wait_until,
    waiting_backends,
    with_database,
)
from promises import STRATEGIES

# The steps of an undisturbed order that is created.
STEPS = {
    "read-write": "read write insert commit",
    "decrement": "read write insert commit",
    "mutex-early-release": "lock read write insert unlock commit",
    "mutex-wrong-object": "lock read write insert commit unlock",
    "mutex": "lock read write insert commit unlock",
    "mutex-per-product": "lock read write insert commit unlock",
    "reentrant-mutex": "lock read write commit-stock unlock insert commit-order",
    "select-for-update": "read write insert commit",
    "atomic-decrement": "take insert commit",
    "check-constraint": "read write insert commit",
    "optimistic": "read write insert commit",
    "repeatable-read": "read write insert commit",
    "serializable": "read write insert commit",
    "table-lock": "lock read write insert commit",
    "advisory-lock": "lock read write insert commit",
    "skip-locked": "take insert commit",
    "bucketed": "read write insert commit",  # two of nine units in sixteen buckets are never in one
    "redis-setnx": "setnx expire lock read write insert commit del unlock",
    "redis-get-del": "lock read write insert commit get del unlock",
    "redis-lock-checked": "lock read check write insert commit unlock",
    "redis-lock-early-release": "lock read write insert unlock commit",
    "redis-fenced": "lock fence read write insert commit unlock",
    "zookeeper-fenced": "lock fence read write insert commit unlock",
    "etcd-fenced": "lock fence read write insert commit unlock",
    "fence-on-write": "lock read write insert commit unlock",
}


def trace_of(service, request_id, limit=1000):
    found = [
        trace
        for trace in service.get(f"/traces?limit={limit}").json["traces"]
        if trace["request_id"] == request_id
    ]
    assert len(found) == 1, f"{len(found)} traces of {request_id}"
    return found[0]


def order_as(service, request_id, product, quantity, strategy):
    return service.post(
        f"/orders?strategy={strategy}",
        {"product_id": product, "quantity": quantity},
        {"X-Request-Id": request_id},
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_steps_of_an_order(shop, strategy):
    product = shop.product(stock=9, strategy=strategy)
    order = order_as(shop, f"trace-{strategy}", product, 2, strategy).json
    trace = trace_of(shop, f"trace-{strategy}")
    wanted = {
        "strategy": strategy,
        "product_id": product,
        "quantity": 2,
        "order_id": order["id"],
        "outcome": "created",
        "tries": 1,
        "truncated": False,
    }
    assert {name: trace[name] for name in wanted} == wanted
    steps = trace["steps"]
    names = [step["step"] for step in steps if step["step"] != "wait"]
    if strategy in STEPS:
        assert " ".join(names) == STEPS[strategy]
    assert names, "no steps at all"

    times = [trace["received_us"], trace["started_us"]]
    for step in steps:
        assert step["begin_us"] == times[-1], f"a step begins where the last ended: {steps}"
        assert step["end_us"] >= step["begin_us"], f"{steps}"
        times.append(step["end_us"])
    times.append(trace["ended_us"])
    assert times == sorted(times), f"{times}"
    assert 0 < times[-1] - times[0] < 100_000_000, f"microseconds: {times}"

    values = {step["step"]: step["value"] for step in steps}
    if "read" in values:
        assert values["read"] == 9
    if "write" in values or "take" in values:
        left = None if strategy == "skip-locked" else 7  # it never counts them
        assert values.get("write", values.get("take")) == left
    assert values.get("insert") is None and values.get("commit") is None


def test_orders_that_fail_are_traced_too(shop):
    product = shop.product(stock=1)
    order_as(shop, "trace-sold-out", product, 2, "select-for-update")
    order_as(shop, "trace-no-such-product", 999999999, 1, "select-for-update")
    for name in ("sold-out", "no-such-product"):
        trace = trace_of(shop, f"trace-{name}")
        assert (trace["outcome"], trace["order_id"]) == (name, None), f"{trace}"


def test_waiting_for_a_lock_is_a_step(services, database):
    service = services.start(database, "--workers", "4", "--strategy", "mutex")
    product = service.product()

    def one_waits_for_the_other(scale):
        names = f"the-first-{scale}", f"the-second-{scale}"
        with holding_row(database, product) as row:
            first = Background(lambda: order_as(service, names[0], product, 1, "mutex"))
            wait_until(lambda: waiting_backends(database) == 1, "the first order waits for the row")
            second = Background(lambda: order_as(service, names[1], product, 1, "mutex"))
            wait_until(lambda: "oversell_workers_busy 2\n" in service.get("/metrics").text, "so does the second")
            second.thread.join(timeout=0.5 * scale)
            row.run("ROLLBACK")
            first.result(), second.result()
        one, two = (trace_of(service, name) for name in names)
        assert [step["step"] for step in two["steps"]][:2] == ["wait", "lock"]
        assert "wait" not in [step["step"] for step in one["steps"]]
        unlocking = [step["begin_us"] for step in one["steps"] if step["step"] == "unlock"][0]
        locked = [step["end_us"] for step in two["steps"] if step["step"] == "lock"][0]
        taken = locked - [step["end_us"] for step in two["steps"] if step["step"] == "wait"][0]
        assert taken > 200_000 * scale, f"it waited for {taken} µs"
        assert locked >= unlocking, "the second has the lock only when the first has released it"

    at_any_speed(one_waits_for_the_other)


def test_the_newest_traces_come_last_and_are_limited(shop):
    product = shop.product()
    for index in range(5):
        order_as(shop, f"trace-newest-{index}", product, 1, "atomic-decrement")
    newest = shop.get("/traces?limit=3").json["traces"]
    assert [trace["request_id"] for trace in newest] == [f"trace-newest-{index}" for index in (2, 3, 4)]


@pytest.mark.parametrize("in_turn", ["yes", "no"])
def test_traces_of_many_workers_are_in_order(services, database, in_turn):
    service = services.start(database, "--workers", "8", f"--in-turn={in_turn}")
    product = service.product(stock=100)
    hammer([service], product)
    reply = service.get("/traces?limit=1000").json
    assert reply["instance"] == service.name and reply["pid"] == service.process.pid
    traces = reply["traces"]
    started = [trace["started_us"] for trace in traces]
    assert started == sorted(started)
    created = [trace for trace in traces if trace["outcome"] == "created"]
    assert len(created) == 100
    assert in_turn == "yes" or len({trace["worker"] for trace in created}) > 1
    by_worker = defaultdict(list)
    for trace in traces:
        by_worker[trace["worker"]].append(trace)
    for of_one in by_worker.values():
        for before, after in zip(of_one, of_one[1:]):
            assert before["ended_us"] <= after["started_us"], "a worker has one order at a time"
    assert max(trace["ended_us"] for trace in traces) <= reply["now_us"]


def test_traces_are_bounded(services, database):
    """However many orders there were, what is kept and what is sent has an end."""
    service = services.start(database, "--workers", "1")
    with service.wire() as wire:
        for _ in range(150):
            wire.send(request_bytes("POST", "/orders", b'{"product_id":999999,"quantity":1}') * 8)
            for _ in range(8):
                assert wire.reply().status == 404
    default = len(service.get("/traces").json["traces"])
    reply = service.call("GET", "/traces?limit=1000000")
    kept = len(reply.json["traces"]) if reply.status == 200 else 0
    assert (
        reply.status == 200 and 0 < default <= kept < 1200 or reply.problem == "bad-request"
    ), f"{default}, {kept}"


def test_the_chrome_trace(services, database):
    """Valid for the viewers: spans nest on each lane, asynchronous ones come in pairs, lanes have names."""
    service = services.start(database, "--workers", "4", "--strategy", "mutex")
    product = service.product(stock=30)
    hammer([service], product, threads=8)
    reply = service.get("/traces?limit=1000&format=chrome")
    events = reply.json["traceEvents"]
    pid = service.process.pid
    assert {event["pid"] for event in events} == {pid}

    names = {
        event["tid"]: event["args"]["name"]
        for event in events
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    (process,) = [
        event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "process_name"
    ]
    assert service.name in process

    lanes = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            lanes[event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["cat"], event["name"]))
            assert event["tid"] in names, f"lane {event['tid']} has no name"
    assert sum(span[2] == "order" for spans in lanes.values() for span in spans) >= 30
    for tid, spans in lanes.items():
        open_spans = []
        for start, end, category, name in sorted(
            spans, key=lambda span: (span[0], -span[1], span[2] != "order")
        ):
            while open_spans and open_spans[-1] <= start:
                open_spans.pop()
            assert (
                not open_spans or end <= open_spans[-1]
            ), f"lane {tid}: {category} {name} is cut by another span"
            open_spans.append(end)

    holds = defaultdict(list)
    for event in events:
        if event["ph"] in "be":
            holds[(event["cat"], event["id"])].append((event["ts"], event["ph"]))
    assert len(holds) >= 30, "a mutex is held by every order"
    for key, pair in holds.items():
        assert [phase for _, phase in sorted(pair)] == ["b", "e"], f"{key}: {pair}"
    # An unlock is written down when it is done, and the next holder may run by then; it had begun before.
    taken = [(event["ts"], "b") for event in events if event["ph"] == "b"]
    given = [(event["ts"], "a") for event in events if event["ph"] == "X" and event["name"] == "unlock"]
    order = "".join(kind for _, kind in sorted(taken + given))
    assert order == "ba" * len(holds), f"two orders hold the one mutex: {order}"

    stock = [
        event["args"]["count"]
        for event in sorted((event for event in events if event["ph"] == "C"), key=lambda event: event["ts"])
    ]
    assert stock == list(range(29, -1, -1)), "the stock falls one by one"
    seen = {event["args"]["count"] for event in events if event["ph"] == "X" and event["name"] == "read"}
    assert seen == set(range(31)), "each order's read says what it saw"
    assert not [event for event in events if event["ph"] == "i"], "nothing broke"


def test_the_chrome_trace_marks_what_a_fault_ended(services, database):
    service = services.start(database, "--strategy", "atomic-decrement")
    product = service.product(stock=1)
    name, elsewhere = database.rsplit("/", 1)[1], with_database(database, "postgres")
    psql(elsewhere, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    terminate_sessions(elsewhere, database=name)
    assert service.order(product).problem == "backend-unavailable"
    psql(elsewhere, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    wait_until(lambda: service.get("/readyz").status == 200, "PostgreSQL is back")
    assert service.order(product).status == 201 and service.order(product).problem == "sold-out"
    events = service.get("/traces?format=chrome").json["traceEvents"]
    marks = [event for event in events if event["ph"] == "i"]
    assert [mark["cat"] for mark in marks] == ["fault"], marks
    spans = [event for event in events if event["ph"] == "X" and event["cat"] == "order"]
    (span,) = [event for event in spans if event["args"]["outcome"] == marks[0]["name"]]
    assert marks[0]["ts"] == span["ts"] + span["dur"] and marks[0]["tid"] == span["tid"]


# ── metrics ─────────────────────────────────────────────────────────────────────────────────────────────────

SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([^ ]+)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')


def parse(text):
    """Prometheus text → {family: type}, {(name, labels): value}; fails on what Prometheus would refuse."""
    types, helps, samples, family = {}, set(), {}, None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in helps, f"HELP of {name} twice"
            helps.add(name)
        elif line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family not in types, f"TYPE of {family} twice"
            assert kind in ("counter", "gauge", "histogram"), line
            types[family] = kind
        elif line and not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match, f"not a sample: {line!r}"
            name, labels, value = match.groups()
            pairs = LABEL.findall(labels or "")
            assert "".join(f'{key}="{text}",' for key, text in pairs).rstrip(",") == (labels or "").rstrip(
                ","
            ), line
            allowed = {family} | (
                {f"{family}_{part}" for part in ("bucket", "sum", "count")}
                if types.get(family) == "histogram"
                else set()
            )
            assert name in allowed, f"{name} stands under {family}"
            key = (name, frozenset(pairs))
            assert key not in samples, f"{line} twice"
            samples[key] = float(value)
    assert helps == set(types), f"{helps ^ set(types)} without HELP or TYPE"
    return types, samples


def orders_total(samples):
    """{(strategy, outcome): count}, without those that are 0."""
    return {
        (dict(labels)["strategy"], dict(labels)["outcome"]): int(value)
        for (name, labels), value in samples.items()
        if name == "oversell_orders_total" and value
    }


def check_histograms(types, samples):
    for family, kind in types.items():
        if kind == "counter":
            assert family.endswith("_total"), family
        if kind != "histogram":
            continue
        series = defaultdict(list)
        for (name, labels), value in samples.items():
            if name == f"{family}_bucket":
                rest = frozenset(pair for pair in labels if pair[0] != "le")
                series[rest].append((float(dict(labels)["le"]), value))
        for labels, buckets in series.items():
            buckets.sort()
            counts = [count for _, count in buckets]
            assert counts == sorted(counts), f"{family}{dict(labels)}: not cumulative: {buckets}"
            assert buckets[-1][0] == float("inf"), f"{family}{dict(labels)}: no +Inf"
            assert samples[(f"{family}_count", labels)] == counts[-1]
            assert samples[(f"{family}_sum", labels)] >= 0


def test_metrics_are_prometheus_text(shop):
    shop.order(shop.product())
    reply = shop.get("/metrics")
    assert re.match(r"text/plain; version=0\.0\.4", reply.header("Content-Type")), f"{reply.headers}"
    types, samples = parse(reply.text)
    check_histograms(types, samples)
    assert {
        "oversell_orders_total": "counter",
        "oversell_order_seconds": "histogram",
        "oversell_lock_wait_seconds": "histogram",
        "oversell_lock_held_seconds": "histogram",
    }.items() <= types.items()
    gauges = [family for family, kind in types.items() if kind == "gauge"]
    assert any("queue" in family for family in gauges), f"queue depth: {gauges}"
    assert any(
        "pool" in family or "connection" in family or "worker" in family for family in gauges
    ), f"pool use: {gauges}"


@pytest.mark.long
def test_counts_agree_with_the_answers(services, database):
    """Every answer to an order is counted once, under its strategy and its outcome."""
    service = services.start(database, "--workers", "8", "--lock-wait-ms", "5000")  # zookeeper-naive may wait in vain
    told = Counter()
    for strategy in STRATEGIES:
        product = service.product(stock=10, strategy=strategy)
        load = hammer([service], product, threads=4, strategy=strategy)
        told.update({(strategy, outcome): count for outcome, count in load.outcomes.items()})
    product = service.product()
    for reply in (
        service.order(999999999, 1, "mutex"),
        service.order(product, 1, "mutex", key="k"),
        service.order(product, 1, "mutex", key="k"),
        service.order(product, 2, "mutex", key="k"),
    ):
        outcome = reply.problem or ("replayed" if reply.header("Idempotency-Replayed") else "created")
        told[("mutex", outcome)] += 1
    types, samples = parse(service.get("/metrics").text)
    assert orders_total(samples) == dict(told)
    check_histograms(types, samples)
    counted = {
        (dict(labels)["strategy"], dict(labels)["outcome"]): int(value)
        for (name, labels), value in samples.items()
        if name == "oversell_order_seconds_count"
    }
    assert counted == dict(told), "the histogram knows as many"


def test_requests_that_are_no_orders_are_not_counted_as_orders(services, database):
    service = services.start(database)
    service.post("/orders", b"{")
    service.post("/orders?strategy=nobody", {"product_id": 1, "quantity": 1})
    service.post("/orders", {"product_id": 1, "quantity": 0})
    service.get("/products")
    _, samples = parse(service.get("/metrics").text)
    assert orders_total(samples) == {}


def test_latencies_are_plausible(services, database):
    """Ten orders that think for 50 ms each take at least half a second together, also in the histogram."""
    service = services.start(database, "--strategy", "mutex", "--think-ms", "50")
    product = service.product()
    together(*[lambda: service.order(product)] * 10)
    _, samples = parse(service.get("/metrics").text)
    labels = frozenset({("strategy", "mutex"), ("outcome", "created")})
    total = samples[("oversell_order_seconds_sum", labels)]
    assert 0.5 < total, f"ten orders took {total} s in all"
    held = samples[("oversell_lock_held_seconds_sum", frozenset({("strategy", "mutex")}))]
    assert 0.45 < held < total, f"the mutex was held for {held} s of {total} s"
    waited = samples[("oversell_lock_wait_seconds_sum", frozenset({("strategy", "mutex")}))]
    assert 0.05 < waited < total - held, f"of {total} s it was waited for during {waited} s and held for {held} s"


def test_a_full_queue_can_be_seen(services, database):
    service = services.start(
        database,
        "--workers",
        "1",
        "--queue",
        "8",
        "--strategy",
        "select-for-update",
        "--in-turn=no",
    )
    product = service.product()

    def depth():
        types, samples = parse(service.get("/metrics").text)
        return [value for (name, _), value in samples.items() if "queue" in name and "depth" in name]

    assert depth() == [0]
    with holding_row(database, product) as row:
        orders = [Background(lambda: service.order(product)) for _ in range(5)]
        wait_until(lambda: depth() == [4], "one is at work, four wait")
        row.run("ROLLBACK")
        assert [order.result().status for order in orders] == [201] * 5
    assert depth() == [0]


# ── health ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_health_and_readiness(shop):
    assert shop.get("/healthz").status == 200
    reply = shop.get("/readyz")
    assert reply.status == 200
    assert "postgresql" in reply.text


def test_health_is_answered_while_every_worker_is_busy(services, database):
    service = services.start(database, "--workers", "1", "--strategy", "select-for-update")
    product = service.product()
    with holding_row(database, product) as row:
        order = Background(lambda: service.order(product))
        wait_until(lambda: waiting_backends(database) == 1, "the worker waits for the row")
        for target in ("/healthz", "/readyz", "/metrics", "/strategy", "/traces"):
            reply = service.call("GET", target, seconds=SOON_S)
            assert reply.status == 200, f"{target}: {reply}"
        row.run("ROLLBACK")
        assert order.result().status == 201
