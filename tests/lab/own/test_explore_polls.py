"""`loadtest explore shop.json` with a lock that is a row of PostgreSQL, for which a service polls: right ones, and ones that are not."""

import pytest

from explored import explore, extended, result
from test_check import SAMPLES

# Further protections for the sample, in the place of its table.
SERVICES = '''
me = secrets.token_hex(8)


def run(sql, *parameters):
    """One transaction; the number of rows."""
    with transaction() as cursor:
        cursor.execute(sql, parameters)
        return cursor.rowcount


def insert(owner):
    """As ShedLock and Laravel's cache lock do it on PostgreSQL."""
    return run("INSERT INTO lock (name, owner, until) VALUES ('p1', %s, now() + interval '1 hour') ON CONFLICT DO NOTHING", owner) > 0


def registry(owner):
    """As Spring's JdbcLockRegistry does it: three statements, and an error for a lock that another one has."""
    run("DELETE FROM lock WHERE name = 'p1' AND until < now()")
    if run("UPDATE lock SET until = now() + interval '1 hour' WHERE name = 'p1' AND owner = %s", owner):
        return True
    try:
        return run("INSERT INTO lock (name, owner, until) VALUES ('p1', %s, now() + interval '1 hour')", owner) > 0
    except psycopg2.errors.UniqueViolation:
        return False


def lease(owner):
    """The row stays, and its end decides."""
    run("INSERT INTO lock (name, owner, until) VALUES ('p1', '', now()) ON CONFLICT DO NOTHING")
    return run("UPDATE lock SET owner = %s, until = now() + interval '1 hour' WHERE name = 'p1' AND until <= now()", owner) > 0


def release(owner):
    run("DELETE FROM lock WHERE name = 'p1' AND owner = %s", owner)


def end_lease(owner):
    run("UPDATE lock SET until = now() - interval '1 s' WHERE name = 'p1' AND owner = %s", owner)


def keep(owner):
    pass


def locked(take, give, tries=None, otherwise=None, sell=read_and_write):
    def sells(product, quantity):
        owner = secrets.token_hex(8)
        left = tries
        while not take(owner):
            time.sleep(0.001)
            left = left - 1 if left else left
            if left == 0:
                return otherwise(product, quantity) if otherwise else False
        try:
            return sell(product, quantity)
        finally:
            give(owner)

    return sells


def early(product, quantity):
    """It gives the lock back before the COMMIT."""
    owner = secrets.token_hex(8)
    while not insert(owner):
        time.sleep(0.001)
    with transaction() as cursor:
        cursor.execute("SELECT count FROM product WHERE id = %s", (product,))
        left = cursor.fetchone()[0]
        if left < quantity:
            release(owner)
            return False
        cursor.execute("UPDATE product SET count = %s WHERE id = %s", (left - quantity, product))
        release(owner)
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        return True


def optimistic(product, quantity):
    """It tries again when another one was faster, which is no lock."""
    while True:
        with transaction() as cursor:
            cursor.execute("SELECT count FROM product WHERE id = %s", (product,))
            left = cursor.fetchone()[0]
            if left < quantity:
                return False
            cursor.execute("UPDATE product SET count = %s WHERE id = %s AND count = %s", (left - quantity, product, left))
            if cursor.rowcount:
                cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
                return True


def waits_for_the_old_version(product, quantity):
    """Only a schedule in which another order comes between makes it try for ever."""
    with transaction() as cursor:
        cursor.execute("SELECT count FROM product WHERE id = %s", (product,))
        left = cursor.fetchone()[0]
    while left >= quantity:
        with transaction() as cursor:
            cursor.execute("UPDATE product SET count = %s WHERE id = %s AND count = %s", (left - quantity, product, left))
            if cursor.rowcount:
                cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
                return True
    return False


def tries_for_ever(product, quantity):
    while not decrement(product, quantity):
        pass
    return True


PROTECTIONS = {
    "insert": locked(insert, release),
    "registry": locked(registry, release),
    "lease": locked(lease, end_lease),
    "guarded-registry": locked(registry, release, sell=decrement),
    "kept": locked(lease, keep),
    "early": early,
    "three-tries": locked(insert, release, 3),
    "three-tries-then-without": locked(insert, release, 3, read_and_write),
    "three-tries-then-lease": locked(insert, release, 3, locked(lease, release)),
    "optimistic": optimistic,
    "old-version": waits_for_the_old_version,
    "tries-for-ever": tries_for_ever,
'''

EXPIRES = "UPDATE lock SET until = now() - interval '1 s'"


def written(folder, **members):
    """The Python sample with a table of locks, and with more protections."""
    schema = (SAMPLES / "schema.sql").read_text(encoding="utf-8") + "\nCREATE TABLE lock (name text PRIMARY KEY, owner text, until timestamptz);\n"
    (folder / "schema.sql").write_text(schema, encoding="utf-8")
    reset = ["DELETE FROM order_item", "DELETE FROM lock", "UPDATE product SET count = {stock}, fence = 0 WHERE id = 1"]
    return extended(folder, SERVICES, schema=str(folder / "schema.sql"), reset=reset, **members)


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    return written(tmp_path_factory.mktemp("services"))


@pytest.fixture(scope="module")
def leases(tmp_path_factory):
    """The description says how a lease ends."""
    return written(tmp_path_factory.mktemp("leases"), expires=EXPIRES)


def searched(services, protection, *options):
    """With an instance for each request there is no search with a shared connection, which is not the subject here."""
    return result(services, protection, "--instances", 2, *options)


def polls(found):
    return [warning for warning in found["warnings"] if "without success" in warning]


@pytest.mark.parametrize("protection", ["insert", pytest.param("registry", marks=pytest.mark.long), pytest.param("lease", marks=pytest.mark.long)])
def test_a_right_lock_ends_the_search(services, protection):
    found = searched(services, protection)
    assert found["verdict"] == "clean" and found["complete"] and found["coverage"] == 1, found
    assert "did not give up" in polls(found)[0], found


@pytest.mark.long
@pytest.mark.parametrize(("protection", "verdict"), [("early", "oversold"), ("kept", "stuck")])
def test_a_broken_release(services, protection, verdict):
    found = searched(services, protection)
    shown = found["counterexample"]
    assert found["verdict"] == verdict and shown["reproduced"] == shown["replays"], found


@pytest.mark.long
def test_a_service_that_gives_up_is_asked_to(services):
    """It refuses a buyer although there are two units; with one unit it is right to do so."""
    found = searched(services, "three-tries")
    assert found["verdict"] == "clean" and found["complete"] and not polls(found), found
    found = searched(services, "three-tries", "--stock", 2)
    assert found["verdict"] == "turned-away", found
    shown = found["counterexample"]
    assert shown["reproduced"] == 10 and "!timeout" in shown["schedule"], shown
    assert any("then it gives up" in step["answer"] for step in shown["steps"]), shown


@pytest.mark.long
def test_a_service_that_goes_on_without_the_lock(services):
    found = searched(services, "three-tries-then-without", "--max-schedules", 300)
    shown = found["counterexample"]
    assert found["verdict"] == "oversold" and shown["reproduced"] == 10 and "!timeout" in shown["schedule"], found
    replayed = explore(services, "three-tries-then-without", "--instances", 2, "--replay", shown["schedule"])
    assert replayed.returncode == 1 and "NOT clean" in replayed.stdout, replayed.stdout + replayed.stderr


@pytest.mark.long
def test_the_poll_that_goes_on_is_named(services):
    """The other one, which gives up, comes first."""
    found = searched(services, "three-tries-then-lease", "--max-schedules", 30)
    assert "'', now())" in polls(found)[0], found


@pytest.mark.long
def test_an_optimistic_retry_is_no_lock(services):
    found = searched(services, "optimistic")
    assert found["verdict"] == "clean" and found["complete"] and not polls(found), found


@pytest.mark.long
@pytest.mark.parametrize("protection", ["tries-for-ever", "old-version"])
def test_a_buyer_who_is_never_answered(services, protection):
    found = searched(services, protection)
    shown = found["counterexample"]
    assert found["verdict"] == "stuck" and shown["reproduced"] == shown["replays"] and "repeats 'UPDATE product SET count" in shown["cause"], found


# ---- leases that end --------------------------------------------------------------------------------


@pytest.mark.long
def test_a_lease_ends_too_early_only_as_a_fault(leases):
    found = searched(leases, "insert", "--show", 0)
    assert found["verdict"] == "clean" and found["complete"], found
    found = searched(leases, "lease", "--faults", "expire", "--max-schedules", 400)
    shown = found["counterexample"]
    assert found["verdict"] == "oversold" and shown["reproduced"] == 10 and "A!expire" in shown["schedule"], found
    assert "The lease that A held as a row expired" in shown["cause"], shown
    assert any(step["text"] == "(fault: leases end in the database: 1 row)" for step in shown["steps"]), shown


@pytest.mark.long
def test_a_row_that_decides_too_survives_the_end_of_a_lease(leases):
    found = searched(leases, "guarded-registry", "--faults", "expire", "--max-schedules", 600)
    assert found["verdict"] == "clean" and not any("No fault" in warning for warning in found["warnings"]), found


@pytest.mark.long
def test_a_lock_that_nobody_gives_back_ends_when_time_passes(leases):
    found = searched(leases, "kept")
    assert found["verdict"] == "clean" and not any("fault" in warning.lower() for warning in found["warnings"]), found


@pytest.mark.long
def test_a_request_that_crashes_leaves_its_lease(leases):
    found = searched(leases, "lease", "--faults", "crash", "--max-schedules", 60)
    assert found["verdict"] == "clean", found


def test_an_end_that_fails_is_a_sentence(tmp_path):
    shop = written(tmp_path, expires="UPDATE locks SET until = now()")
    ran = explore(shop, "kept", "--instances", 2)
    assert ran.returncode == 3 and '"expires" fails' in ran.stderr and "Correct the SQL" in ran.stderr, ran.stdout + ran.stderr
