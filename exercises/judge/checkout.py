"""Judges a checkout in any language: `loadtest explore` and `check` start it as a small HTTP service, and decide."""

import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

import child
from outcome import NotJudged, say

FOLDER = Path(__file__).resolve().parents[1] / "any-language"
BUILD = Path(os.environ.get("BUILD", FOLDER.parents[1] / "build")).resolve()
SUFFIXES = {"python": "py", "node": "js", "java": "java"}
# Where make/node-pg puts the driver, and where Debian has it.
NODE_PATH = os.environ.get("NODE_PATH", f"{BUILD}/peers/modules/usr/share/nodejs:/usr/share/nodejs")
LIMIT_S, GRACE_S = 3600, 30  # of each check; to stop the service
TASKS = json.loads((FOLDER / "tasks.json").read_text(encoding="utf-8"))


def is_command(words):
    return len(words) in (2, 3) and words[0] in TASKS and (words[1] in SUFFIXES or words[1].endswith(".json"))


def run(command):
    """The exit status, and the verdicts that are not clean, or what loadtest has printed where it could not run the service."""
    with tempfile.TemporaryDirectory(prefix="oversell-") as folder:
        log, found = Path(folder, "check.log"), Path(folder, "check.json")
        status = child.run([*command, "--format", "json", "--output", found], log, LIMIT_S, GRACE_S)
        if status not in (0, 1):
            return status, log.read_text(encoding="utf-8", errors="surrogateescape")
        rows = json.loads(found.read_text(encoding="utf-8"))["rows"]
    return status, ", ".join(sorted({row["verdict"] for row in rows} - {"clean"}))


def judge(task, where, file=None):
    """The exit status of the judge."""
    shop, variables = where, []
    if where in SUFFIXES:
        shop = FOLDER / where / "shop.json"
        variables = ["--env", f"ORDER={Path(file).resolve() if file else f'{task}.{SUFFIXES[where]}'}"]
        variables += ["--env", f"NODE_PATH={NODE_PATH}"] if where == "node" else []
    child.watch()
    failed = False
    for check in TASKS[task]:
        if failed:
            say(f":| {check['name']}")
            continue
        first, *rest = check["run"]
        command = [f"{BUILD}/loadtest", first, str(shop), *rest, *variables]
        status, seen = run(command)
        if child.interrupted():
            raise NotJudged
        say(f"{':)' if status == 0 else ':('} {check['name']}")
        if status not in (0, 1):
            print(seen if status is not None else f"it did not end within {LIMIT_S} s\n", end="", file=sys.stderr)
            raise NotJudged
        if status == 1:
            say(f"   {seen}. {check['help']}\n   run: {shlex.join(command)}")
            failed = True
    return 1 if failed else 0
