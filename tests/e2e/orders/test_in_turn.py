"""Orders of a product that wait are placed in turn: on one connection, each in its own transaction, the next one sent
while PostgreSQL commits the one before."""

import contextlib
import signal
import socket
import threading
import time

import pytest

from crowd import Crowd, expect_all_busy, held, in_line, told, transactions  # noqa: F401  "held" is a fixture
from lab import (
    CLIENT_SESSIONS,
    Background,
    Proxy,
    expect_balanced,
    hammer,
    holding,
    number,
    psql,
    stays,
    terminate_sessions,
    wait_until,
    waiting_backends,
)

STRATEGIES = ["select-for-update", "atomic-decrement", "atomic-statement", "check-constraint"]
COMMIT = b"\0commit\0"  # the prepared statement's name, as it goes over the wire
STOPPED = "wait_event = 'PgSleep'"

in_turn = pytest.mark.parametrize("strategy", STRATEGIES)


class Gate:
    """While it is closed, PostgreSQL stops at the INSERT of an order for "stop", without a wait for a lock."""

    def __init__(self, url, session):
        self.url, self.session = url, session

    def wait(self):
        wait_until(
            lambda: number(self.url, f"SELECT count(*) FROM {CLIENT_SESSIONS} = current_database() AND {STOPPED}") == 1,
            "an order is stopped in the middle",
        )

    def open(self):
        self.session.run("ROLLBACK")


@contextlib.contextmanager
def gate(url):
    psql(
        url,
        "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " WHILE NOT pg_try_advisory_xact_lock_shared(4711) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END $$;"
        " CREATE TRIGGER stop BEFORE INSERT ON orders FOR EACH ROW"
        " WHEN (NEW.receiver_name = 'stop') EXECUTE FUNCTION stop()",
    )
    with holding(url, "SELECT pg_advisory_xact_lock(4711)") as session:
        yield Gate(url, session)


def first_waits(service, product, crowd):
    """Sends the first order, which waits for the product's row. (Tables are changed before: it may lock them.)"""
    crowd.send(product)
    wait_until(lambda: waiting_backends(service.database_url) == 1, "the first order waits for the row")


def stopped_in_the_middle(stop, service, product, crowd, row):
    """Sends orders that wait, among them one that stops, and lets them go on to it."""
    first_waits(service, product, crowd)
    for place in range(1, 18):
        crowd.send_in_line(product, receiver_name="stop" if place == 5 else "Ada")
    row.run("ROLLBACK")
    stop.wait()


def stored(url, product):
    rows = psql(url, f"SELECT order_id FROM order_item WHERE product_id = {product}")
    return {int(row[0]) for row in rows}


@in_turn
def test_first_come_first_served_on_one_connection(held, strategy):
    service, product, crowd, row = held("--workers", 8, strategy=strategy)
    for quantity in (1, 2, 3) * 5:
        crowd.send_in_line(product, quantity=quantity)
    assert waiting_backends(service.database_url) == 1, "the others occupy no connection"
    assert service.audit(product)["in_flight"] == 16
    row.run("ROLLBACK")
    replies = crowd.replies()
    expect_balanced(service, product, told(replies), 1000)
    ids = [reply.json["id"] for reply in replies]
    assert ids == sorted(ids), "somebody has overtaken"
    assert transactions(service, product) == [1] * 16, "each order is its own transaction"


@in_turn
def test_a_strategy_whose_orders_wait_in_postgresql(held, strategy):
    """Without in_turn, with a limit, and with time to think, each order waits on its own connection, as the locks' comparison needs it."""
    service, product, crowd, row = held("--workers", 8, "--in-turn=no", strategy=strategy, first=3)
    row.run("ROLLBACK")
    assert set(crowd.outcomes()) == {"created"}
    assert service.get("/strategy").json["in_turn"] is False
    assert service.strategy(strategy, in_turn=True)["in_turn"] is True
    for settings, waiting in (({"product_limit": 2}, 2), ({"product_limit": 0, "think_ms": 1}, 4)):
        assert service.strategy(strategy, **settings).items() >= settings.items()
        with holding(service.database_url, f"SELECT count FROM product WHERE id = {product} FOR UPDATE") as again:
            with Crowd(service) as more:
                for _ in range(4):
                    more.send(product)
                wait_until(lambda: waiting_backends(service.database_url) == waiting, f"{waiting} wait for the row")  # noqa: B023
                again.run("ROLLBACK")
                assert set(more.outcomes()) == {"created"}


@in_turn
def test_the_end_of_the_stock(pair, strategy):
    """Two processes, each of which places its orders in turn."""
    product = pair[0].product(stock=150)
    load = hammer(pair, product, threads=24, strategy=strategy, quantities=(1, 2, 3))
    assert set(load.outcomes) == {"created", "sold-out"}, f"{load.outcomes}"
    assert expect_balanced(pair[1], product, load, 150)["sold"] == 150


@in_turn
def test_an_order_that_fails_does_not_fail_its_neighbours(held, strategy):
    service, product, crowd, row = held(first=0, strategy=strategy, stock=20)
    url = service.database_url
    psql(url, "ALTER TABLE orders ADD CHECK (receiver_name <> 'refused')")
    first_waits(service, product, crowd)
    with holding(url, "SELECT pg_advisory_xact_lock(hashtextextended('idempotency:held', 0))"):
        for order, outcome in (wanted := [
            ({}, "created"),
            ({"receiver_name": "refused"}, "internal-error"),
            ({"receiver_name": "refused"}, "internal-error"),
            ({"key": "twice"}, "created"),
            ({"key": "twice"}, "replayed"),
            ({"key": "twice", "quantity": 2}, "idempotency-mismatch"),
            ({"key": "held"}, "idempotency-in-progress"),
            ({"key": "refused", "receiver_name": "refused"}, "internal-error"),
            ({}, "created"),
            ({"quantity": 17}, "sold-out"),
            ({"key": "too-many", "quantity": 17}, "sold-out"),
            ({"quantity": 16}, "created"),
            ({}, "sold-out"),
        ]):
            crowd.send_in_line(product, **order)
        row.run("ROLLBACK")
        replies = crowd.replies()
    outcomes = [
        reply.problem or ("replayed" if reply.header("Idempotency-Replayed") else "created") for reply in replies
    ]
    assert outcomes == ["created"] + [outcome for _, outcome in wanted]
    assert [reply.json["available"] for reply in replies if reply.problem == "sold-out"] == [16, 16, 0]
    created = [reply for reply, outcome in zip(replies, outcomes) if outcome == "created"]
    expect_balanced(service, product, told(created), 20)
    assert transactions(service, product) == [1] * len(created)


@contextlib.contextmanager
def at_commit(url, name, what):
    """PostgreSQL runs WHAT when an order for NAME commits."""
    psql(
        url,
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {what}; RETURN NULL; END $$;"
        f" CREATE CONSTRAINT TRIGGER {name} AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
        f" WHEN (NEW.receiver_name = '{name}') EXECUTE FUNCTION {name}()",
    )
    yield name
    wait_until(lambda: number(url, f"SELECT count(*) FROM {CLIENT_SESSIONS} = current_database() AND {STOPPED}") == 0, "no commit is left")


@in_turn
def test_an_order_that_fails_at_its_commit_does_not_fail_its_neighbours(held, strategy):
    service, product, crowd, row = held(first=0, strategy=strategy)
    with at_commit(service.database_url, "refused", "RAISE 'no'") as refused:
        first_waits(service, product, crowd)
        for place in range(1, 12):
            crowd.send_in_line(product, receiver_name=refused if place in (1, 4, 5) else "Ada")
        row.run("ROLLBACK")
        replies = crowd.replies()
    outcomes = [reply.problem or "created" for reply in replies]
    assert [place for place, outcome in enumerate(outcomes) if outcome == "internal-error"] == [1, 4, 5], outcomes
    assert outcomes.count("created") == 9, outcomes
    expect_balanced(service, product, told([reply for reply in replies if reply.status == 201]), 1000)


@in_turn
def test_an_order_that_is_cancelled_in_the_middle(held, strategy):
    """An administrator cancels its statement: it fails alone."""
    service, product, crowd, row = held(first=0, strategy=strategy)
    url = service.database_url
    with gate(url) as stop:
        stopped_in_the_middle(stop, service, product, crowd, row)
        psql(url, f"SELECT pg_cancel_backend(pid) FROM {CLIENT_SESSIONS} = current_database() AND {STOPPED}")
        replies = crowd.replies()
        stop.open()
    outcomes = [reply.problem or "created" for reply in replies]
    assert outcomes.pop(5) != "created" and set(outcomes) == {"created"}, outcomes
    expect_balanced(service, product, told([reply for reply in replies if reply.status == 201]), 1000)


@pytest.mark.long
def test_slow_commits_do_not_add_up(services, database):
    """PostgreSQL has no time limit for a commit. Orders that were sent behind slow ones get an answer soon after their deadline."""
    commit_s = deadline_s = 4
    service = services.start(database, "--strategy", "atomic-statement", "--workers", 1, "--order-timeout-ms", deadline_s * 1000,
                             "--lock-wait-ms", 60000)  # fmt: skip
    product = service.product(stock=1000)
    assert service.order(product).status == 201, "the statement is prepared"
    with at_commit(database, "slow", f"PERFORM pg_sleep({commit_s})") as slow, Crowd(service) as crowd:
        with holding(database, f"SELECT count FROM product WHERE id = {product} FOR UPDATE") as row:
            crowd.send(product)
            wait_until(lambda: waiting_backends(database) == 1, "the first order waits for the row")
            for _ in range(7):
                crowd.send_in_line(product, receiver_name=slow)
            start = time.monotonic()
            row.run("ROLLBACK")
        replies = crowd.replies()
        took_s = time.monotonic() - start
    outcomes = [reply.problem or "created" for reply in replies]
    assert set(outcomes) <= {"created", "outcome-unknown", "lock-busy"}, outcomes
    assert took_s < 4 * commit_s, f"{outcomes} after {took_s:.1f} s"
    created = {reply.json["id"] for reply in replies if reply.status == 201}
    assert created <= stored(database, product)


@pytest.mark.long
def test_a_lost_commit_is_settled_before_the_next_order_begins(services, database):
    """On a connection that transfers nothing any more, the lost order's session still holds the row. The order behind it does not
    wait for that row until its own deadline."""
    proxy = Proxy(database)
    over = threading.Event()
    try:
        service = services.start(proxy.url, "--strategy", "select-for-update", "--order-timeout-ms", 6000, "--lock-wait-ms", 60000)
        product = service.product(stock=1000)
        first = service.order(product)
        proxy.arm(b"Ada of the lost COMMIT", lose="request", until=over)
        with holding(database, f"SELECT count FROM product WHERE id = {product} FOR UPDATE") as row, Crowd(service) as crowd:
            crowd.send(product)
            wait_until(lambda: waiting_backends(database) == 1, "the first order waits for the row")
            crowd.send_in_line(product, receiver_name="Ada of the lost COMMIT")
            time.sleep(4)  # the deadlines of those behind are as much later
            for _ in range(3):
                crowd.send_in_line(product)
            row.run("ROLLBACK")
            replies = crowd.replies()
        outcomes = [reply.problem or "created" for reply in replies]
        assert outcomes == ["created", "backend-unavailable", "created", "created", "created"], outcomes
        expect_balanced(service, product, told([first, *(reply for reply in replies if reply.status == 201)]), 1000)
    finally:
        over.set()
        proxy.close()


@in_turn
def test_a_session_that_is_terminated_in_the_middle(held, strategy):
    """The order that was being placed is refused; those behind it are placed on a new connection."""
    service, product, crowd, row = held(first=0, strategy=strategy)
    url = service.database_url
    with gate(url) as stop:
        stopped_in_the_middle(stop, service, product, crowd, row)
        crowd.send_in_line(product, key="again")
        terminate_sessions(url, STOPPED)
        replies = crowd.replies()
        stop.open()
    outcomes = [reply.problem or "created" for reply in replies]
    middle = outcomes.pop(5)
    assert middle == "backend-unavailable", str(replies[5])
    assert set(outcomes) == {"created"}, f"{outcomes}"
    expect_balanced(service, product, told(replies[:5] + replies[6:]), 1000)
    assert service.order(product, key="again").json == replies[-1].json


@pytest.mark.parametrize("lose", ["reply", "request"])
@in_turn
def test_the_connection_breaks_in_the_middle(services, database, strategy, lose):
    """Whoever has a 201 has an order. Only an order that commits by itself and has no key can have an unknown outcome."""
    proxy = Proxy(database)
    try:
        service = services.start(proxy.url, "--strategy", strategy)
        product = service.product(stock=1000)
        with holding(database, f"SELECT count FROM product WHERE id = {product} FOR UPDATE") as row, Crowd(service) as crowd:
            crowd.send(product)
            wait_until(lambda: waiting_backends(database) == 1, "the first order waits for the row")
            for place in range(1, 16):
                crowd.send_in_line(product, receiver_name="Ada of the lost reply" if place == 5 else "Bob")
            proxy.arm(b"Ada of the lost reply", lose=lose)
            row.run("ROLLBACK")
            replies = crowd.replies()
    finally:
        proxy.close()
    assert proxy.triggered.is_set()
    outcomes = [reply.problem or "created" for reply in replies]
    ids = {reply.json["id"] for reply in replies if reply.status == 201}
    if strategy == "atomic-statement":
        assert outcomes[5] == "outcome-unknown", f"{outcomes}"
        assert set(outcomes) == {"created", "outcome-unknown"}, f"{outcomes}"
        lost = len(stored(database, product) - ids)
        assert lost <= outcomes.count("outcome-unknown") and ids <= stored(database, product)
    else:
        assert outcomes[5] == ("created" if lose == "reply" else "backend-unavailable"), str(replies[5])
        assert set(outcomes[:5] + outcomes[6:]) == {"created"}, f"{outcomes}"
        assert ids == stored(database, product)
    sums = "sum(purchase_num), 1000 - (SELECT count FROM product WHERE id = product_id)"
    books = psql(database, f"SELECT {sums} FROM order_item WHERE product_id = {product} GROUP BY product_id")
    assert books[0][0] == books[0][1], f"sold and taken: {books}"


class CutAtError(Proxy):
    """Passes replies on up to the error number LAST, then closes that client's connection. The server keeps its own, and
    continues with what was sent."""

    def __init__(self, url, error, last):
        self.error, self.left = error, last
        self.cut_pair = None
        super().__init__(url)

    def _relay(self, pair, source, sink):
        cut = False
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if cut:
                    continue
                if source is pair[1] and not self.triggered.is_set():
                    self.left -= data.count(self.error)
                    cut = self.left <= 0
                sink.sendall(data.removesuffix(b"Z\0\0\0\5I") if cut else data)  # without ReadyForQuery
                if cut:
                    self.cut_pair = pair
                    self.triggered.set()
                    sink.shutdown(socket.SHUT_WR)
        if source is pair[1] or self.cut_pair is not pair:
            self._close(pair)


def test_the_connection_breaks_behind_the_error_of_another_order(services, database):
    """An order that was sent behind one that failed may have been placed: that failure says nothing about it."""
    proxy = CutAtError(database, error=b"C55P03\0", last=3)  # the lock timeouts of the first three orders
    try:
        service = services.start(proxy.url, "--strategy", "atomic-statement", "--lock-wait-ms", 2000)
        product = service.product(stock=1000)
        with holding(database, f"SELECT count FROM product WHERE id = {product} FOR UPDATE") as row, Crowd(service) as crowd:
            crowd.send(product)
            wait_until(lambda: waiting_backends(database) == 1, "the first order waits for the row")
            time.sleep(1)  # the others may wait longer than the first
            for _ in range(9):  # so many that the second begins again while others are on their way
                crowd.send_in_line(product)
            replies = [wire.reply() for wire in crowd.wires[:2]]
            assert proxy.triggered.is_set()
            row.run("ROLLBACK")
            replies += [wire.reply() for wire in crowd.wires[2:]]
        wait_until(lambda: waiting_backends(database) == 0, "nobody waits")
    finally:
        proxy.close()
    outcomes = [reply.problem or "created" for reply in replies]
    lost = len(stored(database, product)) - outcomes.count("created")
    assert lost <= outcomes.count("outcome-unknown"), f"{outcomes}: {lost} orders more than answers"


@in_turn
def test_a_row_that_stays_locked(held, strategy):
    """Each order waits as long as it may since it came, and no longer because of those before it."""
    service, product, crowd, row = held("--lock-wait-ms", 700, first=0, strategy=strategy)
    expect_all_busy(service, product, crowd, row, seconds=0.7)


@pytest.mark.long
@in_turn
def test_deadlines_pass_while_orders_wait(held, strategy):
    """Orders that come one after the other at a row that stays locked: each gets an answer, and nothing was sold."""
    service, product, crowd, row = held("--workers", 1, "--order-timeout-ms", 1500, first=0, strategy=strategy)
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        crowd.send(product)
        time.sleep(0.02)
    outcomes = crowd.outcomes()
    assert set(outcomes) <= {"lock-busy", "overloaded"}, f"{outcomes}"
    row.run("ROLLBACK")
    assert service.order(product).status == 201
    assert service.audit(product)["orders"] == 1


@in_turn
def test_a_switch_and_a_reset_come_between_batches(held, strategy):
    """They wait for the orders that are being placed, and those that came later are placed afterwards."""
    service, product, crowd, row = held(first=0, strategy=strategy)
    with gate(service.database_url) as stop:
        stopped_in_the_middle(stop, service, product, crowd, row)
        other = next(name for name in STRATEGIES if name != strategy)
        switch = Background(lambda: service.strategy(other))
        stays(lambda: switch.running, "orders are being placed", 0.2)
        crowd.send_in_line(product)
        stop.open()
        switch.result()
        replies = crowd.replies()
    assert [reply.json["strategy"] for reply in replies] == [strategy] * 18 + [other]
    expect_balanced(service, product, told(replies), 1000)
    service.reset(product, 50)
    assert service.order(product).json["strategy"] == other


@in_turn
def test_an_end_in_the_middle_loses_no_answer(held, strategy):
    service, product, crowd, row = held("--workers", 2, first=0, strategy=strategy)
    with gate(service.database_url) as stop:
        stopped_in_the_middle(stop, service, product, crowd, row)
        for wire in crowd.wires[:4]:
            assert wire.reply().status == 201, "an order is answered before those behind it"
        assert service.audit(product)["in_flight"] == len(crowd.wires) - 5
        service.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "draining" in service.log, "it drains")
        stop.open()
        assert {wire.reply().status for wire in crowd.wires[4:]} == {201}
    service.stop()
    assert len(stored(service.database_url, product)) == len(crowd.wires)


@pytest.mark.parametrize("strategy", ["select-for-update", "atomic-statement"])
def test_sessions_that_are_terminated_under_load(services, database, strategy):
    """Whoever was told of an order has it; nobody else has one."""
    service = services.start(database, "--strategy", strategy, "--workers", 4)
    product = service.product(stock=100000)
    stop = threading.Event()
    load = Background(lambda: hammer([service], product, threads=24, stop=stop))
    for _ in range(8):
        before = number(database, "SELECT count(*) FROM order_item")
        wait_until(lambda before=before: number(database, "SELECT count(*) FROM order_item") > before, "orders flow")
        terminate_sessions(database, "application_name LIKE 'oversell orders%'")
    stop.set()
    loaded = load.result()
    unknown = loaded.outcomes.pop("outcome-unknown", 0)
    assert set(loaded.outcomes) <= {"created", "backend-unavailable", "lock-busy"}, f"{loaded.outcomes}"
    audit = service.audit(product)
    assert (audit["balanced"], audit["drift"]) == (True, 0), f"{audit}"
    assert len(loaded.created) <= audit["orders"] <= len(loaded.created) + unknown, f"{audit}, {loaded.outcomes}"
    assert loaded.ids <= stored(database, product)
