"""The verdict about a strategy: as text, and for graders in the form of exercism's test runners, version 2
(https://exercism.org/docs/building/tooling/test-runners/interface)."""

import json
import shlex
import textwrap

from outcome import FACES, complain, say


def print_result(check, result):
    say(f"{FACES[result.status]}  {check['name']}\n      {'skipped: ' if result.status == 'skip' else ''}{result.summary}")
    if result.status in ("fail", "error"):
        told = [("why:", result.explanation), ("help:", result.help or check["help"])]
        for what, text in told if result.explanation else told[1:]:
            lines = textwrap.wrap(text, 101, break_long_words=False, break_on_hyphens=False)
            say(f"      {what:9}" + f"\n{'':15}".join(lines))
        what = "replay:" if result.replay else "again:"
        say(f"      {what:9}{result.replay or shlex.join(result.command)}")
    if result.output:
        say(f"      it printed:\n{result.output}")


def plain(text):
    """What a learner prints may not be UTF-8, also because it was cut off: then other bytes than ASCII become '?'."""
    raw = text.encode("utf-8", "surrogateescape")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 128 else "?" for byte in raw)


def message_of(check, result):
    """For people: what went wrong, the help, and how to see it again."""
    if result.status == "pass":
        return None
    if result.status == "skip":
        return f"skipped: {result.summary}"
    replay = f"replay: {result.replay}" if result.replay else ""
    return plain("\n".join(part for part in (result.summary, result.explanation, result.help or check["help"], replay) if part))


def write(path, status, message, tests):
    document = {"version": 2, "status": status, "message": message and plain(message), "tests": tests}
    try:
        path.write_text(json.dumps(document, indent=2), encoding="utf-8")
        return True
    except OSError:
        complain(f"{path} cannot be written")
        return False


def write_results(path, task, results):
    """That form has no skipped checks, so they count as errors there."""
    statuses = {"skip": "error"}
    tests = [
        {"name": check["name"], "status": statuses.get(result.status, result.status), "message": message_of(check, result),
         "output": plain(result.output) or None, "test_code": shlex.join(result.command)}
        for check, result in zip(task["checks"], results)
    ]  # fmt: skip
    found = {test["status"] for test in tests}
    if found == {"error"}:
        return write(path, "error", results[0].summary, tests)
    return write(path, "pass" if found == {"pass"} else "fail", None, tests)
