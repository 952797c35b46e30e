"""What a service, its answers and its statements contain cannot control the terminal: the commands spell it."""

import json

import pytest

from explored import explore, served
from test_check import sample_needs
from test_loadtest import loadtest

CONTROLS = set("\033\x9b\b\a")
# The first order is sold; the others are sent to an address that, like the log and the statements, contains escape sequences.
SERVICE = r'''
import os, sys
import psycopg2

print("\033[31mlog\x9b2J\033]0;title\a", file=sys.stderr, flush=True)
if os.environ.get("PROTECTION") == "ends":
    sys.exit(1)


def sell(way):
    with psycopg2.connect(os.environ["DATABASE_URL"]) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count, chr(155) || chr(27) || '[2J\x9b' FROM product WHERE id = 1")
        sells = cursor.fetchone()[0] > 0
        if sells:
            cursor.execute("UPDATE product SET count = count - 1 WHERE id = 1")
            cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (1, 1)")
    connection.close()
    return (201, {}) if sells else (302, {"Location": "/\x1b[2J\xc2\x9b"})
'''


@pytest.fixture
def shop(tmp_path):
    sample_needs("python")
    return served(tmp_path, SERVICE)


def assert_spelled(ran, spelled):
    printed = ran.stdout + ran.stderr
    assert not set(printed) & CONTROLS, printed
    assert spelled in printed, printed


@pytest.mark.long
@pytest.mark.parametrize("form", ["table", "markdown"])
def test_statements_and_answers_of_a_service(shop, form):
    assert_spelled(explore(shop, "none", "--format", form), "\\u009B")


@pytest.mark.long
def test_answers_of_a_loaded_service(shop):
    assert_spelled(loadtest("check", shop, "--requests", "20", "--stock", "5", "--env", "PROTECTION=none"), "\\x1B[2J\\u009B")


def test_the_log_of_a_service(shop):
    assert_spelled(explore(shop, "ends"), "\\x1B[31mlog")


def test_json_has_the_texts_as_they_are(shop):
    found = json.loads(explore(shop, "none", "--format", "json").stdout)
    assert any("\x9b" in step["text"] for step in found["counterexample"]["steps"]), found


@pytest.mark.parametrize("words", [["explore", "{}"], ["explore", "--{}"], ["explore", "--format", "{}", "a.json"], ["{}"], ["check", "--stock", "{}", "a.json"],
                                   ["report", "{}"], ["compare", "--strategies", "{}"], ["compare", "--phases", "{}"], ["faults", "--faults", "{}"]])  # fmt: skip
def test_words_of_the_command_line(words):
    ran = loadtest(*[word.format("\033[31m") for word in words])
    assert ran.returncode == 2 and r"\x1B[31m" in ran.stderr and not CONTROLS & set(ran.stderr), ran.stderr
