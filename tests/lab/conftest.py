"""Makes what all tests share, in tests/e2e, known here."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(1, str(Path(__file__).parents[1] / "e2e"))
