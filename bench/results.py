"""The command lines of the measuring tools, and their results as `loadtest` stores them."""

import argparse
import contextlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import BUILD, ENVIRONMENT, TOOL, Interrupted, tell

FORMATS = ("table", "json", "csv", "markdown", "html", "junit", "svg")

# ---- the command line -----------------------------------------------------------------------------


def plain(text):
    """A text of the command line, without what would steer the terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02X}" for c in text)


class Parser(argparse.ArgumentParser):
    """Of a measuring tool. An option has its whole name, since repeated_command reads it."""

    def __init__(self, description):
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def error(self, message):
        super().error(plain(message))


def add_output_options(parser):
    group = parser.add_argument_group("output, which `loadtest report` writes")
    group.add_argument("--format", choices=FORMATS, help="format of the result (default: table)")
    group.add_argument("--output", metavar="FILE", help="write the result to FILE instead of stdout")
    for name in FORMATS:
        group.add_argument(f"--export-{name}", metavar="FILE", help=f"also write the result to FILE, as {name}")


def whole_number(least, most):
    def parse(text):
        if not re.fullmatch("[0-9]+", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be {least} to {most}")
        return int(text)

    return parse


def duration(text):
    """Whole seconds, since pgbench measures in seconds."""
    found = re.fullmatch(r"(\d+)(ms|s|m|h)", text)
    ms = int(found[1]) * {"ms": 1, "s": 1000, "m": 60000, "h": 3600000}[found[2]] if found else 0
    if not 1000 <= ms <= 600000 or ms % 1000:
        raise argparse.ArgumentTypeError("must be whole seconds, from 1s to 10m")
    return ms // 1000


# ---- results --------------------------------------------------------------------------------------


def fact(path, pattern):
    """What a file of the system says; "" if it does not, or is missing."""
    with contextlib.suppress(OSError):
        found = re.search(pattern, Path(path).read_text(encoding="utf-8"), re.M)
        return found[1] if found else ""
    return ""


def document(kind, settings, **members):
    """A result as `loadtest` stores it."""
    machine = {
        "cpus": os.cpu_count(),
        "cpu": fact("/proc/cpuinfo", r"^model name\s*: (.*)"),
        "memory_mib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "system": fact("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
    }
    return {"version": 1, "kind": kind, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "command": repeated_command(sys.argv),
            "machine": machine, "settings": settings, **members}  # fmt: skip


def repeated_command(words):
    """What repeats a run: the command line without where its result goes."""
    kept, rest = [f"bench/{TOOL}"], list(words[1:])
    while rest:
        word = rest.pop(0)
        if not re.match(r"--(format|output|export-)", word):
            kept.append(word)
        elif "=" not in word:
            del rest[:1]
    return shlex.join(kept)


def print_result(result, settings):
    """Prints it as the options say; returns the exit status. If it cannot be printed, it stays in a file."""
    options = [word for name in ("format", "output", *(f"export_{name}" for name in FORMATS)) if (value := getattr(settings, name))
               for word in (f"--{name.replace('_', '-')}", value)]  # fmt: skip
    file, path = tempfile.mkstemp(prefix=f"oversell-{TOOL}-", suffix=".json")
    status = ENVIRONMENT
    try:
        with open(file, "w", encoding="utf-8") as stored:
            json.dump(result, stored)
        ended = subprocess.run([BUILD / "loadtest", "report", path, *options], check=False).returncode
        status = ended if ended >= 0 else 128 - ended  # a Ctrl-C reaches both
    except Interrupted as interrupted:
        status = interrupted.status
    finally:
        if status == 0:
            os.unlink(path)
        else:
            tell(f"the result is in {path}")
    return status
