"""Checkouts that were written after public bug reports, and right ones beside them: each gets its right verdict."""

import json
import os
import re
import shutil
import subprocess

import pytest
from basics import BUILD, ROOT
from servers import Stack
from test_check import needs
from cases.cases import CASES, CAUSES

FOLDER = ROOT / "tests" / "lab" / "cases"
MODULES = f"{BUILD}/peers/modules/usr/share/nodejs:/usr/share/nodejs"


@pytest.fixture(scope="module")
def servers():
    """The addresses of a private PostgreSQL and MariaDB, for the specifications."""
    stack = Stack()
    try:
        stack.up("postgres")
        if shutil.which("mariadb-install-db"):
            stack.run("up", "--dir", str(stack.servers), "--while", str(os.getpid()), "mariadb")
        printed = stack.run("env", "--dir", str(stack.servers))
        found = re.search("^export MARIADB_URL=(.*)$", printed, re.MULTILINE)
        yield {"postgres": stack.url, "mariadb": found and found[1]}
    finally:
        stack.down()


# The cases of the reports are short, but for these; of our own, those that need a service are long.
LONG = ("42-service-flows/hold.json", "42-service-flows/cart.json", "50-faults/pool-query/shop.json", "50-faults/mariadb-lock-wait-timeout.spec",
        "07-odoo-skip-locked-quant/shop.json", "25-spring-jdbc-lock-lease/shop.json")  # fmt: skip


def marks_of(file):
    return [pytest.mark.long] if file in LONG or file.startswith("own/") and file.endswith(".json") else []


def marked(case):
    file, command, options, *_, wrong = case  # a reason that starts with "sometimes" is of a verdict that is right in some runs
    marks = [pytest.mark.xfail(strict=not wrong.startswith("sometimes"), reason=wrong)] if wrong else []
    return pytest.param(*case[:5], marks=marks + marks_of(file), id=f"{command}-{file}{''.join(options)}")


def needs_packages(file):
    if file.startswith("09"):
        needs("/usr/bin/php", "-r", "exit(extension_loaded('pdo_pgsql') ? 0 : 1);", packages="php-pgsql")
    if file.startswith("24"):
        needs("/usr/bin/python3", "-c", "import sqlalchemy", packages="python3-sqlalchemy")


@pytest.mark.long
@pytest.mark.parametrize(("file", "command", "options", "statuses", "word"), [marked(case) for case in CASES])
def test_verdict(servers, file, command, options, statuses, word):
    if file.endswith(("js.json", "lock.json")) or "pool-" in file:
        needs("node", "-e", "require('pg')", packages="node-pg", NODE_PATH=MODULES)
    needs_packages(file)
    if file.startswith("14") and not os.path.exists("/usr/sbin/pgbouncer"):
        pytest.skip("pgbouncer is not installed")
    path = FOLDER / file
    arguments = [BUILD / "loadtest", command, path, *options]
    if file.endswith(".spec"):
        database = servers["mariadb" if "mariadb" in file else "postgres"]
        if not database:
            pytest.skip("mariadb-server is not installed: make deps-test")
        arguments += ["--database", database]
    ran = subprocess.run(arguments, env={"NODE_PATH": MODULES} | os.environ, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode in statuses and re.search(word, ran.stdout + ran.stderr), ran.stdout + ran.stderr


@pytest.mark.long
@pytest.mark.parametrize(("file", "options", "sentence"), [pytest.param(*cause, marks=marks_of(cause[0])) for cause in CAUSES],
                         ids=lambda value: "".join(value) if isinstance(value, list) else str(value)[:30])  # fmt: skip
def test_cause(file, options, sentence):
    """What the simplest schedule says of its statements is true of them."""
    needs_packages(file)
    options = ["--env", *options] if options and "=" in options[0] else options
    arguments = [BUILD / "loadtest", "explore", FOLDER / file, "--format", "json", *options]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    shown = json.loads(ran.stdout)["counterexample"]
    assert sentence in shown["cause"], shown


@pytest.mark.long
@pytest.mark.parametrize("file", ["04-medusa-two-lines/shop.json", "05-medusa-orphaned-order/shop.json", "own/mistakes.json"])
def test_check_says_what_it_counted(file):
    """None of these is a lost update, and not all need concurrency."""
    options = ["--env", "MODE=ignored-zero"] if "mistakes" in file else []
    ran = subprocess.run([BUILD / "loadtest", "check", FOLDER / file, *options], capture_output=True, text=True, timeout=120, check=False)
    says = " ".join(ran.stdout.split())
    assert ran.returncode == 1 and re.search(r"Run 1: \d+ units? were sold beyond the stock", says), ran.stdout + ran.stderr
    assert "loadtest explore shows which statements lead to it" in says and not re.search("lost update|read the same|checked the stock", says), says
