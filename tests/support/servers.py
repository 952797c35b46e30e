"""The private servers of a run, and psql: to look into the database, and to hold locks in it."""

import contextlib
import itertools
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from basics import REPLY_S, ROOT, START_S, die_with_parent


class Stack:
    """The project's own private servers, in a separate folder."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="oversell-e2e-"))
        self.folder.chmod(0o755)
        self.script = ROOT / "stack" / "stack"
        self.databases = itertools.count(1)

    def run(self, *arguments):
        ran = subprocess.run(
            [self.script, *arguments], capture_output=True, text=True, timeout=300, check=False
        )
        assert (
            ran.returncode == 0
        ), f"stack {' '.join(map(str, arguments))}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    @property
    def servers(self):
        return self.folder / "servers"

    def up(self, which="all"):
        self.run("up", "--dir", str(self.servers), "--while", str(os.getpid()), which)
        self.environment = {}
        for line in self.run("env", "--admin", "--dir", str(self.servers)).splitlines():
            if line.startswith("export "):
                name, value = shlex.split(line)[1].split("=", 1)
                self.environment[name] = value
        assert "DATABASE_URL" in self.environment, f"stack env: {self.environment}"
        self.url = self.environment["DATABASE_URL"]
        self.admin_url = self.environment.pop("DATABASE_ADMIN_URL")

    def stop(self):
        self.run("down", "--dir", str(self.servers))

    def down(self):
        """Ends the servers and throws their data away."""
        try:
            self.run("down", "--purge", "--dir", str(self.servers))
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def database(self):
        """The URL of a new, empty database."""
        name = f"e2e_{os.getpid()}_{next(self.databases)}"
        psql(self.admin_url, f"CREATE DATABASE {name} OWNER shop")
        return with_database(self.url, name)


def with_database(url, name):
    return urlunsplit(urlsplit(url)._replace(path="/" + name))


def password(url):
    return urlsplit(url).password


def with_port(url, port):
    """URL with the server at 127.0.0.1:PORT."""
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{port}"))


def postgres_environment(url):
    """What leads psql to the database: everybody can read an address among its arguments."""
    parts = urlsplit(url)
    return {
        **os.environ,
        "PGHOST": parts.hostname,
        "PGPORT": str(parts.port),
        "PGUSER": parts.username,
        "PGPASSWORD": parts.password,
        "PGDATABASE": parts.path[1:],
    }


def psql(url, sql):
    """Runs SQL; returns the rows as lists of text."""
    ran = subprocess.run(
        ["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", sql],
        env=postgres_environment(url),
        capture_output=True,
        text=True,
        timeout=REPLY_S,
        check=False,
    )
    assert ran.returncode == 0, f"psql: {sql}\n{ran.stderr}"
    return [line.split("\t") for line in ran.stdout.splitlines()]


def number(url, sql):
    """The one integer that SQL selects."""
    return int(psql(url, sql)[0][0])


# Autovacuum may work in any database at any time. It is no client, and only a superuser may terminate it.
CLIENT_SESSIONS = "pg_stat_activity WHERE backend_type = 'client backend' AND datname"


def terminate_sessions(url, which="pid <> pg_backend_pid()", database=None):
    """Terminates the sessions of clients in the URL's database (or the named one) for which the condition holds."""
    name = f"'{database}'" if database else "current_database()"
    psql(url, f"SELECT pg_terminate_backend(pid) FROM {CLIENT_SESSIONS} = {name} AND {which}")


class Session:
    """A psql session that stays open, so that a test can hold a lock in it."""

    def __init__(self, url):
        self.process = subprocess.Popen(
            ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"],
            env=postgres_environment(url),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=die_with_parent,
        )

    def run(self, sql):
        """Runs SQL, waits for its end, returns its output as lines."""
        self.process.stdin.write(f"{sql};\n\\echo done-here\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.rstrip() == "done-here":
                return lines
            lines.append(line.rstrip())
        raise AssertionError(f"psql ended during {sql}: {lines}")

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=START_S)


@contextlib.contextmanager
def holding(url, sql):
    """Runs SQL in a transaction that stays open inside the with; .run("ROLLBACK") ends it before."""
    session = Session(url)
    try:
        session.run("BEGIN")
        session.run(sql)
        yield session
    finally:
        session.end()


def holding_row(url, product):
    """Holds the row lock of a product's stock."""
    return holding(url, f"SELECT count FROM product WHERE id = {product} FOR UPDATE")


def waiting_backends(url):
    """How many sessions of this database wait for a lock."""
    return number(
        url,
        f"SELECT count(*) FROM {CLIENT_SESSIONS} = current_database() AND wait_event_type = 'Lock'",
    )
