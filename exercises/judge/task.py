"""A task: exercises/NAME/task.json says what a learner's strategy must do, and which checks it must pass."""

import json
from pathlib import Path

from outcome import Misused, say

EXERCISES = Path(__file__).resolve().parents[1]
KINDS = ("explore", "replay", "compare")
MEMBERS = {"title": str, "guarantee": str, "redis": bool, "checks": list, "hints": list}


def names():
    return sorted(path.parent.name for path in EXERCISES.glob("[0-9]*/task.json"))


def is_check(check):
    kinds = [kind for kind in KINDS if kind in check]
    return len(kinds) == 1 and set(check) == {"name", "help", *kinds} | ({"never"} if kinds != ["compare"] else set())


def load(name):
    if name not in names():
        said = f"there is no exercise '{name}'" if name else "NAME is missing"
        raise Misused(f"{said}; valid: NAME={' '.join(names())} (exercises/README.md)")
    path = EXERCISES / name / "task.json"
    try:
        task = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Misused(f"{path}: {error}") from None
    if {key: type(value) for key, value in task.items()} != MEMBERS or not task["checks"] or not task["hints"]:
        raise Misused(f"{path}: it must have {', '.join(MEMBERS)}, with at least one check and one hint")
    if not all(map(is_check, task["checks"])):
        raise Misused(f"{path}: a check has 'name', 'help', and 'explore' and 'never', or 'replay' and 'never', or 'compare'")
    return task | {"name": name}


def print_hints(task, most):
    hints = task["hints"]
    for number, hint in enumerate(hints[:most], 1):
        say(f"Hint {number} of {len(hints)}: {hint}")
    if most < len(hints):
        say(f"For the next hint: make hint NAME={task['name']} HINT={most + 1}")
    return 0


def print_solution(task, build):
    name = task["name"]
    try:
        passed = json.loads(Path(build, "results.json").read_text(encoding="utf-8"))["status"] == "pass"
    except (OSError, ValueError):
        passed = False
    if passed:
        print((EXERCISES / name / "solution.c").read_text(encoding="utf-8"), end="")
        return 0
    say(f"{name} has not passed yet, and the solution is shown only after that. To judge it: make exercise NAME={name}\n"
        f"For a hint: make hint NAME={name}")  # fmt: skip
    return 1
