"""The page at /: the guided story, what is folded away, the map of strategies, and the projector view."""

import re
from urllib.parse import unquote, urlsplit

import pytest

from browser import Keys

TOKEN = "a-token-of-some-length"
PROJECTORS = [(1024, 768), (1280, 720)]
BEFORE = "Before the story: atomic-decrement, 0 ms, 100."
CONTROLS = ("strategy", "shop", "log", "timeline", "results")

# What lies outside the window, or is cut off, although it is shown.
OUTSIDE = """
const cut = (e) => { const r = e.getBoundingClientRect(); return r.left < -0.5 || r.top < -0.5 || r.right > innerWidth + 0.5 || r.bottom > innerHeight + 0.5; };
return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility() && cut(e)).map((e) => e.id || e.textContent.slice(0, 40));
"""


def address(service):
    return f"http://127.0.0.1:{service.port}/"


def ready(page):
    page.wait_text("log", "Ready")
    return page


@pytest.fixture
def visitor(browser, shop):
    """The page of somebody who has never been there, with other settings than the story's; it must not complain."""
    shop.strategy("atomic-decrement", think_ms=0, lock_wait_ms=5000, lock_ttl_ms=10000)
    shop.reset(1, 100)
    browser.size(1280, 720)
    browser.open(address(shop), view=None)
    yield ready(browser)
    assert browser.complaints() == []


def state(page):
    return page.find("story").get_attribute("data-state")


def sell(page):
    """Until it oversells, as a visitor would: on a slow machine the orders may not overlap."""
    for _ in range(10):
        page.click("story-sell")
        page.wait(lambda: state(page) == "sold" and page.all("#story-sell:enabled"), "the sale is over", 60)
        if page.all("#story-why"):
            return
        assert "No oversell this time" in page.text("story-text")
    raise AssertionError("ten sales without an oversell")


def settings(service):
    now = service.get("/strategy").json
    return now["name"], now["think_ms"], service.audit(1)["initial"]


def focused(page):
    return page.driver.switch_to.active_element


def outside(page, selector="button, a:not(.skip), h2, dd, li, table, #story p, .lanes"):
    return page.driver.execute_script(OUTSIDE, selector)


def scrolls(page):
    """By how many pixels the page is higher or wider than the window."""
    return page.driver.execute_script("const e = document.documentElement; return Math.max(e.scrollHeight - innerHeight, e.scrollWidth - innerWidth)")


def fits(page, name):
    page.driver.execute_script("scrollTo(0, 0)")
    page.keep(name)
    assert scrolls(page) <= 0, f"{name}: the page is {scrolls(page)} px too large"
    assert outside(page) == [], name


@pytest.mark.long
def test_the_header_has_one_row_and_leaves_room(visitor):
    page = visitor
    height = "return document.querySelector('.top').offsetHeight"
    for width in (1280, 1024):
        page.size(width, 720)
        assert page.driver.execute_script(height) < 72, width
    page.size(640, 360)  # 1280 x 720 at 200 %
    assert page.driver.execute_script(height) < 0.35 * 360


FIGURES = """
const done = arguments[0];
import("/page/workshop/figures.js").then(({ showFigures }) => {
  showFigures({ initial: 54321, left: 49517, sold: 54804, oversold: 10483, orders: 54804, drift: 0, negative: 0, strategies: ["read-write"], in_flight: 0 }, 15127);
  done([...document.querySelectorAll(".figures dd")].filter((one) => one.checkVisibility() && (one.scrollWidth > one.clientWidth + 1 || one.offsetHeight > 80)).map((one) => one.textContent));
}, (error) => done([String(error)]));
"""


@pytest.mark.parametrize("width, height", [(1440, 900), (1280, 720), (1024, 768), (390, 844)])
def test_large_figures_fit_their_boxes(browser, shop, width, height):
    browser.size(width, height)
    browser.open(address(shop))
    ready(browser)
    assert browser.driver.execute_async_script(FIGURES) == []
    assert browser.overflows() <= 0
    browser.keep(f"home-figures-{width}")
    rows = browser.driver.execute_script("return [...document.querySelectorAll('.figures > div')].filter((one) => one.checkVisibility()).map((one) => one.offsetTop)")
    assert len(rows) == 5 and (width < 1024 or 1 not in [rows.count(top) for top in rows]), "no figure stands alone in a row"


def test_the_projector_says_that_figures_are_of_another_sale(visitor, shop):
    page = visitor
    assert not page.find("story-before").is_displayed()
    shop.order(1)
    page.click("big")
    page.wait(lambda: page.find("story-before").is_displayed(), "the figures are not of this story")
    fits(page, "home-before")
    sell(page)
    assert not page.find("story-before").is_displayed()
    shop.call("POST", "/products/1/reset", {"stock": 50})
    page.wait(lambda: "another sale since" in page.find("story-before").text, "the figures are of a later sale than the story")
    fits(page, "home-since")
    page.click("big")


# ── the story ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_story_by_clicks(visitor, shop):
    page = visitor
    assert [page.find(part).is_displayed() for part in CONTROLS] == [False] * 5, "the controls are folded away"
    assert [button.text for button in page.all("#story button") if button.is_displayed()] == ["Sell 3 tickets to 6 buyers"]
    assert page.text("story-settings") == "For everybody's product, the button sets read-write, a pause of 20 ms, stock 3."
    assert settings(shop) == ("atomic-decrement", 0, 100), "a look changes nothing"
    fits(page, "home-start")

    sell(page)
    books = shop.audit(1)
    assert page.text("story-title") == f"Sold {books['sold']} of 3 ▲" and books["oversold"] == books["sold"] - 3 > 0
    assert "did not exist" in page.text("story-text")
    assert settings(shop) == ("read-write", 20, 3)
    page.wait(lambda: page.text("story-settings") == f"Set for everybody's product: read-write, a pause of 20 ms, stock 3. {BEFORE}", "what is set is told")
    page.wait(lambda: page.find("lanes").is_displayed() and page.all("#lanes .witness"), "the sale is drawn")
    wide = "const of = (name) => document.querySelector(name).getBoundingClientRect().width; return of('#lanes svg') / of('.lanes-scroll')"
    page.wait(lambda: page.driver.execute_script(wide) > 0.9, "in the whole width")
    assert len(page.all("#lanes .order")) == books["orders"] and not page.find("zoom-fit").is_displayed()
    fits(page, "home-sold")

    page.click("story-why")
    witness = shop.audit(1)["witness"]
    assert page.text("story-title") == f"Why? Both orders read {witness['stock_seen']}"
    assert all(str(order) in page.text("story-text") for order in witness["orders"])
    lines = [[cell.text for cell in line.find_elements("css selector", "td")] for line in page.all(".pair tbody tr")]
    reads = [text for line in lines for text in line if text.startswith("reads")]
    assert reads == [f"reads {witness['stock_seen']}"] * 2 and len([1 for line in lines for text in line if text == "commits"]) == 2
    done = [(column, text.split()[0]) for line in lines for column, text in enumerate(line[:2]) if text]
    first = next(column for column, what in done if what == "writes")
    assert done.index((first, "commits")) < done.index((1 - first, "writes")), f"the second write waits for the first COMMIT: {done}"
    fits(page, "home-why")

    schedule = unquote(urlsplit(page.all("#story-steps")[0].get_attribute("href")).fragment).replace("+", " ")
    assert re.fullmatch(r"read-write s=1 q=1,1( [AB]>(read|write|insert)){1,3}( A>end B>end| B>end A>end| B>end| A>end)&from=start", schedule), schedule
    assert page.text("story-steps") == "Step by step: this race for one unit"
    page.click("story-steps")
    page.wait(lambda: page.all("section.lane") and page.find("told-empty").is_displayed(), "it starts at the beginning")
    while not page.all("#next[aria-disabled=true]"):
        before = page.text("told")
        page.click("next")
        page.wait(lambda before=before: page.text("told") != before, "the next step")
    assert page.text("result").startswith("▲ Sold 2 of 1.")


def test_each_fix_runs_the_same_sale(visitor, shop):
    page = visitor
    sell(page)
    page.click("story-why")
    page.click("story-fix")
    page.wait(lambda: len(page.all(".fix")) == 3, "three ways to choose from")
    fits(page, "home-fix")
    for name in ("atomic-statement", "select-for-update", "redis-fenced"):
        page.click(f'[data-fix="{name}"] button')
        page.wait_text("story-title", f"{name} sold 3 of 3")
        assert page.all(f'[data-fix="{name}"] .fix-result')[0].text == "✓ Sold 3 of 3"
        assert "3 bought, 3 sold out" in page.all(f'[data-fix="{name}"] .fix-words')[0].text
        assert settings(shop) == (name, 20, 3)
        page.wait_text("story-settings", f"Set for everybody's product: {name},")
        assert focused(page).get_attribute("id") == "story-title"
    assert page.all("#story-steps")[0].get_attribute("href").endswith("/steps#redis-fenced+s=1+q=1,1")
    fits(page, "home-fixed")
    page.click("story-restore")
    page.wait(lambda: state(page) == "start", "the story starts again")
    assert settings(shop) == ("atomic-decrement", 0, 100)
    assert not page.find("story-restore").is_displayed()


def test_the_story_by_keyboard_alone(visitor, shop):
    page = visitor

    def go_to(name):
        for _ in range(30):
            if focused(page).get_attribute("id") == name:
                return
            page.press(Keys.TAB)
        raise AssertionError(f"Tab does not reach {name}")

    go_to("story-sell")
    page.press(Keys.ENTER)
    page.wait(lambda: state(page) == "sold" and focused(page).get_attribute("id") == "story-title", "the result has the focus", 60)
    for _ in range(10):
        if page.all("#story-why"):
            break
        go_to("story-sell")
        page.press(Keys.ENTER)
        page.wait(lambda: page.all("#story-sell:enabled"), "another sale", 60)
    go_to("story-why")
    page.press(" ")
    page.wait(lambda: state(page) == "why" and focused(page).get_attribute("id") == "story-title", "why")
    page.press(Keys.TAB)
    assert focused(page).get_attribute("id") == "story-fix"
    page.press(Keys.ENTER)
    page.wait(lambda: state(page) == "fix", "fix it")
    page.press(Keys.TAB)
    assert focused(page).text == "Run atomic-statement"
    page.press(Keys.ENTER)
    page.wait_text("story-title", "atomic-statement sold 3 of 3")
    assert shop.audit(1)["sold"] == 3
    before = settings(shop)
    for key in "bnlrw":
        page.press(key)
    page.press("?")
    page.wait(lambda: page.find("help").is_displayed(), "? helps")
    assert settings(shop) == before and shop.audit(1)["orders"] == 3, "no letter changes a sale that is not shown"
    page.press(Keys.ESCAPE)


def test_a_sale_that_does_not_oversell_is_told_as_it_is(visitor, shop):
    """The buyers come one after the other, as on a machine that is too slow."""
    page = visitor
    page.driver.execute_script("""
        const send = window.fetch;
        let last = Promise.resolve();
        window.fetch = (path, options) => (path === "/orders" ? (last = last.then(() => send(path, options))) : send(path, options));
    """)
    page.click("story-sell")
    page.wait_text("story-title", "Sold 3 of 3")
    assert "No oversell this time" in page.text("story-text") and "▲" not in page.text("story-title") and not page.all("#story-why")
    page.driver.refresh()
    ready(page)
    sell(page)


def test_orders_of_another_process_are_named_without_their_steps(visitor):
    """Behind a load balancer the page may ask a service that did not place the two orders, and so has no traces of them."""
    page = visitor
    page.driver.execute_script("""
        const send = window.fetch;
        window.fetch = async (path, options) => {
          const response = await send(path, options);
          if (!path.startsWith("/live")) return response;
          const live = await response.json();
          return Response.json({ ...live, traces: live.traces && { ...live.traces, traces: [] } });
        };
    """)
    sell(page)
    page.click("story-why")
    assert page.text("story-title").startswith("Why? Both orders read ") and not page.all(".pair")
    assert unquote(page.all("#story-steps")[0].get_attribute("href")).endswith("/steps#read-write+s=1+q=1,1+A>read+B>end+A>end&from=start")


def test_what_is_set_is_told_and_restored_after_a_reload(visitor, shop):
    page = visitor
    sell(page)
    shop.strategy("mutex", think_ms=7)  # somebody else, or all controls
    shop.reset(1, 50)
    page.wait(lambda: page.text("story-settings") == f"Set for everybody's product: mutex, a pause of 7 ms, stock 50. {BEFORE}", "the change is told")
    page.driver.refresh()
    ready(page)
    page.wait(lambda: page.text("story-settings") == f"Set for everybody's product: mutex, a pause of 7 ms, stock 50. {BEFORE}", "the tab has kept what was set")
    page.click("story-restore")
    page.wait_text("log", "The story restored atomic-decrement")
    assert settings(shop) == ("atomic-decrement", 0, 100)
    page.wait(lambda: not page.find("story-restore").is_displayed(), "all is restored")
    page.driver.refresh()
    ready(page)
    assert not page.find("story-restore").is_displayed() and page.text("story-settings").startswith("For everybody's product, the button sets")


# ── what is folded, and who opens it ────────────────────────────────────────────────────────────────────────


def test_all_controls_are_one_click_away_and_stay(visitor, shop):
    page = visitor
    page.click("controls")
    assert all(page.find(part).is_displayed() for part in CONTROLS) and not page.find("story").is_displayed()
    assert page.text("controls") == "Guided story"
    page.driver.refresh()
    ready(page)
    assert page.find("shop").is_displayed() and not page.find("story").is_displayed(), "the choice is remembered"
    page.click("controls")
    page.driver.refresh()
    ready(page)
    assert page.find("story").is_displayed() and not page.find("shop").is_displayed()


def test_an_address_opens_what_it_names(visitor, shop):
    page = visitor
    order = shop.order(1).json["id"]
    page.driver.execute_script(f"location.hash = 'order={order}'")
    page.wait_text("detail", f"Order {order}")
    assert page.find("detail").is_displayed()
    page.driver.get("about:blank")
    page.driver.get(f"{address(shop)}#order={order}")
    page.wait_text("detail", f"Order {order}")
    assert page.find("detail").is_displayed()
    page.driver.get("about:blank")
    page.driver.get(address(shop))
    ready(page)
    assert page.find("story").is_displayed(), "an address does not change the choice"


def test_a_sale_that_ends_is_no_error_for_the_console(visitor, shop):
    page = visitor
    page.click("controls")
    page.enter("stock", 2)
    page.click("reset")
    page.wait(lambda: page.figure("stock") == 2, "a new sale")
    page.enter("buyers", 5)
    page.click("buy-many")
    page.wait_text("log", "5 buyers at once: 2 bought, 3 sold out")
    page.click("buy-one")
    page.wait_text("log", "Not bought: sold out")


# The answer to a call whose body is cut off, as when the connection breaks.
CUT_OFF = """
const done = arguments[arguments.length - 1], { fetch } = window;
window.fetch = async () => new Response('{"strategies": [', { headers: { "Content-Type": "application/json" } });
import("/page/shared/api.js")
  .then(({ call }) => call("GET", "/strategies"))
  .then((answer) => done(answer), (problem) => done(problem.message))
  .finally(() => (window.fetch = fetch));
"""


def test_an_answer_that_is_cut_off_is_no_answer(visitor):
    assert visitor.driver.execute_async_script(CUT_OFF) == (
        "The service does not answer. Check that it runs and that this computer reaches it, then try again."
    )


def test_the_other_pages_are_linked(visitor):
    links = {link.text: urlsplit(link.get_attribute("href")).path for link in visitor.all("nav a")}
    assert links == {"Lessons": "/lessons/", "Step by step": "/steps"}


# ── the map ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def teacher(browser, shop):
    shop.strategy("atomic-decrement", think_ms=0, lock_wait_ms=5000, lock_ttl_ms=10000)
    shop.reset(1, 100)
    browser.size(1280, 720)
    browser.open(address(shop))
    yield ready(browser)
    assert browser.complaints() == []


@pytest.mark.long
def test_the_map_has_every_strategy_in_its_group(teacher, shop):
    page = teacher
    page.click("strategy-open")
    groups = {group.get_attribute("data-group"): [tile.get_attribute("data-strategy") for tile in group.find_elements("css selector", "[role=option]")] for group in page.all(".map-group")}
    assert list(groups) == ["none", "process", "database", "redis", "zookeeper", "etcd", "fenced", "queued"]
    assert sorted(sum(groups.values(), [])) == sorted(row["name"] for row in shop.get("/strategies").json["strategies"])
    assert groups["none"] == ["read-write", "decrement"] and groups["queued"] == ["batched", "redis-stock"]
    assert set(groups["fenced"]) == {"fence-on-write", "redis-fenced", "zookeeper-fenced", "etcd-fenced"}
    assert "redlock" in groups["redis"] and "lock-table" in groups["database"] and "mutex" in groups["process"] and "curator" in groups["zookeeper"]
    words = {tile.get_attribute("data-strategy"): tile.text.split("\n") for tile in page.all("#strategy-map [role=option]")}
    assert words["mutex"] == ["1", "mutex", "one process"] and words["redlock"] == ["◔", "redlock", "lease"]
    assert words["atomic-decrement"] == ["✓", "atomic-decrement", "safe · set now"]
    page.keep("home-map")
    assert outside(page, "#strategy-dialog, #strategy-dialog button") == []
    assert page.low_contrast() == [] and page.unnamed() == []


@pytest.mark.parametrize("width, height", PROJECTORS)
def test_all_groups_of_the_map_are_seen_with_what_is_set(teacher, shop, width, height):
    page = teacher
    page.size(width, height)
    shop.strategy("redis-fenced")
    page.wait(lambda: page.text("strategy-name") == "redis-fenced", "it is set")
    page.click("strategy-open")
    page.wait(lambda: focused(page).get_attribute("data-strategy") == "redis-fenced", "the focus is on what is set")
    page.keep(f"home-map-{width}")
    hidden = page.driver.execute_script('''
        const { top, bottom } = document.getElementById("strategy-map").getBoundingClientRect();
        return [...document.querySelectorAll(".map-title, .tile[aria-selected=true]")].filter((e) => { const r = e.getBoundingClientRect(); return r.top < top || r.bottom > bottom; }).map((e) => e.textContent);
    ''')
    assert hidden == []


def test_only_apply_switches(teacher, shop):
    page = teacher
    page.find("strategy-open").send_keys(Keys.ENTER)
    page.wait(lambda: focused(page).get_attribute("data-strategy") == "atomic-decrement", "the focus is on what is set")
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.HOME):
        page.press(key)
    assert focused(page).get_attribute("data-strategy") == "read-write" and page.text("strategy-apply") == "atomic-decrement is set"
    page.press("redl")
    assert focused(page).get_attribute("data-strategy") == "redlock", "letters go to a name"
    page.press(Keys.END)
    page.press(" ")
    last = focused(page).get_attribute("data-strategy")
    assert page.text("strategy-apply") == f"Apply {last}" and focused(page).get_attribute("aria-selected") == "true"
    page.press(Keys.HOME)
    page.press(Keys.ENTER)
    assert page.text("strategy-apply") == "Apply read-write" and "lost update" in page.text("strategy-detail")
    page.press(Keys.ESCAPE)
    page.wait(lambda: not page.find("strategy-dialog").is_displayed(), "Escape closes the map")
    assert shop.get("/strategy").json["name"] == "atomic-decrement", "nothing was switched"
    assert focused(page).get_attribute("id") == "strategy-open"
    page.press(Keys.ENTER)
    page.press(Keys.HOME)
    page.press(" ")
    page.driver.execute_script("document.getElementById('strategy-apply').focus()")
    page.press(Keys.ENTER)
    page.wait_text("log", "Strategy: read-write")
    page.wait_text("log", "A new sale")
    assert shop.get("/strategy").json["name"] == "read-write" and page.text("strategy-name") == "read-write"


# ── servers that are missing, tokens, learners ──────────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_missing_server_is_named_and_another_fix_offered(browser, services, database):
    service = services.start(database, env={"REDIS_URL": "redis://127.0.0.1:1"})
    browser.size(1280, 720)
    browser.open(address(service), view=None)
    sell(ready(browser))
    browser.click("story-why")
    browser.click("story-fix")
    browser.wait(lambda: len(browser.all(".fix")) == 3, "three ways to choose from")
    assert [fix.get_attribute("data-fix") for fix in browser.all(".fix")] == ["atomic-statement", "select-for-update", "mutex"]
    assert re.search(r"redis-fenced cannot be used: redis.*Start that server", browser.text("story-more"))
    browser.click('[data-fix="mutex"] button')
    browser.wait_text("story-title", "mutex sold 3 of 3")
    fits(browser, "home-without-redis")
    assert browser.complaints() == []


def test_the_story_says_when_the_service_is_away(browser, services, database):
    service = services.start(database)
    browser.open(address(service), view=None)
    ready(browser)
    places = lambda: [browser.find(name).rect for name in ("story-sell", "controls", "help-open")]  # noqa: E731
    while_live = places()
    service.stop()
    browser.wait_text("pulse", "no answer")
    assert places() == while_live, "nothing moves below the pointer"
    browser.click("story-sell")
    browser.wait_text("story-problem", "The service does not answer. Check that it runs")
    assert browser.find("story-sell").is_enabled(), "it can be tried again"
    browser.complaints()


def test_the_story_asks_for_the_token(browser, services, database):
    service = services.start(database, token=TOKEN)
    browser.open(address(service), view=None)
    ready(browser)
    assert "only with its admin token" in browser.text("story-settings")
    browser.click("story-sell")
    browser.wait(lambda: browser.find("token-dialog").is_displayed(), "the token is asked for")
    browser.press(Keys.ESCAPE)
    browser.wait_text("story-problem", "only with the admin token")
    browser.click("story-sell")
    browser.wait(lambda: browser.find("token-dialog").is_displayed(), "it is asked for again")
    browser.find("token").send_keys("wrong", Keys.ENTER)
    browser.wait(lambda: browser.find("token-dialog").is_displayed() and "The token is wrong." in browser.find("token-why").text, "and again")
    browser.find("token").send_keys(TOKEN, Keys.ENTER)
    browser.wait(lambda: state(browser) == "sold", "the sale has run", 60)
    assert browser.complaints() == [], "no call was refused"


def test_a_learner_s_story_is_about_the_learner_s_product(browser, services, database):
    service = services.start(database, "--classroom", listen="127.0.0.1:0")
    code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    browser.start(address(service), view=None)
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the code is asked for")
    assert browser.find("join-name").rect["width"] == browser.find("join-code").rect["width"] > 200
    browser.find("join-code").send_keys(code, Keys.ENTER)
    ready(browser)
    browser.wait(lambda: focused(browser).get_attribute("id") == "story-sell", "the keyboard goes on with the first control")
    product = re.search(r"[Ff]or your product (\d+) alone", browser.text("story-settings"))[1]
    sell(browser)
    assert service.audit(product)["oversold"] > 0 and service.audit(1)["sold"] == 0
    assert service.get("/strategy").json["name"] == "atomic-decrement", "the others' strategy is as it was"
    browser.click("controls")
    browser.select_strategy("table-lock")
    assert not browser.find("strategy-apply").is_enabled() and "only the teacher can apply it" in browser.text("strategy-problem")
    assert browser.complaints() == []


# ── on a projector, on a phone ──────────────────────────────────────────────────────────────────────────────


# Which kinds of bars are drawn, and which of them the legend does not explain.
UNEXPLAINED = """
const drawn = new Set([...document.querySelectorAll("#lanes .segment")].filter((e) => e.getBBox().width > 0).map((e) => e.classList[1].slice(3)));
for (const kind of ["hold", "overlap"]) if (document.querySelector(`#lanes .${kind}`)) drawn.add(kind);
const shown = [...document.querySelectorAll("#legend li")].filter((e) => e.checkVisibility()).map((e) => e.dataset.kind);
return shown.length === 0 ? ["everything"] : [...drawn].filter((kind) => !shown.includes(kind));
"""


def explains(page, name):
    """One screen has the figures, and the meaning of each colour of the timeline."""
    fits(page, name)
    assert [figure for figure in ("stock", "left", "sold", "oversold") if not page.find(f"figure-{figure}").is_displayed()] == [], name
    assert page.driver.execute_script(UNEXPLAINED) == [], name


def below(page, name):
    """How many pixels of an element can only be reached by scrolling down."""
    return page.driver.execute_script("const e = document.getElementById(arguments[0]); return e.scrollHeight - e.clientHeight", name)


@pytest.mark.long
@pytest.mark.parametrize("width, height", PROJECTORS)
def test_the_projector_view_fits_one_screen(visitor, shop, width, height):
    page, name = visitor, f"home-projector-{width}"
    page.size(width, height)
    page.click("big")
    explains(page, f"{name}-start")
    assert [button.text for button in page.all("main button") if button.is_displayed() and "primary" in button.get_attribute("class")] == ["Sell 3 tickets to 6 buyers"]
    sell(page)
    page.wait(lambda: page.figure("oversold") == shop.audit(1)["oversold"] and page.all("#lanes .witness"), "the figures and the timeline show it")
    explains(page, f"{name}-sold")
    assert page.find("figure-sold").is_displayed() and page.find("story-why").is_displayed() and page.find("lanes").is_displayed()
    lanes = page.find("lanes").rect
    assert lanes["height"] >= 0.25 * height, "the timeline has room"
    assert len(page.all("#lanes .lane-label")) <= 6 and below(page, "lanes") <= 0, "all workers are seen"
    page.click("story-why")
    page.wait_text("detail", "read the same")
    assert not page.find("timeline-witness").is_displayed(), "the witness is shown"
    page.wait(lambda: below(page, "lanes") <= 0, "all workers are still seen")
    explains(page, f"{name}-why")
    page.click("story-fix")
    page.wait(lambda: len(page.all(".fix")) == 3, "three ways to choose from")
    explains(page, f"{name}-fix")
    page.click('[data-fix="select-for-update"] button')
    page.wait_text("story-title", "select-for-update sold 3 of 3")
    page.wait(lambda: page.figure("sold") == 3 and not page.all("#lanes .witness"), "the figures and the timeline are of the new sale")
    explains(page, f"{name}-fixed")
    assert page.find("lanes").rect["height"] >= 0.2 * height, "the timeline has room"
    assert page.low_contrast() == []
    page.click("controls")
    assert page.find("strategy").is_displayed() and page.find("big").get_attribute("aria-pressed") == "false", "all controls end it"


@pytest.mark.long
def test_a_phone_needs_no_scrolling_sideways(visitor):
    page = visitor
    page.size(320, phone=True)

    def check(name):
        assert page.overflows() <= 0 and page.too_small() == [], name
        page.shot(f"home-320-{name}")
        page.size(320, phone=True)

    check("start")
    sell(page)
    check("sold")
    page.click("story-why")
    check("why")
    page.click("story-fix")
    page.wait(lambda: len(page.all(".fix")) == 3, "three ways to choose from")
    check("fix")
    page.click("story-all")
    page.wait(lambda: page.all("#strategy-dialog[open]") and page.find("shop").is_displayed(), "all strategies")
    assert page.overflows() <= 0
    page.select_strategy("redis-setnx-forever")
    page.keep("home-320-map")
    assert outside(page, "#strategy-dialog .tile-name, #strategy-dialog .tile-word") == [] or page.overflows() <= 0
    page.click("strategy-close")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_story_can_be_read_in_both_schemes(browser, shop, scheme):
    browser.size(1280, 720)
    browser.open(address(shop), scheme, view=None)
    sell(ready(browser))
    browser.click("story-why")
    assert browser.low_contrast() == [] and browser.unnamed() == []
    browser.click("story-fix")
    browser.wait(lambda: len(browser.all(".fix")) == 3, "three ways to choose from")
    browser.click('[data-fix="atomic-statement"] button')
    browser.wait_text("story-title", "atomic-statement sold 3 of 3")
    assert browser.low_contrast() == [] and browser.unnamed() == []
    assert browser.complaints() == []
