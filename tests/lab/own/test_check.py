"""`loadtest check` and `loadtest init`: the verdict on each sample, and the sentence for each mistake that a user can make."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree
from pathlib import Path

import jsonschema
import pytest
from basics import START_S, wait_until
from length import short_only
from test_loadtest import LOADTEST, children_of, loadtest, nothing_is_left_of

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "samples" / "own"
SCHEMA = json.loads((ROOT / "docs" / "shop.schema.json").read_text())
MODULES = f"{os.environ.get('BUILD', ROOT / 'build')}/peers/modules/usr/share/nodejs:/usr/share/nodejs"


def needs(program, *arguments, packages, **environment):
    """Skips the test where a sample cannot run; in CI that is an error."""
    try:
        ran = subprocess.run([program, *arguments], env=os.environ | environment, capture_output=True, timeout=START_S, check=False)
        found = ran.returncode == 0
    except FileNotFoundError:
        found = False
    if not found:
        assert not os.environ.get("CI"), f"{packages} is not there: .ci/run has to install it"
        pytest.skip(f"{packages} is not installed: make deps-test deps-peers")


def sample_needs(language):
    if language == "python":
        needs("/usr/bin/python3", "-c", "import psycopg2", packages="python3-psycopg2")
    elif language == "node":
        needs("node", "-e", "require('pg')", packages="node-pg", NODE_PATH=os.environ.get("NODE_PATH", MODULES))
    else:
        needs("javac", "--version", packages="default-jdk-headless")
        needs("test", "-e", "/usr/share/java/postgresql.jar", packages="libpostgresql-jdbc-java")


def check(file, *arguments, status=0, **environment):
    ran = loadtest("check", file, *arguments, "--format", "json", seconds=START_S * 5, **environment)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return json.loads(ran.stdout)["rows"] if status < 2 else ran.stderr


# ---- the samples ------------------------------------------------------------------------------------

# Protection, instances, further variables: the verdict.
VERDICTS = [
    ("naive", 1, (), "oversold"),
    ("for-update", 2, (), "clean"),
    ("statement", 2, (), "clean"),
    ("decrement", 2, ("POOL=0",), "clean"),
    ("synchronized", 1, ("POOL=1",), "clean"),
    ("synchronized", 2, (), "oversold"),
    ("redis-lock", 2, ("LEASE_MS=60000",), "clean"),
    ("redis-setnx", 1, ("LEASE_MS=60000",), "clean"),
    ("redis-fenced", 2, ("LEASE_MS=60000",), "clean"),
    ("redis-setnx", 1, ("LEASE_MS=1",), "oversold"),
]
OTHERS = [(language, *case) for language in ("node", "java") for case in VERDICTS]
CASES = [("python", *case) for case in VERDICTS] + short_only([case for case in OTHERS if case[1] in ("naive", "statement")], OTHERS)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(map(str, case)))
def test_the_verdict_on_a_sample(case):
    """SETNX with an expiry breaks only when the lease ends too early, which load shows if the lease is shorter than an order."""
    language, protection, instances, variables, verdict = case
    sample_needs(language)
    environment = [word for variable in [f"PROTECTION={protection}", *variables] for word in ("--env", variable)]
    rows = check(SAMPLES / language / "shop.json", "--instances", str(instances), *environment, status=int(verdict != "clean"),
                 NODE_PATH=os.environ.get("NODE_PATH", MODULES))  # fmt: skip
    row = rows[0]
    assert row["verdict"] == verdict, row
    if verdict == "clean":
        assert (row["sold"], row["left"], row["oversold"], row["drift"], row["lost"], row["unacknowledged"]) == (100, 0, 0, 0, 0, 0), row
        assert row["statuses"] == "201 × 100, 409 × 300" and row["latency_ms"]["p99"] >= row["latency_ms"]["p50"] > 0, row
    else:
        assert row["oversold"] == row["sold"] - 100 > 0 and row["drift"] > 0, row


def test_samples_follow_the_schema():
    for file in SAMPLES.glob("*/shop.json"):
        jsonschema.validate(json.loads(file.read_text()), SCHEMA)


# ---- services that are wrong in one way -------------------------------------------------------------

FAKE = '''
import itertools, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import psycopg2
mode, numbers, sales = os.environ["MODE"], itertools.count(1), itertools.count(1)
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200)
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        number = next(numbers)
        if mode == "tires" and number > 101:
            open("tired", "w").close()
            time.sleep(3600)
        if mode == "silent" or mode == "hang" and number > 1:
            time.sleep(3600)
        if mode == "die" and number > 5:
            print("the fake gives up", flush=True)
            os._exit(7)
        connection = psycopg2.connect(os.environ["DATABASE_URL"])
        with connection, connection.cursor() as cursor:
            cursor.execute("UPDATE product SET count = count - 1 WHERE id = 1 AND count > 0")
            sold = cursor.rowcount
            loses = mode == "lose" and sold and next(sales) % 10 == 0
            if sold and mode != "drift" and not loses:
                cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (1, 1)")
            if loses:
                connection.rollback()
        connection.close()
        self.reply((200 if mode == "deny" and number == 1 else 409 if mode == "deny" else 201) if sold else 409)
    def reply(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
'''


@pytest.fixture
def fake(tmp_path):
    """Writes a description of a fake service, with CHANGES to its members (None removes one), and returns its path."""
    needs("/usr/bin/python3", "-c", "import psycopg2", packages="python3-psycopg2")

    def write(mode="right", **changes):
        (tmp_path / "fake.py").write_text(FAKE)
        shop = {
            "start": ["/usr/bin/python3", "fake.py", "{port}"],
            "env": {"MODE": mode, "DATABASE_URL": "{postgres}"},
            "schema": str(SAMPLES / "schema.sql"),
            "reset": ["DELETE FROM order_item", "UPDATE product SET count = {stock} WHERE id = 1"],
            "request": {"url": "http://127.0.0.1:{port}/orders", "body": {"n": "{request}"}},
            "stock": "SELECT count FROM product WHERE id = 1",
            "sold": "SELECT count(*) FROM order_item",
            **changes,
        }
        path = tmp_path / "shop.json"
        path.write_text(json.dumps({name: value for name, value in shop.items() if value is not None}, indent=1))
        return path

    return write


@pytest.mark.long
def test_a_right_service_and_every_format(fake, tmp_path):
    """Three runs, more of the service's processes than the one that was started, and JUnit's XML."""
    path = fake(start=["sh", "-c", "sleep 3600 & exec /usr/bin/python3 fake.py {port}"])
    files = {kind: tmp_path / f"result.{kind}" for kind in ("csv", "html", "markdown", "junit", "table")}
    exports = [word for kind, file in files.items() for word in (f"--export-{kind}", file)]
    with subprocess.Popen([LOADTEST, "check", path, "--repeat", "3", "--stock", "20", "--format", "json", *exports], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, start_new_session=True) as process:  # fmt: skip
        out, errors = process.communicate(timeout=START_S * 5)
    assert process.returncode == 0, out + errors
    nothing_is_left_of(process.pid)
    document = json.loads(out)
    assert [(row["run"], row["sold"], row["verdict"]) for row in document["rows"]] == [(run, 20, "clean") for run in (1, 2, 3)]
    assert (document["settings"]["stock"], document["settings"]["requests"]) == (20, 80)
    suite = xml.etree.ElementTree.parse(files["junit"]).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("3", "0")
    assert [case.get("name") for case in suite.findall("testcase")] == ["run 1", "run 2", "run 3"]
    assert files["csv"].read_text().startswith("run,sold,left,oversold,drift,lost,")
    assert "All runs are clean" in files["table"].read_text() and "clean" in files["html"].read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("mode", "changes", "verdict", "note"),
    [
        ("drift", {}, "drift", "the stock went down more than was sold"),
        ("lose", {}, "answers-lost", "that \"sold\" does not count. Every answer with 2xx counts as sold"),
        ("deny", {}, "answers-lost", "sold by requests that were refused"),
        ("right", {"invariant": ["SELECT true", "SELECT count > 0 FROM product"]}, "invariant-broken", "SELECT count > 0 FROM product"),
    ],
)  # fmt: skip
def test_what_else_is_found(fake, tmp_path, mode, changes, verdict, note):
    junit = tmp_path / "junit.xml"
    ran = loadtest("check", fake(mode, **changes), "--stock", "20", "--export-junit", junit, "--export-json", tmp_path / "result.json")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert verdict in ran.stdout and note in re.sub(r"\s+", " ", ran.stdout), ran.stdout
    assert xml.etree.ElementTree.parse(junit).getroot().find("testsuite/testcase/failure").get("message") == verdict
    again = loadtest("report", tmp_path / "result.json", "--format", "csv")
    assert again.returncode == 0 and f",{verdict}\r\n" in again.stdout.replace("\n", "\r\n").replace("\r\r", "\r"), again.stdout


# ---- what answers mean -------------------------------------------------------------------------------

CASES_FOLDER = ROOT / "tests" / "lab" / "cases"
HAS_ERRORS = {"status": 200, "has": "/data/checkoutComplete/errors"}
THANKS, CART = ({"status": 303, "location": path} for path in ("/thanks", "/cart?error=sold-out"))


@pytest.fixture
def answering(tmp_path):
    """Copies a service that answers in the way NAME, with MEMBERS of its description, and returns the path of that."""
    needs("/usr/bin/python3", "-c", "import psycopg2", packages="python3-psycopg2")

    def write(name, **members):
        for folder in ("common", "40-service-http"):
            shutil.copytree(CASES_FOLDER / folder, tmp_path / folder, dirs_exist_ok=True)
        path = tmp_path / "40-service-http" / f"{name}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | members, indent=1))
        return path

    return write


ANSWERS = {
    "graphql": [{"sold": [{"status": 200, "has": "/data/checkoutComplete/order/id"}], "refused": [HAS_ERRORS]}, {"refused": [HAS_ERRORS]}],
    "redirect": [{"sold": [THANKS], "refused": [CART]}],
}


@pytest.mark.long
@pytest.mark.parametrize(("name", "answers"), [(name, answers) for name in ANSWERS for answers in ANSWERS[name]])
def test_success_by_content(answering, name, answers):
    """The right service is clean, and the other one is not, in both commands."""
    for safe, verdict in (("1", "clean"), ("0", "oversold")):
        path = answering(name, answers=answers)
        row = check(path, "--env", f"SAFE={safe}", status=int(safe == "0"))[0]
        assert row["verdict"] == verdict and (safe == "0" or (row["acknowledged"], row["sold_out"]) == (100, 300)), row
        ran = loadtest("explore", path, "--env", f"SAFE={safe}", seconds=START_S * 5)
        assert ran.returncode == int(safe == "0") and verdict in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.long
@pytest.mark.parametrize(("name", "item"), [("graphql", json.dumps(HAS_ERRORS)), ("redirect", json.dumps(THANKS)), ("async", '202 to "accepted"')])
def test_an_answer_without_a_meaning_is_no_verdict(answering, name, item):
    """The file does not say which of the answers mean sold: the sentence has what to add, and nobody is blamed."""
    path = answering(name)
    assert f"Add {item}" in check(path, status=3)
    ran = loadtest("explore", path, seconds=START_S * 5)
    assert ran.returncode == 3 and (name == "async" or f"Add {item}" in ran.stderr), ran.stdout + ran.stderr


@pytest.mark.long
def test_accepted_orders_are_waited_for(answering):
    settled = "SELECT count = 0 FROM product"
    row = check(answering("async", answers={"accepted": [202]}, settled=settled), "--stock", "1", "--requests", "20")[0]
    assert (row["verdict"], row["sold"], row["accepted"], row["acknowledged"]) == ("clean", 1, 20, 0), row
    path = answering("async", answers={"accepted": [202]}, settled="SELECT false", settle_timeout_ms=200)
    assert '"settled" is not true 200 ms after the last answer' in check(path, status=3)
    ran = loadtest("explore", path)
    assert ran.returncode == 2 and "Use loadtest check" in ran.stderr, ran.stderr


@pytest.mark.long
def test_buyers_turned_away_and_failing_requests(fake):
    """The rows are those of the service; --allow makes them clean, with a note."""
    flows = CASES_FOLDER / "42-service-flows" / "serializable-noretry.json"
    away = CASES_FOLDER / "26-openevent-false-sold-out" / "shop.json"
    assert check(away, status=1)[0]["verdict"] == "turned-away"
    ran = loadtest("check", away, "--allow", "turned-away", seconds=START_S * 5)
    assert ran.returncode == 0 and "although buyers were refused" in re.sub(r"\s+", " ", ran.stdout), ran.stdout + ran.stderr
    assert check(flows, status=1)[0]["verdict"] == "failing"
    ran = loadtest("check", flows, "--allow", "failing", seconds=START_S * 5)
    assert ran.returncode == 0 and "more than 5 % of all answers" in re.sub(r"\s+", " ", ran.stdout), ran.stdout + ran.stderr
    for options, status, verdict in (((), 1, "turned-away"), (("--allow", "turned-away"), 0, "clean")):
        ran = loadtest("explore", away, "--stock", "2", *options, seconds=START_S * 5)
        assert ran.returncode == status and verdict in ran.stdout, ran.stdout + ran.stderr
    ran = loadtest("explore", flows, seconds=START_S * 5)
    assert ran.returncode == 1 and "failing" in ran.stdout and "503" in ran.stdout, ran.stdout + ran.stderr
    assert "--allow takes turned-away or failing" in check(fake(), "--allow", "oversold", status=2)


# ---- dumps ------------------------------------------------------------------------------------------

DUMP = """\\restrict abc
SET statement_timeout = 0;
SET transaction_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);

CREATE FUNCTION public.f() RETURNS integer LANGUAGE sql
    BEGIN ATOMIC
 SELECT 1;
 SELECT CASE WHEN true THEN 2 END;
END;
CREATE TABLE public.product (
    id integer NOT NULL,
    count integer NOT NULL
);
CREATE TABLE public.order_item (product_id integer, quantity integer, note text);
COPY public.product (id, count) FROM stdin;
1\t7
\\.

COPY public.order_item (product_id, quantity, note) FROM stdin;
1\t1\tit's; \\N
1\t1\t\\N
\\.
\\unrestrict abc
"""  # of pg_dump 17, with an SQL function and quotation marks in the rows


def test_a_dump_is_loaded(fake, tmp_path):
    (tmp_path / "dump.sql").write_text(DUMP)
    path = fake(schema="dump.sql", invariant=["SELECT f() = 2"])
    assert check(path, "--stock", "20")[0]["verdict"] == "clean"


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("    count integer", "    count integr", 'dump.sql:13: type "integr" does not exist. Correct the SQL'),
        ("1\t7", "1\tx", "dump.sql:17: invalid input syntax"),
        ("1\t7", "1\t7\t9", "dump.sql:17: extra data after last expected column"),
        ("SET statement", "\\connect shop\nSET statement", r"a command of psql at .*dump.sql:2: \\connect shop. Make the dump without --create"),
        ("SET statement", "\\i other.sql\nSET statement", r"a command of psql at .*dump.sql:2: \\i other.sql. Remove it"),
        ("COPY", "ALTER TABLE public.product OWNER TO ann;\nCOPY", 'dump.sql:16: role "ann" does not exist. Make the dump with --no-owner'),
    ],
)  # fmt: skip
def test_an_error_in_a_dump_has_its_line(fake, tmp_path, old, new, sentence):
    (tmp_path / "dump.sql").write_text(DUMP.replace(old, new, 1))
    errors = check(fake(schema="dump.sql"), status=3)
    assert re.search(sentence, errors), errors


# ---- mistakes ---------------------------------------------------------------------------------------

HOLE = "postgresql://nobody:secret@127.0.0.1:1/nothing"
MISTAKES = {
    "ends": ("right", {"start": ["sh", "-c", "echo no such table; exit 4"]}, '"start" has ended (exit status 4)', "no such table"),
    "missing": ("right", {"start": ["no-such-program"]}, '"start" has ended (exit status 127)', "cannot run no-such-program"),
    "never ready": ("right", {"start": ["sleep", "3600"], "start_timeout_ms": 300}, "took longer than 300 ms", "nothing listens"),
    "not ready": ("right", {"ready": "http://127.0.0.1:{port}/x", "start": ["/usr/bin/python3", "-m", "http.server", "{port}"], "start_timeout_ms": 5000},
                  "took longer than 5000 ms", '"ready" was answered with 404'),
    "SQL of stock": ("right", {"stock": "SELECT n FROM prduct"}, '"stock" fails', 'relation "prduct" does not exist'),
    "SQL of reset": ("right", {"reset": ["DELETE FROM order_item", "UPDATE product"]}, '"reset[1]" fails', "syntax error"),
    "SQL of schema": ("right", {"schema": "fake.py"}, '"schema" fails at', "fake.py:2: syntax error"),
    "no rows": ("right", {"stock": "SELECT count FROM product WHERE id = 2"}, '"stock" gives 0 rows', "one value"),
    "NULL": ("right", {"sold": "SELECT sum(quantity) FROM order_item"}, '"sold" gives NULL', "coalesce"),
    "no number": ("right", {"stock": "SELECT 'many'"}, "'many', which is not a whole number", '"stock"'),
    "no truth": ("right", {"invariant": "SELECT 7"}, "neither true nor false", '"invariant[0]"'),
    "no stock": ("right", {"reset": "UPDATE product SET count = 0"}, '"stock" is 0 after "reset"', "nothing to sell"),
    "wrong request": ("right", {"request": {"method": "PUT", "url": "http://127.0.0.1:{port}/", "body": 1}}, '"request" was answered with 501', "not with 2xx"),
    "always sold out": ("right", {"stock": "SELECT 5", "reset": "UPDATE product SET count = 0"}, "sold out, although", '"request"'),
    "database away": ("right", {"database": HOLE, "schema": None}, '"database" cannot be used', "Start PostgreSQL"),
    "no answer": ("silent", {"timeout_ms": 400}, '"request" was not answered', "timeout_ms is 400"),
    "stops answering": ("hang", {"timeout_ms": 400}, "times in a row", "timeout_ms"),
    "dies": ("die", {}, '"start" has ended (exit status 7)', "the fake gives up"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(fake, mistake):
    """It ends by itself, says the file and the line, and shows no password."""
    mode, changes, *sentences = MISTAKES[mistake]
    errors = check(fake(mode, **changes), "--stock", "20", status=3)
    for sentence in sentences:
        assert sentence in errors, errors
    assert re.search(r"shop\.json:\d+: ", errors) and "secret" not in errors, errors


def test_a_certificate_that_is_not_trusted(answering):
    """It is said at once: nothing that the service does later can help."""
    path = answering("redirect", env={"PORT": "{port}", "DATABASE_URL": "{postgres}", "MODE": "https"}, request={"url": "https://127.0.0.1:{port}/buy"})
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(made, cwd=path.parent, check=True, capture_output=True, timeout=START_S)
    began = time.monotonic()
    errors = check(path, status=3)
    assert "request.url" in errors and "certificate" in errors and "http://" in errors, errors
    assert time.monotonic() - began < 50, errors  # start_timeout_ms is 60000


@pytest.mark.parametrize(
    ("changes", "arguments", "sentence"),
    [
        ({"stok": "x"}, [], r'shop.json:\d+: "stok" is unknown'),
        ({"stock": None}, [], r'the member "stock" is missing'),
        ({"request": {"url": "http://127.0.0.1:8080/"}}, ["--instances", "2"], r'"request.url" has no \{port\}'),
        ({"start": None, "env": None, "schema": None, "database": HOLE, "request": {"url": "http://127.0.0.1:1/"}}, ["--instances", "2"], 'no "start"'),
        ({}, ["--env", "NAME"], "valid: NAME=VALUE"),
        ({}, ["--stock", "0"], "--stock"),
        ({}, ["--export-json", "/nowhere/at/all"], "cannot write"),
    ],
)  # fmt: skip
def test_a_wrong_file_or_command_line(fake, changes, arguments, sentence):
    errors = check(fake(**changes), *arguments, status=2)
    assert re.search(sentence, errors), errors


@pytest.mark.long
@pytest.mark.parametrize("ends", [False, True])
def test_what_a_service_has_started_is_stopped_as_well(fake, tmp_path, ends):
    """A process that ignores SIGTERM, started by a shell that becomes the service, or that ends at once."""
    note = tmp_path / "pid"
    child = f"sh -c 'trap \"\" TERM; echo $$ >{note}; while :; do sleep 1; done' & while [ ! -s {note} ]; do sleep 0.01; done; "
    path = fake(start=["/bin/sh", "-c", child + ("exit 3" if ends else "exec /usr/bin/python3 fake.py {port}")])
    check(path, "--stock", "10", status=3 if ends else 0)
    wait_until(lambda: not Path(f"/proc/{note.read_text().strip()}").exists(), "what the service started has ended")


def test_junit_of_other_results(tmp_path):
    """Every stored result can be printed for continuous integration: what fails, what was skipped, and names that XML reads as markup."""
    document = json.loads((ROOT / "docs" / "results" / "compare.json").read_text())
    document["rows"] = document["rows"][:4]
    document["rows"][1]["verdict"] = "broken"
    document["rows"][2] |= {"verdict": "unavailable", "strategy": 'no <server> & "none" \x01'}
    (tmp_path / "result.json").write_text(json.dumps(document))
    ran = loadtest("report", tmp_path / "result.json", "--format", "junit")
    assert ran.returncode == 0, ran.stderr
    suite = xml.etree.ElementTree.fromstring(ran.stdout).find("testsuite")
    assert [suite.get(name) for name in ("name", "tests", "failures", "skipped")] == ["loadtest compare", "4", "1", "1"]
    names = [row["strategy"] for row in document["rows"]]
    assert [case.get("name") for case in suite.findall("testcase")] == [*names[:2], 'no <server> & "none" ?', names[3]]
    assert [failure.get("message") for failure in suite.iter("failure")] == ["broken"]


@pytest.fixture
def scratch():
    """A folder for what is temporary: a command that is killed removes nothing."""
    folder = tempfile.mkdtemp(prefix="own-")
    os.chmod(folder, 0o755)  # servers may run as other users
    yield folder
    shutil.rmtree(folder)


def processes_of(folder):
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += [entry.name] if folder.encode() in (entry / "cmdline").read_bytes() else []
    return found


@pytest.mark.long
def test_a_kill_leaves_no_process_behind(fake, scratch):
    """The stack's own watcher stops the servers, and the kernel the service."""
    with subprocess.Popen([LOADTEST, "check", fake("hang", timeout_ms=600000)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=os.environ | {"TMPDIR": scratch}, start_new_session=True) as process:  # fmt: skip
        wait_until(lambda: any("fake.py" in line for line in children_of(process.pid)), "the service runs", seconds=60)
        assert processes_of(scratch), "the servers run"
        process.kill()
        process.wait(timeout=START_S)
    nothing_is_left_of(process.pid)
    wait_until(lambda: not processes_of(scratch), "the servers have ended", seconds=60)


@pytest.mark.long
def test_an_interrupt_stops_everything(fake):
    with subprocess.Popen([LOADTEST, "check", fake("hang", timeout_ms=600000)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:  # fmt: skip
        wait_until(lambda: any("fake.py" in line for line in children_of(process.pid)), "the service runs", seconds=60)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=START_S)
    assert process.returncode == 128 + signal.SIGINT, out + errors
    nothing_is_left_of(process.pid)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_prints_what_was_found(fake, tmp_path, number):
    """The probe and the first run have 81 requests; the second one gets 20 answers."""
    command = [LOADTEST, "check", fake("tires", timeout_ms=600000), "--stock", "20", "--repeat", "3", "--export-json", tmp_path / "result.json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        wait_until((tmp_path / "tired").exists, "the service answers no more", seconds=60)
        time.sleep(1)  # for the other connections
        process.send_signal(number)
        out, errors = process.communicate(timeout=START_S)
    assert process.returncode == 128 + number, out + errors
    assert "Run 2 was interrupted after 20 of 80 requests (201 × 20): sold 20, left 0, oversold 0." in re.sub(r"\s+", " ", out), out
    assert "NOT clean" not in out and "All runs are clean" not in out and "The run is clean" not in out, out
    document = json.loads((tmp_path / "result.json").read_text())
    assert [row["verdict"] for row in document["rows"]] == ["clean"] and document["interrupted"]["run"] == 2, document


DAEMONS = {
    "ends": "setsid bash -c 'exec -a {name} sleep 3600' &",
    "ignores SIGTERM, and has a daemon": "setsid bash -c 'trap \"\" TERM; setsid bash -c \"exec -a {name} sleep 3600\" & exec -a {name} sleep 3600' &",
}


@pytest.mark.long
@pytest.mark.parametrize("daemon", DAEMONS)
def test_what_has_left_the_process_group_is_stopped(fake, daemon, scratch):
    """A daemon has a session, and so a group, that is not its starter's."""
    start = DAEMONS[daemon].format(name=scratch)
    path = fake(start=["bash", "-c", f"{start} exec /usr/bin/python3 fake.py {{port}}"])
    ran = loadtest("check", path, "--stock", "5", seconds=START_S * 5)
    assert ran.returncode == 0, ran.stderr
    assert processes_of(scratch) == []


# ---- init and the schema ----------------------------------------------------------------------------


@pytest.mark.long
def test_init_writes_a_file_to_start_from(tmp_path):
    path = tmp_path / "shop.json"
    ran = loadtest("init", "--out", path)
    assert ran.returncode == 0 and f"loadtest check {path}" in ran.stdout, ran.stdout + ran.stderr
    jsonschema.validate(json.loads(path.read_text()), SCHEMA)
    described = {name[3:] for name in json.loads(path.read_text()) if name.startswith("// ")}
    assert {"start", "env", "ready", "database", "reset", "request", "units", "sold_out", "stock", "invariant"} <= described
    again = loadtest("init", "--out", path)
    assert again.returncode == 2 and "--force" in again.stderr, again.stderr
    assert loadtest("init", "--out", path, "--force").returncode == 0
    assert loadtest("init", "--out", "-").stdout == path.read_text()
    # The reader takes it: what fails is the service, which is not there.
    assert '"start" has ended' in check(path, status=3)


PORT = "http://127.0.0.1:{port}/"
# Each is wrong; the reader and the schema must both refuse it.
WRONG = [
    {"start": "node"}, {"start": []}, {"start": [1]}, {"start": [""]}, {"start": ["{stock}"]}, {"start": ["x"] * 65}, {"env": {"A": 1}}, {"env": {"A B": "x"}},
    {"env": ["A=1"]}, {"ready": "127.0.0.1"}, {"ready": "http://127.0.0.1:{prot}/"}, {"ready": "http://127.0.0.1/{request}"}, {"database": ""},
    {"database": "name"}, {"database": HOLE, "schema": "fake.py"}, {"redis": "http://127.0.0.1"}, {"reset": []}, {"reset": 7}, {"reset": [""]}, {"reset": {}},
    {"reset": None}, {"reset": ["DELETE {port}"]}, {"reset": {"url": PORT + "{request}"}}, {"request": None}, {"request": "x"}, {"request": {"url": "ftp://x"}},
    {"request": {"url": PORT, "method": "post"}}, {"request": {"url": PORT, "headers": {"A": "b\nc"}}}, {"request": {"url": PORT, "more": 1}},
    {"request": {"url": PORT + " "}}, {"request": {"url": PORT + "{postgres}"}}, {"sold_out": 409}, {"sold_out": [200]}, {"sold_out": ["409"]}, {"units": 0},
    {"units": 1.5}, {"stock": ""}, {"stock": ["SELECT 1"]}, {"sold": None}, {"invariant": []}, {"invariant": [True]}, {"timeout_ms": 0},
    {"start_timeout_ms": "1s"}, {"start": None}, {"start": None, "env": None}, {"extra": 1},
    {"answers": [201]}, {"answers": {"sold": []}}, {"answers": {"sold": 201}}, {"answers": {"sold": [199]}}, {"answers": {"solt": [201]}},
    {"answers": {"sold": ["201"]}}, {"answers": {"refused": [{"status": 200}]}}, {"answers": {"refused": [{"has": "/errors"}]}},
    {"answers": {"refused": [{"status": 200, "has": "errors"}]}}, {"answers": {"refused": [{"status": 200, "text": ""}]}},
    {"answers": {"refused": [{"status": 200, "more": "x"}]}}, {"answers": {"accepted": [202]}}, {"answers": {"refused": [409]}, "sold_out": [400]},
    {"settled": ""}, {"settle_timeout_ms": 0}, {"expires": ""}, {"expires": "SELECT 1"}, {"expires": "UPDATE a SET b = 1; DELETE FROM a"},
    {"expires": "DELETE FROM a RETURNING 1"}, {"expires": ["DELETE FROM a"]},
    {"start": None, "env": None, "schema": None, "database": HOLE},
]  # fmt: skip


@pytest.mark.parametrize("changes", WRONG, ids=lambda changes: json.dumps(changes)[:60])
def test_the_schema_refuses_what_the_reader_refuses(fake, changes):
    path = fake(**changes)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(path.read_text()), SCHEMA)
    assert re.search(r"shop\.json:\d+: ", check(path, status=2))


@pytest.mark.long
def test_the_schema_takes_what_the_reader_takes(fake):
    """An address where nothing listens ends the command before anything else can."""
    for changes in (
        {},
        {"//": 1, "// start": [], "database": HOLE, "schema": None},
        {"reset": {"url": PORT, "method": "DELETE", "// x": 1}, "sold_out": [], "ready": PORT + "{instance}", "invariant": "SELECT true"},
        {"start": None, "env": None, "schema": None, "database": HOLE, "request": {"url": "https://example.org/", "headers": {"X": "{request}"}}},
        {"answers": {"sold": [201, {"status": 200, "has": "/id", "lacks": "/errors", "text": "x", "// a": 1}], "refused": [{"status": 303, "location": "x"}], "accepted": [202]}, "settled": "SELECT true"},
        {"answers": {"refused": [], "accepted": []}, "settle_timeout_ms": 1, "expires": "update a SET b = {stock}"},
        {"request": {"url": PORT + "{stock}", "body": "{\"a\":{}}"}, "stock": "SELECT '{a}'", "$schema": "x", "units": 2, "timeout_ms": 1, "start_timeout_ms": 1},
    ):  # fmt: skip
        path = fake(**changes)
        jsonschema.validate(json.loads(path.read_text()), SCHEMA)
        ran = loadtest("check", path, "--instances", "1", "--output", "/dev/null", "--requests", "1")
        assert ran.returncode != 2, ran.stderr
