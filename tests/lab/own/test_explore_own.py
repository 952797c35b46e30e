"""`loadtest explore shop.json`: every schedule of two requests to a service of a user, through the gate in front of PostgreSQL."""

import json
import os
import subprocess

import pytest

from basics import BUILD, ROOT
from lab import PATIENCE
from length import short_only
from test_check import MODULES, sample_needs

SAMPLES = ROOT / "samples" / "own"
SAMPLE = SAMPLES / "python" / "shop.json"
LANGUAGES = ["python", "node", "java"]


def explore(protection, *options, pool=10, description=SAMPLE):
    command = [BUILD / "loadtest", "explore", description, "--env", f"PROTECTION={protection}", "--env", f"POOL={pool}", *map(str, options)]
    env = {"NODE_PATH": MODULES} | os.environ
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=240 * PATIENCE, check=False)


def result(*arguments, **settings):
    ran = explore(*arguments, "--format", "json", **settings)
    assert ran.returncode in (0, 1), ran.stderr
    found = json.loads(ran.stdout)
    assert found["complete"] and found["coverage"] == 1, found
    assert ran.returncode == int(found["verdict"] != "clean"), found
    return found


@pytest.mark.parametrize("pool", short_only([2], [0, 2, 10]))
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_service_that_oversells(language, pool):
    """Python sends simple queries, Node the extended protocol, and Java BEGIN together with the first statement, and rows in binary."""
    sample_needs(language)
    found = result("naive", pool=pool, description=SAMPLES / language / "shop.json")
    shown = found["counterexample"]
    assert found["verdict"] == "oversold" and shown["reproduced"] == 10, found
    assert (shown["sold"], shown["left"], shown["switches"]) == (2, 0, 2), shown
    assert shown["schedule"] == "A>1 B>end A>end", shown
    reads = [step["answer"] for step in shown["steps"] if step["text"].startswith("SELECT")]
    assert reads == ["1", "1"], "both have read the same stock"
    books = [(step["stock"], step["sold"]) for step in shown["steps"] if "sold" in step]
    assert books == [(0, 1), (0, 2)], shown


@pytest.mark.parametrize("protection", short_only(["for-update"], ["for-update", "statement", "decrement"]))
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_service_whose_database_protects_the_stock(language, protection):
    sample_needs(language)
    found = result(protection, description=SAMPLES / language / "shop.json")
    assert found["verdict"] == "clean" and found["counterexample"] is None, found


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_lock_in_the_process_protects_one_instance_only(language):
    sample_needs(language)
    description = SAMPLES / language / "shop.json"
    assert result("synchronized", description=description)["verdict"] == "clean"
    found = result("synchronized", "--instances", 2, description=description)
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
