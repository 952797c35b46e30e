"""What the tests of the page share: browsers, the page as it is first opened, and what a visitor, a learner and a teacher do with it."""

import re
from urllib.parse import unquote, urlsplit

import pytest

from browser import Browser, Keys


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
