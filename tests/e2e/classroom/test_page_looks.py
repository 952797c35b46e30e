"""Every page at the widths of a phone and of a desk, in light and in dark colours: nothing is cut off, covered or wordy. The screenshots are
test output."""

import pytest

from browser import Browser
from test_page_board import classroom, join, open_board
from test_page_home import sell
from test_page_lessons import PAGES

__all__ = ["classroom"]

WIDTHS = (320, 390, 1280)
SOLD = "read-write+s=1+q=1,1+A>read+B>end+A>end"
FENCED = "redis-fenced+s=1+q=1,1+A>read+A!expire+B>end+A>end"
BOTH = "select-for-update+s=1+q=1,1+A>write+B>read~&with=read-write"

# Texts of more than two lines: of each block that has text, the lines that its text has. The explanation of a strategy, requests, code, the
# prose of a lesson and the help are what a reader has asked for.
WORDY = """
const exempt = "pre, code, .sent, .listing, textarea, select, noscript, .skip, #help, .why, main.lesson > :not(.run, .quiz), .terminal";
const isBlock = (element) => !["inline", "contents"].includes(getComputedStyle(element).display);
const blocks = new Map();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode;
  let block = text.parentElement;
  if (!text.textContent.trim() || block.closest(exempt) || !block.checkVisibility()) continue;
  while (!isBlock(block)) block = block.parentElement;
  const range = document.createRange();
  range.selectNodeContents(text);
  const lines = blocks.get(block) ?? [];
  for (const { top, bottom } of range.getClientRects()) {
    const middle = (top + bottom) / 2;
    if (!lines.some((line) => Math.abs(line - middle) < (bottom - top) / 2)) lines.push(middle);
  }
  blocks.set(block, lines);
}
return [...blocks].filter(([, lines]) => lines.length > 2).map(([block, lines]) => `${lines.length} lines: ${block.textContent.trim().replace(/\\s+/g, " ").slice(0, 90)}`);
"""

# Texts and controls that are cut off at the side of their box or of the window, and controls that something else covers.
BROKEN = """
const found = [];
const name = (e) => e.id || e.textContent.trim().slice(0, 40) || e.className;
const scrolls = (e) => { for (; e; e = e.parentElement) if (["auto", "scroll"].includes(getComputedStyle(e).overflowX)) return true; return false; };
for (const e of document.querySelectorAll("button, a, select, input, p, li, h1, h2, h3, td, th, label, summary, output, strong")) {
  if (!e.checkVisibility({ visibilityProperty: true }) || e.closest(".skip, svg, noscript")) continue;
  const box = e.getBoundingClientRect();
  if (box.width === 0 || box.height === 0) continue;
  if (!scrolls(e) && (box.left < -1 || box.right > innerWidth + 1)) found.push(`outside: ${name(e)}`);
  const style = getComputedStyle(e);
  if (style.overflowX === "hidden" && style.textOverflow !== "ellipsis" && e.scrollWidth > e.clientWidth + 1 && style.display !== "inline") found.push(`cut: ${name(e)}`);
  if (!e.matches("button, a, select, input, summary")) continue;
  if (document.querySelector("dialog[open]") && !e.closest("dialog[open]")) continue;
  e.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
  const now = e.getClientRects()[0];
  const top = document.elementFromPoint(now.left + now.width / 2, now.top + now.height / 2);
  if (top && top !== e && !e.contains(top) && !top.contains(e) && !e.closest("label")?.contains(top)) found.push(`covered by ${top.id || top.className || top.tagName}: ${name(e)}`);
}
scrollTo(0, 0);
return found;
"""


@pytest.fixture(scope="module")
def looks():
    """What is wrong with the looks of the page that BROWSER shows, at each width and in both colours; each has a screenshot."""

    def look(browser, name):
        found = []
        for scheme in ("light", "dark"):
            browser.set_scheme(scheme)
            for width in WIDTHS:
                browser.size(width, 800, phone=width < 700)
                faults = browser.driver.execute_script(BROKEN)
                if browser.overflows() > 0:
                    faults.append(f"{browser.overflows()} px wider than the window")
                if width == 1280:
                    faults += browser.driver.execute_script(WORDY)
                found += [f"{name}, {width} px, {scheme}: {fault}" for fault in faults]
                browser.shot(f"looks-{name}-{width}-{scheme}")
        browser.set_scheme("light")
        browser.size(1280)
        return found

    return look


@pytest.fixture
def home(browser, shop):
    def open_home(view=None):
        shop.strategy("read-write", think_ms=20)
        shop.reset(1, 100)
        browser.size(1280)
        browser.open(f"http://127.0.0.1:{shop.port}/", view=view)
        browser.wait_text("log", "Ready")
        return browser

    return open_home


@pytest.mark.long
def test_the_story(home, looks):
    page = home()
    found = looks(page, "home-start")
    sell(page)
    found += looks(page, "home-sold")
    page.click("story-why")
    page.wait(lambda: page.all(".pair"), "the pair of orders")
    found += looks(page, "home-why")
    page.click("story-fix")
    page.wait(lambda: page.all(".fix"), "the ways to fix it")
    assert found + looks(page, "home-fix") == []


def test_all_controls(home, looks):
    page = home("all")
    page.click("buy-many")
    page.wait(lambda: page.all(".lanes svg"), "the timeline")
    assert looks(page, "controls") == []


@pytest.mark.long
@pytest.mark.parametrize("button", ["strategy-open", "help-open"])
def test_a_dialog(home, looks, button):
    page = home("all")
    page.click(button)
    page.wait(lambda: page.all("dialog[open]"), "the dialog is open")
    assert looks(page, button) == []


@pytest.mark.long
@pytest.mark.parametrize("name, schedule", [("start", ""), ("sold", SOLD), ("fenced", FENCED), ("both", BOTH), ("wrong", "no-such-strategy+s=1")])
def test_steps(browser, shop, looks, name, schedule):
    browser.size(1280)
    browser.driver.get("about:blank")
    browser.start(f"http://127.0.0.1:{shop.port}/steps#{schedule}")
    browser.wait(lambda: browser.all(".lane") and browser.text("goal") != "…", "the orders stand there")
    if name == "both":
        browser.wait(lambda: browser.all("#beside-lane-A"), "the second strategy")
    assert looks(browser, f"steps-{name}") == []


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_lessons(browser, shop, looks, name):
    browser.size(1280)
    browser.start(f"http://127.0.0.1:{shop.port}/lessons/{name}")
    browser.wait(lambda: browser.text("progress") or name in ("guide", "glossary") or browser.all(".run, .quiz"), "the page is set up")
    assert looks(browser, f"lesson-{name or 'contents'}") == []


@pytest.mark.long
def test_the_class(browser, classroom, looks, tmp_path):
    open_board(browser, classroom)
    learner = Browser(tmp_path)
    try:
        join(learner, classroom, "Ada")
        browser.wait_text("names", "Ada")
        browser.click("ask-open")
        found = looks(browser, "board-ask")
        browser.click('#ask-form button[value="ok"]')
        learner.wait_text("class-news", "What will B read?")
        assert found + looks(browser, "board") + looks(learner, "learner") == []
    finally:
        learner.quit()


def test_a_page_without_its_class(browser, shop, looks):
    browser.start(f"http://127.0.0.1:{shop.port}/class")
    browser.wait_text("alert", "Start it with --classroom")
    assert looks(browser, "board-none") == []


def test_what_is_wrong_is_found(browser, shop):
    browser.size(1280)
    browser.start(f"http://127.0.0.1:{shop.port}/steps")
    browser.wait(lambda: browser.all(".lane"), "the orders stand there")
    browser.driver.execute_script("""
        const add = (tag, text, style) => Object.assign(document.querySelector("main").appendChild(document.createElement(tag)), { textContent: text }).style.cssText = style;
        add("p", "word ".repeat(200), "");
        add("button", "far away", "position: absolute; left: 1270px; width: 200px");
        add("button", "below", "position: fixed; top: 300px; left: 300px");
        add("div", "above", "position: fixed; top: 250px; left: 250px; width: 300px; height: 300px; z-index: 99");
    """)
    assert any("word word" in text for text in browser.driver.execute_script(WORDY))
    broken = " ".join(browser.driver.execute_script(BROKEN))
    assert "outside: far away" in broken and ": below" in broken
