"""Marks cases of a test as long, so that `make test` runs only a few of each kind, and lets CI run a part of the long ones.

The conftest.py of a suite imports the hook."""

import os
import zlib

import pytest


def short_only(short, cases):
    """CASES, of which all but those in SHORT have the mark `long`. A name in SHORT that is no case is an error."""
    cases = list(cases)
    assert set(short) <= set(cases), f"no such case: {set(short) - set(cases)}"
    return [case if case in short else pytest.param(case, marks=pytest.mark.long) for case in cases]


def pytest_collection_modifyitems(config, items):
    """LONG_PART=K/N leaves out the long tests that are not in part K of N. A test's name alone decides in which part it is."""
    part, _, parts = os.environ.get("LONG_PART", "1/1").partition("/")
    wanted, left_out = [], []
    for item in items:
        in_part = zlib.crc32(item.nodeid.encode()) % int(parts) == int(part) - 1
        (wanted if in_part or not item.get_closest_marker("long") else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = wanted
