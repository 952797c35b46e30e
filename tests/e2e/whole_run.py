"""Judges all jobs of a run together: what the document promises was seen by one of them, or is named here with the reason.

tests/run runs this when the jobs have ended; each has recorded the answers that it saw (conftest.py)."""

import json

import pytest

from basics import BUILD, DOCUMENT
from contract import PROBLEMS

# Documented, and not to be produced yet: as soon as a run does, the entry must go.
NOT_YET = set()


@pytest.fixture(scope="module")
def seen():
    """(METHOD, template, status, problem or None) of every answer."""
    records = (BUILD / "tests" / "answers").glob("*.json")
    return {tuple(entry) for record in records for entry in json.loads(record.read_text(encoding="utf-8"))}


def test_every_documented_answer_was_seen(seen):
    missing = DOCUMENT.documented() - seen
    assert missing == NOT_YET, "\n".join(
        [f"documented, never seen: {entry}" for entry in sorted(missing - NOT_YET, key=str)]
        + [f"seen, so not to be listed as missing: {entry}" for entry in sorted(NOT_YET - missing, key=str)]
    )


def test_every_problem_of_the_table_was_seen(seen):
    problems = {problem for _, _, _, problem in seen if problem} | {"method-not-allowed"}
    assert set(PROBLEMS) - problems == {problem for _, _, _, problem in NOT_YET}
