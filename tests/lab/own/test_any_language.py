"""The exercises in any language: what is unsolved fails at the check that has the help for it, and the solution passes."""

import json
import os
import subprocess

import pytest

from basics import BUILD, ROOT
from lab import PATIENCE
from test_check import sample_needs

FOLDER = ROOT / "exercises" / "any-language"
TASKS = json.loads((FOLDER / "tasks.json").read_text(encoding="utf-8"))
# The number of checks that pass before one fails.
FAILS_AT = {"1-guard": 0, "2-mutex": 0, "3-version": 0, "4-setnx": 1, "5-fence": 1}


def judge(*words):
    return subprocess.run([FOLDER / "judge", *words], env=os.environ | {"BUILD": str(BUILD)}, capture_output=True, text=True,
                          timeout=900 * PATIENCE, check=False)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
def test_what_is_unsolved_fails(task):
    sample_needs("python")
    ran = judge(task, "python")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    faces = [line[:2] for line in ran.stdout.splitlines() if line[:1] == ":"]
    passed = FAILS_AT[task]
    assert faces == [":)"] * passed + [":("] + [":|"] * (len(TASKS[task]) - passed - 1), ran.stdout
    assert TASKS[task][passed]["help"] in ran.stdout and "   run: " in ran.stdout, ran.stdout


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
def test_the_solution_passes(task):
    sample_needs("python")
    ran = judge(task, "python", FOLDER / "python" / "solutions" / f"{task}.py")
    assert ran.returncode == 0 and ran.stdout.count(":)") == len(TASKS[task]), ran.stdout + ran.stderr


@pytest.mark.long
def test_3_version_without_a_retry_leaves_units(tmp_path):
    """The second bug of the task: the version counts, but a conflict is a refusal."""
    sample_needs("python")
    text = (FOLDER / "python" / "3-version.py").read_text(encoding="utf-8")
    (tmp_path / "own.py").write_text(text.replace("SET count = %s WHERE", "SET count = %s, version = version + 1 WHERE"), encoding="utf-8")
    ran = judge("3-version", "python", tmp_path / "own.py")
    assert ran.returncode == 1 and "units were left" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize("words", [[], ["1-guard"], ["6-none", "python"], ["1-guard", "cobol"], ["1-guard", "python", "x", "y"]])
def test_a_wrong_command_line(words):
    ran = judge(*words)
    assert ran.returncode == 2 and "usage: " in ran.stderr, ran.stdout + ran.stderr


def test_a_service_that_does_not_start(tmp_path):
    shop = json.loads((FOLDER / "python" / "shop.json").read_text(encoding="utf-8")) | {"start": ["false"], "schema": str(FOLDER / "schema.sql")}
    (tmp_path / "shop.json").write_text(json.dumps(shop), encoding="utf-8")
    ran = judge("1-guard", str(tmp_path / "shop.json"))
    assert ran.returncode == 3 and '"start" has ended' in ran.stderr, ran.stdout + ran.stderr
