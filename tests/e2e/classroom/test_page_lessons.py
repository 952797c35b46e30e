"""The lessons in the page: each is rendered from docs/workshop, and is done by clicks or by keys alone, without a terminal."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from browser import Keys
from lab import ROOT

WORKSHOP = ROOT / "docs" / "workshop"
LESSONS = sorted(path.stem for path in WORKSHOP.glob("[0-9][0-9]-*.md"))
PAGES = ["", "guide", "glossary", *LESSONS]


class Anchors(HTMLParser):
    """The links of a page, and what they can lead to."""

    def __init__(self, html):
        super().__init__()
        self.links, self.ids, self.tags, self.runs = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if "data-run" in found:
            self.runs.append(json.loads(found["data-run"]))
        if "id" in found:
            self.ids.append(found["id"])


@pytest.fixture
def visit(browser, shop):
    """Opens a lesson's page as one who has never been there; the page must not complain."""
    browser.size(1280)

    def go(name=""):
        browser.start(f"http://127.0.0.1:{shop.port}/lessons/{name}")
        return browser

    yield go
    assert browser.complaints() == []


# ── what is served ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_served_and_kept(shop, name):
    reply = shop.get(f"/lessons/{name}")
    assert reply.status == 200 and reply.header("Content-Type") == "text/html; charset=utf-8"
    assert "'unsafe" not in reply.header("Content-Security-Policy")
    assert shop.get(f"/lessons/{name}", {"If-None-Match": reply.header("ETag")}).status == 304
    head = shop.call("HEAD", f"/lessons/{name}")
    assert (head.status, head.body, head.header("ETag")) == (200, b"", reply.header("ETag"))
    html = reply.body.decode()
    assert "<!--" not in html.removeprefix("<!doctype html>") and "```" not in html and not re.search(r"\]\(|^\|", html, re.M), "all is rendered"
    assert Anchors(html).tags.count("h1") == 1
    for inline in ("<script>", "<style", " style=", " onclick="):
        assert inline not in html


def test_no_other_pages(shop):
    for name in ("nothing", "index.html", "..", "../page/shared/dom.js", "01-lost-update.md", "01-lost-update/", "README"):
        assert shop.get(f"/lessons/{name}").problem == "not-found", name


@pytest.mark.parametrize("name", PAGES)
def test_its_links_lead_somewhere(shop, name):
    page = Anchors(shop.get(f"/lessons/{name}").body.decode())
    for link in page.links:
        path, _, anchor = link.partition("#")
        if path.startswith("https://") or link.startswith("http://antirez.com"):
            continue
        assert link.startswith(("/", "#")), link
        target = page if not path else Anchors(shop.get(path).body.decode())
        assert not path or shop.get(path).status == 200, link
        if anchor and path != "/steps":
            assert anchor in target.ids, link


def test_the_contents_have_every_lesson(shop):
    links = Anchors(shop.get("/lessons/").body.decode()).links
    assert [link for link in links if re.match(r"/lessons/\d", link)] == [f"/lessons/{name}" for name in LESSONS]


@pytest.mark.long
def test_from_the_first_lesson_to_the_last_by_next(visit):
    page = visit(LESSONS[0])
    for before, name in zip(LESSONS, LESSONS[1:], strict=False):
        page.click("a[rel=next]")
        page.wait(lambda name=name: page.driver.current_url.endswith(f"/lessons/{name}"), f"{name} follows {before}")
    assert not page.all("a[rel=next]") and len(page.all("a[rel=prev]")) == 1


@pytest.mark.parametrize("name", PAGES)
def test_it_fits_a_phone_and_can_be_read(visit, name):
    page = visit(name)
    page.size(320, 700, phone=True)
    assert page.overflows() <= 0
    assert page.too_small() == []
    page.size(1280)
    assert page.low_contrast() == [] and page.unnamed() == []


# ── what a learner does ─────────────────────────────────────────────────────────────────────────────────────

# Solutions of goals that the lesson's own exercise does not have.
SOLUTIONS = {
    "02-check-then-act": "A>end B>read C>end B>end",
    "03-synchronized": "A>unlock B>read A>end B>end",
    "08-lock-table": "A>read A!expire B>end A>end",
}


def runs(shop, name, *kinds):
    page = Anchors(shop.get(f"/lessons/{name}").body.decode())
    return [run for run in page.runs if run["kind"] in kinds]


def after(shop, schedule):
    reply = shop.post("/steps", {"schedule": schedule})
    assert reply.status == 200, f"{schedule}: {reply}"
    return reply.json


def over(shop, schedule):
    state = after(shop, schedule)
    assert not any(order["can"]["step"] for order in state["orders"]), schedule
    return state


@pytest.mark.parametrize("name", LESSONS)
def test_its_schedules_can_be_stepped_through_to_their_end(shop, name):
    found = runs(shop, name, "replay")
    assert found, "a solved lesson needs an exercise that the service has seen"
    for run in found:
        assert after(shop, run["schedule"])["told"]


@pytest.mark.long
def test_the_solution_of_a_goal_reaches_it_and_one_order_after_the_other_does_not(visit, shop):
    page = visit()
    missed = """const [ends, state, done] = arguments;
        import("/page/lessons/goal.js").then((goal) => done([goal.missed(ends, state), goal.goalWords(ends)]));"""
    goals = 0
    for name in LESSONS:
        text = (WORKSHOP / f"{name}.md").read_text(encoding="utf-8").split("## Exercise")[1]
        moves = re.findall(rf"^check {int(name[:2])} '(.*)'$", text, re.M)
        for run in runs(shop, name, "goal"):
            goals += 1
            right = SOLUTIONS.get(name) or moves[-1]
            state = over(shop, f"{run['schedule']} {right}")
            assert page.driver.execute_async_script(missed, run["ends"], state)[0] == [], (name, right)
            serial = "A>end B>end C>end" if "q=1,1,1" in run["schedule"] else "A>end B>end"
            lacks, words = page.driver.execute_async_script(missed, run["ends"], over(shop, f"{run['schedule']} {serial}"))
            assert lacks and all(each in words for each in lacks), (name, "one order after the other is no solution")
    assert goals >= 15


def answers(page, kind):
    return page.all(f'.quiz[data-kind="{kind}"] .answer')


def verdict(page, kind):
    return page.driver.execute_script("return document.querySelector(`[data-kind=${arguments[0]}] .verdict`).textContent", kind)


def stored(page, lesson):
    return page.driver.execute_script("return JSON.parse(localStorage.getItem('oversell.lessons') ?? '{}')[arguments[0]] ?? null", lesson)


def walk_to_the_end(page, prefix, press):
    """Presses as long as the schedule has a next step."""
    page.wait(lambda: page.all(f"#{prefix}next"), "the steps are there")
    page.wait(lambda: page.text(f"{prefix}why"), "the steps are loaded")
    questions = f"[id^={prefix}] .question:not([hidden])"
    for _ in range(30):
        if page.all(f"#{prefix}next[aria-disabled=true]"):
            return
        seen = len(page.all(f"#{prefix}told li")), len(page.all(questions))
        press()
        page.wait(lambda seen=seen: (len(page.all(f"#{prefix}told li")), len(page.all(questions))) != seen, "the next step is told")
    raise AssertionError("the schedule does not end")


TODO = "The lesson is solved when you have also found the schedule of its exercise."


@pytest.mark.long
def test_a_lesson_by_clicks_and_its_progress_after_a_reload(visit):
    page = visit("01-lost-update")
    answers(page, "predict")[0].click()
    assert "Now go through the steps" in verdict(page, "predict")
    walk_to_the_end(page, "run-0-", lambda: page.click("run-0-next"))
    page.wait(lambda: verdict(page, "predict").startswith("✗ Not 0: A has not written yet. It is 1: "), "the prediction is decided")
    assert stored(page, "01-lost-update") == {"predicted": True, "missed": False, "checked": False, "solved": False, "found": [0], "place": None}
    answers(page, "check")[0].click()
    assert verdict(page, "check").startswith("✗ No: each order is one transaction already")
    assert not stored(page, "01-lost-update")["solved"]
    answers(page, "check")[2].click()
    assert verdict(page, "check").startswith("✓ Right, but not with your first answer: it locks the row") and verdict(page, "check").endswith(TODO)
    assert not stored(page, "01-lost-update")["solved"], "an answer alone solves nothing"
    page.shot("lesson")
    page.driver.refresh()
    page.wait(lambda: verdict(page, "check") == f"✓ You have answered this, but not with your first answer. {TODO}", "the answer is kept")
    reach_the_goal(page)
    page.wait(lambda: verdict(page, "check") == "✓ You have solved this lesson, but not with your first answer.", "answer and exercise are done")
    page.driver.refresh()
    page.wait(lambda: verdict(page, "check") == "✓ You have solved this lesson, but not with your first answer.", "the progress is kept")
    page.driver.get(page.driver.current_url.replace("01-lost-update", ""))
    page.wait_text("progress", "1 of 23 lessons solved")
    done = {line.get_attribute("data-lesson"): line.find_element("css selector", ".done").text for line in page.all(".contents li")}
    assert done.pop("01-lost-update") == "✓ solved" and set(done.values()) == {""}
    page.shot("lessons")
    page.driver.back()
    page.wait(lambda: verdict(page, "check") == "✓ You have solved this lesson, but not with your first answer.", "the progress is kept")
    page.click("help-open")
    page.click("forget")
    page.wait(lambda: verdict(page, "check") == "" and "✓" not in page.all(".goal-line")[0].text, "nothing is solved any more")
    page.driver.forward()
    page.wait_text("progress", "Choose a lesson")


def test_its_steps_fit_a_phone(visit):
    page = visit("06-row-locks-and-versions")
    page.size(320, 700, phone=True)
    answers(page, "predict")[0].click()
    walk_to_the_end(page, "run-0-", lambda: page.click("run-0-next"))
    assert page.overflows() <= 0 and page.too_small() == []
    page.size(1280)
    assert page.low_contrast() == [] and page.unnamed() == []


def tab_to(page, selector):
    """Moves the focus by the Tab key alone."""
    for _ in range(80):
        if page.driver.execute_script("return document.activeElement.matches(arguments[0])", selector):
            return
        page.press(Keys.TAB)
    raise AssertionError(f"Tab does not reach {selector}")


@pytest.mark.long
def test_a_lesson_by_keyboard_alone(visit):
    page = visit("14-pauses-and-fencing")
    tab_to(page, "[data-kind=predict] .answer:last-child")
    page.press(Keys.ENTER)
    walk_to_the_end(page, "run-0-", lambda: page.press(Keys.SPACE))
    page.wait(lambda: verdict(page, "predict").startswith("✓ As you predicted: the row compares"), "the prediction is decided")
    tab_to(page, "[data-kind=check] .answer:nth-child(2)")
    page.press(Keys.SPACE)
    assert verdict(page, "check").startswith("✓ Right: ")
    goal = len(page.all(".run")) - 1
    tab_to(page, f".run:nth-of-type({goal}) .go-run, .goal-line + .group .go-run")
    page.press(Keys.ENTER)
    prefix = f"run-{goal}-"
    page.wait(lambda: page.all(f"#{prefix}next") and page.text(f"{prefix}why"), "the exercise is open")
    line = lambda: page.driver.execute_script("return document.querySelector('.goal-line').textContent")  # noqa: E731
    assert line() == "Find a schedule: A: refused, because it had lost its lock."
    for key in ("1", "1", "1"):  # A takes the lock and reads
        told = len(page.all(f"#{prefix}told li"))
        if page.text(f"{prefix}told").count("A reads"):
            break
        page.press(key)
        page.wait(lambda told=told: len(page.all(f"#{prefix}told li")) > told, "A's step is told")
    page.press("u")
    page.wait(lambda: not page.text(f"{prefix}told").count("A reads"), "the step is undone")


def test_a_goal_is_judged_at_the_end_of_each_schedule(visit):
    page = visit("03-synchronized")
    page.click(".goal-line + .group .go-run")
    page.wait(lambda: page.all(".goal-line ~ .steps [id$=-next]"), "the exercise is open")
    prefix = page.all(".goal-line ~ .steps [id$=-next]")[0].get_attribute("id").removesuffix("next")
    walk_to_the_end(page, prefix, lambda: page.click(f"{prefix}next"))
    line = page.driver.execute_script("return document.querySelector('.goal-line').textContent")
    assert line == "✗ Not yet. Missing: 2 sold. Go back by Undo, or start again."


def reach_the_goal(page):
    """The exercise of lesson 1, by its steps."""
    goal_line = lambda: page.driver.execute_script("return document.querySelector('.goal-line').textContent")  # noqa: E731
    page.click(".goal-line + .group .go-run")
    page.wait(lambda: page.all(".goal-line ~ .steps [id$=-next]"), "the exercise is open")
    prefix = page.all(".goal-line ~ .steps [id$=-next]")[0].get_attribute("id").removesuffix("next")
    page.wait(lambda: page.text(f"{prefix}why"), "the steps are loaded")
    for key, name in (("1", "A"), ("2", "B"), ("3", "C")):
        page.driver.execute_script("arguments[0].focus()", page.find(f"{prefix}next"))
        reads = lambda name=name: f"{name} reads" in page.text(f"{prefix}told")  # noqa: E731
        asks = lambda: page.all(f"[id^={prefix}] .question:not([hidden])")  # noqa: E731
        for _ in range(2):  # a step can be a question about what the order will read; the key then answers it
            page.wait(lambda: not page.all(".steps[aria-busy]"), "the step before is over")
            if not reads():
                page.press(key)
                page.wait(lambda: reads() or asks(), "the order reads, or the learner is asked")
        page.wait(reads, "the order reads")
    walk_to_the_end(page, prefix, lambda: page.click(f"{prefix}next"))
    assert goal_line() == "✓ You found it: 3 sold, the stock shows 2."


@pytest.mark.long
def test_a_goal_that_was_reached_is_remembered(visit):
    page = visit("01-lost-update")
    goal_line = lambda: page.driver.execute_script("return document.querySelector('.goal-line').textContent")  # noqa: E731
    reach_the_goal(page)
    page.driver.refresh()
    page.wait(lambda: goal_line().startswith("✓ You have found one before. Find a schedule: 3 sold"), "the goal is remembered")


@pytest.mark.long
def test_a_search_and_a_load_need_no_terminal(visit):
    page = visit("05-one-process")
    answers(page, "predict")[1].click()
    assert "Now run the load" in verdict(page, "predict")
    page.press(Keys.ENTER)  # the focus is on the button
    page.wait(lambda: verdict(page, "predict").startswith("✓ As you predicted"), "the load has ended", 60)
    rows = [[cell.text for cell in row.find_elements("css selector", "td")] for row in page.all(".run table tbody tr")]
    assert [row[0] for row in rows] == ["mutex", "mutex-per-product"]
    assert all(int(row[1]) == 100 + int(row[2]) for row in rows)
    page = visit("03-synchronized")
    page.click('.run[data-run*=search] .go-run')
    page.wait(lambda: len(page.all(".run[data-run*=search] tbody tr")) == 2, "both are searched", 60)
    rows = [row.text.split() for row in page.all(".run[data-run*=search] tbody tr")]
    (early, all_early, bad_early), (mutex, all_mutex, bad_mutex) = [row[:3] for row in rows]
    assert (early, mutex) == ("mutex-early-release", "mutex") and int(bad_early) > 0 == int(bad_mutex), rows
    said = page.all(".run[data-run*=search] [role=status]")[0].text
    if "were not enough" not in said:  # a busy machine does not run all of them in ten seconds, and the page says so
        assert (all_early, bad_early, all_mutex) == ("40", "20", "12"), rows


def test_a_load_can_be_stopped(visit):
    page = visit("06-row-locks-and-versions")
    page.click(".run[data-run*=compare] .go-run")
    page.click(".run[data-run*=compare] button:not(.go-run)")
    page.wait(lambda: "stopped" in page.all(".run[data-run*=compare] [role=status]")[0].text, "the load is stopped", 60)


def test_a_load_can_be_stopped_before_its_start_is_answered(visit, shop):
    page = visit("06-row-locks-and-versions")
    with page.calls_held("POST", "/runs") as sent:
        page.click(".run[data-run*=compare] .go-run")
        page.wait(sent, "the call that starts the load waits")
        page.click(".run[data-run*=compare] button:not(.go-run)")
    page.wait(lambda: page.all(".run[data-run*=compare] [role=status]")[0].text == "The load was stopped.", "the load is stopped", 60)
    another = shop.post("/runs", {"strategies": ["mutex"], "product_id": 1, "duration_ms": 1000})
    assert another.status == 202, f"the place of the only load is free: {another}"
    shop.call("DELETE", f"/runs/{another.json['id']}")


def test_without_its_server_a_lesson_shows_what_the_terminal_prints(visit, shop):
    page = visit("01-lost-update")
    with page.without("/steps"):
        answers(page, "predict")[1].click()
        page.wait(lambda: verdict(page, "predict").startswith("✓ As you predicted"), "the output decides")
        assert page.all(".run .terminal")[0].get_attribute("open") is not None
        assert "does not answer" in page.all(".run .alert")[0].text
    assert all("ERR_BLOCKED" in line for line in page.complaints())


# ── their form ──────────────────────────────────────────────────────────────────────────────────────────────

GOOD = """# 1. One

<!-- predict What?
- one: no
+ two: yes
-->

<!-- schedule read-write s=1 q=1,1 A>end -->

<!-- check What?
- one: no
+ two: yes
-->
"""


@pytest.mark.parametrize(
    "old, new, line, says",
    [
        ("- one: no\n+ two: yes", "+ two: yes", 3, "this predict has 1 answers"),
        ("+ two: yes", "- two: yes", 3, "this predict must have exactly one right answer"),
        ("- one: no", "- one", 3, "the answer '- one' has no reason"),
        ("predict What?", "predict", 3, "this predict asks nothing"),
        ("predict", "predcit", 3, "'predcit' is none of predict, check, schedule and goal"),
        ("-->\n\n<!-- schedule", "\n\n<!-- schedule", 3, "what begins here has no end"),
        ("s=1 q=1,1 A>end", "s=1 A>end", 8, "is no schedule"),
        ("schedule read-write s=1 q=1,1 A>end", "goal read-write s=1 q=1,1: gone=1", 8, "is no goal"),
        ("<!-- schedule read-write s=1 q=1,1 A>end -->", "", 1, "nothing shows whether the prediction was right"),
        ("predict What?\n- one: no\n+ two: yes\n-->", "schedule read-write s=1 q=1,1 A>end -->", 1, "this lesson has no prediction"),
        ("check What?\n- one: no\n+ two: yes\n-->", "schedule read-write s=1 q=1,1 A>end -->", 1, "this lesson has no check"),
        ("<!-- schedule read-write s=1 q=1,1 A>end -->", "```sh\ntrue\n```", 1, "this lesson has no schedule"),
    ],
)
def test_a_mistake_in_a_comment_is_told_with_its_line(tmp_path, old, new, line, says):
    for folder in ("make", "service/page", "docs/workshop"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "make/lesson-pages", tmp_path / "make")
    shutil.copy(ROOT / "service/page/lesson.html", tmp_path / "service/page")
    head = "\n*10 minutes.*\n\n- **Objective:** See.\n- **Prerequisite:** None.\n"
    lesson = tmp_path / "docs/workshop/01-one.md"

    def check(text):
        lesson.write_text(text)
        ran = subprocess.run([tmp_path / "make/lesson-pages", "--check"], capture_output=True, text=True, timeout=60, check=False)
        return ran.returncode, ran.stderr

    assert check(GOOD + head) == (0, "")
    assert old in GOOD
    status, said = check(GOOD.replace(old, new, 1) + head)
    assert status == 1 and said.startswith(f"docs/workshop/01-one.md:{line}: ") and says in said, said
