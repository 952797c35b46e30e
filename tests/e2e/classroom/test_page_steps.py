"""What /steps shows beside the steps: the requests that were sent, the versions of the row, who waits, the code, a second strategy."""

import re
from urllib.parse import unquote, urlsplit

import pytest

from browser import Keys
from lab import ROOT
from pages import focused


@pytest.fixture
def at(browser, shop):
    """Opens /steps at a schedule, without questions; no page may complain."""

    def open_at(address):
        browser.size(1440)
        browser.driver.get("about:blank")
        browser.start(f"http://127.0.0.1:{shop.port}/steps#{address.replace(' ', '+')}")
        browser.wait(lambda: browser.all(".lane") and browser.text("goal") != "…", "the orders stand there")
        browser.wait(lambda: not browser.driver.execute_script("return document.getAnimations().length"), "what arrives can be read")
        if browser.find("ask").is_selected():
            browser.click("ask")
        return browser

    yield open_at
    assert browser.complaints() == []


def address(page):
    return unquote(urlsplit(page.driver.current_url).fragment).replace("+", " ")


def requests(page, lane):
    return [line.text for line in page.all(f"#lane-{lane} .program .sent li")]


def requests_beside(page, lane):
    return [line.text for line in page.all(f"#beside-lane-{lane} .program .sent li")]


@pytest.mark.long
def test_the_statements_of_a_lost_update_stand_beside_its_steps(at):
    page = at("read-write s=1 q=1,1 A>read B>end A>end")
    for lane, version in (("A", 0), ("B", 0)):
        begin, read, write, insert, commit = requests(page, lane)
        assert begin == "BEGIN" and commit == "COMMIT" and insert.startswith("INSERT INTO orders")
        assert read == f"SELECT count, version FROM product WHERE id = 1\n→ 1 row: stock 1, version {version}"
        assert write == "UPDATE product SET count = 0, version = version + 1 WHERE id = 1\n→ UPDATE 1: stock 0"
        assert len(page.all(f"#lane-{lane} .sent li.in-transaction")) == 5, "all of them in one transaction"
        assert [page.all(f"#lane-{lane} .in-transaction.{end} code")[0].text for end in ("begins", "ends")] == ["BEGIN", "COMMIT"]
    committed = page.all(".versions tbody tr")[0].text
    assert committed.split() == ["committed", "0", "2"], "two writes, one unit"
    page.shot("steps-sent")


# ── where the requests of an order that has waited stand ────────────────────────────────────────────────────


def firsts(page, lane, step):
    """The first two words of each request that stands below STEP in the column of LANE."""
    lines = page.all(f"#lane-{lane} li[data-step={step}] > .sent li")
    return [" ".join(line.text.split()[:2]) for line in lines]


def test_what_an_order_waited_for_stays_with_its_step(at):
    page = at("select-for-update s=2 q=1,1 A>read B>read~ A>end B>end")
    assert firsts(page, "B", "read") == ["BEGIN", "SELECT count,"] and firsts(page, "B", "write") == ["UPDATE product"]
    assert [line.text for line in page.all("#lane-B .in-transaction.begins code")] == ["BEGIN"]


def test_a_sold_out_order_that_waited_begins_before_it_rolls_back(at):
    page = at("select-for-update s=1 q=1,1 A>read B>read~ A>end B>end")
    assert firsts(page, "B", "read") == ["BEGIN", "SELECT count,", "ROLLBACK"] and firsts(page, "B", "write") == []


def test_an_update_that_waited_stays_a_write(at):
    page = at("read-write s=2 q=1,1 A>write B>write~")
    waiting = firsts(page, "B", "read"), firsts(page, "B", "write")
    assert waiting == (["BEGIN", "SELECT count,"], ["UPDATE product"])
    page.click("end-A")
    page.wait(lambda: "A>end" in address(page), "A is done")
    page.wait(lambda: (firsts(page, "B", "read"), firsts(page, "B", "write")) == waiting, "B's requests stay at their steps")
    page.click("end-B")
    page.wait(lambda: "B>end" in address(page), "B is done")
    page.wait(lambda: (firsts(page, "B", "read"), firsts(page, "B", "write")) == waiting, "B's requests stay at their steps")


def test_a_lock_that_was_not_free_at_first_stays_with_its_step(at):
    page = at("redis-lock s=2 q=1,1 A>read B>lock~ A>end B>write")
    assert [line.text.split()[0] for line in page.all("#lane-B li[data-step=lock] > .sent li")] == ["SET", "TYPE", "SET"]
    assert firsts(page, "B", "read") == ["BEGIN", "SELECT count,"] and firsts(page, "B", "write") == ["UPDATE product"]
    assert [line.text.split()[0] for line in page.all("#lane-B .sent li.is-refused")] == ["SET"], "under the lock alone"


def saved_schedules():
    """The schedules of schedules/*.sched, as the address has them."""
    head = None
    for line in (line.split() for file in sorted((ROOT / "schedules").glob("*.sched")) for line in file.read_text().splitlines()):
        if line[:1] == ["strategy"]:
            wants = [word.split(":")[1] for word in line if re.fullmatch(r"[A-F]:\d+", word)]
            head = f"{line[1]} s={line[line.index('stock') + 1]} q={','.join(wants)}"
        elif line[:1] == ["schedule"]:
            yield " ".join([head, *line[1:]])


# Further orders that wait, or end while they wait.
WAITING = [
    "select-for-update s=2 q=1,1 A>read B>read~ A>end B>write",
    "read-write s=2 q=1,1 A>write B>write~ A>end B>end",
    "read-write s=2 q=1,1 A>write B>write~ B!timeout A>end",
    "redis-fenced s=1 q=1,1 A>read A!expire B>end A>end",
]

# Which orders' requests, read from their first step to their last one, are not in the sequence in which they were sent.
MISPLACED = r"""
const [schedules, done] = arguments;
async function misplaced(requestsOf, schedule) {
  const reply = await fetch("/steps", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ schedule }) });
  const state = await reply.json();
  if (!reply.ok) return [`${schedule}: ${reply.status} ${state.detail}`];
  return state.orders.flatMap(({ name }) => {
    const mine = state.told.filter(({ actor }) => actor === name);
    const sent = mine.slice(mine.findLastIndex(({ step }) => step === "retry") + 1).flatMap(({ sent = [] }) => sent.filter(({ sent_before }) => !sent_before));
    const placed = requestsOf(state, name);
    const shown = state.steps.flatMap((step) => placed.get(step) ?? []);
    const [expected, got] = [sent.map(({ text }) => text), shown.map(({ request }) => request.text)];
    return expected.join() === got.join() ? [] : [`${schedule}: ${name} sent ${expected.join(" | ")}, and the page shows ${got.join(" | ")}`];
  });
}
import("/page/steps/requests.js").then(async ({ requestsOf }) => {
  const wrong = [];
  for (const schedule of schedules) wrong.push(...(await misplaced(requestsOf, schedule)));
  done(wrong);
}, (error) => done([String(error)]));
"""


@pytest.mark.long
def test_requests_stand_in_the_sequence_in_which_they_were_sent(at, shop):
    page = at("read-write s=1 q=1,1")
    available = {row["name"] for row in shop.get("/strategies").json["strategies"] if row["explorable"] and row["available"]}
    schedules = [text for text in [*saved_schedules(), *WAITING] if text.split()[0] in available]
    assert len(schedules) >= 20
    assert page.driver.execute_async_script(MISPLACED, schedules) == []


@pytest.mark.long
def test_whole_requests_are_what_the_server_got_and_can_be_hidden(at):
    page = at("read-write s=1 q=1,1 A>read")
    page.click("whole")
    page.wait(lambda: any("pg_current_snapshot()" in text for text in requests(page, "A")), "the whole statement")
    page.click("sent")
    page.wait(lambda: requests(page, "A") == [], "nothing is shown")


@pytest.mark.long
def test_a_waiting_order_has_an_arrow_to_the_one_it_waits_for(at):
    page = at("select-for-update s=1 q=1,1 A>write B>read~")
    assert requests(page, "B")[-1] == "SELECT count, version FROM product WHERE id = 1 FOR UPDATE\n→ no answer yet"
    assert page.all(".arrows .wait-arrow")
    assert [row.text for row in page.all(".versions tbody tr")] == ["committed 1 0", "A, not committed 0 1"]
    page.shot("steps-waits-for")
    page.click("end-A")
    page.wait(lambda: not page.all(".arrows"), "B waits no more")
    page.wait(lambda: any("→ 1 row: stock 0, version 1" in text for text in requests(page, "B")), "B has its answer")
    assert page.text("reason-B") == "B is done: sold out."
    page.wait_text("result", "Correct: sold 1 of 1.")


@pytest.mark.long
def test_a_version_conflict_explains_itself(at):
    page = at("optimistic s=1 q=1,1 A>read B>end A>end")
    page.wait_text("result", "Correct: sold 1 of 1.")
    (earlier,) = page.all("#lane-A .earlier")
    assert "A started again, because the row had changed:" in earlier.text
    assert "AND version = 0\n→ UPDATE 0" in earlier.text, "the version that it had read"
    assert any("→ 1 row: stock 0, version 1" in text for text in requests(page, "A"))
    assert "A's UPDATE finds no row of that version, so A starts again." in page.text("told")
    page.shot("steps-conflict")


def test_a_transaction_that_the_database_ends_says_so(at):
    page = at("serializable s=2 q=1,1 A>read B>end A>retry")
    assert "The database ends A's transaction (error 40001), and A starts again." in page.text("told")


def test_one_statement_is_shown_as_one(at):
    page = at("atomic-statement s=1 q=1,1 A>end B>end")
    (taken,) = requests(page, "A")
    assert "count = count - 1" in taken and "count >= 1; if one row: INSERT INTO orders" in taken
    assert taken.endswith("→ 1 row: amount 1.00") and requests(page, "B")[0].endswith("→ too few units: stock 0")
    assert page.all("#lane-A .program > .is-done")[0].text.startswith("✓\nthe whole order: one statement")
    assert page.all("#lane-B .program > .is-refused")[0].text.splitlines()[2] == "sold out"
    assert page.text("sold") == "1"


@pytest.mark.long
def test_a_fence_refuses_the_older_token(at):
    page = at("redis-fenced s=1 q=1,1 A>read A!expire B>end A>end")
    assert any(text.startswith("UPDATE product SET fence_redis = ") and text.endswith("→ UPDATE 1") for text in requests(page, "A"))
    refused = [line.text for line in page.all("#lane-A .sent li.is-refused")]
    assert any("AND fence_redis = " in text and text.endswith("→ UPDATE 0") for text in refused)
    page.shot("steps-fence")


@pytest.mark.long
def test_what_the_lock_server_holds_is_shown(at):
    page = at("redis-lock s=1 q=1,1 A>read B>lock~")
    assert "key product:1, value …" in page.text("lock") and "expires in" in page.text("lock")
    taken, busy = requests(page, "A")[0], requests(page, "B")[0]
    assert taken.startswith("SET product:1 …") and taken.endswith("→ OK") and busy.endswith("→ nil")


@pytest.mark.long
def test_the_code_marks_the_next_step_of_each_order(at):
    page = at("select-for-update s=1 q=1,1 A>read")
    page.find("code").find_element("css selector", "summary").click()
    read, write = page.all(".listing li.is-next")
    assert read.text.startswith("B") and "FOR UPDATE" in read.text, "also of an order that has not begun"
    assert write.text.startswith("A") and "UPDATE product SET count = ?" in write.text
    assert "FOR UPDATE" in page.text("listing")
    page.choose("language", "python")
    page.wait(lambda: "db.execute" in page.text("listing"), "the same in Python")


@pytest.mark.long
def test_every_strategy_that_can_be_stepped_through_has_code(at, shop):
    page = at("read-write s=1 q=1,1")
    lines = page.driver.execute_async_script(
        r"""
        const done = arguments[arguments.length - 1];
        Promise.all([import("/page/steps/code.js"), fetch("/strategies").then((reply) => reply.json())]).then(async ([{ codeOf }, { strategies }]) => {
          const missing = [];
          for (const row of strategies.filter((one) => one.explorable && one.available)) {
            const state = await fetch("/steps", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ schedule: `${row.name} s=1 q=1,1` }) }).then((reply) => reply.json());
            for (const language of ["java", "python"]) {
              const shown = new Set(codeOf(row, state.steps, language).map(({ step }) => step));
              const locks = ["setnx", "expire", "lock", "del", "unlock"].filter((step) => state.steps.includes(step));
              const code = codeOf(row, state.steps, language).map(({ text }) => text).join("\n");
              for (const name of ["token", "version"]) {
                const used = code.search(new RegExp(`, ${name}[,)\\]]`)), made = code.search(new RegExp(`\\b${name} = (?![?%]|version)`));
                if (used >= 0 && (made < 0 || made > used)) missing.push(`${row.name} ${language} uses ${name} before it has one`);
              }
              for (const step of state.steps) if (!shown.has(step) && !locks.includes(step)) missing.push(`${row.name} ${language} ${step}`);
              if (locks.length > 0 && !locks.some((step) => shown.has(step))) missing.push(`${row.name} ${language} lock`);
            }
          }
          done(missing);
        }, (error) => done([String(error)]));
        """
    )
    assert lines == []


def test_a_schedule_is_shown_from_its_beginning(at):
    schedule = "read-write s=1 q=1,1 A>read B>read A>end B>end"
    page = at(f"{schedule}&from=start")
    page.wait(lambda: page.find("told-empty").is_displayed() and page.find("play").is_displayed(), "it starts at the beginning")
    assert address(page) == f"{schedule}&from=start"
    page.driver.refresh()
    page.wait(lambda: page.all(".of-A.is-turn") and page.find("told-empty").is_displayed(), "so it does after a reload")
    for told in ("A reads 1.", "B reads 1."):
        page.click("next")
        page.wait_text("told", told)
    assert address(page) == "read-write s=1 q=1,1 A>read B>read"
    page.driver.execute_script("location.hash = arguments[0]", f"{schedule}&with=select-for-update&from=start")
    page.wait_text("beside-goal", "With select-for-update")
    page.wait(lambda: page.find("told-empty").is_displayed() and page.all("#beside-lane-A"), "both start at the beginning")
    page.click("next")
    page.wait(lambda: address(page) == "read-write s=1 q=1,1 A>read&with=select-for-update", "the address follows")


def test_an_unknown_strategy_to_compare_with_is_told(at):
    page = at("read-write s=1 q=1,1 A>read&with=nonsense")
    page.wait_text("alert", "'nonsense' after with= is not a strategy that you can step through. Correct it in the address bar.")
    assert address(page).endswith("&with=nonsense") and not page.find("beside-stepper").is_displayed()
    page.driver.execute_script("location.hash = arguments[0]", "read-write s=1 q=1,1 A>read&with=optimistic")
    page.wait_text("beside-goal", "With optimistic")
    page.wait(lambda: not page.find("alert").is_displayed(), "what is corrected is not complained about")


@pytest.mark.long
def test_two_strategies_run_the_same_schedule(at):
    page = at("read-write s=1 q=1,1&with=select-for-update")
    page.wait_text("beside-goal", "With select-for-update")
    page.wait(lambda: page.all("#beside-lane-A"), "its orders stand there")
    for name in ("A", "B"):
        page.click(f"step-{name}")
        page.wait(lambda: f"{name}>read" in address(page), f"{name} has read")
    page.wait_text("beside-reason-B", "B waits for A's row lock.")
    page.shot("steps-beside")
    page.click("end-A")
    page.wait(lambda: "A>end" in address(page), "A is done")
    page.click("end-B")
    page.wait_text("result", "Sold 2 of 1.")
    page.wait_text("beside-result", "Correct: sold 1 of 1.")
    assert address(page).endswith("&with=select-for-update")
    page.click("restart")
    page.wait(lambda: not page.find("beside-result").is_displayed(), "the second one starts again as well")
    page.driver.refresh()
    page.wait(lambda: page.all("#beside-lane-A"), "the address is the state")


# By how many pixels what corresponds in the two halves is not level: the columns, their steps of the same name, the servers and the stories.
UNEVEN = """
const half = (id) => {
  const tops = {}, root = document.getElementById(id);
  const add = (key, element) => (tops[key] = element.getBoundingClientRect().top);
  for (const lane of root.querySelectorAll(".lane")) {
    add(lane.id.slice(-6), lane);
    for (const row of lane.querySelectorAll(".program > li")) add(`${lane.id.slice(-6)} ${row.dataset.step}`, row);
  }
  for (const part of ["stage", "servers", "story"]) add(part, root.querySelector(`.${part}`));
  return tops;
};
const [one, other] = [half("stepper"), half("beside-stepper")];
return Object.keys(one).filter((key) => key in other && Math.abs(one[key] - other[key]) > 1).map((key) => `${key}: ${one[key] - other[key]}`);
"""


@pytest.mark.long
@pytest.mark.parametrize("width", [1024, 1280, 1920])
@pytest.mark.parametrize("both", ["select-for-update s=1 q=1,1 A>write B>read~&with=read-write", "redis-lock s=1 q=1,1 A>write B>lock~&with=read-write"])
def test_both_halves_are_level(at, width, both):
    page = at(both)
    page.size(width)

    def level():
        return page.all("#beside-lane-A .program .sent") and page.driver.execute_script(UNEVEN) == []

    page.wait(level, "the halves are level")
    page.keep(f"steps-level-{width}-{both.split()[0]}")
    short = requests(page, "A")
    page.click("whole")
    page.wait(lambda: requests(page, "A") != short, "the requests are longer")
    page.wait(level, "the halves are level again")
    page.click("end-A")
    page.wait(lambda: "A>end" in address(page), "A is done")
    page.wait(level, "they stay level from step to step")
    page.size(760)
    page.wait(lambda: page.driver.execute_script("return document.querySelector('#beside-stepper .stage').style.marginTop") == "", "halves below each other have no gaps")
    assert page.overflows() <= 0


def shown(page, name):
    """Also False in a closed <details>."""
    return page.driver.execute_script("return document.getElementById(arguments[0]).checkVisibility()", name)


def test_the_projector_view_folds_the_settings(at):
    page = at("read-write s=1 q=1,1")
    assert page.text("big") == "Projector view"
    assert shown(page, "strategy-open") and not page.all("#settings > summary")[0].is_displayed()
    page.click("big")
    page.wait(lambda: not shown(page, "strategy-open") and not shown(page, "ask"), "the settings are folded")
    for width, height in ((1024, 768), (1280, 720)):
        page.size(width, height)
        page.driver.execute_script("scrollTo(0, 0)")
        bottom = "return Math.max(...['step-A', 'step-B', 'sold'].map((id) => document.getElementById(id).getBoundingClientRect().bottom))"
        page.wait(lambda height=height: page.driver.execute_script(bottom) <= height, f"the orders fit {width} × {height}")
        page.keep(f"steps-projector-{width}")
    page.size(1440)
    page.click("#settings > summary")
    page.wait(lambda: shown(page, "strategy-open") and shown(page, "ask"), "one click opens them")
    assert page.low_contrast() == [] and page.unnamed() == [] and page.too_small() == []
    page.driver.refresh()
    page.wait(lambda: page.all(".lane"), "the orders stand there")
    assert not shown(page, "strategy-open"), "the view is remembered"
    page.click("big")
    page.wait(lambda: shown(page, "strategy-open"), "they are open again")


def test_an_order_that_waits_goes_on_where_the_second_strategy_lets_it(at):
    page = at("select-for-update s=1 q=1,1 A>write B>read~&with=read-write")
    page.wait(lambda: any("→ 1 row: stock 1" in text for text in requests_beside(page, "B")), "B has read without a lock")
    assert page.text("reason-B") == "B waits for A's row lock." and page.text("beside-reason-B") == ""


def test_the_arrow_follows_the_columns(at):
    page = at("select-for-update s=1 q=1,1 A>write B>read~")
    ends = "const [a, b] = ['A', 'B'].map((name) => document.getElementById(`lane-${name}`).getBoundingClientRect()), { left, right } = document.querySelector('.arrows .is-line').getBoundingClientRect(); return Math.abs(left - (a.left + a.right) / 2) + Math.abs(right - (b.left + b.right) / 2)"
    assert page.driver.execute_script(ends) < 4
    # One script makes the columns narrower and measures, so that the page cannot draw the arrows again in between.
    excess = "const stage = document.querySelector('.stage'); stage.style.width = '300px'; const wide = document.querySelector('.arrows').getBoundingClientRect().width - stage.getBoundingClientRect().width; stage.style.width = ''; return wide"
    assert page.driver.execute_script(excess) <= 0, "the picture of the arrows is never wider than its columns"
    page.size(1100)
    page.wait(lambda: page.driver.execute_script(ends) < 4, "the arrow has moved with its columns")
    page.size(500)
    page.wait(lambda: not page.all(".arrows"), "columns below each other have none; the text says it")


def test_a_script_of_redis_has_its_keys_and_arguments_in_place(at):
    page = at("redis-fenced s=1 q=1,1 A>read")
    taken = requests(page, "A")[0]
    assert taken.startswith("script: if redis.call('EXISTS', 'product:1') == 1 then return 0 end") and "KEYS[" not in taken


def test_the_comparison_is_chosen_in_the_map(at):
    page = at("read-write s=1 q=1,1 A>read B>read")
    page.find("beside-open").send_keys(Keys.ENTER)
    page.wait(lambda: focused(page).get_attribute("data-strategy") == "read-write", "the focus is in the map")
    assert "read-write is the strategy that you compare" in page.text("strategy-problem") and not page.find("strategy-apply").is_enabled()
    page.press("atomic-s")
    page.press(" ")
    page.wait(lambda: page.text("strategy-apply") == "Compare with atomic-statement", "a comparison is offered")
    page.keep("steps-map")
    assert not page.find("beside-stepper").is_displayed() and "&with" not in address(page) and address(page).endswith("A>read B>read"), "keys only select"
    page.driver.execute_script("document.getElementById('strategy-apply').focus()")
    page.press(Keys.ENTER)
    page.wait_text("beside-goal", "With atomic-statement")
    assert page.text("beside-open") == "Compare with atomic-statement" and focused(page).get_attribute("id") == "beside-open"
    page.press("1")
    page.wait(lambda: "A>write" in address(page) or "A>insert" in address(page), "A goes on")
    page.wait(lambda: page.all("#beside-lane-A"), "and so does the other")
    page.click("beside-end")
    page.wait(lambda: not page.find("beside-stepper").is_displayed() and "&with" not in address(page), "the comparison has ended")
    assert focused(page).get_attribute("id") == "beside-open" and page.text("beside-open") == "Compare with …"


def test_the_map_offers_what_can_be_stepped_through(at, shop):
    page = at("read-write s=1 q=1,1")
    page.click("strategy-open")
    page.wait(lambda: page.all("#strategy-dialog[open]"), "the map is open")
    named = sorted(tile.get_attribute("data-strategy") for tile in page.all("#strategy-map [role=option]"))
    assert named == sorted(row["name"] for row in shop.get("/strategies").json["strategies"] if row["explorable"])
    assert page.low_contrast() == [] and page.unnamed() == []


@pytest.mark.long
@pytest.mark.parametrize("width", [320, 760, 1024, 1280, 1920])
def test_nothing_is_cut_off(at, width):
    page = at("select-for-update s=1 q=1,1 A>write B>read~&with=read-write")
    page.size(width)
    page.wait(lambda: page.all("#beside-lane-A"), "both stand there")
    assert page.overflows() <= 0
    wide = page.driver.execute_script(
        "return [...document.querySelectorAll('.card, .sent li, .versions')].filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1).map((e) => e.className)"
    )
    assert wide == []
