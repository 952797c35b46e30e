"""Stacks for the tests: the script, and one stack in a private folder."""

import os
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STACK = ROOT / "stack" / "stack"
LIMIT_S = 600


def stack(*arguments, **options):
    return subprocess.run([STACK, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, check=False, **options)


def ok(*arguments, **options):
    ran = stack(*arguments, **options)
    assert ran.returncode == 0, f"{arguments}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def eventually(condition, what, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def hear_signals():
    """A shell ignores them for what it starts in the background, and bash cannot undo that: perhaps we are there."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Servers:
    """One stack in a private folder."""

    def __init__(self, folder):
        self.folder = folder

    def up(self, *arguments, **options):
        return ok("up", "--dir", self.folder, *arguments, **options)

    def down(self, *arguments):
        return ok("down", "--dir", self.folder, *arguments)

    def is_up(self):
        code = stack("status", "--dir", self.folder).returncode
        assert code in (0, 3)
        return code == 0

    def status(self):
        """Each server's name, and whether it is up."""
        return {line.split()[0]: line.split()[1] == "up"
                for line in stack("status", "--dir", self.folder).stdout.splitlines()}

    def env(self, *options):
        lines = ok("env", "--dir", self.folder, *options).splitlines()
        assert all(line.startswith("export ") for line in lines), lines
        return dict(line.removeprefix("export ").split("=", 1) for line in lines)

    def pid(self, name="postgres"):
        return int((self.folder / f"{name}.pid").read_text())

    def port(self, name="postgres"):
        return int((self.folder / f"{name}.port").read_text())

    @property
    def url(self):
        return self.env()["DATABASE_URL"]

    def sql(self, text, url=None):
        ran = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", url or self.url, "-c", text], capture_output=True,
                             text=True, timeout=LIMIT_S, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def processes(self):
        """Every process that names this folder in its command line or works in it, however it was started."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                words.append(os.fsencode(os.readlink(entry / "cwd")))
            except OSError:
                continue
            if any(str(self.folder).encode() in word for word in words) and alive(entry.name):
                found.append(b" ".join(words).decode())
        return found
