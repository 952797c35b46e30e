"""Makes what all tests share, and what the lab's tests share, known here."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[1:1] = [str(Path(__file__).parents[2] / "support"), str(Path(__file__).parents[1])]
