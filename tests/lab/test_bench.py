"""The measuring tools in bench/: the arithmetic of their tables, what they print, and the services that `make peers` measures."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from basics import BUILD, PATIENCE, ROOT, wait_until

sys.path.insert(1, str(ROOT / "bench"))

import harness  # noqa: E402
import locks  # noqa: E402
import ratios as cases  # noqa: E402
import results  # noqa: E402
import scripts  # noqa: E402
import testbed  # noqa: E402
from ratios import Sample  # noqa: E402
from scripts import SCRIPTS, Script, Step, script_text  # noqa: E402

LOCKBENCH = BUILD / "lockbench"


def measure(tool, *arguments, seconds=3600, **settings):
    """SETTINGS are environment variables of the services that it starts."""
    return subprocess.run([ROOT / tool, *arguments], capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT,
                          env={**os.environ, "BUILD": str(BUILD), **settings})  # fmt: skip


# ---- pgbench's scripts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "step", "expected"),
    [
        ((12, "VALUES ($12, $1, $2::bigint, $1)"), Step("s", ":a :b 3 4 5 6 7 8 9 10 11 NULL"), "VALUES (NULL, :a, :b::bigint, :a);\n"),
        ((1, "SELECT $1"), Step("s", ":product", "seen_", "\\set target 1"), "SELECT :product \\gset seen_\n\\set target 1\n"),
        # Literals hide colons and dollars.
        ((1, r"SELECT 'HH24:MI', 'a\b', 'a\:b', '$1', 'it''s :x', $1"), Step("s", ":v"),
         r"SELECT E'HH24\x3AMI', 'a\b', E'a\\\x3Ab', '$1', E'it''s \x3Ax', :v;" "\n"),
    ],
)  # fmt: skip
def test_a_step_of_a_script(statement, step, expected):
    assert script_text((step,), {"s": statement}) == "\\set product random(:first, :last)\n" + expected


@pytest.mark.parametrize(("statement", "values"), [((2, "SELECT $1, $2"), ":a"), ((2, "SELECT $1, $2"), ":a :b :c"), ((1, "SELECT $2"), ":a")])
def test_values_must_fit_the_statement(statement, values):
    with pytest.raises(harness.Failure):
        script_text((Step("s", values),), {"s": statement})


def test_the_services_statements_make_scripts():
    statements = scripts.service_statements()
    texts = {strategy: script_text(script.steps, statements) for strategy, script in SCRIPTS.items()}
    assert not any("$" in text for text in texts.values()), texts
    text = texts["select-for-update"]
    assert "BEGIN ISOLATION LEVEL READ COMMITTED;\n" in text and text.endswith("\nCOMMIT;\n"), text
    assert " \\gset seen_\n\\set target :seen_count - :quantity\n" in text, text


def test_a_batch_has_as_many_orders_as_it_says():
    batched = SCRIPTS["batched"]
    assert isinstance(batched, Script) and batched.steps[1].then == f"\\set target :seen_count - {batched.orders} * :quantity"
    arrays = batched.steps[2].values.split()[6:]
    assert len(arrays) == 5 and all(each.count(",") + 1 == batched.orders for each in arrays)


# ---- what other programs print --------------------------------------------------------------------

REPORT = "pgbench (15.20)\nnumber of clients: 16\nnumber of transactions actually processed: 16047\n"
RATE = "tps = 8023.343302 (without initial connection time)\n"


def test_pgbench_is_read():
    assert harness.pgbench_result(REPORT + "number of failed transactions: 0 (0.000%)\n" + RATE) == (8023.343302, 16047)
    assert harness.pgbench_result(REPORT + RATE)[1] == 16047  # before version 15 none is said to have failed
    for wrong in (REPORT + "number of failed transactions: 2 (0.012%)\n" + RATE, REPORT, "pgbench (15.20)\n" + RATE, ""):
        with pytest.raises(harness.Failure):
            harness.pgbench_result(wrong)


def test_redis_benchmark_is_read():
    assert locks.redis_benchmark_rate('"test","rps","avg_latency_ms"\n"SET","90909.09","0.3"\n') == 90909.09
    assert locks.redis_benchmark_rate('"SET","90909.09"\n') == 90909.09
    for wrong in ('"test","rps"\n', '"SET","nan"\n', ""):
        with pytest.raises(locks.Unavailable):
            locks.redis_benchmark_rate(wrong)


def test_kazoo_is_read():
    assert locks.kazoo_rate("WARNING: a connection was lost\n1234.5\nException ignored in: <thread 1>\n") == 1234.5
    for wrong in ("0.0\n", "a thread has failed\n", ""):
        with pytest.raises(locks.Unavailable):
            locks.kazoo_rate(wrong)


def test_pages_that_closed_are_noticed():
    with harness.beside(["sleep", "60"]) as pages:
        testbed.expect_open(pages)
        testbed.expect_open(None)
        pages.kill()
        pages.wait()
        with pytest.raises(harness.Failure):
            testbed.expect_open(pages)


def test_allocations_are_read():
    table = "\033[00;34m malloc|\033[0m   100   5\n\033[00;34mrealloc|\033[0m   20 0\n\033[00;34m calloc|\033[0m   3 1\n  free|  7\n"
    assert testbed.allocations_in(table) == 123


METRICS = """# TYPE oversell_order_seconds histogram
oversell_order_seconds_bucket{strategy="s",outcome="created",le="0.001"} 40
oversell_order_seconds_bucket{strategy="s",outcome="created",le="0.002"} 99
oversell_order_seconds_bucket{strategy="s",outcome="created",le="+Inf"} 100
oversell_order_seconds_bucket{strategy="s",outcome="sold-out",le="0.001"} 7
oversell_order_seconds_bucket{strategy="other",outcome="created",le="0.001"} 7
oversell_db_round_trips_total{strategy="s"} 12
"""


def test_metrics_are_read():
    seen = testbed.read_metrics(METRICS, "s")
    assert (dict(seen.created), seen.round_trips) == ({0.001: 40, 0.002: 59, float("inf"): 1}, 12)
    assert [testbed.percentile(seen.created, share) for share in (0.4, 0.5, 0.99, 1)] == [0.001, 0.002, 0.002, 0.002]
    assert testbed.percentile({}, 0.5) != testbed.percentile({}, 0.5), "NaN"


# ---- the table of ratios --------------------------------------------------------------------------


def case_of(name):
    return next(case for case in cases.all_cases() if case.name == name)


def test_names():
    """`report` and `docs/tables` find the rows of stored results by name."""
    stored = json.loads((ROOT / "docs/results/bench.json").read_text(encoding="utf-8"))
    assert [case.name for case in cases.all_cases()] == [row["name"] for row in stored["ratios"]]
    goals = {row["name"]: (row["goal"], row["better"]) for row in stored["ratios"]}
    assert {case.name: (case.goal or None, "lower" if case.lower else "higher") for case in cases.all_cases()} == goals


@pytest.mark.parametrize(
    ("only", "chosen"),
    [("hot/atomic-statement", True), ("hot/*", True), ("*atomic*", True), ("atomic", True), ("spread/*", False), ("spread/*,hot/*", True),
     ("atomic,spread/*", True), ("spread/*,sold-out", False)],
)  # fmt: skip
def test_patterns(only, chosen):
    assert (case_of("hot/atomic-statement") in cases.choose(cases.all_cases(), [only])) is chosen


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--only", "nonsense"], "'nonsense' matches nothing"),
        (["--only", "locks/*,nonsense"], "'nonsense' matches nothing"),
        (["--only", "locks/*", "--only", "nonsense"], "hot/atomic-statement"),
        (["--only", "atomic*"], "matches nothing"),
        (["--only", ""], "matches nothing"),
        (["--only", "hot/*,"], "matches nothing"),
        (["--only", "\033[31m"], r"\x1B[31m"),
        (["--duration", "1500ms"], "whole seconds"),
        (["--rounds", "0"], "must be 1 to 99"),
        (["--rounds", "1_0"], "must be 1 to 99"),
        (["--rounds", "x"], "must be 1 to 99"),
        (["--form", "json"], "unrecognized arguments: --form json"),
        (["--\033[31m"], r"--\x1B[31m"),
        (["--format", "xml"], "markdown"),
    ],
)
def test_a_wrong_word_is_refused_before_any_load(arguments, says):
    ran = measure("bench/bench", *arguments, seconds=300)
    assert ran.returncode == 2 and says in ran.stderr and "\033" not in ran.stderr, ran.stdout + ran.stderr


def test_all_are_chosen_without_a_pattern():
    assert cases.choose(cases.all_cases(), []) == cases.all_cases()


def test_medians_and_extremes():
    samples = [Sample(numerator=100, denominator=200, tuned=110), Sample(numerator=900, denominator=1000, tuned=1100),
               Sample(numerator=20, denominator=10, tuned=30)]  # fmt: skip
    hot, counts = case_of("hot/atomic-statement"), {"clients": 1, "tuned_workers": 3}
    row = cases.row_of(hot, counts, samples)
    assert row == {"name": "hot/atomic-statement", "value": 0.9, "min": 0.5, "max": 2.0, "goal": 1.0, "better": "higher", "tuned_value": 1.1,
                   "tuned_per_s": 110, "tuned_workers": 3, "clients": 1, "numerator_per_s": 100, "denominator_per_s": 200,
                   "reached": False,  # the goal is for the default settings, whatever the tuned value is
                   "with": "pgbench, 1 client; tuned: 3 workers"}  # fmt: skip
    row = cases.row_of(hot, counts, samples[1:])  # of two the mean
    assert row["value"] == pytest.approx(1.45) and row["reached"] is True, row


def test_less_memory_is_better():
    little, much = (cases.row_of(case_of("memory/1000-connections"), {}, [Sample(mib)]) for mib in (31.9, 32.1))
    assert (little["reached"], much["reached"], little["better"], "numerator_per_s" in little) == (True, False, "lower", False)


def test_without_a_search_nothing_is_tuned():
    """With --workers no other number is measured."""
    row = cases.row_of(case_of("hot/atomic-decrement"), {"clients": 2}, [Sample(numerator=1200, denominator=1000)])
    assert row["with"] == "pgbench, 2 clients" and row["reached"] and not any("tuned" in name for name in row), row


def test_facts_stand_beside():
    row = cases.row_of(case_of("latency/atomic-statement"), {}, [Sample(3.1, facts={"median_ms": 10, "p99_ms": 31})])
    assert (row["reached"], row["median_ms"], row["p99_ms"], row["with"]) == (False, 10, 31, "p99 31.0 ms; median 10.0 ms"), row
    handed = Sample(numerator=5000, denominator=400, facts={"hand_over_ms": 2.5, "cycle_ms": 0.2, "wake_ups_per_release": 0, "together": 0})
    row = cases.row_of(case_of("hand-over/redis-lock"), {"threads": 8}, [handed])
    assert (row["value"], row["goal"], row["reached"], row["better"]) == (12.5, None, None, "lower"), row
    assert (row["wake_ups_per_release"], row["with"]) == (0, "2.50 ms; alone 0.20 ms; 0.0 wake-ups"), row


@pytest.mark.parametrize(
    ("name", "text"),
    [("locks/redis-lock", "redis-benchmark SET, 8 threads"), ("locks/zookeeper", "a bare loop of its calls, 8 threads"),
     ("locks/zookeeper-contended", "kazoo, 8 threads"), ("locks/etcd", "a bare loop of its calls, 8 threads")],
)  # fmt: skip
def test_locks_are_held_against_their_servers(name, text):
    case = case_of(name)
    row = cases.row_of(case, {"threads": 8}, [Sample(numerator=1000 * case.goal, denominator=1000)])
    assert row["reached"] is True and row["with"] == text and row["threads"] == 8, row


def test_what_is_not_available_says_why():
    row = cases.unavailable_row(case_of("locks/etcd"), "etcd: it is not installed")
    assert (row["value"], row["reached"], row["goal"], row["reason"]) == (None, None, 0.8, "etcd: it is not installed")


def test_both_sides_of_a_case_differ_in_one_thing():
    """A class has other limits, so both sides have one; the others differ in what their names say."""
    loads = []

    class Fake:
        def orders(self, load):
            loads.append(load)
            return 1.0, None

    for name, change in (("crowd/512-vs-16", {"connections": 16}), ("pages/30-open", {"pages": 0}), ("pages/class-of-40", {"learners": 0}),
                         ("batched/vs-select-for-update", {"strategy": "select-for-update"})):  # fmt: skip
        loads.clear()
        case_of(name).measure(Fake(), case_of(name), {})
        assert loads[1] == replace(loads[0], **change) != loads[0], loads


def test_a_file_of_the_system_may_be_missing(tmp_path):
    (tmp_path / "os-release").write_text('NAME=x\nPRETTY_NAME="Some Linux"\n')
    assert results.fact(tmp_path / "os-release", r'^PRETTY_NAME="?([^"\n]*)') == "Some Linux"
    assert results.fact(tmp_path / "os-release", "^VERSION=(.*)") == results.fact(tmp_path / "nothing", "(.*)") == ""


@pytest.mark.parametrize("tool", ["bench", "growth", "peers"])
def test_a_missing_program_comes_with_a_target_of_make(tool):
    code = f"import sys; sys.argv = ['bench/{tool}']; import harness; print(harness.TARGET)"
    target = run("env", f"PYTHONPATH={ROOT}/bench", sys.executable, "-B", "-c", code).stdout.strip()
    assert f"\n{target}:" in "".join(path.read_text(encoding="utf-8") for path in [ROOT / "Makefile", *(ROOT / "make").glob("*.mk")]), target


# ---- lockbench ------------------------------------------------------------------------------------


def lockbench(*words):
    return subprocess.run([LOCKBENCH, *map(str, words)], capture_output=True, text=True, timeout=600, check=False,
                          env={name: value for name, value in os.environ.items() if name not in harness.ADDRESSES})  # fmt: skip


def in_time(*words):
    """A busy machine may leave the threads no turn in so short a time: then a longer run has one."""
    for ms in (100, 1000, 10000, 60000):
        ran = lockbench(*words[:3], ms, *words[3:])
        if ran.returncode == 0:
            return [float(word) for word in ran.stdout.split()]
    raise AssertionError(ran.stdout + ran.stderr)


def test_cycles_of_a_mutex():
    assert in_time("cycles", "mutex", 3, "one-key")[0] > 0 and in_time("cycles", "mutex-per-product", 3)[0] > 0


def test_a_lock_without_a_server_says_so():
    ran = lockbench("cycles", "redis-lock", 2, 50)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", "open: unavailable\n")


def test_hand_overs_of_a_mutex():
    middle, wake_ups, together = in_time("hand-overs", "mutex", 4)
    assert middle >= 0 and 0 <= wake_ups <= 1 and together == 0


def test_no_hand_overs_where_all_are_let_in():
    ran = lockbench("hand-overs", "mutex-wrong-object", 4, 200)
    assert float(ran.stdout.split()[2]) > 0.1 if ran.returncode == 0 else "the lock was never handed over" in ran.stderr, ran


@pytest.mark.parametrize("words", [[], ["cycles"], ["cycles", "mutex"], ["cycles", "mutex", 0, 1], ["cycles", "nonsense", 1, 1],
                                   ["cycles", "mutex", 1, 1, "one-kex"], ["etcd", 1], ["etcd", 1, 1, "one-key"], ["nonsense", 1, 1]])  # fmt: skip
def test_wrong_words_of_lockbench(words):
    ran = lockbench(*words)
    assert ran.returncode == 1 and re.search("^usage: lockbench|there is no lock 'nonsense'", ran.stderr) and not ran.stdout, ran


# ---- interrupts -----------------------------------------------------------------------------------

# A stack that stays long at what BUSY says, and notes how its commands end.
SLOW_STACK = """#!/bin/sh
trap 'echo "$1 was told to end" >>{notes}; exit 143' TERM
echo "$1 began" >>{notes}
[ "$1" != {busy} ] || for second in 1 2 3; do sleep 1; done
echo "$1 ended" >>{notes}
"""


def program(script, path, line, how=signal.SIGTERM, **environment):
    """Starts a measuring tool of SCRIPT's lines, and sends it a signal once the notes in PATH have LINE."""
    code = "\n".join(["import harness", "def main():", *(f"    {each}" for each in script), "harness.run(main)"])
    with subprocess.Popen([sys.executable, "-B", "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT / "bench"), **environment},
                          stderr=subprocess.PIPE, text=True) as tool:  # fmt: skip
        wait_until(lambda: path.is_file() and line in path.read_text(encoding="utf-8"), f"the tool has noted {line}")
        tool.send_signal(how)
        errors = tool.communicate(timeout=120 * PATIENCE)[1]
    assert tool.returncode == (-how if how == signal.SIGKILL else 128 + how), errors
    return errors, path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("busy", "begins", "notes"),
    [
        ("up", "up began", ["up began", "up was told to end", "down began", "down ended"]),
        ("down", "down began", ["up began", "up ended", "env began", "env ended", "down began", "down ended"]),
    ],
)
def test_an_interrupt_lets_the_stack_end(tmp_path, busy, begins, notes):
    """A killed `up` leaves what it has started, and a killed `down` what it has not stopped."""
    folder, stack, path = tmp_path / "temporary", tmp_path / "stack", tmp_path / "notes"
    folder.mkdir()
    stack.write_text(SLOW_STACK.format(busy=busy, notes=path))
    stack.chmod(0o755)
    script = ["with harness.private_servers(['redis']): pass", "return 0"]
    errors, noted = program(script, path, begins, OVERSELL_STACK=str(stack), TMPDIR=str(folder))
    assert noted == notes and "interrupted before there was a result" in errors, errors
    assert list(folder.iterdir()) == []


def test_a_killed_tool_lets_down_end(tmp_path):
    """Nothing else would stop the servers, since `down` first ends their watch."""
    stack, path = tmp_path / "stack", tmp_path / "notes"
    stack.write_text(SLOW_STACK.format(busy="down", notes=path))
    stack.chmod(0o755)
    program(["with harness.private_servers(['redis']): pass"], path, "down began", signal.SIGKILL, OVERSELL_STACK=str(stack), TMPDIR=str(tmp_path))
    wait_until(lambda: "down ended" in path.read_text(encoding="utf-8"), "down has ended")
    assert "down was told to end" not in path.read_text(encoding="utf-8")


def test_a_result_that_is_not_printed_stays_in_a_file(tmp_path):
    build, path = tmp_path / "build", tmp_path / "notes"
    build.mkdir()
    (build / "loadtest").write_text(f"#!/bin/sh\necho began >>{path}\nexec sleep 3\n")
    (build / "loadtest").chmod(0o755)
    script = ["import results", "options = results.Parser('')", "results.add_output_options(options)",
              "return results.print_result({'kind': 'bench'}, options.parse_args([]))"]  # fmt: skip
    errors, _ = program(script, path, "began", BUILD=str(build), TMPDIR=str(tmp_path))
    stored = Path(re.fullmatch(r".*: the result is in (.*)\n", errors)[1])
    assert json.loads(stored.read_text(encoding="utf-8")) == {"kind": "bench"}


# ---- measurements ---------------------------------------------------------------------------------


@pytest.mark.long
def test_bench_prints_its_ratios():
    names = ("hot/atomic-statement", "crowd/512-vs-16", "latency/select-for-update", "redis-stock/hot", "memory/1000-connections", "pages/class-of-40")
    # A thousand orders of one product at once: the last of them wait long on a busy machine.
    ran = measure("bench/bench", "--only", ",".join(names), "--rounds", "1", "--duration", "1s", "--clients", "2", "--format", "json",
                  ORDER_TIMEOUT_MS="60000", LOCK_WAIT_MS="60000")  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    document = json.loads(ran.stdout)
    ratios = {ratio["name"]: ratio for ratio in document["ratios"]}
    assert document["settings"]["workers"] == 0 and set(ratios) == set(names), document
    assert 1 < ratios["memory/1000-connections"]["value"], ratios
    assert ratios["pages/class-of-40"]["value"] > 0, ratios
    hot = ratios["hot/atomic-statement"]
    assert hot["goal"] == 1 and hot["clients"] == 2 and hot["tuned_workers"] in (1, 2, 4, 8, 16), hot
    for value, rate in (("value", "numerator_per_s"), ("tuned_value", "tuned_per_s")):
        assert hot[value] == pytest.approx(hot[rate] / hot["denominator_per_s"]) and hot[value] > 0, hot
    assert ratios["crowd/512-vs-16"]["value"] > 0, ratios
    latency = ratios["latency/select-for-update"]
    assert latency["value"] == pytest.approx(latency["p99_ms"] / latency["median_ms"]) and latency["value"] >= 1, latency
    redis = ratios["redis-stock/hot"]
    ceiling = 1 / (1 / redis["echo_per_s"] + 1 / redis["script_per_s"])
    assert redis["denominator_per_s"] == pytest.approx(ceiling) and redis["value"] > 0, redis


def test_a_limit_of_growth_is_no_setting_of_its_service():
    """make passes the variables of its command line on, and a service with one connection answers no second one."""
    line = next(line for line in run("make", "-n", "bench-growth", "CONNECTIONS=1").stdout.splitlines() if "bench/growth" in line)
    without = line.replace("bench/growth", "printenv CONNECTIONS || echo none #")
    assert run("env", "CONNECTIONS=1", "sh", "-c", without).stdout == "none\n", line


@pytest.mark.long
def test_growth_measures_every_value_and_draws_it(tmp_path):
    plot = tmp_path / "growth.svg"
    ran = measure("bench/growth", "--connections", "4", "--products", "1", "--orders", "10000", "--duration", "1s", "--format", "json", "--export-svg", plot)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = json.loads(ran.stdout)["rows"]
    assert [(row["axis"], row["at"]) for row in rows] == [("connections", 1), ("connections", 4), ("products", 1), ("orders", 10000)]
    for row in rows:
        for strategy in ("atomic-statement", "select-for-update"):
            figures = row[strategy]
            assert figures["orders_per_s"] > 0 and figures["pgbench_per_s"] > 0, row
            assert figures["p99_ms"] >= figures["median_ms"] > 0, row
    drawn = plot.read_text()
    assert drawn.startswith("<svg") and drawn.count("<svg") == 1 + 3 * 2, drawn[:300]


def test_locks_are_measured_against_their_servers():
    ran = measure("bench/bench", "--only", "locks/redis-lock", "--rounds", "1", "--duration", "1s", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    (ratio,) = json.loads(ran.stdout)["ratios"]
    assert ratio["value"] > 0 and ratio["goal"] == 0.45 and ratio["better"] == "higher", ratio


@pytest.mark.long
def test_a_release_wakes_one_waiter_or_all():
    """What a hand-over costs, with the locks that differ most. The bare loops and kazoo run as well."""
    only = "hand-over/zookeeper,hand-over/zookeeper-herd,locks/zookeeper,locks/etcd"
    ran = measure("bench/bench", "--only", only, "--rounds", "1", "--duration", "4s", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    ratios = {ratio["name"]: ratio for ratio in json.loads(ran.stdout)["ratios"]}
    assert ratios["hand-over/zookeeper"]["wake_ups_per_release"] < 2 < ratios["hand-over/zookeeper-herd"]["wake_ups_per_release"], ratios
    assert all(ratio["value"] > 0 for ratio in ratios.values()), ratios


def test_a_server_that_is_missing_costs_its_rows_only(tmp_path):
    """The stack's own complaint is the reason. Here a stack that cannot start etcd."""
    stack = tmp_path / "stack"
    stack.write_text(f'#!/bin/sh\nfor word; do :; done\n[ "$1 $word" != "up etcd" ] || {{ echo "stack: etcd: it is not installed" >&2; exit 1; }}\n'
                     f'exec {ROOT}/stack/stack "$@"\n')  # fmt: skip
    stack.chmod(0o755)
    ran = measure("bench/bench", "--only", "locks/etcd,locks/redis-lock", "--rounds", "1", "--duration", "1s", "--format", "json", OVERSELL_STACK=str(stack))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lock, etcd = json.loads(ran.stdout)["ratios"]
    assert lock["value"] > 0 and (etcd["value"], etcd["reason"]) == (None, "etcd: it is not installed"), (lock, etcd)


# ---- peers ----------------------------------------------------------------------------------------


def run(*command):
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "MAKEFLAGS": "", "BUILD": os.path.relpath(BUILD, ROOT)}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)  # fmt: skip


def node_loads_pg():
    return run("env", f"NODE_PATH={BUILD}/peers/modules/usr/share/nodejs:/usr/share/nodejs", "node", "-e", "require('pg')").returncode == 0


def test_each_sample_sells_the_stock_and_no_more():
    """The check that `make peers` makes before it measures. It also fails if a service does not stop on SIGTERM."""
    if not all(Path(path).exists() for path in ("/usr/bin/javac", "/usr/share/java/jetty9-server.jar", "/usr/share/java/HikariCP.jar")) or not node_loads_pg():
        pytest.skip("the libraries of the samples are not installed: make deps-peers")
    made = run("make", f"BUILD={os.path.relpath(BUILD, ROOT)}", f"{os.path.relpath(BUILD, ROOT)}/peers/shop.jar")
    assert made.returncode == 0, made.stdout
    ran = run("bench/peers", "--check")
    assert ran.returncode == 0, ran.stdout
    sold = re.findall(r"^peers: (\w+), ([\w-]+): 300 orders bought 100 of 100 units$", ran.stdout, re.M)
    assert sorted(sold) == [("java", "for-update"), ("java", "statement"), ("node", "for-update"), ("node", "statement")], ran.stdout
    assert len(re.findall(r"^peers: loop, (?:statement|for-update): [1-9][\d,]* orders in a second$", ran.stdout, re.M)) == 2, ran.stdout
