"""Reports as a person gets them: one file, opened from disk in a browser, on a phone, on a screen and on paper."""

import base64
import json
import re
import subprocess

import pytest
from browser import Browser
from lab import ROOT

LOADTEST = ROOT / "build/loadtest"
RESULTS = ROOT / "docs/results"
KINDS = ("compare", "explore-none", "explore-expire", "bench", "soak", "growth")

# Texts of drawings that are cut off, that cover each other, or that are turned.
DRAWN_BADLY = """
const found = [];
for (const svg of document.querySelectorAll("svg")) {
  if (!svg.checkVisibility()) continue;
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim());
  const boxes = texts.map((t) => t.getBoundingClientRect());
  texts.forEach((text, i) => {
    const a = boxes[i], words = text.textContent.trim();
    if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
      found.push(`cut off: ${words}`);
    if (Math.abs(text.getScreenCTM().b) > 0.01) found.push(`turned: ${words}`);
    for (let j = 0; j < i; j++) {
      const b = boxes[j];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) found.push(`${words} covers ${texts[j].textContent.trim()}`);
    }
  });
}
return found;
"""

# Texts that are wider than the box they stand in.
SPILLS = """
return [...document.querySelectorAll("h1, p, li, td, th, dd, dt, pre, summary, figcaption, button")]
  .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)
  .map((e) => `${e.tagName}: ${e.textContent.trim().slice(0, 60)}`);
"""


def report(*arguments):
    return subprocess.run([LOADTEST, "report", *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def browser(folder):
    started = Browser(folder)
    started.shots = "report-"
    yield started
    started.quit()


@pytest.fixture(scope="module")
def reports(folder):
    """Each stored result as a report: its path by name."""
    made = {}
    for kind in KINDS:
        path = folder / f"{kind}.html"
        ran = report(RESULTS / f"{kind}.json", "--format", "csv", "--output", "/dev/null", "--export-html", path)
        assert ran.returncode == 0, ran.stderr
        made[kind] = path
    return made


def check_looks(browser, path, scheme, width):
    browser.set_scheme(scheme)
    browser.size(width, phone=width < 600)
    browser.driver.get(path.as_uri())
    for fold in browser.all("details"):
        browser.driver.execute_script("arguments[0].open = true", fold)
    assert browser.overflows() <= 0
    assert browser.low_contrast() == []
    assert browser.too_small() == []
    assert browser.unnamed() == []
    assert browser.driver.execute_script(SPILLS) == []
    assert browser.driver.execute_script(DRAWN_BADLY) == []
    assert browser.driver.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    assert browser.complaints() == []


@pytest.mark.parametrize("scheme", ("light", "dark"))
@pytest.mark.parametrize("width", (390, 1280))
@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_readable(browser, reports, kind, width, scheme):
    check_looks(browser, reports[kind], scheme, width)


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_one_small_file(reports, kind):
    text = reports[kind].read_text()
    assert len(text.encode()) < 1_000_000
    assert not re.search(r"""(src|href)=["']?(https?:)?//|url\(|@import""", text)


@pytest.mark.parametrize(
    "kind, finding",
    (
        ("compare", r"^read-write sold 400 of 100; redis-stock held at [\d,]+ orders/s\.$"),
        ("explore-none", r"^[a-z-]+ oversold in \d+ of \d+ schedules; \d+ strategies never did\.$"),
        ("bench", r"^\d+ of \d+ goals reached; missed: "),
        ("soak", r"^[\d,]+ orders under \d+ strategies\. Memory is flat"),
        ("growth", r"^atomic-statement reaches [\d,]+ orders/s, with \d+ "),
    ),
)
def test_the_headline_says_what_was_found(browser, reports, kind, finding):
    browser.driver.get(reports[kind].as_uri())
    assert re.search(finding, browser.all("h1")[0].text), browser.all("h1")[0].text


def column(browser, name):
    """The texts of a column of the first table."""
    table = browser.all("table.key")[0]
    script = """
    const [table, name] = arguments, heads = [...table.tHead.rows[0].cells].map((c) => c.textContent.trim());
    return [...table.tBodies[0].rows].map((row) => row.cells[heads.indexOf(name)].textContent.trim());
    """
    return browser.driver.execute_script(script, table, name)


def test_the_columns_that_matter_are_there_and_are_sorted_by_a_click(browser, reports):
    browser.size(1280)
    browser.driver.get(reports["compare"].as_uri())
    heads = [head.text.strip(" ↕") for head in browser.all("table.key thead th")]
    assert heads == ["strategy", "verdict", "oversold", "breaks when", "orders /s", "p99 ms"]
    rates = lambda: [float(text.replace(",", "")) for text in column(browser, "orders /s")]  # noqa: E731
    unsorted = rates()
    browser.click("table.key thead th:nth-child(5) button")
    assert rates() == sorted(unsorted, reverse=True)
    browser.click("table.key thead th:nth-child(5) button")
    assert rates() == sorted(unsorted)
    browser.click("table.key thead th:nth-child(1) button")
    assert column(browser, "strategy")[0] == "advisory-lock"


def test_a_result_keeps_the_command_that_repeats_it(browser, folder):
    """Without the options that say where it goes, and quoted as a shell reads it."""
    document = json.loads((RESULTS / "compare.json").read_text())
    document["command"] = "build/loadtest compare --strategies 'a b'"
    (folder / "with.json").write_text(json.dumps(document))
    assert report(folder / "with.json", "--format", "html", "--output", folder / "with.html").returncode == 0
    browser.driver.get((folder / "with.html").as_uri())
    assert browser.text("command") == "build/loadtest compare --strategies 'a b'"
    browser.click("button.copy")
    browser.wait(lambda: browser.all("button.copy")[0].text in ("Copied", "Press Ctrl+C"), "the button says what it did")


def test_a_report_is_printed_in_black_on_white(browser, reports):
    """Also by a reader whose screen is dark: the PDF is made of the page as it is printed."""
    browser.set_scheme("dark")
    browser.driver.get(reports["compare"].as_uri())
    browser.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    try:
        assert browser.ground() == "rgb(255, 255, 255)"
        assert browser.low_contrast() == []
        printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        assert base64.b64decode(printed["data"]).startswith(b"%PDF")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
