"""The gate in front of PostgreSQL changes nothing but time: the same traffic with and without it, and what is no traffic at all."""

import contextlib
import os
import re
import socket
import struct
import subprocess
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from basics import BUILD, START_S, wait_until
from servers import Stack, with_port
from test_check import MODULES, sample_needs

CONNECTIONS = 64  # GATE_CONNECTIONS
FILE_MB = 24


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL, as the parts of its address."""
    stack = Stack()
    try:
        stack.up("postgres")
        yield urlsplit(stack.url)
    finally:
        stack.down()


@contextlib.contextmanager
def gate(server, *options):
    """The port of a gate in front of SERVER, and the process."""
    with subprocess.Popen([BUILD / "gatealone", "postgresql", server.hostname, str(server.port), *options], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
        try:
            yield int(process.stdout.readline()), process
        finally:
            process.stdin.close()
            assert process.wait(timeout=START_S) == 0, process.stderr.read()


@pytest.fixture(params=["passes", "hold"])
def two(request, server):
    """The server's own address, and that of a gate which holds each statement for a moment or lets all pass."""
    with gate(server, *[request.param][request.param == "passes" :]) as (port, _):
        yield server.geturl(), with_port(server.geturl(), port)


def psql(url, script, **options):
    ran = subprocess.run(["psql", "-X", "-v", "VERBOSITY=verbose", "-v", "SHOW_CONTEXT=always", *options.get("arguments", ()), url], input=script,
                         capture_output=True, text=True, timeout=START_S * 5, check=False)  # fmt: skip
    return ran.returncode, *(re.sub(r"(PID |port |lo_import |lo_unlink )\d+", r"\1…", text) for text in (ran.stdout, ran.stderr))


SCRIPTS = {
    "queries": "SELECT 1; SELECT NULL, '', 'a\nb'; SELECT 1\\; SELECT 2\\; SELECT 3;\n\\gset\nVALUES (1), (2);\n",
    "errors": "SELECT 1/0; SELEC 1; SELECT * FROM nowhere; DO $$ BEGIN RAISE NOTICE 'a %', 1; RAISE WARNING 'b'; END $$;"
    " BEGIN; SELECT 1/0; SELECT 1; ROLLBACK; SELECT 1\\; SELECT 1/0\\; SELECT 2;\n",
    "notifications": "LISTEN a; NOTIFY a, 'text'; SELECT pg_notify('a', 'more');\n",
    "copy": "CREATE TEMP TABLE t (a int, b text);\nCOPY t FROM STDIN;\n1\tone\n2\t\\N\n\\.\nCOPY t TO STDOUT (FORMAT csv);\nCOPY t FROM STDIN;\nx\ty\n\\.\n"
    "SELECT count(*) FROM t;\nCOPY (SELECT * FROM generate_series(1, 30000)) TO STDOUT;\n",
    "large": f"SELECT g, repeat(md5(g::text), 32) FROM generate_series(1, {FILE_MB} * 1000) g;\nSELECT length(repeat('x', 7000000));\nSELECT repeat('x', 7000000);\n",
    "cursors": "BEGIN; DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 10); FETCH 3 FROM c; FETCH ALL FROM c; COMMIT;\n\\set FETCH_COUNT 100\nSELECT * FROM generate_series(1, 1000);\n",
    "large objects": "\\lo_import /etc/passwd 'x'\n\\lo_unlink :LASTOID\n",
    "settings": "SET application_name = 'x'; SHOW application_name; SET SESSION TIME ZONE 'Asia/Tokyo'; SET client_encoding = latin1; SELECT 'é';\n",
}


@pytest.mark.long
@pytest.mark.parametrize("script", SCRIPTS)
def test_psql_prints_the_same(two, script):
    own, gated = (psql(url, SCRIPTS[script]) for url in two)
    assert gated == own
    assert own[1].strip(), "it printed something"


def test_a_cancel_request_reaches_the_server(two):
    for url in two:
        with subprocess.Popen(["psql", "-X", url, "-c", "SELECT 'waits' FROM pg_sleep(3600)"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:  # fmt: skip
            busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3600)%' AND wait_event = 'PgSleep' AND pid <> pg_backend_pid()"
            wait_until(lambda: psql(two[0], busy, arguments=["-A", "-t"])[1].strip() == "1", "the statement runs")
            process.send_signal(2)
            assert "canceling statement due to user request" in process.communicate(timeout=START_S)[1]


@pytest.mark.long
@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench_does_the_same(two, mode, tmp_path):
    """One client and a fixed seed: the rows that it leaves are the same. The second script is a pipeline."""
    piped = tmp_path / "piped.sql"
    piped.write_text("\\startpipeline\nSELECT 1;\nINSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (1, 1, 1, 1);\nSELECT 2;\n\\endpipeline\n")
    left = []
    for url in two:
        env = os.environ | {"PGOPTIONS": "-c client_min_messages=error"}
        runs = [["-i", "-s", "1", "--no-vacuum"], ["-t", "200", "-n", "--random-seed=7", "-M", mode]]
        runs += [["-t", "50", "-n", "-M", mode, "-f", piped]] if mode != "simple" else []
        for arguments in runs:
            ran = subprocess.run(["pgbench", *arguments, url], env=env, capture_output=True, text=True, timeout=START_S * 5, check=False)
            assert ran.returncode == 0, ran.stderr
        left.append(psql(two[0], "SELECT count(*), sum(delta), sum(aid) FROM pgbench_history; SELECT sum(abalance), sum(aid * abalance) FROM pgbench_accounts;"))
    psql(two[0], "DROP TABLE pgbench_history, pgbench_accounts, pgbench_branches, pgbench_tellers")
    assert left[0] == left[1] and left[0][1].strip(), left


def test_psycopg2_gets_the_same(two):
    sample_needs("python")
    import psycopg2

    got = []
    for url in two:
        with contextlib.closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
            cursor.execute("CREATE TEMP TABLE t (a int, b bytea)")
            cursor.executemany("INSERT INTO t VALUES (%s, %s)", [(i, bytes(range(256))) for i in range(100)])
            cursor.execute("SELECT a, b FROM t ORDER BY a")
            rows = [(a, bytes(b)) for a, b in cursor.fetchall()]
            with connection.cursor("named") as named:
                named.execute("SELECT generate_series(1, 5000)")
                rows += named.fetchall()
            got.append(rows)
    assert got[0] == got[1]


NODE = """
const { Client } = require("pg");
(async () => {
  const client = new Client({ connectionString: process.argv[1] });
  await client.connect();
  const out = [];
  const ask = async (query) => { try { out.push((await client.query(query)).rows); } catch (error) { out.push([error.code, error.message]); } };
  await ask("SELECT 1 AS a; SELECT 2 AS b");
  await ask({ text: "SELECT $1::text AS t, $2::int AS n", values: ["é", 7] });
  for (let i = 0; i < 3; i++) await ask({ name: "again", text: "SELECT $1::int + 1 AS n", values: [i] });
  await ask({ text: "SELECT $1::bytea AS b", values: [Buffer.from([0, 1, 255])] });
  await ask("SELECT 1/0");
  await Promise.all([1, 2, 3].map((n) => ask({ text: "SELECT $1::int AS n", values: [n] })));
  await client.end();
  console.log(JSON.stringify(out));
})();
"""


def test_node_postgres_gets_the_same(two):
    sample_needs("node")
    env = {"NODE_PATH": MODULES} | os.environ
    own, gated = (subprocess.run(["node", "-e", NODE, url], env=env, capture_output=True, text=True, timeout=START_S, check=False) for url in two)
    assert own.returncode == 0 and (gated.returncode, gated.stdout, gated.stderr) == (0, own.stdout, own.stderr), gated.stderr


JAVA = """
import java.sql.*;
class Same {
    public static void main(String[] args) throws Exception {
        try (Connection c = DriverManager.getConnection(args[0])) {
            c.setAutoCommit(false);
            try (Statement s = c.createStatement()) { s.execute("CREATE TEMP TABLE t (a int, b text)"); }
            try (PreparedStatement p = c.prepareStatement("INSERT INTO t VALUES (?, ?)")) {
                for (int i = 0; i < 50; i++) { p.setInt(1, i); p.setString(2, "é" + i); p.addBatch(); }
                System.out.println(p.executeBatch().length);
            }
            for (int i = 0; i < 8; i++)
                try (PreparedStatement p = c.prepareStatement("SELECT a, b, a::numeric / 3 FROM t WHERE a > ? ORDER BY a")) {
                    p.setInt(1, i); p.setFetchSize(7);
                    try (ResultSet r = p.executeQuery()) { while (r.next()) System.out.println(r.getInt(1) + r.getString(2) + r.getBigDecimal(3)); }
                }
            c.commit();
            try (Statement s = c.createStatement()) { s.execute("SELECT 1/0"); } catch (SQLException e) { System.out.println(e.getSQLState()); }
        }
    }
}
"""


@pytest.mark.long
def test_jdbc_gets_the_same(two, tmp_path):
    """Batches, server-side prepared statements after five executions, rows in binary and in portions."""
    sample_needs("java")
    (tmp_path / "Same.java").write_text(JAVA)
    ran = []
    for url in map(urlsplit, two):
        jdbc = f"jdbc:postgresql://{url.hostname}:{url.port}{url.path}?user={unquote(url.username)}&password={unquote(url.password or '')}"
        ran.append(subprocess.run(["java", "-cp", "/usr/share/java/postgresql.jar", tmp_path / "Same.java", jdbc], capture_output=True, text=True,
                                  timeout=START_S * 5, check=False))  # fmt: skip
    assert ran[0].returncode == 0, ran[0].stderr
    assert (ran[1].returncode, ran[1].stdout) == (0, ran[0].stdout), ran[1].stderr


def test_a_socket_in_a_folder(server):
    """The server may listen there only."""
    folder = psql(server.geturl(), "SHOW unix_socket_directories", arguments=["-A", "-t"])[1].split(",")[0].strip()
    if not folder or not Path(folder, f".s.PGSQL.{server.port}").exists():
        pytest.skip("the private PostgreSQL has no socket in a folder")
    with gate(server._replace(netloc=f"x@{folder}:{server.port}")) as (port, _):
        assert psql(with_port(server.geturl(), port), "SELECT 1")[0] == 0


# ---- what is no traffic -----------------------------------------------------------------------------


def answers(url):
    """Another connection still gets its answer."""
    return psql(url, "SELECT 'well'", arguments=["-A", "-t"])[1].strip() == "well"


def memory_mib(process):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1]) / 1024


STARTUP = struct.pack(">II", 8, 196608)
GARBAGE = {
    "nothing": b"",
    "half a length": b"\0\0",
    "a length of zero": b"\0\0\0\0\0\0\0\0",
    "a length beyond all": b"\x7f\xff\xff\xff\0\3\0\0",
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a wrong message": struct.pack(">II", 9, 196608) + b"\0" + b"Q\0\0\0\1",
    "half a message": struct.pack(">II", 9, 196608) + b"\0" + b"Q\0\0\1\0SELECT",
    "a message beyond all": struct.pack(">II", 9, 196608) + b"\0" + b"Q\x7f\xff\xff\xffSELECT",
    "only TLS": struct.pack(">II", 8, 80877103),
}


@pytest.mark.parametrize("sent", GARBAGE)
def test_what_is_no_message_ends_one_connection_only(server, sent):
    with gate(server) as (port, process):
        connections = [socket.create_connection(("127.0.0.1", port), timeout=START_S) for _ in range(8)]
        for connection in connections:
            connection.sendall(GARBAGE[sent])
            connection.shutdown(socket.SHUT_WR)
        for connection in connections:
            with contextlib.suppress(ConnectionResetError):
                while connection.recv(65536):
                    pass
            connection.close()
        assert answers(with_port(server.geturl(), port))
        assert memory_mib(process) < 64


def test_a_client_that_leaves_at_each_byte(server):
    """Of a whole conversation, cut after each of its bytes."""
    parts = {"user": unquote(server.username), "database": server.path[1:]}
    body = b"".join(key.encode() + b"\0" + value.encode() + b"\0" for key, value in parts.items()) + b"\0"
    whole = struct.pack(">II", 8 + len(body), 196608) + body + b"p\0\0\0\5\0Q\0\0\0\rSELECT 1\0X\0\0\0\4"
    with gate(server) as (port, process):
        for count in range(len(whole)):
            with socket.create_connection(("127.0.0.1", port), timeout=START_S) as connection:
                connection.sendall(whole[:count])
        assert answers(with_port(server.geturl(), port))
        assert memory_mib(process) < 64


def test_too_many_connections_are_refused_politely(server):
    """The gate takes 64. 10,000 more are told so, and the others are not disturbed."""
    with gate(server) as (port, process):
        url = with_port(server.geturl(), port)
        taken = [socket.create_connection(("127.0.0.1", port), timeout=START_S) for _ in range(CONNECTIONS)]
        wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/fd")) >= 2 * CONNECTIONS, "the gate has taken them")
        status, _, error = psql(url + "?sslmode=disable", "SELECT 1")
        assert status == 2 and "too many connections to the gate" in error, error
        told = []

        def knock():
            for _ in range(1250):
                with socket.create_connection(("127.0.0.1", port), timeout=START_S) as connection:
                    told.append(connection.recv(4096))

        threads = [threading.Thread(target=knock) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(told) == 10000 and all(b"C53300" in answer for answer in told)
        assert memory_mib(process) < 64
        for connection in taken:
            connection.close()
        wait_until(lambda: answers(url), "there is room again")
        process.stdin.close()
        assert "make its pool smaller" in process.stderr.read()


def test_a_slow_reader_stops_nobody_else(server):
    """It does not read its large result. The gate waits with it, and needs no more memory than its bound."""
    sample_needs("python")
    import psycopg2

    with gate(server) as (port, process):
        url = with_port(server.geturl(), port)
        with contextlib.closing(psycopg2.connect(url)) as slow:
            sleeper = subprocess.Popen(["psql", "-X", "-q", url, "-c", "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 64000)) TO STDOUT"],
                                       stdout=subprocess.PIPE)  # fmt: skip
            try:
                os.read(sleeper.stdout.fileno(), 1)  # it has begun, and is read no further
                for _ in range(20):
                    assert answers(url)
                    assert memory_mib(process) < 96
                assert len(sleeper.stdout.read()) == 64000 * 1001 - 1, "nothing of it is lost"
                assert sleeper.wait(timeout=START_S) == 0
            finally:
                sleeper.kill()
                sleeper.wait()
            slow.cursor().execute("SELECT 1")


def test_a_client_that_wants_tls_is_refused(server):
    with gate(server) as (port, _):
        status, _, error = psql(with_port(server.geturl(), port) + "?sslmode=require", "SELECT 1")
    assert status == 2 and "does not support SSL" in error, error
