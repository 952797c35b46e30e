"""No secret can be read by another user of the machine while the stack, the service or the load lab is at work.

A watcher (watcher.py) reads the command lines of all processes and the files below TMPDIR meanwhile: as the user `nobody`
where the tests run as root, and otherwise as the same user, command lines only."""

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from private_stack import LIMIT_S, ROOT, STACK, eventually, ok

BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
WATCHER = (Path(__file__).parent / "watcher.py").read_text(encoding="utf-8")
PYTHON = "/usr/bin/python3"
TOKEN = secrets.token_hex(16)  # the admin token of all that is started here
AS_NOBODY = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"] if os.geteuid() == 0 else []


class Watched:
    """What could be read, and what is secret: TOKEN, and every password file of a stack below the folder."""

    def __init__(self):
        self.secrets = {"the admin token": TOKEN}
        self.arguments, self.files, self.sweeps = [], {}, 0

    def collect(self, folder):
        for parent, _, names in os.walk(folder):  # some vanish meanwhile
            for name in names:
                with contextlib.suppress(OSError):
                    if name.endswith(".password") and (text := Path(parent, name).read_text().strip()):
                        self.secrets[f"{name} {text[:4]}"] = text

    def readable(self):
        """Where secrets could be read."""
        found = [f"{what} in: {line.replace(secret, '<SECRET>')[:300]}"
                 for what, secret in self.secrets.items() for line in self.arguments if secret in line]
        return found + [f"{what} in the file {path}" for what, secret in self.secrets.items()
                        for path, words in self.files.items() if any(secret in word for word in words)]

    def saw(self, *programs):
        """Each of these was seen at work, so it was watched."""
        started = {Path(word).name for line in self.arguments for word in line.split()[:3]}
        return not set(programs) - started or f"not seen: {set(programs) - started}"


@contextlib.contextmanager
def watching(folder):
    """Watches inside the with; the result is complete behind it. FOLDER is the TMPDIR of what is watched."""
    watched, done = Watched(), threading.Event()

    def look_for_passwords():
        while not done.wait(0.02):
            watched.collect(folder)

    collector = threading.Thread(target=look_for_passwords)
    with subprocess.Popen([*AS_NOBODY, PYTHON, "-B", "-c", WATCHER, *([str(folder)] if AS_NOBODY else [])], cwd="/",
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout.readline() == "watching\n"
        collector.start()
        try:
            yield watched
            watched.collect(folder)
        finally:
            done.set()
            collector.join()
            seen, _ = watcher.communicate(timeout=LIMIT_S)
    for name, value in json.loads(seen).items():
        setattr(watched, name, value)


@pytest.fixture
def folder(stacks):
    """A folder that the servers' users, and other users, can enter; what is left in it ends with the test."""
    folder = stacks().folder.parent / "tmp"
    folder.mkdir(mode=0o755)
    return folder


def environment(folder):
    return {**os.environ, "TMPDIR": str(folder), "ADMIN_TOKEN": TOKEN, "OVERSELL_STACK": str(STACK),
            "OVERSELL_ORDER_LUA": str(ROOT / "loadtest/load/order.lua")}


def run(folder, *words, status=(0,)):
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                         stdin=subprocess.DEVNULL, env=environment(folder), cwd=ROOT)
    assert ran.returncode in status, f"{words}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran


def test_the_watcher_finds_a_secret(folder):
    """What the other tests rely on: it sees an argument of a short-lived program, and what is in a readable file."""
    with watching(folder) as watched:
        secret, later = secrets.token_hex(16), secrets.token_hex(16)
        watched.secrets.update({"one": secret, "two": later})
        for _ in range(20):
            subprocess.run(["sh", "-c", "sleep 0.02", secret], check=True)
        (folder / "log").write_text(f"password={later}\n")
        (folder / "own").touch(mode=0o600)
        (folder / "own").write_text(TOKEN)
    found = watched.readable()
    assert any(text.startswith("one in: sh -c") for text in found), found
    if AS_NOBODY:
        assert [text for text in found if "in the file" in text] == [f"two in the file {folder}/log"]
    assert watched.sweeps > 10


def test_up_of_every_server(folder):
    with watching(folder) as watched:
        for _ in range(2):
            ok("up", "--dir", folder / "servers", "all", env=environment(folder))
            ok("env", "--admin", "--dir", folder / "servers")
            ok("down", "--dir", folder / "servers")
        ok("down", "--purge", "--dir", folder / "servers")
    assert watched.readable() == []
    assert watched.saw("psql", "initdb", "redis-server", "java", "etcd", *AS_NOBODY[:1]) is True  # root starts servers by setpriv
    assert len(watched.secrets) >= 1 + 2 + 6, "the passwords of both roles and of six Redis"


@pytest.mark.long
def test_a_service_as_make_run_starts_it(folder):
    """The stack's `run` with the service, which gets its addresses by the environment."""
    port_file = folder / "port"
    with watching(folder) as watched:
        words = [STACK, "run", "--dir", folder / "servers", "all", "--", BUILD / "order-service", "--listen", "127.0.0.1:0",
                 "--port-file", port_file, "--log-level", "debug"]
        with (folder / "service.log").open("w") as log, subprocess.Popen(
                list(map(str, words)), env=environment(folder), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT) as service:
            eventually(lambda: port_file.exists() or service.poll() is not None, "the service listens", LIMIT_S)
            assert service.poll() is None, (folder / "service.log").read_text()
            service.send_signal(signal.SIGTERM)
            assert service.wait(timeout=LIMIT_S) == 0, (folder / "service.log").read_text()
    assert watched.readable() == []
    assert watched.saw("order-service", "psql") is True and len(watched.secrets) >= 9


# What must be at work meanwhile, and the command; one that only measures may miss a goal.
LAB = {
    "compare": (["wrk", "order-service", "psql"], ["compare", "--strategies", "mutex,redis-lock", "--stock", "20",
                                                  "--duration", "250ms"]),
    "demo": (["wrk", "order-service", "psql"], ["demo", "--strategies", "mutex,redis-lock", "--stock", "20",
                                                "--duration", "250ms"]),
    "explore": (["psql"], ["explore", "--strategies", "select-for-update,redis-lock", "--limit", "20"]),
    "rush": (["order-service", "psql"], ["rush", "--strategies", "atomic-decrement", "--rate", "50", "--duration", "500ms"]),
    "bench-pgbench": (["pgbench", "wrk", "order-service"], ["bench", "--only", "hot/atomic-statement", "--rounds", "1",
                                                           "--duration", "1s", "--workers", "4", "--clients", "4"]),
    "bench-locks": (["redis-benchmark"], ["bench", "--only", "locks/*", "--rounds", "1", "--duration", "1s",
                                                  "--connections", "2"]),
    "faults": (["order-service", "psql"], ["faults", "--faults", "redis-failover,lock-test", "--strategies", "redis-lock", "--cycles", "1"]),
}


@pytest.mark.long
@pytest.mark.parametrize("name", LAB)
def test_the_load_lab(folder, name):
    programs, words = LAB[name]
    with watching(folder) as watched:
        # Also a verdict that is not as expected, of so short a run.
        run(folder, *([ROOT / "bench/bench"] if words[0] == "bench" else [BUILD / "loadtest", words[0]]), *words[1:], status=(0, 1, 3))
    assert watched.readable() == []
    assert watched.saw(*programs) is True
    assert len(watched.secrets) >= 2, "the passwords of the private stack"


@pytest.mark.long
def test_lockrun(folder):
    with watching(folder) as watched:
        for lock in ("redis-lock", "lock-row", "etcd", "zookeeper"):
            run(folder, STACK, "run", "--dir", folder / "servers", "postgres", "redis", "zookeeper", "etcd", "--",
                BUILD / "lockrun", "--lock", lock, "--name", "secrets", "--", "sleep", "0.2")
    assert watched.readable() == []
    assert watched.saw("lockrun", "sleep", "psql") is True and len(watched.secrets) >= 4


def test_the_keys_of_the_containers(folder):
    """The scripts as they are, with a folder of this test in the place of /keys. Each program they start notes its own
    arguments, since most end too soon to be watched."""
    keys, programs, noted = folder / "keys", folder / "bin", folder / "noted"
    for made in (keys, folder / "keys-postgres", folder / "keys-redis"):
        made.mkdir(mode=0o700)
    programs.mkdir()
    noted.touch()  # the script's umask would make it read-only
    for name in ("cat", "cmp", "echo", "mv", "od", "printenv", "printf", "rm", "sed", "tr"):
        (programs / name).write_text(f'#!/bin/sh\nprintf "%s\\n" "{name} $*" >>{noted}\nPATH={os.environ["PATH"]} exec {name} "$@"\n')
        (programs / name).chmod(0o755)
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "DATABASE_URL": "postgresql://shop:PASSWORD@postgres:5432/shop",
           "REDLOCK_URLS": "redis://default:PASSWORD@a:1,redis://default:PASSWORD@b:1"}
    told = ""
    for name, words in (("keys", []), ("with-keys", [sys.executable, "-c", "import os; print(os.environ['DATABASE_URL'])"])):
        text = (ROOT / "stack/container" / name).read_text().replace("/keys", str(keys))
        ran = subprocess.run(["sh", "-c", text, name, *words], capture_output=True, text=True, check=True, env=env)
        told += ran.stderr + (ran.stdout if name == "keys" else "")
    password, redis, token = ((keys / name).read_text() for name in ("postgres-password", "redis-password", "token"))
    assert ran.stdout == f"postgresql://shop:{password}@postgres:5432/shop\n"
    arguments = noted.read_text()
    assert re.search("^od ", arguments, re.M) and re.search("^cat ", arguments, re.M)
    for secret in (password, redis, token):
        assert secret not in arguments and secret not in told
