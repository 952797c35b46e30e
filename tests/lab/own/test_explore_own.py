"""`loadtest explore shop.json`: every schedule of two requests to a service of a user, through the gate in front of PostgreSQL."""

import json
import os
import re
import subprocess

import pytest

from basics import BUILD, ROOT
from explored import extended
from lab import PATIENCE
from length import short_only
from test_check import MODULES, sample_needs

SAMPLES = ROOT / "samples" / "own"
SAMPLE = SAMPLES / "python" / "shop.json"
LANGUAGES = ["python", "node", "java"]

# Protections of the Python sample, in the place of its table.
SERVICES = '''
def one_more_read(product, quantity):
    """Naive: the statement before the read is harmless."""
    with transaction() as cursor:
        cursor.execute("SELECT 1 FROM order_item LIMIT 1")
    return read_and_write(product, quantity)


def insert_first(product, quantity):
    """Inserts the order, and takes it back if all orders together are more than the stock of one."""
    with transaction() as cursor:
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        cursor.execute("SELECT sum(quantity) FROM order_item WHERE product_id = %s", (product,))
        if cursor.fetchone()[0] > 1:
            cursor.connection.rollback()
            return False
    return True


def seldom_another(product, quantity):
    """Once, when the second schedule repeats steps of the first, it sends a statement more."""
    with transaction() as cursor:
        if next(REQUESTS) == 18:
            cursor.execute("SELECT version()")
    return decrement(product, quantity)


def works_at_times(product, quantity):
    """After the first requests, every other one works for longer than a request that waits may be silent."""
    until = time.thread_time() + (0.8 if next(REQUESTS) in range(14, 30, 2) else 0)
    while time.thread_time() < until:
        pass
    return decrement(product, quantity)


import itertools

def spins(product, quantity):
    """Waits for a lock of the process without a pause."""
    while not process_lock.acquire(blocking=False):
        pass
    try:
        return read_and_write(product, quantity)
    finally:
        process_lock.release()


def ping_first(product, quantity):
    """It looks whether its connection works, after it has asked a new one for something else."""
    connection = idle.get()
    try:
        if connection is None:
            connection = psycopg2.connect(os.environ["DATABASE_URL"])
            connection.autocommit = True
            connection.cursor().execute("SELECT 1 FROM product LIMIT 1")
            connection.cursor().execute("SET application_name = 'shop'")
        connection.autocommit = True
        connection.cursor().execute("SELECT 1 FROM order_item LIMIT 1")
        connection.autocommit = False
        with connection, connection.cursor() as cursor:
            cursor.execute("UPDATE product SET count = count - %s WHERE id = %s AND count >= %s", (quantity, product, quantity))
            sold = cursor.rowcount == 1
            if sold:
                cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
            return sold
    finally:
        idle.put(connection)


def sleeps_at_times(product, quantity):
    """As long, because another service is slow."""
    time.sleep(0.8 if next(REQUESTS) in range(14, 18) else 0)
    return decrement(product, quantity)


def thirty_statements(product, quantity, protected=True):
    """As a shop sends them: reads of tables that no order changes, entries of a log, and one row of the stock."""
    with transaction() as cursor:
        for page in range(10):
            cursor.execute("SELECT title FROM page WHERE number = %s", (page,))
            cursor.execute("SELECT rate FROM tax WHERE country = %s", (page,))
        for event in range(5):
            cursor.execute("INSERT INTO log (event) VALUES (%s)", (event,))
        if protected:
            cursor.execute("UPDATE product SET count = count - %s WHERE id = %s AND count >= %s", (quantity, product, quantity))
            left = cursor.rowcount
        else:
            cursor.execute("SELECT count FROM product WHERE id = %s", (product,))
            left = cursor.fetchone()[0]
            if left:
                cursor.execute("UPDATE product SET count = %s WHERE id = %s", (left - quantity, product))
        if left:
            cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        cursor.execute("SELECT title FROM page WHERE number = 1")
        cursor.execute("SELECT rate FROM tax WHERE country = 1")
        cursor.execute("INSERT INTO log (event) VALUES (9)")
        return left > 0


inside = []


def crowded(product, quantity):
    """It sells without a look at the stock if another request is between the same two statements; no statement shows that."""
    with transaction() as cursor:
        cursor.execute("SELECT count(*) FROM page")
        inside.append(cursor)
        cursor.execute("SELECT count(*) FROM tax")
        alone = len(inside) == 1
        cursor.execute("SELECT count(*) FROM page")
        inside.remove(cursor)
        if alone:
            cursor.execute("UPDATE product SET count = count - %s WHERE id = %s AND count >= %s", (quantity, product, quantity))
        if alone and cursor.rowcount == 0:
            return False
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
    return True


REQUESTS = itertools.count()
PROTECTIONS = {
    "thirty-statements": thirty_statements,
    "thirty-statements-naive": lambda product, quantity: thirty_statements(product, quantity, protected=False),
    "crowded": crowded,
    "seldom-another": seldom_another,
    "spins": spins,
    "ping-first": ping_first,
    "sleeps-at-times": sleeps_at_times,
    "works-at-times": works_at_times,
    "one-more-read": one_more_read,
    "insert-first": insert_first,
'''


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


@pytest.mark.long
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


@pytest.mark.long
def test_the_time_while_a_request_is_held_is_not_the_services(tmp_path):
    """Two requests wait in the program while A is held at each of its statements, for longer in sum than timeout_ms."""
    shop = json.loads(SAMPLE.read_text(encoding="utf-8"))
    shop |= {"timeout_ms": 2000, "schema": str(SAMPLES / "schema.sql"), "start": ["/usr/bin/python3", str(SAMPLES / "python" / "shop.py")]}
    (tmp_path / "shop.json").write_text(json.dumps(shop), encoding="utf-8")
    ran = explore("naive", "--requests", 3, "--replay", "A>end B>end C>end", "--format", "json", pool=1, description=tmp_path / "shop.json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout)["counterexample"]["answers"] == [201, 409, 409], ran.stdout


@pytest.mark.long
def test_a_service_that_does_not_use_the_gate(tmp_path):
    shop = json.loads(SAMPLE.read_text(encoding="utf-8"))
    shop["start"] = ["/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", "{port}"]
    shop["ready"] = "http://127.0.0.1:{port}/"
    shop["schema"] = str(SAMPLE.parent.parent / "schema.sql")
    (tmp_path / "shop.json").write_text(json.dumps(shop), encoding="utf-8")
    ran = explore("naive", description=tmp_path / "shop.json")
    assert ran.returncode == 3 and "no statement has come through the gate" in ran.stderr, ran.stderr


@pytest.mark.long
def test_a_saved_schedule_fails_until_the_service_is_right(tmp_path):
    """It is one command with an exit status, for the build of the service."""
    found = explore("naive", "--save", tmp_path / "schedules", "--show", 2)
    assert found.returncode == 1 and "A>1 B>end A>end replayed 10 of 10 times" in found.stdout, found.stdout
    assert "A read product (statement 1) before B changed it (3)" in " ".join(found.stdout.split()), found.stdout
    assert "\nB>1 A>end B>end\n" in found.stdout, "the second counterexample of --show 2"
    assert len(list((tmp_path / "schedules").iterdir())) == 1
    saved = tmp_path / "schedules" / "oversold.json"
    again = subprocess.run([BUILD / "loadtest", "explore", SAMPLE, "--replay", saved], capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "This schedule is NOT clean." in again.stdout, again.stdout
    assert "B was answered 201. Sold 2, 0 left." in again.stdout, "the file has the variables as well"
    repaired = explore("for-update", "--replay", saved)
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert "→ waits for A; then 0" in repaired.stdout, "B waits where the schedule lets it run, and then reads what A left"
    assert "B was answered 409. Sold 1, 0 left." in repaired.stdout, repaired.stdout
    assert "A now sends 'SELECT count FROM product WHERE id = 1 FOR UPDATE' as statement 1" in " ".join(repaired.stdout.split()), repaired.stdout
    locked = explore("synchronized", "--replay", saved)
    assert locked.returncode == 0 and "schedule was saved" not in locked.stdout, "the statements are the same, but B is refused"


@pytest.mark.long
def test_a_saved_schedule_that_no_longer_fits_is_named(tmp_path):
    """One more statement moves the steps of the schedule, so the replay is clean; the service still oversells."""
    description, saved = extended(tmp_path, SERVICES), tmp_path / "oversold.json"
    assert explore("naive", "--save", tmp_path, "--max-schedules", 4).returncode == 1
    exports = [f"--export-{kind}={tmp_path / kind}" for kind in ("json", "junit")]
    moved = explore("one-more-read", "--replay", saved, *exports, description=description)
    assert moved.returncode == 0 and "This schedule is clean." in moved.stdout, moved.stdout + moved.stderr
    sentence = (
        "Request A now sends 'SELECT 1 FROM order_item LIMIT 1' as statement 1, where it sent 'SELECT count FROM product WHERE id = 1' "
        "when the schedule was saved. If that statement is not what you repaired, the schedule no longer fits"
    )
    assert sentence in " ".join(moved.stdout.split()), moved.stdout
    assert json.loads((tmp_path / "json").read_text())["warnings"][0].startswith(sentence)
    assert sentence in (tmp_path / "junit").read_text().replace("&#39;", "'").replace("&apos;", "'")


@pytest.mark.long
def test_a_change_that_is_committed_after_the_read_is_the_cause(tmp_path):
    """The other request changed the table before the read, and its COMMIT came after it."""
    ran = explore("naive", "--replay", "A>2 B>1 A>end B>end", "--format", "json")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    cause = json.loads(ran.stdout)["counterexample"]["cause"]
    assert cause.startswith("B read product (statement 3) before the change of A (2) was committed ("), cause
    # The table of products does not count here: the orders alone say what is left.
    description = extended(
        tmp_path, SERVICES, reset=["DELETE FROM order_item"], invariant=None,
        stock="SELECT {stock} - coalesce(sum(quantity), 0) FROM order_item WHERE product_id = 1",
    )  # fmt: skip
    ran = explore("insert-first", "--replay", "A>1 B>2 A>end B>end", "--format", "json", description=description)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    cause = json.loads(ran.stdout)["counterexample"]["cause"]
    assert cause.startswith("B read order_item (statement 3) before the change of A (1) was committed (5), and committed its own change (2)"), cause


# ---- schedules that need not run ---------------------------------------------------------------------


def rows_of(found):
    return [(row["verdict"], row["schedules"], row["share"], row["schedule"]) for row in found["rows"]]


@pytest.mark.parametrize(
    ("protection", "requests"),
    [("naive", 2)] + [pytest.param(*case, marks=pytest.mark.long) for case in (("naive", 3), ("for-update", 3), ("decrement", 3), ("statement", 2))],
)
def test_a_reduced_search_says_the_same(protection, requests):
    whole, reduced = (result(protection, "--requests", requests, "--reduce", how) for how in ("none", "tables"))
    assert rows_of(whole) == rows_of(reduced), (whole, reduced)
    assert whole["run"] == whole["schedules"] == reduced["schedules"] >= reduced["run"], (whole, reduced)


def long_shop(folder):
    """The Python sample with the tables of a longer checkout."""
    tables = "CREATE TABLE page (number integer PRIMARY KEY, title text); CREATE TABLE tax (country integer PRIMARY KEY, rate integer);\nCREATE TABLE log (id bigserial PRIMARY KEY, event integer);\n"
    (folder / "schema.sql").write_text((SAMPLES / "schema.sql").read_text(encoding="utf-8") + tables, encoding="utf-8")
    return extended(folder, SERVICES, schema=str(folder / "schema.sql"))


@pytest.mark.long
@pytest.mark.parametrize("protection", ["thirty-statements", "thirty-statements-naive"])
def test_thirty_statements(tmp_path, protection):
    """All of about 10^17 schedules, of which few have to run."""
    found = result(protection, description=long_shop(tmp_path))
    assert found["schedules"] > 10**15 and found["run"] < 2000, found
    assert found["verdict"] == ("oversold" if protection.endswith("naive") else "clean"), found
    if found["verdict"] == "oversold":
        assert found["counterexample"]["switches"] == 2 and found["counterexample"]["reproduced"] == 10, found


@pytest.mark.long
def test_what_requests_share_in_memory_is_named(tmp_path):
    """No statement shows it, so a search that leaves schedules out says so where it says that the others are clean."""
    description = long_shop(tmp_path)
    assert result("crowded", description=description)["verdict"] == "oversold", "there are few schedules, so all run"
    ran = explore("crowded", "--reduce", "tables", description=description)
    said = " ".join(ran.stdout.split())
    assert ran.returncode == 0 and "is clean, as far as the requests share nothing but PostgreSQL." in said, said + ran.stderr


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["shop.json", "--export-table", "out.txt"], " FILE.json"),
        (["--export-table", "out.txt", "shop.json"], " FILE.json"),
        (["--replay", "saved.json", "one.spec"], " FILE.spec"),
        (["--all", "one.spec"], " FILE.spec"),
        (["one.sql"], " FILE.spec"),
        (["--stock=3", "shop.json"], " FILE.json"),
        (["--strategies", "mutex", "--export-table", "out.txt"], ""),
        (["--replay", "saved.json"], ""),
    ],
)
def test_the_file_says_what_is_explored(words, file):
    """A word behind an option belongs to the option."""
    ran = subprocess.run([BUILD / "loadtest", "explore", *words, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0 and ran.stdout.splitlines()[0] == f"usage: loadtest explore [OPTION…]{file}", ran.stdout + ran.stderr


def test_no_word_belongs_to_a_flag():
    for file in ([], ["shop.json"], ["one.spec"]):
        shown = subprocess.run([BUILD / "loadtest", "explore", *file, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
        flags = re.findall(r"^  (--[\w-]+)(?:$|  )", shown, re.M)
        assert len(flags) >= 2, shown
        for flag in flags:
            test_the_file_says_what_is_explored([flag, "one.sql"], " FILE.spec")


@pytest.mark.long
def test_a_reader_that_closes_the_output_early_is_named():
    """The pipe is smaller than the counterexamples, so the command cannot write them all."""
    command = [BUILD / "loadtest", "explore", SAMPLE, "--env", "PROTECTION=naive", "--max-schedules", "20", "--show", "10"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pipesize=4096) as run:
        assert "schedules" in run.stdout.readline()
        run.stdout.close()
        errors = run.stderr.read()
        assert run.wait(240 * PATIENCE) == 1, errors
    assert re.fullmatch("loadtest: cannot write the output: (Broken pipe|the program that reads it has closed the pipe, or the disk is full)\n", errors), errors


@pytest.mark.long
def test_a_program_that_works_does_not_wait(tmp_path):
    """Its statement comes late, as on a busy machine. If it counted as waiting, the statement of another request would be taken for its own."""
    ran = explore("works-at-times", description=extended(tmp_path, SERVICES))
    assert ran.returncode == 0 and "Every schedule of 2 requests is clean." in ran.stdout, ran.stdout + ran.stderr
    assert "continued by itself" not in ran.stdout and "repetition" not in ran.stdout, ran.stdout


@pytest.mark.long
def test_a_program_that_waits_without_a_pause_waits(tmp_path):
    """It always works, so that says nothing."""
    ran = explore("spins", description=extended(tmp_path, SERVICES, timeout_ms=1000))
    assert ran.returncode == 0 and "Every schedule of 2 requests is clean." in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.long
def test_a_new_connection_is_asked_for_more(tmp_path):
    """While another request waits for the only free connection, it is told whose a statement is by what one request alone sends."""
    ran = explore("ping-first", pool=2, description=extended(tmp_path, SERVICES))
    assert ran.returncode == 0 and "they never took turns on it" in " ".join(ran.stdout.split()), ran.stdout + ran.stderr


@pytest.mark.long
def test_two_programs_that_sleep_before_their_first_statements_are_not_stuck(tmp_path):
    """Which of them wakes first is not known, so the search may end with a problem instead of a verdict."""
    ran = explore("sleeps-at-times", description=extended(tmp_path, SERVICES))
    assert ran.returncode in (0, 3) and "stuck" not in ran.stdout and "NOT clean" not in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.long
def test_a_repetition_that_differs_is_named_beside_clean(tmp_path):
    ran = explore("seldom-another", description=extended(tmp_path, SERVICES))
    assert "! 1 repetition sent other statements than before, and ran again." in ran.stdout, ran.stdout + ran.stderr
    assert "Every schedule of 2 requests is clean, as long as the requests send what they sent the first time." in ran.stdout, ran.stdout


@pytest.mark.long
def test_a_result_is_stored_and_printed_again(tmp_path):
    junit, stored = tmp_path / "junit.xml", tmp_path / "result.json"
    ran = explore("statement", "--export-junit", junit, "--export-json", stored)
    assert ran.returncode == 0 and "Every schedule of 2 requests is clean." in ran.stdout, ran.stdout
    assert 'failures="0"' in junit.read_text()
    printed = subprocess.run([BUILD / "loadtest", "report", stored], capture_output=True, text=True, check=False)
    assert printed.returncode == 0 and "Every schedule of 2 requests is clean." in printed.stdout, printed.stdout + printed.stderr


@pytest.mark.parametrize(
    "options, sentence",
    [
        (["--replay", "C>1"], "'C>1' is not valid (a request from A to B"),
        (["--replay", "A>1 B>x"], "'B>x' is not valid"),
        (["--replay", "/nowhere.json"], "/nowhere.json: line"),
        (["--replay", str(SAMPLE)], "is not a schedule from --save"),
        (["--show", "11"], "--show"),
        (["--env", "NAME"], "NAME=VALUE"),
    ],
    ids=str,
)
def test_a_wrong_command_line_is_one_sentence(options, sentence):
    ran = explore("naive", *options)
    assert ran.returncode == 2 and sentence in ran.stderr and ran.stderr.count("\n") <= 2, ran.stderr
