"""The flows of the pages in Firefox, by clicks and by keyboard alone: the same tests as in Chromium, with another browser."""

import pytest

from browser import Browser, Keys
from firefox import Firefox
from pictures import is_blank

# What these take, browser and browsers, is below; pytest takes it from here.
from test_page import is_disabled, open_steps, page, schedule_of, stepping, test_keys_alone_will_do, test_the_lost_update_by_clicks
from test_page_board import classroom, test_a_question_by_clicks, test_a_question_by_keyboard_alone, test_what_the_teacher_sends_to_all
from test_page_home import teacher, test_each_fix_runs_the_same_sale, test_only_apply_switches, test_the_story_by_clicks, test_the_story_by_keyboard_alone, visitor
from test_page_keyboard import at, test_a_goal_is_found_and_the_next_lesson_opened, test_a_strategy_is_chosen_and_nothing_is_impossible_by_accident, test_an_oversell_is_found_and_played, test_what_the_teacher_sends_and_withdraws
from test_page_lessons import test_a_lesson_by_clicks_and_its_progress_after_a_reload, test_a_lesson_by_keyboard_alone, visit
from test_page_steps import test_the_comparison_is_chosen_in_the_map

__all__ = [
    "at",
    "classroom",
    "page",
    "stepping",
    "teacher",
    "test_a_goal_is_found_and_the_next_lesson_opened",
    "test_a_lesson_by_clicks_and_its_progress_after_a_reload",
    "test_a_lesson_by_keyboard_alone",
    "test_a_question_by_clicks",
    "test_a_question_by_keyboard_alone",
    "test_a_strategy_is_chosen_and_nothing_is_impossible_by_accident",
    "test_an_oversell_is_found_and_played",
    "test_each_fix_runs_the_same_sale",
    "test_keys_alone_will_do",
    "test_only_apply_switches",
    "test_the_comparison_is_chosen_in_the_map",
    "test_the_lost_update_by_clicks",
    "test_the_story_by_clicks",
    "test_the_story_by_keyboard_alone",
    "test_what_the_teacher_sends_and_withdraws",
    "test_what_the_teacher_sends_to_all",
    "visit",
    "visitor",
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Firefox(tmp_path_factory.mktemp("downloads"))
    yield started
    started.quit()


@pytest.fixture
def browsers(browser, tmp_path_factory):
    """A teacher's browser and those of two learners."""
    others = []
    try:
        for name in ("ada", "bob"):
            others.append(Firefox(tmp_path_factory.mktemp(name)))
        yield [browser, *others]
    finally:
        for other in others:
            other.quit()


@pytest.mark.parametrize("kind", [Browser, Firefox])
def test_the_lost_update_by_keyboard_alone(kind, browser, shop, tmp_path):
    own = browser if kind is Firefox else kind(tmp_path)
    try:
        steps = open_steps(own, shop)
        steps.press("1")
        steps.wait(lambda: schedule_of(steps).endswith("A>read"), "A reads")
        steps.press("2")
        steps.wait(lambda: steps.find("question-B").is_displayed(), "what will B read?")
        focus = "return document.querySelector('#question-B').contains(document.activeElement) && document.activeElement.textContent"
        assert steps.driver.execute_script(focus) == "just show me Space", "Space, which asked for the step, makes it"
        steps.press("1")  # the first answer
        steps.wait_text("answer", "Right: B reads 1")
        for key in "22221111":
            before = schedule_of(steps)
            if not is_disabled(steps, f"step-{'AB'[int(key) - 1]}"):
                steps.press(key)
                steps.wait(lambda before=before: schedule_of(steps) != before, f"a step by {key}")
        steps.wait_text("result", "Sold 2 of 1.")
        steps.keep("steps-by-keys")
        steps.press("u")
        steps.wait(lambda: not steps.find("result").is_displayed(), "one step back")
        assert steps.complaints() == []
    finally:
        if own is not browser:
            own.quit()


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


def test_a_blank_picture_is_known(browser, shop):
    browser.driver.get("about:blank")
    assert is_blank(browser.driver.get_screenshot_as_png())
    browser.driver.get(f"http://127.0.0.1:{shop.port}/steps")
    browser.wait(lambda: browser.all(".lane"), "the page is there")
    assert not is_blank(browser.driver.get_screenshot_as_png())
