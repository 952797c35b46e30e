"""Makes what all tests share, in tests/support, known here."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(1, str(Path(__file__).parents[1] / "support"))
sys.path.insert(1, str(Path(__file__).parent / "own"))

from length import pytest_collection_modifyitems  # noqa: E402,F401  a hook of pytest
