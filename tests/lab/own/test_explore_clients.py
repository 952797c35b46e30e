"""`loadtest explore shop.json` with the ways in which services use PostgreSQL: pools, pipelines, prepared statements, several connections, sequences,
passwords and TLS."""

import json
from urllib.parse import urlsplit

import pytest

from explored import described, explore, extended, result
from length import short_only
from servers import Stack, psql
from test_check import SAMPLES, sample_needs
from test_pages import framework_needs

# Further protections for the Python sample, in the place of its table.
SERVICES = '''
import ctypes
import struct


def pipelined(*groups):
    """Sends all statements before it reads a result, with libpq's pipeline mode. Each group ends with Sync, so it is a transaction. Returns how many
    rows each statement changed."""
    pq = ctypes.CDLL("libpq.so.5")
    pq.PQconnectdb.restype = pq.PQgetResult.restype = ctypes.c_void_p
    pq.PQcmdTuples.restype = ctypes.c_char_p
    connection = ctypes.c_void_p(pq.PQconnectdb(os.environ["DATABASE_URL"].encode()))
    rows, syncs = [], 0
    try:
        well = pq.PQstatus(connection) == 0 and pq.PQenterPipelineMode(connection)
        for group in groups:
            for sql in group:
                well = well and pq.PQsendQueryParams(connection, sql.encode(), 0, None, None, None, None, 0)
            well = well and pq.PQpipelineSync(connection)
        while well and syncs < len(groups):
            answer = ctypes.c_void_p(pq.PQgetResult(connection))
            if not answer:  # the end of a statement
                well = pq.PQstatus(connection) == 0
                continue
            status = pq.PQresultStatus(answer)  # 1: a command, 2: rows, 7: an error, 10: the answer to Sync
            syncs += status == 10
            rows += [int(pq.PQcmdTuples(answer))] if status in (1, 2) else []
            well = status != 7
            pq.PQclear(answer)
    finally:
        pq.PQfinish(connection)
    if not well:
        raise ConnectionError("the pipeline has failed")
    return rows


LOCK_ROW = "SELECT count FROM product WHERE id = 1 FOR UPDATE"
INSERT = "INSERT INTO order_item (product_id, quantity) SELECT 1, 1 FROM product WHERE id = 1 AND count > 0"
TAKE = "UPDATE product SET count = count - 1 WHERE id = 1 AND count > 0"


def pipeline(product, quantity):
    return pipelined([LOCK_ROW, INSERT, TAKE])[1] == 1


def two_pipelines(product, quantity):
    """Two transactions, of which the second is sent before the first has its answer."""
    return pipelined([INSERT], [TAKE])[0] == 1


def message(kind, body=b""):
    return kind + struct.pack(">I", len(body) + 4) + body


def rows_until(stream, last):
    """The rows up to a message of one of the types LAST."""
    rows = []
    while True:
        kind, length = struct.unpack(">cI", stream.read(5))
        body = stream.read(length - 4)
        if kind == b"E":
            raise ConnectionError(body)
        if kind == b"D":
            rows.append(body[6:].decode())
        if kind in last:
            return rows


def run(stream, sql, asks=False):
    """With ASKS, the client asks for the columns of the portal before it executes it, as several drivers do for cursors."""
    stream.write(message(b"P", b"\\0" + sql.encode() + b"\\0\\0\\0") + message(b"B", bytes(8)))
    if asks:
        stream.write(message(b"D", b"P\\0") + message(b"H"))
        stream.flush()
        rows_until(stream, b"Tn")
    stream.write(message(b"E", bytes(5)) + message(b"S"))
    stream.flush()
    return rows_until(stream, b"Z")


def portal(product, quantity):
    """naive, over a connection that libpq opens."""
    pq = ctypes.CDLL("libpq.so.5")
    pq.PQconnectdb.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(pq.PQconnectdb(os.environ["DATABASE_URL"].encode()))
    try:
        with socket.socket(fileno=os.dup(pq.PQsocket(connection))) as server, server.makefile("rwb") as stream:
            server.setblocking(True)
            count = int(run(stream, f"SELECT count FROM product WHERE id = {product}", asks=True)[0])
            if count < quantity:
                return False
            run(stream, f"WITH taken AS (UPDATE product SET count = {count - quantity} WHERE id = {product})"
                        f" INSERT INTO order_item (product_id, quantity) VALUES ({product}, {quantity})")
            return True
    finally:
        pq.PQfinish(connection)


def rolls_back_later(product, quantity):
    """decrement, but it says that all is sold before it ends the transaction."""
    connection = psycopg2.connect(os.environ["DATABASE_URL"])
    cursor = connection.cursor()
    cursor.execute("UPDATE product SET count = count - %s WHERE id = %s AND count >= %s", (quantity, product, quantity))
    if cursor.rowcount == 0:
        threading.Timer(0.02, connection.rollback).start()
        return False
    cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
    connection.commit()
    connection.close()
    return True


waiting = []


def in_one_group(product, quantity):
    """The first of the orders at the same time writes all of them."""
    waiting.append(quantity)
    with process_lock:
        if not waiting:
            return True
        with transaction() as cursor:
            cursor.execute("SELECT count FROM product WHERE id = %s FOR UPDATE", (product,))
            count, total = cursor.fetchone()[0], sum(waiting)
            waiting.clear()
            if count < total:
                return False
            write(cursor, product, total, count)
            return True


def write(cursor, product, quantity, count):
    cursor.execute("UPDATE product SET count = %s WHERE id = %s", (count - quantity, product))
    cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))


def two_connections(product, quantity):
    """Reads over one connection, and writes over another."""
    with transaction() as cursor:
        cursor.execute("SELECT count FROM product WHERE id = %s", (product,))
        count = cursor.fetchone()[0]
        if count < quantity:
            return False
        with transaction() as other:
            write(other, product, quantity, count)
        return True


def at_once(product, quantity, take=read_and_write):
    """Two statements over two connections at the same time, and nothing says which one comes first; then the order."""
    threads = [threading.Thread(target=look, args=(sql,)) for sql in ("SELECT count(*) FROM order_item", "SELECT max(id) FROM product")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return take(product, quantity)


def look(sql):
    connection = psycopg2.connect(os.environ["DATABASE_URL"])
    connection.autocommit = True
    connection.cursor().execute(sql)
    connection.close()


def locked_by_another(product, quantity):
    """A connection holds a lock while another one works."""
    with transaction() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (product,))
        return read_and_write(product, quantity)


numbers = []


def numbers_in_blocks(product, quantity):
    """As Hibernate does it: one number of the sequence is for the identifiers of several orders."""
    with transaction() as cursor:
        cursor.execute("UPDATE product SET count = count - %s WHERE id = %s AND count >= %s", (quantity, product, quantity))
        if cursor.rowcount == 0:
            return False
        if not numbers:
            cursor.execute("select nextval ('order_item_id_seq')")
            block = cursor.fetchone()[0]
            numbers.extend(range(block * 7, block * 7 + 7))
        cursor.execute("INSERT INTO order_item (id, product_id, quantity) VALUES (%s, %s, %s)", (numbers.pop(), product, quantity))
        return True


TAKE_OR_FAIL = """WITH free AS (SELECT id FROM product WHERE id = 1 AND count > 0 FOR UPDATE NOWAIT),
    taken AS (UPDATE product SET count = count - 1 FROM free WHERE product.id = free.id RETURNING product.id)
    INSERT INTO order_item (product_id, quantity) SELECT id, 1 FROM taken"""


def retries_later(product, quantity):
    """The second try, after a pause, takes no lock."""
    try:
        with transaction() as cursor:
            cursor.execute(TAKE_OR_FAIL)
            return cursor.rowcount == 1
    except psycopg2.errors.LockNotAvailable:
        time.sleep(float(os.environ["PAUSE_S"]))
        return read_and_write(product, quantity)


PROTECTIONS = {
    "retries-later": retries_later,
    "pipeline": pipeline,
    "two-pipelines": two_pipelines,
    "portal": portal,
    "in-one-group": in_one_group,
    "rolls-back-later": rolls_back_later,
    "two-connections": two_connections,
    "locked-by-another": locked_by_another,
    "at-once": at_once,
    "at-once-right": lambda product, quantity: at_once(product, quantity, decrement),
    "numbers-in-blocks": numbers_in_blocks,
'''


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    sample_needs("python")
    return extended(tmp_path_factory.mktemp("services"), SERVICES)


def is_complete(found, verdict):
    assert found["verdict"] == verdict and found["complete"] and found["coverage"] == 1, found
    assert verdict == "clean" or found["counterexample"]["reproduced"] == found["counterexample"]["replays"], found
    return found


# ---- pools ------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("pool", short_only([1], range(1, 11)))
def test_a_pool_of_each_size(pool):
    """With one connection, the second request waits in the program until the first has ended. 0, a connection for each request: test_explore_own.py."""
    sample_needs("python")
    found = result(SAMPLES / "python" / "shop.json", "naive", "--env", f"POOL={pool}")
    is_complete(found, "clean" if pool == 1 else "oversold")
    assert found["schedules"] == (1 if pool == 1 else 24), found


@pytest.mark.long
@pytest.mark.parametrize("language", ["node", "java"])
def test_a_pool_of_one_connection(language):
    sample_needs(language)
    is_complete(result(SAMPLES / language / "shop.json", "naive", "--env", "POOL=1"), "clean")


@pytest.mark.long
def test_more_requests_than_connections():
    """Two wait for the row or for their turn, and the third for a connection."""
    sample_needs("python")
    found = result(SAMPLES / "python" / "shop.json", "for-update", "--env", "POOL=2", "--requests", 3, "--max-schedules", 20)
    assert found["verdict"] == "clean" and found["schedules"] == 20, found


# ---- statements -------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_pipeline_is_one_step(services):
    """Up to Sync, nothing of another request comes between its statements. Their COMMIT is a step, as another request may act before it."""
    found = is_complete(result(services, "pipeline"), "clean")
    assert found["schedules"] == 4, found
    assert result(services, "pipeline", "--replay", "A>end B>end")["counterexample"]["answers"] == [201, 409]


@pytest.mark.long
def test_a_statement_that_is_sent_before_the_answer_to_the_last_one(services):
    """It waits for its turn all the same."""
    found = is_complete(result(services, "two-pipelines"), "oversold")
    assert found["schedules"] == 20 and found["rows"][-1]["verdict"] == "clean", found
    steps = found["counterexample"]["steps"]
    assert [step["text"].split()[0] for step in steps if step["actor"] == "A"] == ["INSERT", "COMMIT", "UPDATE"], steps
    assert [step["answer"] for step in steps if step["text"].startswith("INSERT")] == ["INSERT 0 1"] * 2, steps
    assert found["differed"] == 0, found


@pytest.mark.long
def test_a_portal_that_is_executed_later(services):
    """PostgreSQL takes the snapshot at Bind, so Bind and Execute are a step each."""
    found = is_complete(result(services, "portal"), "oversold")
    assert found["schedules"] == 20, found
    late = result(services, "portal", "--replay", "A>1 B>end A>end")["counterexample"]
    texts = [step["text"] for step in late["steps"] if step["actor"] == "A"]
    assert late["sold"] == 2 and texts[:2] == ["SELECT count FROM product WHERE id = 1", "(continues the statement before)"], late


@pytest.mark.long
def test_an_order_without_a_statement(services):
    """A search says nothing about an order without a statement, so the search is not complete."""
    found = result(services, "in-one-group", "--stock", 2)
    assert found["verdict"] == "clean" and found["schedules"] == 1 and not found["complete"], found
    assert len(found["warnings"]) == 1 and found["warnings"][0].startswith("Request B sent no statement that the gate holds"), found
    table = explore(services, "in-one-group", "--stock", 2).stdout
    assert "shop.json: 1 schedule of 2 requests" in table and "Every schedule that was run is clean." in table and "limit left" not in table, table


@pytest.mark.long
def test_a_rollback_after_the_answer(services):
    """A ROLLBACK after the answer changes nothing, so the gate lets it pass."""
    found = is_complete(result(services, "rolls-back-later"), "clean")
    assert found["differed"] == 0, found
    # Three requests: a rollback comes while another request runs.
    found = result(services, "rolls-back-later", "--replay", "A>end B>end C>end", "--requests", 3)
    assert [step["text"].split()[0] for step in found["counterexample"]["steps"]] == ["UPDATE", "INSERT", "COMMIT", "UPDATE", "UPDATE"], found


@pytest.mark.long
@pytest.mark.parametrize(("pause", "replay"), [(3, ["--replay", "A>1 B>end A>end"]), (1.2, [])])
def test_a_pause_before_a_retry(services, pause, replay):
    """A request that sleeps is not stuck. The search does not know when it wakes, so it says that it left schedules out. On a slow machine, where a
    request may be silent for longer, it finds the oversell."""
    found = result(services, "retries-later", "--env", f"PAUSE_S={pause}", *replay)
    assert {row["verdict"] for row in found["rows"]} <= {"clean", "oversold"}, found
    assert found["verdict"] == "oversold" or (not found["complete"] and len(found["warnings"]) == 1), found
    for warning in found["warnings"]:
        assert warning.startswith("A request was silent for longer than ") and "for example after a pause before a retry" in warning, found


PREPARED = """
const { Client } = require("pg");
const { query } = Client.prototype;
Client.prototype.query = function (text, values, ...rest) {
  return values instanceof Array ? query.call(this, { name: `statement ${text.length}`, text, values }, ...rest) : query.call(this, text, values, ...rest);
};
"""


@pytest.mark.parametrize(("protection", "verdict"), [("naive", "oversold"), ("for-update", "clean")])
def test_prepared_statements(tmp_path, protection, verdict):
    """Only the first use on a connection has the text. JDBC prepares after five uses: test_explore_own.py."""
    sample_needs("node")
    (tmp_path / "prepared.js").write_text(PREPARED)
    start = ["node", "--require", str(tmp_path / "prepared.js"), str(SAMPLES / "node" / "shop.js")]
    found = is_complete(result(described(tmp_path, start=start), protection), verdict)
    if verdict == "oversold":
        texts = [step["text"] for step in found["counterexample"]["steps"] if step["actor"] == "B"]
        assert texts[0] == "SELECT count FROM product WHERE id = $1 [1]" and texts[-1] == "COMMIT", texts


@pytest.mark.long
def test_numbers_that_are_drawn_in_blocks(services):
    """Only some runs have a nextval, which is no step."""
    found = is_complete(result(services, "numbers-in-blocks"), "clean")
    assert found["schedules"] >= 4 and found["differed"] == 0, found


IDENTITY = "@GeneratedValue(strategy = GenerationType.IDENTITY)"
SEQUENCE = """@javax.persistence.SequenceGenerator(name = "ids", sequenceName = "order_item_id_seq")
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "ids")"""


@pytest.mark.long
@pytest.mark.parametrize(("protection", "verdict"), [("naive", "oversold"), ("lock", "clean")])
def test_hibernate_with_a_sequence(tmp_path, protection, verdict):
    framework_needs("spring")
    sample = SAMPLES / "jpa"
    text = (sample / "Shop.java").read_text(encoding="utf-8")
    assert IDENTITY in text
    (tmp_path / "Shop.java").write_text(text.replace(IDENTITY, SEQUENCE), encoding="utf-8")
    shop = json.loads((sample / "shop.json").read_text(encoding="utf-8"))
    is_complete(result(described(tmp_path, start=shop["start"], env=shop["env"], reset=shop["reset"]), protection), verdict)


# ---- connections ------------------------------------------------------------------------------------


@pytest.mark.long
def test_several_connections_of_a_request(services):
    found = is_complete(result(services, "two-connections"), "oversold")
    assert found["counterexample"]["sold"] == 2, found
    found = is_complete(result(services, "locked-by-another"), "clean")
    assert any("needs more than one connection at a time" in warning for warning in found["warnings"]), found


@pytest.mark.long
@pytest.mark.parametrize(("protection", "verdict"), [("at-once", "oversold"), ("at-once-right", "clean")])
def test_two_statements_at_once(services, protection, verdict):
    """They run one after the other, in the same sequence in each schedule; the output says that there are others."""
    found = result(services, protection)
    assert found["verdict"] == verdict and not found["complete"] and found["coverage"] == 1 and found["differed"] == 0, found
    assert any("at the same time" in warning and "max(id)" in warning for warning in found["warnings"]), found


@pytest.mark.long
def test_a_pool_too_small_for_several_connections(services):
    """Each has one connection and waits for another, without an end. Only a restart of the service helps, which explore does."""
    found = is_complete(result(services, "two-connections", "--env", "POOL=2"), "stuck")
    assert found["counterexample"]["sold"] == 0 and [row["verdict"] for row in found["rows"]] == ["stuck"], found


# ---- real servers -----------------------------------------------------------------------------------


@pytest.fixture
def real():
    """A PostgreSQL of the user that accepts logins with SCRAM only: its stack, and a database with the sample's tables."""
    stack = Stack()
    try:
        stack.up("postgres")
        assert psql(stack.admin_url, "SELECT DISTINCT auth_method FROM pg_hba_file_rules") == [["scram-sha-256"]]
        url = stack.database()
        psql(url, (SAMPLES / "schema.sql").read_text(encoding="utf-8"))
        yield stack, url
    finally:
        stack.down()


def with_tls(stack, access):
    """Gives the server a certificate, and lets only such connections in as ACCESS names: host or hostssl."""
    command = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.crt 2>/dev/null"
    hba = psql(stack.admin_url, "SHOW hba_file")[0][0]
    psql(stack.admin_url, f"COPY (SELECT) TO PROGRAM '{command}'")
    psql(stack.admin_url, "ALTER SYSTEM SET ssl = on")
    psql(stack.admin_url, f"COPY (SELECT '{access} all all all scram-sha-256') TO '{hba}'")
    psql(stack.admin_url, "SELECT pg_reload_conf()")


@pytest.mark.long
def test_a_real_server_with_tls_and_scram(real, tmp_path):
    """The service logs in through the gate, without TLS and so without channel binding; explore itself has both."""
    stack, url = real
    path = extended(tmp_path, SERVICES, database=url, schema=None)
    is_complete(result(path, "decrement"), "clean")
    with_tls(stack, "host")
    assert psql(url, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == [["t"]]
    is_complete(result(path, "decrement"), "clean")


@pytest.mark.long
def test_a_real_server_that_insists_on_tls(real, tmp_path):
    stack, url = real
    with_tls(stack, "hostssl")
    for changed, words in [
        (url, "cannot be used through the gate, which has no TLS"),
        (url + "?sslmode=require", "says sslmode=require, and the gate of explore has no TLS"),
        (url + "?channel_binding=require", "says channel_binding=require, and the gate of explore has no TLS"),
    ]:
        ran = explore(extended(tmp_path, SERVICES, database=changed, schema=None), "decrement")
        assert ran.returncode == 3 and f'"database" {words}' in ran.stderr, ran.stderr
        assert urlsplit(url).password not in ran.stderr and ran.stderr.count("\n") <= 2, ran.stderr
