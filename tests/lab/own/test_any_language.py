"""The exercises in any language: what is unsolved fails at the check that has the help for it, and the solution passes."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from basics import BUILD, ROOT, wait_until
from lab import PATIENCE
from length import short_only
from test_check import sample_needs
from test_loadtest import nothing_is_left_of

FOLDER = ROOT / "exercises" / "any-language"
TASKS = json.loads((FOLDER / "tasks.json").read_text(encoding="utf-8"))
SUFFIXES = {"python": "py", "node": "js", "java": "java"}
# The number of checks that pass before one fails.
FAILS_AT = {"1-guard": 0, "2-mutex": 0, "3-version": 0, "4-setnx": 1, "5-fence": 1}


def judge(*words, **environment):
    return subprocess.run([FOLDER / "judge", *words], env=os.environ | {"BUILD": str(BUILD)} | environment, capture_output=True, text=True,
                          timeout=900 * PATIENCE, check=False)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("language", SUFFIXES)
@pytest.mark.parametrize("task", TASKS)
def test_what_is_unsolved_fails(task, language):
    sample_needs(language)
    ran = judge(task, language)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    faces = [line[:2] for line in ran.stdout.splitlines() if line[:1] == ":"]
    passed = FAILS_AT[task]
    assert faces == [":)"] * passed + [":("] + [":|"] * (len(TASKS[task]) - passed - 1), ran.stdout
    assert TASKS[task][passed]["help"] in ran.stdout and "   run: " in ran.stdout, ran.stdout


@pytest.mark.long
@pytest.mark.parametrize("language", SUFFIXES)
@pytest.mark.parametrize("task", TASKS)
def test_the_solution_passes(task, language):
    sample_needs(language)
    ran = judge(task, language, FOLDER / language / "solutions" / f"{task}.{SUFFIXES[language]}")
    assert ran.returncode == 0 and ran.stdout.count(":)") == len(TASKS[task]), ran.stdout + ran.stderr


@pytest.mark.long
@pytest.mark.parametrize("language", SUFFIXES)
def test_3_version_without_a_retry_leaves_units(tmp_path, language):
    """The second bug of the task: the version changes, but an order refuses after a conflict."""
    sample_needs(language)
    name = f"3-version.{SUFFIXES[language]}"
    text = (FOLDER / language / name).read_text(encoding="utf-8")
    text, count = re.subn(r"(SET count = \S+) WHERE", r"\1, version = version + 1 WHERE", text)
    assert count == 1
    (tmp_path / name).write_text(text, encoding="utf-8")
    ran = judge("3-version", language, tmp_path / name)
    assert ran.returncode == 1 and "turned-away" in ran.stdout, ran.stdout + ran.stderr


# Language, what a learner writes, what the judge says about it.
MISTAKES = [
    ("python", "def order(:", "SyntaxError"),
    ("node", "function order() {", "shop: node cannot load"),
    ("node", "module.exports = { ordr: null };", "module.exports has no function named order"),
    ("java", "class Order { static boolean order() { return 1; } }", "does not compile"),
    ("java", "class Order { static boolean order() { return true; } }", "has no class Order with a method static boolean order(long"),
    ("java", "class Order { boolean order(long product, int quantity) { return true; } }", "Order with a method static boolean order(long"),
]


@pytest.mark.long
@pytest.mark.parametrize("case", short_only([MISTAKES[1], MISTAKES[3]], MISTAKES), ids=lambda case: f"{case[0]} {case[2]}")
def test_a_file_that_cannot_be_loaded(tmp_path, case):
    language, text, sentence = case
    sample_needs(language)
    file = tmp_path / f"own.{SUFFIXES[language]}"
    file.write_text(text, encoding="utf-8")
    ran = judge("1-guard", language, file)
    assert ran.returncode == 3 and sentence in ran.stderr and str(file) in ran.stderr, ran.stdout + ran.stderr


@pytest.mark.parametrize("words", [[], ["1-guard"], ["6-none", "python"], ["1-guard", "cobol"], ["1-guard", "python", "x", "y"]])
def test_a_wrong_command_line(words):
    ran = judge(*words)
    assert ran.returncode == 2 and "usage: " in ran.stderr, ran.stdout + ran.stderr


@pytest.mark.long
def test_a_missing_driver_of_node(tmp_path):
    sample_needs("node")
    ran = judge("1-guard", "node", NODE_PATH=str(tmp_path))
    assert ran.returncode == 3 and "Install it with make deps-peers" in ran.stderr, ran.stdout + ran.stderr


@pytest.mark.long
def test_a_missing_driver_of_java(tmp_path):
    sample_needs("java")
    text = (FOLDER / "java" / "shop.json").read_text(encoding="utf-8").replace('"/usr/share/java/postgresql.jar"', '"."')
    for name in ("Shop.java", "Servers.java", "1-guard.java"):
        shutil.copy(FOLDER / "java" / name, tmp_path)
    (tmp_path / "shop.json").write_text(text.replace("../schema.sql", str(FOLDER / "schema.sql")), encoding="utf-8")
    ran = judge("1-guard", tmp_path / "shop.json")
    assert ran.returncode == 3 and "Install it with make deps-peers" in ran.stderr, ran.stdout + ran.stderr


def test_a_service_that_does_not_start(tmp_path):
    shop = json.loads((FOLDER / "python" / "shop.json").read_text(encoding="utf-8")) | {"start": ["false"], "schema": str(FOLDER / "schema.sql")}
    (tmp_path / "shop.json").write_text(json.dumps(shop), encoding="utf-8")
    ran = judge("1-guard", str(tmp_path / "shop.json"))
    assert ran.returncode == 3 and '"start" has ended' in ran.stderr, ran.stdout + ran.stderr


def test_an_interrupted_judge_ends_what_it_has_started(tmp_path):
    sample_needs("python")
    folder = tmp_path / "temporary"
    folder.mkdir()
    environment = os.environ | {"BUILD": str(BUILD), "TMPDIR": str(folder)}
    with subprocess.Popen([FOLDER / "judge", "1-guard", "python"], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True) as run:
        wait_until(lambda: list(folder.glob("oversell-*/check.log")), "the first check has begun")
        run.send_signal(signal.SIGTERM)
        text = run.communicate(timeout=120 * PATIENCE)[0]
    assert (run.returncode, text) == (128 + signal.SIGTERM, ""), "nothing is judged"
    nothing_is_left_of(run.pid)
    assert list(folder.iterdir()) == []
