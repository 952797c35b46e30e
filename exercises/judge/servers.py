"""The servers of a strategy: private ones that stack/stack starts, or those that the environment names."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import child
from outcome import Misused, NotJudged, complain

STACK = os.environ.get("OVERSELL_STACK") or str(Path(__file__).resolve().parents[2] / "stack" / "stack")
STACK_S, STOP_S, ADDRESSES_S, TAIL_LINES = 180, 5, 30, 20


def others_can_enter(folder):
    folder = Path(folder).resolve()
    return all(each.is_dir() and each.stat().st_mode & 1 for each in (folder, *folder.parents))


def make_folder():
    # /var/tmp is on a disk where /tmp may be memory. Where root runs the judge, the servers run as other users.
    parent = os.environ.get("TMPDIR")
    if not parent or (os.geteuid() == 0 and not others_can_enter(parent)):
        parent = "/var/tmp"
    try:
        folder = Path(tempfile.mkdtemp(prefix="oversell-", dir=parent))
        folder.chmod(0o755)
        return folder
    except OSError as error:
        raise NotJudged(f"cannot create a folder in {parent}: {error.strerror}; set TMPDIR to another folder") from None


@contextlib.contextmanager
def private(with_redis):
    """The addresses by their variables, and why Redis is missing, or ""."""
    folder = make_folder()
    log = folder / "stack.log"
    up = ["up", "--dir", folder / "stack", "--while", str(os.getpid()), "--purge"]  # down too if this process is killed
    try:
        if child.run([STACK, *up, "postgres"], log, STACK_S, STOP_S) != 0:
            tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
            raise NotJudged("\n  | ".join([f"{STACK} cannot start PostgreSQL; the last lines of its log:", *tail]))
        if with_redis:
            child.run([STACK, *up, "redis"], log, STACK_S, STOP_S)
        ran = subprocess.run([STACK, "env", "--dir", folder / "stack"], stdout=subprocess.PIPE, text=True, timeout=ADDRESSES_S, check=True)
        found = dict(re.findall(r"^export (\w+)=(.*)$", ran.stdout, re.M))
        said = re.findall(r"^stack: (redis.*)$", log.read_text(encoding="utf-8", errors="replace"), re.M)
        yield found, "" if "REDIS_URL" in found else (said or ["redis is not running"])[-1]
    finally:
        if child.run([STACK, "down", "--dir", folder / "stack", "--purge"], log, STACK_S, STOP_S, interruptible=False) != 0:
            complain(f"{STACK} cannot stop the servers in {folder}")
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def environment():
    if not os.environ.get("DATABASE_URL"):
        raise Misused("--servers environment needs the address of a database: set DATABASE_URL")
    yield os.environ, "" if os.environ.get("REDIS_URL") else "REDIS_URL is not set"
