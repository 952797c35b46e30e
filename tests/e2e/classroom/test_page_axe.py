"""Each page in each state that a flow leads to, in light and in dark colours, has no serious or critical finding of axe-core."""

import pytest

from axe import findings, needs_axe
from browser import Browser
from test_page_board import classroom, join, open_board
from test_page_home import sell
from test_page_lessons import PAGES

__all__ = ["classroom"]

SCHEDULE = "read-write+s=1+q=1,1+A>read+B>end+A>end"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    needs_axe()
    started = Browser(tmp_path_factory.mktemp("downloads"))
    yield started
    started.quit()


@pytest.fixture(params=["light", "dark"])
def scheme(request):
    return request.param


@pytest.fixture
def home(browser, shop, scheme):
    """Opens the page at /: the guided story, or with "all" all controls."""

    def open_home(view=None):
        shop.strategy("read-write", think_ms=20)
        shop.reset(1, 100)
        browser.size(1280)
        browser.open(f"http://127.0.0.1:{shop.port}/", scheme, view)
        browser.wait_text("log", "Ready")
        return browser

    return open_home


@pytest.mark.long
def test_the_story(home):
    page = home()
    assert findings(page) == []
    sell(page)
    assert findings(page) == []
    page.click("story-why")
    page.wait(lambda: page.all(".pair"), "the pair of orders")
    assert findings(page) == []
    page.click("story-fix")
    page.wait(lambda: page.all(".fix"), "the ways to fix it")
    assert findings(page) == []


def test_all_controls(home):
    page = home("all")
    page.click("buy-many")
    page.wait(lambda: page.all(".lanes svg"), "the timeline")
    assert findings(page) == []
    page.click("big")
    assert findings(page) == []
    page.click("big")


@pytest.mark.parametrize("button", ["strategy-open", "help-open"])
def test_a_dialog(home, button):
    page = home("all")
    page.click(button)
    page.wait(lambda: page.all("dialog[open]"), "the dialog is open")
    assert findings(page) == []


@pytest.mark.parametrize("address", ["", f"#{SCHEDULE}", "#redis-lock+s=1+q=1,1+A>read+A!expire+B>read", "#no-such-strategy+s=1"])
def test_steps(browser, shop, scheme, address):
    browser.size(1440)
    browser.driver.get("about:blank")
    browser.start(f"http://127.0.0.1:{shop.port}/steps{address}", scheme)
    browser.wait(lambda: browser.all(".lane") and browser.text("goal") != "…", "the orders stand there")
    assert findings(browser) == []


@pytest.mark.parametrize("name", PAGES)
def test_lessons(browser, shop, scheme, name):
    browser.size(1280)
    browser.start(f"http://127.0.0.1:{shop.port}/lessons/{name}", scheme)
    for details in browser.all("details"):
        browser.driver.execute_script("arguments[0].open = true", details)
    assert findings(browser) == []


def test_the_class(browser, classroom, scheme, tmp_path):
    open_board(browser, classroom)
    learner = Browser(tmp_path)
    try:
        join(learner, classroom, "Ada")
        browser.set_scheme(scheme)
        learner.set_scheme(scheme)
        browser.wait_text("names", "Ada")
        browser.click("ask-open")
        assert findings(browser) == []
        browser.click('#ask-form button[value="ok"]')
        learner.wait_text("class-news", "What will B read?")
        assert findings(browser) == [] and findings(learner) == []
    finally:
        learner.quit()


def test_a_finding_is_found(browser, shop):
    browser.start(f"http://127.0.0.1:{shop.port}/steps")
    browser.driver.execute_script("document.body.append(document.createElement('button'))")
    assert any("button-name" in found for found in findings(browser))
