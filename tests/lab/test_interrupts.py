"""Ctrl-C and SIGTERM in the middle of each command: it prints what was found so far, has the status of the signal, and leaves no process behind."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from basics import ROOT
from lab import PATIENCE
from servers import Stack, psql
from test_loadtest import LOADTEST, nothing_is_left_of

ONLY = "Interrupted: this covers only what had run."
TWO = ["atomic-statement", "batched"]  # in the sequence of the table


class Watched:
    """What a command has started so far: pids of each program, and strategies of the service."""

    def __init__(self, session):
        self.session, self.pids, self.strategies = session, {}, []

    def look(self):
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError):
                if os.getsid(int(folder.name)) != self.session:
                    continue
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                program = os.path.basename(words[0])
                self.pids.setdefault(program, set()).add(folder.name)
                if program == "order-service":
                    port = int(Path(words[words.index("--port-file") + 1]).read_text())
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/strategy", timeout=60) as reply:
                        name = json.load(reply)["name"]
                    self.strategies += [] if name in self.strategies else [name]

    def seen(self, program, count):
        return len(self.pids.get(program, ())) >= count

    def has_second(self):
        return TWO[1] in self.strategies


def interrupted(arguments, is_time, how, program=LOADTEST):
    """Runs the command until IS_TIME of what it has started, and returns what it then prints."""
    with subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT) as run:
        watched, deadline = Watched(run.pid), time.monotonic() + 120 * PATIENCE
        try:
            while not is_time(watched):
                assert run.poll() is None, run.communicate()
                assert time.monotonic() < deadline, watched.pids
                with contextlib.suppress(OSError, ValueError):
                    watched.look()
                time.sleep(0.02)
            run.send_signal(how)
            out, errors = run.communicate(timeout=120 * PATIENCE)
        finally:
            run.kill()
    assert run.returncode == 128 + how, out + errors
    nothing_is_left_of(run.pid)
    return " ".join(out.split()), " ".join(errors.split())


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "is_time", "how"),
    [
        (["compare", "--strategies", ",".join(TWO), "--duration", "3s"], Watched.has_second, signal.SIGINT),
        (["rush", "--strategies", ",".join(TWO), "--rate", "50", "--duration", "3s"], Watched.has_second, signal.SIGTERM),
        (["demo", "--strategies", ",".join(TWO)], Watched.has_second, signal.SIGINT),
    ],
)
def test_the_rows_that_are_finished(arguments, is_time, how):
    out, errors = interrupted(arguments, is_time, how)
    assert ONLY in out and any(name in out for name in TWO), out + errors


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "program", "row", "how"),
    [
        (["bench/bench", "--only", "hot/atomic-statement", "--rounds", "31", "--duration", "1s", "--clients", "2"], "pgbench", "hot/atomic-statement", signal.SIGTERM),
        (["bench/growth", "--duration", "1s"], "pgbench", "connections 1", signal.SIGINT),
    ],
)
def test_the_rounds_that_are_finished(arguments, program, row, how):
    out, errors = interrupted(arguments[1:], lambda watched: watched.seen(program, 6), how, ROOT / arguments[0])
    assert ONLY in out and row in out, out + errors


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "is_time", "says"),
    [
        (["soak", "--strategies", "atomic-statement", "--orders", "40000000"], lambda watched: watched.seen("wrk", 1), "atomic-statement was interrupted after"),
        (["diff", *TWO, "--duration", "60s"], lambda watched: watched.seen("wrk", 1), "interrupted before there was a result"),
        (["faults", "--faults", "kill", "--strategies", TWO[0], "--cycles", "90"], lambda watched: watched.seen("order-service", 4), "kill was interrupted in cycle"),
    ],
)
def test_how_far_it_was(arguments, is_time, says):
    out, errors = interrupted(arguments, is_time, signal.SIGINT)
    assert says in errors, out + errors


@pytest.fixture(scope="module")
def url():
    stack = Stack()
    try:
        stack.up("postgres")
        yield stack.url
    finally:
        stack.down()


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_schedules_of_a_specification(url, tmp_path, how):
    """The setup of each schedule takes a number, and the search has 34,650 schedules."""
    psql(url, "CREATE SEQUENCE IF NOT EXISTS seen; ALTER SEQUENCE seen RESTART")
    steps = " ".join(f"step {{0}}{i} {{{{ {sql} }}}}" for i, sql in enumerate(["BEGIN", "SELECT n FROM p", "UPDATE p SET n = n - 1", "COMMIT"]))
    (tmp_path / "x.spec").write_text(
        "setup { CREATE TABLE p (n int); INSERT INTO p VALUES (9); SELECT nextval('seen') > 0; } teardown { DROP TABLE p }\n"
        + "\n".join(f"session {name} {steps.format(name)}" for name in "abc")
    )
    out, errors = interrupted(["explore", tmp_path / "x.spec", "--database", url], lambda _: int(psql(url, "SELECT last_value FROM seen")[0][0]) > 60, how)
    assert ONLY in out and re.search(r"x\.spec: \d+ schedules of 3 sessions", out) and "! anomaly" in out, out + errors


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_schedules_of_a_service(tmp_path, how):
    """Three requests have 1,980 schedules, and the log of the service a line for each request."""
    folder = ROOT / "samples" / "own"
    shop = json.loads((folder / "python" / "shop.json").read_text())
    wrapper = tmp_path / "shop.py"
    text = (folder / "python" / "shop.py").read_text()
    wrapper.write_text(text.replace("    def do_POST(self):\n", f"    def do_POST(self):\n        open({str(tmp_path / 'marks')!r}, 'a').write('x')\n", 1))
    shop |= {"schema": str(folder / "schema.sql"), "start": ["/usr/bin/python3", str(wrapper)]}
    (tmp_path / "shop.json").write_text(json.dumps(shop))
    marks = tmp_path / "marks"
    arguments = ["explore", tmp_path / "shop.json", "--requests", "3", "--export-json", tmp_path / "result.json"]
    out, errors = interrupted(arguments, lambda _: marks.exists() and marks.stat().st_size > 90, how)
    assert ONLY in out and "The service is NOT clean." in out and "✗ oversold" in out, out + errors
    document = json.loads((tmp_path / "result.json").read_text())
    assert document["interrupted"] is True and not document["complete"] and document["counterexample"]["verdict"] == "oversold", document


def test_before_the_first_schedule():
    out, errors = interrupted(["explore", ROOT / "samples/own/python/shop.json"], lambda watched: watched.seen("bash", 1), signal.SIGINT)
    assert not out and errors == "loadtest: interrupted before there was a result", out + errors
