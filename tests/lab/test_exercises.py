"""The exercises: what is unsolved fails with a schedule that replays, what is solved passes, and every trap is found by
the check that has the help for it."""

import json
import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from basics import PATIENCE, wait_until
from length import short_only
from test_loadtest import nothing_is_left_of

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
TASKS = sorted(path.parent.name for path in (ROOT / "exercises").glob("*/task.json"))
FACES = {":)": "pass", ":(": "fail"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """A private stack for all tests here, as environment variables."""
    folder = tmp_path_factory.mktemp("stack")
    stack = ROOT / "stack" / "stack"
    subprocess.run([stack, "up", "--dir", folder, "--while", str(os.getpid()), "--purge", "postgres", "redis"],
                   check=True, timeout=300, stdout=subprocess.DEVNULL)  # fmt: skip
    try:
        lines = subprocess.run([stack, "env", "--dir", folder], check=True, capture_output=True, text=True).stdout
        yield os.environ | dict(re.findall(r"^export (\w+)='?([^'\n]*)'?$", lines, re.M)) | {"OVERSELL_STACK": str(stack)}
    finally:
        subprocess.run([stack, "down", "--dir", folder, "--purge"], check=True, timeout=300, stdout=subprocess.DEVNULL)


def make(target, folder, task, *words, env=None):
    return subprocess.run(
        ["make", "--no-print-directory", f"BUILD={BUILD}", f"EXERCISE={folder}", target, f"NAME={task}", *words],
        capture_output=True, text=True, timeout=3600, check=False, cwd=ROOT, env=env,
    )  # fmt: skip


def judge(servers, folder, task, source, *words):
    """The verdict's text, and results.json, of SOURCE (a file, or its text)."""
    folder.mkdir(exist_ok=True)
    if isinstance(source, str):
        (folder / "own.c").write_text(source, encoding="utf-8")
        source = folder / "own.c"
    ran = make("exercise", folder, task, f"FILE={source}", "SERVERS=environment", "LIMIT=800s", *words, env=servers)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert_form(results)
    return ran.stdout, results


def assert_form(results):
    """As exercism's test runners write it, version 2."""
    assert results["version"] == 2 and set(results) == {"version", "status", "message", "tests"}
    statuses = [test["status"] for test in results["tests"]]
    assert set(statuses) <= {"pass", "fail", "error"}
    whole = "pass" if set(statuses) == {"pass"} else "error" if set(statuses) <= {"error"} else "fail"
    assert results["status"] == whole
    assert bool(results["message"]) == (whole == "error")
    for test in results["tests"]:
        assert test["name"] and test["test_code"], test
        assert bool(test["message"]) == (test["status"] != "pass"), test
        assert len(test["output"] or "") <= 550, test


def first_failure(results):
    return next((test for test in results["tests"] if test["status"] != "pass"), None)


def task_of(name):
    return json.loads((ROOT / "exercises" / name / "task.json").read_text(encoding="utf-8"))


def solution_of(name):
    return (ROOT / "exercises" / name / "solution.c").read_text(encoding="utf-8")


# ---- every task ------------------------------------------------------------------------------------------------


def test_there_are_an_example_and_five_tasks():
    assert TASKS == ["0-example", "1-guard", "2-mutex", "3-version", "4-setnx", "5-fence"]


@pytest.mark.parametrize("name", TASKS)
def test_every_trap_has_a_help_line_and_there_are_hints(name):
    task = task_of(name)
    helps = [check["help"] for check in task["checks"]]
    assert len(set(helps)) == len(helps) >= 4 and all(len(text) > 30 for text in helps)
    assert len(task["hints"]) == 3
    assert (ROOT / "exercises" / name / "README.md").is_file()


WRONG_ROWS = {
    "a span without a lock": ({"GUARANTEE_SAFE,": "GUARANTEE_SAFE, .span = SPAN_AROUND_TX,"}, "but its lock is NULL; name a lock of lock/registry.h"),
    "tokens of a mutex": (
        {"GUARANTEE_SAFE,": "GUARANTEE_SAFE, .span = SPAN_AROUND_TX, .lock = &process_mutex, .fencing = FENCE_ON_WRITE,"},
        "its lock grants no tokens"),
    "two transactions, and another try": (
        {"GUARANTEE_SAFE,": "GUARANTEE_SAFE, .scope = SCOPE_TWO_TX, .max_tries = 50,"}, "set the tries to 1"),
    "no way of taking stock": ({"&take_read_write,": "NULL,"}, "it has no way of taking stock"),
    "a stock that is taken elsewhere": ({"&take_read_write,": "&take_while_placing,"}, "its way of taking stock has no function"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("wrong", short_only(["a span without a lock"], WRONG_ROWS))
def test_a_wrong_row_is_explained(servers, tmp_path, wrong):
    """Both programs say what to change, where an order would crash them."""
    changes, explanation = WRONG_ROWS[wrong]
    source = (ROOT / "exercises" / "0-example" / "strategy.c").read_text(encoding="utf-8")
    for before, after in changes.items():
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    text, results = judge(servers, tmp_path / "x", "0-example", source)
    first = first_failure(results)
    assert explanation in first["message"] and task_of("0-example")["checks"][0]["help"] not in first["message"], first
    text = re.sub(r"\s+", " ", text)
    assert "strategy 'mine': " in text and explanation in text, text
    for program in ("loadtest", "order-service"):
        ran = subprocess.run([tmp_path / "x" / program, "explore"], capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, explanation in ran.stderr) == (2, True), ran.stderr


def test_a_statement_that_postgresql_refuses_has_a_separate_help(servers, tmp_path):
    """The check's help would mislead, because the check did not reach what it is about."""
    source = (ROOT / "exercises" / "1-guard" / "strategy.c").read_text(encoding="utf-8")
    text, results = judge(servers, tmp_path / "x", "1-guard", source.replace("UPDATE product SET", "UPDATE produkt SET"))
    text = re.sub(r"\s+", " ", text)
    assert results["tests"][0]["status"] != "pass"
    assert 'relation "produkt" does not exist' in text, text
    assert "Correct the statement" in text and "too strict by one" not in text, text
    assert "Correct the statement" in results["tests"][0]["message"]


@pytest.mark.long
def test_a_command_that_redis_refuses_has_a_separate_help(servers, tmp_path):
    text, results = judge(servers, tmp_path / "x", "4-setnx", changed("4-setnx", "NX PX %lld", "NX PZ %lld"))
    assert "ERR syntax error" in text, text
    assert "Correct the command" in results["tests"][0]["message"], text
    assert task_of("4-setnx")["checks"][0]["help"] not in results["tests"][0]["message"], text


@pytest.mark.long
def test_a_loop_without_an_end_has_a_separate_help(servers, tmp_path):
    source = (ROOT / "exercises" / "1-guard" / "strategy.c").read_text(encoding="utf-8")
    loop = source.replace("    AUTO_RESULT row = NULL;\n", "    for (volatile int i = 0; i >= 0; i = i > 5 ? 0 : i + 1)\n        ;\n    AUTO_RESULT row = NULL;\n", 1)
    assert loop != source
    text, results = judge(servers, tmp_path / "x", "1-guard", loop, "LIMIT=10s")
    text = re.sub(r"\s+", " ", text)
    assert results["tests"][0]["status"] == "fail" and "did not end within 10s" in text, text
    assert "Look for a loop" in text and "too strict by one" not in text, text


@pytest.mark.parametrize("name", short_only(["1-guard"], TASKS))
def test_what_is_unsolved_fails_with_a_schedule_that_replays(servers, tmp_path, name):
    text, results = judge(servers, tmp_path / "x", name, ROOT / "exercises" / name / "strategy.c")
    failed = first_failure(results)
    assert results["status"] == "fail" and failed["status"] == "fail", text
    help_line = next(check["help"] for check in task_of(name)["checks"] if check["name"] == failed["name"])
    assert help_line in failed["message"]
    assert help_line in re.sub(r"\s+", " ", text)
    assert ":(  " + failed["name"] in text and "make hint NAME=" + name in text and "Hint" not in text
    assert text.count(":(") == 1, "one trap at a time"
    assert "-9223372036854775808" not in text, "a step without a value has none"
    command = re.search(r"replay:\s+(.*)", text)[1]
    as_text = subprocess.run(command + " --servers environment", shell=True, capture_output=True, text=True, timeout=600,
                             check=False, cwd=ROOT, env=servers)  # fmt: skip
    assert "-9223372036854775808" not in as_text.stdout, as_text.stdout
    replayed = subprocess.run(command + " --servers environment --format json", shell=True, capture_output=True,
                              text=True, timeout=600, check=False, cwd=ROOT, env=servers)  # fmt: skip
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    (story,) = json.loads(replayed.stdout)["replays"]
    ending = story["ending"]
    assert ending["oversold"] or ending["drift"] or ending["stuck"], ending
    assert story["replay"] in command and story["explanation"] in failed["message"]


@pytest.mark.long
@pytest.mark.parametrize("name", short_only(["1-guard"], TASKS))
def test_the_solution_passes_and_is_shown_only_then(servers, tmp_path, name):
    folder = tmp_path / "x"
    before = make("solution", folder, name)
    assert "has not passed yet" in before.stdout and before.returncode != 0
    text, results = judge(servers, folder, name, ROOT / "exercises" / name / "solution.c")
    assert results["status"] == "pass", text
    assert (text.count(":)"), text.count(":(")) == (len(task_of(name)["checks"]), 0)
    after = make("solution", folder, name)
    assert (after.returncode, after.stdout) == (0, solution_of(name))
    following = TASKS[TASKS.index(name) + 1 :]
    assert (f"Next: make exercise NAME={following[0]}" if following else "This was the last exercise.") in text, text


# ---- the traps: solutions with one thing wrong, and the check that has the help for it ------------------------------

TRAPS = {
    "one try where another order may have been quicker": ("0-example", 1, {"take_for_update,": "take_optimistic,"}),
    "stock and order in two transactions": ("0-example", 2, {"GUARANTEE_SAFE,": "GUARANTEE_SAFE, .scope = SCOPE_TWO_TX,"}),
    "a mutex, which the other process does not see": (
        "0-example", 3, {"&take_for_update,": "&take_read_write, .span = SPAN_AROUND_TX, .lock = &process_mutex,"}),
    "stock taken in a separate transaction": ("1-guard", 4, {"GUARANTEE_SAFE,": "GUARANTEE_SAFE, .scope = SCOPE_TWO_TX,"}),
    "no fence": ("5-fence", 1, {"FENCE_BEFORE_READ,": "FENCE_NONE,", "AND fence_redis = $4": "AND $4::bigint >= 0"}),
    "more than nothing is not enough": ("1-guard", 2, {"count >= $2": "count > 0"}),
    "too strict by one": ("1-guard", 0, {"count >= $2": "count > $2"}),
    "no row is no error": ("1-guard", 1, {"PQntuples(row) == 0": "PQntuples(row) < 0"}),
    "a refused order keeps the mutex": (
        "2-mutex", 1, {"    outcome = end_transaction": "    if (outcome != ORDER_GO_ON) {\n        db_rollback(p->db);\n"
                       "        return outcome;\n    }\n    outcome = end_transaction"}),
    "a version that nobody changes": ("3-version", 0, {"version = version + 1, ": ""}),
    "one try is not enough": ("3-version", 1, {".max_tries = 50": ".max_tries = 1"}),
    "tried again with what was read before": (
        "3-version", 0, {"    return stock_write(": "    while ((status = stock_write(", "version, ret_taken);":
                         "version, ret_taken)) == TAKE_CONFLICT)\n        ret_taken->version++;\n    return status;"}),
    "an end by a second command": (
        "4-setnx", 1, {'"SET %s %s NX PX %lld", server_key, token,\n': '"SETNX %s %s", server_key, token);\n',
                       "(long long)lock->lease_ms);\n        if (status != LOCK_OK)\n            return status;\n": "",
                       "if (reply && reply->type == REDIS_REPLY_STATUS)":
                       "if (status == LOCK_OK && redis_integer(reply) == 1)\n"
                       "            report_step(lock->observer, STEP_SETNX, STEP_NO_VALUE);\n"
                       "        if (status == LOCK_OK && redis_integer(reply) == 1)\n"
                       "            return redis_lock_prolong(lock, server_key, token);\n        if (status != LOCK_OK)"}),
    "deletes what is another's": (
        "4-setnx", 2, {"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0":
                       "return redis.call('DEL', KEYS[1])"}),
    "an owner's name that all share": ("4-setnx", 2, {"lock_random_token(token)": "strcpy(token, \"me\")"}),
    "checked by the write alone": (
        "5-fence", 2, {"FENCE_BEFORE_READ,": "FENCE_ON_WRITE,", "fence_redis = $4 AND": "fence_redis <= $4 AND",
                       "version = version + 1,": "version = version + 1, fence_redis = $4,"}),
}  # fmt: skip


@pytest.mark.parametrize("trap", short_only(["too strict by one"], TRAPS))
def test_a_trap_is_found_by_the_check_that_has_its_help(servers, tmp_path, trap):
    name, check, changes = TRAPS[trap]
    source = solution_of(name)
    for before, after in changes.items():
        assert source.count(before) == 1, f"{name} has changed: {before}"
        source = source.replace(before, after)
    text, results = judge(servers, tmp_path / "x", name, "#include <string.h>\n" + source)
    assert first_failure(results)["name"] == task_of(name)["checks"][check]["name"], text
    assert first_failure(results)["status"] == "fail", text


# ---- what a learner's program may do --------------------------------------------------------------------------------


def changed(name, before, after):
    source = solution_of(name)
    assert source.count(before) == 1, before
    return source.replace(before, after)


@pytest.mark.long
def test_a_load_that_sells_rightly_and_fails_says_why(servers, tmp_path):
    """An order that ignores its Idempotency-Key sells right amounts: only the finding of the load says what is wrong."""
    text, results = judge(servers, tmp_path / "x", "2-mutex", changed("2-mutex", "claim_key(p);", "ORDER_GO_ON;"))
    failed = first_failure(results)
    assert failed["name"] == task_of("2-mutex")["checks"][4]["name"], text
    assert "a repeated Idempotency-Key did not get the first order" in failed["message"], failed


@pytest.mark.long
def test_a_loop_without_an_end_ends_in_time_with_a_verdict(servers, tmp_path):
    loop = changed("1-guard", "    AUTO_RESULT row = NULL;", "    for (volatile int i = 0; want; i++)\n        ;\n    AUTO_RESULT row = NULL;")
    folders = tmp_path / "folders"
    folders.mkdir()
    text, results = judge(servers | {"TMPDIR": str(folders)}, tmp_path / "x", "1-guard", loop, "LIMIT=5s")
    assert list(folders.iterdir()) == [], "a search that had to be killed leaves a folder"
    first, *others = results["tests"]
    assert first["status"] == "fail" and "did not end within 5s" in first["message"], text
    assert {test["status"] for test in others} == {"error"} and text.count(":|") == len(others)
    assert all("skipped" in test["message"] for test in others)


def test_a_crash_is_a_verdict(servers, tmp_path):
    last_words = '    fprintf(stderr, "here I am\\n");\n    for (int i = 0; i < 300; i++)\n        fprintf(stderr, "\\xc3\\xa4");\n'
    crash = changed("1-guard", "    AUTO_RESULT row = NULL;", last_words + "    __builtin_trap();\n    AUTO_RESULT row = NULL;")
    text, results = judge(servers, tmp_path / "x", "1-guard", crash)
    first = first_failure(results)
    assert first["status"] == "error" and "has died" in first["message"], text
    assert "The check did not finish" in first["message"] and "too strict by one" not in text, text
    assert "here I am" in first["output"] and "here I am" in text


def test_what_does_not_compile_is_told_in_the_compilers_words(servers, tmp_path):
    text, results = judge(servers, tmp_path / "x", "1-guard", changed("1-guard", "return TAKE_OK;", "return TAKE_WHAT;"))
    assert (results["status"], results["tests"]) == ("error", [])
    assert "TAKE_WHAT" in results["message"] and "TAKE_WHAT" in text


def test_a_row_that_promises_less_is_not_taken(servers, tmp_path):
    less = changed("0-example", "GUARANTEE_SAFE,", "GUARANTEE_UNSAFE, .shown_by = SHOWN_BY_LOAD,")
    text, results = judge(servers, tmp_path / "x", "0-example", less)
    assert results["status"] == "error" and "promises 'unsafe'" in text
    assert task_of("0-example")["checks"][0]["help"] not in re.sub(r"\s+", " ", text), text


def test_without_redis_nothing_has_passed(servers, tmp_path):
    without = {name: value for name, value in servers.items() if name != "REDIS_URL"}
    text, results = judge(without, tmp_path / "x", "4-setnx", ROOT / "exercises/4-setnx/solution.c")
    assert text.count(":|") == len(task_of("4-setnx")["checks"]) and "REDIS_URL" in text
    assert results["status"] == "error" and "REDIS_URL" in results["message"]


@pytest.mark.long
def test_hints_come_one_by_one_and_only_when_asked_for(servers, tmp_path):
    hints = task_of("0-example")["hints"]
    assert hints[0] in make("hint", tmp_path, "0-example").stdout
    assert hints[1] not in make("hint", tmp_path, "0-example").stdout
    assert all(hint in make("hint", tmp_path, "0-example", "HINT=3").stdout for hint in hints)
    unsolved = ROOT / "exercises/0-example/strategy.c"
    assert "Hint 1 of 3: " + hints[0] in judge(servers, tmp_path / "x", "0-example", unsolved, "HINT=1")[0]


@pytest.mark.long
def test_a_name_that_is_none_lists_the_tasks(tmp_path):
    for name in ("", "no-such", "../stack"):
        ran = make("exercise", tmp_path / "x", name)
        assert ran.returncode != 0 and " ".join(TASKS) in ran.stderr, ran.stdout + ran.stderr


# ---- servers, and the end of a judge that is interrupted --------------------------------------------------------------

# The servers of the stack, but for Redis.
WITHOUT_REDIS = f"""#!/bin/sh
case "$*" in *' redis') echo 'stack: redis: it is missing' >&2; exit 1;; esac
exec {ROOT}/stack/stack "$@"
"""


@pytest.mark.long
@pytest.mark.parametrize("has_redis", short_only([True], [True, False]))
def test_the_servers_are_private_unless_others_are_asked_for(tmp_path, has_redis):
    stack, temporary = tmp_path / "stack", Path(tempfile.mkdtemp(prefix="judge-"))
    stack.write_text(WITHOUT_REDIS, encoding="utf-8")
    stack.chmod(0o755)
    temporary.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL", "OVERSELL_STACK")}
    environment |= {"TMPDIR": str(temporary)} | ({} if has_redis else {"OVERSELL_STACK": str(stack)})
    ran = make("exercise", tmp_path / "x", "4-setnx", env=environment)
    results = json.loads((tmp_path / "x" / "results.json").read_text(encoding="utf-8"))
    assert_form(results)
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr
    if has_redis:
        assert first_failure(results)["status"] == "fail" and ran.stdout.count(":(") == 1, ran.stdout
    else:
        assert ran.stdout.count(":|") == len(task_of("4-setnx")["checks"]) and "skipped: redis: it is missing" in ran.stdout, ran.stdout
    assert list(temporary.iterdir()) == [], "the servers leave a folder"
    temporary.rmdir()


@pytest.mark.long
@pytest.mark.parametrize("number", short_only([signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]))
def test_an_interrupted_judge_ends_what_it_has_started(servers, tmp_path, number):
    loop = changed("1-guard", "    AUTO_RESULT row = NULL;", "    for (volatile int i = 0; want; i++)\n        ;\n    AUTO_RESULT row = NULL;")
    folder = tmp_path / "x"
    judge(servers, folder, "1-guard", loop, "LIMIT=1s")
    (folder / "check.log").unlink()
    words = [ROOT / "exercises/judge/judge", "check", "1-guard", "--build", folder, "--limit", "1h", "--servers", "environment"]
    with subprocess.Popen(words, env=servers, stdout=subprocess.PIPE, text=True, start_new_session=True) as run:
        wait_until((folder / "check.log").exists, "the first check has begun")
        run.send_signal(number)
        text = run.communicate(timeout=120 * PATIENCE)[0]
    assert (run.returncode, text.count("skipped: interrupted")) == (128 + number, len(task_of("1-guard")["checks"])), text
    assert not (folder / "results.json").exists(), "it has judged nothing"
    nothing_is_left_of(run.pid)
