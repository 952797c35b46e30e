"""The load lab from outside: what it catches, what it prints, and how it ends."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
LOADTEST = BUILD / "loadtest"
UNSAFE_BY_LOAD = {
    "read-write",
    "decrement",
    "mutex-early-release",
    "mutex-wrong-object",
    "redis-lock-early-release",
    "redis-registry-shared",
}
ONE_PROCESS = {"mutex", "mutex-per-product", "reentrant-mutex"}


def loadtest(*arguments, seconds=3600, **settings):
    """SETTINGS are environment variables of the services that it starts."""
    return subprocess.run(
        [LOADTEST, *arguments], capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT, env=os.environ | settings
    )


def children_of(session):
    """Command lines of what still runs in the process session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == session:
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except (ProcessLookupError, FileNotFoundError):
            continue
    return found


def nothing_is_left_of(session):
    """What was killed may have to wait for its new parent to take note."""
    deadline = time.monotonic() + 300
    while left := children_of(session):
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def one():
    """Every strategy, sold by one process."""
    ran = loadtest("compare", "--instances", "1", "--format", "json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Every strategy, sold by two processes as by default, with exports."""
    folder = tmp_path_factory.mktemp("two")
    ran = loadtest(
        "compare", "--phases", "sell-out", "--format", "json",
        "--export-csv", folder / "two.csv", "--export-markdown", folder / "two.md",
        "--export-html", folder / "two.html", "--export-json", folder / "two.json",
        "--trace-out", folder / "trace.json",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout), folder


def rows(document):
    return {row["strategy"]: row for row in document["rows"]}


def check_clean(row):
    """Safe rows sell what is there, and so do the others that load alone does not break."""
    if row["guarantee"] == "unsafe" and row["oversold"] > 0:
        # A waiter that gives up lets the next one of zookeeper-naive in, as a waiter's death does.
        assert (row["strategy"], row["verdict"]) == ("zookeeper-naive", "oversold-as-expected"), row
        return
    verdict = "ok" if row["guarantee"] == "safe" else "flawed"
    assert (row["verdict"], row["oversold"], row["drift"], row["finding"]) == (verdict, 0, 0, None), row
    if row["guarantee"] != "unsafe":
        assert (row["left"], row["sold"], row["amounts_wrong"]) == (0, 100, 0), row
        pairs = row["pairs"]
        assert (pairs["sold"] + pairs["left"], pairs["sold"] % 2, pairs["amounts_wrong"]) == (51, 0, 0), row
        assert 0 < pairs["sold"] == 2 * pairs["created"], row


@pytest.mark.long
def test_unsafe_rows_are_caught_and_safe_ones_are_not(one):
    assert len(rows(one)) >= 43
    for name, row in rows(one).items():
        if name in UNSAFE_BY_LOAD:
            assert (row["verdict"], row["oversold"] > 0) == ("oversold-as-expected", True), row
            assert row["witness"] is not None, row
        elif name in ONE_PROCESS:
            assert (row["verdict"], row["oversold"], row["drift"]) == ("flawed", 0, 0), row
            assert row["shown_by"].startswith("second-process"), row
        else:
            check_clean(row)
            assert row["guarantee"] == "safe" or row["shown_by"] in ("expire", "crash"), row


@pytest.mark.parametrize(("options", "throughput"), [([], True), (["--think-ms", "1"], False), (["--product-limit", "4"], False)])
def test_a_safe_row_is_judged_without_the_queue_in_front_of_it(options, throughput):
    """The queue alone would keep the orders of one process apart, whatever the row does."""
    ran = loadtest(
        "compare", "--strategies", "atomic-statement,read-write", "--instances", "1", "--duration", "200ms", "--format", "json", *options
    )
    assert ran.returncode == 0, ran.stderr
    found = rows(json.loads(ran.stdout))
    assert found["atomic-statement"]["in_turn"] == {"sell_out": False, "throughput": throughput}
    assert found["read-write"]["in_turn"] == {"sell_out": False, "throughput": False}


@pytest.mark.long
def test_a_flaw_that_load_shows_is_seen_in_every_run():
    """A row of several runs is its worst run: one that had not been caught."""
    ran = loadtest("compare", "--phases", "sell-out", "--repeat", "3", "--strategies", "read-write,decrement", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    found = rows(json.loads(ran.stdout))
    assert set(found) == {"read-write", "decrement"}
    for row in found.values():
        assert (row["runs"], row["verdict"]) == (3, "oversold-as-expected"), row


@pytest.mark.long
def test_every_answer_is_accounted_for(one):
    for row in one["rows"]:
        answers = row["created"] + row["sold_out"] + row["busy"] + row["errors"]
        assert answers == row["requests"], row
        assert row["sold"] == row["created"], row
        assert row["orders_per_s"] > 0, row
        assert 0 < row["latency_ms"]["p50"] <= row["latency_ms"]["p99"] <= row["latency_ms"]["max"], row


@pytest.mark.long
def test_a_second_process_defeats_the_mutexes(two):
    document, _ = two
    for name in ONE_PROCESS:
        row = rows(document)[name]
        assert row["verdict"] == "oversold-as-expected", row
        assert row["oversold"] > 0 and row["drift"] > 0, row
    for name, row in rows(document).items():
        if name not in UNSAFE_BY_LOAD | ONE_PROCESS:
            check_clean(row)


@pytest.mark.long
def test_one_process_shows_what_a_second_one_breaks(one):
    """A schedule of two orders in different processes stands in for the second process."""
    for name in ONE_PROCESS:
        row = rows(one)[name]
        assert row["verdict"] == "flawed", row
        shown = row["shown"]
        if shown["by"] == "second-process":
            assert (shown["breaks_when"], shown["replay"]) == ("second process: sold 2 of 1", None), shown
            assert shown["told"] and shown["explanation"], shown
        else:
            assert (name, shown["by"]) == ("reentrant-mutex", "crash"), row


def test_every_flaw_is_shown(two):
    """No row says "flawed" without having been seen to fail."""
    document, _ = two
    for row in document["rows"]:
        if row["guarantee"] == "safe":
            assert row["shown"] is None, row
            continue
        shown = row["shown"]
        assert shown["by"] in row["shown_by"].split("+") or row["strategy"] == "zookeeper-naive", row
        if shown["by"] in ("expire", "crash"):
            event, seen = shown["breaks_when"].split(": ")
            assert event in ("lease expires", "session expires", "connection breaks", "holder crashes"), shown
            stuck = shown["by"] == "crash" or row["strategy"] == "zookeeper-naive"  # which also loses wake-ups
            assert seen == "sold 2 of 1" or (stuck and seen == "the lock stays locked"), shown
            assert shown["replay"].startswith(f"{row['strategy']} s=1 q=1,1 "), shown
            assert shown["told"] and shown["explanation"], shown
        else:
            assert shown["breaks_when"].endswith(f"sold {row['sold']} of 100"), row


@pytest.mark.long
def test_the_demo_shows_a_row_at_a_time(tmp_path):
    """Each row is printed when it is there; then a schedule, and how to go on."""
    run = subprocess.Popen(
        [LOADTEST, "demo", "--strategies", "read-write,atomic-decrement,redis-lock", "--export-json", tmp_path / "demo.json"],
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    lines = []
    for line in run.stdout:
        if line.startswith("read-write"):
            assert not (tmp_path / "demo.json").exists(), "it came after everything else"
        lines.append(line)
    assert run.wait(timeout=300) == 0, "".join(lines)
    found = {line.split()[0]: line for line in lines if line.strip()}
    assert "two orders at once: sold" in found["read-write"], lines
    assert "not seen; all writers must use it" in found["atomic-decrement"], lines
    assert "lease expires: sold 2 of 1" in found["redis-lock"], lines
    assert any("make demo-all" in line for line in lines), lines
    text = "".join(lines)
    assert text.index("redis-lock ") < text.index("its lock ends") < text.index("make run"), text
    assert [row["strategy"] for row in json.loads((tmp_path / "demo.json").read_text())["rows"]] == [
        "read-write", "atomic-decrement", "redis-lock"]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("named", "status"), [((), 0), (("--strategies", "atomic-decrement,etcd"), 3)])
def test_a_missing_server_fails_the_demo_only_if_its_strategy_was_named(named, status):
    lock_servers = ("REDIS_URL", "REDLOCK_URLS", "ZOOKEEPER_CONNECT", "ETCD_ENDPOINTS")
    env = {key: value for key, value in os.environ.items() if key not in lock_servers}
    ran = subprocess.run(
        [ROOT / "stack/stack", "run", "postgres", "--", LOADTEST, "demo", "--servers", "environment", *named],
        capture_output=True, text=True, timeout=3600, check=False, cwd=ROOT, env=env,
    )  # fmt: skip
    assert "etcd was not tried: ETCD_ENDPOINTS is not set" in ran.stdout, ran.stdout + ran.stderr
    assert ran.returncode == status, ran.stdout + ran.stderr


def test_the_sale_over_time_ends_as_the_audit_says(two):
    """Orders that make_last_calls sent after the load may come on top."""
    document, _ = two
    for row in document["rows"]:
        sold, left = row["sale"]["sold"], [units for units in row["sale"]["left"] if units is not None]
        assert sold == sorted(sold) and 0 <= row["sold"] - sold[-1] <= row["instances"], row
        assert max(left, default=0) < row["stock"] and len(sold) == len(row["sale"]["left"]) <= 64, row


def test_exports_say_the_same(two):
    document, folder = two
    table = list(csv.DictReader(io.StringIO((folder / "two.csv").read_text())))
    assert [row["strategy"] for row in table] == [row["strategy"] for row in document["rows"]]
    assert [int(row["oversold"]) for row in table] == [row["oversold"] for row in document["rows"]]
    assert json.loads((folder / "two.json").read_text())["rows"] == document["rows"]
    assert "<svg" in (folder / "two.html").read_text()
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]
    again = loadtest("report", folder / "two.json", "--format", "markdown")
    assert (again.returncode, again.stdout) == (0, (folder / "two.md").read_text()), again.stderr


@pytest.mark.long
def test_diff_names_the_cell():
    ran = loadtest("diff", "read-write", "select-for-update")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "stock" in ran.stdout and "both saw" in ran.stdout, ran.stdout


@pytest.mark.parametrize(
    "command", ("compare", "demo", "explore", "rush", "faults", "soak", "diff", "report", "init", "check")
)
def test_help_is_read_once(command):
    """The purpose comes first, then one example, then groups of options. No sentence has more than 20 words, no line wraps."""
    ran = loadtest(command, "--help", seconds=300)
    assert ran.returncode == 0 and not ran.stderr, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].startswith(f"usage: loadtest {command} ") and lines[2].endswith("."), lines[:3]
    example = next(at for at, line in enumerate(lines) if line.startswith(f"Example: loadtest {command} "))
    assert example < lines.index("Output:" if command != "demo" else "What to run:"), lines
    text = re.sub(r"\n {20,}", " ", ran.stdout)
    paragraphs = re.sub(r"(?<=\S)\n(?=\S)", " ", text)
    long = [sentence for sentence in re.split(r"(?<=[.:;])\s|\n", paragraphs) if len(sentence.split()) > 20]
    assert not long, long
    # Defaults without a space cannot be wrapped.
    assert all(len(line) <= 100 or " " not in line.strip() for line in lines), lines


@pytest.mark.parametrize(
    ("arguments", "valid"),
    [
        (["nonsense"], "compare"),
        (["compare", "--nonsense"], "--strategies"),
        (["compare", "--strategies", "nonsense"], "read-write"),
        (["compare", "--stock", "-1"], "--stock"),
        (["compare", "--duration", "5 parsecs"], "--duration"),
        (["compare", "--format", "xml"], "json"),
    ],
)
def test_a_wrong_word_is_refused_before_any_load(arguments, valid):
    ran = loadtest(*arguments, seconds=300)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert valid in ran.stderr, ran.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_end_in_the_middle_leaves_nothing_behind(how):
    run = subprocess.Popen(
        [LOADTEST, "compare", "--strategies", "read-write", "--duration", "60s"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, cwd=ROOT,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 300
        while not any("wrk" in line for line in children_of(run.pid)):
            assert time.monotonic() < deadline, f"no load: {children_of(run.pid)}"
            time.sleep(0.1)
        run.send_signal(how)
        run.communicate(timeout=300)
        assert run.returncode != 0
        nothing_is_left_of(run.pid)
    finally:
        run.kill()
        run.wait()
