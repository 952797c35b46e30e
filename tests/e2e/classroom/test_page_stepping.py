"""The page that runs one schedule, in a real browser: what a click on an order does, and what is said of it."""

import re

import pytest

from browser import Keys
from pages import browser, downloads, is_disabled, open_steps, schedule_of, step, stepping

TOKEN = "a-token-of-some-length"


def test_the_lost_update_by_clicks(stepping):
    page, start = stepping, "read-write s=1 q=1,1"
    assert page.text("goal") == "Make it sell 2 of 1." and is_disabled(page, "undo")
    step(page, "A", f"{start} A>read")
    assert "A reads 1." in page.text("told") and page.text("stock-left") == "1"
    page.click("step-B")
    page.wait(lambda: page.find("question-B").is_displayed(), "what will B read?")
    assert schedule_of(page) == f"{start} A>read", "nothing has happened yet"
    next(button for button in page.all("#question-B button") if button.text == "1").click()
    page.wait_text("answer", "Right: B reads 1")
    assert "(1 of 1 right)" in page.text("answer") and not page.find("question-B").is_displayed()
    step(page, "B", f"{start} A>read B>insert")
    assert "B wrote 0, not committed" in page.text("database") and "locked by B" in page.text("database")
    page.click("step-A")
    page.wait_text("reason-A", "A waits for B's row lock.")
    assert is_disabled(page, "step-A")
    page.click("step-A")
    page.shot("steps-waiting")
    step(page, "B", f"{start} A>read B>insert A>write~ B>end")
    page.click("end-A")
    page.wait_text("result", "Sold 2 of 1.")
    assert "A and B both read 1." in page.text("result") and "no serial execution gives this result" in page.text("result")
    assert page.text("sold") == "2" and is_disabled(page, "step-A") and is_disabled(page, "next")
    assert f"--replay '{schedule_of(page)}'" in page.text("command")
    page.shot("steps-won")
    before = schedule_of(page)
    page.click("undo")
    page.wait(lambda: schedule_of(page) != before and not page.find("result").is_displayed(), "one step back")
    page.driver.refresh()
    page.wait(lambda: page.text("stock-left") != "" and "A reads 1." in page.text("told"), "the address is the state")
    page.click("restart")
    page.wait(lambda: schedule_of(page) == start and page.text("told") == "", "as it was at first")


@pytest.mark.long
def test_an_oversell_is_found_and_played(stepping):
    page = stepping
    page.click("find")
    counts = r"(\d+) of (\d+) schedules oversell: 2 orders in one process, stock 1, no fault\. (All|The time)"  # a slow machine ends the search early
    found = page.wait(lambda: re.match(counts, page.text("found")), "some schedules oversell")
    assert found.groups() == ("22", "24", "All") or found[3] != "All", found[0]
    page.wait(lambda: page.find("play").is_displayed() and page.text("told") == "", "it stands at the beginning")
    page.shot("steps-found")
    for _ in range(3):
        before = page.text("told")
        page.press(" ")
        page.wait(lambda before=before: page.text("told") != before, "Space makes the next step of it")
    page.press(".")
    page.wait_text("told", "B commits")
    page.click("play")
    page.wait_text("result", "Sold 2 of 1", 30)
    assert schedule_of(page) == "read-write s=1 q=1,1 A>read B>end A>end"


def test_what_is_impossible_is_said(stepping):
    page = stepping
    page.apply_strategy("select-for-update")
    page.wait_text("goal", "Try to make it sell 2 of 1.")
    page.click("find")
    page.wait_text("found", "0 of 8 schedules oversell: 2 orders in one process, stock 1, no fault. All schedules were run.")
    assert not page.find("play").is_displayed()
    page.press("1")
    page.wait_text("told", "A reads 1.")
    page.press("2")
    page.wait(lambda: page.find("question-B").is_displayed(), "the question")
    next(button for button in page.all("#question-B button") if button.text == "0").click()
    page.wait_text("answer", "No: B waits for A's row lock")
    page.press("u")
    page.wait(lambda: schedule_of(page).endswith("A>read"), "undone")
    page.press("?")
    page.wait(lambda: page.find("help").is_displayed(), "help")
    page.press(Keys.ESCAPE)


@pytest.mark.long
def test_a_lease_ends_by_a_click_and_an_order_dies(browser, shop):
    page = open_steps(browser, shop, "redis-lock s=1 q=1,1 A>read")
    assert "A has it" in page.text("lock") and page.find("faults").get_attribute("value") == "expire"
    page.click("expire-A")
    page.wait_text("lock", "believes that it has it")
    page.click("end-B")
    page.wait_text("told", "B has bought.")
    page.click("end-A")
    page.wait_text("result", "Sold 2 of 1")
    page.shot("steps-lease")
    page = open_steps(browser, shop, "redis-setnx-forever s=1 q=1,1 A>lock")
    page.click("crash-A")
    page.wait_text("lane-A", "has crashed")
    page.click("step-B")
    page.wait_text("reason-B", "the lock that A died with")
    page.wait_text("result", "Stuck")
    assert browser.complaints() == []


LATE = "A>lock A!expire B>lock A>end"  # A's release comes while B has the lock


@pytest.mark.parametrize(
    "schedule, said",
    [
        ("redis-del s=5 q=1,1 A>lock A!expire B>lock A>del", "A deletes the lock's key, which is B's.\nB's lock is gone: A released it. B does not know."),
        (f"redis-lock s=5 q=1,1 {LATE}", "A's release finds that the lock is no longer A's. The server leaves B's lock alone."),
        (f"etcd-cas s=5 q=1,1 {LATE}", "A's release finds that the lock is no longer A's. The server leaves B's lock alone."),
        (f"shedlock s=5 q=1,1 {LATE}", "A's release finds that the lock is no longer A's. The server leaves B's lock alone."),
        ("redis-lock s=5 q=1,1 A>lock A!expire A>end", "A's release finds that the lock is no longer A's. It changes nothing."),
        ("redis-del s=5 q=1,1 A>lock A!expire A>del", "A deletes the lock's key, but the key is gone: the lock had ended."),
        ("redis-get-del s=5 q=1,1 A>lock A!expire B>lock A>end", "A reads the lock's key: it is not A's any more.\nA's release finds that the lock is no longer A's. The server leaves B's lock alone."),
        ("redis-get-del s=5 q=1,1 A>get A!expire B>lock A>del", "A reads the lock's key: it is still A's."),
        ("redis-lock s=5 q=1,1 A>end", "A releases the lock."),
        ("mutex s=5 q=1,1 A>end", "A releases the lock."),
    ],
)
def test_the_story_says_what_the_server_did_at_a_release(browser, shop, schedule, said):
    page = open_steps(browser, shop, schedule)
    page.wait(lambda: said in "\n".join(line.text for line in page.all("#told .line")), said)
    holds = "B has it" if " B>lock A>end" in schedule else "B believes that it has it" if "B>lock" in schedule else "free"
    page.wait_text("lock", holds)
    assert browser.complaints() == []


@pytest.mark.long
def test_a_refused_write_and_the_row_s_token_are_shown(browser, shop):
    page = open_steps(browser, shop, "redis-fenced s=1 q=1,1 A>read A!expire B>read")
    tokens = [int(re.search(r"registers its token on the row: the row's token is now (\d+)", line.text)[1]) for line in page.all("#told .line") if "registers" in line.text]
    assert tokens[1] > tokens[0] and page.text("row-fence") == f"the row's token is {tokens[1]}"
    page.click("step-A")
    words = r"A's write is refused: the row has token (\d+), A has token (\d+)\."
    refusal = page.wait(lambda: re.search(words, page.text("told")), "A's write is refused")  # in a new execution, with new tokens
    assert int(refusal[1]) > int(refusal[2])
    refused = page.all("#lane-A .program > .is-refused")
    assert [line.text.split("\n")[:3] for line in refused] == [["✗", "write the new stock", f"refused: the row has token {refusal[1]}"]]
    page.click("end-B")
    page.wait(lambda: re.search(words, page.text("result")), "the result says so")
    page.shot("steps-refused")
    page = open_steps(browser, shop, "etcd-fenced s=1 q=1,1 A>lock A!expire B>end A>end")
    page.wait_text("told", "A's token is refused: the row has token")
    page = open_steps(browser, shop, "fence-on-write s=5 q=1,1 A>read A!expire B>end A>end")
    page.wait_text("told", "A's write is refused: the row has token")
    assert browser.complaints() == []


@pytest.mark.long
def test_a_wrong_address_stays_to_be_corrected(browser, shop):
    page = open_steps(browser, shop, "mutex s=1 q=1,1 A>lock")
    page.driver.execute_script("location.hash = 'read-write+s=1+q=1,1+A>fly'")
    page.wait_text("alert", "The address was not understood: ")
    assert "A>fly" in page.text("alert") and "Correct it in the address bar" in page.text("alert")
    assert schedule_of(page) == "read-write s=1 q=1,1 A>fly" and page.text("strategy") and "A takes the lock." in page.text("told")
    page.driver.execute_script("location.hash = 'read-write+s=1+q=1,1+A>read'")
    page.wait_text("told", "A reads 1.")
    page.wait(lambda: not page.find("alert").is_displayed(), "what is corrected is not complained about")
    page.driver.get("about:blank")
    page.driver.get(f"http://127.0.0.1:{shop.port}/steps#nonsense+s=1")
    page.wait_text("alert", "The address was not understood")
    page.wait(lambda: page.all(".lane"), "there is something to step through")
    assert schedule_of(page) == "nonsense s=1", "it can be corrected"
    page.click("step-A")
    page.wait(lambda: schedule_of(page) == "read-write s=1 q=1,1 A>read", "what is stepped through has the address again")
    refused = browser.complaints()
    assert len(refused) == 2 and all("422" in line for line in refused), refused


@pytest.mark.long
def test_without_its_server_a_strategy_says_which_and_cannot_be_chosen(browser, services, database):
    service = services.start(database, env={"REDIS_URL": "redis://127.0.0.1:1"})
    browser.driver.get("about:blank")
    browser.start(f"http://127.0.0.1:{service.port}/steps#redis-lock+s=1+q=1,1")
    browser.wait_text("alert", "redis-lock cannot be stepped through, because redis does not answer")
    assert "Start redis" in browser.text("alert") and "not understood" not in browser.text("alert")
    assert schedule_of(browser) == "redis-lock s=1 q=1,1" and "redis-lock cannot" in browser.text("goal")
    browser.apply_strategy("read-write")
    browser.wait(lambda: schedule_of(browser) == "read-write s=1 q=1,1", "another one can be chosen")
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.wait_text("log", "Ready")
    browser.select_strategy("redis-lock")
    assert not browser.find("strategy-apply").is_enabled() and "127.0.0.1:1" in browser.text("strategy-detail")
    assert "not available" in browser.find("strategy-map").find_element("css selector", '[data-strategy="redis-lock"]').text
    browser.select_strategy("read-write")
    assert browser.find("strategy-apply").is_enabled()
    browser.click("strategy-close")
    assert service.put("/strategy", {"name": "redis-lock"}).status == 200
    browser.wait_text("strategy-row", "redis-lock cannot be used: redis")
    browser.wait(lambda: browser.find("load-start").is_enabled(), "a load can be tried")
    browser.click("load-start")
    browser.wait_text("alert", "redis-lock could not be loaded: redis", 60)
    assert "Start that server" in browser.text("alert") and "status" not in browser.text("alert")
    browser.click("reset")
    browser.wait(lambda: not browser.find("alert").is_displayed(), "an alert ends when something works")
    assert all("503" in line for line in browser.complaints())


def test_a_question_is_answered_by_its_number(stepping):
    page, start = stepping, "read-write s=1 q=1,1"
    step(page, "A", f"{start} A>read")
    page.press("2")
    page.wait(lambda: page.find("question-B").is_displayed(), "what will B read?")
    page.press(Keys.ESCAPE)
    page.wait(lambda: not page.find("question-B").is_displayed(), "Escape closes it")
    assert schedule_of(page) == f"{start} A>read"
    page.press("2")
    page.wait(lambda: page.find("question-B").is_displayed(), "it is asked again")
    page.press("1")
    page.wait_text("answer", "Right: B reads 1")
    assert schedule_of(page) == f"{start} A>read B>read", "the key answers, and moves no other order"
    assert page.driver.switch_to.active_element.get_attribute("id") == "step-B"


@pytest.mark.long
@pytest.mark.parametrize("key, answer", [("0", "No: B reads 1"), ("w", "No: B reads 1"), ("2", None)])
def test_the_key_of_an_answer_is_its_number(stepping, key, answer):
    page, start = stepping, "read-write s=1 q=1,1"
    step(page, "A", f"{start} A>read")
    page.press("2")
    page.wait(lambda: page.find("question-B").is_displayed(), "what will B read?")
    page.press(key)
    if not answer:  # 2 is no number to choose from
        page.press("1")
    page.wait_text("answer", answer or "Right: B reads 1")
    assert page.text("answer").endswith("of 1 right)")


@pytest.mark.long
@pytest.mark.parametrize("how", ["the browser's own", "by the older command", "not at all"])
def test_an_address_is_copied_wherever_the_page_comes_from(stepping, how):
    page = stepping
    page.driver.execute_script("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })") if how != "the browser's own" else None
    page.driver.execute_script("document.execCommand = () => false") if how == "not at all" else None
    page.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page.click("details.curl summary")
    page.click("copy")
    if how == "not at all":
        page.wait_text("copy-note", "press Ctrl+C")
        field = page.find("copy-text")
        selected = page.driver.execute_script("const f = arguments[0]; return f.value.slice(f.selectionStart, f.selectionEnd)", field)
        assert field.is_displayed() and selected == page.driver.current_url
    else:
        page.wait_text("copy-note", "Copied.")


@pytest.mark.long
def test_a_wrong_token_is_told_in_words(browser, services, database):
    service = services.start(database, token=TOKEN)
    browser.driver.get("about:blank")
    browser.start(f"http://127.0.0.1:{service.port}/steps")
    for given in ("wrong", TOKEN):
        browser.wait(lambda: browser.find("token-dialog").is_displayed(), "the token is asked for")
        browser.find("token").send_keys(given, Keys.ENTER)
        if given == "wrong":
            browser.wait_text("alert", "The token is wrong.")
            browser.wait(lambda: not browser.find("token-dialog").is_displayed(), "the dialog is closed")
            browser.click("restart") if browser.all(".lane") else browser.driver.refresh()
    browser.wait(lambda: browser.all(".lane"), "with the right one there are orders")
    browser.wait(lambda: not browser.find("alert").is_displayed(), "nothing is wrong any more")
    browser.complaints()
    service.stop()
    browser.click("step-A")
    browser.wait_text("alert", "The service does not answer. Check that it runs")
    browser.complaints()


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_steps_can_be_read_in_both_schemes(browser, shop, scheme):
    page = open_steps(browser, shop, "redis-fenced s=1 q=1,1,1 A>read B>lock~ A!expire", scheme)
    assert page.low_contrast() == [] and page.unnamed() == []
    page.shot(f"steps-{scheme}")
    page.press("3")
    page.wait_text("told", "C takes the lock and gets token")
    page.click("end-C")
    page.wait_text("told", "C has bought.")
    assert page.low_contrast() == []
    assert browser.complaints() == []


@pytest.mark.long
@pytest.mark.parametrize("width", [320, 768, 1920])
def test_the_steps_need_no_scrolling_sideways(browser, shop, width):
    page = open_steps(browser, shop, "mutex-early-release s=1 q=1,1 A>unlock B>read A>end B>end")
    page.size(width, phone=width < 700)
    page.wait_text("result", "Sold 2 of 1")
    assert page.overflows() <= 0 and page.too_small() == []
    page.click("big")
    assert page.overflows() <= 0 and page.too_small() == [], "in the projector view"
    assert page.text_size() >= (28 if width >= 1280 else 22)
    assert page.driver.execute_script("return innerWidth") == width, "a phone makes what is too wide smaller"
    page.shot(f"steps-width-{width}")
    assert browser.complaints() == []
