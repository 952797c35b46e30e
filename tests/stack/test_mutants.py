"""Each patch of tests/mutants fits the sources, and compiles without a warning: `make mutants` runs only a few of them in CI, where a
warning is an error."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
PATCHES = sorted((ROOT / "tests" / "mutants").glob("*/*.patch"))


def run(command, folder=ROOT):
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_mutant_can_be_made(patch, tmp_path):
    sources = [line.split("\t")[2] for line in run(["git", "apply", "--numstat", patch]).splitlines()]
    for source in sources:
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, tmp_path / source)
    run(["git", "apply", "-C1", patch], tmp_path)
    compiler, *flags = shlex.split((BUILD / "obj" / "flags").read_text(encoding="utf-8"))
    for source in sources:
        assert (tmp_path / source).read_bytes() != (ROOT / source).read_bytes(), "the patch changes it"
        if source.endswith(".c"):
            run([compiler, f"-I{tmp_path}", *flags, "-Werror", "-c", "-o", os.devnull, tmp_path / source])


def test_there_are_mutants():
    assert len(PATCHES) > 10
