"""`loadtest explore FILE.spec`: reports that agree with PostgreSQL's isolation tester, and the mistakes that users make."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from basics import START_S
from servers import Stack, psql
from test_loadtest import LOADTEST, loadtest

ROOT = Path(__file__).resolve().parents[2]
SPECS = ROOT / "tests" / "lab" / "specs"
TESTER = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/lib/pgxs/src/test/isolation/isolationtester"))), None)


@pytest.fixture(scope="module")
def stack():
    stack = Stack()
    try:
        stack.up("postgres")
        yield stack
    finally:
        stack.down()


def explore(file, *arguments, status=0):
    """What the command prints: its result, or what it says of a mistake."""
    ran = loadtest("explore", str(file), *arguments, seconds=START_S * 5)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout if status < 2 else ran.stderr


@pytest.fixture
def spec(tmp_path):
    """Writes a specification; returns its path."""

    def write(text):
        path = tmp_path / "f.spec"
        path.write_text(text)
        return path

    return write


# ---- permutations -----------------------------------------------------------------------------------


def test_reports_agree_with_the_isolation_tester(stack):
    """Waiting, values, errors, notices and markers: the same text. The folder's other files leave the choice of schedules to us."""
    if not TESTER:
        assert not os.environ.get("CI"), "the isolation tester is not there: .ci/run has to install it"
        pytest.skip("the isolation tester is not installed: make deps-test")
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / "isolation" / "compare", SPECS / "permutations.spec"],
        env=os.environ | {"DATABASE_URL": stack.admin_url, "ISOLATIONTESTER": str(TESTER), "LOADTEST": str(LOADTEST)},
        capture_output=True, text=True, timeout=START_S * 5, check=False, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines() == ["permutations: agrees", "1 of 1 specifications agree"]


def test_a_report_as_json(stack):
    rows = json.loads(explore(SPECS / "permutations.spec", "--database", stack.url, "--format", "json"))["rows"]
    assert [row["permutation"] for row in rows][:1] == ["lock1 lock2 write1 commit1"]
    assert [(row["waits"], row["errors"], row["verdict"]) for row in rows] == [
        (1, 0, "ok"), (0, 2, "ok"), (2, 0, "ok"), (2, 0, "ok"), (2, 0, "ok"), (0, 0, "ok"),
    ]  # fmt: skip
    events = rows[0]["events"]
    waits = next(event for event in events if event["event"] == "waiting")
    assert (waits["step"], waits["for"]) == ("lock2", ["s1"])
    end = next(event for event in events if event["event"] == "completed")
    assert (end["step"], end["results"]) == ("lock2", [{"columns": ["units"], "rows": [["9"]]}])
    notices = [event["text"] for event in rows[3]["events"] if event["event"] == "notice"]
    assert notices[:2] == ["NOTICE:  first\n", "NOTICE:  second\n"]


def test_a_broken_invariant_of_a_permutation_fails(stack, spec):
    path = spec("""setup { CREATE TABLE t (n int); INSERT INTO t VALUES (1) }
teardown { DROP TABLE t }
invariant { SELECT n > 0 FROM t }
session s step a { UPDATE t SET n = n - 1 } step b { SELECT n FROM t }
permutation b
permutation a b
""")
    printed = explore(path, "--database", stack.url, status=1)
    assert printed.count("invariant broken: SELECT n > 0 FROM t") == 1, printed
    rows = json.loads(explore(path, "--database", stack.url, "--format", "json", status=1))["rows"]
    assert [row["verdict"] for row in rows] == ["ok", "invariant-broken"]
    assert psql(stack.url, "SELECT to_regclass('t')") == [[""]] or psql(stack.url, "SELECT to_regclass('t')") == []


# ---- mistakes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said", "status"),
    [
        ("session s step a {}\npermutation b", "f.spec:2: no session has a step 'b'", 2),
        ("session s", "f.spec:1: the file ends where a step of the session should follow", 2),
        ("setup {}\nsetup { SELECT wrong }\nsession s step a {}\npermutation a", 'f.spec:2: the setup failed: column "wrong" does not', 3),
        ("session s setup { SELECT wrong }\nstep a {}\npermutation a", "f.spec:1: the setup of session s failed", 3),
        ("session s step a { COPY pg_class TO STDOUT }\npermutation a a", "COPY from or to the client is not supported", 3),
    ],
)  # fmt: skip
def test_mistakes_in_a_file(stack, spec, text, said, status):
    error = explore(spec(text), "--database", stack.url, "--step-time", "1s", status=status)
    assert said in error, error


def test_a_step_that_does_not_end_is_cancelled(stack, spec):
    path = spec("session s step a { SELECT pg_advisory_lock(1) } teardown { SELECT pg_advisory_unlock_all() }\n"
                "session t step b { SELECT pg_advisory_lock(1) }\npermutation a b")
    printed = explore(path, "--database", stack.url, "--step-time", "500ms")
    assert "step b was cancelled after 500 ms" in printed and "ERROR:  canceling statement due to user request" in printed, printed


def test_a_server_that_is_not_there(spec):
    error = explore(spec("session s step a {}\npermutation a"), "--database", "postgresql://127.0.0.1:1/x", status=3)
    assert "cannot connect to PostgreSQL: " in error and "Start the server, or correct --database" in error, error


def test_a_file_that_is_not_there():
    assert "nothing.spec cannot be read: No such file" in explore("nothing.spec", status=2)


def test_help_of_specifications():
    printed = explore("x.spec", "--help")
    assert printed.startswith("usage: loadtest explore "), printed
