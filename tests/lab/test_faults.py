"""Things broken under orders: a quick cut of `loadtest faults`, and that it sees what it must see."""

import json
import os
import subprocess

import pytest
from test_loadtest import BUILD, LOADTEST, ROOT, loadtest, nothing_is_left_of

PROMISES = {f"I{number}" for number in range(1, 9)}
# A few of each kind of lock, so that a cycle is short.
FEW = (
    "read-write,select-for-update,atomic-decrement,batched,redis-stock,lock-row,lock-table,redis-setnx-forever,redis-lock,"
    "redis-fenced,redlock,zookeeper,zookeeper-fenced,etcd,etcd-fenced"
)


def faults(*arguments, status=0, seconds=3600):
    ran = loadtest("faults", *arguments, "--format", "json", seconds=seconds)
    assert ran.returncode == status, ran.stdout + ran.stderr
    document = json.loads(ran.stdout)
    assert document["version"] == 1 and document["kind"] == "faults"
    return {(row["fault"], row["strategy"]): row for row in document["rows"]}


def check(rows):
    """Whatever was broken: nobody was told of an order that is not there, or got two for one key."""
    for row in rows.values():
        assert set(row["judged_by"].split()) <= PROMISES, row
        assert row["verdict"] == ("caught-as-expected" if row["expected"] == "caught" else "ok"), row
        assert row["cycles"] > 0 and row["acknowledged"] > 0, row
        assert row["duplicated"] == row["denied"] == row["wrong_answers"] == row["amounts_wrong"] == 0, row
        if row["fault"] != "reset-beside":  # a reset deletes orders
            assert row["acknowledged"] <= row["orders"] + row["lost"], row
        assert row["orders"] <= row["acknowledged"] - row["lost"] + row["unclear"], row
        if row["guarantee"] == "safe":
            assert (row["oversold"], row["drift"], row["disordered"], row["turned_away"]) == (0, 0, 0, 0), row
        if row["guarantee"] in ("while-lease-holds", "one-process") and "I1" in row["judged_by"]:
            assert row["overlaps"] == 0, row
        if row["fault"] != "redis-loses":
            assert row["lost"] == 0, row


def caught(rows, fault):
    return {strategy for at, strategy in rows if at == fault and rows[at, strategy]["expected"] == "caught"}


@pytest.mark.long
def test_a_strategy_that_no_fault_tries_is_named():
    ran = loadtest("faults", "--faults", "redis-restart", "--strategies", "atomic-statement", "--cycles", "1")
    assert (ran.returncode, ran.stdout) == (3, ""), ran.stdout + ran.stderr
    assert "no fault of 'redis-restart' is tried with a strategy of 'atomic-statement'" in ran.stderr, ran.stderr


@pytest.mark.long
def test_a_service_that_is_killed_and_one_that_sleeps(tmp_path):
    path = tmp_path / "faults.json"
    rows = faults("--faults", "kill,pause", "--strategies", FEW, "--cycles", "2", "--export-json", path)
    check(rows)
    assert caught(rows, "kill") == {"redis-setnx-forever"}
    assert caught(rows, "pause") == {"lock-table", "redis-lock", "redlock", "zookeeper", "etcd"}
    assert rows["pause", "redis-lock"]["oversold"] >= 1
    assert rows["pause", "redis-lock"]["overlaps"] >= 1 and rows["pause", "lock-row"]["overlaps"] == 0
    assert rows["kill", "redis-lock"]["sections"] > 0 and rows["kill", "select-for-update"]["sections"] == 0
    for strategy in ("redis-lock", "redis-fenced", "redlock", "lock-table", "zookeeper", "etcd-fenced"):
        row = rows["kill", strategy]
        assert "I4" in row["judged_by"] and row["struck"] > 0, row
    again = loadtest("report", path, "--format", "markdown")
    assert "caught-as-expected" in again.stdout and "judged by" in again.stdout, again.stdout + again.stderr


@pytest.mark.long
def test_servers_that_die():
    rows = faults(
        "--faults", "postgres-immediate,disk-full,commit-reply,commit-late,redis-restart,redis-loses", "--strategies",
        "select-for-update,atomic-statement,batched,redis-stock,redis-lock,redis-fenced,redlock", "--cycles", "1",
    )  # fmt: skip
    check(rows)
    assert caught(rows, "redis-restart") == {"redis-lock"}
    assert ("redis-restart", "atomic-statement") not in rows and ("redis-restart", "batched") in rows
    assert rows["redis-loses", "redis-stock"]["lost"] > 0
    for fault in ("postgres-immediate", "disk-full"):
        assert rows[fault, "atomic-statement"]["longest_outage_ms"] > 0
        cycles = rows[fault, "atomic-statement"]["each_cycle"]  # more than one, if the fault did not meet every strategy at once
        assert cycles
        for cycle in cycles:
            assert cycle["repaired_ms"] > 0 and cycle["outage_from_ms"] >= 0 and not cycle["stuck"], cycle
        assert sum(row["refused"] for (of, _), row in rows.items() if of == fault) > 0


@pytest.mark.long
def test_clocks_that_jump():
    rows = faults(
        "--faults", "clock-redis,clock-redlock,clock-service", "--strategies",
        "redis-lock,redis-fenced,redlock,lock-table,etcd", "--cycles", "1",
    )  # fmt: skip
    check(rows)
    assert caught(rows, "clock-redis") == {"redis-lock"}
    assert caught(rows, "clock-redlock") == {"redlock"}
    assert caught(rows, "clock-service") == {"lock-table"}


@pytest.fixture
def private_programs(tmp_path):
    """The programs, installed in a folder that only its owner can enter; and the environment to run them in. When root runs
    the tests, the private servers run as other users, who cannot read anything there."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("OVERSELL_") and name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR")}
    subprocess.run(["make", "-s", "-o", "programs", "install", f"BUILD={BUILD}", f"PREFIX={private}"], cwd=ROOT, check=True,
                   env=environment, stdin=subprocess.DEVNULL, timeout=120)
    return private / "bin", environment


@pytest.mark.long
@pytest.mark.parametrize("fault, own_tmpdir", [("disk-full", False), ("clock-redis", True)])
def test_servers_load_libraries_from_a_checkout_that_their_users_cannot_read(fault, own_tmpdir, private_programs):
    folder, environment = private_programs
    temporary = folder / "tmp"
    temporary.mkdir()
    if own_tmpdir:
        environment["TMPDIR"] = str(temporary)
    ran = subprocess.run([folder / "loadtest", "faults", "--faults", fault, "--strategies", "redis-lock",
                          "--cycles", "1", "--format", "json"], env=environment, cwd=folder, capture_output=True, text=True, timeout=600,
                         check=False, stdin=subprocess.DEVNULL)  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = {(row["fault"], row["strategy"]): row for row in json.loads(ran.stdout)["rows"]}
    check(rows)
    assert caught(rows, fault) == ({"redis-lock"} if fault == "clock-redis" else set())
    assert list(temporary.iterdir()) == []


@pytest.mark.long
def test_servers_of_locks_that_die_or_lose_their_holder():
    rows = faults(
        "--faults", "lock-backend,session,redis-failover,redlock-2-down,redlock-3-down,redlock-restart,zookeeper-restart,"
        "etcd-restart", "--strategies", "lock-row,redis-lock,redlock,zookeeper,etcd-fenced", "--cycles", "1",
    )  # fmt: skip
    check(rows)
    for fault, strategy in (("lock-backend", "lock-row"), ("session", "zookeeper"), ("redis-failover", "redis-lock"),
                            ("redlock-restart", "redlock")):  # fmt: skip
        assert caught(rows, fault) == {strategy}
    assert rows["redlock-3-down", "redlock"]["refused"] > 0  # in time: no answer was wrong


@pytest.mark.long
def test_a_service_that_is_told_to_end_and_a_backend_that_is_killed():
    rows = faults("--faults", "terminate,postgres-backend", "--strategies", "mutex,batched,redis-stock,etcd", "--cycles", "2")
    check(rows)


@pytest.mark.long
def test_a_product_that_another_process_resets_while_it_is_sold():
    """In the first six cycles it is reset, in the last two it is replaced."""
    rows = faults("--faults", "reset-beside", "--strategies", "select-for-update,check-constraint,optimistic,skip-locked,"
                  "redis-stock,redis-fenced,etcd-fenced,zookeeper,mutex,read-write", "--cycles", "8")  # fmt: skip
    check(rows)
    assert caught(rows, "reset-beside") == set()
    for strategy in ("redis-stock", "redis-fenced", "zookeeper", "mutex"):
        assert {"I1", "I2", "I3", "I7"} <= set(rows["reset-beside", strategy]["judged_by"].split())


@pytest.mark.long
def test_a_network_that_breaks():
    """Before PostgreSQL, Redis and the services: as many cycles as there are kinds of them."""
    rows = faults(
        "--faults", "delay,half-open,one-byte,cut", "--strategies", "atomic-decrement,batched,redis-lock,redis-fenced",
        "--cycles", "3",
    )  # fmt: skip
    check(rows)
    assert rows["half-open", "atomic-decrement"]["longest_outage_ms"] > 1000


@pytest.mark.long
def test_the_lock_test_prints_its_shares(tmp_path):
    path = tmp_path / "faults.json"
    rows = faults("--faults", "lock-test", "--strategies", "lock-row,redis-lock,redis-fenced", "--cycles", "1",
                  "--export-json", path)  # fmt: skip
    assert {strategy: row["verdict"] for (_, strategy), row in rows.items()} == {
        "lock-row": "ok", "redis-lock": "caught-as-expected", "redis-fenced": "ok"
    }  # fmt: skip
    row = rows["lock-test", "redis-lock"]
    printed = " ".join(loadtest("report", path).stdout.split())
    assert f"redis-lock: {row['lost']} of {row['acknowledged']} acknowledged updates lost" in printed
    assert "lost about 18 %" in printed


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--faults", "earthquake"], "unknown fault 'earthquake'"),
        (["--strategies", "hope"], "unknown strategy 'hope'"),
        (["--cycles", "-1"], "--cycles"),
        (["--export-json", "/nowhere/at/all"], "cannot write"),
    ],
)
def test_a_wrong_command_line(arguments, says):
    ran = loadtest("faults", *arguments, seconds=300)
    assert ran.returncode == 2 and says in ran.stderr, ran.stderr


def test_the_faults_are_listed():
    ran = loadtest("faults", "--faults", "help", seconds=300)
    assert ran.returncode == 0
    names = {line.split()[0] for line in ran.stdout.splitlines()}
    assert {"kill", "pause", "postgres-immediate", "disk-full", "commit-reply", "commit-late", "cut", "half-open",
            "redis-failover"} <= names  # fmt: skip


def test_a_service_that_cannot_be_run_is_no_result(tmp_path):
    """The environment's fault, and nothing is left behind."""
    broken = tmp_path / "order-service"
    broken.write_text("#!/bin/sh\necho no such thing\nexit 1\n")
    broken.chmod(0o755)
    ran = subprocess.Popen(
        [LOADTEST, "faults", "--faults", "kill", "--strategies", "atomic-decrement", "--cycles", "1"],
        env={**os.environ, "OVERSELL_SERVICE": str(broken)}, start_new_session=True, cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    out, errors = ran.communicate(timeout=1200)
    assert ran.returncode == 3, out + errors
    assert "no such thing" in errors
    nothing_is_left_of(ran.pid)
