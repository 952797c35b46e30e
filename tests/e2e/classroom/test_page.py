"""The workshop page in a real browser: what a teacher clicks, and what the class then sees."""

import contextlib
import csv
import gzip
import json
import os
import re
import signal
import subprocess
import time
from urllib.parse import unquote, urlsplit

import pytest

from browser import Browser, Keys
from lab import ROOT, Proxy, holding, request_bytes, wait_until
from length import short_only
from basics import BUILD

TOKEN = "a-token-of-some-length"
FOLDER = ROOT / "service" / "page"
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*"))


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(downloads):
    started = Browser(downloads)
    yield started
    started.quit()


@pytest.fixture
def page(browser, shop):
    """The page of the shop, as it is when it is first opened, with a sale of 100; it must not complain."""
    shop.strategy("atomic-decrement", think_ms=0, lock_wait_ms=5000, lock_ttl_ms=10000)
    shop.reset(1, 100)
    browser.size(1280)
    browser.open(f"http://127.0.0.1:{shop.port}/")
    browser.wait_text("log", "Ready")
    yield browser
    assert browser.complaints() == []


def pick(page, strategy):
    page.apply_strategy(strategy)
    page.wait_text("log", f"Strategy: {strategy}")
    page.wait(lambda: page.figure("sold") == 0, "a new sale")


def run_load(page, instances="1", seconds="0.3"):
    page.choose("load-instances", instances)
    page.enter("load-seconds", seconds)
    lines = len(page.all("#results-table tbody tr"))
    page.click("load-start")
    page.wait(lambda: len(page.all("#results-table tbody tr")) == lines + 1, "the run is in the table", 60)
    page.wait(lambda: page.find("load-start").is_displayed(), "the run is over")
    page.wait(lambda: page.figure("stock") == 100 and page.figure("sold"), "the sale's books are shown")
    return [cell.text for cell in page.all("#results-table tbody tr:first-child > *")]


# ── what is served ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["", "steps", "class", *FILES])
def test_its_files_are_served_and_kept(shop, name):
    target = f"/page/{name}" if name in FILES else f"/{name}"
    reply = shop.get(target)
    file = {"": "workshop/index.html", "steps": "steps/steps.html", "class": "class/board.html"}.get(name, name)
    assert reply.body == (FOLDER / file).read_bytes()
    assert reply.header("X-Content-Type-Options") == "nosniff"
    assert reply.header("X-Frame-Options") == "DENY"
    assert "'unsafe" not in reply.header("Content-Security-Policy")
    again = shop.get(target, {"If-None-Match": reply.header("ETag")})
    assert (again.status, again.body) == (304, b"")
    assert shop.get(target, {"If-None-Match": '"0000000000000000"'}).status == 200
    small = shop.get(target, {"Accept-Encoding": "gzip, deflate, br"})
    assert small.header("Content-Encoding") == "gzip" and gzip.decompress(small.body) == reply.body
    assert small.header("ETag") != reply.header("ETag") and small.header("Vary") == "Accept-Encoding"
    assert shop.get(target, {"Accept-Encoding": "gzip", "If-None-Match": small.header("ETag")}).status == 304


def test_no_other_files(shop):
    for name in ("shared/nothing.js", "shared/..", "shared/dom.js%00", "page.S", "../page.c", "shared/.", "shared", "a/b/c"):
        assert shop.get(f"/page/{name}").problem == "not-found", name


def test_live_tells_what_is_new_and_no_more(shop):
    product = shop.product()
    shop.reset(product, 5)
    first = shop.get(f"/live?product_id={product}&traces=10").json
    assert first["traces"]["traces"] == [] and first["books"]["left"] == 5 and first["problem"] is None
    assert shop.order(product).status == 201
    now = wait_until(
        lambda: next(
            (
                live
                for live in [shop.get(f"/live?product_id={product}&traces=10&traced={first['traced']}").json]
                if live["books"]["left"] == 4
            ),
            None,
        ),
        "the order is in the books",
    )
    assert [trace["product_id"] for trace in now["traces"]["traces"]] == [product]
    assert now["traces"]["traces"][0]["started_us"] > first["sale_us"] > 0
    same = shop.get(f"/live?product_id={product}&traces=10&traced={now['traced']}").json
    assert same["traces"] is None
    assert shop.get("/live?product_id=999999999").json["problem"] == "no-such-product"
    for query in ("product_id=0", "traces=1001", "traces=-1", "traced=x", "colour=1"):
        assert shop.get(f"/live?{query}").problem == "bad-request", query


def test_live_sends_a_new_trace_alone_and_at_once(shop):
    product = shop.product(stock=1000)
    for _ in range(50):
        shop.order(product)
    first = shop.get(f"/live?product_id={product}&traces=1000").json
    assert len(first["traces"]["traces"]) == 50
    for _ in range(3):
        order = shop.order(product).json["id"]
        asked = f"/live?product_id={product}&traces=1000&traced={first['traced']}&since={first['traced']}"
        live = wait_until(lambda asked=asked: next((live for live in [shop.get(asked).json] if live["traces"]), None), "there is news")
        assert [trace["order_id"] for trace in live["traces"]["traces"]] == [order], "however many are kept"
        first = live
    other = f"/live?product_id={product}&traces=999&since={10**12}"
    assert len(shop.get(other).json["traces"]["traces"]) == 53, "a count of another process: all are new"


# ── what a teacher does ─────────────────────────────────────────────────────────────────────────────────────


def test_an_oversell_is_seen_and_its_repair_as_well(page):
    pick(page, "read-write")
    assert "lost update" in page.text("strategy-row") and "Unsafe" in page.text("strategy-row")
    cells = run_load(page)
    page.wait(lambda: (page.figure("oversold") or 0) > 0, "oversold is more than 0")
    assert "both read" in page.text("verdict") and "is-bad" in page.find("oversold-box").get_attribute("class")
    page.wait(lambda: page.all("#lanes .overlap") and page.all("#lanes .witness"), "the witness is drawn")
    assert len(page.all("#lanes .order.is-witness")) == 2
    assert cells[0] == "read-write" and any("oversold" in cell for cell in cells), cells
    assert page.figure("rate") is not None
    assert page.all(".steps-link")[0].get_attribute("href").endswith("/steps#read-write+s=1+q=1,1")
    page.click("timeline-witness")
    page.wait_text("detail", "read the same")
    assert page.find("timeline-resume").is_displayed(), "time stands still while one looks"
    page.shot("read-write")
    page.click("timeline-resume")

    pick(page, "atomic-decrement")
    cells = run_load(page)
    page.wait(lambda: page.figure("sold") == 100, "all is sold")
    assert page.figure("oversold") == 0 and "balance" in page.text("verdict")
    page.wait(lambda: len(page.all("#lanes .order")) >= 50, "its orders are drawn")
    assert page.all("#lanes .overlap") == []
    assert page.all("#results-table tbody tr")[1].text.startswith("read-write"), "the runs stand side by side"
    page.shot("atomic-decrement")


@pytest.mark.parametrize("change", short_only(["a new sale"], ["a load", "a new sale", "a strategy", "somebody's new sale"]))
def test_a_pinned_witness_does_not_outlive_its_sale(page, shop, change):
    pick(page, "read-write")
    run_load(page)
    page.wait(lambda: (page.figure("oversold") or 0) > 0 and page.all("#lanes .witness"), "the witness is drawn")
    assert page.text("sale").startswith("Sold by read-write. Load run ") and page.text("timeline-note").startswith("read-write: ")
    page.click("timeline-witness")
    page.wait_text("detail", "read the same")
    if change == "a load":
        shop.strategy("atomic-decrement")  # by another page
        page.wait(lambda: not page.find("timeline-resume").is_displayed(), "a strategy that somebody sets ends it too")
        run_load(page)
        page.wait(lambda: page.text("timeline-note").startswith("atomic-decrement: "), "the timeline is of the new sale")
        assert page.text("sale").startswith("Sold by atomic-decrement. ") and page.figure("oversold") == 0
    elif change == "a strategy":
        pick(page, "select-for-update")
    elif change == "a new sale":
        page.click("reset")
    else:
        shop.reset(1, 7)
        page.wait(lambda: page.figure("stock") == 7, "the figures are of the new sale")
    page.wait(lambda: not page.all("#lanes .witness") and "read the same" not in page.text("detail"), "no witness stands below other figures")
    assert not page.find("timeline-resume").is_displayed() and "#" not in page.driver.current_url
    if change != "a load":
        page.wait(lambda: page.text("timeline-note") == "" and page.text("sale") == "", "nothing is sold yet")
        assert page.figure("rate") is None, "the rate was another sale's"


# The page releases the order that has the focus, and then draws its bar again, since the order is no witness any more.
DRAWN_AGAIN = """
const done = arguments[arguments.length - 1];
Promise.all([import("/page/timeline/timeline.js"), fetch("/traces?product_id=1").then((reply) => reply.json())]).then(([timeline, traces]) => {
  const bar = document.activeElement;
  timeline.letGo();
  timeline.showTraces([traces], 0, null, 1000);
  done([bar.isConnected, document.getElementById("timeline-resume").hidden]);
});
"""


def test_an_order_that_is_drawn_again_is_not_chosen_again(page):
    """It keeps the focus, with which a click or a key chooses an order."""
    pick(page, "read-write")
    run_load(page)
    page.wait(lambda: page.all("#lanes .witness"), "the witness is drawn")
    page.click("timeline-witness")
    page.wait(lambda: page.find("timeline-resume").is_displayed(), "it is chosen")
    assert page.driver.execute_async_script(DRAWN_AGAIN) == [False, True]


def test_an_order_that_is_looked_at_stays_while_its_sale_goes_on(page, shop):
    page.click("buy-one")
    page.wait(lambda: len(page.all("#lanes .order")) == 1, "it is drawn")
    page.wait(lambda: page.all("#lanes .order")[0].click() is None and page.find("timeline-resume").is_displayed(), "it is chosen")
    shop.order(1)
    page.wait_text("timeline-resume", "Go on: 1 newer order")
    assert len(page.all("#lanes .order")) == 1, "the picture stands still"
    page.click("timeline-resume")
    page.wait(lambda: len(page.all("#lanes .order")) == 2, "and goes on")


def test_a_load_of_several_strategies_says_which_one_sold(page):
    page.wait(lambda: page.all("#load-which option"), "the choices are there")
    page.choose("load-which", "one-process")
    page.choose("load-instances", "2")
    page.enter("load-seconds", "0.1")
    page.click("load-start")
    page.wait(lambda: "reentrant-mutex: sold" in page.text("log"), "the last of them is done", 60)
    page.wait(lambda: page.find("load-start").is_displayed(), "the run is over")
    page.wait(lambda: (page.figure("oversold") or 0) > 0, "it oversold")
    last = page.all("#results-table tbody tr:first-child > *")[0].text
    page.wait_text("sale", f"Sold by {last}. This is the last sale of load run")
    assert page.text("sale").endswith("The strategy for the next order is atomic-decrement.")
    page.wait(lambda: page.text("timeline-note").startswith(f"{last}: "), "so says the timeline")
    page.shot("several-strategies")


def test_a_second_process_is_on_lanes_of_its_own(page):
    pick(page, "mutex")
    run_load(page, instances="2")
    page.wait(lambda: (page.figure("oversold") or 0) > 0, "two mutexes do not exclude each other")
    page.wait(lambda: len(page.all(".lane-label strong")) == 2, "both processes are drawn")
    names = {label.get_attribute("textContent") for label in page.all(".lane-label strong")}
    assert "service-2" in names and len(names) == 2, names
    page.shot("two-processes")
    page.shot("page", 1360)


def test_buying_by_hand(page):
    page.click("buy-one")
    page.wait(lambda: page.figure("sold") == 1 and page.figure("left") == 99, "one is sold")
    pick(page, "read-write")
    page.enter("think", 60)
    page.wait_text("log", "Ready")
    page.enter("buyers", 5)
    page.click("buy-many")
    page.wait_text("log", "5 buyers at once: 5 bought")
    assert "the same count as another order" in page.text("log")
    page.wait(lambda: page.figure("sold") == 5, "five are sold")
    assert page.figure("left") > 95 and "an update was lost" in page.text("verdict")
    assert page.figure("oversold") == 0 and "is-bad" not in page.find("oversold-box").get_attribute("class"), "0 is not wrong"
    assert page.find("drift-box").is_displayed() and page.figure("drift") == 5 - (100 - page.figure("left"))
    page.enter("stock", 3)
    page.click("reset")
    page.wait(lambda: page.figure("left") == 3 and page.figure("sold") == 0, "a new sale")


def test_a_run_is_cancelled(page):
    page.enter("load-seconds", 30)
    page.click("load-start")
    page.wait(lambda: page.find("load-progress").is_displayed() and "orders" in page.text("load-text"), "it goes on")
    page.click("load-cancel")
    page.wait_text("log", "The run was cancelled")
    page.wait(lambda: page.find("load-start").is_displayed(), "another can be started")
    page.wait(lambda: page.figure("stock") == 100, "the sale is as before")


def test_a_run_is_cancelled_before_its_start_is_answered(page, shop):
    page.enter("load-seconds", 30)
    with page.calls_held("POST", "/runs") as sent:
        page.click("load-start")
        page.wait(sent, "the call that starts the load waits")
        page.click("load-cancel")
    page.wait_text("log", "The run was cancelled")
    page.wait(lambda: page.find("load-start").is_displayed() and page.find("load-start").is_enabled(), "another can be started")


def test_runs_are_exported(page, downloads):
    pick(page, "read-write")
    run_load(page)
    for kind in ("csv", "json", "markdown"):
        page.click(f"[data-export={kind}]")
        page.wait_text("log", f"Exported 1 line as {kind}")
    stored = {ending: downloads / f"oversell-runs.{ending}" for ending in ("csv", "json", "md")}
    page.wait(lambda: all(path.exists() for path in stored.values()), "the files are there")
    (line,) = csv.DictReader(stored["csv"].open())
    (row,) = json.loads(stored["json"].read_text())["rows"]
    assert line["strategy"] == row["strategy"] == "read-write" and int(line["oversold"]) == row["oversold"] > 0
    assert "| read-write | unsafe |" in stored["md"].read_text()
    report = subprocess.run(
        [BUILD / "loadtest", "report", stored["json"], "--format", "markdown"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert report.returncode == 0 and "read-write" in report.stdout, report.stderr


def test_keys_alone_will_do(page):
    page.press("b")
    page.wait(lambda: page.figure("sold") == 1, "b buys")
    page.press("b")
    page.wait(lambda: page.figure("sold") == 2 and len(page.all("#lanes .order")) == 2, "and buys again")
    page.press("?")
    page.wait(lambda: page.find("help").is_displayed(), "? helps")
    page.press("b")
    page.find("shortcuts").send_keys(" ")
    page.press(Keys.ESCAPE)
    page.press("b")
    page.wait_text("log", "bought 1")
    assert page.figure("sold") == 2, "no key is a shortcut in a dialog, nor when they are switched off"
    page.driver.execute_script("document.querySelector('.lanes-scroll').focus()")
    page.press(Keys.TAB)
    page.wait(lambda: "Order" in page.text("detail"), "the last order is reached by Tab")
    newest = page.text("detail").split()[1]
    page.press(Keys.ARROW_LEFT)
    page.wait(lambda: page.text("detail").split()[1] != newest, "and the one before it by an arrow")
    assert page.driver.switch_to.active_element.get_attribute("aria-label").startswith("order ")
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.text("detail") == "" and not page.find("timeline-resume").is_displayed(), "time goes on")


def test_an_order_of_the_timeline_has_an_address(page, shop):
    first, second = (shop.order(1).json["id"] for _ in range(2))
    page.wait(lambda: len(page.all("#lanes .order")) == 2, "both are drawn")

    def chosen():
        page.all("#lanes .order")[0].click()  # it may just be drawn again
        return page.driver.current_url.endswith(f"/#order={first}")

    page.wait(chosen, "the address names the first")
    page.wait_text("detail", f"Order {first}")
    page.driver.refresh()
    page.wait_text("detail", f"Order {first}")
    assert page.find("timeline-resume").is_displayed() and len(page.all('#lanes .order[aria-pressed="true"]')) == 1
    page.driver.execute_script(f"location.hash = 'order={second}'")
    page.wait_text("detail", f"Order {second}")
    page.click("timeline-resume")
    page.wait(lambda: page.text("detail") == "" and "#" not in page.driver.current_url, "time goes on")
    page.driver.execute_script("location.hash = 'order=%ZZ'")
    assert page.text("detail") == ""


# ── who looks at it, and on what ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_in_both_schemes(page, shop, scheme):
    shop.strategy("redis-lock")
    shop.order(1)
    page.open(f"http://127.0.0.1:{shop.port}/", scheme)
    page.wait(lambda: page.all("#lanes .order"), "there is an order to look at")
    ground = page.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(246, 245, 241)" if scheme == "light" else "rgb(18, 22, 28)")
    assert page.low_contrast() == []
    assert page.unnamed() == []
    page.shot(scheme)
    other = "dark" if scheme == "light" else "light"
    page.choose("theme", other)
    assert page.driver.execute_script("return getComputedStyle(document.body).backgroundColor") != ground
    assert page.low_contrast() == []


@pytest.mark.parametrize("width", [320, 768, 1280, 1920])
def test_no_width_needs_to_be_scrolled_sideways(page, width):
    page.size(width, phone=width < 700)
    page.press("b")
    page.wait(lambda: page.all("#lanes .order"), "an order is drawn")
    assert page.overflows() <= 0 and page.too_small() == []
    page.click("big")
    assert page.overflows() <= 0 and page.too_small() == [], "in the projector view"
    assert page.text_size() >= (28 if width >= 1280 else 22)
    page.shot(f"width-{width}")


def test_the_big_view_begins_with_light_colours(page, shop):
    page.open(f"http://127.0.0.1:{shop.port}/", "dark")
    dark = page.ground()
    page.click("big")
    assert page.ground() == "rgb(246, 245, 241)" != dark
    page.choose("theme", "dark")
    assert page.ground() == dark, "unless others are chosen"
    page.choose("theme", "auto")
    page.click("big")
    assert page.ground() == dark


def test_nothing_comes_from_elsewhere(page, shop):
    sources = page.driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert len(sources) > 10 and all(source.startswith(f"http://127.0.0.1:{shop.port}/") for source in sources), sources


# ── trouble ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_token_is_asked_for_once(browser, services, database):
    service = services.start(database, token=TOKEN)
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.select_strategy("read-write")
    browser.click("strategy-apply")
    browser.wait(lambda: browser.find("token-dialog").is_displayed(), "the token is asked for")
    browser.find("token").send_keys(TOKEN, Keys.ENTER)
    browser.wait_text("log", "Strategy: read-write")
    browser.wait_text("log", "A new sale")
    assert not browser.find("token-dialog").is_displayed()
    refused = browser.complaints()
    assert len(refused) == 1 and "401" in refused[0], refused


def test_names_are_text_and_no_markup(browser, services, database):
    name = "<img src=x onerror=alert(1)>"
    service = services.start(database, "--instance", name)
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.press("b")
    browser.wait_text("instance", name)
    browser.wait(lambda: [label.get_attribute("textContent") for label in browser.all(".lane-label strong")] == [name], "it is a lane's name")
    assert browser.all("img[src=x]") == [] and browser.complaints() == []


def test_a_service_that_is_away_is_missed_and_found_again(browser, services, database):
    service = services.start(database)
    browser.open(f"http://127.0.0.1:{service.port}/")
    os.kill(service.process.pid, signal.SIGSTOP)
    try:
        browser.click("buy-one")
    finally:
        os.kill(service.process.pid, signal.SIGCONT)
    browser.wait_text("log", "bought 1")
    service.stop()
    browser.wait_text("pulse", "no answer")
    count = "const fetched = window.fetch; window.asked = 0; window.fetch = (...call) => (window.asked++, fetched(...call))"
    browser.driver.execute_script(count)
    time.sleep(6)
    assert 2 <= browser.driver.execute_script("return window.asked") <= 6, "it asks about every two seconds"
    browser.complaints()


# ── step by step ────────────────────────────────────────────────────────────────────────────────────────────


def open_steps(browser, shop, schedule=None, scheme="light"):
    address = f"http://127.0.0.1:{shop.port}/steps" + (f"#{schedule.replace(' ', '+')}" if schedule else "")
    browser.size(1280)
    browser.driver.get("about:blank")
    browser.start(address, scheme)
    browser.wait(lambda: browser.all(".lane") and browser.text("goal") != "…", "the orders stand there")
    return browser


@pytest.fixture
def stepping(browser, shop):
    yield open_steps(browser, shop)
    assert browser.complaints() == []


def schedule_of(page):
    return unquote(urlsplit(page.driver.current_url).fragment).replace("+", " ")


def step(page, name, schedule):
    """A click on the order's button, which leads there."""
    page.click(f"step-{name}")
    page.wait(lambda: schedule_of(page) == schedule, schedule)


def is_disabled(page, name):
    return page.find(name).get_attribute("aria-disabled") == "true"


def test_the_lost_update_by_clicks(stepping):
    page, start = stepping, "read-write s=1 q=1,1"
    assert page.text("goal") == "Make it sell 2 of 1." and is_disabled(page, "undo")
    step(page, "A", f"{start} A>read")
    assert "A reads 1." in page.text("told") and page.text("stock-left") == "1"
    page.click("step-B")
    page.wait(lambda: page.find("question-B").is_displayed(), "what will B read?")
    assert schedule_of(page) == f"{start} A>read", "nothing has happened yet"
    next(button for button in page.all("#question-B button") if button.text == "1").click()
    page.wait_text("answer", "Right: B reads 1")
    assert "(1 of 1 right)" in page.text("answer") and not page.find("question-B").is_displayed()
    step(page, "B", f"{start} A>read B>insert")
    assert "B wrote 0, not committed" in page.text("database") and "locked by B" in page.text("database")
    page.click("step-A")
    page.wait_text("reason-A", "A waits for B's row lock.")
    assert is_disabled(page, "step-A")
    page.click("step-A")
    page.shot("steps-waiting")
    step(page, "B", f"{start} A>read B>insert A>write~ B>end")
    page.click("end-A")
    page.wait_text("result", "Sold 2 of 1.")
    assert "A and B both read 1." in page.text("result") and "no serial execution gives this result" in page.text("result")
    assert page.text("sold") == "2" and is_disabled(page, "step-A") and is_disabled(page, "next")
    assert f"--replay '{schedule_of(page)}'" in page.text("command")
    page.shot("steps-won")
    before = schedule_of(page)
    page.click("undo")
    page.wait(lambda: schedule_of(page) != before and not page.find("result").is_displayed(), "one step back")
    page.driver.refresh()
    page.wait(lambda: page.text("stock-left") != "" and "A reads 1." in page.text("told"), "the address is the state")
    page.click("restart")
    page.wait(lambda: schedule_of(page) == start and page.text("told") == "", "as it was at first")


def test_an_oversell_is_found_and_played(stepping):
    page = stepping
    page.click("find")
    counts = r"(\d+) of (\d+) schedules oversell: 2 orders in one process, stock 1, no fault\. (All|The time)"  # a slow machine ends the search early
    found = page.wait(lambda: re.match(counts, page.text("found")), "some schedules oversell")
    assert found.groups() == ("22", "24", "All") or found[3] != "All", found[0]
    page.wait(lambda: page.find("play").is_displayed() and page.text("told") == "", "it stands at the beginning")
    page.shot("steps-found")
    for _ in range(3):
        before = page.text("told")
        page.press(" ")
        page.wait(lambda before=before: page.text("told") != before, "Space makes the next step of it")
    page.press(".")
    page.wait_text("told", "B commits")
    page.click("play")
    page.wait_text("result", "Sold 2 of 1", 30)
    assert schedule_of(page) == "read-write s=1 q=1,1 A>read B>end A>end"


def test_what_is_impossible_is_said(stepping):
    page = stepping
    page.apply_strategy("select-for-update")
    page.wait_text("goal", "Try to make it sell 2 of 1.")
    page.click("find")
    page.wait_text("found", "0 of 8 schedules oversell: 2 orders in one process, stock 1, no fault. All schedules were run.")
    assert not page.find("play").is_displayed()
    page.press("1")
    page.wait_text("told", "A reads 1.")
    page.press("2")
    page.wait(lambda: page.find("question-B").is_displayed(), "the question")
    next(button for button in page.all("#question-B button") if button.text == "0").click()
    page.wait_text("answer", "No: B waits for A's row lock")
    page.press("u")
    page.wait(lambda: schedule_of(page).endswith("A>read"), "undone")
    page.press("?")
    page.wait(lambda: page.find("help").is_displayed(), "help")
    page.press(Keys.ESCAPE)


def test_a_lease_ends_by_a_click_and_an_order_dies(browser, shop):
    page = open_steps(browser, shop, "redis-lock s=1 q=1,1 A>read")
    assert "A has it" in page.text("lock") and page.find("faults").get_attribute("value") == "expire"
    page.click("expire-A")
    page.wait_text("lock", "believes that it has it")
    page.click("end-B")
    page.wait_text("told", "B has bought.")
    page.click("end-A")
    page.wait_text("result", "Sold 2 of 1")
    page.shot("steps-lease")
    page = open_steps(browser, shop, "redis-setnx-forever s=1 q=1,1 A>lock")
    page.click("crash-A")
    page.wait_text("lane-A", "has crashed")
    page.click("step-B")
    page.wait_text("reason-B", "the lock that A died with")
    page.wait_text("result", "Stuck")
    assert browser.complaints() == []


LATE = "A>lock A!expire B>lock A>end"  # A's release comes while B has the lock


@pytest.mark.parametrize(
    "schedule, said",
    [
        ("redis-del s=5 q=1,1 A>lock A!expire B>lock A>del", "A deletes the lock's key, which is B's.\nB's lock is gone: A released it. B does not know."),
        (f"redis-lock s=5 q=1,1 {LATE}", "A's release finds that the lock is no longer A's. The server leaves B's lock alone."),
        (f"etcd-cas s=5 q=1,1 {LATE}", "A's release finds that the lock is no longer A's. The server leaves B's lock alone."),
        (f"shedlock s=5 q=1,1 {LATE}", "A's release finds that the lock is no longer A's. The server leaves B's lock alone."),
        ("redis-lock s=5 q=1,1 A>lock A!expire A>end", "A's release finds that the lock is no longer A's. It changes nothing."),
        ("redis-del s=5 q=1,1 A>lock A!expire A>del", "A deletes the lock's key, but the key is gone: the lock had ended."),
        ("redis-get-del s=5 q=1,1 A>lock A!expire B>lock A>end", "A reads the lock's key: it is not A's any more.\nA's release finds that the lock is no longer A's. The server leaves B's lock alone."),
        ("redis-get-del s=5 q=1,1 A>get A!expire B>lock A>del", "A reads the lock's key: it is still A's."),
        ("redis-lock s=5 q=1,1 A>end", "A releases the lock."),
        ("mutex s=5 q=1,1 A>end", "A releases the lock."),
    ],
)
def test_the_story_says_what_the_server_did_at_a_release(browser, shop, schedule, said):
    page = open_steps(browser, shop, schedule)
    page.wait(lambda: said in "\n".join(line.text for line in page.all("#told .line")), said)
    holds = "B has it" if " B>lock A>end" in schedule else "B believes that it has it" if "B>lock" in schedule else "free"
    page.wait_text("lock", holds)
    assert browser.complaints() == []


def test_a_refused_write_and_the_row_s_token_are_shown(browser, shop):
    page = open_steps(browser, shop, "redis-fenced s=1 q=1,1 A>read A!expire B>read")
    tokens = [int(re.search(r"registers its token on the row: the row's token is now (\d+)", line.text)[1]) for line in page.all("#told .line") if "registers" in line.text]
    assert tokens[1] > tokens[0] and page.text("row-fence") == f"the row's token is {tokens[1]}"
    page.click("step-A")
    words = r"A's write is refused: the row has token (\d+), A has token (\d+)\."
    refusal = page.wait(lambda: re.search(words, page.text("told")), "A's write is refused")  # in a new execution, with new tokens
    assert int(refusal[1]) > int(refusal[2])
    refused = page.all("#lane-A .program > .is-refused")
    assert [line.text.split("\n")[:3] for line in refused] == [["✗", "write the new stock", f"refused: the row has token {refusal[1]}"]]
    page.click("end-B")
    page.wait(lambda: re.search(words, page.text("result")), "the result says so")
    page.shot("steps-refused")
    page = open_steps(browser, shop, "etcd-fenced s=1 q=1,1 A>lock A!expire B>end A>end")
    page.wait_text("told", "A's token is refused: the row has token")
    page = open_steps(browser, shop, "fence-on-write s=5 q=1,1 A>read A!expire B>end A>end")
    page.wait_text("told", "A's write is refused: the row has token")
    assert browser.complaints() == []


def test_a_wrong_address_stays_to_be_corrected(browser, shop):
    page = open_steps(browser, shop, "mutex s=1 q=1,1 A>lock")
    page.driver.execute_script("location.hash = 'read-write+s=1+q=1,1+A>fly'")
    page.wait_text("alert", "The address was not understood: ")
    assert "A>fly" in page.text("alert") and "Correct it in the address bar" in page.text("alert")
    assert schedule_of(page) == "read-write s=1 q=1,1 A>fly" and page.text("strategy") and "A takes the lock." in page.text("told")
    page.driver.execute_script("location.hash = 'read-write+s=1+q=1,1+A>read'")
    page.wait_text("told", "A reads 1.")
    page.wait(lambda: not page.find("alert").is_displayed(), "what is corrected is not complained about")
    page.driver.get("about:blank")
    page.driver.get(f"http://127.0.0.1:{shop.port}/steps#nonsense+s=1")
    page.wait_text("alert", "The address was not understood")
    page.wait(lambda: page.all(".lane"), "there is something to step through")
    assert schedule_of(page) == "nonsense s=1", "it can be corrected"
    page.click("step-A")
    page.wait(lambda: schedule_of(page) == "read-write s=1 q=1,1 A>read", "what is stepped through has the address again")
    refused = browser.complaints()
    assert len(refused) == 2 and all("422" in line for line in refused), refused


def test_without_its_server_a_strategy_says_which_and_cannot_be_chosen(browser, services, database):
    service = services.start(database, env={"REDIS_URL": "redis://127.0.0.1:1"})
    browser.driver.get("about:blank")
    browser.start(f"http://127.0.0.1:{service.port}/steps#redis-lock+s=1+q=1,1")
    browser.wait_text("alert", "redis-lock cannot be stepped through, because redis does not answer")
    assert "Start redis" in browser.text("alert") and "not understood" not in browser.text("alert")
    assert schedule_of(browser) == "redis-lock s=1 q=1,1" and "redis-lock cannot" in browser.text("goal")
    browser.apply_strategy("read-write")
    browser.wait(lambda: schedule_of(browser) == "read-write s=1 q=1,1", "another one can be chosen")
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.wait_text("log", "Ready")
    browser.select_strategy("redis-lock")
    assert not browser.find("strategy-apply").is_enabled() and "127.0.0.1:1" in browser.text("strategy-detail")
    assert "not available" in browser.find("strategy-map").find_element("css selector", '[data-strategy="redis-lock"]').text
    browser.select_strategy("read-write")
    assert browser.find("strategy-apply").is_enabled()
    browser.click("strategy-close")
    assert service.put("/strategy", {"name": "redis-lock"}).status == 200
    browser.wait_text("strategy-row", "redis-lock cannot be used: redis")
    browser.wait(lambda: browser.find("load-start").is_enabled(), "a load can be tried")
    browser.click("load-start")
    browser.wait_text("alert", "redis-lock could not be loaded: redis", 60)
    assert "Start that server" in browser.text("alert") and "status" not in browser.text("alert")
    browser.click("reset")
    browser.wait(lambda: not browser.find("alert").is_displayed(), "an alert ends when something works")
    assert all("503" in line for line in browser.complaints())


def test_a_question_is_answered_by_its_number(stepping):
    page, start = stepping, "read-write s=1 q=1,1"
    step(page, "A", f"{start} A>read")
    page.press("2")
    page.wait(lambda: page.find("question-B").is_displayed(), "what will B read?")
    page.press(Keys.ESCAPE)
    page.wait(lambda: not page.find("question-B").is_displayed(), "Escape closes it")
    assert schedule_of(page) == f"{start} A>read"
    page.press("2")
    page.wait(lambda: page.find("question-B").is_displayed(), "it is asked again")
    page.press("1")
    page.wait_text("answer", "Right: B reads 1")
    assert schedule_of(page) == f"{start} A>read B>read", "the key answers, and moves no other order"
    assert page.driver.switch_to.active_element.get_attribute("id") == "step-B"


@pytest.mark.parametrize("key, answer", [("0", "No: B reads 1"), ("w", "No: B reads 1"), ("2", None)])
def test_the_key_of_an_answer_is_its_number(stepping, key, answer):
    page, start = stepping, "read-write s=1 q=1,1"
    step(page, "A", f"{start} A>read")
    page.press("2")
    page.wait(lambda: page.find("question-B").is_displayed(), "what will B read?")
    page.press(key)
    if not answer:  # 2 is no number to choose from
        page.press("1")
    page.wait_text("answer", answer or "Right: B reads 1")
    assert page.text("answer").endswith("of 1 right)")


@pytest.mark.parametrize("how", ["the browser's own", "by the older command", "not at all"])
def test_an_address_is_copied_wherever_the_page_comes_from(stepping, how):
    page = stepping
    page.driver.execute_script("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })") if how != "the browser's own" else None
    page.driver.execute_script("document.execCommand = () => false") if how == "not at all" else None
    page.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page.click("details.curl summary")
    page.click("copy")
    if how == "not at all":
        page.wait_text("copy-note", "press Ctrl+C")
        field = page.find("copy-text")
        selected = page.driver.execute_script("const f = arguments[0]; return f.value.slice(f.selectionStart, f.selectionEnd)", field)
        assert field.is_displayed() and selected == page.driver.current_url
    else:
        page.wait_text("copy-note", "Copied.")


def test_a_wrong_token_is_told_in_words(browser, services, database):
    service = services.start(database, token=TOKEN)
    browser.driver.get("about:blank")
    browser.start(f"http://127.0.0.1:{service.port}/steps")
    for given in ("wrong", TOKEN):
        browser.wait(lambda: browser.find("token-dialog").is_displayed(), "the token is asked for")
        browser.find("token").send_keys(given, Keys.ENTER)
        if given == "wrong":
            browser.wait_text("alert", "The token is wrong.")
            browser.wait(lambda: not browser.find("token-dialog").is_displayed(), "the dialog is closed")
            browser.click("restart") if browser.all(".lane") else browser.driver.refresh()
    browser.wait(lambda: browser.all(".lane"), "with the right one there are orders")
    browser.wait(lambda: not browser.find("alert").is_displayed(), "nothing is wrong any more")
    browser.complaints()
    service.stop()
    browser.click("step-A")
    browser.wait_text("alert", "The service does not answer. Check that it runs")
    browser.complaints()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_steps_can_be_read_in_both_schemes(browser, shop, scheme):
    page = open_steps(browser, shop, "redis-fenced s=1 q=1,1,1 A>read B>lock~ A!expire", scheme)
    assert page.low_contrast() == [] and page.unnamed() == []
    page.shot(f"steps-{scheme}")
    page.press("3")
    page.wait_text("told", "C takes the lock and gets token")
    page.click("end-C")
    page.wait_text("told", "C has bought.")
    assert page.low_contrast() == []
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [320, 768, 1920])
def test_the_steps_need_no_scrolling_sideways(browser, shop, width):
    page = open_steps(browser, shop, "mutex-early-release s=1 q=1,1 A>unlock B>read A>end B>end")
    page.size(width, phone=width < 700)
    page.wait_text("result", "Sold 2 of 1")
    assert page.overflows() <= 0 and page.too_small() == []
    page.click("big")
    assert page.overflows() <= 0 and page.too_small() == [], "in the projector view"
    assert page.text_size() >= (28 if width >= 1280 else 22)
    assert page.driver.execute_script("return innerWidth") == width, "a phone makes what is too wide smaller"
    page.shot(f"steps-width-{width}")
    assert browser.complaints() == []


# ── a class ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_learner_joins_and_has_a_product(browser, services, database):
    service = services.start(database, "--classroom", listen="127.0.0.1:0")
    code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    address = f"http://127.0.0.1:{service.port}/"
    browser.start(address)
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the code is asked for")
    browser.find("join-code").send_keys(code, Keys.ENTER)
    browser.wait_text("shop-name", "my own")
    product = int(browser.text("shop-name").split()[1].strip(","))
    browser.wait_text("pulse", "live")
    pick(browser, "read-write")
    browser.click("buy-one")
    browser.wait(lambda: browser.figure("sold") == 1, "one is sold")
    assert service.get("/strategy").json["name"] == "atomic-decrement", "the others' strategy is as it was"
    assert service.audit(product)["sold"] == 1 and service.audit(1)["sold"] == 0
    assert not browser.find("class-open").is_displayed() and code not in browser.driver.page_source
    line = browser.text("curl-line")
    assert f'"product_id":{product}' in line
    assert "Authorization" not in line.split("<<<")[0], "another user could read a token among the arguments"
    browser.driver.refresh()
    browser.wait_text("shop-name", f"product {product}, my own")
    browser.wait(lambda: browser.figure("sold") == 1 and browser.text("strategy-row"), "it is as it was")
    browser.shot("learner")
    limits = {"think": "200", "wait": "5000", "load-connections": "32", "load-seconds": "2"}
    assert {name: browser.find(name).get_attribute("max") for name in limits} == limits, "no more is offered than is allowed"
    assert [option.text for option in browser.all("#load-instances option")] == ["1", "2"]
    browser.wait(lambda: browser.find("load-start").is_enabled(), "the choices are there")
    offered = {option.get_attribute("value"): option.get_attribute("disabled") is None for option in browser.all("#load-which option")}
    assert offered["this"] and offered["one-process"] and not offered["all"] and not offered["unsafe"], offered
    browser.enter("think", 200)
    browser.enter("load-seconds", "0.2")
    browser.click("load-start")
    browser.wait_text("log", "Its think time is 50 ms, the most that a load may have.")
    browser.wait(lambda: browser.all("#results-table tbody tr"), "what is offered is allowed", 60)
    browser.wait(lambda: browser.find("load-start").is_displayed(), "the run is over")
    assert browser.complaints() == [] and not browser.find("alert").is_displayed()

    browser.start(address)  # somebody else, who is the teacher
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the code is asked for")
    browser.find("join-code").send_keys(service.token, Keys.ENTER)
    browser.wait(lambda: browser.find("class-open").is_displayed(), "the teacher is known")
    browser.wait_text("pulse", "live")
    browser.wait_text("log", "Ready")
    browser.click("class-open")
    browser.wait_text("class-code", code)
    browser.wait_text("class-count", "1 learner")
    (line,) = [line for line in [browser.text("curl-line")] if "$TOKEN" in line]
    assert "Authorization" not in line.split("<<<")[0], "another user could read a token among the arguments"
    assert service.token not in browser.driver.page_source + line, "a projector shows no token"
    assert browser.find("curl-token").get_attribute("hidden") is None
    assert browser.text("shop-name") == ""
    browser.shot("teacher")
    assert browser.complaints() == []


@pytest.fixture(scope="module")
def another(downloads):
    """A second browser, for a learner beside the teacher."""
    started = Browser(downloads)
    yield started
    started.quit()


def start_class(services, database, *options):
    service = services.start(database, "--classroom", *options, listen="127.0.0.1:0")
    service.code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    service.address = f"http://127.0.0.1:{service.port}/"
    return service


@pytest.fixture
def classroom(services, database):
    return start_class(services, database)


def enter(browser, address, secret):
    """Opens the page of a class and enters the class code or the teacher's token."""
    browser.driver.get("about:blank")
    browser.size(1280)
    browser.start(address)
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the code is asked for")
    browser.find("join-code").send_keys(secret, Keys.ENTER)
    browser.wait_text("log", "Ready")


def join(browser, service):
    """Returns the product that the learner of BROWSER gets."""
    enter(browser, service.address, service.code)
    browser.wait_text("shop-name", "my own")
    return int(browser.text("shop-name").split()[1].strip(","))


def open_panel(browser, service):
    """By the button of the dialog that shows the class code."""
    enter(browser, service.address, service.token)
    browser.wait(lambda: browser.find("class-panel").is_displayed(), "the teacher sees the panel")
    browser.click("class-open")
    browser.wait_text("class-code", service.code)
    browser.click("class-learners")
    browser.wait(lambda: not browser.find("class-dialog").is_displayed(), "the dialog is closed")
    assert focused(browser).tag_name == "summary"
    browser.wait_text("class-places", "of 96 places taken, 4 kept for the teacher")


def learners(browser):
    return [line.text.replace("\n", " ") for line in browser.all("#learners li")]


def focused(browser):
    return browser.driver.switch_to.active_element


def test_the_teacher_knows_learners_by_name_and_ends_an_address(browser, classroom):
    for name in ("Ada", "Bob"):
        assert classroom.call("POST", "/sandboxes", {"name": name}, {"Authorization": f"Bearer {classroom.code}"}).status == 201
    open_panel(browser, classroom)
    browser.wait(lambda: [line.split("\n")[0].split(" product")[0] for line in learners(browser)] == ["Ada (place 1)", "Bob (place 2)"], "they have names")
    limit = browser.find("class-limit")
    limit.clear()
    limit.send_keys("60", Keys.TAB)
    browser.wait(lambda: classroom.get("/sandboxes").json["places"]["per_address"] == 60, "an address may have more")
    browser.click("#class-addresses button")
    browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
    assert browser.text("evict-title") == "End all places of 127.0.0.1?" and "Ada (place 1) and Bob (place 2) lose" in browser.text("evict-text")
    browser.click("evict-ok")
    browser.wait_text("log", "2 places of 127.0.0.1 ended.")
    browser.wait(lambda: learners(browser) == [] and browser.all("#class-addresses button") == [], "nobody is left")
    assert browser.complaints() == []


def test_the_teacher_sees_two_learners_and_evicts_one(browser, another, classroom):
    evicted = join(another, classroom)
    another.click("buy-one")
    another.wait(lambda: another.figure("sold") == 1, "the learner buys one")
    other = classroom.call("POST", "/sandboxes", {}, {"Authorization": f"Bearer {classroom.code}"}).json
    open_panel(browser, classroom)
    browser.wait(lambda: len(learners(browser)) == 2, "both are there")
    assert browser.text("class-places").startswith("2 of 96")
    line, second = learners(browser)
    assert f"product {evicted}" in line and "127.0.0.1" in line and "1 order" in line and "seen just now" in line, line
    assert f"product {other['product_id']}" in second and "0 orders" in second, second
    browser.shot("class-panel")
    browser.click("#learners button")
    browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
    assert browser.text("evict-title") == "Evict Learner 1 (place 1)?" and f"loses product {evicted} at once" in browser.text("evict-text")
    browser.shot("class-evict", 720)
    browser.click("evict-keep")
    browser.wait(lambda: not browser.find("evict-dialog").is_displayed(), "the learner is kept")
    assert len(classroom.get("/sandboxes").json["sandboxes"]) == 2
    browser.click("#learners button")
    browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked again")
    browser.click("evict-ok")
    browser.wait_text("log", f"Learner 1 (place 1) with product {evicted} was evicted; the place is free.")
    browser.wait(lambda: len(learners(browser)) == 1 and browser.text("class-places").startswith("1 of 96"), "the place is free")
    assert focused(browser).get_attribute("aria-label") == "Evict Learner 2 (place 2)", "the focus is on the next line"
    assert [entry["product_id"] for entry in classroom.get("/sandboxes").json["sandboxes"]] == [other["product_id"]]

    another.wait_text("join-why", "The teacher ended your place in the class")  # the page notices it by itself
    assert another.find("join-dialog").is_displayed()
    assert "Enter the class code to join again" in another.text("join-why")
    another.shot("class-evicted", 720)
    another.find("join-code").send_keys(classroom.code, Keys.ENTER)
    another.wait_text("shop-name", "my own")
    another.wait_text("log", "Ready")
    assert int(another.text("shop-name").split()[1].strip(",")) != other["product_id"]
    another.wait(lambda: another.figure("sold") == 0, "the product is as if it were new")
    browser.wait(lambda: len(learners(browser)) == 2, "the panel updates by itself")
    assert browser.complaints() == []
    assert all("401" in line for line in another.complaints())


def test_the_teacher_makes_a_new_class_code(browser, another, classroom):
    join(another, classroom)
    open_panel(browser, classroom)
    browser.wait(lambda: len(learners(browser)) == 1, "the learner is there")
    browser.click("class-new-code")
    browser.wait(lambda: browser.find("class-dialog").is_displayed(), "the dialog shows the code")
    browser.wait(lambda: re.fullmatch("[a-z2-9]{4}-[a-z2-9]{4}", browser.text("class-code")) and browser.text("class-code") != classroom.code, "it is new")
    new = browser.text("class-code")
    assert classroom.get("/classroom").json["code"] == new
    browser.wait_text("class-count", "1 learner so far")
    browser.shot("class-new-code")
    browser.click("class-learners")
    browser.wait(lambda: not browser.find("class-dialog").is_displayed(), "the dialog is closed")
    assert new not in browser.text("log") and new not in classroom.log
    another.click("buy-one")
    another.wait(lambda: another.figure("sold") == 1, "the learner is still in")
    browser.click("#learners button")
    browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
    browser.click("evict-ok")
    another.wait_text("join-why", "The teacher ended your place in the class")
    another.find("join-code").send_keys(classroom.code, Keys.ENTER)
    another.wait_text("join-why", "That is neither the class code nor the teacher's token.")
    another.wait(lambda: another.find("join-dialog").is_displayed(), "it is asked for again")
    another.find("join-code").send_keys(new, Keys.ENTER)
    another.wait_text("shop-name", "my own")
    another.wait_text("log", "Ready")
    assert browser.complaints() == []
    assert all("401" in line for line in another.complaints())


def test_the_class_by_keyboard(browser, another, classroom):
    evicted = join(another, classroom)
    enter(browser, classroom.address, classroom.token)
    browser.wait(lambda: browser.find("class-panel").is_displayed(), "the teacher sees the panel")
    browser.driver.execute_script("document.querySelector('#class-details > summary').focus()")
    browser.press(Keys.ENTER)
    browser.wait(lambda: len(learners(browser)) == 1, "the learner is there")
    browser.press(Keys.TAB)
    browser.wait(lambda: focused(browser).get_attribute("aria-label") == "Evict Learner 1 (place 1)", "Tab reaches the button")
    browser.press(Keys.ENTER)
    browser.wait(lambda: focused(browser).get_attribute("id") == "evict-keep", "Enter alone ends nothing")
    browser.press(Keys.ESCAPE)
    browser.wait(lambda: not browser.find("evict-dialog").is_displayed(), "Escape closes it")
    assert focused(browser).get_attribute("aria-label") == "Evict Learner 1 (place 1)"
    assert len(classroom.get("/sandboxes").json["sandboxes"]) == 1
    browser.press(Keys.ENTER)
    browser.wait(lambda: focused(browser).get_attribute("id") == "evict-keep", "it is asked again")
    browser.press(Keys.TAB)
    browser.press(Keys.ENTER)
    browser.wait_text("log", f"product {evicted} was evicted")
    browser.wait(lambda: learners(browser) == [] and browser.find("class-empty").is_displayed(), "nobody is there")
    browser.wait(lambda: focused(browser).tag_name == "summary", "the focus is not lost")
    another.wait_text("join-why", "The teacher ended your place in the class")
    assert browser.complaints() == []
    another.complaints()


def test_the_teacher_ends_a_learner_s_run(browser, classroom):
    learner = classroom.call("POST", "/sandboxes", {}, {"Authorization": f"Bearer {classroom.code}"}).json
    product = learner["product_id"]
    open_panel(browser, classroom)
    assert not browser.find("class-run").is_displayed()
    # Begun by the teacher, since a learner's would end too soon on a slow machine.
    run = classroom.post("/runs", {"strategies": ["mutex"] * 8, "product_id": product, "duration_ms": 30000}).json["id"]
    browser.wait_text("class-run-text", f"Load run {run} of Learner 1 (place 1), product {product}, is in progress")
    browser.wait(lambda: f"load run {run}" in learners(browser)[0], "the learner's line says so as well")
    browser.shot("class-run")
    browser.size(390, phone=True)
    assert browser.overflows() <= 0 and browser.too_small() == []
    assert browser.low_contrast() == [] and browser.unnamed() == []
    browser.shot_of("class-panel-390", "class-panel")
    browser.size(1280)
    browser.click("class-run-end")
    browser.wait_text("log", f"Load run {run} was ended.")
    assert classroom.get(f"/runs/{run}").json["state"] == "cancelled"
    browser.wait(lambda: not browser.find("class-run").is_displayed() and "load run" not in learners(browser)[0], "it is not shown any more")
    assert browser.complaints() == []


def test_a_learner_and_a_visitor_never_see_the_class(browser, classroom):
    browser.driver.get("about:blank")
    browser.start(classroom.address)
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the code is asked for")
    assert not browser.find("class-panel").is_displayed() and not browser.find("class-open").is_displayed()
    browser.find("join-code").send_keys("not-the-teacher-s-token", Keys.ENTER)
    browser.wait_text("join-why", "That is neither the class code nor the teacher's token.")
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "it is asked for again")
    assert not browser.find("class-panel").is_displayed()
    browser.find("join-code").send_keys(classroom.code, Keys.ENTER)
    browser.wait_text("log", "Ready")
    assert not browser.find("class-panel").is_displayed() and browser.all("#learners li") == []
    assert "not-the-teacher" not in classroom.log
    assert all("401" in line for line in browser.complaints())


def test_what_the_class_panel_says_when_something_fails(browser, classroom):
    learner = classroom.call("POST", "/sandboxes", {}, {"Authorization": f"Bearer {classroom.code}"}).json
    open_panel(browser, classroom)
    browser.wait(lambda: len(learners(browser)) == 1, "the learner is there")
    browser.click("#learners button")
    browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
    assert classroom.call("DELETE", f"/sandboxes/{learner['product_id']}").status == 200, "somebody else is faster"
    browser.click("evict-ok")
    browser.wait_text("class-error", "Learner 1 (place 1) was not evicted, because no learner has product")
    browser.wait(lambda: learners(browser) == [], "the line is gone")
    browser.driver.execute_script("sessionStorage.setItem('oversell.token', 'wrong')")
    browser.wait_text("class-error", "The service does not accept this page's token any more. Reload the page")
    assert not browser.find("token-dialog").is_displayed(), "a list that updates by itself opens no dialog"
    browser.shot("class-wrong-token")
    browser.driver.refresh()
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the token is asked for")
    browser.find("join-code").send_keys(classroom.token, Keys.ENTER)
    browser.wait(lambda: browser.find("class-panel").is_displayed(), "with the right one the panel is there")
    browser.wait_text("log", "Ready")
    browser.click("#class-details > summary")
    browser.wait_text("class-places", "0 of 96")
    browser.complaints()
    classroom.stop()
    browser.wait_text("class-error", "The service does not answer. Check that it runs")
    browser.complaints()


def test_what_the_class_panel_says_while_the_service_has_no_room(browser, services, database):
    """Reads wait for a table, and as many others as may wait. Then the service refuses the list and each button."""
    classroom = start_class(services, database, "--order-timeout-ms", "120000")
    learner = classroom.call("POST", "/sandboxes", {}, {"Authorization": f"Bearer {classroom.code}"}).json
    classroom.strategy("atomic-decrement", lock_wait_ms=60000)
    open_panel(browser, classroom)
    browser.wait(lambda: len(learners(browser)) == 1, "the learner is there")
    sentence = "The service is too busy to answer. Try again in a moment."
    request = request_bytes("GET", "/orders", b"", {"Authorization": f"Bearer {classroom.token}"})
    with contextlib.ExitStack() as stack:
        table = stack.enter_context(holding(classroom.database_url, "LOCK TABLE order_item IN ACCESS EXCLUSIVE MODE"))
        wires = [stack.enter_context(classroom.wire()) for _ in range(340)]
        for wire in wires:
            wire.send(request)
        wait_until(lambda: sum(wire.reply_has_begun() for wire in wires) >= 10, "some are refused, since the queue is full")
        browser.wait_text("class-error", sentence)
        assert len(learners(browser)) == 1, "the list stays as it was"
        browser.click("#learners button")
        browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
        browser.click("evict-ok")
        browser.wait(lambda: not browser.find("evict-dialog").is_displayed() and browser.text("class-error") == sentence, "the button says so as well")
        browser.shot("class-busy")
        table.run("ROLLBACK")
    wait_until(lambda: classroom.get("/sandboxes").status == 200, "there is room again")
    assert [entry["product_id"] for entry in classroom.get("/sandboxes").json["sandboxes"]] == [learner["product_id"]]
    browser.wait(lambda: len(learners(browser)) == 1 and browser.text("class-error") == "", "later the list is there again")
    browser.complaints()


def test_what_the_class_panel_says_behind_a_proxy_that_changes_host(browser, classroom):
    learner = classroom.call("POST", "/sandboxes", {}, {"Authorization": f"Bearer {classroom.code}"}).json
    with contextlib.closing(Proxy(f"http://127.0.0.1:{classroom.port}/")) as proxy:
        proxy.rewrite = (b"Host: 127.0.0.1:%d" % proxy.port, b"Host: 127.0.0.1:%d" % classroom.port)  # nginx's default
        enter(browser, proxy.url, classroom.token)
        browser.wait(lambda: browser.find("class-panel").is_displayed(), "the teacher sees the panel")
        browser.click("#class-details > summary")
        browser.wait(lambda: len(learners(browser)) == 1, "what changes nothing works")
        browser.click("#learners button")
        browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
        browser.click("evict-ok")
        browser.wait_text("class-error", "The service refuses calls from a page at this address. Open the page at an address that the service printed at its start.")
        browser.shot("class-refused")
        assert [entry["product_id"] for entry in classroom.get("/sandboxes").json["sandboxes"]] == [learner["product_id"]]
        browser.driver.get("about:blank")
    assert all("403" in line for line in browser.complaints())


@pytest.mark.long
def test_the_class_panel_asks_only_while_it_is_open(browser, classroom):
    enter(browser, classroom.address, classroom.token)
    browser.wait(lambda: browser.find("class-panel").is_displayed(), "the teacher sees the panel")

    def calls(name, since=0):
        script = "return performance.getEntriesByType('resource').filter((e) => e.name.includes(arguments[0]) && e.startTime > arguments[1]).length"
        return browser.driver.execute_script(script, name, since)

    assert calls("/sandboxes") == 0, "it is closed"
    browser.click("#class-details > summary")
    browser.wait(lambda: calls("/sandboxes") >= 2, "it asks again and again")
    browser.click("#class-details > summary")
    browser.wait(lambda: not browser.find("learners").is_displayed(), "it is closed again")
    closed = browser.driver.execute_script("return performance.now()")
    # An open panel would ask twice within 7 s, and a closed one asks at most once more, in whatever time.
    browser.wait(lambda: calls("/live?", closed + 7000) > 0, "the rest of the page goes on", 30)
    assert calls("/sandboxes", closed) <= 1


def test_a_learner_who_is_evicted_at_the_steps_is_told(another, classroom):
    product = join(another, classroom)
    another.driver.get(f"{classroom.address}steps#read-write+s=1+q=1,1")
    another.wait(lambda: another.all(".lane"), "there is something to step through")
    assert classroom.call("DELETE", f"/sandboxes/{product}").status == 200
    another.click("step-A")
    another.wait_text("join-why", "The teacher ended your place in the class")
    assert another.find("join-dialog").is_displayed(), "the learner can join again"
    another.complaints()


def test_the_class_is_told_an_address_that_others_reach(browser, services, database):
    service = services.start(database, "--classroom", listen="0.0.0.0:0")
    code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    told = service.get("/classroom").json
    addresses = told["addresses"]
    assert all(re.fullmatch(rf"http://[0-9.]+:{service.port}", address) and "//127." not in address for address in addresses)
    anybody = service.call("GET", "/classroom", None, {"Authorization": None}).json
    assert anybody["addresses"] == [] and anybody["container"] is False, "for the teacher only"
    browser.start(f"http://localhost:{service.port}/")
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the code is asked for")
    browser.find("join-code").send_keys(service.token, Keys.ENTER)
    browser.wait(lambda: browser.find("class-open").is_displayed(), "the teacher is known")
    browser.click("class-open")
    browser.wait_text("class-code", code)
    assert "localhost" not in browser.text("class-address") and "127.0.0.1" not in browser.text("class-address")
    if addresses and told["container"]:
        assert browser.text("class-address") == "Not known."
        assert f"such as http://192.168.1.20:{service.port}/." in browser.text("class-address-note")
    elif addresses:
        assert browser.text("class-address") == addresses[0]
        assert f"port {service.port}" in browser.text("class-address-note")
    else:
        assert "No other computer" in browser.text("class-address")
    assert browser.complaints() == []
    told = service.call("GET", "/class/board", None, {"Host": f"localhost:{service.port}"}).json
    found = (None, "container") if addresses and told["address_of"] == "container" else (addresses[0], "interface") if addresses else (None, "loopback")
    assert (told["address"], told["address_of"]) == found
    service.stop()
    inside = services.start(database, "--classroom", listen="0.0.0.0:0", env={"container": "oci"})
    inside.token = re.search(r"teacher's token +(\S+)", inside.log)[1]
    if addresses:
        assert inside.get("/classroom").json["container"] is True and "of this container" in inside.log and "http://" not in inside.log
        board = inside.call("GET", "/class/board", None, {"Host": f"localhost:{inside.port}"}).json
        assert (board["address"], board["address_of"]) == (None, "container")
        drawn = inside.call("GET", "/class/address.svg", None, {"Host": f"localhost:{inside.port}"})
        assert drawn.problem == "not-found" and "open the class board at an address that learners can open" in drawn.json["detail"]
    alone = services.start(database, "--classroom", listen="127.0.0.1:0")
    alone.token = re.search(r"teacher's token +(\S+)", alone.log)[1]
    assert alone.get("/classroom").json["addresses"] == [] and "reachable only from this machine" in alone.log


def test_a_product_of_ones_own_without_a_class(page, shop):
    page.click("own-product")
    page.wait_text("shop-name", "my own")
    page.wait_text("pulse", "live")
    pick(page, "optimistic")
    assert shop.get("/strategy").json["name"] == "atomic-decrement"
    page.click("shared-product")
    page.wait(lambda: page.text("shop-name") == "" and page.text("pulse") == "live", "the shared one again")
