"""`loadtest explore FILE.spec`: reports that agree with PostgreSQL's isolation tester, and the mistakes that users make."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from basics import START_S, wait_until
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


@pytest.mark.long
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
    assert psql(stack.url, "SELECT count(*) FROM pg_class WHERE relname = 't'") == [["0"]]


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


@pytest.mark.parametrize("name", ["race.sql", "race.txt"])
def test_a_text_that_is_no_specification(tmp_path, stack, name):
    path = tmp_path / name
    path.write_text("BEGIN;\nSELECT 1;\n")
    error = explore(path, status=2)
    assert f"{name}:1: expected 'session'" in error and "A specification is a text of blocks, such as session a" in error, error
    path.write_text((SPECS / "lost-update.spec").read_text())
    assert "lost-update" in explore(path, "--database", stack.url, status=1)


def test_braces_and_comments_in_sql(stack, spec):
    path = spec("""-- the stock of a product is JSON }
setup { CREATE TABLE p (j jsonb, a int[]); INSERT INTO p VALUES ('{"stock": 1}', '{1,2}'); -- don't stop here }
}
teardown { DROP TABLE p }
session s setup { BEGIN } step a { DO $$ BEGIN UPDATE p SET j = '{"stock": 0}'; END $$ } step c { COMMIT }
session t step b { SELECT j, a FROM p /* } */ }
""")
    found = search(path, "--database", stack.url)[1]
    assert found["serial"]["results"]["t"]["b"][0]["rows"][0][1] == "{1,2}" and found["serial"]["schedules"] == 3, found


def test_help_of_specifications():
    printed = explore("x.spec", "--help")
    assert printed.startswith("usage: loadtest explore "), printed


# ---- searches ---------------------------------------------------------------------------------------


def search(file, *arguments, status=0):
    """The result, and its rows by outcome."""
    document = json.loads(explore(file, *arguments, "--format", "json", status=status))
    return document, {row["outcome"]: row for row in document["rows"]}


# File: schedules, serial ones, the other outcome and its verdict. The schedules are all interleavings of the steps that can be
# reached: while a session waits, its next step cannot start.
SEARCHES = {
    "lost-update": (14, 2, "lost-update", "anomaly"),
    "lost-update-prevented": (14, 2, "serialization-failure", "ok"),
    "check-then-act": (6, 2, "non-repeatable-read", "anomaly"),
    "write-skew": (20, 2, "write-skew", "invariant-broken"),
    "deadlock": (12, 4, "deadlock", "ok"),
    "reads": (4, 3, "non-repeatable-read", "anomaly"),
    "phantom": (4, 3, "phantom", "anomaly"),
    "read-skew": (4, 3, "read-skew", "anomaly"),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_anomalies_are_found_and_named(stack, name):
    schedules, serial, outcome, verdict = SEARCHES[name]
    document, found = search(SPECS / f"{name}.spec", "--database", stack.url, status=int(verdict != "ok"))
    assert document["complete"] and document["schedules"] == schedules, document
    assert set(found) == {"serial", outcome}, found
    assert found["serial"]["schedules"] == serial and found["serial"]["verdict"] == "ok"
    assert found[outcome]["schedules"] == schedules - serial and found[outcome]["verdict"] == verdict
    assert found[outcome]["text"].endswith("."), found[outcome]


@pytest.mark.parametrize(
    ("name", "level", "outcome"),
    [
        ("write-skew", "SERIALIZABLE", "serialization-failure"),
        ("reads", "REPEATABLE READ", None),
        ("phantom", "REPEATABLE READ", None),
        ("read-skew", "REPEATABLE READ", None),
        ("lost-update", "SERIALIZABLE", "serialization-failure"),
    ],
)
def test_a_higher_isolation_level_prevents_the_anomaly(stack, spec, name, level, outcome):
    text = re.sub(r"ISOLATION LEVEL [A-Z ]+;", f"ISOLATION LEVEL {level};", (SPECS / f"{name}.spec").read_text())
    _, found = search(spec(text), "--database", stack.url)
    assert set(found) == {"serial"} | ({outcome} if outcome else set()), found


# ---- schedules that need not run ---------------------------------------------------------------------


def same_with_all(path, stack):
    """All that the search says with its reduction is what it says without. Returns that, with how many schedules it ran of how many."""
    documents = []
    for how in ("tables", "none"):
        ran = loadtest("explore", str(path), "--database", stack.url, "--all", "--reduce", how, "--format", "json", seconds=START_S * 5)
        assert ran.stdout, ran.stderr
        documents.append(json.loads(ran.stdout) | {"status": ran.returncode})
    reduced, whole = documents
    for name in ("status", "rows", "schedules", "outcomes", "complete", "coverage", "serial_orders", "warnings", "undivided_step"):
        assert reduced[name] == whole[name], (name, reduced[name], whole[name])
    assert whole["run"] == whole["schedules"], whole
    return reduced


@pytest.mark.parametrize("name", SEARCHES)
def test_a_reduced_search_says_the_same(stack, name):
    found = same_with_all(SPECS / f"{name}.spec", stack)
    assert found["schedules"] == SEARCHES[name][0] >= found["run"], found


def test_steps_that_touch_other_tables(stack):
    found = same_with_all(SPECS / "far-apart.spec", stack)
    assert found["run"] * 10 < found["schedules"], found
    said = explore(SPECS / "far-apart.spec", "--database", stack.url, status=1)
    assert f"{found['run']} of the {found['schedules']} schedules were run." in said, said


# Steps whose texts name different tables and which meet all the same: what the database has, the steps of both sessions, and how many outcomes
# there are. A search that does not know it runs one of the two sequences and misses an outcome.
MEETINGS = {
    "trigger": (
        """CREATE TABLE a (n int); CREATE TABLE b (n int);
           CREATE FUNCTION copy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO b VALUES (1); RETURN new; END $$;
           CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION copy()""",
        "INSERT INTO a VALUES (1)", "SELECT count(*) FROM b", 2),
    "foreign-key": ("CREATE TABLE a (n int PRIMARY KEY); INSERT INTO a VALUES (1); CREATE TABLE b (n int REFERENCES a ON DELETE CASCADE); INSERT INTO b VALUES (1)",
                    "DELETE FROM a", "SELECT count(*) FROM b", 2),
    "foreign-key-of-a-parent": ("CREATE TABLE a (n int PRIMARY KEY); CREATE TABLE b (n int REFERENCES a)",
                                "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)", 2),
    "function": ("""CREATE TABLE a (n int); INSERT INTO a VALUES (1);
                    CREATE FUNCTION take() RETURNS void LANGUAGE sql AS 'UPDATE a SET n = 0'""",
                 "SELECT take()", "SELECT n FROM a", 2),
    "sequence": ("CREATE SEQUENCE a MINVALUE 0 START 1 MAXVALUE 1", "SELECT nextval('a') > 0", "SELECT nextval('a') > 0", 2),
    "view": ("CREATE TABLE a (n int); CREATE VIEW b AS SELECT count(*) FROM a", "INSERT INTO a VALUES (1)", "SELECT * FROM b", 2),
    "partition": ("CREATE TABLE a (n int); CREATE TABLE b () INHERITS (a)", "INSERT INTO b VALUES (1)", "SELECT count(*) FROM a", 2),
    "unique-index": ("CREATE TABLE a (n int UNIQUE)", "INSERT INTO a VALUES (1) ON CONFLICT DO NOTHING RETURNING n",
                     "INSERT INTO a VALUES (1) ON CONFLICT DO NOTHING RETURNING n", 2),
    "unique-expression": ("CREATE TABLE a (id serial, n int); CREATE UNIQUE INDEX i ON a ((n % 10))",
                          "INSERT INTO a (n) VALUES (1) ON CONFLICT DO NOTHING RETURNING n",
                          "INSERT INTO a (n) VALUES (11) ON CONFLICT DO NOTHING RETURNING n", 2),
}  # fmt: skip


@pytest.mark.parametrize("kind", MEETINGS)
def test_what_the_database_ties_together(stack, spec, kind):
    setup, one, other, outcomes = MEETINGS[kind]
    path = spec(f"""setup {{ CREATE SCHEMA tied; SET search_path = tied; {setup} }}
teardown {{ DROP SCHEMA tied CASCADE }}
session s setup {{ SET search_path = tied }} step a {{ {one} }}
session t setup {{ SET search_path = tied }} step b {{ {other} }}
""")
    found = same_with_all(path, stack)
    assert found["outcomes"] == outcomes and found["schedules"] == found["run"] == 2, found


# ---- what a search shows -----------------------------------------------------------------------------


def test_an_anomaly_replays(stack):
    """The schedule that the search names shows the same results again, in columns and as JSON."""
    path = SPECS / "lost-update.spec"
    row = search(path, "--database", stack.url, status=1)[1]["lost-update"]
    for _ in range(3):
        replayed = json.loads(explore(path, "--database", stack.url, "--replay", row["schedule"], "--format", "json"))["rows"][0]
        results = {event["step"]: event["results"] for event in replayed["events"] if event["event"] in ("step", "completed")}
        assert results == {step: result for session in row["results"].values() for step, result in session.items()}
    printed = explore(path, "--database", stack.url, "--replay", row["schedule"])
    lines = printed.splitlines()
    assert lines[1] == row["schedule"] and re.fullmatch("s1 {40,}s2", lines[3]), printed
    assert printed.count("→ units = 10") == 2 and printed.count("→ COMMIT") == 2, printed


def test_a_search_shows_who_waits(stack):
    printed = explore(SPECS / "deadlock.spec", "--database", stack.url)
    assert "→ waits for s1" in printed and "→ waits for s2" in printed and "→ ERROR: deadlock detected" in printed, printed


def test_a_session_that_never_releases_its_lock(stack, spec):
    path = spec("""setup { CREATE TABLE t (n int); INSERT INTO t VALUES (1) }
teardown { DROP TABLE t }
session s step a { BEGIN; UPDATE t SET n = 2; }
session t step b { UPDATE t SET n = 3; }
""")
    found = search(path, "--database", stack.url, status=1)[1]
    assert found["stuck"]["schedule"] == "a b", found


TABLE = "setup { CREATE TABLE t (n int); INSERT INTO t VALUES (1) }\nteardown { DROP TABLE t }\n"

# Nothing waits for its time limit where no step can end the wait: steps, setups and teardowns. What is said, and the exit status.
WAITS = {
    "the shown schedule is stuck": (
        TABLE + "session a setup { BEGIN } step a { UPDATE t SET n = 2 }\nsession b setup { BEGIN } step b { UPDATE t SET n = 3 }",
        r"stuck: Step . of . waits for the lock of a row of t, which is held by .\. No session has a step left", 1),
    "two numbers": (
        TABLE + "session a step a { SELECT pg_advisory_lock(-1, 2) }\nsession b step b { SELECT pg_advisory_lock(-1, 2) }",
        r"stuck: Step . of . waits for advisory lock \(-1, 2\), which is held by .\.", 1),
    "COPY": (
        TABLE + "session a step a { BEGIN; COPY t FROM STDIN; }\nsession b step b { SELECT n FROM t }",
        r"f\.spec:3: step a cannot run: COPY from or to the client is not supported\. Use INSERT or SELECT", 3),
    "COPY in a permutation": (
        TABLE + "session a step a { BEGIN; COPY t FROM STDIN; }\npermutation a",
        r"f\.spec:3: step a cannot run: COPY from or to the client is not supported", 3),
    "a setup waits": (
        TABLE + "session a setup { BEGIN; UPDATE t SET n = 2 } step a { COMMIT }\nsession b setup { UPDATE t SET n = 3 } step b { COMMIT }",
        r"f\.spec:4: the setup of session b waits for the lock of a row of t, which is held by a\. Release the lock", 3),
    "a teardown waits": (
        TABLE + "session a step a { SELECT n FROM t } teardown { UPDATE t SET n = 3 }\nsession b step b { BEGIN; UPDATE t SET n = 2 }",
        r"f\.spec:3: the teardown of session a waits for the lock of a row of t, which is held by b\.", 3),
    "a lock of the setup": (
        TABLE.replace("CREATE", "SELECT pg_advisory_lock(7); CREATE") + "session a step a { SELECT pg_advisory_lock(7) }\nsession b step b { SELECT 1 }",
        r"no other session runs: Step a of a waits for advisory lock 7, which is held by the setup of the file\.", 3),
    "a transaction of the setup": (
        TABLE.replace("CREATE", "BEGIN; CREATE") + "session a step a { SELECT 1 }\nsession b step b { SELECT 1 }",
        r"f\.spec:1: the setup leaves a transaction open, so no session sees what it wrote\. Add COMMIT", 3),
}  # fmt: skip


@pytest.mark.parametrize("name", WAITS)
def test_no_wait_that_nothing_can_end(stack, spec, name):
    text, said, status = WAITS[name]
    began = time.monotonic()
    printed = re.sub(r"\s+", " ", explore(spec(text), "--database", stack.url, status=status))
    assert re.search(said, printed), printed
    assert time.monotonic() - began < 15, "it takes a second, and the limits are 10 to 60 s"
    assert psql(stack.url, "SELECT count(*) FROM pg_class WHERE relname = 't'") == [["0"]]


@pytest.mark.long
def test_a_long_step_says_when_it_is_cancelled(stack, spec):
    path = spec("session s step a { SELECT pg_sleep(30) }\nsession t step b { SELECT 1 }\n")
    error = explore(path, "--database", stack.url, "--step-time", "6s", status=3)
    assert "f.spec:1: step a still runs after 5 s, and no session of the file blocks it. The command cancels it after 6000 ms" in error, error


def test_limits_and_samples(stack):
    path = SPECS / "write-skew.spec"
    for arguments, schedules in ((("--limit", "5", "--reduce", "none"), 5), (("--sample", "7", "--seed", "3"), 7), (("--bound", "0"), 2)):
        document, found = search(path, "--database", stack.url, *arguments, status=int("--bound" not in arguments))
        assert document["schedules"] == schedules and not document["complete"], document
        assert sum(row["schedules"] for row in found.values()) == schedules


def test_results_that_are_different_each_time_are_refused(stack, spec):
    path = spec("session s step a { SELECT clock_timestamp() }\nsession t step b { SELECT 1 }\n")
    error = explore(path, "--database", stack.url, status=3)
    assert "give different results. Select only values that depend on the schedule" in error, error
    assert re.search(r"In step a, column clock_timestamp: '20.+' in one, and '20.+' in the other\.", error), error


@pytest.mark.parametrize(
    ("column", "made"),
    [
        ("at timestamptz DEFAULT date_trunc('milliseconds', CAST('now' AS text)::timestamptz)", ""),
        ("at uuid", "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$BEGIN new.at := gen_random_uuid(); RETURN new; END$f$;"),
        ("at timestamptz", "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$BEGIN new.at := clock_timestamp(); RETURN new; END$f$;"),
    ],
)  # fmt: skip
def test_a_column_with_a_different_value_each_time_is_named(stack, spec, column, made):
    trigger = "CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();" if made else ""
    path = spec(f"setup {{ CREATE TABLE orders (who text, {column}); {made} {trigger} }}\n"
                f"teardown {{ DROP TABLE orders; DROP FUNCTION IF EXISTS f; }}\n"
                "session s setup { BEGIN } step a { INSERT INTO orders (who) VALUES ('s') } step b { COMMIT }\nsession t step c { SELECT 1 }\n")
    error = explore(path, "--database", stack.url, status=3)
    assert re.search("In table orders, column at: .+ in one, and .+ in the other", error), error


def test_a_difference_names_table_column_and_values(stack, spec):
    found = search(SPECS / "lost-update.spec", "--database", stack.url, status=1)[1]
    assert "In step r2, column units: 10 here, and 9 in the serial execution s1 s2." in found["lost-update"]["text"], found
    path = spec("""setup { CREATE TABLE t (id int, n int); INSERT INTO t VALUES (1, 1), (2, 1) }
teardown { DROP TABLE t }
session s setup { BEGIN ISOLATION LEVEL REPEATABLE READ } step a { UPDATE t SET n = (SELECT sum(n) FROM t) WHERE id = 1 } step b { COMMIT }
session u setup { BEGIN ISOLATION LEVEL REPEATABLE READ } step c { UPDATE t SET n = (SELECT sum(n) FROM t) WHERE id = 2 } step d { COMMIT }
""")
    found = search(path, "--database", stack.url, status=1)[1]
    assert "In table t, column n: 2 here, and 3 in the serial execution" in found["not-serializable"]["text"], found


@pytest.mark.parametrize("permutation", [
    "step d { DO $$ BEGIN RAISE NOTICE '%', chr(27); RAISE EXCEPTION '%', chr(27) || chr(155); END $$ } permutation a c b d", "",
])  # fmt: skip
@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json"])
def test_nothing_in_a_row_controls_the_terminal(stack, spec, form, permutation):
    """Rows, names, errors and notices with escape sequences, of one byte and of two."""
    path = spec("""setup { CREATE TABLE t (id int, n text); INSERT INTO t VALUES (1, chr(27) || '[2J') }
teardown { DROP TABLE t }
session s step a { SELECT n, n AS "\033[31m" FROM t } step b { UPDATE t SET n = chr(155) || '31m' }
session "u\033[1m" step c { UPDATE t SET n = n || chr(8) }
%s
""" % permutation)  # fmt: skip
    ran = loadtest("explore", str(path), "--database", stack.url, "--format", form, seconds=START_S * 5)
    printed = ran.stdout + ran.stderr
    assert ran.returncode in (0, 1, 3), printed
    assert not set(printed) & set("\033\b\a" + "\x9b" * (form != "json")), printed  # JSON has U+009B as it is
    assert form != "table" or "\\x1B" in printed, printed
    assert form != "json" or "\\u001b" in printed.lower(), printed


@pytest.mark.parametrize("begin", ["", "x"])
def test_a_difference_of_long_texts(stack, spec, begin):
    """The values in the text are cut, and at some byte of a character that has two."""
    path = spec("""setup { CREATE TABLE t (id int, n text); INSERT INTO t VALUES (1, '%s') }
teardown { DROP TABLE t }
session s step a { SELECT n FROM t } step b { UPDATE t SET n = '%s' || repeat('é', 100) }
session u step c { UPDATE t SET n = n || 'c' }
""" % (begin + "ä" * 100, begin))  # fmt: skip
    document = json.loads(explore(path, "--database", stack.url, "--all", "--format", "json", status=1))
    assert any("ä" in row["text"] for row in document["rows"]), document


def test_numbers_of_sequences_are_not_compared(stack, spec):
    path = spec("""setup { CREATE TABLE o (id serial, at timestamptz DEFAULT now(), n int) }
teardown { DROP TABLE o }
session s step a { INSERT INTO o (n) VALUES (1) }
session t step b { INSERT INTO o (n) VALUES (2) }
""")
    assert set(search(path, "--database", stack.url)[1]) == {"serial"}


HEADERS = """setup {{ CREATE TABLE o (id {kind} PRIMARY KEY, who varchar(9)); CREATE TABLE line (o_id int, who varchar(9)); }}
teardown {{ DROP TABLE line, o; }}
session a step head_a {{ INSERT INTO o (who) VALUES ('{a}') }} step line_a {{ INSERT INTO line {line_a} }}
session b step head_b {{ INSERT INTO o (who) VALUES ('{b}') }} step line_b {{ INSERT INTO line {line_b} }}
"""


def headers(kind, line, a="a", b="b"):
    return HEADERS.format(kind=kind, a=a, b=b, line_a=line % a, line_b=line % b)


@pytest.mark.parametrize("kind", ["serial", "int GENERATED ALWAYS AS IDENTITY", "bigint GENERATED BY DEFAULT AS IDENTITY (INCREMENT BY 10)"])
def test_a_number_that_is_used_elsewhere(stack, spec, kind):
    """Whose number is the smaller one does not matter, and whose line is attached to which header does."""
    right = headers(kind, "VALUES (currval('o_id_seq'), '%s')")
    found = search(spec(right), "--database", stack.url)[1]
    assert set(found) == {"serial"} and found["serial"]["schedules"] == 6
    assert sorted(found["serial"]["tables"])[-1][1].strip("()").split(",")[0] in ("1", "2", "11"), found["serial"]["tables"]
    for b in ("b", "a"):  # also if the two headers look alike
        wrong = headers(kind, "SELECT max(id), '%s' FROM o", b=b)
        found = search(spec(wrong), "--database", stack.url, status=1)[1]
        assert set(found) == {"serial", "not-serializable"} and found["serial"]["schedules"] == 2, (b, found)


@pytest.mark.long
def test_a_number_that_is_used_elsewhere_on_mariadb(mariadb, spec):
    found = search(spec(headers("int AUTO_INCREMENT", "VALUES (LAST_INSERT_ID(), '%s')")), "--database", mariadb)[1]
    assert set(found) == {"serial"} and found["serial"]["schedules"] == 6
    for b in ("b", "a"):
        found = search(spec(headers("int AUTO_INCREMENT", "SELECT max(id), '%s' FROM o", b=b)), "--database", mariadb, status=1)[1]
        assert found["serial"]["schedules"] == 2, (b, found)


def test_sql_that_depends_on_a_number(stack, spec):
    """The update of the row with number 1 finds it, as it does without us."""
    path = spec("""setup { CREATE TABLE o (id serial, paid int) }
teardown { DROP TABLE o }
session s step a { INSERT INTO o (paid) VALUES (0) } step b { UPDATE o SET paid = paid + 1 WHERE id = 1 }
session t step c { INSERT INTO o (paid) VALUES (0) }
""")
    document, found = search(path, "--database", stack.url)
    assert any("were not compared. The SQL depends on the values of these numbers" in text for text in document["warnings"]), document
    assert found["serial"]["results"]["s"]["b"] == [{"command": "UPDATE 1"}], found
    path.write_text(path.read_text().replace("serial", "smallserial"))
    document, found = search(path, "--database", stack.url)
    assert any("were not compared. A sequence of the setup cannot count" in text for text in document["warnings"]), document


def test_sequences_that_were_there_before_stay_as_they_are(stack, spec):
    psql(stack.url, "CREATE TABLE mine (id serial, n int); INSERT INTO mine (n) VALUES (1)")
    try:
        path = spec("setup { DELETE FROM mine; CREATE TABLE o (id serial, n int) }\nteardown { DROP TABLE o }\n"
                    "session s step a { INSERT INTO o (n) VALUES (1) }\nsession t step b { INSERT INTO mine (n) VALUES (1) }")
        search(path, "--database", stack.url)
        assert 1 < int(psql(stack.url, "SELECT last_value FROM mine_id_seq")[0][0]) < 1000
    finally:
        psql(stack.url, "DROP TABLE mine")


@pytest.mark.long
def test_a_private_server_is_started_and_stopped():
    document, found = search(SPECS / "lost-update.spec", status=1)
    assert document["schedules"] == 14 and "lost-update" in found


def test_nothing_is_left_after_a_failure(stack, spec):
    path = spec("""setup { CREATE TABLE left_over (n int) }
teardown { DROP TABLE left_over }
session s step a { SELECT pg_sleep(30) }
session t step b { SELECT 1 }
""")
    error = explore(path, "--database", stack.url, "--step-time", "300ms", status=3)
    assert "step a did not end within 300 ms" in error, error
    assert psql(stack.url, "SELECT count(*) FROM pg_class WHERE relname = 'left_over'") == [["0"]]


@pytest.mark.parametrize("permutation", ["", "permutation a b"])
def test_an_interrupt_cancels_the_step_and_runs_the_teardown(stack, spec, permutation):
    path = spec(f"""setup {{ CREATE TABLE left_over (n int) }}
teardown {{ DROP TABLE left_over }}
session s step a {{ SELECT pg_sleep(600) }}
session t step b {{ SELECT 1 }}
{permutation}
""")
    run = subprocess.Popen([LOADTEST, "explore", path, "--database", stack.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: psql(stack.url, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%'"
                                           " AND wait_event = 'PgSleep'") == [["1"]], "the step runs", START_S)  # fmt: skip
        run.send_signal(signal.SIGINT)
        printed = run.communicate(timeout=START_S)
        assert run.returncode == 128 + signal.SIGINT, printed
    finally:
        run.kill()
        run.wait()
    assert psql(stack.url, "SELECT count(*) FROM pg_class WHERE relname = 'left_over'") == [["0"]]


def test_stored_results_print_again(stack, tmp_path):
    for name, status in (("write-skew", 1), ("permutations", 0)):
        stored = tmp_path / f"{name}.json"
        explore(SPECS / f"{name}.spec", "--database", stack.url, "--output", str(stored), "--format", "json", status=status)
        ran = loadtest("report", str(stored), seconds=START_S)
        assert f"{name}.spec: " in ran.stdout and "verdict" in ran.stdout, ran.stdout + ran.stderr


# ---- MariaDB ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mariadb():
    """The address of a private MariaDB."""
    if not shutil.which("mariadb-install-db"):
        assert not os.environ.get("CI"), "mariadb-server is not there: .ci/run has to install it"
        pytest.skip("mariadb-server is not installed: make deps-test")
    stack = Stack()
    try:
        stack.run("up", "--dir", str(stack.servers), "--while", str(os.getpid()), "mariadb")
        printed = stack.run("env", "--dir", str(stack.servers))
        yield re.search("^export MARIADB_URL=(.*)$", printed, re.MULTILINE)[1]
    finally:
        stack.down()


# On MariaDB: the outcomes at a level.
LEVELS = [
    ("lost-update", "REPEATABLE READ", {"serial": 2, "lost-update": 12}),
    ("snapshot-isolation", "REPEATABLE READ", {"serial": 2, "serialization-failure": 12}),
    ("dirty-read", "READ UNCOMMITTED", {"serial": 4, "dirty-read": 2}),
    ("dirty-read", "READ COMMITTED", {"serial": 6}),
]


@pytest.mark.parametrize(("name", "level", "outcomes"), LEVELS)
def test_anomalies_of_mariadb(mariadb, spec, name, level, outcomes):
    text = (SPECS / "mariadb" / f"{name}.spec").read_text().replace("READ UNCOMMITTED;", f"{level};")
    _, found = search(spec(text), "--database", mariadb, status=int(bool(outcomes.keys() - {"serial", "serialization-failure"})))
    assert {outcome: row["schedules"] for outcome, row in found.items()} == outcomes


def test_locks_of_mariadb(mariadb):
    """Row locks, named locks, a deadlock: who waits for whom, and what each step returns."""
    rows = json.loads(explore(SPECS / "mariadb" / "waits.spec", "--database", mariadb, "--format", "json"))["rows"]
    assert [(row["waits"], row["errors"]) for row in rows] == [(1, 0), (2, 1), (1, 1)]
    waits = [event for row in rows for event in row["events"] if event["event"] == "waiting"]
    assert [(event["step"], event["for"]) for event in waits] == [("lock2", ["s1"]), ("named2", []), ("wrong2", []), ("lock2", ["s1"])]
    ends = {event["step"]: event["results"] for event in rows[0]["events"] if event["event"] == "completed"}
    assert ends == {"lock2": [{"columns": ["units"], "rows": [["9"]]}, {"columns": ["second result"], "rows": [["second result"]]}]}
    error = next(event["results"][0] for event in rows[2]["events"] if event.get("step") == "other1")
    assert (error["code"], error["number"]) == ("40P01", 1213)


def test_a_deadlock_ends_a_session_of_mariadb(mariadb, spec):
    """InnoDB rolls back and says no more: the session's later steps would run outside of a transaction."""
    text = (SPECS / "deadlock.spec").read_text()
    _, found = search(spec(text), "--database", mariadb)
    assert set(found) == {"serial", "deadlock"}, found
    assert "c1" in found["deadlock"]["schedule"].split() or "c2" in found["deadlock"]["schedule"].split()


@pytest.mark.long
def test_a_private_mariadb_is_started_and_stopped(mariadb):
    document, _ = search(SPECS / "mariadb" / "lost-update.spec", "--database", "mariadb", status=1)
    assert document["schedules"] == 14


def test_addresses_of_mariadb_that_cannot_be_used(mariadb, spec):
    path = spec("session s step a {}\npermutation a")
    assert "cannot connect to MariaDB: Can't connect" in explore(path, "--database", "mariadb://127.0.0.1:1/x", status=3)
    assert "cannot connect to MariaDB: Access denied" in explore(path, "--database", re.sub(":[0-9a-f]+@", ":wrong@", mariadb), status=3)
