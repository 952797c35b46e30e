"""What other requests do inside a statement, and on a connection of the pool that two requests share: `loadtest explore` finds it, or does not say
clean."""

import json

import pytest

from explored import PYTHON, described, explore, loadtest, result, served
from test_check import sample_needs

# A service that sells with one statement outside a transaction, or takes a connection of a small pool for each statement.
SERVICE = '''
import os, queue, time
import psycopg2

POOL = queue.LifoQueue()
for _ in range(int(os.environ.get("POOL", 3))):
    POOL.put(None)


def take():
    connection = POOL.get()
    if connection is None:
        connection = psycopg2.connect(os.environ["DATABASE_URL"])
        connection.autocommit = True
    return connection


def run(sql):
    """On any connection of the pool."""
    connection = take()
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()[0] if cursor.description else cursor.rowcount
    finally:
        POOL.put(connection)
        time.sleep(0.01)  # the program does something else, and a request that waits gets the connection


def in_pool():
    run("BEGIN")
    count = run("SELECT count FROM product WHERE id = 1 FOR UPDATE")
    if count < 1:
        run("ROLLBACK")
        return False
    run(f"UPDATE product SET count = {count - 1} WHERE id = 1")
    run("INSERT INTO order_item (product_id, quantity) VALUES (1, 1)")
    run("COMMIT")
    return True


def session_lock():
    run("SELECT 1 FROM pg_advisory_lock(1)")
    try:
        count = run("SELECT count FROM product WHERE id = 1")
        if count >= 1:
            run(f"UPDATE product SET count = {count - 1} WHERE id = 1")
            run("INSERT INTO order_item (product_id, quantity) VALUES (1, 1)")
        return count >= 1
    finally:
        run("SELECT pg_advisory_unlock(1)")


def two_connections():
    """Writes to a log over a second connection while the first one has a transaction."""
    first = take()
    first.autocommit = False
    try:
        with first, first.cursor() as cursor:
            cursor.execute("UPDATE product SET count = count - 1 WHERE id = 1 AND count >= 1")
            if cursor.rowcount < 1:
                return False
            run("INSERT INTO log DEFAULT VALUES")
            cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (1, 1)")
            return True
    finally:
        if not first.closed:
            first.autocommit = True
        POOL.put(first)


def sell(way):
    try:
        ways = {"pool": in_pool, "session-lock": session_lock, "two-connections": two_connections}
        sold = ways[way]() if way in ways else run(os.environ["STATEMENT"])
        return (201 if sold else 409), {}
    except psycopg2.Error as error:
        return (409 if "sold out" in str(error) else 500), {}
'''
TABLES = """
CREATE TABLE product (id int PRIMARY KEY, count int NOT NULL);
CREATE TABLE order_item (id bigserial PRIMARY KEY, product_id int NOT NULL, quantity int NOT NULL);
CREATE TABLE log (at timestamptz DEFAULT now());
INSERT INTO product VALUES (1, 0);
"""
FUNCTION = """
CREATE FUNCTION claim() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
  %s
  INSERT INTO order_item (product_id, quantity) VALUES (1, 1);
  RETURN true;
END $$;
"""
READ = "SELECT count INTO n FROM product WHERE id = 1%s; IF n < 1 THEN RETURN false; END IF; UPDATE product SET count = n - 1 WHERE id = 1;"
DECREMENT = "UPDATE product SET count = count - 1 WHERE id = 1 AND count >= 1; IF NOT FOUND THEN RETURN false; END IF;"
TRIGGER = """
CREATE FUNCTION sell() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
  %s
  RETURN NEW;
END $$;
CREATE TRIGGER sells BEFORE INSERT ON order_item FOR EACH ROW EXECUTE FUNCTION sell();
"""
TRIGGER_READ = "SELECT count INTO n FROM product WHERE id = 1; IF n < 1 THEN RAISE 'sold out'; END IF; UPDATE product SET count = n - 1 WHERE id = 1;"
TRIGGER_DECREMENT = "UPDATE product SET count = count - 1 WHERE id = 1 AND count >= 1; IF NOT FOUND THEN RAISE 'sold out'; END IF;"
CALL = "SELECT claim()"
INSERT = "INSERT INTO order_item (product_id, quantity) VALUES (1, 1)"
SELECT = "INSERT INTO order_item (product_id, quantity) SELECT 1, 1 FROM product p WHERE p.count > (SELECT count(*) FROM order_item)"
# SQL that is added to the schema, the statement that sells, and the verdict.
STATEMENTS = {
    "a function that reads": (FUNCTION % (READ % ""), CALL, "oversold"),
    "a function after a comment": (FUNCTION % (READ % ""), "-- name: Claim :one\n" + CALL, "oversold"),
    "a function that locks first": (FUNCTION % (READ % " FOR UPDATE"), CALL, "clean"),
    "a function that decrements first": (FUNCTION % DECREMENT, CALL, "clean"),
    "a function that reads something before it locks": (FUNCTION % ("PERFORM count(*) FROM log; " + DECREMENT), CALL, "not-explored"),
    "a long text": (FUNCTION % ("PERFORM count(*) FROM log; " + DECREMENT), "SELECT claim() /* x" + "€" * 120 + " */", "not-explored"),
    "a trigger that reads": (TRIGGER % TRIGGER_READ, INSERT, "oversold"),
    "a trigger that decrements": (TRIGGER % TRIGGER_DECREMENT, INSERT, "clean"),
    "a trigger that only sets a value": (FUNCTION % (READ % " FOR UPDATE") + TRIGGER % "NEW.quantity := 1;", CALL, "clean"),
    "INSERT … SELECT": ("", SELECT, "oversold"),
}  # fmt: skip


def service(folder, more, **env):
    (folder / "schema.sql").write_text(TABLES + more, encoding="utf-8")
    return served(folder, SERVICE, schema="schema.sql", invariant=None, ready=None,
                     reset=["DELETE FROM order_item", "UPDATE product SET count = {stock} WHERE id = 1"],
                     env={"PORT": "{port}", "DATABASE_URL": "{postgres}", "STATEMENT": "", "PROTECTION": ""} | env)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("which", STATEMENTS)
def test_inside_a_statement(tmp_path, which):
    sample_needs("python")
    more, statement, verdict = STATEMENTS[which]
    members = {"stock": "SELECT count - (SELECT count(*) FROM order_item) FROM product"} if not more else {}
    path = service(tmp_path, more, STATEMENT=statement)
    if members:
        text = path.read_text(encoding="utf-8").replace("SELECT count FROM product WHERE id = 1", members["stock"])
        path.write_text(text, encoding="utf-8")
    ran = explore(path, "none")
    assert ran.returncode == {"oversold": 1, "clean": 0, "not-explored": 3}[verdict], ran.stdout + ran.stderr
    assert verdict in ran.stdout, ran.stdout
    assert verdict != "not-explored" or "Run loadtest check as well" in ran.stdout, ran.stdout


@pytest.mark.long
@pytest.mark.parametrize(("way", "word"), [("pool", "in the transaction of another request"), ("session-lock", "The requests shared a connection")])
def test_two_requests_share_a_connection(tmp_path, way, word):
    sample_needs("python")
    path = service(tmp_path, "")
    found = result(path, way)
    shown = found["counterexample"]
    assert found["verdict"] != "clean" and found["pool"]["connections"] == 3, found
    assert shown["occupied"] == 2 and shown["reproduced"] == shown["replays"], found
    assert any(word in text for text in [*found["warnings"], shown["cause"]]), found
    # The schedule can be repeated by hand.
    again = result(path, way, "--replay", shown["schedule"], "--occupied", 2)
    assert again["verdict"] == found["verdict"], again


@pytest.mark.long
def test_a_request_that_keeps_its_connection(tmp_path):
    """The other one waits, and the output says that they never took turns on a connection."""
    sample_needs("python")
    path = described(tmp_path, start=["/usr/bin/python3", str(PYTHON / "shop.py")])
    found = result(path, "for-update")
    assert found["verdict"] == "clean" and found["pool"] == {"connections": 10, "clean": 1, "shared": 0}, found
    assert "first had ended: they never took turns on it." in " ".join(explore(path, "for-update").stdout.split())


HANGS = "its transaction is open and keeps its locks; 'UPDATE product SET count = count - 1 WHERE id = 1 AND count >= 1' ran last in it"


@pytest.mark.long
@pytest.mark.parametrize(("command", "pool"), [("check", 3), ("check", 1), ("explore", 1)])
def test_requests_that_wait_for_a_second_connection(tmp_path, command, pool):
    sample_needs("python")
    path = service(tmp_path, "", POOL=str(pool))
    text = json.loads(path.read_text(encoding="utf-8")) | {"timeout_ms": 1000}
    path.write_text(json.dumps(text), encoding="utf-8")
    ran = loadtest(command, path, "two-connections")
    assert ran.returncode == 3 and HANGS in ran.stderr and "was not answered" in ran.stderr, ran.stderr


@pytest.mark.long
def test_a_stuck_schedule_does_not_spoil_the_next_one(tmp_path):
    """The program keeps the connections that were cut, and would fail from then on."""
    sample_needs("python")
    found = result(service(tmp_path, "", POOL="2"), "two-connections")
    shown = found["counterexample"]
    assert [row["verdict"] for row in found["rows"]] == ["stuck"] and shown["reproduced"] == shown["replays"], found
    assert "waits in the program after (1)" in shown["cause"], shown
