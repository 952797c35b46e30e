"""A report of each command, from a real run, in Chromium and in Firefox. The screenshots show what a person sees."""

import re
import sys

import pytest
from basics import START_S
from browser import SHOTS, Browser
from firefox import Firefox
from looks import check_looks
from test_bench import measure
from test_check import ROOT, SAMPLES, sample_needs
from test_loadtest import loadtest

TWO = ("--strategies", "read-write,select-for-update")
SHOP = str(SAMPLES / "python" / "shop.json")

# The arguments of each command, its headline, and the least pictures of its report.
RUNS = {
    "compare": (("compare", *TWO, "--duration", "1s"), r"^read-write sold \d+ of 100; select-for-update held at", 5),
    "rush": (("rush", "--strategies", "select-for-update", "--duration", "2s", "--closed-loop", "1s"), r".", 4),
    "explore": (("explore", *TWO), r"^read-write oversold in 22 of 24 schedules; 1 strategy never did\.$", 2),
    "faults": (("faults", "--faults", "kill", "--strategies", "atomic-decrement", "--cycles", "2"), r".", 2),
    "bench": (("bench/bench", "--only", "sold-out", "--rounds", "1", "--duration", "1s"), r"^\d of 1 goals reached", 1),
    "soak": (("soak", "--strategies", "atomic-statement", "--orders", "2000"), r"^2,000 orders under 1 strategy", 4),
    "growth": (("bench/growth", "--connections", "4", "--products", "10", "--orders", "10000", "--duration", "1s"), r"orders/s, with \d", 6),
    "diff": (("diff", "read-write", "select-for-update"), r"^read-write sold \d+ of 100.*; select-for-update sold 100 of 100.*\.$", 0),
    "check": (("check", SHOP, "--env", "PROTECTION=naive"), r"^The service oversold in 1 of 1 runs", 3),
    "explore-own": (("explore", SHOP, "--env", "PROTECTION=naive"), r"^The service is NOT clean", 1),
    "specification": (("explore", str(ROOT / "tests/lab/specs/lost-update.spec")), r".", 0),
}  # fmt: skip


@pytest.fixture(scope="module")
def browsers(tmp_path_factory):
    started = []
    try:
        for name, kind in (("chromium", Browser), ("firefox", Firefox)):
            started.append(kind(tmp_path_factory.mktemp(name)))
            started[-1].shots = f"report-{name}-run-"
        yield started
    finally:
        for browser in started:
            browser.quit()


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_the_report_of_a_run(browsers, tmp_path, name):
    arguments, headline, pictures = RUNS[name]
    if SHOP in arguments:
        sample_needs("python")
    path = tmp_path / f"{name}.html"
    run = measure if arguments[0].startswith("bench/") else loadtest
    ran = run(*arguments, "--output", "/dev/null", "--export-html", path, seconds=START_S * 10)
    assert ran.returncode in (0, 1) and path.exists(), ran.stdout + ran.stderr
    size = path.stat().st_size
    print(f"{name}: {size / 1000:.0f} kB", file=sys.stderr)
    assert size < 1_000_000
    for browser in browsers:
        for width, scheme in ((390, "light"), (1280, "dark")):
            check_looks(browser, path, scheme, width, name)
        assert re.search(headline, browser.all("h1")[0].text), browser.all("h1")[0].text
        assert len(browser.all("figure")) >= pictures
        assert arguments[0] in browser.text("command")
        with browser.on_paper("dark"):
            assert browser.ground() == "rgb(255, 255, 255)" and browser.low_contrast(drawings=True) == []
            (SHOTS / f"{browser.shots}{name}.pdf").write_bytes(browser.pdf())
