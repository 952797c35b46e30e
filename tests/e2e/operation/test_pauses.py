"""What ends a lock under its holder, on purpose: each row that says it can be ended so oversells, each fenced row does not."""

import os
import re
import signal
import subprocess
import time
from urllib.parse import urlsplit

import pytest

from basics import REPLY_S, WAIT_MS
from lab import Background, Proxy, Service, holding, number, psql, wait_until, waiting_backends

TTL_S = 2  # the least that etcd grants
READ = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'oversell orders %' AND state = 'idle in transaction'"


@pytest.fixture
def shops(services, database):
    """One process that will pause, and one that goes on; orders think for long after they have read."""
    settings = ["--lock-ttl-ms", TTL_S * 1000, "--workers", 40]
    return [services.start(database, *settings) for _ in range(2)]


def rows(shop, ended_by):
    """The strategies whose lock says that this ends it."""
    table = shop.get("/strategies").json["strategies"]
    return {
        row["name"]: row
        for row in table
        if row["span"] == "around-transaction"
        and ended_by in row["lock"]["ended_by"]
        and row["name"] != "zookeeper-naive"  # its waiters may also wait for ever, see tests/contract
    }


def warm_up(shops, table):
    """Sessions, connections and tables are there before time counts."""
    product = shops[0].product(stock=1000)
    for shop in shops:
        for name in table:
            assert shop.order(product, 1, name).status == 201


def order_one(shop, product, strategy):
    target = f"/orders?strategy={strategy}"
    return shop.call("POST", target, {"product_id": product, "quantity": 1}, seconds=REPLY_S)


def order_all(shop, products):
    """Orders the one unit of each product under its strategy."""
    return {
        name: Background(lambda name=name, product=product: order_one(shop, product, name))
        for name, product in products.items()
    }


def order_all_and_read(shop, products):
    """As order_all; the orders have all read when this returns."""
    seen = number(shop.database_url, READ)
    orders = order_all(shop, products)
    def read():
        return number(shop.database_url, READ) - seen + sum(not order.running for order in orders.values())

    try:
        wait_until(lambda: read() >= len(products), "every order has read")
    except AssertionError:
        late = [name for name, order in orders.items() if order.running]
        raise AssertionError(f"these have not read, or not yet written: {late}") from None
    return orders


def results(orders):
    return {name: order.result() for name, order in orders.items()}


def judge(shop, table, products, first, second):
    """The holder of before and the holder of after both wrote what they had read, unless a fence was between."""
    for name, product in products.items():
        audit = shop.audit(product)
        told = f"{name}: {first[name].status} {first[name].problem}, {second[name].status} {second[name].problem}, {audit}"
        assert second[name].status == 201, told
        if table[name]["fence"] == "before-read":
            assert first[name].problem == "lock-lost", told
            assert (audit["sold"], audit["oversold"], audit["drift"]) == (1, 0, 0), told
        else:
            assert first[name].status == 201, told
            assert (audit["sold"], audit["oversold"]) == (2, 1), told
            assert audit["witness"]["stock_seen"] == 1, told


@pytest.mark.long
def test_a_process_that_is_stopped_beyond_its_leases(shops):
    """SIGSTOP after the read: others take the locks and read, then both write."""
    paused, running = shops
    table = rows(paused, "pause")
    assert {"redis-lock", "redis-reentrant", "zookeeper", "etcd", "etcd-fenced", "lock-table"} <= set(table)
    warm_up(shops, table)
    products = {name: paused.product(stock=1) for name in table}
    for shop, think_ms in ((paused, 6000), (running, 10000)):
        shop.strategy("atomic-decrement", think_ms=think_ms)
    before = order_all_and_read(paused, products)
    os.kill(paused.process.pid, signal.SIGSTOP)
    try:
        time.sleep(TTL_S)
        after = order_all_and_read(running, products)
    finally:
        os.kill(paused.process.pid, signal.SIGCONT)
    first = results(before)
    assert all(order.running for order in after.values()), "the second orders have still to write"
    judge(paused, table, products, first, results(after))
    lost = re.search(r'oversell_lock_sessions_lost_total{backend="zookeeper"} (\d+)', paused.get("/metrics").text)
    assert int(lost.group(1)) >= 1, "the session that ended under it was noticed and counted"


@pytest.mark.long
def test_an_order_that_sleeps_beyond_its_lease(shops):
    """The process runs on: a lease that ends by itself ends, one that is renewed and a session do not."""
    sleeping, other = shops
    leased = rows(sleeping, "pause")
    table = {name: row for name, row in leased.items() if row["lock"]["leased"] and not row["lock"]["renewed"]}
    kept = sorted(set(leased) - set(table))
    assert {"redis-lock", "redis-fenced", "shedlock"} <= set(table) and {"redis-reentrant", "etcd"} <= set(kept)
    warm_up(shops, leased)
    products = {name: sleeping.product(stock=1) for name in leased}
    for shop in shops:
        shop.strategy("atomic-decrement", think_ms=10000)
    before = order_all_and_read(sleeping, products)
    time.sleep(TTL_S + 1)
    after = order_all(other, products)
    first, second = results(before), results(after)
    judge(sleeping, table, {name: products[name] for name in table}, first, second)
    for name in kept:
        assert (first[name].status, second[name].problem) == (201, "sold-out"), f"{name}: {first[name]}, {second[name]}"


@pytest.mark.long
def test_a_lock_whose_connection_is_ended(shops):
    """lock-row: its backend is terminated under its holder, whose order goes on over another connection."""
    one, two = shops
    table = {name: row for name, row in rows(one, "disconnect").items() if row["lock"]["server"] == "lock-database"}
    assert set(table) == {"lock-row"}
    products = {name: one.product(stock=1) for name in table}
    for shop, think_ms in ((one, 5000), (two, 10000)):
        shop.strategy("atomic-decrement", think_ms=think_ms)
    before = order_all_and_read(one, products)
    ended = psql(
        one.database_url,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE application_name LIKE 'oversell lock%' AND state = 'idle in transaction'",
    )
    assert ended == [["1"]] or ended == ["1"], f"{ended}"
    after = order_all(two, products)
    judge(one, table, products, results(before), results(after))


def etcdctl(shop, *words):
    endpoints = shop.lock_servers["ETCD_ENDPOINTS"]
    environment = {**os.environ, "ETCDCTL_API": "3"}
    ran = subprocess.run(
        ["etcdctl", "--endpoints", endpoints, *words], capture_output=True, text=True, env=environment, check=True
    )
    return ran.stdout


@pytest.mark.long
def test_a_lease_that_is_revoked_under_its_holder(shops):
    """The lock's key goes with its lease, whoever revokes it."""
    one, two = shops
    names = ["etcd", "etcd-cas", "etcd-fenced"]
    table = {name: row for name, row in rows(one, "pause").items() if name in names}
    warm_up(shops, table)
    products = {name: one.product(stock=1) for name in table}
    for shop, think_ms in ((one, 5000), (two, 10000)):
        shop.strategy("atomic-decrement", think_ms=think_ms)
    before = order_all_and_read(one, products)
    for lease in re.findall("^[0-9a-f]{8,}$", etcdctl(one, "lease", "list"), re.M):
        etcdctl(one, "lease", "revoke", lease)
    after = order_all_and_read(two, products)
    judge(one, table, products, results(before), results(after))


def test_a_lock_that_has_ended_before_the_check(database, services):
    """redis-lock-checked: its key is deleted after the read and before the question, so nothing is written."""
    proxy = Proxy(Service.lock_servers["REDIS_URL"])
    try:
        shop = services.start(database, env={"REDIS_URL": proxy.url})
        product = shop.product(stock=2)
        assert shop.order(product, 1, "redis-lock-checked").status == 201
        with holding(database, "LOCK TABLE product IN ACCESS EXCLUSIVE MODE") as reads:
            order = Background(lambda: order_one(shop, product, "redis-lock-checked"))
            wait_until(lambda: waiting_backends(database) == 1, "it holds the lock, and is about to read")
            proxy.stalled.set()
            reads.run("ROLLBACK")
        wait_until(lambda: number(database, READ) == 1, "it has read")
        redis_cli(shop, "DEL", lock_key(shop, product))
        proxy.stalled.clear()
        assert order.result().problem == "lock-lost"
        audit = shop.audit(product)
        assert (audit["sold"], audit["drift"]) == (1, 0), audit
        assert shop.order(product, 1, "redis-lock-checked").status == 201
    finally:
        proxy.close()


def lock_key(shop, product):
    """Of the Redis locks that are plain values."""
    return f"{urlsplit(shop.database_url).path.strip('/')}:lock:product:{product}"


def redis_cli(shop, *words):
    url = urlsplit(shop.lock_servers["REDIS_URL"])
    redis = ["redis-cli", "--no-auth-warning", "-p", str(url.port), "-a", url.password]
    subprocess.run([*redis, *words], check=True, capture_output=True)


def test_an_order_waits_for_a_stranger(shop):
    """Somebody else's client holds product N's lock: lock-busy, and served once it is released."""
    product = shop.product(stock=2)
    shop.strategy("atomic-decrement", think_ms=0, lock_wait_ms=200)
    redis_cli(shop, "SET", lock_key(shop, product), "somebody else", "NX")
    assert shop.order(product, 1, "redis-lock").problem == "lock-busy"
    redis_cli(shop, "DEL", lock_key(shop, product))
    shop.strategy("atomic-decrement", lock_wait_ms=WAIT_MS)
    assert shop.order(product, 1, "redis-lock").status == 201
