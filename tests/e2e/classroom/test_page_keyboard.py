"""The flows of /steps, of the lessons and of the class board that other files do by clicks, by keyboard alone."""

from urllib.parse import unquote

import pytest

from browser import Keys
from pages import focused, is_disabled, open_steps, schedule_of
from test_page_board import classroom, in_news, join, open_board
from test_page_lessons import tab_to, verdict, visit

__all__ = ["classroom", "visit"]


@pytest.fixture
def at(browser, shop):
    yield lambda schedule=None: open_steps(browser, shop, schedule)
    assert browser.complaints() == []


def use(page, selector, key=Keys.ENTER):
    """Goes to the element by Tab, and presses the key."""
    page.wait(lambda: page.all(selector) and page.all(selector)[0].is_displayed(), f"{selector} is shown")
    tab_to(page, selector)
    page.press(key)


# ── /steps ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_the_lost_update_by_keyboard_alone(at):
    page = at()
    page.press("1")
    page.wait(lambda: schedule_of(page).endswith("A>read"), "A reads")
    page.press("2")
    page.wait(lambda: page.find("question-B").is_displayed(), "what will B read?")
    focus = "return document.querySelector('#question-B').contains(document.activeElement) && document.activeElement.textContent"
    assert page.driver.execute_script(focus) == "just show me Space", "Space, which asked for the step, makes it"
    page.press("1")  # the first answer
    page.wait_text("answer", "Right: B reads 1")
    for key in "22221111":
        before = schedule_of(page)
        if not is_disabled(page, f"step-{'AB'[int(key) - 1]}"):
            page.press(key)
            page.wait(lambda before=before: schedule_of(page) != before, f"a step by {key}")
    page.wait_text("result", "Sold 2 of 1.")
    page.keep("steps-by-keys")
    page.press("u")
    page.wait(lambda: not page.find("result").is_displayed(), "one step back")


@pytest.mark.long
def test_an_oversell_is_found_and_played(at):
    page = at()
    page.press("f")
    page.wait_text("found", "oversell")
    page.wait(lambda: page.find("play").is_displayed() and page.text("told") == "", "it stands at the beginning")
    page.press("p")
    page.wait_text("result", "Sold 2 of 1", 30)
    assert schedule_of(page) == "read-write s=1 q=1,1 A>read B>end A>end"
    page.press("r")
    page.wait(lambda: page.text("told") == "", "it starts again")


def test_a_strategy_is_chosen_and_nothing_is_impossible_by_accident(at):
    page = at()
    use(page, "#strategy-open")
    page.wait(lambda: focused(page).get_attribute("data-strategy") == "read-write", "the focus is on what is set")
    for keys in ("select-for-u", " ", Keys.ARROW_DOWN, Keys.ENTER, Keys.ESCAPE):
        page.press(keys)
    page.wait(lambda: not page.find("strategy-dialog").is_displayed(), "Escape closes the map")
    assert schedule_of(page) == "read-write s=1 q=1,1" and page.text("strategy") == "read-write", "no key switches"
    assert focused(page).get_attribute("id") == "strategy-open"
    page.press(Keys.ENTER)
    page.press("select-for-u")
    page.press(Keys.ENTER)
    use(page, "#strategy-apply")
    page.wait(lambda: schedule_of(page).startswith("select-for-update"), "Apply does")
    tab_to(page, "#find")
    page.press(Keys.SPACE)
    page.wait_text("found", "0 of 8 schedules oversell: 2 orders in one process, stock 1, no fault. All schedules were run.")


@pytest.mark.long
def test_a_lease_ends(at):
    page = at("redis-lock s=1 q=1,1 A>read")
    use(page, "#expire-A")
    page.wait_text("lock", "believes that it has it")
    use(page, "#end-B")
    page.wait_text("told", "B has bought.")
    use(page, "#end-A", Keys.SPACE)
    page.wait_text("result", "Sold 2 of 1")
    before = schedule_of(page)
    use(page, "#undo")
    page.wait(lambda: schedule_of(page) != before, "one step back")


def test_an_order_dies_and_the_other_waits_for_ever(at):
    page = at("redis-setnx-forever s=1 q=1,1 A>lock")
    use(page, "#crash-A")
    page.wait_text("lane-A", "has crashed")
    page.press("2")
    page.wait_text("reason-B", "the lock that A died with")
    page.wait_text("result", "Stuck")


def test_requests_code_and_help(at):
    page = at("read-write s=1 q=1,1 A>read")
    use(page, "#whole", Keys.SPACE)
    page.wait(lambda: "pg_current_snapshot()" in page.text("lane-A"), "the whole statement")
    use(page, "#code summary")
    page.wait(lambda: page.find("listing").is_displayed(), "the code is open")
    page.press("?")
    page.wait(lambda: page.find("help").is_displayed(), "the help is open")
    page.press(Keys.ESCAPE)
    page.wait(lambda: not page.find("help").is_displayed(), "the help is closed")


# ── lessons ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_search(visit):
    page = visit("03-synchronized")
    use(page, ".run[data-run*=search] .go-run")
    page.wait(lambda: len(page.all(".run[data-run*=search] tbody tr")) == 2, "both are searched", 60)
    aligned = "return [...document.querySelectorAll('.run[data-run*=search] tr')].map((row) => [...row.cells].map((cell) => getComputedStyle(cell).textAlign).join())"
    assert len(set(page.driver.execute_script(aligned))) == 1, "a number's title is above it"
    use(page, ".run[data-run*=search] tbody a")
    page.wait(lambda: "/steps#mutex-early-release" in page.driver.current_url, "the simplest one opens in steps")


@pytest.mark.long
def test_a_goal_is_found_and_the_next_lesson_opened(visit):
    page = visit("03-synchronized")
    use(page, ".goal-line + .group .go-run")
    page.wait(lambda: page.all(".goal-line ~ .steps [id$=-next]"), "the exercise is open")
    prefix = page.all(".goal-line ~ .steps [id$=-next]")[0].get_attribute("id").removesuffix("next")
    page.wait(lambda: page.text(f"{prefix}why"), "the steps are loaded")
    asks = f"[id^={prefix}] .question:not([hidden])"

    def press_until(key, text):
        for _ in range(12):
            told = page.text(f"{prefix}told"), len(page.all(asks))
            if text in told[0]:
                return
            choices = page.all(f"{asks} [data-key]")  # a question about the stock is answered by any of its numbers
            page.press(choices[0].get_attribute("data-key") if choices else key)
            page.wait(lambda told=told: (page.text(f"{prefix}told"), len(page.all(asks))) != told, f"{key} does something")
        raise AssertionError(f"no {text!r} in {page.text(f'{prefix}told')!r}")

    press_until("1", "A releases")  # the lock, before its COMMIT
    press_until("2", "B reads")
    press_until("1", "A has bought")
    press_until("2", "B has bought")
    goal = "return document.querySelector('.goal-line').textContent"
    page.wait(lambda: page.driver.execute_script(goal).startswith("✓ You found it: 2 sold"), "the goal is reached")
    use(page, "[data-kind=check] .answer:nth-child(1)")
    assert verdict(page, "check")
    use(page, "a[rel=next]")
    page.wait(lambda: "/lessons/04-" in page.driver.current_url, "the next lesson")


@pytest.mark.long
def test_a_load_that_waits_is_stopped(visit, shop):
    """Another load has the place of the only one, so this one cannot end before it is stopped."""
    body = {"strategies": ["mutex", "atomic-decrement"], "product_id": 1, "instances": 1, "connections": 1, "stock": 10, "duration_ms": 30000}
    other = shop.post("/runs", body)
    assert other.status == 202, str(other)
    figure = ".run[data-run*=compare]"
    try:
        page = visit("06-row-locks-and-versions")
        use(page, f"{figure} .go-run")
        said = lambda: page.all(f"{figure} [role=status]")[0].text  # noqa: E731
        page.wait(lambda: "Another load is in progress" in said(), "the load waits")
        use(page, f"{figure} button:not(.go-run)", Keys.SPACE)
        page.wait(lambda: said() == "The load was stopped.", "the load is stopped")
        assert "go-run" in page.driver.switch_to.active_element.get_attribute("class"), "the focus is not lost"
        page.press(Keys.ENTER)
        page.wait(lambda: "Another load is in progress" in said(), "it can be started again")
        use(page, f"{figure} button:not(.go-run)")
        page.wait(lambda: said() == "The load was stopped.", "the load is stopped again")
        assert shop.get(f"/runs/{other.json['id']}").json["state"] == "running", "the other load goes on"
        assert page.all(f"{figure} tbody tr") == []
        assert all("409" in line for line in page.complaints())
    finally:
        shop.call("DELETE", f"/runs/{other.json['id']}")


# ── the class board ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_what_the_teacher_sends_and_withdraws(browsers, classroom):
    teacher, ada, _ = browsers
    open_board(teacher, classroom)
    join(ada, classroom, "Ada")
    use(teacher, "#send-open")
    teacher.wait(lambda: teacher.find("send-dialog").is_displayed(), "the dialog is open")
    tab_to(teacher, "#send-text")
    teacher.press("select-for-update s=1 q=1,1" + Keys.ENTER)
    in_news(ada, "select-for-update s=1")
    teacher.wait(lambda: not teacher.find("send-dialog").is_displayed(), "the dialog is closed")
    use(teacher, "#withdraw")
    ada.wait(lambda: not ada.find("class-news").is_displayed(), "the bar is gone")
    teacher.wait(lambda: teacher.driver.switch_to.active_element.get_attribute("id") == "send-open", "the focus is not lost")
    teacher.press(Keys.ENTER)
    teacher.wait(lambda: teacher.find("send-dialog").is_displayed(), "the dialog is open again")
    tab_to(teacher, "#send-text")
    teacher.driver.switch_to.active_element.send_keys(Keys.CONTROL, "a")
    teacher.press("read-write s=1 q=1,1 A>read" + Keys.ENTER)
    in_news(ada, "read-write s=1")
    use(ada, '#class-news [data-key="go"]')
    ada.wait(lambda: unquote(ada.driver.current_url).endswith("/steps#read-write+s=1+q=1,1+A>read"), "the schedule is open")


def test_a_dialog_is_left_by_escape(browsers, classroom):
    teacher = browsers[0]
    open_board(teacher, classroom)
    for name in ("ask", "send"):
        use(teacher, f"#{name}-open")
        teacher.wait(lambda name=name: teacher.find(f"{name}-dialog").is_displayed(), "the dialog is open")
        teacher.press(Keys.ESCAPE)
        teacher.wait(lambda name=name: not teacher.find(f"{name}-dialog").is_displayed(), "the dialog is closed")
        teacher.wait(lambda name=name: teacher.driver.switch_to.active_element.get_attribute("id") == f"{name}-open", "the focus is back")
    assert classroom.get("/class/board").json["question"] is None
