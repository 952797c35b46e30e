"""`loadtest check` and `loadtest init`: services of users, as the samples are, and the mistakes that users make."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from basics import BUILD, ROOT
from lab import PATIENCE, wait_until
from processes import descendants

LOADTEST = BUILD / "loadtest"
SAMPLE = ROOT / "samples" / "own" / "python" / "shop.json"


def run(*arguments, cwd=ROOT, seconds=300):
    return subprocess.run([LOADTEST, *map(str, arguments)], capture_output=True, text=True, timeout=seconds * PATIENCE, check=False, cwd=cwd)


def check(protection, *options, pool=10):
    """The row of the result, and the exit status."""
    ran = run("check", SAMPLE, "--env", f"PROTECTION={protection}", "--env", f"POOL={pool}", "--format", "json", *options)
    assert ran.returncode in (0, 1), ran.stderr
    rows = json.loads(ran.stdout)["rows"]
    assert ran.returncode == int(any(row["verdict"] != "clean" for row in rows)), rows
    return rows


def clean(rows):
    for row in rows:
        assert row["verdict"] == "clean", row
        assert (row["sold"], row["left"], row["oversold"], row["drift"], row["lost"], row["unacknowledged"]) == (100, 0, 0, 0, 0, 0), row
        assert (row["created"], row["sold_out"], row["other"], row["unanswered"]) == (100, 300, 0, 0), row
        assert row["statuses"] == {"201": 100, "409": 300} and 0 < row["latency_ms"]["p50"] <= row["latency_ms"]["p99"], row


def test_a_service_that_oversells():
    (row,) = check("naive")
    assert row["verdict"] == "oversold" and row["oversold"] == row["sold"] - 100 > 0, row
    assert row["created"] == row["sold"] and row["lost"] == 0, "what was sold too often was acknowledged"


@pytest.mark.parametrize("protection", ["for-update", pytest.param("statement", marks=pytest.mark.long), "decrement"])
def test_a_service_whose_database_protects_the_stock(protection):
    clean(check(protection, "--repeat", 2))


@pytest.mark.parametrize("pool", [0, 1, 2])
def test_any_size_of_its_pool(pool):
    clean(check("decrement", pool=pool))


def test_a_lock_in_the_process_protects_one_instance_only():
    clean(check("synchronized"))
    (row,) = check("synchronized", "--instances", 2)
    assert row["verdict"] == "oversold", row


def test_a_key_in_redis_that_expires_too_early():
    clean(check("redis-lock", "--stock", 100))
    (row,) = check("redis-setnx", "--env", "LOCK_MS=1")
    assert row["verdict"] == "oversold", row


def test_exports(tmp_path):
    junit, page = tmp_path / "check.xml", tmp_path / "check.html"
    ran = run("check", SAMPLE, "--stock", 10, "--repeat", 2, "--export-junit", junit, "--export-html", page, "--format", "csv")
    assert ran.returncode == 1 and ran.stdout.splitlines()[0].startswith("run,verdict,stock,sold"), ran.stderr
    suite = xml.parse(junit).getroot()
    assert suite.get("tests") == suite.get("failures") == "2"
    messages = [failure.get("message") for failure in suite.iter("failure")]
    assert len(messages) == 2 and all("units were sold, but there were only 10" in message for message in messages)
    assert "oversold" in page.read_text()


# ── mistakes ────────────────────────────────────────────────────────────────────────────────────────────────


def changed(folder, **members):
    """The sample's description with other members, in FOLDER; a member that is None is removed."""
    description = json.loads(SAMPLE.read_text())
    description["schema"] = str(SAMPLE.parent.parent / "schema.sql")
    description["start"] = ["/usr/bin/python3", str(SAMPLE.parent / "shop.py")]
    description["redis"] = False
    for name, value in members.items():
        description[name] = value
        if value is None:
            del description[name]
    path = folder / "shop.json"
    path.write_text(json.dumps(description, indent=1))
    return path


REQUEST = json.loads(SAMPLE.read_text())["request"]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"start": ["/usr/bin/python3", "-c", "raise SystemExit('no port given')"]}, ["has ended (exit status 1)", "no port given"]),
        ({"start": ["/nowhere/server"]}, ["has ended (exit status 127)", "/nowhere/server"]),
        ({"ready": "http://127.0.0.1:{port}/nothing"}, ["ready:", "answers with status 404"]),
        ({"start": ["/bin/sleep", "600"]}, ["ready:", "does not answer after", "--start-time"]),
        ({"stock": "SELECT units FROM product"}, ["stock: PostgreSQL refused", 'column "units" does not exist']),
        ({"sold": "SELECT id FROM order_item"}, ["sold:", "must return one row"]),
        ({"stock": "SELECT 'many'"}, ["stock:", "must return a whole number", "'many'"]),
        ({"reset": ["DELETE FROM order_item"]}, ["reset: after it the stock is 0, and not 100", "{stock}"]),
        ({"reset": ["DELETE FROM nothing"]}, ["reset: PostgreSQL refused", '"nothing" does not exist']),
        ({"reset": {"url": "http://127.0.0.1:{port}/reset", "method": "POST", "body": {}}}, ["reset: the service answered with status 404"]),
        ({"request": {**REQUEST, "url": "http://127.0.0.1:{port}/buy"}}, ["request: no order was placed; the first answer is 404"]),
        ({"request": {**REQUEST, "url": "http://127.0.0.1:1/orders"}}, ["request: no request got an answer"]),
        ({"invariant": ["SELECT count FROM product"]}, ["invariant:", "must return true or false"]),
        ({"schema": "missing.sql"}, ["schema: cannot read", "missing.sql", "No such file"]),
        ({"schema": None, "database": "postgresql://127.0.0.1:1/shop"}, ["database:", "refused"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else " ".join(map(str, value.values()))[:40],
)
def test_a_mistake_ends_with_a_sentence(tmp_path, members, says):
    ran = run("check", changed(tmp_path, **members), "--start-time", "5s", "--timeout", "5s")
    assert ran.returncode == 3, ran.stdout + ran.stderr
    for words in says:
        assert words in ran.stderr, ran.stderr


def test_a_service_that_dies_under_load(tmp_path):
    (tmp_path / "dies.py").write_text(
        f"import os, sys, threading\nsys.argv[0] = {str(SAMPLE.parent / 'shop.py')!r}\n"
        "source = open(sys.argv[0]).read().replace('def do_POST(self):', 'def do_POST(self):\\n        os._exit(7)')\n"
        "exec(compile(source, sys.argv[0], 'exec'))\n"
    )
    ran = run("check", changed(tmp_path, start=["/usr/bin/python3", "dies.py"]))
    assert ran.returncode == 3 and "has ended (exit status 7)" in ran.stderr, ran.stderr


def test_answers_without_an_order_are_found(tmp_path):
    """A service that answers before it commits, and then rolls back now and then."""
    (tmp_path / "loses.py").write_text(
        f"import sys, threading\nsys.argv[0] = {str(SAMPLE.parent / 'shop.py')!r}\n"
        "source = open(sys.argv[0]).read()\n"
        "source = source.replace('        return row[0]\\n', '        if row[0] % 10 == 0:\\n            cursor.connection.rollback()\\n        return row[0]\\n')\n"
        "assert 'rollback()' in source\n"
        "exec(compile(source, sys.argv[0], 'exec'))\n"
    )
    env = {**json.loads(SAMPLE.read_text())["env"], "PROTECTION": "statement"}
    ran = run("check", changed(tmp_path, start=["/usr/bin/python3", "loses.py"], env=env), "--requests", 50, "--format", "json")
    (row,) = json.loads(ran.stdout)["rows"]
    assert (ran.returncode, row["verdict"], row["lost"], row["drift"], row["oversold"]) == (1, "answers-lost", 5, 0, 0), row


def test_an_invariant_is_judged(tmp_path):
    ran = run("check", changed(tmp_path, env={"PORT": "{port}", "PROTECTION": "decrement"}, invariant=["SELECT true", "SELECT count > 7 FROM product"]))
    assert ran.returncode == 1 and "invariant-broken" in ran.stdout and "not true after the sale: SELECT count > 7" in ran.stdout, ran.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "shop.json:1: this is no JSON"),
        ("[]", "must be a JSON object"),
        ('{\n "start": "server"}', "shop.json:2: start must be a list of texts"),
        ('{\n\n "strat": ["server"]}', "shop.json:3: strat is no member"),
        ("{}", "reset is missing"),
    ],
)
def test_a_wrong_description_is_refused_with_its_line(tmp_path, text, says):
    (tmp_path / "shop.json").write_text(text)
    ran = run("check", tmp_path / "shop.json")
    assert ran.returncode == 2 and says in ran.stderr, ran.stderr


def test_a_missing_description(tmp_path):
    ran = run("check", tmp_path / "shop.json")
    assert ran.returncode == 2 and "cannot open" in ran.stderr and "loadtest init" in ran.stderr


def test_init_writes_what_check_reads(tmp_path):
    ran = run("init", cwd=tmp_path)
    assert ran.returncode == 0 and "loadtest check shop.json" in ran.stdout, ran.stderr
    again = run("init", cwd=tmp_path)
    assert again.returncode == 2 and "File exists" in again.stderr
    (tmp_path / "schema.sql").write_text((SAMPLE.parent.parent / "schema.sql").read_text())
    (tmp_path / "server.py").write_text((SAMPLE.parent / "shop.py").read_text().replace('psycopg2.connect("")', 'psycopg2.connect(os.environ["DATABASE_URL"])'))
    description = json.loads((tmp_path / "shop.json").read_text())
    description["start"][0] = "/usr/bin/python3"
    (tmp_path / "shop.json").write_text(json.dumps(description))
    ran = run("check", "shop.json", "--stock", 20, cwd=tmp_path)
    assert ran.returncode == 1 and "oversold" in ran.stdout, ran.stdout + ran.stderr


@pytest.fixture
def scratch():
    """A folder for what is temporary: who is killed removes nothing."""
    folder = tempfile.mkdtemp(prefix="own-")
    os.chmod(folder, 0o755)  # servers may run as other users
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "killed"])
def test_an_end_in_the_middle_stops_what_was_started(tmp_path, scratch, how):
    path = changed(tmp_path, start=["/usr/bin/python3", str(SAMPLE.parent / "shop.py")], env={"PORT": "{port}", "PROTECTION": "for-update"})
    command = [LOADTEST, "check", path, "--repeat", "10000"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT, env={**os.environ, "TMPDIR": scratch}) as process:
        shops = lambda: [pid for pid in descendants_of(process.pid) if b"shop.py" in command_line(pid)]  # noqa: E731
        wait_until(lambda: len(shops()) >= 1, "the service runs")
        started = descendants_of(process.pid)
        os.kill(process.pid, how)
        process.wait(timeout=60 * PATIENCE)
    assert process.returncode == (128 + how if how == signal.SIGINT else -how)
    wait_until(lambda: not any(command_line(pid) for pid in started), "what was started has ended")
    # The stack's own watcher stops the servers of a command that was killed.
    servers = lambda: [pid for pid in Path("/proc").glob("[0-9]*") if scratch.encode() in command_line(pid.name)]  # noqa: E731
    wait_until(lambda: not servers(), "the servers have ended")
    if how == signal.SIGINT:
        assert os.listdir(scratch) == []


def descendants_of(pid):
    return [found for found, _ in descendants(pid)]


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
