"""`loadtest explore shop.json`: every schedule of two requests to a service of a user, through the gate in front of PostgreSQL."""

import json
import subprocess

import pytest

from basics import BUILD, ROOT
from lab import PATIENCE

SAMPLE = ROOT / "samples" / "own" / "python" / "shop.json"


def explore(protection, *options, pool=10, description=SAMPLE):
    command = [BUILD / "loadtest", "explore", description, "--env", f"PROTECTION={protection}", "--env", f"POOL={pool}", *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240 * PATIENCE, check=False)


def result(*arguments, **settings):
    ran = explore(*arguments, "--format", "json", **settings)
    assert ran.returncode in (0, 1), ran.stderr
    found = json.loads(ran.stdout)
    assert found["complete"] and found["coverage"] == 1, found
    assert ran.returncode == int(found["verdict"] != "clean"), found
    return found


@pytest.mark.parametrize("pool", [2, pytest.param(0, marks=pytest.mark.long)])
def test_a_service_that_oversells(pool):
    found = result("naive", pool=pool)
    shown = found["counterexample"]
    assert found["verdict"] == "oversold" and shown["reproduced"] == 10, found
    assert (shown["sold"], shown["left"], shown["switches"]) == (2, 0, 2), shown
    assert shown["schedule"] == "A>1 B>end A>end", shown
    reads = [step["answer"] for step in shown["steps"] if step["text"].startswith("SELECT")]
    assert reads == ["1", "1"], "both have read the same stock"
    books = [(step["stock"], step["sold"]) for step in shown["steps"] if "sold" in step]
    assert books == [(0, 1), (0, 2)], shown


@pytest.mark.parametrize("protection", ["for-update", *(pytest.param(name, marks=pytest.mark.long) for name in ("statement", "decrement"))])
def test_a_service_whose_database_protects_the_stock(protection):
    found = result(protection)
    assert found["verdict"] == "clean" and found["counterexample"] is None, found


@pytest.mark.long
def test_a_lock_in_the_process_protects_one_instance_only():
    assert result("synchronized")["verdict"] == "clean"
    found = result("synchronized", "--instances", 2)
    assert found["verdict"] == "oversold" and found["counterexample"]["reproduced"] == 10, found


@pytest.mark.long
def test_a_pool_of_one_connection_makes_the_requests_wait_in_the_program():
    assert result("naive", pool=1)["verdict"] == "clean"


def test_a_service_that_does_not_use_the_gate(tmp_path):
    shop = json.loads(SAMPLE.read_text(encoding="utf-8"))
    shop["start"] = ["/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", "{port}"]
    shop["ready"] = "http://127.0.0.1:{port}/"
    shop["schema"] = str(SAMPLE.parent.parent / "schema.sql")
    (tmp_path / "shop.json").write_text(json.dumps(shop), encoding="utf-8")
    ran = explore("naive", description=tmp_path / "shop.json")
    assert ran.returncode == 3 and "no statement has come through the gate" in ran.stderr, ran.stderr
