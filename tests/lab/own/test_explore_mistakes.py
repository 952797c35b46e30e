"""The mistakes that a user of `loadtest explore shop.json` can make: each ends with a sentence that says what was seen and what to change, and with
nothing left."""

import os
import signal
import subprocess

import pytest

from basics import BUILD, START_S, wait_until
from explored import extended
from test_check import sample_needs
from test_loadtest import nothing_is_left_of

# Further protections for the Python sample, in the place of its table.
SERVICES = '''
def tries_for_ever(product, quantity):
    """Each try changes something, so it is no poll."""
    while not decrement(product, quantity):
        with transaction() as cursor:
            cursor.execute("UPDATE product SET version = version + 1")
    return True


def by_chance(product, quantity):
    """No two requests send the same statement."""
    with transaction() as cursor:
        cursor.execute("SELECT 1 AS " + "".join(secrets.choice("abcdefgh") for _ in range(16)))
    return decrement(product, quantity)


def commits_later(product, quantity):
    """The service answers before it ends its transaction."""
    connection = psycopg2.connect(os.environ["DATABASE_URL"])
    cursor = connection.cursor()
    cursor.execute("UPDATE product SET count = count - %s WHERE id = %s AND count >= %s", (quantity, product, quantity))
    cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
    threading.Timer(0.02, connection.commit).start()
    return True


def slow_after_a_wait(product, quantity):
    """A statement that has waited for a lock has it, and then takes longer than a request may."""
    with transaction() as cursor:
        waited = "clock_timestamp() - statement_timestamp() > interval '300 ms'"
        cursor.execute(f"UPDATE product SET version = version + 1 RETURNING CASE WHEN {waited} THEN pg_sleep(3600) END")
        cursor.execute("SELECT pg_sleep(0.6)")
        cursor.execute("UPDATE product SET count = count - 1 WHERE count >= 1")
        if cursor.rowcount:
            cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
        return cursor.rowcount > 0


def never_answers(product, quantity):
    print("shop: waits for the payment provider", file=sys.stderr, flush=True)
    open("it-waits", "w").close()
    threading.Event().wait()


PROTECTIONS = {
    "tries-for-ever": tries_for_ever,
    "by-chance": by_chance,
    "commits-later": commits_later,
    "never-answers": never_answers,
    "slow-after-a-wait": slow_after_a_wait,
'''
URL = "http://127.0.0.1:{port}/orders"
# Protection, changes to the description, and what the sentence says.
MISTAKES = {
    "wrong SQL in reset": ("decrement", {"reset": ["UPDATE product"]}, ['"reset[0]" fails', "syntax error", "Correct the SQL"]),
    "wrong SQL in stock": ("decrement", {"stock": "SELECT n FROM prduct"}, ['"stock" fails', 'relation "prduct" does not exist', "Correct the SQL"]),
    "wrong SQL in sold": ("decrement", {"sold": "SELECT sum(quantity) FROM order_item"}, ['"sold" gives NULL', "coalesce"]),
    "wrong SQL in invariant": ("decrement", {"invariant": "SELECT 7"}, ['"invariant[0]"', "neither true nor false"]),
    "does not start": ("decrement", {"start": ["sh", "-c", "echo no such module; exit 4"]}, ['"start" has ended (exit status 4)', "no such module", 'Correct "start" or "env"']),
    "is never ready": ("decrement", {"start": ["sleep", "3600"], "start_timeout_ms": 300}, ['"ready" took longer than 300 ms', "start_timeout_ms"]),
    "another database": ("decrement", {"env": {"PORT": "{port}", "DATABASE_URL": "postgresql://127.0.0.1:1/x"}}, ['"start" has ended', "port 1 failed"]),
    "wants TLS": ("decrement", {"env": {"PORT": "{port}", "DATABASE_URL": "{postgres}?sslmode=require"}},
                  ["asked the gate in front of PostgreSQL for TLS, which has none", "sslmode=prefer"]),
    "wrong request": ("decrement", {"request": {"url": URL, "body": {"product_id": "one"}}}, ['"request" was answered with 400', "no statement has come through the gate", "{postgres}"]),
    "sells nothing": ("decrement", {"request": {"url": URL, "body": {"product_id": 2, "quantity": 1}}}, ['"request" placed no order', "409"]),
    "tries for ever": ("tries-for-ever", {}, ["have sent 250 statements and have not ended", "UPDATE product SET", "give up after a few tries"]),
    "chance": ("by-chance", {}, ["a schedule was repeated, and as statement ", "where it had sent '", "Turn off what depends on chance"]),
    "commits after the answer": ("commits-later", {}, ["request A sent 'COMMIT' after its answer", "finish its transaction before it answers"]),
    "is slow after a wait": ("slow-after-a-wait", {"timeout_ms": 3000}, ["timeout_ms", "request B has neither sent a statement nor ended"]),
    "never answers": ("never-answers", {"timeout_ms": 300}, ['"request" was not answered: ', "timeout_ms is 300", "waits for the payment provider"]),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_a_sentence(tmp_path, mistake):
    sample_needs("python")
    protection, members, words = MISTAKES[mistake]
    path = extended(tmp_path, SERVICES, **members)
    command = [BUILD / "loadtest", "explore", path, "--env", f"PROTECTION={protection}"]
    with subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        out, errors = process.communicate(timeout=START_S * 2)
    assert (process.returncode, out) == (3, ""), out + errors
    for word in words:
        assert word in errors, errors
    nothing_is_left_of(process.pid)


@pytest.mark.long
def test_an_interrupt_ends_a_request_that_never_answers(tmp_path):
    """It waits neither for timeout_ms nor for the request."""
    sample_needs("python")
    path = extended(tmp_path, SERVICES, timeout_ms=3600000)
    with subprocess.Popen([BUILD / "loadtest", "explore", path, "--env", "PROTECTION=never-answers"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, start_new_session=True) as process:  # fmt: skip
        wait_until((tmp_path / "it-waits").exists, "the request waits", START_S)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=START_S)
    assert process.returncode == 128 + signal.SIGINT, out + errors
    nothing_is_left_of(process.pid)
