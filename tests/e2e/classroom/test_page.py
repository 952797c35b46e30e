"""The workshop page in a real browser: what a teacher clicks, and what the class then sees."""

import csv
import gzip
import json
import os
import signal
import subprocess
import time

import pytest

from basics import BUILD
from browser import Keys
from lab import ROOT, wait_until
from length import short_only
from pages import browser, downloads, page, pick, run_load

TOKEN = "a-token-of-some-length"
FOLDER = ROOT / "service" / "page"
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*"))


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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_second_process_is_on_lanes_of_its_own(page):
    pick(page, "mutex")
    run_load(page, instances="2")
    page.wait(lambda: (page.figure("oversold") or 0) > 0, "two mutexes do not exclude each other")
    page.wait(lambda: len(page.all(".lane-label strong")) == 2, "both processes are drawn")
    names = {label.get_attribute("textContent") for label in page.all(".lane-label strong")}
    assert "service-2" in names and len(names) == 2, names
    page.shot("two-processes")
    page.shot("page", 1360)


@pytest.mark.long
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


@pytest.mark.long
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
