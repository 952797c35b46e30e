"""Each patch of tests/mutants fits the sources: `make mutants` runs only a few of them in CI."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATCHES = sorted((ROOT / "tests" / "mutants").glob("*/*.patch"))


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_mutant_can_be_made(patch):
    ran = subprocess.run(["git", "apply", "--check", "-C1", patch], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_there_are_mutants():
    assert len(PATCHES) > 10
