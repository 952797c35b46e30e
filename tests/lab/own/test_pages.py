"""The pages about a user's own service: their commands print what the pages say, and the code that they show is that of the samples."""

import os
import re
import subprocess

import pytest

from basics import ROOT
from lab import PATIENCE
from test_check import sample_needs

DOCS = ROOT / "docs"
OWN = ROOT / "samples" / "own"
TUTORIAL = "does-your-checkout-oversell.md"
SHOWN = [(TUTORIAL, ("python/shop.py", "python/shop.json"), 5)]  # page, where its code is from, blocks of code


@pytest.mark.long
def test_the_tutorial_shows_what_the_commands_print():
    sample_needs("python")
    ran = subprocess.run([DOCS / "workshop" / "rehearse", DOCS / TUTORIAL], env=os.environ | {"BUILD": os.environ.get("BUILD", "build")},
                         capture_output=True, text=True, timeout=900 * PATIENCE, check=False)  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(("page", "sources", "count"), SHOWN, ids=lambda value: value if isinstance(value, str) else None)
def test_a_page_shows_code_of_its_samples(page, sources, count):
    known = "\n".join((OWN / source).read_text(encoding="utf-8") for source in sources)
    blocks = re.findall(r"^```(?:python|json|js|java|ruby|php)\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) == count, blocks
    assert [block for block in blocks if block not in known] == []


def test_the_tutorial_runs_each_command_that_it_prints_as_code():
    """What stands in a block but is not run is a block without a language, of which there are these."""
    text = (DOCS / TUTORIAL).read_text(encoding="utf-8")
    assert re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M) == [
        "make deps-test && make",
        "build/loadtest explore shop.json --instances 2",
        "build/loadtest check shop.json --instances 2 --repeat 3 --export-junit check.xml",
    ]
