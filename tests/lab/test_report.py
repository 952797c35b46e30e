"""Reports as a person gets them: one file, opened from disk in a browser, on a phone, on a screen and on paper."""

import json
import re
import subprocess

import pytest
from browser import SHOTS, Browser
from firefox import Firefox
from lab import ROOT
from length import short_only
from looks import LOOKS, check_looks

LOADTEST = ROOT / "build/loadtest"
RESULTS = ROOT / "docs/results"
KINDS = ("compare", "explore-none", "explore-expire", "bench", "soak", "growth")

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
                {"outage_ms": 7**k % (10**i + 1), "recovery_ms": 3**k % (10**i + 1), "outage_from_ms": k * 10, "repaired_ms": 5**k % (10**i + 1),
                 "stuck": k == 7 or (i, j) == (2, 0), "acknowledged": k, "refused": k * j, "lost": int(verdict == "broken"), "oversold": 0}
                for k in range(20)
            ]  # fmt: skip
            row = {"fault": fault, "strategy": name, "verdict": verdict, "cycles": 20, "acknowledged": 100, "lost": 20 * int(verdict == "broken")}
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


def made_check():
    """Runs of somebody's service, from one that sold nothing to one that oversold."""
    rows = []
    for i in range(5):
        times = {"p50": None, "p99": None} if i == 0 else {"p50": 0.02 * 30**i, "p99": 0.9 * 30**i}
        rows.append({"run": i + 1, "sold": i * 60, "left": max(0, 100 - i * 60), "oversold": max(0, i * 60 - 100), "drift": 0, "lost": 0,
                     "orders_per_s": 0.7 * 40**i, "latency_ms": times, "statuses": "201 × 10", "verdict": "oversold" if i > 1 else "clean"})  # fmt: skip
    settings = {"file": "shop.json", "stock": 100, "requests": 400, "units": 1, "connections": 16, "instances": 1}
    return {"version": 1, "kind": "check", "at": "2026-11-24T00:00:00Z", "settings": settings, "rows": rows}


def made_own():
    """A schedule of somebody's service, with long statements."""
    statement = "SELECT stock, reserved_until FROM product_stock_in_warehouses WHERE product_identifier = $1 FOR NO KEY UPDATE"
    steps = [
        {"actor": "AB"[i % 2], "text": statement if i < 4 else "COMMIT", "answer": "1", "waits": i == 3, "waits_for": ["A"] if i == 3 else []}
        | ({"stock": 0, "sold": i - 3} if i > 3 else {})
        for i in range(6)
    ]
    schedule = {"schedule": "A>1 B>end A>end", "verdict": "oversold", "cause": "A and B read the same stock.", "sold": 2, "left": 0,
                "answers": [201, 201], "steps": steps, "reproduced": 10, "replays": 10, "switches": 2}  # fmt: skip
    settings = {"file": "shop.json", "stock": 1, "requests": 2, "instances": 1, "replay": None, "faults": "none"}
    return {"version": 1, "kind": "explore-own", "at": "2026-11-24T00:00:00Z", "settings": settings, "schedules": 6, "coverage": 1.0, "complete": True,
            "deadlocks": 0, "differed": 0, "quiet_ms": 100, "seconds": 1.5, "warnings": [], "counterexample": schedule, "counterexamples": [schedule],
            "rows": [{"verdict": "oversold", "schedules": 4, "share": 0.667, "schedule": "A>1 B>end A>end"},
                     {"verdict": "clean", "schedules": 2, "share": 0.333, "schedule": "A>end B>end"}]}  # fmt: skip


MADE = {"made-soak": made_soak, "made-compare": made_compare, "made-rush": made_rush, "made-faults": made_faults, "made-check": made_check, "made-own": made_own}
# Results that one report puts together.
TOGETHER = {"matrix": sorted(path.stem for path in RESULTS.glob("explore-*.json"))}
ALL = (*KINDS, *MADE, *TOGETHER)


def report(*arguments):
    return subprocess.run([LOADTEST, "report", *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module", params=(Browser, Firefox), ids=("chromium", "firefox"))
def browser(request, folder):
    started = request.param(folder)
    started.shots = f"report-{request.param.__name__.lower().replace('browser', 'chromium')}-"
    yield started
    started.quit()


@pytest.fixture(scope="module")
def reports(folder):
    """Each stored result as a report: its path by name."""
    made = {}
    for kind in ALL:
        path = folder / f"{kind}.html"
        sources = [RESULTS / f"{name}.json" for name in TOGETHER.get(kind, (kind,))]
        if kind in MADE:
            sources = [folder / f"{kind}.json"]
            sources[0].write_text(json.dumps(MADE[kind]()))
        ran = report(*sources, "--format", "csv", "--output", "/dev/null", "--export-html", path)
        assert ran.returncode == 0 and ran.stderr == "", ran.stderr
        made[kind] = path
    return made


@pytest.mark.long
@pytest.mark.parametrize("look", short_only(LOOKS[:1], LOOKS), ids=lambda look: f"{look[0]}-{look[1]}")
@pytest.mark.parametrize("kind", ALL)
def test_a_report_is_readable(browser, reports, kind, look):
    width, scheme = look
    check_looks(browser, reports[kind], scheme, width)


@pytest.mark.parametrize("kind", ALL)
def test_a_report_is_one_small_file(reports, kind):
    text = reports[kind].read_text()
    assert len(text.encode()) < 1_000_000
    assert not re.search(r"""(src|href)=["']?(https?:)?//|url\(|@import""", text)


@pytest.mark.parametrize(
    "kind, finding",
    (
        ("compare", r"^read-write sold 400 of 100; batched held at [\d,]+ orders/s, each in PostgreSQL before its answer; "
                    r"redis-stock answered [\d,]+ orders/s and wrote them later\.$"),
        ("explore-none", r"^[a-z-]+ oversold in \d+ of \d+ schedules; \d+ strategies never did\.$"),
        ("bench", r"^\d+ of \d+ goals reached; missed: "),
        ("soak", r"^[\d,]+ orders under \d+ strategies\. Memory is flat"),
        ("matrix", r"^\d+ of 47 strategies have bad schedules; \d+ have none, with any of these faults\.$"),
        ("made-check", r"^The service oversold in 3 of 5 runs: it sold up to 140 units beyond the stock of 100\.$"),
        ("made-own", r"^The service is NOT clean\.$"),
        ("growth", r"^atomic-statement reaches [\d,]+ orders/s, with \d+ "),
    ),
)
def test_the_headline_says_what_was_found(browser, reports, kind, finding):
    browser.driver.get(reports[kind].as_uri())
    assert re.search(finding, browser.all("h1")[0].text), browser.all("h1")[0].text


def test_a_rush_that_answers_from_memory_is_not_praised_without_a_word(folder):
    document = json.loads((RESULTS / "rush-share.json").read_text())
    fastest = min(document["rows"], key=lambda row: row["latency_ms"]["p99"])
    for outcome, says in (("created", r"ms with [a-z-]+\.$"), ("accepted", rf"\. {fastest['strategy']} answered before PostgreSQL had the orders\.$")):
        fastest["outcomes"][0]["outcome"] = outcome
        (folder / "early.json").write_text(json.dumps(document))
        headline = re.search("<h1[^>]*>(.*?)</h1>", report(folder / "early.json", "--format", "html").stdout)[1]
        assert re.search(says, headline), headline


@pytest.mark.parametrize("kind", ("compare", "growth", "bench", "made-compare", "made-rush", "made-check"))
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
    assert row[:2] == ["read-write", "92\u00a0%"] and row[-1] == "24"
    heads = [head.text for head in browser.all(".matrix thead th")]
    assert heads[0] == "strategy" and heads[-1] == "schedules"
    columns = browser.driver.execute_script("return [...document.querySelectorAll('.matrix tbody tr')].map((row) => [...row.cells].map((c) => c.textContent))")
    assert all(any(cells[i] not in ("0", "?") for cells in columns) for i in range(1, len(heads))), columns  # no empty column
    assert lanes[0] == ["A", "stock", "B"]
    assert lanes[1:6] == [["read 1", "1", ""], ["", "1", "read 1"], ["", "1", "write 0"], ["", "1", "insert"], ["", "0", "commit"]]
    assert lanes[-1] == ["created", "0", ""]


def test_explorations_with_different_faults_are_one_matrix(browser, reports):
    browser.driver.get(reports["matrix"].as_uri())
    script = "return [...document.querySelectorAll('.matrix tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    head, *rows = browser.driver.execute_script(script)
    assert head == ["strategy", "no fault", "orders of two", "crash", "expire"]
    cells = {row[0]: row[1:] for row in rows}
    assert len(cells) == 47
    # The table of docs/strategies.md says the same: 22 of 24 oversell, 244 of 472 lose units, 1,512 of 1,784.
    assert cells["read-write"][0] == "92\u00a0%" and cells["reentrant-mutex"][2] == "52\u00a0% units lost" and cells["lock-row"] == ["✓", "✓", "✓", "85\u00a0%"]
    assert cells["etcd"][2] == "✓" and cells["batched"] == ["–"] * 4
    assert cells["select-for-update"] == ["✓"] * 4, "all searches with faults are complete"
    lanes = [title.text for title in browser.all("figure h3")[1:]]
    assert len(lanes) == 12 and "lock-row, expire" in lanes and "read-write" in lanes, lanes


def test_explorations_with_the_same_faults_are_compared():
    ran = report(RESULTS / "explore-none.json", RESULTS / "explore-none.json", "--format", "json")
    assert ran.returncode == 0 and json.loads(ran.stdout)["kind"] == "history", ran.stderr


def test_a_schedule_of_a_users_service_is_drawn_as_lanes(browser, reports):
    browser.driver.get(reports["made-own"].as_uri())
    script = "return [...document.querySelectorAll('.lanes tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    lanes = browser.driver.execute_script(script)
    assert lanes[0] == ["A", "stock", "B"] and lanes[4][2].endswith("→ waits for A → 1"), lanes
    assert lanes[-1] == ["", "0", "COMMIT → 1"]


def test_faults_are_a_matrix_and_cycles_have_time_lines(browser, reports):
    browser.driver.get(reports["made-faults"].as_uri())
    assert browser.all("h1")[0].text == f"{NAMES[2]} under the fault postgres-immediate is not as expected (broken)."
    script = "return [...document.querySelectorAll('.matrix tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    cells = browser.driver.execute_script(script)
    assert cells[2][:3] == [NAMES[2], "✓", "! broken"] and cells[3][1] == "✗ flaw" and cells[4][1] == "–", cells
    assert "postgres-immediate" in browser.all("figure h3")[1].text  # what was lost comes first
    script = """
    return [...document.querySelectorAll("figure")].slice(1).map((figure) => {
      const texts = [...figure.querySelectorAll(".drawing text")].map((text) => text.textContent.trim());
      const marks = {};
      for (const use of figure.querySelectorAll(".drawing :not(defs) > use")) {
        const name = use.getAttribute("xlink:href");
        marks[name] = (marks[name] ?? 0) + 1;
      }
      const rows = figure.querySelectorAll(".data tbody tr");
      return [texts, marks, rows.length, rows[7].textContent];
    });
    """
    drawn = browser.driver.execute_script(script)
    assert len(drawn) == 12
    for texts, marks, rows, _ in drawn:
        assert texts[-1] == "seconds since the fault began" and rows == 20
        assert texts[20:-1] == drawn[0][0][20:-1], "another axis"
        # The start and the end of the fault are marked on each row. In one cycle no order followed.
        assert sorted(marks.values()) == [19, 20, 20], marks
    assert drawn[0][0][:2] == ["1, 1 lost", "2, 1 lost"] and drawn[1][0][:20] == [str(i + 1) for i in range(20)]
    assert drawn[1][3].startswith("80.00") and "–" in drawn[1][3], drawn[1][3]


def test_faults_of_an_earlier_version_have_no_time_lines(folder):
    document = made_faults()
    for row in document["rows"]:
        for cycle in row.get("each_cycle", ()):
            for key in ("outage_from_ms", "repaired_ms", "stuck"):
                del cycle[key]
    (folder / "earlier.json").write_text(json.dumps(document))
    ran = report(folder / "earlier.json", "--format", "html")
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr
    assert "<h2>Pictures</h2>" in ran.stdout and "What happened in each cycle" not in ran.stdout


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


@pytest.mark.long
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


def compared(folder, *documents):
    """The rows of a comparison by their names, and its page."""
    paths = [folder / f"compared-{i}.json" for i, _ in enumerate(documents)]
    for path, document in zip(paths, documents):
        path.write_text(json.dumps(document))
    ran = report(*paths, "--format", "json", "--export-html", folder / "compared.html")
    assert ran.returncode == 0, ran.stderr
    rows = {(row["row"], row["figure"]): row["assessment"] for row in json.loads(ran.stdout)["rows"]}
    return rows, re.search("<h1>(.*?)</h1>", (folder / "compared.html").read_text())[1]


def test_a_count_has_no_spread_so_each_difference_of_it_counts(folder):
    before = json.loads((RESULTS / "explore-none.json").read_text())
    after = json.loads((RESULTS / "explore-none.json").read_text())
    row = next(row for row in after["rows"] if row["strategy"] == "read-write")
    row["oversold"] -= 1
    row["schedules"] += 1
    rows, headline = compared(folder, before, after)
    assert rows["read-write", "oversold"] == "better" and rows["read-write", "schedules"] == "changed"
    assert headline.startswith("2 of ") and "read-write better by 4 % (oversold)" in headline
    rows, headline = compared(folder, before, after, before)  # what is back to where it was is not hidden
    assert rows["read-write", "oversold"] == "better in result 2"
    assert "read-write better in result 2 (oversold)" in headline


def test_a_headline_does_not_claim_a_spread_that_is_not_known(folder):
    before, after = made_rush(), made_rush()
    for row in after["rows"]:
        if row["latency_ms"]["p99"]:
            row["latency_ms"]["p99"] *= 100
    rows, headline = compared(folder, before, after)
    assert rows[NAMES[0], "p99 ms"] == "spread unknown"
    assert headline == "No figure differs by more than its spread. 5 figures have no stored spread."
    assert compared(folder, before, before)[1] == "No figure differs beyond the spread of the runs."


@pytest.mark.parametrize(
    "files, says",
    (
        (("compare.json", "bench.json"), "compare results of the same command"),
        (("peers.json",), "results of the kind 'peers' cannot be printed"),
        (("compare.svg",), "is not JSON"),
        (("nothing.json",), "cannot open .*nothing.json: No such file"),
        (("../shop.schema.json",), "it has no number 'version'"),
    ),
)
def test_a_file_that_is_no_result_is_named_in_a_sentence(files, says):
    ran = report(*(RESULTS / file for file in files), "--format", "html")
    assert ran.returncode in (2, 3) and ran.stdout == "", ran.stdout
    assert len(ran.stderr.splitlines()) == 1 and re.search(says, ran.stderr), ran.stderr


@pytest.mark.parametrize(
    "text, says",
    (
        ("", "damaged.json is empty"),
        ('{"version": 1,', "damaged.json is not JSON"),
        ("[]", "it has no number 'version'"),
        ('{"version": "1", "kind": "compare", "rows": []}', "it has no number 'version'"),
        ('{"version": 1, "rows": []}', "it has no 'kind'"),
        ('{"version": 1, "kind": "compare"}', "damaged: it has no array 'rows' of objects"),
        ('{"version": 1, "kind": "bench", "ratios": 7}', "damaged: it has no array 'ratios' of objects"),
        ('{"version": 1, "kind": "explore", "rows": [1, null, [2]]}', "damaged: it has no array 'rows' of objects"),
        (None, "cannot read .*: Is a directory"),
    ),
)
@pytest.mark.parametrize("others", ((), (RESULTS / "explore-none.json",)), ids=("alone", "with another"))
def test_a_damaged_file_is_named_in_a_sentence(tmp_path, text, says, others):
    damaged = tmp_path / "damaged.json"
    if text is None:
        damaged.mkdir()
    else:
        damaged.write_text(text)
    ran = report(*others, damaged, "--format", "html")
    assert ran.returncode == 2 and ran.stdout == "", ran.stdout
    assert len(ran.stderr.splitlines()) == 1 and re.search(says, ran.stderr), ran.stderr


def test_a_result_of_another_version_is_named_in_a_sentence(folder):
    (folder / "old.json").write_text('{"version": 7, "kind": "compare", "rows": []}')
    ran = report(folder / "old.json")
    assert ran.returncode == 2 and re.search("another version of loadtest .format 7; this one reads 1.: run the command again", ran.stderr)


def test_a_full_disk_is_one_sentence():
    with open("/dev/full", "w", encoding="utf-8") as full:
        ran = subprocess.run([LOADTEST, "report", RESULTS / "compare.json"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (3, "loadtest: cannot write the result: No space left on device\n")


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


@pytest.mark.parametrize("kind", ("compare", "explore-none", "made-rush"))
def test_a_report_is_printed_in_black_on_white(browser, reports, kind):
    """Also by a reader whose screen is dark: the PDF is made of the page as it is printed."""
    browser.driver.get(reports[kind].as_uri())
    with browser.on_paper("dark"):
        assert browser.ground() == "rgb(255, 255, 255)"
        assert browser.low_contrast(drawings=True) == []
        printed = browser.pdf()
    assert printed.startswith(b"%PDF")
    (SHOTS / f"{browser.shots}{kind}.pdf").write_bytes(printed)


# How many pages a report may need. A picture that does not fit on a page leaves much paper empty.
PAGES = {"compare": 4, "bench": 3, "growth": 2, "made-check": 2, "made-faults": 5, "made-rush": 3, "made-soak": 3, "soak": 2,
         "explore-none": 5, "matrix": 8}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("kind", PAGES)
def test_a_picture_fits_a_page(browser, reports, kind):
    browser.driver.get(reports[kind].as_uri())
    with browser.on_paper("light"):
        script = "return [...document.querySelectorAll('.drawing svg')].map((svg) => svg.getBoundingClientRect().height)"
        heights = browser.driver.execute_script(script)
        printed = browser.pdf()
    assert max(heights, default=0) < 255 / 25.4 * 96, heights
    if type(browser) is Browser:  # Firefox compresses the objects that would be counted
        assert 0 < len(re.findall(rb"/Type\s*/Page\b", printed)) <= PAGES[kind]


def test_paper_keeps_the_colours_of_cells_and_the_headings_of_columns(browser, reports):
    """A printer leaves out backgrounds, and a browser repeats the texts of a heading but not its buttons."""
    browser.driver.get(reports["matrix"].as_uri())
    with browser.on_paper("light"):
        script = "return [...arguments].map(([selector, key]) => getComputedStyle(document.querySelector(selector)).getPropertyValue(key))"
        styles = browser.driver.execute_script(script, (".matrix td", "print-color-adjust"), (".lanes td", "print-color-adjust"),
                                               (".key thead button", "display"))  # fmt: skip
    assert styles == ["exact", "exact", "contents"]


def test_a_picture_without_values_is_a_sentence(reports):
    """The report does not print a page of rows without values."""
    text = reports["made-soak"].read_text()
    assert text.count("There is nothing to draw.") == 1 and "<details open><summary>Numbers" not in text


@pytest.mark.parametrize("kind", ("explore-none", "explore-expire"))
def test_a_phone_shows_the_damage_without_scrolling(browser, reports, kind):
    browser.size(390, phone=True)
    browser.driver.get(reports[kind].as_uri())
    script = """
    const table = document.querySelector(".matrix"), pane = table.closest(".scroll").getBoundingClientRect();
    return [...table.tHead.rows[0].cells].filter((c) => c.getBoundingClientRect().right > pane.right + 1).map((c) => c.textContent);
    """
    assert browser.driver.execute_script(script) in ([], ["schedules"])


@pytest.mark.parametrize("kind", ("history", "matrix"))
def test_paper_has_the_rows_and_the_origin(browser, reports, folder, kind):
    """A printed report shows the rows that a page folds, because nobody can unfold paper."""
    path = reports.get(kind) or folder / "many.html"
    if kind == "history":
        assert report(RESULTS / "compare.json", RESULTS / "compare.json", "--format", "html", "--output", path).returncode == 0
    browser.driver.get(path.as_uri())
    with browser.on_paper("light"):
        browser.driver.execute_script("dispatchEvent(new Event('beforeprint'))")
        table = browser.all("table.key")[0]
        assert table.is_displayed() and len(table.text.splitlines()) > 60
        assert [summary.text for summary in browser.all(".origin summary") if summary.is_displayed()][0].startswith("Measured 20")


def test_a_fault_is_marked_in_a_counterexample(reports):
    """An expiry and a crash are what the explorer made happen; a read is not."""
    faults = re.findall(r'is-fault">([^<]*)', reports["matrix"].read_text())
    assert {"its lock ends", "dies"} <= set(faults), set(faults)
    assert not [fault for fault in faults if "read" in fault or "commit" in fault]


def test_a_limit_of_the_pictures_is_stated(reports):
    assert "<p class=\"quiet\">12 of 15 are drawn.</p>" in reports["made-compare"].read_text()
    assert re.search(r">12 of \d\d are drawn.<", reports["made-faults"].read_text())
    assert "are drawn" not in reports["made-rush"].read_text()  # all six are


def test_a_search_that_was_cut_short_does_not_say_0(folder):
    document = json.loads((RESULTS / "explore-none.json").read_text())
    row = next(row for row in document["rows"] if row["strategy"] == "select-for-update")
    row["complete"] = False
    (folder / "short.json").write_text(json.dumps(document))
    text = report(folder / "short.json", "--format", "html").stdout
    cells = re.search(r'<th scope="row">select-for-update</th>(.*?)</tr>', text)[1]
    assert ">?<" in cells and ">0<" not in cells, cells
    assert "?: no schedule that was run, but the search was not complete." in text


# ---- the pictures of the documents ------------------------------------------------------------------

DRAWINGS = sorted(RESULTS.glob("*.svg"))


def texts_of(svg):
    return re.findall(r"<text[^>]*>(?:<tspan[^>]*>)?([^<]*)", svg)


@pytest.mark.parametrize("scheme", ("light", "dark"))
@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda path: path.stem)
def test_a_drawing_of_the_documents_is_readable(browser, folder, drawing, scheme):
    """A code host shows it on a light or a dark page, with the colours that the browser asks for."""
    page = folder / f"drawing-{drawing.stem}.html"
    head = "<meta charset=utf-8><title>drawing</title><style>body { margin: 0; background: var(--card); }</style>"
    page.write_text(f"<!DOCTYPE html><html lang=en><head>{head}</head><body>{drawing.read_text()}</body></html>")
    check_looks(browser, page, scheme, 1280)
    assert drawing.stat().st_size < 300_000
    shown = [path for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) if f"results/{drawing.name})" in path.read_text()]
    assert shown, "no document shows it"


@pytest.mark.parametrize("name", [path.stem for path in DRAWINGS if path.with_suffix(".json").exists()])
def test_a_drawing_of_the_documents_is_that_of_its_result(name):
    ran = report(RESULTS / f"{name}.json", "--format", "svg")
    assert ran.returncode == 0, ran.stderr
    assert texts_of(ran.stdout) == texts_of((RESULTS / f"{name}.svg").read_text()), "make tables"
