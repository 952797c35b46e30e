"""Reports as a person gets them: one file, opened from disk in a browser, on a phone, on a screen and on paper."""

import base64
import json
import re
import subprocess

import pytest
from browser import Browser
from lab import ROOT

LOADTEST = ROOT / "build/loadtest"
RESULTS = ROOT / "docs/results"
KINDS = ("compare", "explore-none", "explore-expire", "bench", "soak", "growth")

# Texts of drawings that are cut off, that cover each other, or that are turned.
DRAWN_BADLY = """
const found = [];
for (const svg of document.querySelectorAll("svg")) {
  if (!svg.checkVisibility()) continue;
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim());
  const boxes = texts.map((t) => t.getBoundingClientRect());
  texts.forEach((text, i) => {
    const a = boxes[i], words = text.textContent.trim();
    if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
      found.push(`cut off: ${words}`);
    if (Math.abs(text.getScreenCTM().b) > 0.01) found.push(`turned: ${words}`);
    for (let j = 0; j < i; j++) {
      const b = boxes[j];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) found.push(`${words} covers ${texts[j].textContent.trim()}`);
    }
  });
}
return found;
"""

# Texts that are wider than the box they stand in.
SPILLS = """
return [...document.querySelectorAll("h1, p, li, td, th, dd, dt, pre, summary, figcaption, button")]
  .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)
  .map((e) => `${e.tagName}: ${e.textContent.trim().slice(0, 60)}`);
"""


# Names as long as the longest of ours, and values of every size.
NAMES = [f"{name}-{i}" for i, name in enumerate(("redis-lock-early-relea", "x", "mutex-per-product") * 5)]


def made_compare():
    """A comparison of many strategies, half of which oversold, with their sales over time."""
    document = json.loads((RESULTS / "compare.json").read_text())
    rows = document["rows"][: len(NAMES)]
    for i, (row, name) in enumerate(zip(rows, NAMES)):
        sold = [(j + 1) * (10 ** (i % 4)) for j in range(40)]
        row |= {
            "strategy": name, "oversold": max(0, sold[-1] - 100), "sold": sold[-1], "orders_per_s": 3.7 ** (i + 1),
            "kept": {"stock": True, "books": True, "answers": True},
            "latency_ms": {"p50": 0.01 * 4**i, "p90": 0.02 * 4**i, "p99": 0.5 * 4**i, "max": 4.0**i},
            "sale": {"slot_ms": 2.0 ** (i - 4), "sold": sold, "left": [None if j % 3 else 100 - j for j in range(40)]},
        }  # fmt: skip
    return document | {"rows": rows}


def made_rush():
    """A rush under strategies from fast to hopeless; one has no closed loop, and one never answered."""
    rows = []
    shares = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9995, 0.9999, 1.0)
    for i, name in enumerate(NAMES[:6]):
        unit = 0.004 * 20**i
        arrived = [(j + 1) * 7**i for j in range(70)]
        answered = [0 if i == 5 else count - j % 7 * 7 ** (i - 1) for j, count in enumerate(arrived)]
        curve = [
            {"share": share, "open_ms": None if i == 5 else unit * (j + 1), "closed_ms": unit if i % 2 and j < 7 else None}
            for j, share in enumerate(shares)
        ]
        rows.append({
            "strategy": name, "guarantee": "safe", "verdict": "ok", "arrivals": arrived[-1], "answered": int(answered[-1]),
            "latency_ms": {key: None if i == 5 else unit * factor for key, factor in (("p50", 1), ("p90", 2), ("p99", 9), ("max", 99))},
            "curve": curve,
            "over_time": {"slot_ms": 50.0 * 3**i, "arrived": arrived, "answered": answered,
                          "waiting": [a - int(b) for a, b in zip(arrived, answered)]},
        })  # fmt: skip
    settings = {"rate": 800, "shape": "flat", "duration_ms": 5000, "connections": 100, "products": 1, "instances": 1}
    return {"version": 1, "kind": "rush", "at": "2026-11-24T00:00:00Z", "settings": settings, "rows": rows}


def made_faults():
    """Many faults, of which one breaks a promise, with cycles from short to long."""
    rows = []
    for i, fault in enumerate(("kill", "postgres-immediate", "redis-failover", "clock-jump", "network", "disk-full", "pause", "reset-beside")):
        for j, name in enumerate(NAMES[:7]):
            verdict = "unavailable" if (i + j) % 5 == 4 else "broken" if (i, j) == (1, 2) else "caught-as-expected" if j == 3 else "ok"
            cycles = [
                {"outage_ms": 7**k % (10**i + 1), "recovery_ms": 3**k % (10**i + 1), "acknowledged": k, "refused": k * j, "lost": int(verdict == "broken"), "oversold": 0}
                for k in range(12)
            ]  # fmt: skip
            row = {"fault": fault, "strategy": name, "verdict": verdict, "cycles": 12, "acknowledged": 100, "lost": 12 * int(verdict == "broken")}
            if verdict == "unavailable":
                row |= {"reason": "etcd was not tried: ETCD_ENDPOINTS is not set", "cycles": 0}
            else:
                row |= {"each_cycle": cycles, "longest_outage_ms": max(cycle["outage_ms"] for cycle in cycles)}
            rows.append(row)
    return {"version": 1, "kind": "faults", "at": "2026-11-24T00:00:00Z", "settings": {"seed": 1}, "faults": [], "rows": rows}


def made_soak():
    """Long sales; one strategy was not available."""
    rows = [{"strategy": NAMES[0], "verdict": "unavailable", "reason": "no server"}]
    for i, name in enumerate(NAMES[1:5]):
        points = [{"orders": (k + 1) * 10 ** (i + 2), "memory_kib": 5000 + k, "orders_per_s": 9.5**i, "p99_ms": None if i == 1 else 0.3 * 30**i} for k in range(64)]
        rows.append({"strategy": name, "verdict": "ok", "orders": 64 * 10 ** (i + 2), "memory_start_kib": 5000, "memory_end_kib": 5063,
                     "growth_allowed_kib": 4100 * 9**i, "over_orders": points, "memory_flat": True})  # fmt: skip
    return {"version": 1, "kind": "soak", "at": "2026-11-24T00:00:00Z", "settings": {"connections": 32, "slice": 100}, "rows": rows}


MADE = {"made-soak": made_soak, "made-compare": made_compare, "made-rush": made_rush, "made-faults": made_faults}


def report(*arguments):
    return subprocess.run([LOADTEST, "report", *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def browser(folder):
    started = Browser(folder)
    started.shots = "report-"
    yield started
    started.quit()


@pytest.fixture(scope="module")
def reports(folder):
    """Each stored result as a report: its path by name."""
    made = {}
    for kind in (*KINDS, *MADE):
        path = folder / f"{kind}.html"
        source = RESULTS / f"{kind}.json"
        if kind in MADE:
            source = folder / f"{kind}.json"
            source.write_text(json.dumps(MADE[kind]()))
        ran = report(source, "--format", "csv", "--output", "/dev/null", "--export-html", path)
        assert ran.returncode == 0, ran.stderr
        made[kind] = path
    return made


def check_looks(browser, path, scheme, width):
    browser.set_scheme(scheme)
    browser.size(width, phone=width < 600)
    browser.driver.get(path.as_uri())
    for fold in browser.all("details"):
        browser.driver.execute_script("arguments[0].open = true", fold)
    assert browser.overflows() <= 0
    assert browser.low_contrast() == []
    assert browser.too_small() == []
    assert browser.unnamed() == []
    assert browser.driver.execute_script(SPILLS) == []
    assert browser.driver.execute_script(DRAWN_BADLY) == []
    assert browser.driver.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    assert browser.complaints() == []


@pytest.mark.parametrize("scheme", ("light", "dark"))
@pytest.mark.parametrize("width", (390, 1280))
@pytest.mark.parametrize("kind", (*KINDS, *MADE))
def test_a_report_is_readable(browser, reports, kind, width, scheme):
    check_looks(browser, reports[kind], scheme, width)


@pytest.mark.parametrize("kind", (*KINDS, *MADE))
def test_a_report_is_one_small_file(reports, kind):
    text = reports[kind].read_text()
    assert len(text.encode()) < 1_000_000
    assert not re.search(r"""(src|href)=["']?(https?:)?//|url\(|@import""", text)


@pytest.mark.parametrize(
    "kind, finding",
    (
        ("compare", r"^read-write sold 400 of 100; redis-stock held at [\d,]+ orders/s\.$"),
        ("explore-none", r"^[a-z-]+ oversold in \d+ of \d+ schedules; \d+ strategies never did\.$"),
        ("bench", r"^\d+ of \d+ goals reached; missed: "),
        ("soak", r"^[\d,]+ orders under \d+ strategies\. Memory is flat"),
        ("growth", r"^atomic-statement reaches [\d,]+ orders/s, with \d+ "),
    ),
)
def test_the_headline_says_what_was_found(browser, reports, kind, finding):
    browser.driver.get(reports[kind].as_uri())
    assert re.search(finding, browser.all("h1")[0].text), browser.all("h1")[0].text


@pytest.mark.parametrize("kind", ("compare", "made-compare", "made-rush"))
def test_every_picture_has_its_numbers(browser, reports, kind):
    browser.driver.get(reports[kind].as_uri())
    figures = browser.all("figure")
    assert len(figures) >= 3
    for figure in figures:
        script = "const [f] = arguments; return [f.querySelectorAll('.drawing svg').length, f.querySelectorAll('.data tbody tr').length]"
        drawings, rows = browser.driver.execute_script(script, figure)
        assert drawings == 1 or "no answer" in figure.text or "given" in figure.text or rows > 0, figure.text
        assert rows > 0, figure.text


def test_an_exploration_shows_its_shares_and_its_counterexamples_as_lanes(browser, reports):
    browser.driver.get(reports["explore-none"].as_uri())
    script = """
    const row = [...document.querySelectorAll(".matrix tbody tr")].find((row) => row.cells[0].textContent === "read-write");
    const lanes = [...document.querySelectorAll(".lanes")][0];
    return [[...row.cells].map((cell) => cell.textContent), [...lanes.rows].map((row) => [...row.cells].map((cell) => cell.textContent))];
    """
    row, lanes = browser.driver.execute_script(script)
    assert row == ["read-write", "24", "92 %", "92 %", "0", "0", "0"]
    assert lanes[0] == ["A", "stock", "B"]
    assert lanes[1:6] == [["read 1", "1", ""], ["", "1", "read 1"], ["", "1", "write 0"], ["", "1", "insert"], ["", "0", "commit"]]
    assert lanes[-1] == ["created", "0", ""]


def test_faults_are_a_matrix_and_cycles_have_bars(browser, reports):
    browser.driver.get(reports["made-faults"].as_uri())
    assert browser.all("h1")[0].text == f"{NAMES[2]} under the fault postgres-immediate is not as expected (broken)."
    script = "return [...document.querySelectorAll('.matrix tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    cells = browser.driver.execute_script(script)
    assert cells[2][:3] == [NAMES[2], "✓", "! broken"] and cells[3][1] == "✗ flaw" and cells[4][1] == "–", cells
    spans = "return [...document.querySelectorAll('.spans')].map((table) => [table.querySelectorAll('tbody th').length, table.querySelectorAll('svg').length])"
    assert browser.driver.execute_script(spans) == [[12, 12]] * 12
    assert "postgres-immediate" in browser.all("figure h3")[1].text  # what was lost comes first


def changed_compare():
    """The stored comparison, after a change that made one strategy slower and another faster, and broke a third."""
    document = json.loads((RESULTS / "compare.json").read_text())
    by_name = {row["strategy"]: row for row in document["rows"]}
    for name, factor in (("select-for-update", 0.5), ("batched", 2)):
        by_name[name]["orders_per_s"] *= factor
        by_name[name]["orders_per_s_spread"] = {key: value * factor for key, value in by_name[name]["orders_per_s_spread"].items()}
    by_name["optimistic"]["orders_per_s"] *= 0.999  # within the spread
    by_name["mutex"]["verdict"] = "broken"
    document["rows"].remove(by_name["etcd"])
    document["settings"]["connections"] = 32
    return document


def test_two_results_are_compared_by_the_spread_of_their_runs(browser, folder):
    (folder / "after.json").write_text(json.dumps(changed_compare()))
    ran = report(RESULTS / "compare.json", folder / "after.json", "--format", "json", "--export-html", folder / "history.html")
    assert ran.returncode == 0, ran.stderr
    rows = {(row["row"], row["figure"]): row["assessment"] for row in json.loads(ran.stdout)["rows"]}
    assert rows["select-for-update", "orders/s"] == "worse" and rows["batched", "orders/s"] == "better"
    assert rows["optimistic", "orders/s"] == "within the spread" and rows["redis-lock", "orders/s"] == "the same"
    assert rows["mutex", "verdict"] == "changed" and rows["etcd", "orders/s"] == "only in one result"
    assert list(rows.values())[:4].count("the same") == 1  # those that differ come first: three of them
    for scheme, width in (("light", 390), ("dark", 1280)):
        check_looks(browser, folder / "history.html", scheme, width)
    assert browser.all("h1")[0].text.startswith("3 of 141 figures differ beyond the spread: mutex changed (verdict), select-for-update worse by 50 %")
    assert "different settings: connections" in browser.all(".warnings")[0].text


@pytest.mark.parametrize(
    "files, says",
    (
        (("compare.json", "bench.json"), "compare results of the same command"),
        (("peers.json",), "results of the kind 'peers' cannot be printed"),
        (("compare.svg",), "is not JSON"),
        (("nothing.json",), "cannot open .*nothing.json: No such file"),
        (("../shop.schema.json",), "it has no 'version'"),
    ),
)
def test_a_file_that_is_no_result_is_named_in_a_sentence(files, says):
    ran = report(*(RESULTS / file for file in files), "--format", "html")
    assert ran.returncode in (2, 3) and ran.stdout == "", ran.stdout
    assert len(ran.stderr.splitlines()) == 1 and re.search(says, ran.stderr), ran.stderr


def test_a_result_of_another_version_is_named_in_a_sentence(folder):
    (folder / "old.json").write_text('{"version": 7, "kind": "compare", "rows": []}')
    ran = report(folder / "old.json")
    assert ran.returncode == 2 and re.search("another version of loadtest .format 7; this one reads 1.: run the command again", ran.stderr)


def column(browser, name):
    """The texts of a column of the first table."""
    table = browser.all("table.key")[0]
    script = """
    const [table, name] = arguments, heads = [...table.tHead.rows[0].cells].map((c) => c.textContent.trim());
    return [...table.tBodies[0].rows].map((row) => row.cells[heads.indexOf(name)].textContent.trim());
    """
    return browser.driver.execute_script(script, table, name)


def test_the_columns_that_matter_are_there_and_are_sorted_by_a_click(browser, reports):
    browser.size(1280)
    browser.driver.get(reports["compare"].as_uri())
    heads = [head.text.strip(" ↕") for head in browser.all("table.key thead th")]
    assert heads == ["strategy", "verdict", "oversold", "breaks when", "orders /s", "p99 ms"]
    rates = lambda: [float(text.replace(",", "")) for text in column(browser, "orders /s")]  # noqa: E731
    unsorted = rates()
    browser.click("table.key thead th:nth-child(5) button")
    assert rates() == sorted(unsorted, reverse=True)
    browser.click("table.key thead th:nth-child(5) button")
    assert rates() == sorted(unsorted)
    browser.click("table.key thead th:nth-child(1) button")
    assert column(browser, "strategy")[0] == "advisory-lock"


def test_a_result_keeps_the_command_that_repeats_it(browser, folder):
    """Without the options that say where it goes, and quoted as a shell reads it."""
    document = json.loads((RESULTS / "compare.json").read_text())
    document["command"] = "build/loadtest compare --strategies 'a b'"
    (folder / "with.json").write_text(json.dumps(document))
    assert report(folder / "with.json", "--format", "html", "--output", folder / "with.html").returncode == 0
    browser.driver.get((folder / "with.html").as_uri())
    assert browser.text("command") == "build/loadtest compare --strategies 'a b'"
    browser.click("button.copy")
    browser.wait(lambda: browser.all("button.copy")[0].text in ("Copied", "Press Ctrl+C"), "the button says what it did")


def test_a_report_is_printed_in_black_on_white(browser, reports):
    """Also by a reader whose screen is dark: the PDF is made of the page as it is printed."""
    browser.set_scheme("dark")
    browser.driver.get(reports["compare"].as_uri())
    browser.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    try:
        assert browser.ground() == "rgb(255, 255, 255)"
        assert browser.low_contrast() == []
        printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        assert base64.b64decode(printed["data"]).startswith(b"%PDF")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
