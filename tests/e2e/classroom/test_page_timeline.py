"""The timeline of the page: what its colours say, zoom and pan, a pair of orders as a schedule, and how soon a new order is seen."""

import concurrent.futures
import math
import time
from urllib.parse import unquote

import pytest

from browser import ActionChains, Keys
from lab import wait_until
from pages import pick, run_load
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

BARS = "#lanes .order"


@pytest.fixture
def product(shop):
    shop.strategy("read-write", think_ms=0, lock_wait_ms=5000, lock_ttl_ms=10000)
    shop.reset(1, 100000)
    return 1


@pytest.fixture
def page(browser, shop, product):
    browser.size(1280)
    browser.open(f"http://127.0.0.1:{shop.port}/")
    browser.wait_text("log", "Ready")
    yield browser
    assert browser.complaints() == []


def at_once(shop, count, product=1):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: shop.order(product), range(count)))


def bars(page):
    return len(page.all(BARS))


def scroll(page, name):
    return page.driver.execute_script(f"return document.querySelector('.lanes-scroll').{name}")


def width(page):
    return float(page.all("#lanes svg")[0].get_attribute("width"))


def traces_of(shop, orders):
    ids = {order.json["id"] for order in orders}
    return [trace for trace in shop.get("/traces?limit=1000").json["traces"] if trace["order_id"] in ids]


# ── what a trace knows ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "step"),
    [("read-write", "write"), ("select-for-update", "read"), ("atomic-decrement", "take"), ("advisory-lock", "lock"), ("atomic-statement", "commit"), ("batched", None)],
)
def test_a_trace_names_the_step_that_locks_the_row(shop, product, strategy, step):
    shop.strategy(strategy, think_ms=0)
    (trace,) = traces_of(shop, [shop.order(product)])
    assert trace["locks_at"] == step
    assert all("think_us" not in one for one in trace["steps"])


def test_a_trace_tells_think_time_from_the_write(shop, product):
    shop.strategy("read-write", think_ms=30)
    (trace,) = traces_of(shop, [shop.order(product)])
    read, write = trace["steps"][:2]
    assert (read["step"], write["step"]) == ("read", "write")
    assert 30000 <= read["think_us"] <= write["end_us"] - read["end_us"]


def test_a_look_without_the_audit(shop, product):
    live = shop.get(f"/live?product_id={product}&traces=10&audit=0").json
    assert live["books"] is None and live["problem"] is None and live["settings"]["name"] == "read-write"
    assert shop.get(f"/live?product_id={product}&audit=2").problem == "bad-request"


# ── what the colours say ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["select-for-update", "read-write"])
def test_waiting_for_the_row_has_its_own_colour(page, shop, strategy):
    """With FOR UPDATE the read waits, for as long as the first order thinks; else the write, for the moment of another COMMIT. So
    sales are repeated until two writes have met."""
    shop.strategy(strategy, think_ms=40)

    def one_waited():
        shop.reset(1, 100)
        page.wait(lambda: bars(page) == 0, "a new sale")
        orders = at_once(shop, 4)
        assert [order.status for order in orders] == [201] * 4
        page.wait(lambda: bars(page) == 4, "all are drawn")
        return page.all("#lanes .segment.is-row")

    page.wait(one_waited, "an order waited for the row", 60)
    if strategy == "select-for-update":
        assert len(page.all("#lanes .order:has(.is-row)")) == 3, "all but the first waited"
    labels = page.driver.execute_script("return [...document.querySelectorAll('#lanes .order:has(.is-row)')].map(bar => bar.getAttribute('aria-label'))")
    assert labels and all("waited for the row for" in label for label in labels), labels
    row, read, wait = (page.driver.execute_script("return getComputedStyle(document.querySelector(`.swatch.is-${arguments[0]}`)).background", kind) for kind in ("row", "read", "wait"))
    assert len({row, read, wait}) == 3 and "gradient" in row
    page.driver.execute_script("document.getElementById('timeline').scrollIntoView()")
    page.shot_of(f"timeline-row-{strategy}", "timeline")


def segments(page, traces):
    """What the timeline draws of each order: kind, begin and end of its parts."""
    script = """const [traces, done] = arguments;
        import("/page/workshop/overlaps.js").then(({ orderOf, noteWaits }) => {
            const orders = traces.map((trace) => orderOf(trace, "one"));
            noteWaits(orders);
            done(orders.map(({ shown }) => shown.filter(({ kind }) => kind !== "after").map(({ kind, step, from, to }) => `${kind} ${from}-${to}: ${step}`)));
        });"""
    return page.driver.execute_async_script(script, traces)


def trace(number, locks_at, *steps):
    """A trace whose steps are (name, end), in microseconds."""
    begin, made = 0, []
    for name, end in steps:
        made.append({"step": name, "begin_us": begin, "end_us": end, "value": None})
        begin = end
    return {
        "request_id": str(number), "worker": number, "order_id": number, "strategy": "one", "outcome": "created", "tries": 1, "fence": None,
        "quantity": 1, "locks_at": locks_at, "received_us": 0, "started_us": 0, "ended_us": begin, "steps": made,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # The UPDATE has its own answer.
        ([("read", 1000), ("write", 3000), ("insert", 5000), ("commit", 5004)], ["read 0-1000: read", "write 1000-3000: write", "commit 3000-5004: insert and COMMIT, sent together"]),
        # Behind a locked row it has not.
        ([("read", 1000), ("write", 5000), ("insert", 5006), ("commit", 5010)], ["read 0-1000: read", "commit 1000-5010: write, insert and COMMIT, sent together"]),
        ([("commit", 5000)], ["commit 0-5000: commit"]),
        ([("take", 2000), ("commit-stock", 2004), ("insert", 4000), ("commit-order", 4003)], ["commit 0-2004: write and COMMIT, sent together", "commit 2004-4003: insert and COMMIT, sent together"]),
    ],
)
def test_what_was_sent_together_has_one_colour(page, steps, expected):
    assert segments(page, [trace(1, None, *steps)]) == [expected]


def test_a_statement_that_is_the_whole_order_waits_for_the_one_before(page):
    one, two, three = segments(page, [trace(number, "commit", ("commit", 2000 * number)) for number in (1, 2, 3)])
    assert one == ["commit 0-2000: commit"]
    assert two == ["row 0-2000: waited for the row", "commit 2000-4000: commit"]
    assert three == ["row 0-4000: waited for the row", "commit 4000-6000: commit"]


def test_orders_in_one_statement_are_no_critical_sections(page, shop):
    shop.strategy("atomic-statement", think_ms=0)
    shop.reset(1, 100)
    page.wait(lambda: bars(page) == 0, "a new sale")
    at_once(shop, 6)
    page.wait(lambda: bars(page) == 6, "all are drawn")
    assert page.text("timeline-note") == "atomic-statement: 6 orders; none reads before it writes"
    assert page.all("#lanes .is-row, #lanes .queue"), "an order waited for another one"
    page.shot_of("timeline-one-statement", "timeline")


def test_orders_that_never_wait_show_no_waiting(page, shop):
    for _ in range(5):
        shop.order(1)
    page.wait(lambda: bars(page) == 5, "all are drawn")
    assert page.all("#lanes .segment.is-row") == []


# ── zoom and pan ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_wheel_zooms_at_the_pointer(page, shop):
    at_once(shop, 8)
    page.wait(lambda: bars(page) == 8, "all are drawn")
    page.click("zoom-fit")
    before = width(page)
    bar = page.all("#lanes .lanes-scroll")[0]
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", bar)
    # What is below the pointer stays there: the bar's place on the screen, a quarter from the left.
    place = "return document.querySelectorAll('#lanes .order')[2].getBoundingClientRect().left"
    x = page.driver.execute_script(place)
    left = page.driver.execute_script("return arguments[0].getBoundingClientRect().left + arguments[0].clientWidth / 2", bar)
    ActionChains(page.driver).scroll_from_origin(ScrollOrigin.from_element(bar, int(x - left), 0), 0, -400).perform()
    page.wait(lambda: width(page) > before * 1.2, "the wheel zooms in")
    assert abs(page.driver.execute_script(place) - x) < 40


def test_a_drag_moves_the_picture_and_a_double_click_resets_it(page, shop):
    shop.strategy("atomic-decrement")  # no witness, which the page would scroll to
    at_once(shop, 8)
    page.wait(lambda: bars(page) == 8, "all are drawn")
    bar = page.all("#lanes .lanes-scroll")[0]
    for _ in range(3):
        page.click("zoom-in")
    page.wait(lambda: scroll(page, "scrollWidth") > scroll(page, "clientWidth") + 200, "it is wider than its place")
    page.driver.execute_script("arguments[0].scrollLeft = 100", bar)
    ActionChains(page.driver).move_to_element_with_offset(bar, 0, -5).click_and_hold().move_by_offset(-80, 0).release().perform()
    assert 160 <= scroll(page, "scrollLeft") <= 200
    assert not page.find("timeline-resume").is_displayed(), "a drag chooses nothing"
    # Double click: as at first.
    wide = width(page)
    ActionChains(page.driver).double_click(bar).perform()
    page.wait(lambda: width(page) < wide, "the double click resets")


def test_zoom_by_keys(page, shop):
    at_once(shop, 8)
    page.wait(lambda: bars(page) == 8, "all are drawn")
    page.driver.execute_script("document.querySelector('.lanes-scroll').focus()")
    first = width(page)
    page.press("+")
    page.wait(lambda: width(page) > first * 1.2, "+ zooms in")
    larger = width(page)
    page.press("-")
    page.wait(lambda: width(page) < larger, "- zooms out")
    page.press("+")
    page.press("+")
    page.press("0")
    page.wait(lambda: abs(width(page) - first) < 2, "0 resets")


def test_the_focus_stays_on_a_bar_while_orders_arrive(page, shop):
    shop.order(1)
    page.wait(lambda: bars(page) == 1, "it is drawn")
    page.driver.execute_script("document.querySelector('.lanes-scroll').focus()")
    page.press(Keys.ARROW_RIGHT)
    page.press(Keys.ESCAPE)  # goes on, and keeps the focus
    key = "return document.activeElement.dataset.key ?? null"
    focused = page.driver.execute_script(key)
    assert focused is not None
    shop.order(1)
    page.wait(lambda: bars(page) == 2, "the second is drawn")
    assert page.driver.execute_script(key) == focused


@pytest.mark.long
def test_what_fits_is_no_wider_than_its_place(page, shop):
    shop.strategy("read-write", think_ms=50)
    for count in range(1, 7):
        shop.order(1)
        page.wait(lambda count=count: bars(page) == count, f"order {count} is drawn")
        assert scroll(page, "scrollWidth") <= scroll(page, "clientWidth"), f"{count} orders"


# ── a pair in steps ─────────────────────────────────────────────────────────────────────────────────────────


def schedule_of(page):
    page.wait(lambda: page.all("#timeline-pair"), "there is a link")
    schedule = unquote(page.find("timeline-pair").get_attribute("href").split("#")[1].replace("+", " "))
    assert schedule.endswith("&from=start")
    return schedule.removesuffix("&from=start")


def replays(shop, schedule):
    reply = shop.call("POST", "/steps", {"schedule": schedule})
    assert reply.status == 200, (schedule, reply.text)
    return reply.json


@pytest.mark.parametrize(
    ("locks_at", "steps", "words"),
    [
        # B's write waits for A's COMMIT, and B hears of its write before A hears of its COMMIT.
        ("write", (["read 10", "write 20", "commit 60"], ["read 15", "write 59", "commit 80"]), "A>read B>read A>end B>end"),
        # B gets the lock that A releases, and hears of it first.
        (None, (["lock 5", "read 10", "commit 20", "unlock 40"], ["lock 39", "read 50", "commit 60", "unlock 70"]), "A>end B>end"),
        # A lost its lock: B has it long before A's release.
        (None, (["lock 5", "read 10", "commit 60", "unlock 70"], ["lock 20", "read 30", "commit 80", "unlock 90"]), "A>read B>read A>end B>end"),
        # The order that started last read first: it is A.
        ("write", (["read 15", "write 59", "commit 80"], ["read 10", "write 20", "commit 60"]), "A>read B>read A>end B>end"),
    ],
)
def test_a_pair_has_its_steps_as_the_servers_made_them(page, locks_at, steps, words):
    """Clients hear of a COMMIT or a release a little after it; an order that waited for it may hear about its step first."""
    traces = []
    for number, names in enumerate(steps):
        begin, made = number, []
        for step, end in (name.split() for name in names):
            made.append({"step": step, "begin_us": begin, "end_us": int(end), "value": 1 if step == "read" else None})
            begin = int(end)
        traces.append({
            "request_id": str(number), "worker": number, "order_id": number + 1, "strategy": "read-write", "outcome": "created", "tries": 1,
            "fence": None, "quantity": 1, "locks_at": locks_at, "received_us": 0, "started_us": number, "ended_us": begin, "steps": made,
        })  # fmt: skip
    script = """const [traces, done] = arguments;
        Promise.all([import("/page/workshop/pair.js"), import("/page/workshop/overlaps.js")])
            .then(([pair, overlaps]) => done(pair.scheduleOf(...traces.map((trace) => overlaps.orderOf(trace, "one")))));"""
    assert page.driver.execute_async_script(script, traces) == f"read-write s=1 q=1,1 {words}"


def test_lanes_with_one_order_each_are_in_the_sequence_of_their_ends(page):
    script = """const [ends, done] = arguments;
        const orders = ends.map(([worker, commitEnd, end]) => ({ instance: "one", worker, commitEnd, end }));
        import("/page/timeline/lanes.js").then(({ lanesOf }) => done([...lanesOf(orders).lanes.values()].map(({ worker }) => worker)));"""
    lanes = lambda *ends: page.driver.execute_async_script(script, ends)  # noqa: E731
    assert lanes((1, 30, 90), (2, 10, 80), (3, None, 20)) == [2, 3, 1], "by COMMIT, or by the end of an order without one"
    assert lanes((2, 10, 11), (1, 20, 21), (2, 30, 31)) == [1, 2], "by the worker's number where one has several orders"


def test_the_whole_sale_is_seen_after_a_load(page):
    pick(page, "atomic-decrement")
    page.enter("load-connections", 1)  # one order after the other: in a usual size, 100 of them are wider than the page
    run_load(page)
    page.wait(lambda: bars(page) >= 100, "all orders are drawn")
    wide = lambda: scroll(page, "scrollWidth") - scroll(page, "clientWidth")  # noqa: E731
    page.wait(lambda: wide() <= 1, "in the whole width")
    page.click("zoom-in")
    assert wide() > 1, "a zoom still works"


@pytest.mark.long
def test_the_witness_opens_in_steps(page, shop):
    shop.strategy("read-write", think_ms=400)
    shop.reset(1, 1)
    at_once(shop, 2)
    page.wait(lambda: page.figure("oversold") == 1 and page.find("timeline-witness").is_displayed(), "there is a witness")
    page.click("timeline-witness")
    schedule = schedule_of(page)
    assert schedule.startswith("read-write s=1 q=1,1 ") and schedule.split()[3] in ("A>read", "B>read"), schedule
    assert replays(shop, schedule)["database"]["sold"] == 2, "the schedule oversells, too"
    page.click("timeline-pair")
    page.wait(lambda: page.all("section.lane") and page.find("told-empty").is_displayed(), "it starts at the beginning")
    page.click("next")
    page.wait_text("told", " reads 1")
    page.driver.back()
    page.wait_text("pulse", "live")


def test_two_chosen_orders_open_in_steps(page, shop):
    for _ in range(2):
        shop.order(1)
    page.wait(lambda: bars(page) == 2, "both are drawn")
    page.driver.execute_script("document.querySelector('.lanes-scroll').focus()")
    page.press(Keys.ARROW_RIGHT)
    page.wait_text("detail", "Order ")
    assert not page.all("#timeline-pair"), "one order, which met no other, is no pair"
    ActionChains(page.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT).perform()
    assert schedule_of(page) == "read-write s=2 q=1,1 A>end B>end"
    assert len(page.all('#lanes .order[aria-pressed="true"]')) == 2
    assert replays(shop, schedule_of(page))["database"]["sold"] == 2


# ── how soon ────────────────────────────────────────────────────────────────────────────────────────────────


# Places an order that is not the page's own at the worst moment: just after the page has asked for news. Returns the milliseconds from the
# answer to the order until the page asks again, and from then until the page has drawn the order's bar.
SEEN_AFTER = """
const [done] = arguments;
let sent, answered, asked, bar;
const drawn = new MutationObserver(() => look());
const looks = new PerformanceObserver(async (list) => {
  const asks = list.getEntriesByType("resource").filter(({ name }) => name.includes("/live?"));
  if (sent) {
    asked ??= asks.find(({ startTime }) => startTime > sent)?.startTime;
    look();
  } else if (asks.length) {
    sent = performance.now();
    const order = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ product_id: 1, quantity: 1 }) };
    const reply = await fetch("/orders", order);
    answered = performance.now();
    if (!reply.ok) return done(`POST /orders answers ${reply.status}`);
    const { id } = await reply.json();
    bar = `#lanes .order[aria-label^="order ${id},"]`;
    look();
  }
});
function look() {
  if (!asked || !bar || !document.querySelector(bar)) return;
  drawn.disconnect();
  looks.disconnect();
  done([asked - answered, performance.now() - asked]);
}
drawn.observe(document.getElementById("lanes"), { childList: true, subtree: true, attributes: true });
looks.observe({ type: "resource" });
"""


@pytest.mark.long
def test_a_new_order_is_seen_soon_with_a_thousand_traces(page, shop):
    """The goal is half a second: 450 ms until the page asks, and 50 ms until it has drawn the order. The best of several orders must meet
    the first limit on any machine. On a slow machine the page may need ten times as long to draw."""
    clock = "return performance.now()"
    ready = page.driver.execute_script(clock)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(reply.status == 201 for reply in pool.map(lambda _: shop.order(1), range(1050)))
    page.wait(lambda: page.figure("sold") == 1050 and bars(page) > 900, "most are drawn", 60)
    seen = "return !!document.querySelector(`#lanes .order[aria-label^='order ${arguments[0]},']`)"
    page.driver.execute_script("document.querySelector('#lanes .order:last-of-type').dataset.same = 1")
    took = []
    for _ in range(6):
        order = shop.order(1).json["id"]
        since = time.monotonic()
        wait_until(lambda order=order: page.driver.execute_script(seen, order), "it is drawn", every=0.01)
        took.append(time.monotonic() - since)
    print("seen after", [round(one, 2) for one in took])
    assert sorted(took)[2] < 5, took
    page.wait(lambda: page.driver.execute_script(clock) > ready + 5000, "the page asks at its usual pace again")
    seen = []
    while len(seen) < 10 or (len(seen) < 60 and all(asked <= 0 for asked, _ in seen)):  # an order may take longer than the page waits
        seen.append(page.driver.execute_async_script(SEEN_AFTER))
        assert isinstance(seen[-1], list), seen[-1]
    print("asked and drawn after", [[round(one) for one in both] for both in seen])
    assert min((asked for asked, _ in seen if asked > 0), default=math.inf) < 450, seen
    assert min(drawn for _, drawn in seen) < 500, seen
    assert page.all("#lanes .order[data-same]"), "what did not change is not drawn again"
    page.wait(lambda: page.figure("sold") == 1056 + len(seen), "and the figures follow")
