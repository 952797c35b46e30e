"""The result of one check, and what both judges print."""

import os
import sys
from dataclasses import dataclass, field

FACES = {"pass": ":)", "fail": ":(", "error": ":(", "skip": ":|"}


class Misused(Exception):
    """The command line, or the file of a task, is wrong."""


class NotJudged(Exception):
    """Nothing could be judged."""


@dataclass
class Result:
    status: str  # pass; fail: it is wrong, or does not end; error: it could not be checked; skip: it was not run
    summary: str = ""
    command: list = field(default_factory=list)
    help: str = ""  # replaces the check's own help if that would mislead
    replay: str = ""  # the command that replays the counterexample
    explanation: str = ""  # of the counterexample
    output: str = ""  # what the learner's code has printed


def say(text=""):
    """Prints TEXT. If nobody reads any more, the judge still ends what it has begun."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text):
    print(f"judge: {text}", file=sys.stderr, flush=True)
