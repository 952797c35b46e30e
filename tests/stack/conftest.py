"""Fixtures: stacks that must leave no process behind."""

import subprocess
import sys
from pathlib import Path

import pytest
from private_stack import Servers, stack

sys.path.insert(1, str(Path(__file__).parents[1] / "support"))

from length import pytest_collection_modifyitems  # noqa: E402,F401  a hook of pytest


@pytest.fixture
def servers(stacks):
    return stacks()


@pytest.fixture
def stacks():
    """Makes stacks side by side."""
    # pytest's folders are closed to the servers' own users; this one is not.
    folder = Path(subprocess.run(["mktemp", "-d", "-t", "oversell-stack-XXXXXX"], capture_output=True, text=True,
                                 check=True).stdout.strip())
    folder.chmod(0o755)
    made = []

    def make():
        made.append(Servers(folder / f"stack{len(made)}"))
        return made[-1]

    left = []
    try:
        yield make
    finally:
        for each in made:
            if each.folder.exists():
                stack("down", "--purge", "--dir", each.folder)
            left += each.processes()
        subprocess.run(["rm", "-rf", folder], check=True)
    assert left == []
