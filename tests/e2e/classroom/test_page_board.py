"""The class board in real browsers: a teacher with a projector and two learners."""

import re
import subprocess
from urllib.parse import unquote

import pytest
from selenium.webdriver.common.keys import Keys

from browser import NETWORK_NAME
from learner import bearer

SCREENS = ((1024, 768), (1280, 720))
QUESTION = {"text": "What will B read?", "answers": ["0", "1", "it waits"]}


@pytest.fixture
def classroom(services, database):
    service = services.start(database, "--classroom", listen="127.0.0.1:0")
    service.code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    service.address = f"http://127.0.0.1:{service.port}/"
    return service


def open_board(browser, service, width=1024, height=768):
    """Opens the board and enters the teacher's token by keys."""
    browser.driver.get("about:blank")
    browser.size(width, height)
    browser.start(f"{service.address}class")
    browser.wait(lambda: browser.find("token-dialog").is_displayed(), "the token is asked for")
    browser.press(service.token + Keys.ENTER)
    browser.wait_text("count", "learner")


def join(browser, service, name):
    """As one who has scanned the QR code: the code is filled in, and the name has the focus."""
    browser.driver.get("about:blank")
    browser.size(1024, 768)
    browser.start(service.address)
    browser.driver.get("about:blank")
    browser.driver.get(f"{service.address}#join={service.code}")
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the name is asked for")
    browser.wait(lambda: browser.driver.switch_to.active_element.get_attribute("id") == "join-name", "the name has the focus")
    browser.press(name + Keys.ENTER)
    browser.wait_text("log", "Ready")
    first = browser.driver.switch_to.active_element
    assert first.tag_name == "button" and first.is_displayed(), "the keyboard goes on with the first control"
    assert service.code not in browser.driver.current_url


def names(browser):
    return [item.text.replace("\n", " ") for item in browser.all("#names li")]


def votes(browser):
    return [int(item.text) for item in browser.all("#votes output")]


def in_news(browser, text):
    browser.wait_text("class-news", text)


def tab_to(browser, name):
    """Tab until the element has the focus."""
    for _ in range(30):
        if browser.driver.switch_to.active_element.get_attribute("id") == name:
            return
        browser.press(Keys.TAB)
    raise AssertionError(f"Tab does not lead to {name}")


@pytest.mark.long
def test_a_question_by_clicks(browsers, classroom):
    teacher, ada, bob = browsers
    open_board(teacher, classroom)
    join(ada, classroom, "Ada")
    join(bob, classroom, "Bob")
    teacher.wait(lambda: names(teacher) == ["Ada", "Bob"], "both are on the board")
    teacher.click("ask-open")
    teacher.click('#ask-form button[value="ok"]')
    teacher.wait_text("voted", "0 of 2")
    in_news(ada, "What will B read?")
    ada.click('#class-news [data-key="answer-1"]')
    ada.wait(lambda: ada.all('#class-news [data-key="answer-1"][aria-pressed="true"]'), "the vote is shown")
    in_news(bob, "What will B read?")
    bob.click('#class-news [data-key="answer-0"]')
    teacher.wait_text("voted", "2 of 2 have voted")
    assert votes(teacher) == [] and not teacher.all("#votes progress"), "no learner can follow the others"
    ada.shot("board-vote", 768)
    teacher.keep("board-question")
    teacher.click("close-question")
    teacher.click('#rights button[value="1"]')
    teacher.wait_text("voted", "The question is closed.")
    assert "✓ 1" in teacher.find("votes").text and votes(teacher) == [1, 1, 0]
    teacher.keep("board-closed")
    in_news(ada, "Your answer is right")
    in_news(bob, "Your answer is wrong")
    for browser in browsers:
        page = browser.driver.page_source
        assert classroom.token not in page and browser.low_contrast() == [] and browser.unnamed() == []
    ada.click("#class-news button")
    ada.wait(lambda: not ada.find("class-news").is_displayed(), "the bar is closed")
    teacher.click("clear-question")
    teacher.wait(lambda: not teacher.find("question").is_displayed(), "the board is as it was")
    assert teacher.driver.switch_to.active_element.get_attribute("id") == "ask-open", "the focus is not lost"
    bob.wait(lambda: not bob.find("class-news").is_displayed(), "the question is gone for all")


@pytest.mark.long
def test_a_vote_is_not_lost_to_news_that_are_older(browsers, classroom):
    """The answer to a poll is held back until a vote is cast, as a slow network does."""
    teacher, ada, _ = browsers
    join(ada, classroom, "Ada")
    classroom.post("/class/question", QUESTION)
    in_news(ada, QUESTION["text"])
    ada.driver.execute_script("""
        const send = window.fetch;
        window.fetch = async (path, options) => {
          const response = await send(path, options);
          if (!path.startsWith("/class/news") || window.wasHeld) return response;
          const text = await response.text();
          if (text.includes("select-for-update")) await new Promise((resolve) => Object.assign(window, { wasHeld: true, letGo: resolve }));
          return new Response(text, { status: response.status, headers: response.headers });
        };
    """)
    classroom.post("/class/push", {"strategy": "select-for-update"})
    ada.wait(lambda: ada.driver.execute_script("return window.wasHeld === true"), "the news wait")
    ada.click('#class-news [data-key="answer-1"]')
    ada.wait(lambda: ada.all('[data-key="answer-1"][aria-pressed="true"]'), "the vote is shown")
    ada.driver.execute_script("window.letGo()")
    in_news(ada, "Your teacher opened select-for-update")
    assert ada.all('[data-key="answer-1"][aria-pressed="true"]'), "it is still shown"


@pytest.mark.long
def test_a_late_vote_is_told_in_words(browsers, classroom):
    ada = browsers[1]
    join(ada, classroom, "Ada")
    classroom.post("/class/question", QUESTION)
    in_news(ada, QUESTION["text"])
    ada.driver.execute_script("""
        const send = window.fetch;
        window.fetch = (path, options) => (path.startsWith("/class/news") ? new Promise(() => {}) : send(path, options));
    """)
    classroom.post("/class/question/close", {})
    ada.click('#class-news [data-key="answer-1"]')
    in_news(ada, "The teacher has closed this question, so your vote was not counted; wait for the next one.")
    assert not ada.all('[aria-pressed="true"]')
    ada.complaints()


@pytest.mark.long
def test_equal_answers_are_refused_in_words(browsers, classroom):
    teacher = browsers[0]
    open_board(teacher, classroom)
    teacher.click("ask-open")
    teacher.driver.execute_script("document.getElementById('ask-answers').value = '0\\n1\\n 0'")
    teacher.click('#ask-form button[value="ok"]')
    teacher.wait_text("ask-error", "Two answers are '0'; make the answers different.")
    teacher.press(Keys.ESCAPE)
    assert classroom.get("/class/board").json["question"] is None
    teacher.complaints()


@pytest.mark.long
def test_the_board_is_hidden_until_the_token_is_right(browsers, classroom):
    teacher = browsers[0]
    teacher.driver.get("about:blank")
    teacher.size(1024, 768)
    teacher.start(f"{classroom.address}class")
    teacher.wait(lambda: teacher.find("token-dialog").is_displayed(), "the token is asked for")
    assert not teacher.find("token-why").is_displayed()
    teacher.press("wrong" + Keys.ENTER)
    teacher.wait(lambda: teacher.find("token-dialog").is_displayed() and "The token is wrong." in teacher.find("token-why").text, "it is asked for again")
    assert not teacher.find("board").is_displayed() and not teacher.find("join").is_displayed()
    teacher.keep("board-wrong-token")
    teacher.press(Keys.ESCAPE)
    teacher.wait(lambda: not teacher.find("token-dialog").is_displayed(), "the dialog is closed")
    assert not teacher.find("board").is_displayed()
    assert teacher.driver.switch_to.active_element.get_attribute("id") == "unlock", "the way on has the focus"
    teacher.keep("board-locked")
    assert teacher.low_contrast() == [] and teacher.unnamed() == [] and teacher.too_small() == []
    teacher.press(Keys.ENTER)
    teacher.wait(lambda: teacher.find("token-dialog").is_displayed(), "the token is asked for")
    assert not teacher.find("token-why").is_displayed(), "no token was wrong this time"
    teacher.press(classroom.token + Keys.ENTER)
    teacher.wait_text("count", "learner")
    teacher.wait(lambda: teacher.find("board").is_displayed() and teacher.find("join").is_displayed(), "the board is shown")
    assert not teacher.find("locked").is_displayed() and teacher.complaints() == []
    teacher.driver.execute_script("sessionStorage.setItem('oversell.token', 'wrong')")  # as after a restart of the service
    teacher.wait(lambda: teacher.find("unlock").is_displayed(), "the board is hidden")
    teacher.wait_text("alert", "does not accept the teacher's token any more")
    assert not teacher.find("board").is_displayed()
    teacher.complaints()


@pytest.mark.long
def test_a_question_by_keyboard_alone(browsers, classroom):
    teacher, ada, _ = browsers
    open_board(teacher, classroom)
    join(ada, classroom, "Ada")
    teacher.wait(lambda: names(teacher) == ["Ada"], "the learner is on the board")
    tab_to(teacher, "ask-open")
    teacher.press(Keys.ENTER)
    teacher.wait(lambda: teacher.find("ask-dialog").is_displayed(), "the dialog is open")
    tab_to(teacher, "ask-text")
    teacher.press(Keys.ENTER)
    in_news(ada, "What will B read?")
    for _ in range(20):
        ada.driver.switch_to.active_element.send_keys(Keys.SHIFT, Keys.TAB)  # the bar is above the first control, which has the focus
        if ada.driver.switch_to.active_element.get_attribute("data-key") == "answer-0":
            break
    else:
        raise AssertionError("Shift and Tab do not lead to the answers")
    ada.press(Keys.SPACE)
    teacher.wait_text("voted", "1 of 1")
    assert ada.driver.switch_to.active_element.get_attribute("data-key") == "answer-0", "the focus stays"
    tab_to(teacher, "close-question")
    teacher.press(Keys.ENTER)
    teacher.wait(lambda: teacher.find("close-dialog").is_displayed(), "the answers are offered")
    teacher.press(Keys.ENTER)  # the first answer has the focus
    in_news(ada, "Your answer is right")
    teacher.wait(lambda: teacher.driver.switch_to.active_element.get_attribute("id") == "ask-open", "the focus is not lost")
    tab_to(teacher, "clear-question")
    teacher.press(Keys.ENTER)
    ada.wait(lambda: not ada.find("class-news").is_displayed(), "the question is removed")
    teacher.wait(lambda: teacher.driver.switch_to.active_element.get_attribute("id") == "ask-open", "the focus is not lost")


@pytest.mark.long
def test_what_the_teacher_sends_to_all(browsers, classroom):
    teacher, ada, bob = browsers
    open_board(teacher, classroom)
    join(ada, classroom, "Ada")
    join(bob, classroom, "Bob")
    teacher.click("send-open")
    teacher.find("send-text").send_keys("select-for-update", Keys.ENTER)
    in_news(ada, "Your teacher opened select-for-update")
    product = ada.driver.execute_script("return JSON.parse(localStorage.getItem('oversell.sandbox')).product")
    ada.driver.execute_script("localStorage.setItem('oversell.view', 'story')")
    ada.driver.get(f"{classroom.address}lessons/")
    in_news(ada, "Your teacher opened select-for-update")
    ada.click('#class-news [data-key="go"]')
    ada.wait(lambda: ada.text("strategy-name") == "select-for-update" and ada.find("strategy").is_displayed(), "the page shows the strategy")
    assert not ada.find("story").is_displayed(), "the story would set another strategy"
    assert classroom.get(f"/strategy?product_id={product}").json["name"] == "select-for-update"
    ada.keep("board-went-there")
    classroom.post("/class/push", {"strategy": "redis-stock"})
    in_news(ada, "Your teacher opened redis-stock")
    ada.click('#class-news [data-key="go"]')
    ada.wait(lambda: ada.text("strategy-name") == "redis-stock", "the address is the same, the strategy is new")
    ada.wait(lambda: ada.find("buy-one").is_enabled(), "the controls are ready")
    ada.click("buy-one")
    ada.wait_text("log", "bought 1")  # from a new sale with the stock in Redis
    ada.click("controls")
    ada.wait(lambda: ada.find("story").is_displayed(), "the story")
    classroom.post("/class/push", {"strategy": "mutex"})
    in_news(ada, "Your teacher opened mutex")
    ada.click('#class-news [data-key="go"]')
    ada.wait(lambda: ada.text("strategy-name") == "mutex" and ada.find("strategy").is_displayed(), "the controls are open again")
    assert ada.driver.switch_to.active_element.get_attribute("id") == "controls", "the focus is not lost"
    assert classroom.get(f"/strategy?product_id={product}").json["name"] == "mutex"
    classroom.post("/class/push", {"strategy": "select-for-update"})
    teacher.wait_text("sent", "select-for-update")
    teacher.click("send-open")
    teacher.find("send-text").clear()
    teacher.find("send-text").send_keys("read-write s=1 q=1,1 A>read", Keys.ENTER)
    in_news(bob, "read-write s=1")
    bob.click('#class-news [data-key="go"]')
    bob.wait(lambda: unquote(bob.driver.current_url).endswith("/steps#read-write+s=1+q=1,1+A>read"), "the schedule is open")
    teacher.click("send-open")
    teacher.find("send-text").clear()
    teacher.find("send-text").send_keys("read-write s=1 q=1,1 " + "A>read " * 139, Keys.ENTER)
    in_news(bob, "Your teacher opened read-write s=1 q=1,1 A>read A>read")  # the page /steps follows the class, too
    assert teacher.overflows() <= 0 and bob.overflows() <= 0


@pytest.mark.long
def test_solved_lessons_reach_the_board(browsers, classroom):
    teacher, ada, _ = browsers
    open_board(teacher, classroom)
    join(ada, classroom, "Ada")
    exercise(classroom, ada.driver.execute_script("return JSON.parse(localStorage['oversell.sandbox']).token"), 4)
    ada.driver.execute_async_script(
        "const done = arguments[0];"
        "import('/page/lessons/progress.js').then((lessons) => { for (const name of ['01-a', '02-b', '03-c', '05-d']) lessons.markSolved(name); done(); })"
    )
    teacher.wait(lambda: names(teacher) == ["Ada 4 ✓ 1–3, 5"], "the board shows what is solved")
    ada.driver.execute_script("localStorage.removeItem('oversell.lessons')")


@pytest.mark.long
def test_an_evicted_learner_leaves_the_board(browsers, classroom):
    teacher, ada, _ = browsers
    open_board(teacher, classroom)
    join(ada, classroom, "Ada")
    teacher.wait(lambda: names(teacher) == ["Ada"], "the learner is there")
    product = classroom.get("/sandboxes").json["sandboxes"][0]["product_id"]
    assert classroom.call("DELETE", f"/sandboxes/{product}").status == 200
    teacher.wait_text("count", "No learners yet")
    ada.wait(lambda: ada.find("join-dialog").is_displayed(), "the page asks for the code")


def exercise(service, token, count):
    """COUNT schedules that the learner runs to their end."""
    for stock in range(count):
        reply = service.call("POST", "/steps", {"schedule": f"read-write s={stock} q=1,1 A>end B>end"}, bearer(token))
        assert reply.status == 200 and reply.json["over"], str(reply)


def fill(service):
    """40 learners, of whom some have solved much, and the longest question, answers and schedule."""
    for index in range(40):
        joined = service.call("POST", "/sandboxes", {"name": f"Maximiliane Q. {index:02}"}, bearer(service.code))
        if index % 13:
            continue
        solved = {"lessons": [f"{lesson:02}-x" for lesson in range(1, 16) if lesson % 4]}
        exercise(service, joined.json["token"], len(solved["lessons"]))
        assert service.call("PUT", "/class/solved", solved, bearer(joined.json["token"])).status == 200
    text = "What will B read after A has read the stock, and before A commits, if B waits for the lock of A, and the lease of A ends while A waits for the database server? "
    long = {"text": text[:160].strip(), "answers": [f"{n}: the stock before A has written, since A is not committed"[:60] for n in range(6)]}
    assert len(long["text"]) > 155 and service.post("/class/question", long).status == 201
    assert service.post("/class/push", {"schedule": "read-write s=1 q=1,1 " + "A>read " * 139}).status == 200


def expect_one_screen(board, is_open):
    board.wait(lambda: len(names(board)) == 40 and len(board.all("#votes li")) == 6 and len(votes(board)) == (0 if is_open else 6), "all are shown")
    tall = board.driver.execute_script("return [document.documentElement.scrollHeight - innerHeight, document.documentElement.scrollWidth - innerWidth]")
    assert max(tall) <= 0, f"the page is {tall} pixels larger than the screen"
    assert board.low_contrast() == [] and board.unnamed() == [] and board.too_small() == []


@pytest.mark.long
@pytest.mark.parametrize("width, height", SCREENS)
def test_forty_learners_fit_a_projector(browsers, classroom, width, height):
    teacher = browsers[0]
    fill(classroom)
    open_board(teacher, classroom, width, height)
    expect_one_screen(teacher, True)
    classroom.post("/class/question/close", {"right": 1})
    expect_one_screen(teacher, False)
    classroom.call("DELETE", "/class/question")
    teacher.wait(lambda: not teacher.find("question").is_displayed() and names(teacher)[39].endswith("✓ 1–3, 5–7, 9–11, 13–15"), "what is solved is shown again")
    teacher.keep(f"board-learners-{width}")


def test_a_narrow_window_does_not_scroll_sideways(browsers, classroom):
    teacher = browsers[0]
    open_board(teacher, classroom, 320, 640)
    assert teacher.overflows() <= 0


@pytest.mark.long
def test_a_hidden_page_does_not_ask(browsers, classroom):
    """The browser counts what the page asks for; a page in another tab asks for nothing."""
    ada = browsers[1]
    join(ada, classroom, "Ada")
    count = "return performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/class/news')).length"
    ada.wait(lambda: ada.driver.execute_script(count) >= 2, "the page asks again")
    hide = "Object.defineProperty(document, 'hidden', { value: arguments[0], configurable: true }); document.dispatchEvent(new Event('visibilitychange'))"
    ada.driver.execute_script(hide, True)
    # A call in progress may end, and a timer that was set may fire once.
    ada.wait(lambda: ada.driver.execute_script("return performance.now()") > 0, "the page runs")
    at_first = ada.driver.execute_script(count)
    # The page's own clock shows that the time of three polls has passed.
    ada.driver.execute_async_script("const [done] = arguments; let left = 3; const timer = setInterval(() => --left || (clearInterval(timer), done()), 2600)")
    assert ada.driver.execute_script(count) <= at_first + 1
    ada.driver.execute_script(hide, False)
    ada.wait(lambda: ada.driver.execute_script(count) >= at_first + 2, "a visible page asks again")


def scanned(page, folder):
    """The text that a scanner reads from the picture of the whole board."""
    picture = folder / "board.png"
    picture.write_bytes(page.driver.get_screenshot_as_png())
    return subprocess.run(["zbarimg", "--quiet", "--raw", picture], capture_output=True, text=True, timeout=60, check=True).stdout.strip()


@pytest.mark.long
def test_the_qr_code(browser, services, database, tmp_path):
    service = services.start(database, "--classroom", "--allowed-hosts", NETWORK_NAME, listen="127.0.0.1:0")
    service.code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    service.address = f"http://{NETWORK_NAME}:{service.port}/"
    fill(service)
    for width, height in SCREENS:
        open_board(browser, service, width, height)
        browser.wait_text("address", service.address.rstrip("/"))
        browser.wait(lambda: browser.all("#qr svg path"), "the QR code is drawn")
        browser.keep(f"board-forty-{width}")
        expect_one_screen(browser, is_open=width == SCREENS[0][0])
        service.post("/class/question/close", {"right": 1})
        expect_one_screen(browser, False)
        browser.keep(f"board-forty-closed-{width}")
        assert scanned(browser, tmp_path) == f"{service.address}#join={service.code}"
        assert browser.find("qr").size["width"] >= 100, "it can be scanned from the last row"
    for host in ("0.0.0.0", "[::]", "[::1]", "[::ffff:127.0.0.1]", "127.0.0.1"):
        assert service.call("GET", "/class/board", None, {"Host": f"{host}:{service.port}"}).json["address"] is None, host
    behind_tls = service.call("GET", "/class/board", None, {"Host": NETWORK_NAME, "X-Forwarded-Proto": "https"})
    assert behind_tls.json["address"] == f"https://{NETWORK_NAME}"
    # The first call has no token. Browsers say that one header has an effect only with TLS or on this machine. Firefox also says that a
    # password is not secret without TLS.
    known = ("status of 401", "Password fields present on an insecure")
    complaints = [line for line in browser.complaints() if not any(words in line for words in known)]
    assert complaints == []


ANSWER_AS = """
const [changes, send] = [arguments[0], window.fetch];
window.fetch = async (path, options) => {
  const response = await send(path, options);
  return path.startsWith("/class/board") || path === "/classroom" ? Response.json({ ...(await response.json()), ...changes }) : response;
};
"""


@pytest.mark.long
def test_an_address_that_learners_cannot_open_is_not_shown(browsers, classroom):
    """As in a container, and as on a computer with a network, where the teacher opened the page as localhost."""
    teacher = browsers[0]
    open_board(teacher, classroom)
    teacher.driver.execute_script(ANSWER_AS, {"address": None, "address_of": "container"})
    teacher.wait_text("alone", f"The service runs in a container, so it does not know the address of this computer. Open this page at an address that learners can open, such as http://192.168.1.20:{classroom.port}/class.")
    teacher.keep("board-container")
    assert not teacher.find("qr").is_displayed() and not teacher.find("reach").is_displayed() and teacher.overflows() <= 0
    teacher.driver.execute_script(ANSWER_AS, {"address": "http://192.0.2.7:8080", "address_of": "interface"})
    teacher.wait_text("guess", "If learners cannot open it, open this page at another address of this computer instead of 127.0.0.1.")
    teacher.wait(lambda: teacher.find("guess").is_displayed(), "the guess is said to be one")
    assert teacher.find("reach").is_displayed() and not teacher.find("alone").is_displayed()
    assert teacher.low_contrast() == []
    teacher.keep("board-guess")
    teacher.complaints()  # the QR code of an address that this service does not have is refused
    teacher.driver.get(classroom.address)
    teacher.wait_text("log", "Ready")
    teacher.driver.execute_script(ANSWER_AS, {"container": True, "addresses": ["http://172.17.0.2:8080"]})
    teacher.click("class-open")
    teacher.wait_text("class-address-note", f"such as http://192.168.1.20:{classroom.port}/.")
    assert "172.17" not in teacher.find("class-dialog").text
    teacher.keep("class-container")


@pytest.mark.long
def test_what_was_sent_is_withdrawn(browsers, classroom):
    teacher, ada, _ = browsers
    open_board(teacher, classroom)
    join(ada, classroom, "Ada")
    classroom.call("POST", "/class/push", {"strategy": "read-write"})
    in_news(ada, "Your teacher opened read-write")
    teacher.wait_text("sent", "read-write")
    tab_to(teacher, "withdraw")
    teacher.press(Keys.ENTER)
    ada.wait(lambda: not ada.find("class-news").is_displayed(), "the bar is gone")
    assert not teacher.find("sent").is_displayed()


@pytest.mark.long
def test_a_service_without_a_class_says_so(browsers, services, database):
    teacher = browsers[0]
    service = services.start(database)
    teacher.driver.get("about:blank")
    teacher.start(f"http://127.0.0.1:{service.port}/class")
    teacher.wait_text("alert", "Start it with --classroom")
    assert not teacher.find("board").is_displayed() and not teacher.find("join").is_displayed()
    assert teacher.complaints() == []
