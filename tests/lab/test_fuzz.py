"""The quick cut of `make fuzz`: every target is built, its corpus passes, and so do some thousand mutations of it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build") / "fuzz"
NAMES = sorted(path.stem for path in (ROOT / "tests" / "fuzz").glob("*.c"))


@pytest.fixture(scope="module")
def built():
    subprocess.run(["make", "--no-print-directory", "-j2", f"BUILD={BUILD}", "CC=clang",
                    "SANITIZE=fuzzer-no-link,address,undefined", "fuzz-programs"],
                   cwd=ROOT, check=True, timeout=3600, stdout=subprocess.DEVNULL)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_soon(built, name):
    ran = subprocess.run([ROOT / "tests" / "fuzz" / "run", "2000x", name], capture_output=True, text=True, check=False,
                         timeout=1200, env={**os.environ, "BUILD": str(BUILD)})  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    corpus = len(list((ROOT / "tests" / "fuzz" / "corpus" / name).iterdir()))
    assert int(re.search(r"(\d+) inputs", ran.stdout)[1]) > corpus >= 5, ran.stdout
