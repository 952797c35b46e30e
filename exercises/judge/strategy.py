"""Judges a strategy in C: `loadtest explore` and `compare`, into which it is linked, run it, and their JSON decides."""

import json
import os
import shlex
import shutil
from pathlib import Path

import child
import servers
from outcome import NotJudged, Result, say
from task import KINDS, names, print_hints
from verdict import print_result, write, write_results

NAME = "mine"  # of the only row of a learner's table
OUTPUT_MOST = 500  # bytes of what the learner's code prints, as in exercism
LOG_MOST = 60000  # of the compiler's messages
EXPLORE_GRACE_S, COMPARE_GRACE_S = 10, 30  # to stop the services that it has started
UNITS = (("h", 3600000), ("m", 60000), ("s", 1000), ("ms", 1))

# ---- what the figures say ---------------------------------------------------------------------------------------------

# What a check never allows, its key in the result, and what it means.
FIGURES = (
    ("oversold", "oversold", "oversold"),
    ("drift", "drift", "stock and orders do not balance"),
    ("undersold", "undersold", "an order was refused although enough was left"),
    ("stuck", "stuck_locks", "an order waits forever"),
    ("deadlock", "deadlocks", "a deadlock"),
    ("robbed", "robbed", "an order released another order's lock"),
    ("two-holders", "two_holders", "two orders held the lock at once"),
)

HELP_OF_DATABASE = "PostgreSQL refused a statement, and the line above quotes its message. Correct the statement, then judge again."
HELP_OF_SERVER = "A server refused a command or did not answer, and the line above quotes it. Correct the command, then judge again."
HELP_OF_LOOP = "Look for a loop that never ends, and for a wait without a deadline. Every loop needs a condition that ends it."
HELP_OF_ERROR = "The check did not finish, for the reason in the line above. Correct that first, then judge again."


def figures_of(check):
    return [figure for figure in FIGURES if figure[0] in check["never"].split(",")]


def outcomes_of(witness):
    outcomes = (witness.get("ending") or {}).get("outcomes") or []
    told = ", ".join(f"{chr(ord('A') + number)}: {outcome}" for number, outcome in enumerate(outcomes))
    return f" ({told})" if told else ""


def judge_schedules(check, row, program, result):
    verdict, reason, schedules = row["verdict"], row.get("reason") or "", row.get("schedules", 0)
    result.status = "fail"
    if verdict == "ok":
        result.status, result.summary = "pass", f"all {schedules} schedules"
    elif verdict == "unknown" and not reason:
        result.status, result.summary = "pass", f"{schedules} schedules, those with the fewest interruptions"
    elif verdict == "broken":
        found = [f"{words} in {row[key]} of {schedules}" for _, key, words in figures_of(check) if (row.get(key) or 0) > 0]
        result.summary = ", ".join(found) or "an order failed, or its answer to the client was wrong"
        witness = row.get("witness") or {}
        if witness.get("replay"):
            result.replay = f"{program} explore --replay {shlex.quote(witness['replay'])}"
        result.explanation = (witness.get("explanation") or "") + outcomes_of(witness)
    else:
        result.summary = reason or verdict


def judge_replay(check, row, program, result):
    ending, reason = row.get("ending") or {}, row.get("error") or ""
    if not reason and not any(ending.get(name) or ending.get(key) for name, key, _ in figures_of(check)):
        result.status, result.summary = "pass", f"sold {ending.get('sold', 0)}"
        return
    result.status = "fail"
    result.summary = reason or "it sold more than the stock, or stock and orders do not balance"
    result.replay, result.explanation = shlex.join(result.command), row.get("explanation") or ""


def judge_load(check, row, program, result):
    verdict, drift, why = row["verdict"], row.get("drift") or 0, row.get("witness") or row.get("finding") or ""
    sold = f"sold {row.get('sold') or 0} of {row.get('stock') or 0}"
    if verdict == "unavailable":
        result.status, result.summary = "error", f"the load test could not run: {row.get('reason') or 'no reason given'}"
    elif row.get("oversold") or drift or verdict == "broken":
        result.status, result.summary = "fail", f"{sold}, drift {drift}" + (f": {why}" if why else "")
    else:
        result.status, result.summary = "pass", sold


JUDGES = {"explore": judge_schedules, "replay": judge_replay, "compare": judge_load}


def help_instead(result):
    """Help for a check that did not reach what it is about, so that its own help would mislead."""
    if "internal-error" in result.summary:
        return HELP_OF_DATABASE
    if "backend-unavailable" in result.summary:
        return HELP_OF_SERVER
    return HELP_OF_ERROR if result.status == "error" else ""


# ---- running a check ----------------------------------------------------------------------------------------------------


def kind_of(check):
    return next(kind for kind in KINDS if kind in check)


def command_of(check, program):
    kind = kind_of(check)
    if kind == "replay":
        return [program, "explore", "--replay", check["replay"]]
    end = ["--never", check["never"]] if kind == "explore" else ["--phases", "sell-out"]
    return [program, kind, "--strategies", NAME, *check[kind], *end]


def read_log(path):
    """The first complaint of loadtest itself, and what the learner's code has printed, whose last line may lack its end."""
    complaint, output = "", b""
    with open(path, "rb") as log:
        for line in iter(lambda: log.readline(1000), b""):
            printed, is_said, said = line.partition(b"loadtest: ")
            complaint = complaint or said.decode(errors="replace").rstrip("\n")
            output += (printed if is_said else line) if len(output) <= OUTPUT_MOST else b""
    cut = f"\n(cut off after {OUTPUT_MOST} bytes)" if len(output) > OUTPUT_MOST else ""
    return complaint, output[:OUTPUT_MOST].decode(errors="surrogateescape") + cut


def read_row(path, kind):
    try:
        return json.loads(path.read_text(encoding="utf-8"))["replays" if kind == "replay" else "rows"][0]
    except (OSError, ValueError, LookupError):
        return None


def duration_text(limit_ms):
    return next(f"{limit_ms // size}{unit}" for unit, size in UNITS if limit_ms % size == 0)


def run_check(task, check, build, environment, limit_ms):
    kind, program = kind_of(check), f"{build}/loadtest"
    result, grace_s = Result("error", command=command_of(check, program)), COMPARE_GRACE_S if kind == "compare" else EXPLORE_GRACE_S
    found, log = Path(build, "check.json"), Path(build, "check.log")
    found.unlink(missing_ok=True)  # of an earlier check
    log.unlink(missing_ok=True)
    words = [*result.command, "--servers", "environment", "--format", "json", "--output", found]
    try:
        status = child.run(words, log, limit_ms / 1000, grace_s, environment)
    except OSError as error:
        result.summary, result.help = f"the system cannot start another process: {error.strerror}", "Close other programs, then judge again."
        return result
    complaint, result.output = read_log(log)
    row = read_row(found, kind)
    if status is None and child.interrupted():
        result.status, result.summary = "skip", "interrupted"
    elif status is None:
        result.status, result.summary, result.help = "fail", f"it did not end within {duration_text(limit_ms)}", HELP_OF_LOOP
    elif row is None:
        result.summary = complaint or child.status_text(status)
    elif kind != "replay" and row.get("guarantee") != task["guarantee"]:
        result.summary = f"the row promises '{row.get('guarantee')}', but the task needs '{task['guarantee']}'"
    else:
        JUDGES[kind](check, row, program, result)
    result.help = result.help or help_instead(result)
    return result


def why_not(task, check, missing):
    """Why CHECK cannot run."""
    if task["redis"] and missing:
        return missing
    return "wrk is not installed; install it with make deps" if "compare" in check and not shutil.which("wrk") else ""


def run_checks(task, build, environment, missing, limit_ms):
    results, stopped = [], ""  # later checks are skipped after the first failure
    for check in task["checks"]:
        reason = "interrupted" if child.interrupted() else stopped or why_not(task, check, missing)
        if reason:
            result = Result("skip", reason, command_of(check, f"{build}/loadtest"))
        else:
            result = run_check(task, check, build, environment, limit_ms)
        if result.status in ("fail", "error"):
            stopped = "an earlier check failed; fix that first"
        print_result(check, result)
        results.append(result)
    return results


# ---- judging ------------------------------------------------------------------------------------------------------------


def is_built(build, path):
    """Was the learner's program built? If not, that is the result of the exercise."""
    try:
        with open(Path(build, "build.log"), "rb") as log:
            said = log.read(LOG_MOST).decode(errors="surrogateescape")
    except OSError:
        said = ""
    built = os.access(Path(build, "loadtest"), os.X_OK)
    if not built:
        say(f":(  Your file does not compile\n{said}".rstrip("\n"))
        write(path, "error", said or "your file does not compile", [])
    elif "warning:" in said:
        say(f"The compiler warns:\n{said}")
    return built


def judge(task, build, which, limit_ms, hints):
    path = Path(build, "results.json")
    path.unlink(missing_ok=True)  # of an earlier run
    say(f"{task['name']}: {task['title']}\n")
    if not is_built(build, path):
        return 0
    child.watch()
    with servers.private(task["redis"]) if which == "private" else servers.environment() as (found, missing):
        # The service's own default is not in the learner's table.
        addresses = {"DATABASE_URL": found["DATABASE_URL"], "REDIS_URL": found.get("REDIS_URL", ""), "STRATEGY": NAME}
        results = run_checks(task, build, os.environ | addresses, missing, limit_ms)
    if child.interrupted():
        raise NotJudged
    statuses = [result.status for result in results]
    passed, skipped = statuses.count("pass"), statuses.count("skip")
    said = f"\n{passed} passed, {len(statuses) - passed - skipped} failed, {skipped} skipped. "
    if passed == len(statuses):
        following = [name for name in names() if name > task["name"]]
        say(f"{said}The strategy keeps its promise. Compare it with: make solution NAME={task['name']}")
        say(f"Next: make exercise NAME={following[0]}" if following else "This was the last exercise.")
    else:
        say(f"{said}For a hint: make hint NAME={task['name']}")
        if hints:
            print_hints(task, hints)
    return 0 if write_results(path, task, results) else 3
