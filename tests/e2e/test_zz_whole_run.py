"""The last word: what the document promises was seen in this run, or is named here with the reason."""

from contract import PROBLEMS
from lab import DOCUMENT

# Documented, and not to be produced yet: as soon as a run does, the entry must go.
NOT_YET = set()


def test_every_documented_answer_was_seen():
    missing = DOCUMENT.documented() - DOCUMENT.seen
    assert missing == NOT_YET, "\n".join(
        [f"documented, never seen: {entry}" for entry in sorted(missing - NOT_YET, key=str)]
        + [f"seen, so not to be listed as missing: {entry}" for entry in sorted(NOT_YET - missing, key=str)]
    )


def test_every_problem_of_the_table_was_seen():
    seen = {problem for _, _, _, problem in DOCUMENT.seen if problem} | {"method-not-allowed"}
    assert set(PROBLEMS) - seen == {problem for _, _, _, problem in NOT_YET}
