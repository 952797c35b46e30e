"""The static site, opened from file:// without a network: its schedules by clicks and by keys, its size, and what it loads."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from basics import BUILD
from browser import Keys
from lab import ROOT
from test_page_lessons import answers, verdict, walk_to_the_end

sys.path.insert(0, str(ROOT / "tools" / "site"))
import bundle  # noqa: E402  after its folder is known

ROWS = ("read-write", "mutex", "redis-lock", "redis-fenced", "atomic-decrement")  # a site of these is soon made
MOST_BYTES = 15_000_000


@pytest.fixture(scope="module")
def site(stack, tmp_path_factory):
    """A small site, made as `make site` does it."""
    folder = tmp_path_factory.mktemp("site")
    began = time.monotonic()
    environment = {**os.environ, **stack.environment, "DATABASE_URL": stack.database(), "BUILD": str(BUILD)}
    rows = ["--strategies", ",".join(ROWS), "--lessons", BUILD / "generated" / "lessons"]
    for script, *arguments in (("record.py", folder / "recorded", *rows), ("build.py", folder)):
        done = subprocess.run([sys.executable, ROOT / "tools/site" / script, *arguments], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    print(f"made in {time.monotonic() - began:.0f} s")
    return folder


@pytest.fixture
def page(browser, site):
    """A browser without a network. It must neither complain nor ask for anything but the site's files."""
    with browser.offline():
        browser.size(1280)
        browser.driver.get("about:blank")
        browser.complaints()
        browser.site = site.as_uri()
        yield browser
        loaded = browser.driver.execute_script("return performance.getEntriesByType('resource').map(({name}) => name)")
        assert [name for name in loaded if not name.startswith(browser.site)] == []
        assert browser.complaints() == []


def open_steps(page, schedule):
    page.driver.get("about:blank")
    page.driver.get(f"{page.site}/steps.html#{schedule.replace(' ', '+')}")
    page.wait(lambda: page.all(".lane"), "the orders are shown")


def address(page):
    return page.driver.execute_script("return decodeURIComponent(location.hash.slice(1)).replaceAll('+', ' ')")


def can(page, button):
    return page.find(button).get_attribute("aria-disabled") != "true"


@pytest.mark.long
def test_the_start_page_leads_to_a_counterexample(page):
    page.driver.get(f"{page.site}/index.html")
    assert len(page.all("tbody tr")) == len(ROWS)
    page.click('a[aria-label^="redis-lock, a lease ends:"]')
    page.wait(lambda: page.all(".lane"), "the orders are shown")
    page.wait(lambda: page.text("sold") == "2", "it has oversold")
    assert "Sold 2 of 1" in page.text("result")
    page.driver.execute_script("document.getElementById('result').scrollIntoView()")
    page.shot("site-steps")
    page.driver.get(f"{page.site}/index.html")
    page.shot("site-start")


def test_what_a_second_process_breaks_is_in_the_table(page):
    page.driver.get(f"{page.site}/index.html")
    heads = [head.text for head in page.all("thead th")]
    cells = {line.find_element("css selector", "th").text: [cell.text for cell in line.find_elements("css selector", "td")] for line in page.all("tbody tr")}
    assert heads[-1] == "A second process" and {len(line) for line in cells.values()} == {len(heads) - 1}
    assert {name: line[-1] for name, line in cells.items()} == {name: "oversells" if name == "mutex" else "–" for name in cells}
    told = page.find("help").get_attribute("textContent")
    assert "oversell only then" in told and "a second process changes nothing" in " ".join(told.split())
    page.click('a[aria-label="mutex, a second process: oversells"]')
    page.wait(lambda: page.driver.current_url.endswith("05-one-process.html"), "the lesson that runs two processes")


def test_a_counterexample_by_clicks(page):
    open_steps(page, "read-write s=1 q=1,1")
    page.driver.execute_script("const ask = document.getElementById('ask'); if (ask.checked) ask.click()")
    for button in ("step-A", "step-B"):
        page.click(button)
        page.wait(lambda name=button[-1]: f"{name} reads 1" in page.text("told"), f"{button} has read")
    page.click("end-B")
    page.wait(lambda: page.text("sold") == "1", "B has bought")
    page.click("end-A")
    page.wait(lambda: page.text("sold") == "2", "A has bought, too")
    assert "Sold 2 of 1" in page.text("result")
    page.click("undo")
    page.wait(lambda: page.text("sold") == "1", "undone")


@pytest.mark.parametrize(("row", "faults"), [("read-write", "none"), ("redis-lock", "expire")])
def test_a_counterexample_is_found_and_stepped_through_by_keys(page, row, faults):
    open_steps(page, f"{row} s=1 q=1,1")
    page.choose("faults", faults)
    page.driver.execute_script("document.activeElement.blur()")
    page.press("f")
    page.wait(lambda: "oversell" in page.text("found"), "it is found")
    assert page.text("sold") == "0"
    for _ in range(30):
        if page.text("sold") == "2" and page.find("result").is_displayed():
            break
        before = address(page)
        page.press(Keys.SPACE)
        page.wait(lambda before=before: address(page) != before, "the next step")
    assert "Sold 2 of 1" in page.text("result")
    page.press("u")
    page.wait(lambda: not page.text("result") or not page.find("result").is_displayed(), "undone")
    page.press("r")
    page.wait(lambda: address(page) == f"{row} s=1 q=1,1", "from the start")


@pytest.mark.long
def test_a_lesson_is_done_and_kept(page):
    page.driver.get(f"{page.site}/lessons/index.html")
    page.driver.execute_script("localStorage.clear()")
    page.click('a[href$="01-lost-update.html"]')
    page.wait(lambda: answers(page, "predict"), "the lesson is shown")
    answers(page, "predict")[0].click()
    walk_to_the_end(page, "run-0-", lambda: page.click("run-0-next"))
    page.wait(lambda: verdict(page, "predict").startswith("✗ Not 0: "), "the prediction is decided")
    answers(page, "check")[2].click()
    assert verdict(page, "check").startswith("✓ Right: ")
    page.driver.refresh()
    page.wait(lambda: verdict(page, "check") == "✓ You have solved this lesson.", "the progress is kept")
    page.click(".run[data-run*=search] .go-run")
    page.click(".run[data-run*=search] tbody a")
    page.wait(lambda: page.all(".lane"), "the simplest one opens in steps")
    assert page.find("told-empty").is_displayed() and page.driver.current_url.startswith(f"{page.site}/steps.html#read-write+")


def test_a_safe_row_has_no_counterexample(page):
    open_steps(page, "atomic-decrement s=1 q=1,1")
    page.press("f")
    page.wait(lambda: "schedules oversell: 2 orders in one process, stock 1, no fault" in page.text("found"), "none is found")


def test_what_was_not_recorded_is_disabled_and_says_so(page, site):
    recorded = json.loads((site / "recorded" / "redis-lock.js").read_text().split("] = ", 1)[1].rstrip().rstrip(";"))
    place, name = next(
        (place, order["name"])
        for place, stored in enumerate(recorded["states"])
        for order in stored["state"].get("orders", [])
        if order["can"]["step"] and order["name"] not in stored["moves"]
    )
    open_steps(page, recorded["states"][place]["state"]["schedule"])
    assert not can(page, f"step-{name}")
    assert "This step was not recorded; run it with oversell itself." in page.text(f"reason-{name}")
    page.driver.get(f"{page.site}/steps.html#redis-lock+s=7+q=1,1")
    page.driver.refresh()
    page.wait_text("alert", "This step was not recorded; run it with oversell itself.")


def test_states_of_a_common_prefix_are_stored_once(site):
    states = whole = 0
    for file in site.glob("recorded/*.js"):
        recorded = json.loads(file.read_text().split("] = ", 1)[1].rstrip().rstrip(";"))
        schedules = [stored["state"]["schedule"] for stored in recorded.get("states", [])]
        assert len(schedules) == len(set(schedules))
        for stored in recorded.get("states", []):
            states += 1
            whole += stored["parent"] is not None and "told" in stored["state"]
    # A lock's server may list its nodes in another sequence, or an order ask it once more.
    assert whole <= 0.05 * states, f"{whole} of {states} states are stored whole"


def test_it_opens_from_files_and_is_small(site):
    assert sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) < MOST_BYTES
    for file in site.rglob("*.html"):
        text = file.read_text()
        # A lesson names sources elsewhere: links, which load nothing.
        assert not re.search(r'(src|href)="/|src="https?:|<link[^>]*href="https?:', text), file.name
        assert 'type="module"' not in text


# ── the bundler ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_bundler_refuses_what_it_does_not_know(tmp_path):
    def fails(text, words):
        (tmp_path / "a.js").write_text(text)
        with pytest.raises(bundle.BundleError, match=words):
            bundle.bundle(tmp_path / "a.js")

    (tmp_path / "b.js").write_text("export const one = 1;\n")
    fails('import { two } from "./b.js";\n', "does not export")
    fails('import { one } from "b.js";\n', "no relative path")
    fails('import * as all from "./b.js";\n', "does not know")
    fails("export default 1;\n", "does not know")
    (tmp_path / "b.js").write_text('import { three } from "./a.js";\nexport const one = 1;\n')
    fails('import { one } from "./b.js";\nexport const three = 3;\n', "imports itself")
