"""README's schedule on /steps, one picture after each step: `make pictures` joins them to README's animation."""

import re

import pytest

from browser import Browser
from lab import ROOT

WIDTH, HEIGHT = 960, 554  # README shows it about 830 pixels wide: 14 px letters

# A picture cannot be clicked, so the controls that the schedule does not need are hidden. What is left keeps its size.
STYLE = """
.top, footer, .setting, .bar-of-tools, .found, .faults, .reason, .code, .sent, .versions, .story .heading, .story details, .result .group { display: none !important; }
:root { font-size: 16.5px; overflow: hidden; }
main.both { padding: 14px; }
.card { padding-block: 0.7rem; box-shadow: none; }
.lane.is-turn { box-shadow: 0 0 0 2px var(--of); }
.goal { margin-top: 0; }
.stage { grid-template-columns: 1fr 1.1fr 1fr !important; }
.held { flex-wrap: nowrap; column-gap: 0.9rem; white-space: nowrap; }
.go { font-size: 1em; min-height: 2.7rem; }
.story, .result { height: 9.2rem; }
#result:not([hidden]) ~ .story { display: none; }
.result p { margin-bottom: 0; }
.told { max-height: 8rem; margin: 0; overflow: hidden; }
.told li { height: 2rem; }
.told li:last-child { font-weight: 700; border: 0; }
.told .line { font-weight: inherit; }
"""

# The page is not to ask "What will B read?". The script changes that, since a mouse would then lie on something.
PREPARE = """
document.getElementById("ask").checked = false;
const sheet = new CSSStyleSheet();
sheet.replaceSync(arguments[0]);
document.adoptedStyleSheets = [sheet];
"""

# The key that is pressed (1 is order A's next step, 2 is B's), and the last sentence of the story then.
STEPS = (
    ("1", "A reads 1."),
    ("2", "B reads 1."),
    ("2", "B writes 0."),
    ("2", "B has bought."),
    ("1", "A writes 0."),
    ("1", "A has bought."),
)


@pytest.fixture
def page(tmp_path):
    """A new browser: its mouse is nowhere, and nothing has the focus."""
    browser = Browser(tmp_path)
    browser.size(WIDTH, HEIGHT, scale=2)
    yield browser
    browser.quit()


def open_steps(page, shop, schedule):
    page.driver.get("about:blank")
    page.start(f"http://127.0.0.1:{shop.port}/steps#{schedule.replace(' ', '+')}")
    page.wait(lambda: page.all(".lane") and page.text("goal") != "…", "the orders are drawn")


def story(page):
    return [line.get_attribute("textContent") for line in page.all("#told li")]


def picture(page, number):
    bottom = page.driver.execute_script("return document.querySelector('main').getBoundingClientRect().bottom")
    assert HEIGHT - 20 < bottom <= HEIGHT, "the picture shows the whole page and little more; change HEIGHT"
    page.keep(f"lost-update-{number}")


@pytest.mark.long
def test_readme_picture_is_its_schedule(page, shop):
    schedule = re.search(r"--replay '(.*)'", (ROOT / "README.md").read_text())[1]
    open_steps(page, shop, schedule)
    page.wait_text("result", "Sold 2 of 1.")
    expected = story(page)

    open_steps(page, shop, schedule.split(" A>")[0])
    page.driver.execute_script(PREPARE, STYLE)
    picture(page, 0)
    for number, (key, sentence) in enumerate(STEPS, 1):
        page.press(key)
        page.wait(lambda sentence=sentence: story(page)[-1:] == [sentence], sentence)
        picture(page, number)
    assert story(page) == expected
    assert page.text("sold") == "2" and "A and B both read 1." in page.text("result")
    assert page.complaints() == []
