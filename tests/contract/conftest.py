"""Fixtures: one private stack with every lock server, processes that must end cleanly, and tables for the end."""

import contextlib
import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "support"))
pytest.register_assert_rewrite("basics", "conditions", "contender", "foreign", "stack")

from contender import Probe  # noqa: E402  after its assertions are set to be explained
from length import pytest_collection_modifyitems  # noqa: E402,F401  a hook of pytest
from stack import LockStack  # noqa: E402

TABLES = {}  # title: lines, for the end of the run


@pytest.fixture(scope="session")
def stack():
    """All servers. One that is not installed is an error, not a skip: no lock goes unproven."""
    servers = LockStack()
    try:
        servers.up()
        yield servers
    finally:
        servers.down()


@contextlib.contextmanager
def probes_on(addresses):
    """Gives a function that starts processes full of contenders, and knows ADDRESSES; all of them end with the block."""
    started = []

    def start(**more):
        started.append(Probe({**addresses, **more}))
        return started[-1]

    start.addresses = addresses
    try:
        yield start
    finally:
        for probe in started:
            probe.end()


@pytest.fixture
def start(stack):
    with probes_on(stack.addresses) as function:
        yield function


@pytest.fixture(scope="session")
def print_later():
    """print_later(title, line): what is printed when all is done."""
    return lambda title, line: TABLES.setdefault(title, []).append(line)


def pytest_terminal_summary(terminalreporter):
    for title, lines in TABLES.items():
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.line(line)
