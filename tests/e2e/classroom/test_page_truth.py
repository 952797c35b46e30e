"""No sentence of /steps outlives the state that it speaks of: after a search come a step, another fault, another address."""

import pytest

from pages import open_steps, schedule_of

NONE = "0 of 12 schedules oversell: 2 orders in one process, stock 1, no fault. All schedules were run."


@pytest.fixture
def at(browser, shop):
    yield lambda schedule: open_steps(browser, shop, schedule)
    assert browser.complaints() == []


def go_to(page, schedule):
    """As a link that a teacher sends: only the part after # changes."""
    page.driver.execute_script("location.hash = arguments[0]", schedule.replace(" ", "+"))
    page.wait(lambda: page.text("strategy") == schedule.split()[0] and schedule_of(page) == schedule, schedule)


def search(page, text):
    page.click("find")
    page.wait_text("found", text, 40)


def search_redis_lock(at):
    page = at("redis-lock s=1 q=1,1 A>read")
    page.choose("faults", "none")
    search(page, NONE)
    return page


@pytest.mark.long
def test_a_step_ends_what_a_search_said(at):
    page = search_redis_lock(at)
    page.click("expire-A")
    page.wait_text("lock", "believes that it has it")
    assert page.text("found") == ""
    for name in "BA":
        page.click(f"end-{name}")
        page.wait(lambda name=name: f"{name} has bought" in page.text("told"), f"{name} has bought")
    assert "Sold 2 of 1" in page.text("result") and page.text("found") == ""


@pytest.mark.long
def test_another_fault_ends_what_a_search_said(at):
    page = search_redis_lock(at)
    page.choose("faults", "expire")
    assert page.text("found") == ""


@pytest.mark.long
@pytest.mark.parametrize("other", ["read-write s=1 q=1,1 A>read B>end A>end", "redis-lock s=2 q=1,1"])
def test_another_address_ends_what_a_search_said(at, other):
    page = search_redis_lock(at)
    go_to(page, other)
    assert page.text("found") == ""


@pytest.mark.long
def test_another_strategy_ends_what_a_search_said(at):
    page = search_redis_lock(at)
    page.apply_strategy("read-write")
    page.wait_text("goal", "Make it sell 2 of 1.")
    assert page.text("found") == ""


@pytest.mark.long
def test_what_was_found_is_said_along_its_schedule_alone(at):
    page = at("read-write s=1 q=1,1")
    search(page, "schedules oversell: 2 orders in one process, stock 1, no fault.")
    page.press(" ")
    page.wait(lambda: "A reads 1" in page.text("told"), "a step of what was found")
    assert "Here is the simplest." in page.text("found")
    page.click("undo")
    page.wait(lambda: page.text("told") == "", "undone")
    assert "Here is the simplest." in page.text("found")
    page.click("end-B")
    page.wait_text("told", "B has bought")
    assert page.text("found") == ""


@pytest.mark.long
def test_the_verdict_is_above_the_orders_and_seen(at):
    page = at("read-write s=1 q=1,1 A>read")
    page.size(1280, 720)
    for name in "BA":
        page.click(f"end-{name}")
        page.wait(lambda name=name: f"{name} has bought" in page.text("told"), f"{name} has bought")
    page.wait_text("result", "Sold 2 of 1")
    top, bottom, lanes = page.driver.execute_script(
        "const [r, l] = ['result', 'lanes'].map((id) => document.getElementById(id).getBoundingClientRect()); return [r.top, r.bottom, l.top]"
    )
    assert 0 <= top and bottom <= min(720, lanes), "it is seen together with the orders"


@pytest.mark.long
def test_an_address_that_comes_during_a_search_is_shown(at):
    page = at("redis-fenced s=1 q=1,1")
    page.click("find")
    go_to(page, "read-write s=1 q=1,1 A>read B>end A>end")
    page.wait_text("result", "Sold 2 of 1")
    assert page.text("found") == ""
    page.wait(lambda: page.all("#undo:not([aria-disabled])"), "the page goes on")
    page.click("undo")
    page.wait(lambda: "A has bought" not in page.text("told"), "a step back")


@pytest.mark.long
def test_an_answer_goes_with_the_reading_that_it_is_about(at):
    page = at("read-write s=1 q=1,1 A>read")
    page.press("2")
    page.wait(lambda: page.find("question-B").is_displayed(), "the question")
    page.press("1")
    page.wait_text("answer", "Right: B reads 1")
    page.click("step-B")
    page.wait_text("told", "B writes")
    assert "Right: B reads 1" in page.text("answer"), "B has read it"
    for _ in range(2):
        before = schedule_of(page)
        page.click("undo")
        page.wait(lambda before=before: schedule_of(page) != before, "a step back")
    assert page.text("answer") == "", "B has read nothing"


@pytest.mark.long
def test_safe_is_no_proof_and_fencing_is_searched_with_its_fault(at):
    page = at("redis-fenced s=1 q=1,1")
    assert page.text("why").endswith("Safe: no test has found an oversell, also with faults; a test is not a proof.")
    assert page.find("faults").get_attribute("value") == "expire"
    search(page, "schedules oversell: 2 orders in one process, stock 1, a lease that may end at any point.")
    assert page.text("found").startswith("0 of ")


WORDS = """
const done = arguments[0];
import("/page/steps/steps_words.js").then(({ found }) => {
  const setting = { stock: 1, quantities: [1, 1] };
  const search = { faults: "expire", schedules: 278, oversold: 125, complete: false, coverage: 0.32, witness: {} };
  done([search, { ...search, oversold: 0, witness: null }, { ...search, coverage: 0.001 }, { ...search, coverage: 0.999 }].map((one) => found(one, setting)));
}, (error) => done([String(error)]));
"""


def test_a_share_is_of_the_schedules_that_were_run(at):
    page = at("read-write s=1 q=1,1")
    scope = "2 orders in one process, stock 1, a lease that may end at any point."
    time = "The search ran out of time after"
    assert page.driver.execute_async_script(WORDS) == [
        f"125 of 278 schedules oversell: {scope} {time} about 32 % of all schedules. Here is the simplest.",
        f"0 of 278 schedules oversell: {scope} {time} about 32 % of all schedules.",
        f"125 of 278 schedules oversell: {scope} {time} less than 1 % of all schedules. Here is the simplest.",
        f"125 of 278 schedules oversell: {scope} {time} about 99 % of all schedules. Here is the simplest.",
    ]
