"""The story and the steps in Firefox, by clicks and by keyboard alone: the same tests as in Chromium. The last tests
check what the others rely on in Firefox. test_page_firefox_board.py and test_page_firefox_lessons.py have the other flows."""

import pytest

from firefox import Firefox
from pictures import is_blank
from test_page import test_keys_alone_will_do
from pages import page, stepping
from test_page_home import *  # noqa: F403
from test_page_keyboard import at, test_a_lease_ends, test_a_strategy_is_chosen_and_nothing_is_impossible_by_accident, test_an_order_dies_and_the_other_waits_for_ever, test_an_oversell_is_found_and_played, test_requests_code_and_help, test_the_lost_update_by_keyboard_alone
from test_page_stepping import test_the_lost_update_by_clicks
from test_page_steps import test_the_comparison_is_chosen_in_the_map

BROWSER = Firefox


def test_a_narrow_and_a_dark_page(browser, shop):
    """What the other tests trust: the window has the size, and the page the colours, that a test asks for."""
    browser.open(f"http://127.0.0.1:{shop.port}/", scheme="dark")
    dark = browser.ground()
    browser.size(320, 640)
    assert browser.driver.execute_script("return [innerWidth, innerHeight]") == [320, 640] and browser.overflows() <= 0
    browser.size(1280)
    browser.open(f"http://127.0.0.1:{shop.port}/", scheme="light")
    assert browser.ground() != dark
    assert browser.complaints() == []


def test_what_a_page_complains_of_is_seen(browser, shop):
    browser.driver.get(f"http://127.0.0.1:{shop.port}/steps")
    browser.driver.execute_script("document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:1/none.png'}))")
    seen = []
    browser.wait(lambda: seen.extend(browser.complaints()) or any("Content-Security-Policy" in line for line in seen), "the refused picture")
    browser.complaints()


@pytest.mark.long
def test_a_blank_picture_is_known(browser, shop):
    browser.driver.get("about:blank")
    assert is_blank(browser.driver.get_screenshot_as_png())
    browser.driver.get(f"http://127.0.0.1:{shop.port}/steps")
    browser.wait(lambda: browser.all(".lane"), "the page is there")
    assert not is_blank(browser.driver.get_screenshot_as_png())
