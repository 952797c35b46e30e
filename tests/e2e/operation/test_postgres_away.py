"""PostgreSQL away, slow, cut off or restarted: typed problems in bounded time, nothing lost, recovery."""

import os
import signal
import struct
import threading
import time

import pytest

import lab
from basics import REPLY_S
from lab import (
    SOON_S,
    Background,
    Proxy,
    expect_balanced,
    hammer,
    holding_row,
    number,
    psql,
    terminate_sessions,
    wait_until,
    waiting_backends,
)
from length import short_only
from promises import FEW_ARE_SHORT, STRATEGIES

NEEDS_DATABASE = [
    ("POST", "/orders", {"product_id": 1, "quantity": 1}),
    ("GET", "/orders", None),
    ("GET", "/orders/1", None),
    ("GET", "/products", None),
    ("GET", "/products/1", None),
    ("PUT", "/products/1", {"name": "x", "price": "1.00", "stock": 1}),
    ("POST", "/products/1/reset", {"stock": 1}),
    ("GET", "/audit?product_id=1", None),
    ("POST", "/sandboxes", {}),
    ("GET", "/readyz", None),
]
NEEDS_NOTHING = [
    "/healthz",
    "/metrics",
    "/strategies",
    "/strategies/mutex",
    "/strategy",
    "/traces",
    "/openapi.yaml",
]


@pytest.fixture
def proxy(database):
    """A network before PostgreSQL that the test can break."""
    relay = Proxy(database)
    yield relay
    relay.close()


def expect_away(service):
    """Every call that needs PostgreSQL says so without waiting for its deadline; the others work."""
    for method, target, body in NEEDS_DATABASE:
        start = time.monotonic()
        reply = service.call(method, target, body)
        seconds = time.monotonic() - start
        assert reply.problem == "backend-unavailable", f"{method} {target}: {reply}"
        assert reply.json["backend"] == "postgresql", f"{method} {target}: {reply}"
        assert seconds < SOON_S, f"{method} {target} took {seconds:.1f} s"
    for target in NEEDS_NOTHING:
        assert service.get(target).status == 200, target


def expect_back(service):
    """Orders flow again without anybody's help."""
    wait_until(lambda: service.get("/readyz").status == 200, "ready again")
    product = service.product(stock=1)
    assert service.order(product).status == 201


@pytest.mark.long
def test_a_server_that_is_stopped_and_started_again(services, folder):
    """The real thing: a private stack goes down under a running service, twice."""
    own = lab.Stack()
    try:
        own.up()
        url = own.url
        service = services.start(own.database(), "--workers", "4")
        product = service.product(stock=1000)
        told = []
        for _ in range(2):
            told.append(service.order(product).json)
            own.stop()
            wait_until(lambda: service.get("/readyz").status == 503, "it notices")
            expect_away(service)
            own.up()
            assert own.url == url, "a restart keeps the address"
            expect_back(service)
        for order in told:
            assert service.get(f"/orders/{order['id']}").json["id"] == order["id"]
        audit = service.audit(product)
        assert (audit["orders"], audit["balanced"]) == (2, True), f"{audit}"
        service.stop()
    finally:
        own.down()


def test_not_there_at_start(services, proxy):
    """It starts all the same, says what is missing, and takes orders once PostgreSQL is there."""
    proxy.refuse = True
    service = services.start(proxy.url, ready=False)
    assert service.get("/healthz").status == 200
    expect_away(service)
    proxy.refuse = False
    expect_back(service)
    assert [product["stock"] for product in service.get("/products").json["products"]][:1] == [100]


def test_all_connections_cut(services, proxy):
    """The next order is served on a new connection."""
    service = services.start(proxy.url, "--workers", "4")
    product = service.product()
    lab.together(*[lambda: service.order(product)] * 8)
    before = service.audit(product)["orders"]
    proxy.cut()
    wait_until(lambda: service.order(product).status == 201, "an order is served")
    audit = service.audit(product)
    assert audit["orders"] == before + 1 and audit["balanced"], f"{audit}"


def test_refused_for_a_while(services, proxy):
    service = services.start(proxy.url, "--workers", "4")
    service.order(1)
    proxy.refuse = True
    proxy.cut()
    expect_away(service)
    proxy.refuse = False
    expect_back(service)


@pytest.mark.long
def test_once_one_connection_is_back_the_others_do_not_rest(services, proxy):
    """Each worker rests after a failed try. Whoever sees "ready" must not meet a worker that still rests."""
    service = services.start(proxy.url, "--workers", "4")
    product = service.product(stock=1000)
    for _ in range(8):
        proxy.refuse = True
        proxy.cut()
        for _ in range(6):
            refused = lab.together(*[lambda: service.order(product)] * 8)
        assert {reply.problem for reply in refused} == {"backend-unavailable"}, f"{[str(it) for it in refused]}"
        proxy.refuse = False
        wait_until(lambda: service.get("/readyz").status == 200, "ready again")
        served = lab.together(*[lambda: service.order(product)] * 8)
        assert {reply.status for reply in served} == {201}, f"{[str(it) for it in served]}"


def test_it_does_not_hammer_a_server_that_refuses(services, proxy):
    """The pause between two tries grows, so that a server that comes up is not met by a crowd."""
    service = services.start(proxy.url, "--workers", "4")
    proxy.refuse = True
    proxy.cut()
    wait_until(lambda: service.get("/readyz").status == 503, "it notices")
    before, start = proxy.accepted, time.monotonic()
    while time.monotonic() - start < 2:
        lab.together(*[lambda: service.order(1)] * 8)
    seconds, tried = time.monotonic() - start, proxy.accepted - before
    assert tried < 50 + 60 * seconds, f"{tried} connections within {seconds:.1f} s"


@pytest.mark.long
def test_a_server_that_says_nothing_any_more(services, proxy):
    """Half open: no reply, no reset. The order's deadline ends the wait."""
    service = services.start(
        proxy.url, "--workers", "2", "--order-timeout-ms", "3000", "--lock-wait-ms", "1500"
    )
    product = service.product()
    assert service.order(product).status == 201
    proxy.stalled.set()
    start = time.monotonic()
    reply = service.order(product)
    seconds = time.monotonic() - start
    assert reply.problem in ("backend-unavailable", "lock-busy", "outcome-unknown"), str(reply)
    assert seconds < SOON_S, f"answered after {seconds:.1f} s, its deadline was 3 s"
    assert service.get("/healthz").status == 200
    proxy.stalled.clear()
    expect_back(service)
    assert service.audit(product)["balanced"]


@pytest.mark.parametrize(
    "method, target, body",
    [call for call in NEEDS_DATABASE if call[1] != "/orders"],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_other_call_waits_for_ever_either(services, proxy, method, target, body):
    service = services.start(
        proxy.url, "--workers", "2", "--order-timeout-ms", "500", "--lock-wait-ms", "500"
    )
    wait_until(lambda: service.order(1).status == 201, "an order is served within so short a time")
    proxy.stalled.set()
    reply = service.call(method, target, body)
    assert reply.problem in ("backend-unavailable", "lock-busy"), str(reply)
    assert reply.seconds < SOON_S, f"answered after {reply.seconds:.1f} s"
    proxy.stalled.clear()


def test_a_reset_leaves_no_deadline_behind(services, database):
    """Calls that come long after a reset have their own time, on the same connections."""
    service = services.start(database, "--order-timeout-ms", "3000", "--lock-wait-ms", "3000")
    product = service.product()
    for _ in range(8):
        service.reset(product, 5)
    time.sleep(3.2)
    for _ in range(8):
        for target in (
            "/products",
            f"/products/{product}",
            f"/orders?product_id={product}",
            "/readyz",
            f"/audit?product_id={product}",
        ):
            reply = service.get(target)
            assert reply.status == 200, f"{target}: {reply}"


def test_a_network_in_single_bytes(services, proxy):
    """However the replies are cut up, they are read."""
    service = services.start(proxy.url, "--workers", "2")
    product = service.product(stock=20)
    proxy.pieces = 1
    load = hammer([service], product, threads=2)
    expect_balanced(service, product, load, 20)


@pytest.mark.parametrize("strategy", FEW_ARE_SHORT)
def test_a_backend_that_is_terminated_in_the_middle_of_an_order(shop, strategy):
    """The order waits for its row when its backend is ended: nothing is sold, and the next is served."""
    product = shop.product(stock=5, strategy=strategy)
    with holding_row(shop.database_url, product):
        order = Background(lambda: shop.order(product, 1, strategy))
        wait_until(lambda: waiting_backends(shop.database_url) == 1, "the order waits for the row")
        terminate_sessions(shop.database_url, "wait_event_type = 'Lock'")
        reply = order.result()
    assert reply.problem == "backend-unavailable", str(reply)
    assert reply.json["backend"] == "postgresql"
    wait_until(lambda: shop.order(product, 1, strategy).status == 201, "the next order is served")
    audit = shop.audit(product)
    assert (audit["orders"], audit["left"], audit["balanced"]) == (1, 4, True), f"{audit}"


@pytest.mark.parametrize(
    "strategy",
    short_only(["select-for-update"], ["atomic-decrement", "atomic-statement", "select-for-update", "mutex", "serializable"]),
)
def test_backends_terminated_under_load(services, database, strategy):
    """Again and again: whoever was told 201 has an order, and nobody else does but for unknown outcomes."""
    service = services.start(database, "--workers", "8", "--strategy", strategy)
    product = service.product(stock=1000000)
    stop = threading.Event()
    load = Background(lambda: hammer([service], product, threads=8, stop=stop))
    try:
        for _ in range(8):
            before = number(database, "SELECT count(*) FROM order_item")
            wait_until(lambda before=before: number(database, "SELECT count(*) FROM order_item") > before, "orders flow")
            terminate_sessions(database)
        wait_until(lambda: number(database, "SELECT count(*) FROM order_item") > 40, "some are served")
    finally:
        stop.set()
        told = load.result()
    assert set(told.outcomes) <= {
        "created",
        "backend-unavailable",
        "outcome-unknown",
        "conflict",
    }, f"{told.outcomes}"
    assert told.outcomes["created"] > 20, f"{told.outcomes}"
    wait_until(lambda: service.get("/readyz").status == 200, "ready again")
    stored = {
        int(row[0]) for row in psql(database, f"SELECT order_id FROM order_item WHERE product_id = {product}")
    }
    assert told.ids <= stored, f"promised and lost: {sorted(told.ids - stored)}"
    assert len(stored - told.ids) <= told.outcomes["outcome-unknown"], f"{stored - told.ids}, {told.outcomes}"
    audit = service.audit(product)
    assert (audit["drift"], audit["balanced"]) == (0, True), f"{audit}"


# ── a COMMIT without a reply ────────────────────────────────────────────────────────────────────────────────

SETTLED = ["atomic-decrement", "select-for-update", "mutex"]
LOCKED = ["lock-table", "redis-lock", "redis-fenced", "redis-reentrant", "zookeeper", "etcd"]
COMMIT = b"\0commit\0"  # the prepared statement's name, as it goes over the wire


def start_and_warm_up(services, proxy, strategy, *flags):
    """A service of one worker whose statements are all prepared."""
    service = services.start(proxy.url, "--workers", "1", "--strategy", strategy, *flags)
    product = service.product(stock=10)
    assert service.order(product, key="warm-up").status == 201
    return service, product


@pytest.mark.parametrize("strategy", short_only(["mutex", "redis-fenced"], [*SETTLED, *LOCKED]))
def test_a_commit_whose_reply_is_lost_is_settled(services, proxy, strategy):
    """It happened; the service finds out, and says 201."""
    service, product = start_and_warm_up(services, proxy, strategy)
    proxy.arm(COMMIT, lose="reply")
    reply = service.order(product, 2, key="key")
    assert proxy.triggered.is_set()
    assert reply.status == 201, str(reply)
    assert service.order(product, 2, key="key").json == reply.json
    audit = service.audit(product)
    assert (audit["orders"], audit["left"], audit["balanced"]) == (2, 7, True), f"{audit}"


@pytest.mark.parametrize("strategy", short_only(["select-for-update", "redis-lock"], [*SETTLED, *LOCKED]))
def test_a_commit_that_never_arrived_is_settled(services, proxy, strategy):
    """It did not happen; the service finds out, says so, and a retry sells."""
    service, product = start_and_warm_up(services, proxy, strategy)
    proxy.arm(COMMIT, lose="request")
    reply = service.order(product, 2, key="key")
    assert proxy.triggered.is_set()
    assert reply.problem == "backend-unavailable", str(reply)
    assert service.audit(product)["orders"] == 1
    again = wait_until(
        lambda: (lambda it: it if it.status == 201 else None)(service.order(product, 2, key="key")),
        "a retry sells",
    )
    assert again.header("Idempotency-Replayed") is None
    audit = service.audit(product)
    assert (audit["orders"], audit["left"], audit["balanced"]) == (2, 7, True), f"{audit}"


def test_a_lost_reply_is_settled_after_many_other_orders(services, proxy, database):
    """The service notices the loss late, when the last hundred thousand orders are all younger."""
    service, product = start_and_warm_up(services, proxy, "select-for-update")
    other = services.start(database, "--workers", "1")
    noticed = threading.Event()
    proxy.arm(COMMIT, lose="reply", until=noticed)
    order = Background(lambda: service.order(product, 2, key="key"))
    assert proxy.triggered.wait(REPLY_S)
    psql(database, "SELECT setval(pg_get_serial_sequence('orders', 'id'), (SELECT max(id) + 200000 FROM orders))")
    assert other.order(other.product(stock=1)).status == 201
    noticed.set()
    reply = order.result()
    assert reply.status == 201, str(reply)
    assert service.order(product, 2, key="key").json == reply.json


def killed_while_a_commit_is_under_way(own, service, proxy, product, next_number):
    """PostgreSQL is killed and comes back before the service notices. Returns the number of the lost transaction, the one
    that NEXT_NUMBER asks PostgreSQL for, and the reply to the order."""
    noticed = threading.Event()
    proxy.arm(COMMIT, lose="request", until=noticed)
    order = Background(lambda: service.order(product))
    assert proxy.triggered.wait(REPLY_S)
    lost = number(
        own.url, "SELECT backend_xid::text::bigint FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
    )
    os.kill(int((own.servers / "postgres.pid").read_text()), signal.SIGQUIT)
    own.up("postgres")
    following = number(own.url, next_number)
    noticed.set()
    return lost, following, order.result()


USED_AGAIN = "SELECT pg_current_xact_id()::text::bigint"  # and committed
NOT_USED_YET = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"


@pytest.mark.long
@pytest.mark.parametrize("next_number", short_only([USED_AGAIN], [USED_AGAIN, NOT_USED_YET]), ids=["used_again", "not_used_yet"])
@pytest.mark.parametrize("strategy", short_only(["reentrant-mutex"], ["select-for-update", "reentrant-mutex"]))
def test_the_number_of_a_lost_transaction(services, strategy, next_number):
    """PostgreSQL forgets the numbers that it had given and not yet written: what it says of one may be of another's.
    reentrant-mutex loses the transaction that takes the stock, of which no order tells."""
    own, proxy = lab.Stack(), None
    try:
        own.up("postgres")
        psql(own.admin_url, "ALTER SYSTEM SET wal_writer_delay = '10s'")
        psql(own.admin_url, "ALTER SYSTEM SET autovacuum = off")  # its transactions take numbers too
        own.stop()
        own.up("postgres")
        proxy = Proxy(own.database())
        service = services.start(
            proxy.url, "--workers", "1", "--strategy", strategy
        )
        product, created, lost_number = service.product(stock=100), 0, False
        for _ in range(10):
            wait_until(lambda: service.order(product).status == 201, "orders flow")
            created += 1
            lost, following, reply = killed_while_a_commit_is_under_way(own, service, proxy, product, next_number)
            assert reply.problem in ("backend-unavailable", "outcome-unknown"), str(reply)
            lost_number = lost >= following
            if lost_number:
                break
        assert lost_number, f"{following} came after {lost}"
        if next_number == NOT_USED_YET:
            assert reply.problem == "backend-unavailable", str(reply)
        wait_until(lambda: service.get("/readyz").status == 200, "ready again")
        wait_until(lambda: service.audit(product)["in_flight"] == 0, "nothing is owed any more")
        audit = service.audit(product)
        assert (audit["orders"], audit["left"], audit["balanced"]) == (created, 100 - created, True), f"{audit}"
        service.stop()
    finally:
        if proxy:
            proxy.close()
        own.down()


@pytest.mark.parametrize("strategy", short_only(["lock-table", "redis-lock"], LOCKED))
def test_the_lock_is_held_until_the_commit_is_settled(services, proxy, database, strategy):
    """While nobody knows what became of the stock, the next holder must not read it."""
    service, product = start_and_warm_up(services, proxy, strategy)
    other = services.start(database, "--workers", "1")
    held = {"lock": strategy, "hold_ms": 0}
    assert other.post(f"/locks/product:{product}/hold", held).status == 200
    proxy.refuse = True  # the settling cannot begin
    proxy.arm(COMMIT, lose="reply")
    order = Background(lambda: service.order(product, 2, key="key"))
    assert proxy.triggered.wait(REPLY_S)
    refused = other.post(f"/locks/product:{product}/hold", {**held, "wait_ms": 300})
    assert refused.problem == "lock-busy", str(refused)
    assert order.running, "the order was answered before it was settled"
    proxy.refuse = False
    assert order.result().status == 201
    assert other.post(f"/locks/product:{product}/hold", {**held, "wait_ms": 60000}).status == 200


@pytest.mark.parametrize("strategy", short_only(["mutex"], ["atomic-decrement", "atomic-statement", "mutex"]))
@pytest.mark.parametrize("lose", ["reply", "request"])
def test_an_outcome_that_cannot_be_found_out(services, proxy, database, strategy, lose):
    """And then PostgreSQL is away for longer: 504, and the same key later tells, whatever it was."""
    service, product = start_and_warm_up(services, proxy, strategy, "--order-timeout-ms", "6000")
    proxy.refuse = True  # for new connections only: this one carries the order as far as its end
    proxy.arm(COMMIT, lose=lose)
    reply = service.order(product, 2, key="key")
    assert proxy.triggered.is_set()
    assert reply.problem == "outcome-unknown", str(reply)
    happened = number(database, f"SELECT count(*) FROM order_item WHERE product_id = {product}") == 2
    assert happened == (lose == "reply")
    proxy.refuse = False
    again = wait_until(
        lambda: (lambda it: it if it.status == 201 else None)(service.order(product, 2, key="key")),
        "the same key tells",
    )
    assert again.header("Idempotency-Replayed") == ("true" if happened else None), str(again)
    audit = service.audit(product)
    assert (audit["orders"], audit["left"], audit["balanced"]) == (2, 7, True), f"{audit}"


@pytest.mark.parametrize("strategy", FEW_ARE_SHORT)
def test_a_commit_that_fails(services, database, strategy):
    """Every statement succeeds, and then COMMIT is refused, as by a full disk: nothing was sold, and the
    next order on that connection is served. A statement on its own fails after its rows have come."""
    service = services.start(database, "--workers", "1", "--strategy", strategy)
    product = service.product(stock=10, strategy=strategy)
    psql(
        database,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = '53100'; END $$;"
        " CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    for key in (None, "key"):
        reply = service.order(product, 2, key=key)
        assert reply.problem == "backend-unavailable", str(reply)
    psql(database, "DROP TRIGGER refuse ON orders")
    orders = [service.order(product, 1, key=key) for key in (None, "key")]
    assert [order.status for order in orders] == [201, 201], f"{[str(order) for order in orders]}"
    audit = service.audit(product)
    assert (audit["orders"], audit["sold"], audit["left"], audit["drift"]) == (2, 2, 8, 0), f"{audit}"


def error_of_a_pooler():
    text = b"SFATAL\0VFATAL\0C08P01\0Mserver conn crashed?\0\0"
    return b"E" + struct.pack("!i", len(text) + 4) + text


@pytest.mark.parametrize(
    "lose, instead", [("reply", b""), ("request", b""), ("reply", error_of_a_pooler())], ids=["reply", "request", "pooler"]
)
def test_a_lone_statement_whose_reply_is_lost(services, proxy, database, lose, instead):
    """atomic-statement without a key commits by itself: nobody can tell, and the service says so. A pooler that has lost PostgreSQL
    sends an error that says nothing about the statement."""
    proxy.instead = instead
    service = services.start(proxy.url, "--workers", "1", "--strategy", "atomic-statement")
    product = service.product(stock=10)
    assert service.order(product).status == 201
    proxy.arm(b"Ada of the lost reply", lose=lose)
    reply = service.order(product, 2, receiver_name="Ada of the lost reply")
    assert proxy.triggered.is_set()
    assert reply.problem == "outcome-unknown", str(reply)
    audit = wait_until(
        lambda: (lambda it: it.json if it.status == 200 else None)(
            service.get(f"/audit?product_id={product}")
        ),
        "the audit is there",
    )
    assert (audit["orders"], audit["balanced"]) == (2 if lose == "reply" else 1, True), f"{audit}"


def test_signals_are_heard_while_the_database_says_nothing(services, proxy):
    service = services.start(proxy.url, "--workers", "2", "--order-timeout-ms", "3000")
    product = service.product()
    proxy.stalled.set()
    order = Background(lambda: service.order(product))
    wait_until(lambda: "oversell_workers_busy 1\n" in service.get("/metrics").text or not order.running, "it waits for a reply")
    start = time.monotonic()
    service.stop()
    seconds = time.monotonic() - start
    assert seconds < SOON_S, f"it took {seconds:.1f} s to end"
    assert order.result().status in (503, 504)
