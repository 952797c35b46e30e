"""Marks cases of a test as long, so that `make test` runs only a few of each kind."""

import pytest


def short_only(short, cases):
    """CASES, of which all but those in SHORT have the mark `long`. A name in SHORT that is no case is an error."""
    cases = list(cases)
    assert set(short) <= set(cases), f"no such case: {set(short) - set(cases)}"
    return [case if case in short else pytest.param(case, marks=pytest.mark.long) for case in cases]
