"""No text of a page is longer than two lines on a usual screen. The bodies of the lessons are texts to read, so they are not counted."""

import pytest

from browser import Browser
from test_page_board import classroom, join, open_board
from test_page_home import sell

__all__ = ["classroom"]

LONG = """
const texts = (element) => [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
// A line is where a piece of text begins further down than the one before.
const lines = (element) => {
  const range = document.createRange(), tops = [];
  range.selectNodeContents(element);
  for (const { top, height } of range.getClientRects()) if (!tops.some((other) => Math.abs(other - top) < height)) tops.push(top);
  return tops.length;
};
return [...document.querySelectorAll("p, li, dt, dd, td, th, label, summary, h1, h2, h3, button, span, figcaption")]
  .filter((element) => texts(element).length > 0 && element.checkVisibility() && getComputedStyle(element).display !== "inline")
  .filter((element) => !element.querySelector("input, select, textarea") && !element.closest("pre, code, svg, .map-group, .names"))
  .map((element) => [lines(element), element.textContent.trim().replace(/\\s+/g, " ").slice(0, 200)])
  .filter(([count]) => count > 2);
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("downloads"))
    yield started
    started.quit()


def long_texts(browser):
    return [f"{lines} lines: {text}" for lines, text in browser.driver.execute_script(LONG)]


@pytest.mark.parametrize("view", [None, "all"], ids=["story", "all controls"])
def test_the_page(browser, shop, view):
    shop.strategy("read-write", think_ms=20)
    shop.reset(1, 100)
    browser.size(1280)
    browser.open(f"http://127.0.0.1:{shop.port}/", "light", view)
    browser.wait_text("log", "Ready")
    assert long_texts(browser) == []
    if view is None:
        sell(browser)
        browser.click("story-why")
        browser.wait(lambda: browser.all(".pair"), "the pair of orders")
        browser.click("story-fix")
        browser.wait(lambda: browser.all(".fix"), "the ways to fix it")
        assert long_texts(browser) == []


@pytest.mark.parametrize("schedule", ["read-write+s=1+q=1,1+A>read+B>end+A>end", "redis-fenced+s=1+q=1,1+A>read+A!expire+B>end+A>end"])
def test_steps(browser, shop, schedule):
    browser.size(1280)
    browser.start(f"http://127.0.0.1:{shop.port}/steps#{schedule}")
    browser.wait(lambda: browser.all("#told li"), "the steps are shown")
    browser.keep("steps-1280")
    assert long_texts(browser) == []


def test_the_contents_of_the_lessons(browser, shop):
    browser.size(1280)
    browser.start(f"http://127.0.0.1:{shop.port}/lessons/")
    browser.wait_text("progress", "Choose a lesson")
    assert long_texts(browser) == []


def test_the_class(browser, classroom):
    open_board(browser, classroom, 1280, 720)
    assert long_texts(browser) == []
    join(browser, classroom, "Ada")
    assert long_texts(browser) == []
