"""A long sale, cut short: what the service keeps of it, its books, and how it is gone on with."""

import json
import signal
import urllib.request

import pytest
from length import short_only
from test_loadtest import loadtest, nothing_is_left_of, rows
from test_rush import Sale


def soak(*arguments, status=0):
    ran = loadtest("soak", *arguments, "--format", "json")
    assert ran.returncode == status, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.long
def test_every_safe_strategy_for_a_while():
    document = soak("--orders", "1600")
    assert len(rows(document)) >= 16 and {row["guarantee"] for row in document["rows"]} == {"safe"}
    for row in document["rows"]:
        assert row["verdict"] == "ok", row
        assert row["orders"] >= 1600 / len(document["rows"]) and row["slices"] >= 2, row
        assert (row["oversold"], row["drift"], row["negative"], row["mismatched"]) == (0, 0, 0, 0), row
        assert row["memory_flat"] and row["files_kept"] and row["books_balanced"], row
        assert row["memory_start_kib"] > 1000 and row["files_start"] > 10, row


@pytest.mark.long
def test_books_that_do_not_balance_are_seen():
    """A strategy that is not safe fails, as a safe one would."""
    document = soak("--strategies", "read-write", "--orders", "2000", status=1)
    row = document["rows"][0]
    assert (row["verdict"], row["books_balanced"]) == ("broken", False), row
    assert row["oversold"] > 0 or row["drift"] != 0, row


@pytest.mark.long
def test_what_is_done_is_not_done_again(tmp_path):
    path = tmp_path / "soak.json"
    order = ("--strategies", "atomic-statement,batched", "--orders", "1000", "--resume", path)
    first = soak(*order)
    assert json.loads(path.read_text())["rows"] == first["rows"]
    half = {**first, "rows": first["rows"][:1]}
    path.write_text(json.dumps(half))
    again = soak(*order)
    assert again["rows"][0] == first["rows"][0] and again["rows"][1]["strategy"] == "batched"
    assert again["rows"][1] != first["rows"][1], "measured again"
    other = loadtest("soak", "--orders", "2000", "--resume", path)
    assert other.returncode == 2 and "other settings" in other.stderr, other.stderr
    table = loadtest("report", path, "--format", "table")
    assert table.returncode == 0 and "every audit is correct" in table.stdout, table.stdout + table.stderr


@pytest.mark.long
@pytest.mark.parametrize("resumed", short_only([True], [False, True]))
def test_what_came_before_its_end_is_not_lost(tmp_path, resumed):
    """Without --resume it is told; with it, it is kept, and does not take the place of a whole result."""
    kept, exported = tmp_path / "soak.json", tmp_path / "result.json"
    more = ("--resume", kept) if resumed else ()
    with Sale(
        "soak", "--strategies", "atomic-statement,batched", "--orders", "20000", "--export-json", exported, *more
    ) as sale:
        _, url = sale.wait_for("service", sale.find_service)

        def strategy():
            with urllib.request.urlopen(f"{url}/strategy", timeout=60) as reply:
                return json.load(reply)["name"]

        sale.wait_for("second strategy", lambda: strategy() == "batched")
        sale.process.send_signal(signal.SIGINT)
        out, errors = sale.process.communicate(timeout=300)
        assert sale.process.returncode == 128 + signal.SIGINT, out + errors
        nothing_is_left_of(sale.process.pid)
    assert bool(out) == exported.exists() == (not resumed), out + errors
    document = json.loads(kept.read_text() if resumed else out)
    assert [(row["strategy"], row["orders"]) for row in document["rows"]] == [("atomic-statement", 10000)]


@pytest.mark.parametrize("arguments", [["--orders", "0"], ["--strategies", "hope"], ["--resume", "/nowhere/at/all"]])
def test_a_wrong_command_line(arguments):
    ran = loadtest("soak", *arguments, seconds=300)
    assert ran.returncode == 2 and ran.stderr, ran.stderr
