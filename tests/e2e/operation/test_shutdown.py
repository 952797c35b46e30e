"""The end of a process: SIGTERM drains, kill -9 loses nothing that was promised, the next one takes over."""

import signal
import socket
import threading
import time

import pytest

from lab import (
    CLIENT_SESSIONS,
    DOCUMENT,
    SANITIZED,
    SOON_S,
    Background,
    Closed,
    Load,
    Proxy,
    as_body,
    expect_balanced,
    expect_books,
    hammer,
    holding_row,
    psql,
    request_bytes,
    run_service,
    stays,
    unsent_bytes,
    wait_until,
    waiting_backends,
)
from length import short_only


def told_is_stored(url, product, load):
    """Every 201 is in the database, and nothing is there that nobody was told of."""
    stored = {
        int(row[0]) for row in psql(url, f"SELECT order_id FROM order_item WHERE product_id = {product}")
    }
    assert (
        stored == load.ids
    ), f"only stored: {sorted(stored - load.ids)}, only told: {sorted(load.ids - stored)}"


@pytest.mark.parametrize("by", short_only([signal.SIGTERM], [signal.SIGTERM, signal.SIGINT]))
@pytest.mark.parametrize(
    "strategy, think_ms",
    [("atomic-statement", 0), ("atomic-decrement", 2), ("mutex", 5), ("reentrant-mutex", 0)],
)
def test_under_load_every_accepted_order_is_answered(services, database, strategy, think_ms, by):
    service = services.start(database, "--workers", "8", "--strategy", strategy, "--think-ms", str(think_ms))
    witness = services.start(database)
    product = service.product(stock=1000000)
    stop = threading.Event()
    load = Background(lambda: hammer([service], product, threads=32, stop=stop))
    wait_until(lambda: witness.audit(product)["orders"] > 20, "orders flow")
    service.stop(by)
    stop.set()
    told = load.result()
    assert told.created, "no order was placed"
    assert set(told.outcomes) <= {"created", "overloaded", "backend-unavailable"}, f"{told.outcomes}"
    told_is_stored(database, product, told)
    expect_balanced(witness, product, told, 1000000)


def test_orders_in_the_queue_are_answered(services, database):
    """One worker, ten orders waiting: all of them are sold before the process ends."""
    service = services.start(
        database, "--workers", "1", "--queue", "64", "--strategy", "select-for-update", "--think-ms", "60"
    )
    product = service.product()
    orders = [Background(lambda: service.order(product)) for _ in range(10)]
    wait_until(
        lambda: service.get("/audit?product_id=1").status == 200 and number_of_orders(database, product) >= 1,
        "the first is done",
    )
    service.stop()
    replies = [order.result() for order in orders]
    assert {reply.status for reply in replies} == {201}, f"{[str(reply) for reply in replies]}"
    assert number_of_orders(database, product) == 10


def number_of_orders(url, product):
    return int(psql(url, f"SELECT count(*) FROM order_item WHERE product_id = {product}")[0][0])


@pytest.mark.long
def test_an_order_that_waits_for_a_lock_is_answered(services, database):
    service = services.start(database, "--workers", "2", "--lock-wait-ms", "5000")
    product = service.product()
    with holding_row(database, product):
        order = Background(lambda: service.order(product))
        wait_until(lambda: waiting_backends(database) == 1, "the order waits for the row")
        service.stop()
        assert order.result().problem == "lock-busy"
    assert number_of_orders(database, product) == 0


def test_idle_and_half_open_connections_do_not_hold_it_up(services, database):
    service = services.start(database, "--request-timeout-ms", "1500")
    idle = [service.wire() for _ in range(20)]
    try:
        for index, wire in enumerate(idle):
            if index % 2:
                wire.send(request_bytes("GET", "/healthz"))
                assert wire.reply().status == 200
            if index % 4 == 0:
                wire.send(b"POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        start = time.monotonic()
        service.stop()
        seconds = time.monotonic() - start
        assert seconds < SOON_S, f"it took {seconds:.1f} s to end"
    finally:
        for wire in idle:
            wire.close()


def test_while_it_drains_nothing_more_is_accepted(services, database):
    """New connections are not taken; what comes on open ones is refused, whatever it asks for."""
    service = services.start(database, "--workers", "2")
    product = service.product()
    calls = [
        (method, template.replace("{id}", "1").replace("{name}", "mutex"), service.wire())
        for method, template, _ in DOCUMENT.operations()
    ]
    with holding_row(database, product) as row:
        order = Background(lambda: service.order(product))
        wait_until(lambda: waiting_backends(database) == 1, "an order waits for the row")
        for _, _, wire in calls:
            wire.send(request_bytes("GET", "/healthz"))
            assert wire.reply().status == 200
        service.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "draining" in service.log, "it drains")
        for method, target, wire in calls:
            wire.send(request_bytes(method, target, b"" if method == "GET" else b"{}"))
            reply = wire.reply(seconds=SOON_S)
            DOCUMENT.check(method, target, reply)
            assert reply.problem == "overloaded", f"{method} {target}: {reply}"
            assert wire.ends(seconds=SOON_S) == b""
            wire.close()
        try:
            with service.wire() as wire:
                wire.send(request_bytes("POST", "/orders", b'{"product_id":%d,"quantity":1}' % product))
                assert wire.reply(seconds=1).status == 503  # where the kernel still took it
        except (ConnectionRefusedError, Closed, socket.timeout):
            pass  # nobody takes it
        assert service.process.poll() is None, "it left before the order was answered"
        row.run("ROLLBACK")
        accepted = order.result()
    service.stop()
    assert accepted.status == 201, str(accepted)
    assert number_of_orders(database, product) == 1


@pytest.mark.long
def test_a_lock_that_is_waited_for_by_hand_is_not_a_slow_client(services, database):
    """Nobody releases the lock in time: that wait is cut off, and the log blames nobody else for it."""
    other, service = services.start(database), services.start(database, "--order-timeout-ms", "500")
    body = {"lock": "lock-row", "hold_ms": 600000, "wait_ms": 60000}
    holding = Background(lambda: other.post("/locks/door/hold", body))
    look = {"lock": "lock-row", "hold_ms": 0, "wait_ms": 50}
    wait_until(lambda: service.post("/locks/door/hold", look).problem == "lock-busy", "it is held")
    with service.wire() as wire:
        wire.send(request_bytes("POST", "/locks/door/hold", as_body(body)))
        assert not wire.reply_within(0.5), "it waits"
        service.stop()
    assert "still waited for a lock" in service.log and "did not read" not in service.log, service.log
    other.stop()
    assert holding.result().status == 200 and "by hand" not in other.log, other.log


@pytest.mark.long
def test_a_client_that_does_not_read_its_answer_is_named_in_the_log(services, database):
    """The answers are ready and fill the sockets. Nothing else is blamed for the long end."""
    service = services.start(database, "--order-timeout-ms", "100", "--request-timeout-ms", "600000")
    with service.wire(receive_buffer=2048) as wire:
        wire.send(request_bytes("GET", "/openapi.yaml") * 300)  # more than the kernel keeps for a slow reader

        def is_full():
            """The thread looked at each connection several times, and could send this one nothing more."""
            before = unsent_bytes(service, wire)
            for _ in range(5):
                assert service.get("/healthz").status == 200
            return before > 0 and unsent_bytes(service, wire) == before

        wait_until(is_full, "the sockets are full")
        service.stop()
    assert "did not read their replies" in service.log and "had no reply" not in service.log, service.log


@pytest.mark.long
@pytest.mark.parametrize("by_hand", short_only([True], [False, True]))
def test_calls_that_still_wait_after_the_drain_are_refused(services, database, by_hand):
    """Two threads read, and each read waits for a locked table. The end does not take as long as forty of these waits,
    and none of the forty goes without an answer, not even while a call of POST /locks/NAME/hold waits."""
    other = services.start(database)
    service = services.start(database, "--order-timeout-ms", "2000", "--lock-wait-ms", "1000")
    product = service.product()
    wires = [service.wire() for _ in range(40)]
    hand = service.wire()
    try:
        if by_hand:
            body = {"lock": "redis-lock", "hold_ms": 600000, "wait_ms": 60000}
            holding = Background(lambda: other.post("/locks/door/hold", body))
            look = {"lock": "redis-lock", "hold_ms": 0, "wait_ms": 50}
            wait_until(lambda: service.post("/locks/door/hold", look).problem == "lock-busy", "it is held")
            hand.send(request_bytes("POST", "/locks/door/hold", as_body(body)))
            assert not hand.reply_within(0.5), "it waits"
        with holding_row(database, product) as row:
            row.run("LOCK TABLE product IN ACCESS EXCLUSIVE MODE")
            for wire in wires:
                wire.send(request_bytes("GET", f"/products/{product}"))
            wait_until(lambda: waiting_backends(database) == 2, "both threads read")
            service.stop()
        problems = [wire.reply(seconds=SOON_S).problem for wire in wires]
    finally:
        for wire in [*wires, hand]:
            wire.close()
    assert ("POST /locks/NAME/hold" in service.log) == by_hand, service.log
    assert "did not read" not in service.log and "had no reply" in service.log, "it names the calls, not their clients"
    other.stop()
    assert not by_hand or holding.result().status == 200
    assert set(problems) == {"lock-busy", "overloaded"}, f"{problems}"


def test_a_second_signal_changes_nothing(services, database):
    service = services.start(database, "--workers", "2")
    product = service.product()
    with holding_row(database, product) as row:
        order = Background(lambda: service.order(product))
        wait_until(lambda: waiting_backends(database) == 1, "an order waits for the row")
        for by in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            service.process.send_signal(by)
            stays(lambda: service.process.poll() is None, "it waits for the order", 0.1)
        row.run("ROLLBACK")
        assert order.result().status == 201
    service.stop()


def test_a_signal_while_it_starts(services, database):
    proxy = Proxy(database)
    proxy.refuse = True
    try:
        service = services.start(proxy.url, ready=False)
        service.stop()
    finally:
        proxy.close()


def test_the_next_process_takes_the_port_at_once(services, database):
    first = services.start(database)
    with first.wire() as wire:  # a connection that was open leaves the port in TIME_WAIT
        wire.send(request_bytes("GET", "/healthz"))
        assert wire.reply().status == 200
        port = first.port
        first.stop()
    second = services.start(database, listen=f"127.0.0.1:{port}")
    assert second.port == port


def test_a_port_that_is_taken(services, database):
    """The second process says so and ends; the first does not notice."""
    first = services.start(database)
    status, out, err = run_service("--listen", f"127.0.0.1:{first.port}", env={"DATABASE_URL": database})
    assert status not in (0, -signal.SIGSEGV, -signal.SIGABRT), f"exit {status}"
    assert str(first.port) in out + err, f"the reason is not given: {out}{err}"
    assert first.get("/healthz").status == 200


def test_two_instances_start_on_one_empty_database(services, database):
    """Both want to make the tables."""
    instances = [services.start(database, ready=None) for _ in range(4)]
    for service in instances:
        service.listening().ready()
    assert [len(service.get("/products").json["products"]) for service in instances] == [1] * 4
    assert {service.order(1).status for service in instances} == {201}
    assert instances[0].audit(1)["sold"] == 4


@pytest.mark.parametrize(
    "strategy",
    short_only(["select-for-update"], ["atomic-statement", "select-for-update", "optimistic", "mutex", "atomic-decrement"]),
)
def test_killed_under_load(services, database, strategy):
    """kill -9: every 201 that was read is in the database, stock and orders agree, the next one goes on."""
    product, load, cycles = None, Load(), 2
    for _ in range(cycles):
        service = services.start(database, "--workers", "8", "--strategy", strategy)
        if product is None:
            product = service.product(stock=1000000)
        stop = threading.Event()
        running = Background(
            lambda service=service, stop=stop: hammer([service], product, threads=16, stop=stop)
        )
        before = number_of_orders(database, product)
        wait_until(lambda before=before: number_of_orders(database, product) > before + 20, "orders flow")
        service.kill()
        stop.set()
        part = running.result()
        load.created += part.created
        load.unanswered += part.unanswered
    survivor = services.start(database, "--strategy", strategy)
    wait_until(
        lambda: psql(
            database,
            f"SELECT count(*) FROM {CLIENT_SESSIONS} = current_database()"
            " AND state LIKE '%transaction%'",
        )
        == [["0"]],
        "the dead one's transactions end",
    )
    stored = {
        int(row[0]) for row in psql(database, f"SELECT order_id FROM order_item WHERE product_id = {product}")
    }
    assert load.ids <= stored, f"promised and lost: {sorted(load.ids - stored)}"
    untold = len(stored - load.ids)
    assert (
        untold <= load.unanswered
    ), f"{untold} orders that nobody was told of, {load.unanswered} without an answer"
    audit = survivor.audit(product)
    assert (audit["drift"], audit["oversold"], audit["balanced"]) == (0, 0, True), f"{audit}"
    assert survivor.order(product).status == 201


@pytest.mark.long
def test_it_leaks_nothing_worth_speaking_of(services, database):
    """Ten thousand requests later it is as large as it was after the first thousand."""
    service = services.start(database, "--workers", "4")
    product = service.product(stock=1000000)
    bodies = [
        request_bytes("POST", "/orders", b'{"product_id":%d,"quantity":1,"receiver_name":"Ada"}' % product),
        request_bytes("POST", "/orders", b"{"),
        request_bytes("GET", f"/products/{product}"),
        request_bytes("GET", "/nothing"),
        request_bytes("POST", "/orders?strategy=nobody", b"{}"),
    ]
    size = None
    with service.wire() as wire:
        for round_ in range(200 if SANITIZED else 1000):
            for body in bodies:
                wire.send(body * 2)
                wire.reply()
                wire.reply()
            if round_ == 100:
                size = service.resident_bytes
    grown = service.resident_bytes - size
    assert SANITIZED or grown < 2 * 1024 * 1024, f"{grown} bytes more"


def test_the_log_says_when_it_starts_and_ends(services, database):
    service = services.start(database)
    service.stop()
    assert str(service.port) in service.log, service.log
    assert len(service.log.strip().splitlines()) >= 2, service.log


def test_a_reset_service_has_the_same_books(services, database):
    """Nothing of the shop lives in the process."""
    first = services.start(database)
    product = first.product(stock=5)
    order = first.order(product, 2, key="kept-across-processes").json
    first.stop()
    second = services.start(database)
    assert second.get(f"/orders/{order['id']}").json["quantity"] == 2
    assert second.order(product, 2, key="kept-across-processes").json == order
    told = Load(created=[order])
    audit = expect_books(second, product, told, 5)
    assert (audit["left"], audit["balanced"]) == (3, True), f"{audit}"
